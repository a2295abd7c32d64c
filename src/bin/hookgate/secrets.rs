//! Secrets: from the environment, a file or a prompt; never from an argument, which the list of processes shows.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use hookgate::{KeyRing, Secret, SecretError, SecretErrorKind};

use crate::fault::{Class, Fault};

const DEFAULT_VARIABLE: &str = "WEBHOOK_SECRET";

/// Where the subscription's secret comes from. Asked for at the terminal where neither option is given and WEBHOOK_SECRET is not set.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct SecretArgs {
    /// Read the secret from this environment variable. May be given up to four times, for a ring of keys.
    #[arg(long, value_name = "VARIABLE", help_heading = "Secret")]
    secret_env: Vec<String>,
    /// Read the secret from this file, whose line break at the end is not part of it. May be given up to four times.
    #[arg(long, value_name = "PATH", help_heading = "Secret")]
    secret_file: Vec<PathBuf>,
    /// Take a secret that does not begin with `whsec_`.
    #[arg(long, help_heading = "Secret")]
    any_secret: bool,
}

impl SecretArgs {
    /// Every secret that is given, with a name for each: the variable or the path.
    pub(crate) fn named(&self) -> Result<Vec<(String, Secret)>, Fault> {
        let mut found = Vec::new();
        for variable in &self.secret_env {
            let text = std::env::var(variable).map_err(|_| {
                Fault::new(Class::Secret, format!("the environment has no {variable}"))
                    .advise(format!("set it without showing it to others: read -rs {variable}; export {variable}"))
            })?;
            found.push((variable.clone(), self.parse(&text, variable)?));
        }
        for path in &self.secret_file {
            let origin = path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(|error| {
                Fault::caused_by(Class::Secret, &format!("{origin} can't be read"), &error)
            })?;
            let line = text.strip_suffix('\n').unwrap_or(&text);
            let line = line.strip_suffix('\r').unwrap_or(line);
            found.push((origin.clone(), self.parse(line, &origin)?));
        }
        if found.is_empty() {
            let text = match std::env::var(DEFAULT_VARIABLE) {
                Ok(text) => text,
                Err(_) => prompt()?,
            };
            found.push((
                DEFAULT_VARIABLE.to_owned(),
                self.parse(&text, DEFAULT_VARIABLE)?,
            ));
        }
        Ok(found)
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
        ring.ok_or_else(|| Fault::new(Class::Secret, "no secret is given"))
    }

    /// The first of them, for what signs.
    pub(crate) fn first(&self) -> Result<Secret, Fault> {
        let first = self.named()?.into_iter().next();
        first
            .map(|(_, secret)| secret)
            .ok_or_else(|| Fault::new(Class::Secret, "no secret is given"))
    }

    fn parse(&self, text: &str, origin: &str) -> Result<Secret, Fault> {
        let parsed = if self.any_secret {
            Secret::of_other_form(text)
        } else {
            Secret::new(text)
        };
        parsed.map_err(|error| refused(&error, origin))
    }
}

fn refused(error: &SecretError, origin: &str) -> Fault {
    let fault = Fault::caused_by(
        Class::Secret,
        &format!("the secret of {origin} can't be right"),
        error,
    );
    match error.kind() {
        SecretErrorKind::WithoutPrefix => {
            fault.advise("if it is right all the same, say so: --any-secret")
        }
        _ => {
            fault.advise("paste it again from the subscription's settings: whsec_ and what follows")
        }
    }
}

fn prompt() -> Result<String, Fault> {
    let advice = format!("set {DEFAULT_VARIABLE}, or use --secret-env or --secret-file");
    if !io::stdin().is_terminal() {
        return Err(Fault::new(
            Class::Secret,
            "no secret is given, and there is no terminal to ask at",
        )
        .advise(advice));
    }
    rpassword::prompt_password("secret of the subscription (not shown): ").map_err(|error| {
        Fault::caused_by(Class::Secret, "the secret can't be read", &error).advise(advice)
    })
}
