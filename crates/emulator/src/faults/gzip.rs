//! A gzip stream without compression: enough for a receiver that must not decompress.

/// The longest stored block of deflate.
const BLOCK: usize = 0xffff;

/// Wraps bytes as gzip (RFC 1952) in stored blocks (RFC 1951, 3.2.4).
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
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
