//! The kinds of bytes that a proof can vouch for.

use std::sync::Arc;

use bytes::Bytes;

/// Bytes that stay what they were when the MAC was computed: slices, arrays, vectors, strings, `Bytes`, and
/// references to them. Sealed, since a type that shows other bytes at each look would make a [`Verified`](crate::Verified)
/// lie.
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
