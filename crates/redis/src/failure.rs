//! The meaning of Redis' errors, for a store's caller and for the connection.

use hookgate::dedupe::{StoreError, StoreErrorKind};
use redis::{ErrorKind, RedisError, ServerErrorKind, Value};

/// The reason of a connection that the server takes, and whose database it refuses.
pub(crate) const NO_DATABASE: &str = "the server has no database of the URL's number, or this user may not select it: leave the number out, or allow SELECT";

/// Gives the refusal of a database a kind of its own while the connection is made: the answer to a
/// command has the same kind.
pub(crate) fn while_connecting(error: RedisError) -> RedisError {
    if error.kind() != ErrorKind::Server(ServerErrorKind::ResponseError) {
        return error;
    }
    let kind = ErrorKind::InvalidClientConfig;
    (kind, "the connection is refused", error.to_string()).into()
}

pub(crate) fn store_error(error: RedisError) -> StoreError {
    let kind = if error.code() == Some("OOM") {
        StoreErrorKind::Full
    } else if error.is_timeout() {
        StoreErrorKind::TimedOut
    } else {
        StoreErrorKind::Unavailable
    };
    #[cfg(feature = "tls")]
    if let Some(reason) = crate::tls::refused_handshake(&error) {
        return StoreError::saying(kind, reason).caused_by(error);
    }
    StoreError::new(kind).caused_by(error)
}

/// Returns whether the connection broke during the call, or was found broken: the server may be
/// healthy on a new connection.
pub(crate) fn broke(error: &StoreError) -> bool {
    let below = std::error::Error::source(error);
    let driver = below.and_then(|below| below.downcast_ref::<RedisError>());
    driver.is_some_and(|error| error.is_connection_dropped() && !error.is_connection_refusal())
}

/// Returns whether the connection is to be given up for a new one.
///
/// Not only where it broke: an answer that does not come is for a quarter of an hour the only sign
/// of a cable that was pulled, and the name of a server that has become a replica now leads to
/// another.
pub(crate) fn ends_connection(answered: Result<&Value, &RedisError>) -> bool {
    match answered {
        // An error answer of the server arrives here as a value.
        Ok(Value::ServerError(error)) => demoted(error.kind()),
        Ok(_) => false,
        Err(error) => match error.kind() {
            ErrorKind::Server(kind) => demoted(Some(kind)),
            // A server's answer with its own code, such as OOM or MISCONF.
            ErrorKind::Extension | ErrorKind::UnexpectedReturnType => false,
            _ => true,
        },
    }
}

fn demoted(kind: Option<ServerErrorKind>) -> bool {
    matches!(
        kind,
        Some(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown)
    )
}
