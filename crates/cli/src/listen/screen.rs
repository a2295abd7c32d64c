//! The interactive face: keys and deliveries come in, the state changes, the screen is drawn.

use std::io;
use std::thread;

use hookgate_record::LoggedDelivery;
use ratatui::crossterm::event::{self, Event};
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::action::{Action, Effect, Mode};
use super::display_queue::DroppedCount;
use super::effects::{Done, Effects};
use super::keys;
use super::palette::Palette;
use super::signals::{Signal, Signals};
use super::state::State;
use super::terminal::Screen;
use super::view;
use crate::out::wants_colour;

/// The number of deliveries that are taken in before the screen is drawn again.
const AT_ONCE: usize = 256;

/// The reason of the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The user has quit, or the terminal is gone.
    Quit,
    Signalled(Signal),
}

/// Shows deliveries until the user or a signal ends it.
pub(crate) async fn show(
    mut state: State,
    mut deliveries: Receiver<LoggedDelivery>,
    dropped: DroppedCount,
    effects: Effects,
    signals: &mut Signals,
) -> io::Result<End> {
    let palette = Palette {
        colours: wants_colour(),
    };
    let mut screen = Screen::take()?;
    let mut inputs = inputs();
    let (done, mut results) = unbounded_channel();
    let mut batch = Vec::with_capacity(AT_ONCE);
    loop {
        state.unseen = dropped.count();
        let size = screen.terminal.size()?;
        view::lay_out(
            &mut state,
            ratatui::layout::Rect::from((ratatui::layout::Position::ORIGIN, size)),
        );
        screen
            .terminal
            .draw(|frame| view::draw(&state, palette, frame))?;
        if screen.has_panicked() {
            return Err(io::Error::other("a part of it has panicked; see above"));
        }
        let effect = tokio::select! {
            input = inputs.recv() => match input {
                Some(Ok(input)) => take(&mut state, input),
                Some(Err(error)) => return Err(error),
                None => return Ok(End::Quit),
            },
            _ = deliveries.recv_many(&mut batch, AT_ONCE) => {
                batch.drain(..).for_each(|delivery| state.push(delivery));
                None
            }
            Some(result) = results.recv() => {
                result_of(&mut state, result);
                None
            }
            signal = signals.next() => match signal {
                Signal::Suspend => {
                    screen.lend(super::signals::stop)?;
                    None
                }
                // Another program had the terminal meanwhile and has left it in a state of its own.
                Signal::Continue => {
                    screen.lend(|| {})?;
                    None
                }
                Signal::Interrupt | Signal::Terminate => return Ok(End::Signalled(signal)),
            },
        };
        match effect {
            None => {}
            Some(Effect::Quit) => return Ok(End::Quit),
            Some(Effect::Interrupt) => return Ok(End::Signalled(Signal::Interrupt)),
            Some(Effect::Suspend) => super::signals::ask_to_stop(),
            Some(effect) => effects.begin(effect, &mut state, &done)?,
        }
    }
}

fn take(state: &mut State, input: Event) -> Option<Effect> {
    match input {
        Event::Key(key) => state.update(keys::action(key, state.mode)?),
        // Pasted text is text and no commands.
        Event::Paste(text) if state.mode == Mode::Filter => {
            text.chars()
                .for_each(|char| drop(state.update(Action::Type(char))));
            None
        }
        // The size is asked for before each frame.
        _ => None,
    }
}

fn result_of(state: &mut State, result: Done) {
    match result {
        Done::Replayed { number, to, answer } => match answer {
            Ok(status) => state.say(
                format!("#{number} delivered again to {to}: {status}"),
                status / 100 != 2,
            ),
            Err(error) => state.say(format!("#{number} not delivered again: {error}"), true),
        },
        Done::Explained { number, text } => {
            state.notice = None;
            let name = format!("delivery-{number}.txt");
            state.show_text(name, format!(" #{number} explained "), text);
        }
    }
}

/// Reads keys on a thread of its own, which ends with the process.
fn inputs() -> UnboundedReceiver<io::Result<Event>> {
    let (sender, receiver) = unbounded_channel();
    thread::spawn(move || pass_on(&sender));
    receiver
}

fn pass_on(sender: &UnboundedSender<io::Result<Event>>) {
    loop {
        let read = event::read();
        let is_over = read.is_err();
        if sender.send(read).is_err() || is_over {
            return;
        }
    }
}
