//! The program that receives: it handles events, feeds the mirror, and is down now and then.

use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use hookgate::{Event, HandlerError, Receiver, layer::AlreadyHandled};
use hookgate_client::reconcile::{MemoryMirror, feed, is_known};
use hookgate_testing::{Transport, TransportError};
use http::{Request, Response};
use tokio::time::Instant;

use super::history::History;
use super::{HOUR, OUTAGES};
use crate::support::Whole;

pub const SECRET: &str = "whsec_made_up_for_this_test";
#[derive(Clone)]
pub struct Program {
    start: Instant,
    /// It takes the emulator's clock, so it is made later.
    receiver: Arc<OnceLock<Receiver>>,
    history: Arc<Mutex<History>>,
    mirror: Arc<MemoryMirror>,
}

impl Program {
    pub fn new(start: Instant, history: Arc<Mutex<History>>, mirror: Arc<MemoryMirror>) -> Self {
        Self {
            start,
            receiver: Arc::default(),
            history,
            mirror,
        }
    }

    pub fn open(&self, receiver: Receiver) {
        assert!(self.receiver.set(receiver).is_ok());
    }

    fn is_down(&self) -> bool {
        let passed = self.start.elapsed();
        let mut outages = OUTAGES.into_iter();
        outages.any(|(from, until)| (HOUR * from..HOUR * until).contains(&passed))
    }

    async fn on_event(self, event: Event) -> Result<Result<(), AlreadyHandled>, HandlerError> {
        if self.history.lock().unwrap().fails(&event) {
            return Err(HandlerError::from("no_room"));
        }
        let is_known = is_known(&*self.mirror, &event).await.unwrap();
        self.history.lock().unwrap().received(&event, is_known);
        feed(&*self.mirror, &event).await.unwrap();
        Ok(if is_known {
            Err(AlreadyHandled::new())
        } else {
            Ok(())
        })
    }
}

impl Transport for Program {
    async fn deliver(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        if self.is_down() {
            return Err("connection refused".into());
        }
        let receiver = self.receiver.get().ok_or("no receiver yet")?;
        let program = self.clone();
        let on_event = move |event: Event| program.on_event(event);
        let request = request.map(|body| Whole(Some(body)));
        Ok(receiver.handle(request, on_event).await)
    }
}
