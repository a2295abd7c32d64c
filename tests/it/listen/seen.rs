//! The interactive part, in a real pty.

use rustix::process::Signal;

use crate::process::{Reply, row_created, signed};
use crate::terminal::Terminal;

const SECRET: &str = "whsec_made_up_for_the_terminal";

/// A listener on a free port, in a terminal of 24 by 110.
fn listen(arguments: &[&str]) -> (Terminal, String) {
    let arguments = [&["listen", "--addr", "127.0.0.1:0"], arguments].concat();
    let mut terminal = Terminal::start(&arguments, &[("WEBHOOK_SECRET", SECRET)], (24, 110));
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
    // An Escape that other keys follow at once would be an Alt.
    terminal.press("\x1b");
    terminal.until("the text is gone", |terminal| {
        !terminal.text().contains("as curl")
    });

    // Again: signed anew, so it is authentic, and known.
    terminal.press("r");
    terminal.shows(&["delivered again", ": 200"]);
    terminal.press("\x1b");
    terminal.shows(&["4 came"]);

    terminal.press("q");
    assert_eq!(terminal.end().code(), Some(0));
    terminal.assert_whole();
}

#[test]
fn signals_and_ctrl_c_leave_the_terminal_whole() {
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
