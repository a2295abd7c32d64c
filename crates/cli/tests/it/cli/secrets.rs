//! The sources of secrets, and the messages about invalid ones: by `doctor`, which reports on each.

use serde_json::Value;

use super::{Ran, Scratch, hookgate};
use crate::process::own_secret;

/// The checks of secrets alone.
fn checked(ran: &Ran) -> Vec<(String, String, String)> {
    let report = ran.json();
    let checks = report["checks"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    checks
        .filter(|check| text(&check["check"]).starts_with("secret"))
        .map(|check| {
            let says = format!("{} {}", text(&check["says"]), text(&check["advice"]));
            (text(&check["check"]), text(&check["verdict"]), says)
        })
        .collect()
}

fn of_environment(value: &str, options: &[&str]) -> (String, String, String) {
    let mut command = hookgate(&[&["--json", "doctor"], options].concat());
    let ran = Ran::to_its_end(command.env("WEBHOOK_SECRET", value));
    if value.trim().len() > 8 {
        assert!(!format!("{ran:?}").contains(value.trim()), "{ran:?}");
    }
    let check = checked(&ran).remove(0);
    assert_eq!(checked(&ran).len(), 1, "{ran:?}");
    assert_eq!(ran.code, Some(i32::from(check.1 == "bad")), "{ran:?}");
    check
}

/// Values of a variable, and the message about each.
const UNUSABLE: [(&str, &str); 17] = [
    ("", "empty"),
    ("   ", "only white space"),
    (" whsec_made_up_for_the_command", "white space around"),
    ("whsec_made_up for_the_command", "inside"),
    ("\"whsec_made_up_for_the_command\"", "quotes"),
    (
        "tk_live_made_up_for_the_command",
        "developer settings, webhooks",
    ),
    ("made_up_for_the_command", "--any-secret"),
    ("whsec_whsec_made_up_for_the_command", "twice"),
    ("whsec_", "ends after its prefix"),
    ("whsec_short", "too short"),
    ("whsec_xxxxxxxxxxxxxxxxxxxxxxxx", "one character, repeated"),
    ("whsec_0101010101010101", "fewer than six"),
    ("whsec_••••", "masked"),
    ("whsec_${WEBHOOK_SECRET}", "placeholder"),
    ("whsec_your_webhook_secret_here", "placeholder"),
    (
        "whsec_made_up_for_the_command",
        "published: anyone can sign with it",
    ),
    ("whsec_0123456789abcdef\u{200b}", "invisible"),
];

#[test]
fn every_kind_of_unusable_secret_is_named_with_advice() {
    for (value, says) in UNUSABLE {
        let (check, verdict, said) = of_environment(value, &[]);
        assert_eq!(
            (&*check, &*verdict),
            ("secret WEBHOOK_SECRET", "bad"),
            "{value:?}"
        );
        assert!(said.contains(says), "{value:?}: {said}");
    }
    assert_eq!(of_environment(own_secret(), &[]).1, "ok");
    let any = of_environment("made_up_for_the_command", &["--any-secret"]);
    assert_eq!(any.1, "ok");
}

#[test]
fn what_is_not_there_is_named() {
    let line = "--json doctor --secret-env HOOKGATE_UNSET --secret-file /nowhere/secret";
    let checks = checked(&Ran::typed(line).ends(1));
    let named: Vec<_> = checks.iter().map(|one| (&*one.0, &*one.1)).collect();
    assert_eq!(
        named,
        [
            ("secret HOOKGATE_UNSET", "bad"),
            ("secret /nowhere/secret", "bad")
        ]
    );
    assert!(checks[0].2.contains("read -rs"), "{checks:?}");
}

#[test]
fn files_are_read_as_mounted_secrets_are() {
    let own = own_secret();
    for (name, content, verdict) in [
        ("plain", own.as_bytes(), "ok"),
        ("line", format!("{own}\n").as_bytes(), "ok"),
        ("windows", format!("{own}\r\n").as_bytes(), "ok"),
        ("two-lines", format!("{own}\n\n").as_bytes(), "bad"),
        ("published", b"whsec_made_up_for_the_command", "bad"),
        ("binary", b"\xff\xfe", "bad"),
        ("endless", &[b'a'; 5_000], "bad"),
    ] {
        let file = Scratch::file(name, content);
        let ran = Ran::of(&["--json", "doctor", "--secret-file", file.path()]);
        assert_eq!(checked(&ran)[0].1, verdict, "{name}: {ran:?}");
        ran.warns_of_nothing();
    }
}

/// Reading it to its end would take for ever.
#[cfg(target_os = "linux")]
#[test]
fn a_file_without_an_end_is_refused() {
    let ran = Ran::of(&["--json", "doctor", "--secret-file", "/dev/zero"]);
    assert!(checked(&ran)[0].2.contains("4096 bytes"), "{ran:?}");
}

#[cfg(unix)]
#[test]
fn a_file_that_others_can_read_is_warned_of() {
    let file = Scratch::file("open", own_secret().as_bytes());
    for (mode, warned) in [(0o600, false), (0o400, false), (0o640, true), (0o644, true)] {
        Scratch::mode(&file.0, mode);
        let ran = Ran::of(&["doctor", "--secret-file", file.path()]).ends(0);
        for part in ["warning: others can read", "chmod 600"] {
            assert_eq!(ran.stderr.contains(part), warned, "{mode:o}: {ran:?}");
        }
    }
}

#[test]
fn up_to_four_secrets_are_a_ring() {
    let names = ["A", "B", "C", "D", "E"];
    let ask = |values: &[&str]| {
        let mut command = hookgate(&["--json", "doctor"]);
        for (name, value) in names.iter().zip(values) {
            command.args(["--secret-env", name]).env(name, value);
        }
        let checks = checked(&Ran::to_its_end(&mut command));
        checks.into_iter().map(|one| one.1).collect::<Vec<_>>()
    };
    let values = names.map(|name| format!("{}_{name}", own_secret()));
    let values = values.each_ref().map(String::as_str);
    assert_eq!(ask(&values[..4]), ["ok"; 4]);
    assert_eq!(ask(&values), ["ok", "ok", "ok", "ok", "bad"], "a fifth");
    assert_eq!(ask(&[own_secret(); 2]), ["ok", "bad"], "the same one twice");
}
