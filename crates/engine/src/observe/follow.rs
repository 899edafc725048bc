//! Follows a share of the connections to a port of this host, on a thread of its own.

use super::data;
use super::streams::Streams;
use super::watch::why_not;
use crate::kernel::timestamps::Timestamps;
use crate::sys::clock::realtime_ahead_ns;
use crate::sys::packet::{Batch, PacketSocket};
use knee_core::both_ends::Seen;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Packets that the kernel keeps between two looks.
const BUFFER: usize = 32 << 20;

/// Packets are fetched so often: the thread is not woken by each. What comes in between fits into a
/// buffer of 400 KB at 100,000 packets a second.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// So many batches are more than the buffer holds: whatever comes meanwhile waits for the next
/// look.
const BATCHES_MAX: usize = 10_000;

/// Connections that are being followed, until it is finished or dropped.
#[derive(Debug)]
pub struct Following {
    because: Option<String>,
    thread: Option<(Sender<()>, JoinHandle<Seen>)>,
}

impl Following {
    /// Follows one of `one_of` connections to `port`, chosen by the client's port, that begin from
    /// now on. Where that is not permitted nothing is seen, and the end says why.
    pub fn begin(port: u16, one_of: u16) -> Following {
        let filter = data::filter(port, one_of);
        let begun = PacketSocket::open(&filter, BUFFER, true).and_then(|tap| {
            // Without a time a packet has that of the look that finds it.
            let kept = Timestamps::settled();
            let (stop, stopped) = mpsc::channel();
            let thread = thread::Builder::new().name("follow".to_owned());
            let thread = thread.spawn(move || {
                let _kept = kept;
                follow(&tap, &stopped)
            })?;
            Ok((stop, thread))
        });
        match begun {
            Ok(thread) => Following {
                because: None,
                thread: Some(thread),
            },
            Err(e) => Following {
                because: Some(why_not(&e)),
                thread: None,
            },
        }
    }

    /// Ends it, and says what was seen.
    pub fn finish(mut self) -> Seen {
        match self.join() {
            Some(Ok(seen)) => seen,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Seen {
                because: self.because.take(),
                ..Seen::default()
            },
        }
    }

    fn join(&mut self) -> Option<thread::Result<Seen>> {
        let (stop, thread) = self.thread.take()?;
        drop(stop);
        Some(thread.join())
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

fn follow(tap: &PacketSocket, stopped: &Receiver<()>) -> Seen {
    let (mut streams, mut batch) = (Streams::default(), Batch::new());
    loop {
        let is_over = !matches!(
            stopped.recv_timeout(LOOK_EVERY),
            Err(RecvTimeoutError::Timeout)
        );
        look(tap, &mut batch, &mut streams);
        if is_over {
            // Where the kernel does not say how many were lost, holes tell of most.
            return streams.finish(tap.take_lost().unwrap_or(0));
        }
    }
}

fn look(tap: &PacketSocket, batch: &mut Batch, streams: &mut Streams) {
    for _ in 0..BATCHES_MAX {
        match tap.receive(batch) {
            Ok(0) => return,
            Ok(_) => {}
            // An interface went down; the others go on.
            Err(_) => continue,
        }
        // Anew for each batch: a step of the time of day between two looks does no harm.
        let ahead = realtime_ahead_ns();
        for packet in batch.packets() {
            // One without a time says nothing; its bytes are then missing, and known to be.
            let (Some(segment), Some(at)) = (data::parse(packet.bytes), packet.realtime_ns) else {
                continue;
            };
            let at_ns = at.saturating_sub(ahead);
            match packet.is_outgoing {
                true => streams.goes(&segment, at_ns),
                false => streams.came(&segment, at_ns),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::http::{HttpServer, HttpServerSpec};
    use crate::sys::clock::monotonic_ns;
    use crate::sys::socket::Address;
    use knee_core::both_ends::{Sample, join};
    use knee_core::law::Law;
    use knee_core::time::Nanos;
    use std::collections::BTreeMap;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    const SERVICE: Nanos = Nanos::from_millis(2);

    fn server() -> HttpServer {
        HttpServer::start(HttpServerSpec {
            listen: Address::Tcp("127.0.0.1:0".parse().unwrap()),
            workers: Some(1),
            service: Law::Fixed(SERVICE),
            log_max: 100,
            ..HttpServerSpec::default()
        })
        .unwrap()
    }

    /// Requests over one connection, as a generator would ask about them.
    fn load(address: &Address, count: usize) -> Vec<Sample> {
        let Address::Tcp(address) = address else {
            panic!("a TCP server");
        };
        let mut stream = TcpStream::connect(address).unwrap();
        let port = stream.local_addr().unwrap().port();
        let (mut sent, mut received) = (0, 0);
        let mut one = || {
            let response_begin = received;
            stream.write_all(GET).unwrap();
            let written = Nanos(monotonic_ns());
            sent += GET.len() as u64;
            let (mut bytes, mut first_byte) = (vec![0; 4096], Nanos::ZERO);
            let mut text = Vec::new();
            // The body has 1,294 bytes.
            while !text.windows(4).any(|w| w == b"\r\n\r\n") || text.len() < 1294 {
                let count = stream.read(&mut bytes).unwrap();
                first_byte = if text.is_empty() {
                    Nanos(monotonic_ns())
                } else {
                    first_byte
                };
                text.extend_from_slice(&bytes[..count]);
                received += count as u64;
            }
            Sample {
                port,
                use_of_port: 0,
                request_end: sent,
                response_begin,
                response_end: received,
                written,
                first_byte,
                last_byte: Nanos(monotonic_ns()),
            }
        };
        (0..count).map(|_| one()).collect()
    }

    fn port(address: &Address) -> u16 {
        match address {
            Address::Tcp(address) => address.port(),
            Address::Unix(_) => 0,
        }
    }

    #[test]
    fn the_hosts_time_is_what_the_server_logged() {
        let server = server();
        let following = Following::begin(port(server.address()), 1);
        if let Some(because) = &following.because {
            return println!("skipped: {because}");
        }
        let samples = load(server.address(), 20);
        let (seen, log) = (following.finish(), server.stop().log);
        assert_eq!((seen.lost, seen.left_out), (0, 0));
        let joined = join(&seen, &BTreeMap::new(), &samples);
        assert_eq!((joined.unseen, joined.incomplete), (0, 0));
        assert_eq!(log.entries.len(), samples.len());
        for (parts, entry) in joined.parts.iter().zip(&log.entries) {
            let parts = parts.expect("it was seen");
            // The bytes leave the host before the server has read the clock after the write.
            let logged = entry.written.unwrap() - entry.arrival;
            // Two clocks are compared, which takes some time.
            let slack = Nanos::from_millis(1);
            assert!(parts.host_first >= SERVICE - slack, "{parts:?} {entry:?}");
            let is_shorter = parts.host <= logged + slack;
            assert!(is_shorter || !entry.by_kernel, "{parts:?} {entry:?}");
        }
    }

    #[test]
    fn what_is_not_followed_is_not_seen() {
        let server = server();
        let following = Following::begin(port(server.address()), u16::MAX);
        if let Some(because) = &following.because {
            return println!("skipped: {because}");
        }
        let samples = load(server.address(), 2);
        let seen = following.finish();
        if !data::is_followed(samples[0].port, u16::MAX) {
            assert_eq!(seen.connections, []);
            assert_eq!(join(&seen, &BTreeMap::new(), &samples).unseen, 2);
        }
    }
}
