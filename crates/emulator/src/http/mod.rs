//! HTTP/1.1 over hyper: who may call, what is read of a request, and where it goes.

mod access;
mod body;
mod guard;
mod inspect;
mod serve;
mod server;
mod stream;

pub(crate) use access::Access;
pub(crate) use body::Reply;
pub(crate) use server::Server;
pub(crate) use stream::stream;
