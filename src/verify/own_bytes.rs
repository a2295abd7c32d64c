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
        1..=128 => inline::<128>(&bytes),
        129..=256 => inline::<256>(&bytes),
        257..=384 => inline::<384>(&bytes),
        385..=512 => inline::<512>(&bytes),
        513..=768 => inline::<768>(&bytes),
        769..=1_024 => inline::<1_024>(&bytes),
        1_025..=2_048 => inline::<2_048>(&bytes),
        2_049..=4_096 => inline::<4_096>(&bytes),
        4_097..=MOST_COPIED => Bytes::copy_from_slice(&bytes),
        _ => bytes,
    }
}

/// Returns a copy that is one allocation with the count of its owners. `Bytes` makes two of a vector as soon as it is shared. The
/// length is kept in `Bytes` alone: with it, 1 KiB would be 1,040 bytes, and glibc keeps freed memory at hand up to 1,032.
fn inline<const ROOM: usize>(bytes: &[u8]) -> Bytes {
    let mut room = [0; ROOM];
    let length = bytes.len().min(ROOM);
    room[..length].copy_from_slice(&bytes[..length]);
    let mut copy = Bytes::from_owner(room);
    copy.truncate(length);
    copy
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
