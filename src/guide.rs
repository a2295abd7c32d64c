//! The guide: the pages of `docs/`, as rustdoc shows them.
//!
//! | page | answers |
//! |---|---|
//! | [`try_it`] | How do I deliver to a receiver by hand? |
//! | [`answers`] | What is the sender answered, and when does the handler run? |
//! | [`handlers`] | How do I take several data models, and how do I fail? |
//! | [`properties`] | Which Rust type has a TEXT, a NUMBER, a DATE? |
//! | [`proxy`] | What must a proxy leave alone? |
//! | [`tracing`] | Which spans, fields and lines are there? |
//! | [`operations`] | What do I watch, and what do I do when an alert fires? |
//! | [`guarantees`] | Which store, and what does each promise in each fault? |
//! | [`inbox`] | How is a delivery stored before it is answered? |
//! | [`testing`] | How do I test a handler, and replay deliveries of yesterday? |
//! | [`command`] | What does the command `hookgate` do? |

/// A page of `docs/`. The links come first: rustdoc takes the first definition of a link, so that a page which links to another file
/// in the repository links to the module here. Code is compiled where the features it uses are on.
macro_rules! pages {
    ($($(#[$attribute:meta])* $name:ident $file:literal;)*) => {
        $(
            $(#[$attribute])*
            #[doc = "[inbox page]: crate::guide::inbox"]
            #[doc = "[operations-metrics page]: crate::guide::operations#metrics"]
            #[doc = "[properties page]: crate::guide::properties"]
            #[doc = "[guarantees-claims-in-your-own-transaction page]: crate::guide::guarantees#claims-in-your-own-transaction"]
            #[doc = "[tracing page]: crate::guide::tracing"]
            #[doc = "[guarantees page]: crate::guide::guarantees"]
            #[doc = ""]
            #[doc = include_str!(concat!("../docs/", $file))]
            pub mod $name {}
        )*
    };
}

pages! {
    try_it "try-it.md";
    answers "answers.md";
    #[cfg(any(not(doctest), all(feature = "axum", feature = "moka")))]
    handlers "handlers.md";
    properties "properties.md";
    proxy "proxy.md";
    tracing "tracing.md";
    #[cfg(any(not(doctest), all(feature = "axum", feature = "metrics", feature = "moka")))]
    operations "operations.md";
    guarantees "guarantees.md";
    #[cfg(any(not(doctest), all(feature = "axum", feature = "inbox")))]
    inbox "inbox.md";
    #[cfg(any(not(doctest), all(feature = "axum", feature = "moka", feature = "testing")))]
    testing "testing.md";
    command "command.md";
}
