//! Tests of the parts that all commands share: help, completions, secrets, standard output, exit codes. Each runs over real
//! pipes.

mod codes;
mod https;
mod json;
#[cfg(unix)]
mod printable;
mod secrets;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// A generous time limit, so that a busy machine fails no test.
const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const SECRET: &str = "whsec_made_up_for_the_command";

/// The built command, with these arguments and an environment without secrets.
pub(crate) fn hookgate(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hookgate"));
    command.args(arguments).stdin(Stdio::null());
    for inherited in [
        "WEBHOOK_SECRET",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "RUST_BACKTRACE",
    ] {
        command.env_remove(inherited);
    }
    command
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(arguments: &[&str]) -> Self {
        Self::to_its_end(&mut hookgate(arguments))
    }

    pub(crate) fn to_its_end(command: &mut Command) -> Self {
        let Output {
            status,
            stdout,
            stderr,
        } = command.output().unwrap();
        let ran = Self {
            code: status.code(),
            stdout: String::from_utf8(stdout).unwrap(),
            stderr: String::from_utf8(stderr).unwrap(),
        };
        assert!(!ran.stderr.contains("panicked"), "{ran:?}");
        ran
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).expect("one value")
    }

    /// The fault, as `--json` prints it.
    pub(crate) fn fault(&self) -> serde_json::Value {
        let fault: serde_json::Value = serde_json::from_str(self.stderr.trim()).expect("a fault");
        for part in ["error", "advice"] {
            assert!(
                fault[part].as_str().is_some_and(|it| !it.is_empty()),
                "{fault}"
            );
        }
        fault
    }
}

/// A file of this test's own, gone with it.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn file(name: &str, content: &[u8]) -> Self {
        let name = format!("hookgate-cli-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, content).unwrap();
        #[cfg(unix)]
        Self::mode(&path, 0o600);
        Self(path)
    }

    #[cfg(unix)]
    fn mode(path: &std::path::Path, mode: u32) {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

pub(crate) fn ends(child: &mut Child) -> ExitStatus {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > until {
            child.kill().unwrap();
            panic!("the command does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn help_lists_every_exit_code() {
    let help = Ran::of(&["--help"]);
    assert_eq!((help.code, &*help.stderr), (Some(0), ""));
    for code in [
        "  0 ", "  1 ", "  2 ", "  3 ", "  4 ", "  5 ", "  101 ", "  130 ",
    ] {
        assert!(help.stdout.contains(code), "{code}: {}", help.stdout);
    }
    let version = Ran::of(&["--version"]);
    assert_eq!(
        version.stdout.trim(),
        format!("hookgate {}", env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(version.code, Some(0));
}

#[test]
fn a_wrong_command_line_is_2_and_says_what_is_right() {
    for wrong in [
        &["nothing"][..],
        &["completions"],
        &["completions", "nix"],
        &["--none"],
        &[],
    ] {
        let ran = Ran::of(wrong);
        assert_eq!((ran.code, &*ran.stdout), (Some(2), ""), "{ran:?}");
        assert!(
            ran.stderr.contains("Usage: hookgate") || ran.stderr.contains("--help"),
            "{ran:?}"
        );
        if !wrong.is_empty() {
            let ran = Ran::of(&[&["--json"], wrong].concat());
            assert_eq!(ran.code, Some(2));
            ran.fault();
        }
    }
}

#[test]
fn completions_name_every_command_and_load() {
    for (shell, sign) in [
        ("bash", "complete -F _hookgate"),
        ("zsh", "#compdef hookgate"),
        ("fish", "complete -c hookgate"),
        ("powershell", "Register-ArgumentCompleter"),
        ("elvish", "edit:completion"),
    ] {
        let ran = Ran::of(&["completions", shell]);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{shell}");
        assert!(ran.stdout.contains(sign), "{shell}");
        assert!(ran.stdout.contains("completions"), "{shell}");
        if let Some(loads) = shell_reads(shell, &ran.stdout) {
            assert!(loads, "{shell} can't read its completions");
        }
    }
    // A shell that exists prints its version.
    if shell_reads("bash", "true").is_some() {
        assert_eq!(shell_reads("bash", "if then ("), Some(false));
    }
}

/// Whether the shell finds the script well-formed; `None` where there is no such shell.
fn shell_reads(shell: &str, script: &str) -> Option<bool> {
    let no_run = match shell {
        "bash" | "zsh" => "-n",
        "fish" => "--no-execute",
        _ => return None,
    };
    let mut child = Command::new(shell)
        .arg(no_run)
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    child.stdin.take()?.write_all(script.as_bytes()).ok()?;
    Some(ends(&mut child).success())
}

/// All commands, as `hookgate help` lists them.
fn commands() -> Vec<String> {
    let help = Ran::of(&["help"]).stdout;
    let (_, listed) = help.split_once("Usage: ").unwrap();
    let (listed, _) = listed.split_once("Options:").unwrap();
    let commands: Vec<_> = listed
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    assert!(commands.contains(&"completions".to_owned()), "{help}");
    commands
}

#[test]
fn every_command_has_help() {
    for command in commands() {
        let ran = Ran::of(&[&command, "--help"]);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{command}");
        assert!(ran.stdout.contains("Usage: hookgate"), "{command}");
        assert_eq!(ran.stdout, Ran::of(&["help", &command]).stdout);
    }
}

/// Commands that print without a prompt.
fn printing() -> Vec<Vec<String>> {
    let mut printing = vec![
        vec!["--help".into()],
        vec!["--version".into()],
        vec!["completions".into(), "bash".into()],
    ];
    printing.extend(
        commands()
            .into_iter()
            .map(|name| vec![name, "--help".into()]),
    );
    printing
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_is_neither_panic_nor_error() {
    for arguments in printing() {
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = hookgate(&arguments);
        let child = command.stdout(writer).stderr(Stdio::piped()).spawn();
        let ran = child.unwrap().wait_with_output().unwrap();
        assert_eq!(ran.status.code(), Some(0), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.is_empty(), "{ran:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_with_exit_code_3() {
    let full = || {
        std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap()
    };
    for arguments in printing() {
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let ran = Ran::to_its_end(hookgate(&arguments).stdout(full()));
        assert_eq!(ran.code, Some(3), "{arguments:?}");
        assert!(ran.stderr.contains("No space left"), "{ran:?}");
    }
}
