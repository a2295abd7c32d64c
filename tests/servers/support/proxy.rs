//! A proxy between a client and its server, which a test lets go wrong.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The fault from now on, on open connections and on new ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// Each piece of an answer comes so much later.
    Delay(Duration),
    /// Requests reach the server; its answers are lost, and the connection stands.
    DropReplies,
    /// No bytes pass in either direction, and no side gets an error: as with a cable that was
    /// pulled.
    HalfOpen,
    /// The next answer is lost, and its connection is closed with it; then all is well again.
    CloseOnReply,
    /// Connections are closed, and none is taken.
    Refuse,
}

pub struct Proxy {
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    fault: Fault,
    streams: Vec<TcpStream>,
    stopped: bool,
    /// How many connections were taken, and how many of them are dead.
    taken: usize,
    dead: usize,
}

impl Proxy {
    pub fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                let mut state = shared.lock().unwrap();
                if state.stopped {
                    return;
                }
                if state.fault == Fault::Refuse {
                    continue;
                }
                let Ok(upstream) = TcpStream::connect(server) else {
                    continue;
                };
                for stream in [&client, &upstream] {
                    stream.set_nodelay(true).unwrap();
                    state.streams.push(stream.try_clone().unwrap());
                }
                state.taken += 1;
                let number = state.taken;
                drop(state);
                let (from, to) = (client.try_clone().unwrap(), upstream.try_clone().unwrap());
                let (requests, answers) = (Arc::clone(&shared), Arc::clone(&shared));
                thread::spawn(move || pass(from, to, &requests, number, false));
                thread::spawn(move || pass(upstream, client, &answers, number, true));
            }
        });
        Self { address, state }
    }

    pub fn set(&self, fault: Fault) {
        let mut state = self.state.lock().unwrap();
        state.fault = fault;
        if fault == Fault::Refuse {
            for stream in state.streams.drain(..) {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }

    /// From now on no bytes pass on the open connections, without an error on either side; new ones
    /// work.
    pub fn kill_standing(&self) {
        let mut state = self.state.lock().unwrap();
        state.dead = state.taken;
    }

    /// How many connections it has taken so far.
    pub fn taken(&self) -> usize {
        self.state.lock().unwrap().taken
    }
}

fn pass(
    mut from: TcpStream,
    mut to: TcpStream,
    state: &Mutex<State>,
    number: usize,
    answers: bool,
) {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let read = match from.read(&mut bytes) {
            Ok(0) | Err(_) => break,
            Ok(read) => read,
        };
        let fault = {
            let state = state.lock().unwrap();
            if number <= state.dead {
                continue;
            }
            state.fault
        };
        match fault {
            Fault::HalfOpen => continue,
            Fault::DropReplies if answers => continue,
            Fault::CloseOnReply if answers => {
                state.lock().unwrap().fault = Fault::None;
                break;
            }
            Fault::Delay(time) if answers => thread::sleep(time),
            _ => {}
        }
        if to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.set(Fault::Refuse);
        self.state.lock().unwrap().stopped = true;
        // The listener wakes up to see it.
        let _ = TcpStream::connect(self.address);
    }
}
