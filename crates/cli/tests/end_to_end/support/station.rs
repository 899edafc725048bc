//! A small HTTP server in the test itself, whose answers follow from what it has seen so far.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What a server does with a request.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    /// Occupies a worker for this time, then succeeds.
    After(Duration),
    /// Waits until this time without a worker, then succeeds.
    At(Instant),
    /// Rejects at once with 503.
    Reject,
}

/// Decides on a request, given how many are in the server with it.
pub type Policy = Box<dyn FnMut(usize) -> Answer + Send>;

/// A server with a fixed number of workers and a thread for each connection. Its threads end with
/// their connections, and the one that accepts ends with the process.
pub struct Station {
    state: Mutex<State>,
    worker_is_free: Condvar,
}

struct State {
    idle: usize,
    inside: usize,
    policy: Policy,
}

impl Station {
    /// Starts a server of this many workers; its URL.
    pub fn start(workers: usize, policy: impl FnMut(usize) -> Answer + Send + 'static) -> String {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let station = Arc::new(Station {
            state: Mutex::new(State { idle: workers, inside: 0, policy: Box::new(policy) }),
            worker_is_free: Condvar::new(),
        });
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let station = station.clone();
                std::thread::spawn(move || station.converse(connection));
            }
        });
        url
    }

    /// Answers until the client closes.
    fn converse(&self, mut connection: TcpStream) {
        let _ = connection.set_nodelay(true);
        let Ok(reader) = connection.try_clone() else {
            return;
        };
        let mut reader = BufReader::new(reader);
        let mut line = String::new();
        loop {
            line.clear();
            match reader.read_line(&mut line) {
                Ok(n) if n > 0 => {}
                _ => return,
            }
            // The empty line ends a request.
            if line == "\r\n" && connection.write_all(self.serve()).is_err() {
                return;
            }
        }
    }

    fn serve(&self) -> &'static [u8] {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.inside += 1;
        let inside = state.inside;
        let answer = (state.policy)(inside);
        let response: &[u8] = match answer {
            Answer::After(service) => {
                state = self
                    .worker_is_free
                    .wait_while(state, |s| s.idle == 0)
                    .unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
                drop(state);
                std::thread::sleep(service);
                state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                state.idle += 1;
                self.worker_is_free.notify_one();
                b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
            }
            Answer::At(end) => {
                drop(state);
                std::thread::sleep(end.saturating_duration_since(Instant::now()));
                state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
            }
            Answer::Reject => b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n",
        };
        state.inside -= 1;
        response
    }
}
