//! The one way to the recorder of metrics that the program has installed.

use std::borrow::Cow;
use std::iter;
use std::time::Duration;

use metrics::{Key, KeyName, Label, Level, Metadata, Recorder, SharedString};

use super::known_keys::KnownKeys;

use super::names::{Kind, Table};
use crate::caught::caught;

static METADATA: Metadata<'static> = Metadata::new("hookgate", Level::INFO, Some(module_path!()));

/// Records metrics that share their first label: the name of a receiver or of an inbox.
#[derive(Clone, Copy)]
pub(crate) struct Meter<'a> {
    source: (&'static str, &'a SharedString),
    recorder: &'a dyn Recorder,
    known: Option<&'a KnownKeys>,
}

pub(crate) type Labels<const N: usize> = [(&'static str, SharedString); N];

impl<'a> Meter<'a> {
    /// Calls `record` with a meter. A recorder that panics does no harm.
    #[expect(clippy::disallowed_methods, reason = "this is the one way")]
    pub(crate) fn with(source: (&'static str, &SharedString), record: impl FnOnce(Meter<'_>)) {
        let _ = caught(|| {
            metrics::with_recorder(|recorder| {
                record(Meter {
                    source,
                    recorder,
                    known: None,
                });
            });
        });
    }

    /// Uses these keys again, which are all of this source, and adds to them.
    pub(super) fn knowing(self, known: &'a KnownKeys) -> Self {
        Self {
            known: Some(known),
            ..self
        }
    }

    /// Adds one to a counter whose key, with these labels' values, is known. Returns false if it is not.
    pub(super) fn count_known<const N: usize>(self, name: &'static str, values: [&str; N]) -> bool {
        let known = self.known.and_then(|known| known.find(name, values));
        if let Some(key) = known {
            self.recorder.register_counter(key, &METADATA).increment(1);
        }
        known.is_some()
    }

    fn key<const N: usize>(self, name: &'static str, labels: Labels<N>) -> Cow<'a, Key> {
        let values = labels.each_ref().map(|(_, value)| &**value);
        if let Some(key) = self.known.and_then(|known| known.find(name, values)) {
            return Cow::Borrowed(key);
        }
        let (label, value) = self.source;
        let labels = labels.map(|(name, value)| Label::new(name, value));
        let all = iter::once(Label::new(label, value.clone())).chain(labels);
        let key = Key::from_parts(KeyName::from_const_str(name), all.collect::<Vec<_>>());
        if let Some(known) = self.known {
            known.insert(&key);
        }
        Cow::Owned(key)
    }

    /// Adds to a counter. Zero registers the counter without counting.
    pub(crate) fn count<const N: usize>(self, name: &'static str, more: u64, labels: Labels<N>) {
        let key = self.key(name, labels);
        self.recorder
            .register_counter(&key, &METADATA)
            .increment(more);
    }

    /// Sets a counter to a total that is counted elsewhere.
    pub(crate) fn total(self, name: &'static str, total: u64) {
        let key = self.key(name, []);
        self.recorder
            .register_counter(&key, &METADATA)
            .absolute(total);
    }

    pub(crate) fn set<const N: usize>(self, name: &'static str, value: f64, labels: Labels<N>) {
        let key = self.key(name, labels);
        self.recorder.register_gauge(&key, &METADATA).set(value);
    }

    pub(crate) fn time<const N: usize>(
        self,
        name: &'static str,
        time: Duration,
        labels: Labels<N>,
    ) {
        let key = self.key(name, labels);
        self.recorder
            .register_histogram(&key, &METADATA)
            .record(time);
    }

    /// Describes each metric of a table to the recorder.
    pub(crate) fn describe(self, table: Table) {
        for &(kind, name, unit, help) in table {
            let (key, unit) = (KeyName::from_const_str(name), Some(unit));
            match kind {
                Kind::Counter => self.recorder.describe_counter(key, unit, help.into()),
                Kind::Gauge => self.recorder.describe_gauge(key, unit, help.into()),
                Kind::Histogram => self.recorder.describe_histogram(key, unit, help.into()),
            }
        }
    }
}
