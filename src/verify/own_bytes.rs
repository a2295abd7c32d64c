//! Bodies that may be kept for long, without the buffer that a server has read them into.

use bytes::Bytes;

/// The largest body that is copied. A frame of HTTP/2 is no larger by default, and hashing takes far longer than the copy.
const MOST_COPIED: usize = 16 << 10;

/// Returns the same bytes; if they are few, they share no memory with other bytes.
///
/// The size of the buffer behind some bytes is unknown. A server's has 8 KiB and more, so that a hundred bytes may hold a hundred
/// times as many.
pub(super) fn by_itself(bytes: Bytes) -> Bytes {
    match bytes.len() {
        0 => Bytes::new(),
        1..=256 => Inline::<256>::of(&bytes),
        257..=512 => Inline::<512>::of(&bytes),
        513..=1_024 => Inline::<1_024>::of(&bytes),
        1_025..=2_048 => Inline::<2_048>::of(&bytes),
        2_049..=4_096 => Inline::<4_096>::of(&bytes),
        4_097..=MOST_COPIED => Bytes::copy_from_slice(&bytes),
        _ => bytes,
    }
}

/// Bytes beside their length, so that they and the count of their owners are one allocation. `Bytes` makes two of a vector as
/// soon as it is shared.
struct Inline<const ROOM: usize> {
    bytes: [u8; ROOM],
    length: usize,
}

impl<const ROOM: usize> Inline<ROOM> {
    fn of(bytes: &Bytes) -> Bytes {
        let length = bytes.len().min(ROOM);
        let mut inline = Self {
            bytes: [0; ROOM],
            length,
        };
        inline.bytes[..length].copy_from_slice(&bytes[..length]);
        Bytes::from_owner(inline)
    }
}

impl<const ROOM: usize> AsRef<[u8]> for Inline<ROOM> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_bytes_leave_their_buffer_and_many_stay() {
        let buffer: Vec<u8> = (0..20_000_u32).flat_map(u32::to_le_bytes).collect();
        for length in (0..=5_000).chain([MOST_COPIED - 1, MOST_COPIED, MOST_COPIED + 1, 70_000]) {
            let whole = Bytes::from(buffer.clone());
            let kept = by_itself(whole.slice(..length));
            assert_eq!(kept, buffer[..length]);
            assert_eq!(whole.is_unique(), length <= MOST_COPIED, "{length}");
        }
    }
}
