//! A folder for a log, and deliveries to write into it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use hookgate::clock::UnixSeconds;
use hookgate_record::{LoggedAnswer, LoggedDelivery};
use hookgate_testing::log::LoggedDeliveryExt;

/// A directory of a test's own, which goes with it.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("log-{}-{number}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A delivery that was handled, whose event has this id.
pub(super) fn delivery(id: &str) -> LoggedDelivery {
    delivery_of(format!(
        r#"{{"id":"{id}","type":"page.created","data":{{}}}}"#
    ))
}

pub(super) fn delivery_of(body: impl Into<bytes::Bytes>) -> LoggedDelivery {
    let headers = [
        ("content-type", "application/json"),
        ("x-service-timestamp", "1763690000"),
    ];
    let mut delivery = LoggedDelivery::new(UnixSeconds::new(1_763_690_001), headers, body);
    delivery.answer = Some(LoggedAnswer::new(204, "handled"));
    delivery
}

pub(super) fn ids<'a>(deliveries: impl IntoIterator<Item = &'a LoggedDelivery>) -> Vec<String> {
    let ids = deliveries.into_iter().map(LoggedDelivery::event_id);
    ids.map(Option::unwrap).collect()
}
