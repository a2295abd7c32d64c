//! Tests of the parts that all commands share: help, completions, secrets, standard output, exit
//! codes. Each runs over real pipes.

mod codes;
mod https;
mod json;
#[cfg(unix)]
pub(crate) mod printable;
mod secrets;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A generous time limit, so that a busy machine fails no test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Also what the example `receiver` takes with `--try`.
pub(crate) const SECRET: &str = "whsec_made_up_for_local_tries";
/// Of another sender.
pub(crate) const OTHER: &str = "whsec_made_up_and_another";

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

/// The command with the words of this line, and the secret in its environment. Its output is piped.
/// In a word, `~` stands for a blank and `\n` for a line break.
pub(crate) fn typed(line: &str) -> Command {
    let words = line.split_whitespace();
    let words: Vec<_> = words
        .map(|word| word.replace('~', " ").replace("\\n", "\n"))
        .collect();
    let mut command = hookgate(&words.iter().map(String::as_str).collect::<Vec<_>>());
    command
        .env("WEBHOOK_SECRET", SECRET)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The result of a command. Its methods assert what a test expects, and their messages show all
/// that the command wrote.
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

    pub(crate) fn typed(line: &str) -> Self {
        Self::to_its_end(&mut typed(line))
    }

    pub(crate) fn to_its_end(command: &mut Command) -> Self {
        Self::with(command.output().unwrap())
    }

    /// The same of a child, after this input.
    pub(crate) fn fed(command: &mut Command, input: &[u8]) -> Self {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        Self::with(child.wait_with_output().unwrap())
    }

    pub(crate) fn with(output: Output) -> Self {
        let ran = Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        };
        assert!(!ran.stderr.contains("panicked"), "{ran:?}");
        ran
    }

    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// Standard output begins with this text.
    #[track_caller]
    pub(crate) fn begins(&self, text: &str) -> &Self {
        assert!(self.stdout.starts_with(text), "{text:?}: {self:?}");
        self
    }

    /// Standard output has each of these texts.
    #[track_caller]
    pub(crate) fn says(&self, texts: &[&str]) -> &Self {
        has(&self.stdout, texts);
        self
    }

    /// Standard error has each of these texts.
    #[track_caller]
    pub(crate) fn tells(&self, texts: &[&str]) -> &Self {
        has(&self.stderr, texts);
        self
    }

    /// Neither has one of these texts.
    #[track_caller]
    pub(crate) fn lacks(&self, texts: &[&str]) -> &Self {
        for text in texts {
            assert!(!self.stdout.contains(text), "{text:?}: {self:?}");
            assert!(!self.stderr.contains(text), "{text:?}: {self:?}");
        }
        self
    }

    /// Nothing stands on standard output.
    #[track_caller]
    pub(crate) fn prints_nothing(&self) -> &Self {
        assert_eq!(self.stdout, "", "{self:?}");
        self
    }

    /// Nothing stands on standard error.
    #[track_caller]
    pub(crate) fn warns_of_nothing(self) -> Self {
        assert_eq!(self.stderr, "", "{self:?}");
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).expect("one value")
    }

    /// The lines of standard output that are JSON each.
    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<Value> {
        let lines = self.stdout.lines();
        lines
            .map(|line| serde_json::from_str(line).expect("a line of JSON"))
            .collect()
    }

    /// The fault, as `--json` prints it, as text.
    #[track_caller]
    pub(crate) fn fault(&self) -> String {
        let fault: Value = serde_json::from_str(self.stderr.trim()).expect("a fault");
        for part in ["error", "advice"] {
            assert!(
                fault[part].as_str().is_some_and(|it| !it.is_empty()),
                "{fault}"
            );
        }
        format!(
            "{}\n{}",
            fault["error"].as_str().unwrap(),
            fault["advice"].as_str().unwrap()
        )
    }
}

/// The text has each of these texts.
#[track_caller]
pub(crate) fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

/// Waits until this is so.
#[track_caller]
pub(crate) fn until(mut so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < until, "it does not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A folder of a test's own, gone with it.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("hookgate-cli-{}-{number}", std::process::id());
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file, and returns its path.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A file of this test's own that others can't read, gone with it.
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
    let mut ended = None;
    until(|| {
        ended = child.try_wait().unwrap();
        ended.is_some()
    });
    ended.unwrap()
}

#[test]
fn help_lists_every_exit_code() {
    let help = Ran::of(&["--help"]).ends(0).warns_of_nothing();
    help.says(&[
        "  0 ", "  1 ", "  2 ", "  3 ", "  4 ", "  5 ", "  101 ", "  130 ",
    ]);
    let version = Ran::of(&["--version"]).ends(0);
    let expected = format!("hookgate {}", env!("CARGO_PKG_VERSION"));
    assert_eq!(version.stdout.trim(), expected);
}

#[test]
fn a_wrong_command_line_is_2_and_says_what_is_right() {
    for wrong in ["nothing", "completions", "completions nix", "--none", ""] {
        let ran = Ran::typed(wrong).ends(2);
        ran.prints_nothing();
        let is_told = ["Usage: hookgate", "--help"]
            .iter()
            .any(|way| ran.stderr.contains(way));
        assert!(is_told, "{wrong}: {ran:?}");
        if !wrong.is_empty() {
            Ran::typed(&format!("--json {wrong}")).ends(2).fault();
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
        let ran = Ran::of(&["completions", shell]).ends(0).warns_of_nothing();
        ran.says(&[sign, "completions"]);
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
    let mut command = Command::new(shell);
    command
        .arg(no_run)
        .stdin(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    child.stdin.take()?.write_all(script.as_bytes()).ok()?;
    Some(ends(&mut child).success())
}

/// All commands of this build, as `hookgate help` lists them.
fn commands() -> Vec<String> {
    let help = Ran::of(&["help"]).stdout;
    let (_, listed) = help.split_once("Usage: ").unwrap();
    let (listed, _) = listed.split_once("Options:").unwrap();
    let there = listed
        .lines()
        .filter(|line| !line.contains("Not in this build"));
    let names = there.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let names = names.filter(|name| !name.is_empty());
    let commands: Vec<_> = names.map(str::to_owned).collect();
    assert!(commands.contains(&"completions".to_owned()), "{help}");
    let of_postgres = cfg!(feature = "postgres");
    let of_sqlite = cfg!(feature = "sqlite");
    for (command, is_built) in [
        ("inbox", of_sqlite || of_postgres),
        ("reconcile", of_sqlite),
    ] {
        let is_there = commands.contains(&command.to_owned());
        assert_eq!(is_there, is_built, "{command}: {help}");
    }
    commands
}

#[test]
fn every_command_has_help() {
    for command in commands() {
        let ran = Ran::of(&[&command, "--help"]).ends(0).warns_of_nothing();
        ran.says(&["Usage: hookgate"]);
        assert_eq!(ran.stdout, Ran::of(&["help", &command]).stdout);
    }
}

/// Commands that print without a prompt.
fn printing() -> Vec<String> {
    let mut printing = ["--help", "--version", "completions bash"]
        .map(str::to_owned)
        .to_vec();
    printing.extend(commands().into_iter().map(|name| format!("{name} --help")));
    printing
}

/// The reader is gone before it begins: one that goes a moment later may have been written to.
#[cfg(unix)]
pub(crate) fn into_a_closed_pipe(command: &mut Command) -> Ran {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let child = command.stdout(writer).stderr(Stdio::piped()).spawn();
    Ran::with(child.unwrap().wait_with_output().unwrap())
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_is_neither_panic_nor_error() {
    for line in printing() {
        into_a_closed_pipe(&mut typed(&line))
            .ends(0)
            .warns_of_nothing();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_with_exit_code_3() {
    for line in printing() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        let ran = Ran::to_its_end(typed(&line).stdout(full.unwrap())).ends(3);
        ran.tells(&["No space left"]);
    }
}
