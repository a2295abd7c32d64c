//! The table of faults: the control API, the options, the page and the docs are made of it.

/// Where a fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// On the way from the emulator to a receiver.
    Delivery,
    /// In the answer of the API.
    Api,
}

/// A fault that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Fault {
    AlteredByte,
    Stale,
    Ahead,
    Duplicated,
    Reordered,
    LostAnswer,
    Slow,
    Reset,
    WrongSecret,
    Gzip,
    Status429,
    Status500,
    SlowAnswer,
    ClosedAfterWrite,
}

/// A row of the table.
#[derive(Debug)]
pub(crate) struct About {
    pub(crate) fault: Fault,
    pub(crate) name: &'static str,
    pub(crate) place: Where,
    pub(crate) about: &'static str,
}

/// Every fault, those of deliveries first.
pub(crate) const FAULTS: &[About] = &[
    About {
        fault: Fault::AlteredByte,
        name: "altered-byte",
        place: Where::Delivery,
        about: "one byte of the body is changed after it was signed",
    },
    About {
        fault: Fault::Stale,
        name: "stale",
        place: Where::Delivery,
        about: "the delivery is signed with a time 10 minutes ago",
    },
    About {
        fault: Fault::Ahead,
        name: "ahead",
        place: Where::Delivery,
        about: "the delivery is signed with a time 10 minutes ahead",
    },
    About {
        fault: Fault::Duplicated,
        name: "duplicated",
        place: Where::Delivery,
        about: "the delivery arrives twice, side by side",
    },
    About {
        fault: Fault::Reordered,
        name: "reordered",
        place: Where::Delivery,
        about: "the delivery is held until the subscription's next one has ended, for 10 seconds at most",
    },
    About {
        fault: Fault::LostAnswer,
        name: "lost-answer",
        place: Where::Delivery,
        about: "the delivery arrives and is answered, but its answer is lost",
    },
    About {
        fault: Fault::Slow,
        name: "slow",
        place: Where::Delivery,
        about: "the delivery arrives after 3 seconds, and its answer would take 3 more: the sender hangs up after 5",
    },
    About {
        fault: Fault::Reset,
        name: "reset",
        place: Where::Delivery,
        about: "the connection is reset in the middle of the body",
    },
    About {
        fault: Fault::WrongSecret,
        name: "wrong-secret",
        place: Where::Delivery,
        about: "the delivery is signed with another secret",
    },
    About {
        fault: Fault::Gzip,
        name: "gzip",
        place: Where::Delivery,
        about: "the body is compressed on the way, with Content-Encoding: gzip",
    },
    About {
        fault: Fault::Status429,
        name: "status-429",
        place: Where::Api,
        about: "the API answers 429 RATE_LIMITED and does nothing",
    },
    About {
        fault: Fault::Status500,
        name: "status-500",
        place: Where::Api,
        about: "the API answers 500 INTERNAL_ERROR and does nothing",
    },
    About {
        fault: Fault::SlowAnswer,
        name: "slow-answer",
        place: Where::Api,
        about: "the API does what it is asked for and answers 10 seconds later",
    },
    About {
        fault: Fault::ClosedAfterWrite,
        name: "closed-after-write",
        place: Where::Api,
        about: "the API makes the change and closes the connection without an answer; reads are not affected",
    },
];

impl Fault {
    pub(crate) fn named(name: &str) -> Option<Self> {
        let row = FAULTS.iter().find(|row| row.name == name);
        row.map(|row| row.fault)
    }

    pub(crate) fn about(self) -> &'static About {
        // The table has the rows in the order of the enum: a test compares them.
        &FAULTS[self as usize]
    }

    pub(crate) fn name(self) -> &'static str {
        self.about().name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_each_fault_in_the_order_of_the_enum() {
        for (at, row) in FAULTS.iter().enumerate() {
            assert_eq!(row.fault as usize, at);
            assert_eq!(Fault::named(row.name), Some(row.fault));
            assert_eq!(row.fault.name(), row.name);
            assert!(!row.about.is_empty());
        }
        assert_eq!(FAULTS.len(), Fault::ClosedAfterWrite as usize + 1);
        assert_eq!(Fault::named("none"), None);
    }
}
