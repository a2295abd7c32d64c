//! One attempt with its fault: what is signed, what is changed after that, and how it goes through the network.

use std::time::Duration;

use bytes::Bytes;
use hookgate::clock::UnixSeconds;
use hookgate_testing::sender::{Attempted, NetworkFault, Subscription};
use http::{HeaderValue, Request, header};

use super::record::Number;
use super::route::Reset;
use crate::faults::Fault;
use crate::time::Moment;

/// How far `stale` and `ahead` are off: twice the time that receivers accept.
const OFF: i64 = 600;

/// An attempt that is about to begin.
pub(super) struct Flight {
    /// Signs with another secret where that is the fault.
    pub(super) sender: Subscription,
    pub(super) epoch: u64,
    pub(super) number: Number,
    pub(super) at: Moment,
    pub(super) event_id: String,
    pub(super) event_type: String,
    pub(super) body: Bytes,
    pub(super) timestamp: UnixSeconds,
    pub(super) fault: Option<Fault>,
}

impl Flight {
    /// Makes the request as it is sent.
    pub(super) fn request(&self) -> Request<Bytes> {
        let off = match self.fault {
            Some(Fault::Stale) => -OFF,
            Some(Fault::Ahead) => OFF,
            _ => 0,
        };
        let at = UnixSeconds::new(self.timestamp.as_i64().saturating_add(off));
        let mut request = self
            .sender
            .signed(at, &self.event_id, &self.event_type, &self.body);
        match self.fault {
            Some(Fault::AlteredByte) => {
                let mut body = request.body().to_vec();
                let middle = body.len() / 2;
                if let Some(byte) = body.get_mut(middle) {
                    *byte ^= 1;
                }
                *request.body_mut() = body.into();
            }
            Some(Fault::Gzip) => {
                let body = gzip(request.body());
                *request.body_mut() = body.into();
                let encoding = HeaderValue::from_static("gzip");
                request
                    .headers_mut()
                    .insert(header::CONTENT_ENCODING, encoding);
            }
            Some(Fault::Reset) => {
                request.extensions_mut().insert(Reset);
            }
            _ => {}
        }
        request
    }

    pub(super) async fn fly(&self, request: Request<Bytes>, timeout: Duration) -> Attempted {
        let fault = match self.fault {
            Some(Fault::Duplicated) => Some(NetworkFault::Duplicated),
            Some(Fault::LostAnswer) => Some(NetworkFault::AnswerLost),
            Some(Fault::Slow) => Some(NetworkFault::Slow),
            _ => None,
        };
        self.sender.attempt(request, fault, timeout).await
    }
}

/// The longest stored block of deflate.
const BLOCK: usize = 0xffff;

/// Wraps bytes as gzip (RFC 1952) in stored blocks (RFC 1951, 3.2.4), without compression. Enough for a receiver that must not decompress.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    let blocks = bytes.len().div_ceil(BLOCK).max(1);
    for number in 0..blocks {
        let start = number * BLOCK;
        let block = &bytes[start..bytes.len().min(start + BLOCK)];
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        out.push(u8::from(number + 1 == blocks));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(block);
    }
    out.extend(crc32(bytes).to_le_bytes());
    let length = u32::try_from(bytes.len() & 0xffff_ffff).unwrap_or_default();
    out.extend(length.to_le_bytes());
    out
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Read by Python: `gzip.decompress(bytes.fromhex(…))` is `b'{"id":"evt_1"}'`.
    #[test]
    fn the_stream_is_gzip() {
        let stream = gzip(br#"{"id":"evt_1"}"#);
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(&stream[..3], [0x1f, 0x8b, 8]);
        assert_eq!(stream.len(), 10 + 5 + 14 + 8);
        assert_eq!(&stream[10..15], [1, 14, 0, 0xf1, 0xff]);
        assert_eq!(&stream[stream.len() - 4..], [14, 0, 0, 0]);
        let long = gzip(&vec![7; BLOCK + 1]);
        assert_eq!(long.len(), 10 + 5 + BLOCK + 5 + 1 + 8);
        assert_eq!((long[10], long[15 + BLOCK]), (0, 1));
        assert_eq!(gzip(b"").len(), 10 + 5 + 8);
    }
}
