//! The conformance suite for stores.

mod probe;
mod steps;
mod table;

use std::fmt;

use tokio::runtime::{Handle, RuntimeFlavor};

use self::probe::Probe;
use hookgate::dedupe::Capacity;

pub use self::probe::StoreUnderTest;

/// Checks a store against the contract of [`DedupeStore`](hookgate::DedupeStore), rule by rule.
///
/// The racers of [`StoreRule::OneWinner`] must run at the same time, so the suite needs tokio's
/// **multi-thread** runtime, with time enabled if `advance` sleeps.
///
/// A store with a clock that is moved by hand:
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use hookgate_testing::{StoreConformance, StoreUnderTest};
/// use hookgate::{
///     DedupeStore, MemoryStore,
///     clock::{ManualClock, UnixSeconds},
///     dedupe::Capacity,
/// };
///
/// struct Local(ManualClock);
///
/// impl StoreUnderTest for Local {
///     async fn open(&self, capacity: Option<Capacity>) -> Option<Arc<dyn DedupeStore>> {
///         let capacity = capacity.unwrap_or_default();
///         let store = MemoryStore::new(capacity).with_clock(self.0.clone());
///         Some(Arc::new(store))
///     }
///
///     async fn advance(&self, time: Duration) {
///         self.0.advance(time);
///     }
/// }
///
/// // In a test: #[tokio::test(flavor = "multi_thread")].
/// let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
/// let clock = ManualClock::at(UnixSeconds::new(1_763_690_000));
/// runtime.block_on(StoreConformance::new(Local(clock)).run()).assert_kept();
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// A store whose engine has its own clock sleeps in `advance`, for a `unit` well above a round
/// trip, and has fewer `races`. One without a capacity returns `None` from `open` where a capacity
/// is asked for.
#[derive(Debug)]
pub struct StoreConformance<H> {
    harness: H,
}

impl<H: StoreUnderTest> StoreConformance<H> {
    /// Makes a suite for the stores that this harness opens.
    #[must_use]
    pub fn new(harness: H) -> Self {
        Self { harness }
    }

    /// Checks every rule, one after the other. Each rule gets its own store.
    ///
    /// # Panics
    /// Outside a multi-thread tokio runtime: there the race would prove less than the rule says.
    pub async fn run(&self) -> Report<StoreRule> {
        let mut findings = Vec::with_capacity(StoreRule::ALL.len());
        for rule in StoreRule::ALL {
            findings.push((*rule, self.check(*rule).await));
        }
        Report { findings }
    }

    /// Checks one rule.
    ///
    /// # Panics
    /// As [`run`](Self::run) does.
    pub async fn check(&self, rule: StoreRule) -> Finding {
        assert_multi_thread();
        let harness = &self.harness;
        let Some(store) = harness.open(rule.capacity()).await else {
            return match rule.capacity() {
                Some(_) => Finding::NotChecked,
                None => Finding::Broken("the store was not opened".into()),
            };
        };
        let probe = Probe::new(store, harness.unit());
        let kept = match rule {
            StoreRule::OneWinner => steps::one_winner(&probe, harness.races()).await,
            StoreRule::Table => table::every_cell(harness, &probe).await,
            StoreRule::LeaseEnds => steps::lease_ends(harness, &probe).await,
            StoreRule::StaleToken => steps::stale_token(harness, &probe).await,
            StoreRule::ReleaseReopens => steps::release_reopens(&probe).await,
            StoreRule::RenewalHolds => steps::renewal_holds(harness, &probe).await,
            StoreRule::RepeatedCalls => steps::repeated_calls(harness, &probe).await,
            StoreRule::RepeatsEnd => steps::repeats_end(harness, &probe).await,
            StoreRule::RetentionEnds => steps::retention_ends(harness, &probe).await,
            StoreRule::DuplicatesExtendNothing => {
                steps::duplicates_extend_nothing(harness, &probe).await
            }
            StoreRule::RetentionIsEachRecords => {
                steps::retention_is_each_records(harness, &probe).await
            }
            StoreRule::ScopesApart => steps::scopes_are_separate(&probe).await,
            StoreRule::RetryAfter => steps::retry_after(harness, &probe).await,
            StoreRule::NewestRemembered => steps::newest_remembered(harness, &probe, 0).await,
            StoreRule::NewestRememberedAfterReads => {
                steps::newest_remembered(harness, &probe, 3).await
            }
            StoreRule::RunningNeverEvicted => steps::running_never_evicted(&probe).await,
            StoreRule::FullStoreRefuses => steps::a_full_store_refuses(harness, &probe).await,
        };
        match kept {
            Ok(()) => Finding::Kept,
            Err(broken) => Finding::Broken(broken),
        }
    }
}

/// In another runtime a race would prove less than its rule says.
pub(crate) fn assert_multi_thread() {
    assert!(
        Handle::try_current()
            .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread),
        "the suite needs tokio's multi-thread runtime: #[tokio::test(flavor = \"multi_thread\")]"
    );
}

/// Makes an enum of rules of this table: with `ALL`, in the order in which they are checked, and
/// what each says as its `Display`.
macro_rules! rules {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $rule:ident $says:literal;)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* $rule,)*
        }

        impl $name {
            /// Every rule, in the order in which they are checked.
            pub const ALL: &[Self] = &[$(Self::$rule,)*];
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $(Self::$rule => $says,)* })
            }
        }
    };
}

pub(crate) use rules;

rules! {
    /// A rule of the contract that every store keeps.
    StoreRule {
        /// 64 racers for one event have one winner.
        OneWinner "64 racers have one winner";
        /// Every call answers each state of the record as the table of
        /// [`DedupeStore`](hookgate::DedupeStore) says.
        Table "every call answers as the table says";
        /// A lease that has ended lets another claim succeed, and not before.
        LeaseEnds "the end of a lease lets a successor in, and not before";
        /// Calls with a claim token that lost its claim change nothing.
        StaleToken "a stale token changes nothing";
        /// A released event can be claimed at once.
        ReleaseReopens "release reopens";
        /// A renewed claim holds until its new end.
        RenewalHolds "renewal holds";
        /// A call that is repeated because its reply was lost gets the true answer.
        RepeatedCalls "every call repeated after a lost reply tells the truth";
        /// A commit can be repeated for one lease, and is `Lost` after that.
        RepeatsEnd "a commit is repeatable for one lease, and then lost";
        /// A done record is forgotten when its retention ends, and not before.
        RetentionEnds "retention forgets then and not before";
        /// A duplicate does not extend the retention.
        DuplicatesExtendNothing "a duplicate does not extend the retention";
        /// Each record keeps its own retention, shorter or longer than the others'.
        RetentionIsEachRecords "each record keeps its own retention";
        /// The same id under two scopes is two events.
        ScopesApart "the same id under two scopes is two events";
        /// The time that the store reports for a running claim is no longer than the rest of its
        /// lease.
        RetryAfter "a running claim is reported with what is left of its lease";
        /// At capacity, the newest events are remembered.
        NewestRemembered "the newest are remembered at capacity";
        /// At capacity, the newest events are remembered, also after each of the older ones was
        /// read.
        NewestRememberedAfterReads "the newest are remembered at capacity, also after each old one was read";
        /// Running claims are not evicted, even in a full store.
        RunningNeverEvicted "running claims survive a full store";
        /// A store that is set to refuse accepts no fresh event when it is full, and can commit
        /// every event that it accepted.
        FullStoreRefuses "a full store told to refuse refuses, and commits what it took";
    }
}

impl StoreRule {
    fn capacity(self) -> Option<Capacity> {
        match self {
            Self::NewestRemembered
            | Self::NewestRememberedAfterReads
            | Self::RunningNeverEvicted => Some(steps::EVICTING),
            Self::FullStoreRefuses => Some(steps::REFUSING),
            _ => None,
        }
    }
}

/// The result of the suite for one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// The rule is kept.
    Kept,
    /// The rule is broken; the text says how.
    Broken(String),
    /// The store can't have the capacity that the rule is about.
    NotChecked,
}

/// The results of a suite, with its rules.
#[derive(Clone, Debug)]
#[must_use = "a report says whether the contract is kept"]
pub struct Report<R> {
    pub(crate) findings: Vec<(R, Finding)>,
}

impl<R: Copy + fmt::Display> Report<R> {
    /// Returns each rule and its result.
    #[must_use]
    pub fn findings(&self) -> &[(R, Finding)] {
        &self.findings
    }

    /// The rules that are broken.
    pub fn broken(&self) -> impl Iterator<Item = R> {
        self.findings
            .iter()
            .filter(|(_, finding)| matches!(finding, Finding::Broken(_)))
            .map(|(rule, _)| *rule)
    }

    /// Fails a test unless every rule that was checked is kept.
    ///
    /// # Panics
    /// Where a rule is broken. The message is the report.
    pub fn assert_kept(&self) {
        assert!(self.broken().next().is_none(), "\n{self}");
    }
}

impl<R: fmt::Display> fmt::Display for Report<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (rule, finding) in &self.findings {
            match finding {
                Finding::Kept => writeln!(f, "kept         {rule}")?,
                Finding::NotChecked => writeln!(f, "not checked  {rule}")?,
                Finding::Broken(how) => writeln!(f, "BROKEN       {rule}: {how}")?,
            }
        }
        Ok(())
    }
}
