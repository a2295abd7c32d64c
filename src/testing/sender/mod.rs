//! What the service does to receivers.

mod meaning;
mod tamper;

pub use meaning::meaning;
pub use tamper::Tamper;
