//! The guard: authentication and the settings of the layer, before a handler or before a sink.

use std::fmt;

use super::settings::LayerSettings;
use crate::walk::Authenticator;

/// Authenticates requests, and answers them under the settings of the layer.
pub(crate) struct Guard {
    pub(crate) auth: Authenticator,
    pub(crate) settings: LayerSettings,
}

/// A guard and the step that follows it: claims, for a handler, or a sink.
pub(crate) struct Guarded<N> {
    pub(crate) guard: Guard,
    pub(crate) next: N,
}

impl<N: fmt::Debug> fmt::Debug for Guarded<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded")
            .field("auth", &self.guard.auth)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}
