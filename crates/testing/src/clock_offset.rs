//! Measures the offset between two clocks.

use hookgate::{Verifier, clock::UnixSeconds, event::Date, verify::Window};
use hookgate_record::LoggedDelivery;

use crate::log::DeliveryLog;

/// The time in seconds by which a receiver's clock is ahead of the sender's; negative where it is
/// behind.
///
/// A receiver whose clock is wrong by more than the window refuses every delivery. A clock that
/// drifts can reach this point overnight. Each delivery holds the time of the sender's clock, so a
/// log of deliveries shows the offset:
///
/// ```
/// use hookgate_record::LoggedDelivery;
/// use hookgate_testing::log::DeliveryLog;
/// use hookgate_testing::{ClockOffset, Signer};
/// use hookgate::{Secret, Verifier, clock::UnixSeconds, verify::Window};
///
/// let secret = Secret::new("whsec_made_up_for_this_example")?;
/// let log: DeliveryLog = (0..5)
///     .map(|number| {
///         let signed_at = 1_763_690_000 + number;
///         let headers = Signer::new(secret.clone()).at(UnixSeconds::new(signed_at)).headers("{}");
///         LoggedDelivery::new(UnixSeconds::new(signed_at + 40), headers, "{}")
///     })
///     .collect();
/// let offset = ClockOffset::of_log(&log, &Verifier::new(secret)).ok_or("no delivery is authentic")?;
/// assert_eq!((offset.median, offset.measurements), (40, 5));
/// assert!(offset.is_within(&Window::default()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockOffset {
    /// The lower end of the measured range.
    pub least: i64,
    /// The median of the measurements. A few deliveries that were late, or retried with their first
    /// timestamp, don't change it.
    pub median: i64,
    /// The upper end of the measured range.
    pub most: i64,
    /// The number of measurements.
    pub measurements: usize,
}

impl ClockOffset {
    /// Measures with every delivery of the log that is authentic under these keys, at any age:
    /// where the clock is wrong by more than the window, all of them are stale. The time of
    /// transfer makes the receiver's clock seem further ahead.
    ///
    /// `None` where there is no such delivery. A receiver that finds a delivery stale reads no
    /// body, so its line gives no measurement.
    #[must_use]
    pub fn of_log(log: &DeliveryLog, verifier: &Verifier) -> Option<Self> {
        let authentic = |delivery: &LoggedDelivery| {
            let head = delivery.head().ok()?;
            let signed_at = head.timestamp()?.seconds();
            // Verified at the second of its own timestamp, so that its age does not matter.
            let body = delivery
                .body
                .as_deref()
                .filter(|_| !delivery.unverifiable)?;
            verifier.verify(&head, body, signed_at).ok()?;
            Some(between(delivery.received_at, signed_at))
        };
        Self::of(log.deliveries().iter().filter_map(authentic))
    }

    /// Measures with every delivery that the receiver itself answered as authentic: for callers
    /// without a key.
    ///
    /// # Security
    /// The log is trusted. An attacker who could write to it could set any result.
    #[must_use]
    pub fn as_answered(log: &DeliveryLog) -> Option<Self> {
        let authentic = |delivery: &LoggedDelivery| {
            delivery.answer.as_ref()?.key.as_ref()?;
            let signed_at = delivery.head().ok()?.timestamp()?.seconds();
            Some(between(delivery.received_at, signed_at))
        };
        Self::of(log.deliveries().iter().filter_map(authentic))
    }

    /// Measures with the `Date` header of an answer, and with the times of this clock directly
    /// before the request and directly after the answer. All three are whole seconds, and so is the
    /// result.
    ///
    /// `None` where the header is not a date in the form of RFC 9110.
    ///
    /// ```
    /// use hookgate::clock::UnixSeconds;
    /// use hookgate_testing::ClockOffset;
    ///
    /// let (asked, answered) = (UnixSeconds::new(784_111_787), UnixSeconds::new(784_111_788));
    /// let offset = ClockOffset::of_date("Sun, 06 Nov 1994 08:49:37 GMT", asked, answered).ok_or("no date")?;
    /// assert_eq!((offset.least, offset.median, offset.most), (9, 10, 12));
    /// # Ok::<(), &str>(())
    /// ```
    #[must_use]
    pub fn of_date(header: &str, asked: UnixSeconds, answered: UnixSeconds) -> Option<Self> {
        let date = http_date(header)?;
        // Each clock may have stood at any point within its second.
        let least = between(asked, date).saturating_sub(1);
        let most = between(answered, date).saturating_add(1);
        Some(Self {
            least,
            median: least.saturating_add(most).div_euclid(2),
            most,
            measurements: 1,
        })
    }

    /// Whether a delivery that is signed now is accepted now.
    #[must_use]
    pub fn is_within(&self, window: &Window) -> bool {
        let signed = UnixSeconds::new(0);
        window.check(signed, UnixSeconds::new(self.median)).is_ok()
    }

    fn of(offsets: impl Iterator<Item = i64>) -> Option<Self> {
        let mut offsets: Vec<_> = offsets.collect();
        offsets.sort_unstable();
        Some(Self {
            least: *offsets.first()?,
            median: *offsets.get(offsets.len() / 2)?,
            most: *offsets.last()?,
            measurements: offsets.len(),
        })
    }
}

fn between(receiver: UnixSeconds, sender: UnixSeconds) -> i64 {
    receiver.as_i64().saturating_sub(sender.as_i64())
}

/// Reads `Sun, 06 Nov 1994 08:49:37 GMT`, the only form that is still written. The weekday is not
/// checked.
fn http_date(text: &str) -> Option<UnixSeconds> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (_, rest) = text.split_once(", ")?;
    let mut parts = rest.strip_suffix(" GMT")?.split(' ');
    let mut next = || parts.next();
    let (day, month, year, time) = (next()?, next()?, next()?, next()?);
    if next().is_some() {
        return None;
    }
    let month = (1..).zip(MONTHS).find(|(_, name)| *name == month)?.0;
    let date = format!("{year}-{month:02}-{day}T{time}Z");
    Date::parse(&date).ok()?.unix_seconds().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Signer;
    use hookgate::Secret;
    use hookgate_record::LoggedAnswer;

    const NOW: i64 = 1_763_690_000;

    fn secret() -> Secret {
        Secret::new("whsec_made_up_for_this_test").unwrap()
    }

    /// A delivery that was received this number of seconds after it was signed.
    fn late(by: i64) -> LoggedDelivery {
        let signer = Signer::new(secret()).at(UnixSeconds::new(NOW));
        LoggedDelivery::new(UnixSeconds::new(NOW + by), signer.headers("{}"), "{}")
    }

    fn of(deliveries: Vec<LoggedDelivery>) -> Option<ClockOffset> {
        ClockOffset::of_log(&deliveries.into_iter().collect(), &Verifier::new(secret()))
    }

    #[test]
    fn outliers_do_not_move_the_median_and_a_clock_that_is_far_off_is_still_seen() {
        let offset = of([1, 2, 0, 3_600, 1].map(late).to_vec()).unwrap();
        assert_eq!((offset.least, offset.median, offset.most), (0, 1, 3_600));
        let far = of([-90_000, -90_001, -90_000].map(late).to_vec()).unwrap();
        assert_eq!((far.median, far.measurements), (-90_000, 3));
        assert!(!far.is_within(&Window::default()));
    }

    #[test]
    fn only_what_is_authentic_counts() {
        let [mut forged, mut unread, mut redacted, mut bare] = [500; 4].map(late);
        forged.body = Some("{ }".into());
        unread.body = None;
        redacted.unverifiable = true;
        bare.headers = Vec::new();
        let others = vec![forged, unread, redacted, bare];
        assert_eq!(of(others.clone()), None);
        let offset = of([others, vec![late(7)]].concat()).unwrap();
        assert_eq!((offset.median, offset.measurements), (7, 1));
    }

    #[test]
    fn without_a_key_the_receivers_own_verdict_counts() {
        let answered = |by, key: Option<&str>| {
            let mut answer = LoggedAnswer::new(204, "handled");
            answer.key = key.map(str::to_owned);
            let mut delivery = late(by);
            delivery.answer = Some(answer);
            delivery
        };
        let log = [answered(3, Some("primary")), answered(900, None), late(900)];
        let offset = ClockOffset::as_answered(&log.into_iter().collect()).unwrap();
        assert_eq!((offset.median, offset.measurements), (3, 1));
    }

    #[test]
    fn the_edge_of_the_window_is_the_receivers() {
        let is_within = |by| of(vec![late(by)]).unwrap().is_within(&Window::default());
        assert_eq!(
            [300, 301, -300, -301].map(is_within),
            [true, false, true, false]
        );
    }

    #[test]
    fn what_is_not_a_date_measures_nothing() {
        let at = UnixSeconds::new(NOW);
        for header in [
            "",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT GMT",
            "Sun, 06 XXX 1994 08:49:37 GMT",
            "1994-11-06T08:49:37Z",
        ] {
            assert_eq!(ClockOffset::of_date(header, at, at), None, "{header:?}");
        }
    }

    #[test]
    fn a_round_trip_widens_what_a_date_says() {
        let at = |seconds: i64| UnixSeconds::new(784_111_777 + seconds);
        let header = "Sun, 06 Nov 1994 08:49:37 GMT";
        let offset = ClockOffset::of_date(header, at(0), at(0)).unwrap();
        assert_eq!((offset.least, offset.median, offset.most), (-1, 0, 1));
        let slow = ClockOffset::of_date(header, at(-2), at(4)).unwrap();
        assert_eq!((slow.least, slow.median, slow.most), (-3, 1, 5));
    }
}
