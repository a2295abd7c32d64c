//! The interactive part, in a real pty.

use std::path::Path;

use rustix::process::Signal;

use crate::process::{Reply, row_created, signed};
use crate::terminal::Terminal;

const SECRET: &str = "whsec_made_up_for_the_terminal";

/// A listener on a free port, in a terminal of 24 by 110.
fn listen(arguments: &[&str]) -> (Terminal, String) {
    listen_in(Path::new(env!("CARGO_TARGET_TMPDIR")), arguments)
}

fn listen_in(folder: &Path, arguments: &[&str]) -> (Terminal, String) {
    let arguments = [&["listen", "--addr", "127.0.0.1:0"], arguments].concat();
    let variables = [("WEBHOOK_SECRET", SECRET)];
    let mut terminal = Terminal::start_in(folder, &arguments, &variables, (24, 110));
    let text = terminal.shows(&["http://", "/webhooks", "Nothing has come yet"]);
    let address = text
        .split("http://")
        .nth(1)
        .unwrap()
        .split('/')
        .next()
        .unwrap();
    let address = address.to_owned();
    (terminal, address)
}

/// Presses Escape and waits until the text that it closes is gone: an Escape that another key follows at once would be an Alt.
fn escape(terminal: &mut Terminal, gone: &str) {
    terminal.press("\x1b");
    terminal.until(gone, |terminal| !terminal.text().contains(gone));
}

fn deliver(address: &str, secret: &str, body: &str) -> u16 {
    Reply::to(address, "POST", "/webhooks", &signed(secret, body, 0), body).status
}

#[test]
fn deliveries_are_shown_filtered_opened_copied_and_delivered_again() {
    let (mut terminal, address) = listen(&[]);
    assert!(terminal.screen().alternate_screen() && !terminal.is_cooked());
    assert_eq!(
        deliver(
            &address,
            SECRET,
            &row_created("evt_first", r#"{"Total":12.50}"#)
        ),
        204
    );
    assert_eq!(
        deliver(
            &address,
            "whsec_made_up_and_another",
            &row_created("evt_forged", "{}")
        ),
        401
    );
    assert_eq!(
        deliver(
            &address,
            SECRET,
            &row_created("evt_first", r#"{"Total":12.50}"#)
        ),
        200
    );
    terminal.shows(&[
        "✓ handled",
        "✗ not_authentic",
        "= replayed",
        "evt_forged",
        "3 came",
    ]);

    // Filter.
    terminal.press("/outcome:refused");
    terminal.until("one is left", |terminal| {
        let text = terminal.text();
        text.contains("1 shown") && !text.contains("evt_first")
    });
    terminal.press("\x1b");
    terminal.shows(&["evt_first", "evt_forged"]);

    // Open: the first of them, and its parts.
    terminal.press("g\r");
    terminal.shows(&[
        "#1 evt_first",
        "[Answer]",
        "204 handled",
        "signed by: WEBHOOK_SECRET",
    ]);
    terminal.press("\t");
    terminal.shows(&["[Head]", "POST /webhooks", "x-service-signature: sha256="]);
    terminal.press("\t");
    terminal.shows(&["[Body]", "\"Total\": 12.50", "indented"]);
    terminal.press("w");
    terminal.shows(&["\"properties\":{\"Total\":12.50}"]);
    terminal.press("\t");
    terminal.shows(&["[Event]", "data model: Orders (dm_1)", "Total: 12.50"]);

    // Copy: to the terminal's clipboard, and shown.
    terminal.press("c");
    terminal.shows(&["#1 as curl", "curl"]);
    let copied = terminal
        .heard()
        .clipboard
        .last()
        .expect("something was copied");
    let copied =
        base64::Engine::decode(&base64::engine::general_purpose::STANDARD, copied).unwrap();
    let copied = String::from_utf8(copied).unwrap();
    assert!(
        copied.contains("curl") && copied.contains(&address),
        "{copied}"
    );
    escape(&mut terminal, "as curl");

    // Again: signed again, so it is authentic, and known.
    terminal.press("r");
    terminal.shows(&["delivered again", ": 200"]);
    terminal.shows(&["4 came"]);
    escape(&mut terminal, "[Event]");

    terminal.press("q");
    assert_eq!(terminal.end().code(), Some(0));
    terminal.assert_whole();
}

#[test]
fn signals_and_ctrl_c_restore_the_terminal() {
    for (how, code) in [("INT", 130), ("TERM", 0), ("HUP", 0), ("\x03", 130)] {
        let (mut terminal, address) = listen(&[]);
        deliver(&address, SECRET, &row_created("evt_1", "{}"));
        terminal.shows(&["evt_1"]);
        match how {
            "INT" => terminal.signal(Signal::INT),
            "TERM" => terminal.signal(Signal::TERM),
            "HUP" => terminal.signal(Signal::HUP),
            key => terminal.press(key),
        }
        assert_eq!(terminal.end().code(), Some(code), "{how:?}");
        terminal.assert_whole();
    }
}

#[test]
fn a_screen_of_any_size_is_filled_and_nothing_breaks() {
    let (mut terminal, address) = listen(&[]);
    for number in 1..=30 {
        deliver(
            &address,
            SECRET,
            &row_created(&format!("evt_{number}"), "{}"),
        );
    }
    terminal.shows(&["evt_30", "30 came"]);
    for (rows, columns) in [(5, 40), (1, 1), (2, 7), (3, 200), (50, 20)] {
        terminal.resize(rows, columns);
        terminal.press("\r");
        terminal.press("\t?");
        terminal.press("qcq/x");
        terminal.press("\r");
    }
    terminal.resize(40, 140);
    terminal.until("it has the new size", |terminal| {
        let first = terminal.text();
        first.lines().count() >= 39 && first.contains("30 came")
    });
    terminal.press("\x03");
    assert_eq!(terminal.end().code(), Some(130));
    terminal.assert_whole();
}

#[test]
fn what_was_sent_can_not_act_on_the_screen() {
    let (mut terminal, address) = listen(&[]);
    // An id that clears the screen, sets the title and reaches for the clipboard; a body that does so too, unescaped.
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}]52;c;b3duZWQ=\u{7}";
    let escaped = evil
        .replace('\u{1b}', "\\u001b")
        .replace('\u{7}', "\\u0007");
    deliver(
        &address,
        SECRET,
        &row_created(&format!("evt_{escaped}"), "{}"),
    );
    let body = format!("no JSON {evil}\u{9b}31m");
    deliver(&address, "whsec_made_up_and_another", &body);
    terminal.shows(&["evt_\\u{1b}]0;", "2 came", "not_authentic"]);
    terminal.press("\r\t\t");
    terminal.shows(&[
        "[Body]",
        "no JSON \\u{1b}]0;owned\\u{7}\\u{1b}[2J",
        "\\u{9b}31m",
    ]);
    terminal.press("\t");
    terminal.shows(&["[Event]", "no event"]);
    assert_eq!(
        (terminal.heard().titles, terminal.heard().clipboard.len()),
        (0, 0)
    );
    // Bytes that are not text are shown as such; wide characters keep their columns.
    deliver(
        &address,
        SECRET,
        &row_created("東京東京東京東京東京東京", "{}"),
    );
    let mut headers = signed(SECRET, "x", 0);
    headers.push(("X-Wide", "東京".into()));
    Reply::to(
        &address,
        "POST",
        "/webhooks",
        &headers,
        "\u{1f9fe}\u{1f469}\u{200d}\u{1f4bb}",
    );
    escape(&mut terminal, "[Event]");
    terminal.shows(&["4 came", "東京東京東京東京東…"]);
    terminal.press("q");
    assert!(terminal.end().success());
    terminal.assert_whole();
}

/// As `ps` has it: `T` for one that is stopped.
#[cfg(target_os = "linux")]
fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(") ").next().unwrap().starts_with('T')
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_z_gives_the_terminal_back_for_a_while() {
    let (mut terminal, address) = listen(&[]);
    deliver(&address, SECRET, &row_created("evt_1", "{}"));
    terminal.shows(&["evt_1"]);
    for by_key in [true, false] {
        if by_key {
            terminal.press("\x1a");
        } else {
            terminal.signal(Signal::TSTP);
        }
        terminal.until("the screen is given back", |terminal| {
            !terminal.screen().alternate_screen()
        });
        let pid = terminal.pid();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !is_stopped(pid) {
            assert!(std::time::Instant::now() < until, "never stopped");
            std::thread::yield_now();
        }
        terminal.assert_whole();
        terminal.signal(Signal::CONT);
        terminal.until("it is back", |terminal| {
            terminal.screen().alternate_screen() && terminal.text().contains("evt_1")
        });
    }
    deliver(&address, SECRET, &row_created("evt_2", "{}"));
    terminal.shows(&["evt_2", "2 came"]);
    assert!(!terminal.is_cooked());
    terminal.press("q");
    assert!(terminal.end().success());
    terminal.assert_whole();
}

#[test]
fn what_is_pasted_is_text_and_no_commands() {
    let (mut terminal, address) = listen(&[]);
    deliver(&address, SECRET, &row_created("evt_1", "{}"));
    terminal.shows(&["evt_1"]);
    assert!(terminal.screen().bracketed_paste());
    terminal.press("\x1b[200~q\rq\x1b[201~/");
    terminal.press("\x1b[200~evt_q\rq\x1b[201~");
    terminal.shows(&["/evt_qq", "0 shown"]);
    terminal.press("\x03");
    assert_eq!(terminal.end().code(), Some(130));
}

#[test]
fn colours_are_left_out_where_the_environment_says_so() {
    for (variables, coloured) in [(&[("NO_COLOR", "1")][..], false), (&[], true)] {
        let variables = [&[("WEBHOOK_SECRET", SECRET)], variables].concat();
        let arguments = ["listen", "--addr", "127.0.0.1:0"];
        let mut terminal = Terminal::start(&arguments, &variables, (10, 100));
        let text = terminal.shows(&["Nothing has come yet"]);
        let address = text
            .split("http://")
            .nth(1)
            .unwrap()
            .split('/')
            .next()
            .unwrap();
        deliver(address, "whsec_made_up_and_another", "{}");
        terminal.shows(&["✗ not_authentic"]);
        let cells = (0..10).flat_map(|row| (0..100).map(move |column| (row, column)));
        let screen = terminal.screen();
        let is_coloured =
            |(row, column)| screen.cell(row, column).unwrap().fgcolor() != vt100::Color::Default;
        assert_eq!(cells.into_iter().any(is_coloured), coloured);
    }
}

#[test]
fn no_more_is_kept_than_was_asked_for() {
    let (mut terminal, address) = listen(&["--keep", "3"]);
    for number in 1..=5 {
        deliver(
            &address,
            SECRET,
            &row_created(&format!("evt_{number}"), "{}"),
        );
    }
    let text = terminal.shows(&["5 came, the oldest 2 let go", "evt_5"]);
    assert!(text.contains("evt_3") && !text.contains("evt_2"), "{text}");
}

#[test]
fn a_delivery_goes_again_to_where_it_is_passed_on() {
    let backend = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let to = format!("http://{}/hooks", backend.local_addr().unwrap());
    let (mut terminal, address) = listen(&["--forward", &to]);
    let answering = std::thread::spawn(move || {
        for answer in ["204 No Content", "418 I'm a teapot"] {
            let (mut stream, _) = backend.accept().unwrap();
            let mut head = [0; 65_536];
            let mut read = 0;
            // The body's end is the request's.
            while !head[..read].ends_with(b"}}") {
                read += std::io::Read::read(&mut stream, &mut head[read..]).unwrap();
            }
            let answer =
                format!("HTTP/1.1 {answer}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
            std::io::Write::write_all(&mut stream, answer.as_bytes()).unwrap();
        }
    });
    assert_eq!(deliver(&address, SECRET, &row_created("evt_1", "{}")), 204);
    terminal.shows(&["evt_1", &format!("→ {to}")]);
    terminal.press("R");
    terminal.shows(&["#1 delivered again to", ": 418"]);
    answering.join().unwrap();
    terminal.press("R");
    terminal.shows(&["#1 not delivered again", "can't be reached"]);
    terminal.press("q");
    assert!(terminal.end().success());
}

#[test]
fn a_curl_command_is_saved_for_its_owner_alone() {
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("listen-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (mut terminal, address) = listen_in(&folder, &[]);
    deliver(&address, SECRET, &row_created("evt_1", "{}"));
    terminal.shows(&["evt_1"]);
    terminal.press("c");
    terminal.shows(&["#1 as curl"]);
    terminal.press("s");
    terminal.shows(&["saved to delivery-1.sh"]);
    let path = folder.join("delivery-1.sh");
    let saved = std::fs::read_to_string(&path).unwrap();
    assert!(
        saved.starts_with("curl ") && saved.ends_with('\n'),
        "{saved}"
    );
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    terminal.press("s");
    terminal.shows(&["not saved"]);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_was_refused_is_explained() {
    let (mut terminal, address) = listen(&[]);
    // A trailing newline is part of the signed bytes, and got lost on the way.
    let body = row_created("evt_1", "{}");
    let headers = signed(SECRET, &format!("{body}\n"), 0);
    assert_eq!(
        Reply::to(&address, "POST", "/webhooks", &headers, &body).status,
        401
    );
    terminal.shows(&["✗ not_authentic"]);
    terminal.press("e");
    terminal.shows(&[
        "#1 explained",
        "one mistake: with it repaired",
        "WEBHOOK_SECRET",
    ]);
    let right = signed(SECRET, &body, 0)[2].1.clone();
    assert!(
        !terminal
            .text()
            .contains(right.trim_start_matches("sha256="))
    );
    escape(&mut terminal, "explained");
    terminal.press("q");
    assert!(terminal.end().success());
}
