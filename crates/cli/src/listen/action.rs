//! The actions of the user, and their effects outside the screen.

use super::item::Item;

/// The meaning of a key in the current mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Open,
    /// One step back: out of the filter, the delivery, the help; then the filter is cleared.
    Back,
    NextTab,
    PreviousTab,
    /// To the next delivery while one is open.
    Newer,
    Older,
    Raw,
    StartFilter,
    Type(char),
    Erase,
    EraseAll,
    Accept,
    Curl,
    Save,
    Replay,
    ReplayForward,
    Explain,
    Help,
    Suspend,
    Quit,
    /// Ctrl-C, which ends like a signal.
    Interrupt,
}

/// An action outside the screen.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// Show the delivery as a curl command, and copy it.
    Curl(Item),
    Save {
        name: String,
        text: String,
    },
    /// Searches for the mistake that makes its signature wrong.
    Explain(Item),
    Replay {
        item: Item,
        to: Target,
    },
    Suspend,
    Quit,
    Interrupt,
}

/// The server to which a delivery is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Itself,
    Forward,
}

/// The part of the screen that gets the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    #[default]
    List,
    /// The filter is being typed.
    Filter,
    /// A delivery is open.
    Detail,
    Help,
    /// A text is shown over everything.
    Text,
}
