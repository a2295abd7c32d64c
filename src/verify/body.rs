//! The types of bytes that a proof can cover.

use std::sync::Arc;

use bytes::Bytes;

/// Bytes that stay as they were when the MAC was computed: slices, arrays, vectors, strings, `Bytes`, and
/// references to them. Sealed, since a type that returns other bytes at each call would make a [`Verified`](crate::Verified)
/// untrue.
pub trait SignedBytes: AsRef<[u8]> + sealed::Fixed {}

impl<T: AsRef<[u8]> + sealed::Fixed + ?Sized> SignedBytes for T {}

mod sealed {
    pub trait Fixed {}
}

impl sealed::Fixed for [u8] {}
impl sealed::Fixed for str {}
impl sealed::Fixed for Vec<u8> {}
impl sealed::Fixed for String {}
impl sealed::Fixed for Box<[u8]> {}
impl sealed::Fixed for Arc<[u8]> {}
impl sealed::Fixed for Bytes {}
impl<const N: usize> sealed::Fixed for [u8; N] {}
impl<T: sealed::Fixed + ?Sized> sealed::Fixed for &T {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_shows_the_same_bytes() {
        fn shown(body: impl SignedBytes) -> Vec<u8> {
            body.as_ref().to_vec()
        }
        let by_reference: &Bytes = &Bytes::from_static(b"body");
        for bytes in [
            shown(b"body".as_slice()),
            shown(*b"body"),
            shown(b"body"),
            shown("body"),
            shown(b"body".to_vec()),
            shown("body".to_owned()),
            shown(Box::<[u8]>::from(b"body".as_slice())),
            shown(Arc::<[u8]>::from(b"body".as_slice())),
            shown(Bytes::from_static(b"body")),
            shown(by_reference),
        ] {
            assert_eq!(bytes, b"body");
        }
    }
}
