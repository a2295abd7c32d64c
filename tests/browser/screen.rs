//! A browser of its own for each test: with a private profile, ended by its process id, and watched for errors all the time.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chromiumoxide::browser::{Browser, BrowserConfig};
use chromiumoxide::cdp::browser_protocol::browser::{
    PermissionDescriptor, PermissionSetting, SetPermissionParams,
};
use chromiumoxide::cdp::browser_protocol::dom::SetFileInputFilesParams;
use chromiumoxide::cdp::browser_protocol::emulation::{
    MediaFeature, SetDeviceMetricsOverrideParams, SetEmulatedMediaParams,
};
use chromiumoxide::cdp::browser_protocol::input::{
    DispatchKeyEventParams, DispatchKeyEventType, InsertTextParams,
};
use chromiumoxide::cdp::browser_protocol::log::EventEntryAdded;
use chromiumoxide::cdp::browser_protocol::network::EventRequestWillBeSent;
use chromiumoxide::cdp::js_protocol::runtime::{
    ConsoleApiCalledType, EventConsoleApiCalled, EventExceptionThrown,
};
use chromiumoxide::layout::Point;
use chromiumoxide::page::ScreenshotParams;
use chromiumoxide::{Page, cdp};
use futures_util::StreamExt as _;
use serde_json::Value;

/// A generous limit, so that a busy machine fails no test.
const PATIENCE: Duration = Duration::from_secs(20);
const BETWEEN: Duration = Duration::from_millis(20);
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// A page in a browser.
pub(crate) struct Screen {
    browser: Browser,
    page: Page,
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

impl Screen {
    pub(crate) async fn open(url: &str) -> Option<Self> {
        static PROFILES: AtomicU32 = AtomicU32::new(0);
        let executable = chromium()?;
        let number = PROFILES.fetch_add(1, Ordering::Relaxed);
        let name = format!("hookgate-browser-{}-{number}", std::process::id());
        let profile = std::env::temp_dir().join(name);
        let mut config = BrowserConfig::builder()
            .chrome_executable(executable)
            .new_headless_mode()
            .user_data_dir(&profile)
            .window_size(1280, 900)
            .viewport(None)
            .launch_timeout(Duration::from_secs(60))
            .args(["disable-gpu", "disable-dev-shm-usage", "no-first-run"]);
        if is_root() {
            config = config.no_sandbox();
        }
        let (browser, mut handler) = Browser::launch(config.build().unwrap()).await.unwrap();
        tokio::spawn(async move { while handler.next().await.is_some() {} });
        let page = browser.new_page("about:blank").await.unwrap();
        let screen = Self {
            browser,
            page,
            profile,
            problems: Arc::default(),
        };
        screen.watch(url).await;
        screen.size(1280, 900).await;
        screen.page.goto(url).await.unwrap();
        Some(screen)
    }

    /// Notes each error of the console, each violation of the policy, and each request to another origin.
    async fn watch(&self, url: &str) {
        let origin: String = url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/") + "/";
        let mut requests = self
            .page
            .event_listener::<EventRequestWillBeSent>()
            .await
            .unwrap();
        let problems = Arc::clone(&self.problems);
        tokio::spawn(async move {
            while let Some(event) = requests.next().await {
                let url = &event.request.url;
                if !url.starts_with(&origin) && !url.starts_with("data:") {
                    note(&problems, format!("a request to {url}"));
                }
            }
        });
        let mut entries = self.page.event_listener::<EventEntryAdded>().await.unwrap();
        let problems = Arc::clone(&self.problems);
        tokio::spawn(async move {
            while let Some(event) = entries.next().await {
                let (text, url) = (&event.entry.text, &event.entry.url);
                note(
                    &problems,
                    format!("log: {text} {}", url.as_deref().unwrap_or_default()),
                );
            }
        });
        let mut calls = self
            .page
            .event_listener::<EventConsoleApiCalled>()
            .await
            .unwrap();
        let problems = Arc::clone(&self.problems);
        tokio::spawn(async move {
            while let Some(event) = calls.next().await {
                if matches!(
                    event.r#type,
                    ConsoleApiCalledType::Error | ConsoleApiCalledType::Warning
                ) {
                    note(&problems, format!("console: {:?}", event.args));
                }
            }
        });
        let mut thrown = self
            .page
            .event_listener::<EventExceptionThrown>()
            .await
            .unwrap();
        let problems = Arc::clone(&self.problems);
        tokio::spawn(async move {
            while let Some(event) = thrown.next().await {
                note(&problems, format!("thrown: {:?}", event.exception_details));
            }
        });
        self.page.enable_runtime().await.unwrap();
        self.page.enable_log().await.unwrap();
    }

    /// The value of a JavaScript expression, which may be a promise.
    pub(crate) async fn eval(&self, expression: &str) -> Value {
        let evaluated = self.page.evaluate_expression(expression).await;
        let evaluated = evaluated.unwrap_or_else(|error| panic!("{expression}: {error}"));
        evaluated.value().cloned().unwrap_or_default()
    }

    /// Waits until an expression is true.
    pub(crate) async fn until(&self, expression: &str) {
        let end = Instant::now() + PATIENCE;
        // Between two pages there is nothing to evaluate in.
        while self
            .page
            .evaluate_expression(expression)
            .await
            .ok()
            .and_then(|found| found.value().cloned())
            != Some(Value::Bool(true))
        {
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

    pub(crate) async fn until_there(&self, selector: &str) {
        self.until(&format!("document.querySelector({selector:?}) !== null"))
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
        let point = Point {
            x: middle[0],
            y: middle[1],
        };
        self.page.click(point).await.unwrap();
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
            other => panic!("no code for {other}"),
        };
        let key = if name == "Space" { " " } else { name };
        let mut down = DispatchKeyEventParams::builder()
            .key(key)
            .code(name)
            .modifiers(modifiers)
            .windows_virtual_key_code(code);
        let up = down
            .clone()
            .r#type(DispatchKeyEventType::KeyUp)
            .build()
            .unwrap();
        let text = match name {
            "Enter" => Some("\r"),
            "Space" => Some(" "),
            _ => None,
        };
        down = down.r#type(DispatchKeyEventType::RawKeyDown);
        if let Some(text) = text {
            down = down.r#type(DispatchKeyEventType::KeyDown).text(text);
        }
        self.page.execute(down.build().unwrap()).await.unwrap();
        self.page.execute(up).await.unwrap();
    }

    pub(crate) async fn keys(&self, names: &[&str]) {
        for name in names {
            self.key(name).await;
        }
    }

    /// Types at the place that has the focus.
    pub(crate) async fn write(&self, text: &str) {
        self.page
            .execute(InsertTextParams::new(text))
            .await
            .unwrap();
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
        let size = SetDeviceMetricsOverrideParams::new(width, height, 1.0, false);
        self.page.execute(size).await.unwrap();
    }

    pub(crate) async fn scheme(&self, scheme: &str) {
        let feature = MediaFeature::new("prefers-color-scheme", scheme);
        let media = SetEmulatedMediaParams::builder()
            .features(vec![feature])
            .build();
        self.page.execute(media).await.unwrap();
    }

    /// Allows the page to read the clipboard, for the test.
    pub(crate) async fn allow_clipboard(&self) {
        for name in ["clipboard-read", "clipboard-write"] {
            let kind = PermissionDescriptor::new(name);
            let allowed = SetPermissionParams::new(kind, PermissionSetting::Granted);
            self.browser.execute(allowed).await.unwrap();
        }
    }

    pub(crate) async fn choose_file(&self, selector: &str, file: &Path) {
        let element = self.page.find_element(selector).await.unwrap();
        let chosen = SetFileInputFilesParams::builder()
            .file(file.display().to_string())
            .backend_node_id(element.backend_node_id)
            .build()
            .unwrap();
        self.page.execute(chosen).await.unwrap();
    }

    pub(crate) async fn picture(&self) -> Vec<u8> {
        let params = ScreenshotParams::builder()
            .format(cdp::browser_protocol::page::CaptureScreenshotFormat::Png)
            .build();
        self.page.screenshot(params).await.unwrap()
    }

    /// The problems so far, which are taken out.
    pub(crate) fn problems(&self) -> Vec<String> {
        std::mem::take(&mut *self.problems.lock().unwrap())
    }

    /// Takes out the browser's own report of one answer with this status, which may come a moment later than the answer.
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
        let _ = self.browser.close().await;
        let ended = tokio::time::timeout(Duration::from_secs(10), self.browser.wait()).await;
        if ended.is_err() {
            let _ = self.browser.kill().await;
        }
        assert_eq!(self.problems(), Vec::<String>::new());
    }
}

impl Drop for Screen {
    /// Ends the browser of a test that failed, and removes its profile. Its helper processes write there a moment longer.
    fn drop(&mut self) {
        if let Some(child) = self.browser.get_mut_child() {
            let _ = child.as_mut_inner().start_kill();
        }
        for _ in 0..100 {
            let ended = !matches!(self.browser.try_wait(), Ok(None));
            let _ = std::fs::remove_dir_all(&self.profile);
            if ended && !self.profile.exists() {
                return;
            }
            std::thread::sleep(BETWEEN);
        }
    }
}

fn note(problems: &Mutex<Vec<String>>, problem: String) {
    problems.lock().unwrap().push(problem);
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
