//! The guide: the pages of `docs/`, shown by rustdoc.
//!
//! | page | answers |
//! |---|---|
//! | [`try_it`] | How do I deliver to a receiver by hand? |
//! | [`answers`] | Which answer does the sender get, and when does the handler run? |
//! | [`handlers`] | How do I handle several data models, and how do I report a failure? |
//! | [`layer`] | Which time-outs and limits are there, and where do I put the layer? |
//! | [`rotation`] | How do I replace a secret without a lost delivery? |
//! | [`properties`] | Which Rust type does a TEXT, a NUMBER or a DATE have? |
//! | [`own_server`] | How do I receive in a server without tower, or only verify? |
//! | [`other_senders`] | How do I receive what Stripe, GitHub or any other sender signs? |
//! | [`names`] | Which types do I have to spell? |
//! | [`proxy`] | Which parts of a request must a proxy not change? |
//! | [`tracing`] | Which spans, fields and log lines are there? |
//! | [`operations`] | Which metrics do I watch, and which sizes do I set? |
//! | [`runbook`] | An alert fires: what does it mean, and what do I do? |
//! | [`erasure`] | How do I erase a person's data? |
//! | [`guarantees`] | Which store do I choose, and what does each guarantee in each fault? |
//! | [`queues`] | How do I put a queue between receiving and handling? |
//! | [`testing`] | How do I test a handler, and replay recorded deliveries? |
//! | [`sender`] | How does an event end after all attempts of the service? |
//! | [`explain`] | Why does my signature fail? |
//! | [`emulator`] | How do I run the whole service on my machine? |
//! | [`client`] | How do I read and change rows through the service's API? |
//! | [`reconciliation`] | What does a missed event cost, and how is it found? |
//! | [`command`] | Which tasks does the command `hookgate` perform? |

/// Makes a module for each page of `docs/`. The link definitions come first, because rustdoc uses
/// the first definition of a link: a page that links to another file of the repository then links
/// to the module here. Code in a page is compiled if the features that it uses are on.
macro_rules! pages {
    ($($(#[$attribute:meta])* $name:ident $file:literal;)*) => {
        $(
            $(#[$attribute])*
            #[doc = "[inbox page]: https://docs.rs/hookgate-inbox"]
            #[doc = "[operations-metrics page]: crate::guide::operations#metrics"]
            #[doc = "[answers page]: crate::guide::answers"]
            #[doc = "[handlers-end page]: crate::guide::handlers#the-end-of-the-server"]
            #[doc = "[layer page]: crate::guide::layer"]
            #[doc = "[router page]: https://docs.rs/hookgate/latest/hookgate/route/"]
            #[doc = "[log page]: https://docs.rs/hookgate-record"]
            #[doc = "[rotation page]: crate::guide::rotation"]
            #[doc = "[rotation-example page]: https://docs.rs/crate/hookgate/latest/source/examples/secret_rotation.rs"]
            #[doc = "[operations-sizing page]: crate::guide::operations#sizing"]
            #[doc = "[runbook page]: crate::guide::runbook"]
            #[doc = "[properties page]: crate::guide::properties"]
            #[doc = "[guarantees-claims-in-your-own-transaction page]: crate::guide::guarantees#claims-in-your-own-transaction"]
            #[doc = "[tracing page]: crate::guide::tracing"]
            #[doc = "[guarantees page]: crate::guide::guarantees"]
            #[doc = "[queues page]: crate::guide::queues"]
            #[doc = "[sink]: https://docs.rs/hookgate/latest/hookgate/sink/trait.Sink.html"]
            #[doc = "[emulator page]: crate::guide::emulator"]
            #[doc = "[order page]: https://docs.rs/hookgate-order"]
            #[doc = "[reconciliation page]: crate::guide::reconciliation"]
            #[doc = "[client page]: crate::guide::client"]
            #[doc = "[lookup page]: crate::lookup"]
            #[doc = "[custom-server page]: https://docs.rs/crate/hookgate/latest/source/examples/custom_server.rs"]
            #[doc = "[frameworks page]: https://docs.rs/crate/hookgate/latest/source/examples/README.md"]
            #[doc = ""]
            #[doc = include_str!(concat!("../docs/", $file))]
            pub mod $name {}
        )*
    };
}

pages! {
    try_it "try-it.md";
    answers "answers.md";
    #[cfg(any(not(doctest), feature = "axum"))]
    handlers "handlers.md";
    layer "layer.md";
    #[cfg(any(not(doctest), feature = "lookup"))]
    rotation "rotation.md";
    properties "properties.md";
    own_server "own-server.md";
    #[cfg(any(not(doctest), feature = "axum"))]
    other_senders "other-senders.md";
    #[cfg(not(doctest))] // Its code needs other packages: the package of the tests compiles it.
    names "names.md";
    proxy "proxy.md";
    #[cfg(not(doctest))] // compiled in examples/more
    tracing "tracing.md";
    #[cfg(not(doctest))] // compiled in examples/more
    operations "operations.md";
    runbook "runbook.md";
    erasure "erasure.md";
    guarantees "guarantees.md";
    queues "queues.md";
    #[cfg(not(doctest))] // Its code needs the package `hookgate-testing`, which compiles this page too.
    testing "testing.md";
    #[cfg(not(doctest))] // the same
    sender "sender.md";
    #[cfg(not(doctest))] // the same
    explain "explain.md";
    #[cfg(not(doctest))] // Its code needs the package `hookgate-client`, which compiles this page too.
    reconciliation "reconciliation.md";
    command "command.md";
    #[cfg(not(doctest))] // Its code needs the package `hookgate-emulator`, which compiles this page too.
    emulator "emulator.md";
    #[cfg(not(doctest))] // Its code needs the package `hookgate-client`, which compiles this page too.
    client "client.md";
}
