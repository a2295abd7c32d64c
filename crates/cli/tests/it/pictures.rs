//! The pictures of docs/command.md: the screen of a real terminal, drawn as SVG. `scripts/pictures`
//! draws them again; the tests check that they still show the command's output.

mod svg;

use std::path::PathBuf;

use crate::cli::Folder;
use crate::process::{Reply, row_created, signed};
use crate::terminal::Terminal;
use svg::Picture;

const SECRET: &str = "whsec_made_up_for_the_pictures";

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/pictures")
        .join(name)
}

/// Compares with the file, or writes it on request.
fn check(name: &str, picture: &Picture) {
    let drawn = picture.svg();
    assert!(drawn.len() < 60_000, "{name}: {} bytes", drawn.len());
    if std::env::var_os("HOOKGATE_DRAW_PICTURES").is_some() {
        std::fs::write(path(name), drawn).unwrap();
        return;
    }
    let file = std::fs::read_to_string(path(name)).unwrap_or_default();
    assert!(
        file == drawn,
        "docs/pictures/{name} shows something else; if this is right, run scripts/pictures:\n{}",
        picture.text()
    );
}

const LOG: &str = "deliveries.jsonl";

/// Made-up deliveries of every kind, recorded. The sixth was changed on the way: the body was sent
/// in many lines and arrived in one.
fn listening(folder: &Folder) -> (Terminal, String) {
    let arguments = [
        "listen",
        "--addr",
        "127.0.0.1:0",
        "--record",
        LOG,
        "--fail-first",
        "1",
    ];
    let variables = [("WEBHOOK_SECRET", SECRET)];
    let mut terminal = Terminal::start_in(&folder.0, &arguments, &variables, (14, 160));
    let text = terminal.shows(&["listening on"]);
    let address = text.split("http://").nth(1).unwrap();
    let address = address.split('/').next().unwrap().to_owned();
    let mut came = 0;
    let mut send = |path: &str, headers: &[(&str, String)], body: &str| {
        Reply::to(&address, "POST", path, headers, body);
        came += 1;
        terminal.until("a line for each", |terminal| {
            terminal.text().matches(" ms").count() == came
        });
    };
    let order = row_created("evt_1041", r#"{"Customer":"Ada","Total":12.50}"#);
    let other = |kind: &str, id: &str| {
        format!(
            r#"{{"id":"{id}","type":"{kind}","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":{{}}}}"#
        )
    };
    let good = |body: &str| signed(SECRET, body, 0);
    let page = other("page.created", "evt_1042");
    let member = other("member.removed", "evt_1043");
    let value: serde_json::Value = serde_json::from_str(&member).unwrap();
    let in_lines = serde_json::to_string_pretty(&value).unwrap();
    let mut unsigned = good(&page);
    unsigned.retain(|(name, _)| *name != "X-Service-Signature");
    for _ in 0..3 {
        send("/webhooks", &good(&order), &order);
    }
    send("/webhooks", &good(&page), &page);
    send("/", &good(&member), &member);
    send("/webhooks", &good(&in_lines), &value.to_string());
    send("/webhooks", &unsigned, &page);
    send("/webhooks", &good(&member), &member);
    (terminal, address)
}

#[test]
fn the_picture_of_listen_is_what_it_shows() {
    let folder = Folder::new();
    let (mut terminal, address) = listening(&folder);
    let mut picture = Picture::of(terminal.screen(), "hookgate listen");
    picture.replace(&address, "127.0.0.1:8787");
    picture.mask_times();
    picture.mask_millis("    0.4");
    check("listen.svg", &picture);
    terminal.press("\x03");
    terminal.end();
}

#[test]
fn the_picture_of_explain_is_what_it_prints() {
    let folder = Folder::new();
    let (mut terminal, _) = listening(&folder);
    terminal.press("\x03");
    terminal.end();
    let command = ["explain", "--log", LOG, "--line", "6"];
    let variables = [("WEBHOOK_SECRET", SECRET)];
    let mut terminal = Terminal::start_in(&folder.0, &command, &variables, (25, 118));
    assert_eq!(terminal.end().code(), Some(1));
    let mut picture = Picture::of(terminal.screen(), "hookgate explain");
    picture.mask_times();
    picture.put_above(&format!("$ hookgate {}", command.join(" ")));
    check("explain.svg", &picture);
}
