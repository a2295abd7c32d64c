//! Lists as streams that ask for the next page.

use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use serde::Deserialize;

use crate::error::{Error, ErrorKind};

/// One page of a list.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// The number of items of the whole list, if the service reports it.
    pub total: Option<u64>,
    /// The number of items before this page.
    pub offset: u64,
    /// Whether more items follow.
    pub has_more: bool,
}

/// The `meta` of a list. The overview shows `hasMore`, and the list of rows does not.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Meta {
    pub(crate) total: Option<u64>,
    pub(crate) offset: Option<u64>,
    pub(crate) has_more: Option<bool>,
}

impl<T> Page<T> {
    /// # Errors
    /// The answer is for another offset: a service that does not know `offset` would send the same
    /// page for ever.
    pub(crate) fn new(items: Vec<T>, meta: &Meta, offset: u64) -> Result<Self, Error> {
        if let Some(other) = meta.offset.filter(|other| *other != offset) {
            let message = format!("asked for offset {offset}, the answer has offset {other}");
            return Err(Error::new(ErrorKind::Answer, message));
        }
        let end = offset.saturating_add(items.len() as u64);
        let by_total = || meta.total.is_some_and(|total| end < total);
        // An empty page ends the list, whatever it says of itself.
        let has_more = !items.is_empty() && meta.has_more.unwrap_or_else(by_total);
        Ok(Self {
            items,
            total: meta.total,
            offset,
            has_more,
        })
    }
}

type Fetching<T> = Pin<Box<dyn Future<Output = Result<Page<T>, Error>> + Send>>;

/// A list: a [`Stream`] that requests the next page after all items of the page before. An error
/// ends it.
///
/// Pages are selected by offset. If other items are created or deleted meanwhile, an item may come
/// twice, or not at all.
#[must_use = "a list asks for nothing until it is read"]
pub struct List<T> {
    fetch: Box<dyn FnMut(u64) -> Fetching<T> + Send>,
    fetching: Option<Fetching<T>>,
    items: VecDeque<T>,
    next: Option<u64>,
}

impl<T> List<T> {
    pub(crate) fn new(fetch: impl FnMut(u64) -> Fetching<T> + Send + 'static) -> Self {
        Self {
            fetch: Box::new(fetch),
            fetching: None,
            items: VecDeque::new(),
            next: Some(0),
        }
    }

    /// Skips this number of items at the beginning.
    pub fn skip(mut self, items: u64) -> Self {
        self.next = Some(items);
        self
    }

    /// Returns the next item, or `None` at the end. If this future is dropped, no item is lost.
    ///
    /// # Errors
    /// The request for the page failed; the list then ends.
    pub async fn next(&mut self) -> Option<Result<T, Error>> {
        poll_fn(|context| self.poll(context)).await
    }

    /// Returns all remaining items.
    ///
    /// # Errors
    /// The request for a page failed.
    pub async fn all(mut self) -> Result<Vec<T>, Error> {
        let mut all = Vec::new();
        while let Some(item) = self.next().await {
            all.push(item?);
        }
        Ok(all)
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<T, Error>>> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Poll::Ready(Some(Ok(item)));
            }
            let fetching = match &mut self.fetching {
                Some(fetching) => fetching,
                None => {
                    let Some(offset) = self.next.take() else {
                        return Poll::Ready(None);
                    };
                    self.fetching.insert((self.fetch)(offset))
                }
            };
            let page = ready!(fetching.as_mut().poll(context));
            self.fetching = None;
            match page {
                Ok(page) => {
                    let end = page.offset.saturating_add(page.items.len() as u64);
                    self.next = page.has_more.then_some(end);
                    self.items = page.items.into();
                }
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}

/// A list holds its items by value and its future in a box of its own.
impl<T> Unpin for List<T> {}

impl<T> Stream for List<T> {
    type Item = Result<T, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll(context)
    }
}

impl<T> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("List").finish_non_exhaustive()
    }
}
