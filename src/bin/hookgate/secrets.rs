//! Secrets: from the environment, a file or a prompt; never from an argument, which the list of processes shows.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use hookgate::{KeyRing, Secret, SecretError, SecretErrorKind};
use zeroize::Zeroizing;

use crate::fault::{Class, Fault, warn};
use crate::interrupt;

const DEFAULT_VARIABLE: &str = "WEBHOOK_SECRET";

/// Where the subscription's secret comes from. Asked for at the terminal where neither option is given and WEBHOOK_SECRET is not set.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct SecretArgs {
    /// Read the secret from this environment variable [default: WEBHOOK_SECRET]. May be given several times: up to four
    /// secrets are one ring of keys
    #[arg(long, value_name = "VARIABLE", help_heading = "Secret")]
    secret_env: Vec<String>,
    /// Read the secret from this file, 4096 bytes at most, whose line break at the end is not part of it. May be given several
    /// times, and beside --secret-env
    #[arg(long, value_name = "PATH", help_heading = "Secret")]
    secret_file: Vec<PathBuf>,
    /// Take a secret that does not begin with `whsec_`
    #[arg(long, help_heading = "Secret")]
    any_secret: bool,
}

/// A secret that was asked for, by its name, or why it is none.
pub(crate) type Given = (String, Result<Secret, SecretError>);

impl SecretArgs {
    /// Every secret that variables and files give, with a name for each: the variable or the path. None where neither option is
    /// given and WEBHOOK_SECRET is not set.
    pub(crate) fn given(&self) -> Vec<Given> {
        let of_variable = |name: &str| {
            if self.any_secret {
                Secret::of_other_form_from_env(name)
            } else {
                Secret::from_env(name)
            }
        };
        let of_file = |path: &Path| {
            if self.any_secret {
                Secret::of_other_form_from_file(path)
            } else {
                Secret::from_file(path)
            }
        };
        let mut given = Vec::new();
        for variable in &self.secret_env {
            given.push((variable.clone(), of_variable(variable)));
        }
        for path in &self.secret_file {
            warn_if_others_can_read(path);
            given.push((path.display().to_string(), of_file(path)));
        }
        if given.is_empty() && std::env::var_os(DEFAULT_VARIABLE).is_some() {
            given.push((DEFAULT_VARIABLE.to_owned(), of_variable(DEFAULT_VARIABLE)));
        }
        given
    }

    /// Every secret, with a name for each. Asks at the terminal where none is given.
    pub(crate) fn named(&self) -> Result<Vec<(String, Secret)>, Fault> {
        let given = self.given();
        if given.is_empty() {
            return Ok(vec![("typed".to_owned(), self.ask()?)]);
        }
        given
            .into_iter()
            .map(|(name, secret)| Ok((name, secret.map_err(|error| refused(&error))?)))
            .collect()
    }

    /// One ring of all of them.
    pub(crate) fn ring(&self) -> Result<KeyRing, Fault> {
        let unusable = |error: hookgate::KeysError| {
            Fault::caused_by(Class::Secret, "these secrets make no ring", &error)
        };
        let mut ring = None;
        for (name, secret) in self.named()? {
            ring = Some(match ring {
                None => KeyRing::named(&name, secret).map_err(unusable)?,
                Some(ring) => KeyRing::with_key(ring, &name, secret).map_err(unusable)?,
            });
        }
        ring.ok_or_else(none_given)
    }

    /// The first of them, for what signs.
    pub(crate) fn first(&self) -> Result<Secret, Fault> {
        let first = self.named()?.into_iter().next();
        first.map(|(_, secret)| secret).ok_or_else(none_given)
    }

    fn ask(&self) -> Result<Secret, Fault> {
        let text = prompt()?;
        let secret = if self.any_secret {
            Secret::of_other_form(&text)
        } else {
            Secret::new(&text)
        };
        secret.map_err(|error| refused(&error))
    }
}

/// What to do about a secret that is none.
pub(crate) fn advice(kind: SecretErrorKind) -> String {
    match kind {
        SecretErrorKind::WithoutPrefix => {
            "if it is right all the same, say so: --any-secret".into()
        }
        SecretErrorKind::Unset => {
            "set it without showing it to others: read -rs NAME; export NAME".into()
        }
        SecretErrorKind::Unreadable => {
            "check the path, and that you may read it; a secret's file has 4096 bytes at most".into()
        }
        SecretErrorKind::ApiKey => {
            "the subscription's secret is shown once, at its creation: developer settings, webhooks; if it is lost, make a new subscription".into()
        }
        _ => "paste it again from the subscription's settings: whsec_ and what follows".into(),
    }
}

fn refused(error: &SecretError) -> Fault {
    Fault::caused_by(Class::Secret, "the secret can't be right", error).advise(advice(error.kind()))
}

fn none_given() -> Fault {
    Fault::new(
        Class::Secret,
        "no secret is given, and there is no terminal to ask at",
    )
    .advise(format!(
        "set {DEFAULT_VARIABLE}, or use --secret-env or --secret-file"
    ))
}

/// Not where nobody sits: a script would wait for ever.
fn prompt() -> Result<Zeroizing<String>, Fault> {
    if !io::stdin().is_terminal() && !io::stderr().is_terminal() {
        return Err(none_given());
    }
    let asked = interrupt::held_back(|| {
        rpassword::prompt_password("secret of the subscription (not shown): ")
    })?;
    asked.map(Zeroizing::new).map_err(|error| {
        if error.kind() == io::ErrorKind::Interrupted {
            return Fault::interrupted();
        }
        Fault::caused_by(Class::Secret, "the secret can't be read", &error).advise(format!(
            "set {DEFAULT_VARIABLE}, or use --secret-env or --secret-file"
        ))
    })
}

#[cfg(unix)]
fn warn_if_others_can_read(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;

    // One that can't be looked at can't be read either, which is said then.
    let Ok(found) = std::fs::metadata(path) else {
        return;
    };
    let mode = found.permissions().mode() & 0o777;
    if found.is_file() && mode & 0o077 != 0 {
        warn(
            &format!(
                "others can read the secret in {} (mode {mode:04o})",
                path.display()
            ),
            &format!("chmod 600 {}", path.display()),
        );
    }
}

#[cfg(not(unix))]
fn warn_if_others_can_read(_: &Path) {}

/// At a terminal that `script` of util-linux makes, as on most Linux systems.
#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::process::{Command, Stdio, exit};

    use super::*;

    const SECRET: &str = "whsec_made_up_and_typed_in";

    /// Not a test of its own: what the one below starts at a terminal.
    #[test]
    #[ignore = "asks at a terminal, for the test below"]
    fn asks_for_a_secret() {
        let args = SecretArgs {
            secret_env: Vec::new(),
            secret_file: Vec::new(),
            any_secret: false,
        };
        exit(args.first().map_or_else(|fault| fault.code().into(), |_| 0));
    }

    /// What stood on the terminal when this was typed, the state that it was left in included.
    fn typed(keys: &str) -> Option<String> {
        let itself = std::env::current_exe().ok()?;
        let asked = format!(
            "{} --ignored --exact --nocapture secrets::tests::asks_for_a_secret; echo code=$?; stty -a",
            itself.display()
        );
        let mut script = Command::new("script")
            .args(["--quiet", "--command", &asked, "/dev/null"])
            .env_remove(DEFAULT_VARIABLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let (mut terminal, mut seen) = (script.stdout.take()?, Vec::new());
        while !String::from_utf8_lossy(&seen).contains("(not shown): ") {
            let mut some = [0; 256];
            let read = terminal.read(&mut some).ok().filter(|read| *read > 0)?;
            seen.extend_from_slice(&some[..read]);
        }
        // The prompt stands there before the terminal has been told to hide what is typed.
        std::thread::sleep(std::time::Duration::from_secs(1));
        let mut keyboard = script.stdin.take()?;
        keyboard.write_all(keys.as_bytes()).ok()?;
        terminal.read_to_end(&mut seen).ok()?;
        script.wait().ok()?;
        Some(String::from_utf8_lossy(&seen).into_owned())
    }

    #[test]
    fn a_prompt_shows_nothing_and_leaves_the_terminal_whole_also_when_interrupted() {
        if Command::new("script").arg("--version").output().is_err() {
            return;
        }
        let enter = format!("{SECRET}\n");
        let too_short = "whsec_no\n";
        for (keys, code) in [(&*enter, 0), ("whsec_made_up\x03", 130), (too_short, 5)] {
            let seen = typed(keys).expect("a terminal");
            assert!(seen.contains(&format!("code={code}\r")), "{seen}");
            assert!(!seen.contains("whsec_made_up"), "{seen}");
            for set in ["echo", "icanon", "isig"] {
                assert!(seen.split_whitespace().any(|word| word == set), "{seen}");
            }
        }
    }
}
