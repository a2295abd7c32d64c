//! What a person sees: lines on a terminal, in a real pty.

use rustix::process::Signal;

use crate::cli::{OTHER, SECRET};
use crate::process::{Reply, row_created, signed};
use crate::terminal::Terminal;

/// A listener on a free port, in a terminal of 24 by 160.
fn listen(variables: &[(&str, &str)]) -> (Terminal, String) {
    let variables = [&[("WEBHOOK_SECRET", SECRET)], variables].concat();
    let arguments = ["listen", "--addr", "127.0.0.1:0"];
    let mut terminal = Terminal::start(&arguments, &variables, (24, 160));
    let text = terminal.shows(&["listening on http://", "/webhooks"]);
    let address = text.split("http://").nth(1).unwrap();
    let address = address.split('/').next().unwrap().to_owned();
    (terminal, address)
}

fn deliver(address: &str, secret: &str, body: &str) -> u16 {
    Reply::to(address, "POST", "/webhooks", &signed(secret, body, 0), body).status
}

#[test]
fn signals_and_ctrl_c_end_it_with_their_codes() {
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
fn what_was_sent_can_not_act_on_the_screen() {
    let (mut terminal, address) = listen(&[]);
    // An id that clears the screen, sets the title and reaches for the clipboard.
    let escaped = "\\u001b]0;owned\\u0007\\u001b[2J\\u001b]52;c;b3duZWQ=\\u0007";
    let body = row_created(&format!("evt_{escaped}"), "{}");
    deliver(&address, OTHER, &body);
    deliver(&address, SECRET, &row_created("evt_last", "{}"));
    terminal.shows(&["evt_\\u{1b}]0;", "not_authentic", "evt_last"]);
    let heard = terminal.heard();
    assert_eq!((heard.titles, heard.clipboard.len()), (0, 0));
}

#[test]
fn colours_are_left_out_where_the_environment_says_so() {
    for (variables, coloured) in [(&[("NO_COLOR", "1")][..], false), (&[], true)] {
        let (mut terminal, address) = listen(variables);
        deliver(&address, OTHER, "{}");
        terminal.shows(&["not_authentic"]);
        let cells = (0..24).flat_map(|row| (0..160).map(move |column| (row, column)));
        let screen = terminal.screen();
        let is_coloured =
            |(row, column)| screen.cell(row, column).unwrap().fgcolor() != vt100::Color::Default;
        assert_eq!(cells.into_iter().any(is_coloured), coloured);
    }
}
