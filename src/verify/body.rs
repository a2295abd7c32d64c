//! The types of bytes that a proof can cover.

use std::sync::Arc;

use bytes::Bytes;

/// Bytes that stay as they were when the MAC was computed: slices, arrays, vectors, strings, `Bytes`, and
/// references to them. Sealed, since a type that returns other bytes at each call would make a [`Verified`](crate::Verified)
/// untrue.
pub trait SignedBytes: sealed::Fixed {
    /// The bytes.
    fn as_bytes(&self) -> &[u8];
}

impl<T: sealed::Fixed + ?Sized> SignedBytes for T {
    fn as_bytes(&self) -> &[u8] {
        self.fixed()
    }
}

mod sealed {
    pub trait Fixed {
        fn fixed(&self) -> &[u8];
    }
}

macro_rules! fixed {
    ($($type:ty),*) => {$(
        impl sealed::Fixed for $type {
            fn fixed(&self) -> &[u8] {
                self.as_ref()
            }
        }
    )*};
}

fixed!([u8], str, Vec<u8>, String, Box<[u8]>, Arc<[u8]>, Bytes);

impl<const N: usize> sealed::Fixed for [u8; N] {
    fn fixed(&self) -> &[u8] {
        self
    }
}

impl<T: sealed::Fixed + ?Sized> sealed::Fixed for &T {
    fn fixed(&self) -> &[u8] {
        (**self).fixed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_shows_the_same_bytes() {
        fn shown(body: impl SignedBytes) -> Vec<u8> {
            body.as_bytes().to_vec()
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
