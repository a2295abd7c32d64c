//! The table of faults: the control API, the options, the page and the docs are made of it.

/// Where a fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// On the way from the emulator to a receiver.
    Delivery,
    /// In the answer of the API.
    Api,
}

/// A row of the table.
#[derive(Debug)]
pub(crate) struct About {
    pub(crate) fault: Fault,
    pub(crate) name: &'static str,
    pub(crate) place: Where,
    pub(crate) about: &'static str,
}

macro_rules! faults {
    ($($place:ident $fault:ident $name:literal: $about:literal;)*) => {
        /// A fault that can be asked for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum Fault {
            $($fault,)*
        }

        /// Every fault, those of deliveries first.
        pub(crate) const FAULTS: &[About] = &[
            $(About { fault: Fault::$fault, name: $name, place: Where::$place, about: $about },)*
        ];
    };
}

faults! {
    Delivery AlteredByte "altered-byte": "one byte of the body is changed after it was signed";
    Delivery Stale "stale": "the delivery is signed with a time 10 minutes ago";
    Delivery Ahead "ahead": "the delivery is signed with a time 10 minutes ahead";
    Delivery Duplicated "duplicated": "the delivery arrives twice, side by side";
    Delivery Reordered "reordered": "the delivery is held until the subscription's next one has ended, for 10 seconds at most";
    Delivery LostAnswer "lost-answer": "the delivery arrives and is answered, but its answer is lost";
    Delivery Slow "slow": "the delivery arrives after 3 seconds, and its answer would take 3 more: the sender hangs up after 5";
    Delivery Reset "reset": "the connection is reset in the middle of the body";
    Delivery WrongSecret "wrong-secret": "the delivery is signed with another secret";
    Delivery Gzip "gzip": "the body is compressed on the way, with Content-Encoding: gzip";
    Api Status429 "status-429": "the API answers 429 RATE_LIMITED and does nothing";
    Api Status500 "status-500": "the API answers 500 INTERNAL_ERROR and does nothing";
    Api SlowAnswer "slow-answer": "the API does as requested, and answers 10 seconds later";
    Api ClosedAfterWrite "closed-after-write": "the API makes the change and closes the connection without an answer; reads are not affected";
}

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
