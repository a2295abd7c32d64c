//! Axum's own limit for bodies, which the layer lifts for a verified delivery.

use http::Request;

/// Axum's limit is lifted for bodies above this size. For smaller ones it is not, because lifting it costs an allocation. A limit
/// below this size still holds for them.
#[cfg(feature = "axum")]
const LIFTED_ABOVE: usize = 1 << 10;

/// Switches off axum's own body limit for a delivery with a body of this length; it is 2 MiB unless the app sets it. The body has
/// passed the receiver's limit. Axum would refuse it after the layer, at each retry.
#[cfg_attr(not(feature = "axum"), allow(unused_variables))]
pub(crate) fn lift_body_limit<B>(request: &mut Request<B>, length: usize) {
    #[cfg(feature = "axum")]
    if length > LIFTED_ABOVE {
        axum_core::extract::DefaultBodyLimit::disable().apply(request);
    }
}
