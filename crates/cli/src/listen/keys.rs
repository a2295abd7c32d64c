//! The meaning of each key, by the current screen.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::action::{Action, Mode};

/// For the help: the key, and its effect.
pub(crate) const HELP: [(&str, &str); 17] = [
    ("j k ↓ ↑", "next, previous; in a delivery: scroll"),
    ("PgDn PgUp", "a page further, back (also Space, b)"),
    (
        "Home End g G",
        "oldest, newest; at the newest the list follows",
    ),
    ("Enter", "open the delivery"),
    ("Tab ← → h l", "its answer, head, body, typed event"),
    ("n p", "the next, the previous delivery while one is open"),
    ("w", "the body raw, or indented"),
    ("/", "filter: words, type:row. outcome:refused outcome:4"),
    ("Esc", "one step back; in the list: no filter any more"),
    ("e", "why it is refused, and how to fix it"),
    (
        "c",
        "as curl: shown, and copied where the terminal allows it",
    ),
    ("s", "saves the shown text to a file"),
    ("r", "delivers it again, signed for now, to this receiver"),
    ("R", "the same to the --forward URL"),
    ("Ctrl-Z", "suspends; fg comes back"),
    ("?", "this help"),
    ("q Ctrl-C", "quit"),
];

/// Returns the action for a key; `None` where the key has no meaning here.
pub(crate) fn action(key: KeyEvent, mode: Mode) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Some(Action::Interrupt),
            KeyCode::Char('z') => Some(Action::Suspend),
            KeyCode::Char('u') if mode == Mode::Filter => Some(Action::EraseAll),
            KeyCode::Char('h') if mode == Mode::Filter => Some(Action::Erase),
            _ => None,
        };
    }
    if key
        .modifiers
        .intersects(KeyModifiers::ALT | KeyModifiers::SUPER)
    {
        return None;
    }
    match mode {
        Mode::Filter => filter(key.code),
        Mode::List => everywhere(key.code).or_else(|| list(key.code)),
        Mode::Detail => everywhere(key.code).or_else(|| detail(key.code)),
        Mode::Help => match key.code {
            KeyCode::Char('q') | KeyCode::Char('?') | KeyCode::Esc | KeyCode::Enter => {
                Some(Action::Back)
            }
            _ => None,
        },
        Mode::Text => text(key.code),
    }
}

fn everywhere(code: KeyCode) -> Option<Action> {
    movement(code).or(match code {
        KeyCode::Esc => Some(Action::Back),
        KeyCode::Char('c') => Some(Action::Curl),
        KeyCode::Char('e') => Some(Action::Explain),
        KeyCode::Char('r') => Some(Action::Replay),
        KeyCode::Char('R') => Some(Action::ReplayForward),
        KeyCode::Char('?') => Some(Action::Help),
        KeyCode::Char('q') => Some(Action::Quit),
        _ => None,
    })
}

fn movement(code: KeyCode) -> Option<Action> {
    match code {
        KeyCode::Up | KeyCode::Char('k') => Some(Action::Up),
        KeyCode::Down | KeyCode::Char('j') => Some(Action::Down),
        KeyCode::PageUp | KeyCode::Char('b') => Some(Action::PageUp),
        KeyCode::PageDown | KeyCode::Char(' ') => Some(Action::PageDown),
        KeyCode::Home | KeyCode::Char('g') => Some(Action::Home),
        KeyCode::End | KeyCode::Char('G') => Some(Action::End),
        _ => None,
    }
}

fn list(code: KeyCode) -> Option<Action> {
    match code {
        KeyCode::Enter => Some(Action::Open),
        KeyCode::Char('/') => Some(Action::StartFilter),
        _ => None,
    }
}

fn detail(code: KeyCode) -> Option<Action> {
    match code {
        KeyCode::Tab | KeyCode::Right | KeyCode::Char('l') => Some(Action::NextTab),
        KeyCode::BackTab | KeyCode::Left | KeyCode::Char('h') => Some(Action::PreviousTab),
        KeyCode::Char('n') => Some(Action::Newer),
        KeyCode::Char('p') => Some(Action::Older),
        KeyCode::Char('w') => Some(Action::Raw),
        KeyCode::Enter | KeyCode::Backspace => Some(Action::Back),
        _ => None,
    }
}

fn filter(code: KeyCode) -> Option<Action> {
    match code {
        KeyCode::Char(char) => Some(Action::Type(char)),
        KeyCode::Backspace => Some(Action::Erase),
        KeyCode::Enter => Some(Action::Accept),
        KeyCode::Esc => Some(Action::Back),
        _ => None,
    }
}

fn text(code: KeyCode) -> Option<Action> {
    movement(code).or(match code {
        KeyCode::Char('s') => Some(Action::Save),
        KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q' | 'c' | 'e') => Some(Action::Back),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(code: KeyCode, mode: Mode) -> Option<Action> {
        action(KeyEvent::new(code, KeyModifiers::NONE), mode)
    }

    fn control(char: char, mode: Mode) -> Option<Action> {
        action(
            KeyEvent::new(KeyCode::Char(char), KeyModifiers::CONTROL),
            mode,
        )
    }

    const MODES: [Mode; 5] = [
        Mode::List,
        Mode::Filter,
        Mode::Detail,
        Mode::Help,
        Mode::Text,
    ];

    #[test]
    fn letters_are_commands_but_where_a_filter_is_typed() {
        assert_eq!(press(KeyCode::Char('q'), Mode::List), Some(Action::Quit));
        assert_eq!(
            press(KeyCode::Char('q'), Mode::Filter),
            Some(Action::Type('q'))
        );
        assert_eq!(
            press(KeyCode::Char('/'), Mode::Filter),
            Some(Action::Type('/'))
        );
        assert_eq!(press(KeyCode::Char('q'), Mode::Text), Some(Action::Back));
        assert_eq!(
            press(KeyCode::Char('R'), Mode::Detail),
            Some(Action::ReplayForward)
        );
        assert_eq!(press(KeyCode::Char('x'), Mode::List), None);
    }

    #[test]
    fn everywhere_there_is_a_way_out() {
        for mode in MODES {
            assert_eq!(control('c', mode), Some(Action::Interrupt), "{mode:?}");
            assert_eq!(press(KeyCode::Esc, mode), Some(Action::Back), "{mode:?}");
        }
    }

    #[test]
    fn a_key_release_does_nothing() {
        let mut key = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE);
        key.kind = KeyEventKind::Release;
        assert!(MODES.iter().all(|&mode| action(key, mode).is_none()));
        let alt = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::ALT);
        assert_eq!(action(alt, Mode::List), None);
    }

    /// Each key of the help has a meaning in some mode.
    #[test]
    fn the_help_names_keys_that_are_there() {
        for (keys, what) in HELP {
            for name in keys.split(' ') {
                let code = match name {
                    "↓" => KeyCode::Down,
                    "↑" => KeyCode::Up,
                    "←" => KeyCode::Left,
                    "→" => KeyCode::Right,
                    "PgDn" => KeyCode::PageDown,
                    "PgUp" => KeyCode::PageUp,
                    "Home" => KeyCode::Home,
                    "End" => KeyCode::End,
                    "Enter" => KeyCode::Enter,
                    "Tab" => KeyCode::Tab,
                    "Esc" => KeyCode::Esc,
                    "Ctrl-C" | "Ctrl-Z" => continue,
                    letter => KeyCode::Char(letter.chars().next().unwrap()),
                };
                let commands = [Mode::List, Mode::Detail, Mode::Text];
                assert!(
                    commands.iter().any(|&mode| press(code, mode).is_some()),
                    "{name}: {what}"
                );
            }
        }
    }
}
