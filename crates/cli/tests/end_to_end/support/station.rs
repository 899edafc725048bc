//! A small HTTP server in the test itself, whose answers follow from what it has seen so far.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What a server does with a request.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    /// Occupies a worker for this time, then succeeds. Workers are had in the order of arrival.
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
}

struct State {
    /// When each worker is free.
    free: Vec<Instant>,
    inside: usize,
    policy: Policy,
}

impl Station {
    /// Starts a server of this many workers; its URL.
    pub fn start(workers: usize, policy: impl FnMut(usize) -> Answer + Send + 'static) -> String {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let station = Arc::new(Station {
            state: Mutex::new(State {
                free: vec![Instant::now(); workers],
                inside: 0,
                policy: Box::new(policy),
            }),
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
        let end = match answer {
            Answer::After(service) => {
                let first = state.free.iter_mut().min().expect("a worker");
                *first = Instant::now().max(*first) + service;
                Some(*first)
            }
            Answer::At(end) => Some(end),
            Answer::Reject => None,
        };
        drop(state);
        std::thread::sleep(end.map_or(Duration::ZERO, |at| at.duration_since(Instant::now())));
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.inside -= 1;
        match end {
            Some(_) => b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
            None => b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n",
        }
    }
}
