//! The delivery log: what is recorded of a delivery, how it is written and read, and the command that looks into it.

mod recorded;
