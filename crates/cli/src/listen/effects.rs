//! The effects of keys outside the screen: copy, save, deliver again.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hookgate_record::LoggedDelivery;
use hookgate_testing::explain::Explainer;
use hookgate_testing::log::LoggedDeliveryExt;
use http::Uri;
use tokio::sync::mpsc::UnboundedSender;

use super::action::{Effect, Target};
use super::again::Again;
use super::item::Item;
use super::state::State;

/// Terminals take no longer text into the clipboard, and some take none.
const LONGEST_COPY: usize = 74_994;

pub(crate) struct Effects {
    pub(crate) again: Again,
    /// The address of this receiver, as seen from this machine.
    pub(crate) own: Uri,
    pub(crate) forward: Option<Uri>,
    /// Has the secrets as they are configured; none where the user typed one.
    pub(crate) explainer: Option<Arc<Explainer>>,
}

/// An effect that has ended.
#[derive(Debug)]
pub(crate) enum Done {
    /// A delivery that was sent again: the status that answered it, or why there is none.
    Replayed {
        number: u64,
        to: Uri,
        answer: Result<u16, String>,
    },
    /// The reason why a delivery is refused.
    Explained { number: u64, text: String },
}

impl Effects {
    /// Starts an effect. A slow one runs in the background, and reports its end to `done`.
    pub(crate) fn begin(
        &self,
        effect: Effect,
        state: &mut State,
        done: &UnboundedSender<Done>,
    ) -> io::Result<()> {
        match effect {
            Effect::Curl(item) => {
                let number = item.number;
                let Some(text) = item.delivery.to_curl(&self.own.to_string()) else {
                    state.say(format!("#{number} has no body to send"), true);
                    return Ok(());
                };
                if text.len() <= LONGEST_COPY {
                    copy(&text)?;
                    state.say(
                        "given to the terminal for the clipboard; s saves it to a file",
                        false,
                    );
                } else {
                    state.say("too long for the clipboard; s saves it to a file", true);
                }
                state.show_text(
                    format!("delivery-{number}.sh"),
                    format!(" #{number} as curl "),
                    text,
                );
            }
            Effect::Explain(item) => match &self.explainer {
                Some(explainer) => {
                    state.say(format!("trying what may be wrong with #{} …", item.number), false);
                    explain(Arc::clone(explainer), item, done.clone());
                }
                None => state.say(
                    "start with --secret-env, --secret-file or WEBHOOK_SECRET set: a typed secret is not kept",
                    true,
                ),
            },
            Effect::Save { name, text } => match save(&name, &text) {
                Ok(()) => state.say(format!("saved to {name}"), false),
                Err(error) => state.say(format!("not saved to {name}: {error}"), true),
            },
            Effect::Replay { item, to } => {
                let to = match (to, &self.forward) {
                    (Target::Forward, Some(forward)) => forward.clone(),
                    _ => self.own.clone(),
                };
                state.say(format!("#{} goes to {to} …", item.number), false);
                self.replay(item.number, item.delivery, to, done.clone());
            }
            Effect::Suspend | Effect::Quit | Effect::Interrupt => {}
        }
        Ok(())
    }

    fn replay(&self, number: u64, delivery: LoggedDelivery, to: Uri, done: UnboundedSender<Done>) {
        let again = self.again.clone();
        tokio::spawn(async move {
            let answer = again.deliver(&delivery, &to).await;
            // The receiving end is closed where the user has quit.
            let _ = done.send(Done::Replayed { number, to, answer });
        });
    }
}

/// Takes up to seconds, so it runs in the background.
fn explain(explainer: Arc<Explainer>, item: Item, done: UnboundedSender<Done>) {
    tokio::task::spawn_blocking(move || {
        let number = item.number;
        let text = explainer.explain(&item.delivery).to_string();
        let _ = done.send(Done::Explained { number, text });
    });
}

/// Gives a text to the terminal for its clipboard (OSC 52). In base64, so nothing of it can act on the terminal.
fn copy(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    write!(stdout, "\x1b]52;c;{}\x07", STANDARD.encode(text))?;
    stdout.flush()
}

/// A new file in the directory that the command was started in, for its owner alone.
fn save(name: &str, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(name)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")
}
