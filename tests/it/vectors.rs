//! Deliveries and their verdicts from `tests/vectors`.
