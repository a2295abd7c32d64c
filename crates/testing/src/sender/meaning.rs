//! The meaning of an answer's status.

/// Returns the meaning of a status, in one line, where a receiver of hookgate answers it: the table of outcomes in reverse.
///
/// Another receiver may use the status with another meaning.
///
/// ```
/// use hookgate_testing::sender::meaning;
///
/// assert!(meaning(401).contains("not authentic"));
/// assert!(meaning(204).starts_with("handled"));
/// ```
#[must_use]
pub fn meaning(status: u16) -> &'static str {
    match status {
        200..=299 => "handled, or handled before: the service does not send it again",
        300..=399 => {
            "a redirect, which the service does not follow: give the subscription the URL that it leads to"
        }
        400 => {
            "authentic, but its body has no usable id and type, or a header names another event than the body"
        }
        401 => {
            "not authentic or not fresh: another secret, a body that was changed on the way, a clock that is off, a header that is missing or repeated, or an unknown subscription"
        }
        404 => {
            "there is no receiver at this path: compare it with the path of the receiver's route"
        }
        405 => {
            "the receiver takes POST alone; where it was POST, the server in front of it does not"
        }
        408 => "the body did not arrive within the receiver's deadline",
        413 => "the body is longer than the receiver's limit",
        415 => "the receiver takes application/json without compression",
        422 => {
            "authentic, but the event does not fit the type that the handler asks for, or nothing here handles such events"
        }
        429 => "a server in front of the receiver refuses too many requests at once",
        500 => {
            "the handler failed or panicked, or the server that it passes deliveries on to; or a dead-letter hook is missing or failed"
        }
        502 | 504 => "a proxy has no answer from the receiver",
        503 => {
            "not now: the run goes on beyond its budget, a copy is still running, all permits are in use, a store or look-up is down, or the receiver is shutting down"
        }
        _ => {
            "what the handler or a server in front of it answered: any status but 2xx is sent again"
        }
    }
}
