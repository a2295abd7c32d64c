//! A browser of its own for each test: with a private profile, ended by its process id, and watched
//! for errors all the time.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::process::Command;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::devtools::DevTools;

/// A generous limit, so that a busy machine fails no test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
const BETWEEN: Duration = Duration::from_millis(20);
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// A page in a browser.
pub(crate) struct Screen {
    browser: DevTools,
    profile: PathBuf,
    problems: Arc<Mutex<Vec<String>>>,
}

/// The browser, where the machine has one.
pub(crate) fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = std::env::split_paths(&path).collect();
    let files = NAMES
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let found = files.into_iter().find(|file| file.is_file());
    if found.is_none() {
        assert!(
            std::env::var_os("HOOKGATE_REQUIRE_TOOLS").is_none(),
            "chromium is missing: scripts/test installs it"
        );
        println!("left out, for want of chromium");
    }
    found
}

/// Opens an address in a browser, or leaves the test out where there is none.
macro_rules! open {
    ($url:expr) => {
        match crate::screen::Screen::open($url).await {
            Some(screen) => screen,
            None => return,
        }
    };
}

/// The listener with these options, or leaves the test out where there is no browser.
macro_rules! listening {
    ($($option:expr),*) => {{
        if crate::screen::chromium().is_none() {
            return;
        }
        crate::listen::Listening::with(&[$($option),*])
    }};
}

/// Steps at a page, each a method of [`Screen`] without its `.await`. A line is what is done and
/// what is seen then.
macro_rules! steps {
    ($screen:ident; $($step:ident($($argument:expr),*);)*) => { $($screen.$step($($argument),*).await;)* };
}

impl Screen {
    pub(crate) async fn open(url: &str) -> Option<Self> {
        static PROFILES: AtomicU32 = AtomicU32::new(0);
        let executable = chromium()?;
        let number = PROFILES.fetch_add(1, Ordering::Relaxed);
        let name = format!("hookgate-browser-{}-{number}", std::process::id());
        let profile = std::env::temp_dir().join(name);
        let mut command = Command::new(executable);
        command
            .arg(format!("--user-data-dir={}", profile.display()))
            // As on a phone: a narrow page has its whole width.
            .arg("--hide-scrollbars")
            .args(["--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
            .arg("--window-size=1280,900");
        if is_root() {
            command.arg("--no-sandbox");
        }
        let problems: Arc<Mutex<Vec<String>>> = Arc::default();
        let noted = Arc::clone(&problems);
        let origin: String = url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/") + "/";
        let browser = DevTools::launch(command, move |event, params| {
            if let Some(problem) = problem(event, params, &origin) {
                noted.lock().unwrap().push(problem);
            }
        });
        let screen = Self {
            browser: browser.await,
            profile,
            problems,
        };
        for domain in ["Page", "Network", "Runtime", "Log"] {
            screen.ask(&format!("{domain}.enable"), json!({})).await;
        }
        screen.size(1280, 900).await;
        screen.ask("Page.navigate", json!({"url": url})).await;
        let loaded = "document.readyState === 'complete' && location.href !== 'about:blank'";
        screen
            .until(&format!("{loaded} || {url:?} === 'about:blank'"))
            .await;
        Some(screen)
    }

    /// Sends a command that must succeed.
    async fn ask(&self, method: &str, params: Value) -> Value {
        let answer = self.browser.ask(method, params).await;
        answer.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// The value of a JavaScript expression, which may be a promise.
    pub(crate) async fn eval(&self, expression: &str) -> Value {
        let evaluated = self.browser.evaluate(expression).await;
        evaluated.unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    /// Waits until an expression is true.
    pub(crate) async fn until(&self, expression: &str) {
        let end = Instant::now() + PATIENCE;
        // Between two pages there is nothing to evaluate in.
        while self.browser.evaluate(expression).await != Ok(Value::Bool(true)) {
            if Instant::now() > end {
                let text = self.eval("document.body.innerText").await;
                let problems = self.problems.lock().unwrap().clone();
                panic!(
                    "not so: {expression}\nproblems: {problems:?}\n{}",
                    text.as_str().unwrap_or_default()
                );
            }
            tokio::time::sleep(BETWEEN).await;
        }
    }

    /// The value of an expression is this.
    pub(crate) async fn is(&self, expression: &str, expected: impl Into<Value>) {
        assert_eq!(self.eval(expression).await, expected.into(), "{expression}");
    }

    /// The texts of the elements are these.
    pub(crate) async fn are(&self, selector: &str, expected: &[&str]) {
        assert_eq!(self.texts(selector).await, expected, "{selector}");
    }

    /// A property of an element, as JavaScript has it.
    pub(crate) async fn property(&self, selector: &str, property: &str) -> Value {
        self.eval(&format!("document.querySelector({selector:?}).{property}"))
            .await
    }

    /// The id of the delivery that is open.
    pub(crate) async fn opened(&self) -> String {
        let id = self.property(".detail", "dataset.delivery").await;
        id.as_str().unwrap().to_owned()
    }

    /// The text of the clipboard.
    pub(crate) async fn copied(&self) -> String {
        let text = self.eval("navigator.clipboard.readText()").await;
        text.as_str().unwrap().to_owned()
    }

    pub(crate) async fn until_there(&self, selector: &str) {
        let there = format!("document.querySelector({selector:?}) !== null");
        self.until(&there).await;
    }

    pub(crate) async fn until_gone(&self, selector: &str) {
        let gone = format!("document.querySelector({selector:?}) === null");
        self.until(&gone).await;
    }

    pub(crate) async fn until_hidden(&self, selector: &str) {
        let hidden = format!("document.querySelector({selector:?}).hidden");
        self.until(&hidden).await;
    }

    /// Waits until there are so many elements.
    pub(crate) async fn until_count(&self, selector: &str, count: usize) {
        let counted = format!("document.querySelectorAll({selector:?}).length === {count}");
        self.until(&counted).await;
    }

    /// Goes to a section of the emulator's page.
    pub(crate) async fn go(&self, section: &str) {
        self.eval(&format!("location.hash = '{section}'")).await;
        let current = "document.querySelector('[aria-current=page]').hash";
        self.until(&format!("{current} === '#{section}'")).await;
        self.until("document.querySelector('main').innerText.length > 100")
            .await;
    }

    /// Waits until an element has this text in it.
    pub(crate) async fn until_text(&self, selector: &str, text: &str) {
        self.until(&format!(
            "document.querySelector({selector:?})?.innerText.includes({text:?}) === true"
        ))
        .await;
    }

    /// The texts of the elements.
    pub(crate) async fn texts(&self, selector: &str) -> Vec<String> {
        let texts =
            format!("[...document.querySelectorAll({selector:?})].map((one) => one.textContent)");
        serde_json::from_value(self.eval(&texts).await).unwrap()
    }

    /// Clicks in the middle of an element with the mouse.
    pub(crate) async fn click(&self, selector: &str) {
        self.click_at(&format!("document.querySelector({selector:?})"), selector)
            .await;
    }

    /// Clicks the button, link or label with this text or label, in an element.
    pub(crate) async fn press(&self, within: &str, name: &str) {
        let found = format!(
            "[...document.querySelectorAll({within:?})].flatMap((one) => [...one.querySelectorAll('button, a, label, summary')])\
             .find((one) => one.textContent.trim() === {name:?} || one.getAttribute('aria-label') === {name:?})"
        );
        self.click_at(&found, name).await;
    }

    async fn click_at(&self, element: &str, name: &str) {
        self.until(&format!("Boolean({element})")).await;
        let middle = format!(
            "(() => {{ const one = {element}; one.scrollIntoView({{ block: 'center', inline: 'center' }}); \
             const box = one.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        );
        let middle: [f64; 2] = serde_json::from_value(self.eval(&middle).await).expect(name);
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            let button = if kind == "mouseMoved" { "none" } else { "left" };
            let clicks = u8::from(kind != "mouseMoved");
            let params = json!({"type": kind, "x": middle[0], "y": middle[1], "button": button, "clickCount": clicks});
            self.ask("Input.dispatchMouseEvent", params).await;
        }
    }

    /// Loads the page again, and returns when the new one is there: until then an expression is
    /// evaluated in the old page, and a key that is pressed goes to it.
    pub(crate) async fn reload(&self) {
        self.eval("window.isOldPage = true").await;
        self.ask("Page.reload", json!({})).await;
        self.until("window.isOldPage === undefined && document.readyState === 'complete'")
            .await;
    }

    /// Presses a key, such as `Enter`; `Shift+Tab` with the shift key.
    pub(crate) async fn key(&self, name: &str) {
        let (modifiers, name) = match name.strip_prefix("Shift+") {
            Some(name) => (8, name),
            None => (0, name),
        };
        let code = match name {
            "Enter" => 13,
            "Escape" => 27,
            "Tab" => 9,
            "Home" => 36,
            "End" => 35,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            "Space" => 32,
            "F2" => 113,
            sign if sign.len() == 1 => i64::from(sign.as_bytes()[0].to_ascii_uppercase()),
            other => panic!("no code for {other}"),
        };
        let key = if name == "Space" { " " } else { name };
        let text = match name {
            "Enter" => Some("\r"),
            "Space" => Some(" "),
            sign if sign.len() == 1 => Some(sign),
            _ => None,
        };
        let mut event = json!({
            "type": if text.is_some() { "keyDown" } else { "rawKeyDown" },
            "key": key, "code": name, "modifiers": modifiers, "windowsVirtualKeyCode": code,
        });
        if let Some(text) = text {
            event["text"] = text.into();
        }
        self.ask("Input.dispatchKeyEvent", event.clone()).await;
        event["type"] = "keyUp".into();
        if let Some(fields) = event.as_object_mut() {
            fields.remove("text");
        }
        self.ask("Input.dispatchKeyEvent", event).await;
    }

    pub(crate) async fn keys(&self, names: &[&str]) {
        for name in names {
            self.key(name).await;
        }
    }

    /// Types at the place that has the focus.
    pub(crate) async fn write(&self, text: &str) {
        self.ask("Input.insertText", json!({"text": text})).await;
    }

    /// Replaces the text of a field that has this label.
    pub(crate) async fn fill(&self, label: &str, text: &str) {
        let field = format!(
            "((name) => [...document.querySelectorAll('input, textarea, select')].reverse().find((one) => \
             one.getAttribute('aria-label') === name || [...one.labels ?? []].some((label) => label.textContent.trim() === name)))({label:?})"
        );
        self.until(&format!("Boolean({field})")).await;
        let is_choice = self.eval(&format!("{field}.tagName === 'SELECT'")).await;
        if is_choice == Value::Bool(true) {
            let chosen = format!(
                "(() => {{ const one = {field}; one.value = {text:?}; one.dispatchEvent(new Event('change', {{ bubbles: true }})); return one.value; }})()"
            );
            assert_eq!(self.eval(&chosen).await, text, "{label}");
            return;
        }
        self.eval(&format!(
            "(() => {{ const one = {field}; one.focus(); one.select(); }})()"
        ))
        .await;
        self.write(text).await;
    }

    pub(crate) async fn size(&self, width: i64, height: i64) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.ask("Emulation.setDeviceMetricsOverride", size).await;
    }

    pub(crate) async fn scheme(&self, scheme: &str) {
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.ask("Emulation.setEmulatedMedia", media).await;
    }

    /// Allows the page to read the clipboard, for the test.
    pub(crate) async fn allow_clipboard(&self) {
        for name in ["clipboard-read", "clipboard-write"] {
            let allowed = json!({"permission": {"name": name}, "setting": "granted"});
            let allowed = self.browser.ask_browser("Browser.setPermission", allowed);
            allowed.await.unwrap();
        }
    }

    pub(crate) async fn choose_file(&self, selector: &str, file: &Path) {
        let document = self.ask("DOM.getDocument", json!({})).await;
        let of = json!({"nodeId": document["root"]["nodeId"], "selector": selector});
        let found = self.ask("DOM.querySelector", of).await;
        let chosen = json!({"nodeId": found["nodeId"], "files": [file]});
        self.ask("DOM.setFileInputFiles", chosen).await;
    }

    pub(crate) async fn picture(&self) -> Vec<u8> {
        let taken = self
            .ask("Page.captureScreenshot", json!({"format": "png"}))
            .await;
        BASE64_STANDARD
            .decode(taken["data"].as_str().unwrap())
            .unwrap()
    }

    /// Takes out what the browser itself reports of requests that found no server.
    pub(crate) fn forget_lost(&self) {
        let mut problems = self.problems.lock().unwrap();
        problems.retain(|problem| !problem.contains("ERR_"));
    }

    /// Takes out the browser's own report of one answer with this status, which may come a moment
    /// later than the answer.
    pub(crate) async fn was_refused(&self, status: u16) {
        let report = format!("responded with a status of {status}");
        let end = Instant::now() + PATIENCE;
        loop {
            if self.take_problem(&report) {
                return;
            }
            assert!(Instant::now() < end, "{report}");
            tokio::time::sleep(BETWEEN).await;
        }
    }

    /// Takes a problem with this text out. Returns whether there was one.
    fn take_problem(&self, text: &str) -> bool {
        let mut problems = self.problems.lock().unwrap();
        let at = problems.iter().position(|problem| problem.contains(text));
        at.map(|at| problems.remove(at)).is_some()
    }

    /// Ends the browser. There was no problem.
    pub(crate) async fn end(mut self) {
        let _ = self.browser.ask_browser("Browser.close", json!({})).await;
        let end = Instant::now() + PATIENCE;
        while matches!(self.browser.child.try_wait(), Ok(None)) && Instant::now() < end {
            tokio::time::sleep(BETWEEN).await;
        }
        assert_eq!(*self.problems.lock().unwrap(), Vec::<String>::new());
    }
}

impl Drop for Screen {
    /// Ends the browser of a test that failed, and removes its profile. Its helper processes write
    /// there a moment longer.
    fn drop(&mut self) {
        let _ = self.browser.child.start_kill();
        for _ in 0..100 {
            let runs = matches!(self.browser.child.try_wait(), Ok(None));
            let _ = std::fs::remove_dir_all(&self.profile);
            if !runs && !self.profile.exists() {
                return;
            }
            std::thread::sleep(BETWEEN);
        }
    }
}

/// An error or warning of the console, a violation of the policy, or a request to another origin.
fn problem(event: &str, params: &Value, origin: &str) -> Option<String> {
    match event {
        "Network.requestWillBeSent" => {
            let url = params["request"]["url"].as_str().unwrap_or_default();
            let is_own = url.starts_with(origin) || url.starts_with("data:");
            (!is_own).then(|| format!("a request to {url}"))
        }
        "Log.entryAdded" => {
            let entry = &params["entry"];
            let text = |name: &str| entry[name].as_str().unwrap_or_default();
            Some(format!("log: {} {}", text("text"), text("url")))
        }
        "Runtime.consoleAPICalled" => {
            let is_problem = params["type"] == "error" || params["type"] == "warning";
            is_problem.then(|| format!("console: {}", params["args"]))
        }
        "Runtime.exceptionThrown" => Some(format!("thrown: {}", params["exceptionDetails"])),
        _ => None,
    }
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    ids.and_then(|ids| ids.split_whitespace().nth(1)) == Some("0")
}

/// The first line that a process prints. What it prints later is read and dropped.
pub(crate) fn first_line(output: std::process::ChildStdout) -> String {
    use std::io::{BufRead as _, BufReader};
    let mut lines = BufReader::new(output).lines();
    let first = lines.next().expect("a line").expect("text");
    std::thread::spawn(move || lines.for_each(drop));
    first
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_that_fails_leaves_no_profile() {
    let screen = open!("about:blank");
    let profile = screen.profile.clone();
    assert!(profile.is_dir());
    // As a panic drops it.
    drop(screen);
    assert!(!profile.exists());
}
