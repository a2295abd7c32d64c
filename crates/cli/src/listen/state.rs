//! The state of the screen, and how it changes. This module knows no terminal and never waits.

use hookgate_record::LoggedDelivery;

use super::action::{Action, Effect, Mode, Target};
use super::filter::Filter;
use super::item::Item;
use super::list::List;
use super::page::{self, Tab};
use super::page_line::{Kind, line};
use super::pretty;
use super::scrolled::Scrolled;

/// The facts that do not change while it listens.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) url: String,
    /// The address of `--page`.
    pub(crate) page: Option<String>,
    pub(crate) forward: Option<String>,
    pub(crate) log: Option<String>,
    /// A warning at the start, such as that other machines can reach the address.
    pub(crate) warning: Option<String>,
}

/// The open delivery. It stays here even when the list has dropped it.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    pub(crate) item: Item,
    pub(crate) tab: Tab,
    pub(crate) raw: bool,
    pub(crate) page: Scrolled,
}

/// A text over everything, such as a curl command.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    /// The file name for this text.
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) text: String,
    pub(crate) page: Scrolled,
    /// The mode after it is closed.
    pub(crate) back: Mode,
}

/// The last event to report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) text: String,
    pub(crate) bad: bool,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) facts: Facts,
    pub(crate) mode: Mode,
    pub(crate) list: List,
    /// The number of deliveries that arrived faster than the screen could take them. They were answered all the same.
    pub(crate) unseen: u64,
    pub(crate) filter_text: String,
    filter_before: String,
    pub(crate) open: Option<Open>,
    pub(crate) text: Option<Text>,
    pub(crate) notice: Option<Notice>,
    help_back: Mode,
}

impl State {
    /// Keeps at most this number of deliveries, and at least one.
    pub(crate) fn new(facts: Facts, keep: usize) -> Self {
        let notice = facts.warning.clone().map(|text| Notice { text, bad: true });
        Self {
            facts,
            mode: Mode::default(),
            list: List::new(keep),
            unseen: 0,
            filter_text: String::new(),
            filter_before: String::new(),
            open: None,
            text: None,
            notice,
            help_back: Mode::List,
        }
    }

    /// A delivery was answered.
    pub(crate) fn push(&mut self, delivery: LoggedDelivery) {
        self.list.push(delivery);
    }

    /// Sets the number of rows of the list, and the width and height of a page and of a text.
    pub(crate) fn lay_out(&mut self, list: u16, page: (u16, u16), text: (u16, u16)) {
        self.list.lay_out(usize::from(list));
        if let Some(open) = &mut self.open {
            open.page.lay_out(page.0, page.1);
        }
        if let Some(shown) = &mut self.text {
            shown.page.lay_out(text.0, text.1);
        }
    }

    /// Shows a message at the bottom of the screen.
    pub(crate) fn say(&mut self, text: impl Into<String>, bad: bool) {
        self.notice = Some(Notice {
            text: text.into(),
            bad,
        });
    }

    /// Shows a text over everything.
    pub(crate) fn show_text(&mut self, name: String, title: String, text: String) {
        let back = match self.mode {
            Mode::Text => self.text.take().map_or(Mode::List, |shown| shown.back),
            // A filter that is being typed stays as it is.
            Mode::Filter => Mode::List,
            mode => mode,
        };
        let lines = pretty::lines(text.as_bytes(), true).into_iter();
        let lines = lines.map(|text| line(Kind::Plain, text));
        let page = Scrolled::new(lines.collect());
        self.text = Some(Text {
            name,
            title,
            text,
            page,
            back,
        });
        self.mode = Mode::Text;
    }

    /// Applies an action to the state, and returns the effect outside the screen.
    pub(crate) fn update(&mut self, action: Action) -> Option<Effect> {
        match action {
            Action::Quit => return Some(Effect::Quit),
            Action::Interrupt => return Some(Effect::Interrupt),
            Action::Suspend => return Some(Effect::Suspend),
            Action::Help => {
                self.help_back = self.mode;
                self.mode = Mode::Help;
            }
            Action::Explain => return self.subject().cloned().map(Effect::Explain),
            Action::Curl => return self.subject().cloned().map(Effect::Curl),
            Action::Save => {
                let shown = self.text.as_ref()?;
                return Some(Effect::Save {
                    name: shown.name.clone(),
                    text: shown.text.clone(),
                });
            }
            Action::Replay => return self.replay(Target::Itself),
            Action::ReplayForward if self.facts.forward.is_none() => {
                self.say(
                    "there is no URL to replay it to: start with --forward URL",
                    true,
                );
            }
            Action::ReplayForward => return self.replay(Target::Forward),
            _ => match self.mode {
                Mode::List => self.update_list(action),
                Mode::Filter => self.update_filter(action),
                Mode::Detail => self.update_detail(action),
                Mode::Help => self.mode = self.help_back,
                Mode::Text => self.update_text(action),
            },
        }
        None
    }

    /// The delivery that a key acts on.
    fn subject(&self) -> Option<&Item> {
        match &self.open {
            Some(open) => Some(&open.item),
            None => self.list.selected(),
        }
    }

    fn replay(&self, to: Target) -> Option<Effect> {
        let item = self.subject()?.clone();
        Some(Effect::Replay { item, to })
    }

    fn update_list(&mut self, action: Action) {
        self.notice = None;
        let page = self.list.page();
        match action {
            Action::Up => self.list.move_by(-1),
            Action::Down => self.list.move_by(1),
            Action::PageUp => self.list.move_by(-page),
            Action::PageDown => self.list.move_by(page),
            Action::Home => self.list.move_by(isize::MIN),
            Action::End => self.list.move_by(isize::MAX),
            Action::Open => self.open_selected(),
            Action::StartFilter => {
                self.filter_before = self.filter_text.clone();
                self.mode = Mode::Filter;
            }
            Action::Back => {
                self.filter_text.clear();
                self.list.set_filter(Filter::default());
            }
            _ => {}
        }
    }

    fn open_selected(&mut self) {
        let Some(item) = self.list.selected().cloned() else {
            return;
        };
        let (tab, raw) = self
            .open
            .as_ref()
            .map_or((Tab::default(), false), |open| (open.tab, open.raw));
        self.open = Some(Open {
            item,
            tab,
            raw,
            page: Scrolled::default(),
        });
        self.mode = Mode::Detail;
        self.turn_page();
    }

    fn turn_page(&mut self) {
        if let Some(open) = &mut self.open {
            let lines = page::page(&open.item, open.tab, open.raw, self.facts.log.as_deref());
            open.page = Scrolled::new(lines);
        }
    }

    fn update_filter(&mut self, action: Action) {
        let mut text = std::mem::take(&mut self.filter_text);
        match action {
            Action::Type(char) if !char.is_control() && text.len() < 256 => text.push(char),
            Action::Erase => drop(text.pop()),
            Action::EraseAll => text.clear(),
            Action::Accept => self.mode = Mode::List,
            Action::Back => {
                text = std::mem::take(&mut self.filter_before);
                self.mode = Mode::List;
            }
            _ => {}
        }
        self.list.set_filter(Filter::parse(&text));
        self.filter_text = text;
    }

    fn update_detail(&mut self, action: Action) {
        self.notice = None;
        let Some(open) = &mut self.open else {
            self.mode = Mode::List;
            return;
        };
        match action {
            Action::Back => {
                self.open = None;
                self.mode = Mode::List;
            }
            Action::NextTab | Action::PreviousTab => {
                let steps = if action == Action::NextTab {
                    1
                } else {
                    Tab::ALL.len() - 1
                };
                open.tab = open.tab.beside(steps);
                self.turn_page();
            }
            Action::Raw => {
                open.raw = !open.raw;
                self.turn_page();
            }
            Action::Newer | Action::Older => {
                self.list
                    .move_by(if action == Action::Newer { 1 } else { -1 });
                self.open_selected();
            }
            _ => open.page.scroll(action),
        }
    }

    fn update_text(&mut self, action: Action) {
        match &mut self.text {
            Some(shown) if action != Action::Back => shown.page.scroll(action),
            shown => {
                self.mode = shown.take().map_or(Mode::List, |shown| shown.back);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::item::tests::{delivery, handled};
    use super::*;

    fn with(count: u64) -> State {
        let mut state = State::new(Facts::default(), 100);
        for number in 1..=count {
            state.push(handled(&format!("evt_{number}")));
        }
        state.lay_out(5, (40, 6), (40, 6));
        state
    }

    fn selected(state: &State) -> u64 {
        state.list.selected().map_or(0, |item| item.number)
    }

    /// Applies each action in turn; returns the effect of the last one.
    fn press(state: &mut State, actions: &[Action]) -> Option<Effect> {
        let mut effect = None;
        for &action in actions {
            effect = state.update(action);
            state.lay_out(5, (40, 6), (40, 6));
        }
        effect
    }

    fn typed(text: &str) -> Vec<Action> {
        text.chars().map(Action::Type).collect()
    }

    #[test]
    fn a_filter_works_while_it_is_typed_and_escape_takes_it_back() {
        let mut state = with(3);
        state.push(delivery("{}", 401, "not_authentic"));
        press(&mut state, &[Action::StartFilter]);
        press(&mut state, &typed("evt_2"));
        assert_eq!((state.list.shown().len(), selected(&state)), (1, 2));
        press(&mut state, &[Action::Erase]);
        assert_eq!(
            state.list.shown().len(),
            4,
            "the header of the fourth says evt_ too"
        );
        press(&mut state, &[Action::EraseAll]);
        press(&mut state, &typed("401"));
        press(&mut state, &[Action::Accept]);
        assert_eq!((state.mode, selected(&state)), (Mode::List, 4));
        // Changed and cancelled: the filter before stays.
        press(
            &mut state,
            &[Action::StartFilter, Action::Type('x'), Action::Back],
        );
        assert_eq!((&*state.filter_text, state.list.shown().len()), ("401", 1));
        press(&mut state, &[Action::Back]);
        assert_eq!((&*state.filter_text, state.list.shown().len()), ("", 4));
    }

    #[test]
    fn an_open_delivery_stays_while_others_come_and_go() {
        let mut state = State::new(Facts::default(), 2);
        state.push(handled("evt_1"));
        press(&mut state, &[Action::Open, Action::NextTab]);
        for _ in 0..5 {
            state.push(handled("evt_later"));
        }
        let open = state.open.as_ref().unwrap();
        assert_eq!((&*open.item.event_id, open.tab), ("evt_1", Tab::Head));
        // The next newer one that is still kept, and the same tab of it.
        press(&mut state, &[Action::Older]);
        let open = state.open.as_ref().unwrap();
        assert_eq!((open.item.number, open.tab), (5, Tab::Head));
        press(&mut state, &[Action::Back]);
        assert!(state.open.is_none());
    }

    #[test]
    fn tabs_go_around_and_bodies_show_raw() {
        let mut state = with(1);
        press(&mut state, &[Action::Open, Action::PreviousTab]);
        assert_eq!(state.open.as_ref().unwrap().tab, Tab::Event);
        press(&mut state, &[Action::PreviousTab]);
        let lines = |state: &State| state.open.as_ref().unwrap().page.position().2;
        let indented = lines(&state);
        press(&mut state, &[Action::Raw]);
        assert!(lines(&state) < indented);
    }

    #[test]
    fn what_is_done_outside_is_about_the_delivery_that_is_open_or_selected() {
        let mut state = with(3);
        assert!(
            matches!(press(&mut state, &[Action::Up, Action::Curl]), Some(Effect::Curl(item)) if item.number == 2)
        );
        let replay = press(&mut state, &[Action::Open, Action::Replay]);
        assert!(
            matches!(replay, Some(Effect::Replay { item, to: Target::Itself }) if item.number == 2)
        );
        assert!(press(&mut state, &[Action::ReplayForward]).is_none());
        assert!(
            state
                .notice
                .as_ref()
                .is_some_and(|notice| notice.text.contains("--forward"))
        );
        state.facts.forward = Some("http://localhost/".into());
        let replay = press(&mut state, &[Action::ReplayForward]);
        assert!(matches!(
            replay,
            Some(Effect::Replay {
                to: Target::Forward,
                ..
            })
        ));
        assert!(matches!(
            press(&mut state, &[Action::Quit]),
            Some(Effect::Quit)
        ));
        let mut empty = with(0);
        assert!(press(&mut empty, &[Action::Curl]).is_none());
        assert!(press(&mut empty, &[Action::Replay]).is_none());
        assert!(press(&mut empty, &[Action::Open, Action::Up, Action::End]).is_none());
        assert_eq!(empty.mode, Mode::List);
    }

    #[test]
    fn a_text_covers_everything_and_leads_back() {
        let mut state = with(1);
        press(&mut state, &[Action::Open]);
        state.show_text("1.sh".into(), "curl".into(), "curl --data …".into());
        assert_eq!(state.mode, Mode::Text);
        assert!(
            matches!(press(&mut state, &[Action::Save]), Some(Effect::Save { name, text }) if name == "1.sh" && text.starts_with("curl"))
        );
        press(&mut state, &[Action::Down, Action::Back]);
        assert_eq!((state.mode, state.text.is_none()), (Mode::Detail, true));
        press(&mut state, &[Action::Help]);
        assert_eq!(state.mode, Mode::Help);
        press(&mut state, &[Action::Back]);
        assert_eq!(state.mode, Mode::Detail);
    }
}
