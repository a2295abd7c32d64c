//! Secrets: from the environment, a file or a prompt; never from an argument, which the list of
//! processes shows.

use std::error::Error;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use hookgate::verify::{Timestamp, sign};
use hookgate::{ConfigError, ConfigErrorKind, KeyRing, Scheme, Secret};
use hookgate_testing::Signer;
use zeroize::Zeroizing;

use crate::fault::{Class, Fault, chain, warn};
use crate::interrupt;

pub(crate) const DEFAULT_VARIABLE: &str = "WEBHOOK_SECRET";

/// Where the subscription's secret comes from. Asked for at the terminal where neither option is
/// given and WEBHOOK_SECRET is not set.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Secret")]
pub(crate) struct SecretArgs {
    /// Read the secret from this environment variable [default: WEBHOOK_SECRET]. May be given
    /// several times: up to four secrets are one ring of keys
    #[arg(long, value_name = "VARIABLE")]
    secret_env: Vec<String>,
    /// Read the secret from this file, 4096 bytes at most, whose line break at the end is not part
    /// of it. May be given several times, and beside --secret-env
    #[arg(long, value_name = "PATH")]
    secret_file: Vec<PathBuf>,
    /// Take a secret that does not begin with `whsec_`
    #[arg(long)]
    any_secret: bool,
}

/// How the sender signs.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Scheme")]
pub(crate) struct SchemeArgs {
    /// How the sender signs: workspace, standard-webhooks, stripe, github. With github,
    /// --any-secret takes the secret that you have chosen
    #[arg(long, value_name = "NAME", default_value = "workspace", value_parser = scheme)]
    pub(crate) scheme: Scheme,
}

fn scheme(name: &str) -> Result<Scheme, String> {
    let known = "expected workspace, standard-webhooks, stripe or github";
    Scheme::named(name).ok_or_else(|| known.to_owned())
}

impl SchemeArgs {
    /// Returns what signs as this sender does, with this id in the header where one is given.
    pub(crate) fn signer(&self, secret: Secret, id: Option<&str>) -> Result<Signer, Fault> {
        if id.is_some() && self.scheme.signed_id_header().is_none() {
            return Err(self.has_no("header of the event's id", "--id"));
        }
        let tried = Timestamp::parse(b"1").map_or(Ok(Vec::new()), |first| {
            sign(&self.scheme, &secret, &first, id.unwrap_or("msg_1"), b"")
        });
        tried.map_err(|error| match error.kind() {
            ConfigErrorKind::UnusableName => {
                Fault::caused_by(Class::Usage, "no receiver takes this id", &error)
                    .advise("1 to 256 visible characters, without a dot: msg_1")
            }
            _ => self.unusable(&error),
        })?;
        let signer = Signer::new(secret).scheme(self.scheme);
        Ok(match id {
            Some(id) => signer.event_id(id),
            None => signer,
        })
    }

    pub(crate) fn has_no(&self, what: &str, option: &str) -> Fault {
        let name = self.scheme.name();
        Fault::new(Class::Usage, format!("the scheme {name} has no {what}"))
            .advise(format!("leave out {option}"))
    }

    pub(crate) fn unusable(&self, error: &ConfigError) -> Fault {
        let name = self.scheme.name();
        let message = format!("this secret can't be used with the scheme {name}");
        Fault::caused_by(Class::Secret, &message, error)
            .advise("paste it whole, as the sender shows it")
    }
}

/// A secret that was configured, by its name, or the error why it is invalid.
pub(crate) type Given = (String, Result<Secret, ConfigError>);

impl SecretArgs {
    /// Every secret that variables and files give, as a receiver reads them, so without the
    /// published ones, with a name for each: the variable or the path. None where neither option is
    /// given and WEBHOOK_SECRET is not set.
    pub(crate) fn given(&self) -> Vec<Given> {
        let of_variable = |name: &str| {
            if self.any_secret {
                Secret::from_env_unprefixed(name)
            } else {
                Secret::from_env(name)
            }
        };
        let of_file = |path: &Path| {
            if self.any_secret {
                Secret::from_file_unprefixed(path)
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

    /// Every secret, with a name for each. Asks at the terminal where none is given. Published ones
    /// too: the command is used with receivers that are tried out.
    pub(crate) fn named(&self) -> Result<Vec<(String, Secret)>, Fault> {
        let given = self.given();
        if given.is_empty() {
            return Ok(vec![("typed".to_owned(), self.ask()?)]);
        }
        given
            .into_iter()
            .map(|(name, secret)| {
                let secret = secret.or_else(|error| published(&name, error));
                Ok((name, secret.map_err(|error| refused(&error))?))
            })
            .collect()
    }

    /// Every secret as it is configured, also an invalid one, with a name for each. Asks at the
    /// terminal where none is given.
    pub(crate) fn as_configured(&self) -> Result<Vec<Configured>, Fault> {
        let mut found = configured(&self.secret_env, &self.secret_file)?;
        if found.is_empty() {
            let name = DEFAULT_VARIABLE.to_owned();
            found.push(match std::env::var_os(&name) {
                Some(_) => (name.clone(), of_environment(&name)?),
                None => (
                    "typed".to_owned(),
                    Zeroizing::new(prompt()?.as_bytes().to_vec()),
                ),
            });
        }
        Ok(found)
    }

    /// One ring of all of them.
    pub(crate) fn ring(&self) -> Result<KeyRing, Fault> {
        self.ring_and_first().map(|(ring, _)| ring)
    }

    /// One ring of all of them, and the first of them; asked for once.
    pub(crate) fn ring_and_first(&self) -> Result<(KeyRing, Secret), Fault> {
        let unusable = |error: hookgate::ConfigError| {
            Fault::caused_by(
                Class::Secret,
                "these secrets can't be used as one ring",
                &error,
            )
            .advise("give each live secret once, four at most")
        };
        let named = self.named()?;
        let first = named.first().map(|(_, secret)| secret.clone());
        let ring = KeyRing::from_keys(named).map_err(unusable)?;
        Ok((ring, first.ok_or_else(none_given)?))
    }

    /// These options for a command to copy, after a blank; empty where none is given.
    pub(crate) fn options(&self) -> String {
        let quoted = |text: &str| {
            let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_./".contains(char);
            if text.chars().all(is_plain) {
                return text.to_owned();
            }
            format!("'{}'", text.replace('\'', r"'\''"))
        };
        let variables = self.secret_env.iter();
        let variables = variables.map(|name| format!(" --secret-env {}", quoted(name)));
        let files = self.secret_file.iter();
        let files =
            files.map(|path| format!(" --secret-file {}", quoted(&path.display().to_string())));
        let any = self.any_secret.then(|| " --any-secret".to_owned());
        variables.chain(files).chain(any).collect()
    }

    /// The first of the secrets, for commands that sign.
    pub(crate) fn first(&self) -> Result<Secret, Fault> {
        let first = self.named()?.into_iter().next();
        first.map(|(_, secret)| secret).ok_or_else(none_given)
    }

    fn ask(&self) -> Result<Secret, Fault> {
        let text = prompt()?;
        let secret = if self.any_secret {
            Secret::unprefixed(&text)
        } else {
            Secret::new(&text)
        };
        secret.map_err(|error| refused(&error))
    }
}

/// The secret of this variable or file, if it was refused only because it is published.
fn published(name: &str, error: ConfigError) -> Result<Secret, ConfigError> {
    if error.kind() != ConfigErrorKind::GuessableSecret {
        return Err(error);
    }
    let text = of_environment(name).or_else(|_| of_file(Path::new(name)));
    let text = text.ok().filter(|text| text.starts_with(b"whsec_made_up_"));
    let text = text
        .as_ref()
        .and_then(|text| std::str::from_utf8(text).ok());
    Secret::new(text.unwrap_or_default()).map_err(|_| error)
}

/// A secret's name, and its bytes, valid or not.
pub(crate) type Configured = (String, Zeroizing<Vec<u8>>);

/// The values of these variables and files, unchanged except for one line break at a file's end.
pub(crate) fn configured(
    variables: &[String],
    files: &[PathBuf],
) -> Result<Vec<Configured>, Fault> {
    let mut found = Vec::new();
    for variable in variables {
        found.push((variable.clone(), of_environment(variable)?));
    }
    for path in files {
        warn_if_others_can_read(path);
        found.push((path.display().to_string(), of_file(path)?));
    }
    Ok(found)
}

fn of_environment(name: &str) -> Result<Zeroizing<Vec<u8>>, Fault> {
    match std::env::var_os(name) {
        Some(text) => Ok(Zeroizing::new(text.into_encoded_bytes())),
        None => Err(
            Fault::new(Class::Secret, format!("the environment has no {name}"))
                .advise(advice(ConfigErrorKind::SecretUnset)),
        ),
    }
}

fn of_file(path: &Path) -> Result<Zeroizing<Vec<u8>>, Fault> {
    use std::io::Read as _;

    const LONGEST: usize = 64 << 10;
    // Full size from the start: a vector that grows leaves copies of the secret behind.
    let mut text = Zeroizing::new(Vec::with_capacity(LONGEST + 1));
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(LONGEST as u64 + 1).read_to_end(&mut text));
    let name = path.display().to_string();
    read.map_err(|error| unreadable(&name, &error))?;
    if text.len() > LONGEST {
        let long = io::Error::other(format!("it is longer than {LONGEST} bytes"));
        return Err(unreadable(&name, &long));
    }
    if text.last() == Some(&b'\n') {
        text.pop();
        if text.last() == Some(&b'\r') {
            text.pop();
        }
    }
    Ok(text)
}

/// The advice for an invalid secret.
pub(crate) fn advice(kind: ConfigErrorKind) -> String {
    match kind {
        ConfigErrorKind::SecretWithoutPrefix => {
            "if it is right, give --any-secret".into()
        }
        ConfigErrorKind::SecretUnset => {
            "set it without showing it to others: read -rs NAME; export NAME".into()
        }
        ConfigErrorKind::SecretUnreadable => {
            "check the path, and that you may read it; a secret's file has 4096 bytes at most".into()
        }
        ConfigErrorKind::SecretByteOrderMark => {
            "write the file again without it: printf %s \"$WEBHOOK_SECRET\" > FILE".into()
        }
        ConfigErrorKind::SecretApiKey => {
            "the subscription's secret is shown once, at its creation: developer settings, webhooks; if it is lost, make a new subscription".into()
        }
        ConfigErrorKind::GuessableSecret => {
            "it keeps no forger out: take the subscription's own, from its settings or from your store of secrets".into()
        }
        _ => "paste it again from the subscription's settings: whsec_ and what follows".into(),
    }
}

fn refused(error: &ConfigError) -> Fault {
    let what = match (error.kind(), error.source()) {
        (ConfigErrorKind::SecretUnreadable, Some(reason)) => {
            return unreadable(error.name().unwrap_or_default(), reason);
        }
        (ConfigErrorKind::SecretUnset, _) => "no secret is given",
        _ => "the secret can't be right",
    };
    Fault::new(Class::Secret, format!("{what}: {}", reason(error))).advise(advice(error.kind()))
}

/// The reason why a secret is refused. The library adds the function that takes another form; the
/// command has an option.
pub(crate) fn reason(error: &ConfigError) -> String {
    let reason = chain(error);
    let shown = reason.split(" (Secret::").next();
    shown.unwrap_or_default().to_owned()
}

fn unreadable(path: &str, error: &dyn Error) -> Fault {
    let message = format!("the secret in {path} can't be read");
    Fault::caused_by(Class::Input, &message, error)
        .advise(advice(ConfigErrorKind::SecretUnreadable))
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

/// Not where no user sits at a terminal: a script would wait for ever.
fn prompt() -> Result<Zeroizing<String>, Fault> {
    if !io::stdin().is_terminal() && !io::stderr().is_terminal() {
        return Err(none_given());
    }
    let asked = interrupt::defer_interrupt(|| {
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

    // A path without metadata can't be read either, and the read reports the error.
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

    /// Not a test of its own: the test below starts it at a terminal.
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

    /// The text on the terminal after these keys were typed, including the state in which the
    /// terminal was left.
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
        // The prompt appears before the terminal is set to hide the input.
        std::thread::sleep(std::time::Duration::from_secs(1));
        let mut keyboard = script.stdin.take()?;
        keyboard.write_all(keys.as_bytes()).ok()?;
        terminal.read_to_end(&mut seen).ok()?;
        script.wait().ok()?;
        Some(String::from_utf8_lossy(&seen).into_owned())
    }

    #[test]
    fn a_prompt_shows_nothing_and_restores_the_terminal_also_when_interrupted() {
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
