//! The numbers of a provider's look-ups.

/// The numbers of remembered answers and of look-ups under way. From [`Keys::lookup_stats`](crate::Keys::lookup_stats);
/// [`Keys::forget`](crate::Keys::forget) has an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LookupStats {
    /// Subscriptions whose rings are remembered, including rings that have ended and were not yet removed.
    pub found: usize,
    /// Ids that are remembered as unknown, counted in the same way.
    pub unknown: usize,
    /// Rings that were forgotten before their end to make room, since the start. If it grows,
    /// [`lookup_cache`](crate::ReceiverBuilder::lookup_cache) is too small.
    pub evicted: u64,
    /// Look-ups under way; at most 16.
    pub running: usize,
    /// Deliveries that wait for a look-up, whether it is under way or queued; at most 1,024.
    pub waiting: usize,
}
