//! Accepts connections, and ends with its value.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};

use super::{Access, Reply};

/// Connections at a time.
const CONNECTIONS: usize = 512;
/// The time for the head of a request.
const HEAD: Duration = Duration::from_secs(30);
/// The bytes of a head.
const LONGEST_HEAD: usize = 64 << 10;
/// After a failed accept, as when there is no file descriptor left.
const PAUSE: Duration = Duration::from_millis(50);

/// A fault closes the connection in place of an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection is closed without an answer, as a fault asks")]
pub(crate) struct Closed;

/// The program behind a server.
pub(crate) trait Serve: Send + Sync + 'static {
    /// Answers a request. An error closes the connection without an answer.
    fn serve(
        self: Arc<Self>,
        access: Arc<Access>,
        peer: SocketAddr,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<Reply>, Closed>> + Send;
}

/// A running server. Dropping it closes the port and every connection.
#[derive(Debug)]
pub(crate) struct Server(AbortHandle);

impl Server {
    /// Serves until the value is dropped.
    pub(crate) fn start<S: Serve>(listener: TcpListener, served: Arc<S>, access: Access) -> Self {
        let task = tokio::spawn(accept(listener, served, Arc::new(access)));
        Self(task.abort_handle())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn accept<S: Serve>(listener: TcpListener, served: Arc<S>, access: Arc<Access>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    // Dropped with this task, and with it every connection.
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        // A semaphore that is never closed always gives a permit.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, peer)) => {
                let (served, access) = (Arc::clone(&served), Arc::clone(&access));
                connections.spawn(async move {
                    connection(stream, peer, served, access).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn connection<S: Serve>(
    stream: TcpStream,
    peer: SocketAddr,
    served: Arc<S>,
    access: Arc<Access>,
) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: Request<Incoming>| {
        Arc::clone(&served).serve(Arc::clone(&access), peer, request)
    });
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(LONGEST_HEAD);
    // An error is the client's: it broke off, or sent no HTTP. Or a fault asked for an end without
    // an answer.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}
