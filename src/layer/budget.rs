//! The limit on the bytes that all bodies under way hold together. Until a body is complete, it is unknown whether it is
//! authentic: a sender without the secret must not decide how much memory the receiver takes.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::task::{Context, Poll};

use crate::sync::{Mutex, MutexGuard};
use crate::verify::SharedBuffer;

use crate::config::{ConfigError, ConfigErrorKind};

/// Bodies up to this size may use the whole budget, larger ones three quarters of it.
const SMALL: usize = 64 << 10;

/// The bytes that bodies under way hold, and the limit for them.
///
/// A body is counted once it is held across a wait. A body that arrives in one piece, as most deliveries do, is never counted.
/// The budget counts the memory of the buffers, not the length of the bodies, and never an announced length.
///
/// If there is no room for a buffer to grow, the largest buffer under way is freed, and its reader is woken. Of several buffers of
/// the largest size, the buffer of the oldest body is freed. Sizes are powers of two, so equal sizes are the rule; a client that
/// holds many buffers and sends nothing more must not keep room from bodies that arrive later.
pub(crate) struct BodyBudget {
    limit: usize,
    bodies: Mutex<Bodies>,
}

#[derive(Default)]
struct Bodies {
    held: usize,
    held_by_large: usize,
    /// In the order of their sizes. Of two bodies of the same size, the older one is the last.
    under_way: BTreeMap<Held, SharedBuffer>,
    next: u64,
}

/// One body under way: the number of bytes in its buffer, and its number. A body that arrives later has a larger number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    bytes: usize,
    number: Reverse<u64>,
}

/// There was no room, and this body was the oldest of the largest ones. Its buffer is freed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BudgetSpent;

impl BodyBudget {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            bodies: Mutex::default(),
        }
    }

    /// Checks that there is room for one body of the largest size.
    pub(super) fn check(&self, max_body: usize) -> Result<(), ConfigError> {
        let needed = if max_body > SMALL {
            max_body.saturating_add(max_body / 3)
        } else {
            max_body
        };
        if self.limit < needed {
            let given = self.limit;
            let kind = ConfigErrorKind::BodyBudgetTooSmall { needed, given };
            return Err(ConfigError::new(kind));
        }
        Ok(())
    }

    /// Returns the bytes that are held, and their limit.
    #[cfg(any(feature = "metrics", test))]
    pub(crate) fn held(&self) -> (usize, usize) {
        (self.lock().held, self.limit)
    }

    /// Returns the share of a body that holds no bytes yet.
    pub(super) fn share(&self) -> BodyShare<'_> {
        BodyShare {
            budget: self,
            body: None,
        }
    }

    fn for_large(&self) -> usize {
        self.limit - self.limit / 4
    }

    fn lock(&self) -> MutexGuard<'_, Bodies> {
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bodies {
    fn add(&mut self, body: Held, buffer: SharedBuffer) {
        self.held += body.bytes;
        self.held_by_large += large(body);
        self.under_way.insert(body, buffer);
    }

    /// Removes a body; `None` if it was already freed.
    fn remove(&mut self, body: Held) -> Option<SharedBuffer> {
        let buffer = self.under_way.remove(&body)?;
        self.held -= body.bytes;
        self.held_by_large -= large(body);
        Some(buffer)
    }
}

fn large(body: Held) -> usize {
    if body.bytes > SMALL { body.bytes } else { 0 }
}

/// The share of one body in the budget. It is given back when it is dropped.
pub(super) struct BodyShare<'b> {
    budget: &'b BodyBudget,
    body: Option<(Held, SharedBuffer)>,
}

impl BodyShare<'_> {
    /// Returns the buffer once it may hold this many bytes. If there is no room, frees the largest buffers under way.
    pub(super) fn hold(&mut self, bytes: usize) -> Result<&SharedBuffer, BudgetSpent> {
        let (held, buffer) = self
            .body
            .get_or_insert_with(|| (Held::NOTHING, SharedBuffer::default()));
        if bytes <= held.bytes {
            return Ok(buffer);
        }
        let mut freed = Vec::new();
        let mut bodies = self.budget.lock();
        if *held == Held::NOTHING {
            held.number = Reverse(bodies.next);
            bodies.next += 1;
        } else if bodies.remove(*held).is_none() {
            return Err(BudgetSpent);
        }
        held.bytes = bytes;
        bodies.add(*held, buffer.clone());
        // If `held_by_large` is over its limit, some large body exists, so the largest body of all is a large one.
        while (bodies.held > self.budget.limit || bodies.held_by_large > self.budget.for_large())
            && let Some((&largest, _)) = bodies.under_way.last_key_value()
        {
            freed.extend(bodies.remove(largest));
        }
        let stays = bodies.under_way.contains_key(held);
        drop(bodies);
        // Done outside the lock: a waker is code of the runtime.
        freed.iter().for_each(SharedBuffer::free);
        if stays { Ok(buffer) } else { Err(BudgetSpent) }
    }

    /// Ready when the buffer was freed to make room for others.
    pub(super) fn poll_spent(&self, context: &Context<'_>) -> Poll<BudgetSpent> {
        match &self.body {
            Some((_, buffer)) => buffer.poll_freed(context).map(|()| BudgetSpent),
            None => Poll::Pending,
        }
    }

    /// The body is complete: its share is given back, and its buffer can no longer be freed.
    pub(super) fn finish(&mut self) -> Result<(), BudgetSpent> {
        let Some((held, _)) = self.body.take() else {
            return Ok(());
        };
        let removed = self.budget.lock().remove(held);
        removed.map(drop).ok_or(BudgetSpent)
    }
}

impl Drop for BodyShare<'_> {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

impl Held {
    const NOTHING: Self = Self {
        bytes: 0,
        number: Reverse(0),
    };
}

#[cfg(test)]
#[cfg(shuttle)]
mod races {
    use std::sync::Arc;

    use shuttle::thread;

    use super::*;

    /// In every order: the sum stays within the limit. A body that was ended has no bytes, and any other body has all its
    /// bytes. All shares are given back.
    #[test]
    fn a_body_has_all_its_bytes_or_none_and_the_budget_is_kept() {
        crate::dedupe::races::explore(|| {
            let budget = Arc::new(BodyBudget::new(6));
            let readers: Vec<_> = (1..4)
                .map(|step| {
                    let budget = Arc::clone(&budget);
                    thread::spawn(move || {
                        let mut share = budget.share();
                        let mut taken = 0;
                        let mut buffer = None;
                        for length in [step, 2 * step] {
                            match share.hold(length) {
                                Ok(here) => {
                                    here.add(&vec![b'x'; length - taken], length);
                                    taken = length;
                                    buffer = Some(here.clone());
                                }
                                Err(BudgetSpent) => return,
                            }
                            assert!(budget.held().0 <= 6, "too much is held");
                        }
                        let finished = share.finish();
                        let bytes = buffer.unwrap().take();
                        if finished.is_ok() {
                            assert_eq!(bytes.map(|bytes| bytes.len()), Some(taken));
                        }
                    })
                })
                .collect();
            readers
                .into_iter()
                .for_each(|reader| reader.join().unwrap());
            assert_eq!(budget.held().0, 0, "not all was given back");
        });
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    use super::*;

    /// A body's share, and the bytes that it holds with its age; `None` once it was ended.
    type Body<'b> = (BodyShare<'b>, Option<(usize, Reverse<usize>)>);

    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_body_that_gives_way_is_woken_and_freed_at_once() {
        let budget = BodyBudget::new(10);
        let (mut large, mut small) = (budget.share(), budget.share());
        let buffer = large.hold(6).unwrap().clone();
        buffer.add(b"abcdef", 6);
        let woken = Arc::new(Woken(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&woken));
        let context = Context::from_waker(&waker);
        assert!(large.poll_spent(&context).is_pending());
        assert!(small.hold(4).is_ok());
        assert_eq!(woken.0.load(Ordering::SeqCst), 0);
        assert!(small.hold(5).is_ok());
        assert_eq!(woken.0.load(Ordering::SeqCst), 1);
        assert_eq!(large.poll_spent(&context), Poll::Ready(BudgetSpent));
        assert_eq!(buffer.take(), None);
        assert!(large.hold(7).is_err());
        assert_eq!(large.finish(), Err(BudgetSpent));
        assert_eq!(budget.held(), (5, 10));
        assert_eq!(small.finish(), Ok(()));
        assert_eq!(budget.held(), (0, 10));
    }

    #[test]
    fn a_new_body_is_not_the_one_ended_beside_idle_bodies_of_its_size() {
        const SIZE: usize = 2 * SMALL;
        let budget = BodyBudget::new(8 * SIZE); // six large bodies
        let mut idle: Vec<_> = (0..6).map(|_| budget.share()).collect();
        assert!(idle.iter_mut().all(|share| share.hold(SIZE).is_ok()));
        let mut new = Vec::new();
        for ended in 1..=6 {
            let mut share = budget.share();
            for bytes in [SMALL, SIZE] {
                assert!(share.hold(bytes).is_ok(), "the new body was ended");
            }
            new.push(share);
            let context = Context::from_waker(Waker::noop());
            let spent = idle.iter().map(|share| share.poll_spent(&context));
            let spent: Vec<_> = spent.map(|spent| spent.is_ready()).collect();
            let oldest: Vec<_> = (0..6).map(|number| number < ended).collect();
            assert_eq!(spent, oldest);
        }
        assert!(new.iter_mut().all(|share| share.finish().is_ok()));
    }

    /// Compares the budget with a second, slow bookkeeping. The body that is ended is always the largest of those that count
    /// for the exhausted limit, and the oldest of the largest ones.
    #[test]
    fn the_budget_does_what_a_slow_and_obvious_one_does() {
        const LIMIT: usize = 4 * SMALL;
        let mut random = 1_u64;
        let mut below = move |end: usize| {
            // xorshift64
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            usize::try_from(random >> 33).unwrap() % end
        };
        for _ in 0..300 {
            let budget = BodyBudget::new(LIMIT);
            // For each body: its share, its bytes, and its number in order of arrival; `None` once it was ended.
            let mut bodies: Vec<Body<'_>> = Vec::new();
            let mut came = 0;
            for _ in 0..100 {
                if bodies.is_empty() || below(4) == 0 {
                    bodies.push((budget.share(), Some((0, Reverse(usize::MAX)))));
                }
                let at = below(bodies.len());
                if below(6) == 0 {
                    let (mut share, expected) = bodies.swap_remove(at);
                    match below(2) {
                        0 => assert_eq!(share.finish().is_ok(), expected.is_some()),
                        _ => drop(share),
                    }
                } else {
                    let more = 1 + below(2 * SMALL);
                    let Some((held, number)) = bodies[at].1 else {
                        // A body that was ended gets no larger buffer.
                        assert!(bodies[at].0.hold(usize::MAX).is_err());
                        continue;
                    };
                    let number = if held == 0 { Reverse(came) } else { number };
                    came += usize::from(held == 0);
                    bodies[at].1 = Some((held + more, number));
                    let asked = bodies[at].0.hold(held + more).is_ok();
                    loop {
                        let live = || bodies.iter().filter_map(|(_, body)| *body);
                        let all: usize = live().map(|(held, _)| held).sum();
                        let large = live().map(|(held, _)| held).filter(|held| *held > SMALL);
                        if all <= LIMIT && large.sum::<usize>() <= LIMIT / 4 * 3 {
                            break;
                        }
                        let largest = live().filter(|(held, _)| *held > 0).max();
                        for (_, body) in &mut bodies {
                            if *body == largest {
                                *body = None;
                            }
                        }
                    }
                    assert_eq!(asked, bodies[at].1.is_some());
                }
                let held = bodies.iter().filter_map(|(_, body)| *body);
                let held: usize = held.map(|(held, _)| held).sum();
                assert_eq!(budget.held(), (held, LIMIT));
                assert!(held <= LIMIT);
            }
            drop(bodies);
            assert_eq!(budget.held(), (0, LIMIT));
            assert_eq!(budget.lock().held_by_large, 0);
            assert!(budget.lock().under_way.is_empty());
        }
    }
}
