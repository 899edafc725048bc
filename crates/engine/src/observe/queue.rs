//! The accept queue of a listening socket, as the kernel tells it.

use crate::sys::field;
use crate::sys::netlink::SocketDiagnostics;
use std::fs;

/// How full the accept queue is: all sockets that listen on the port together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AcceptQueue {
    /// Connections that wait to be accepted.
    pub waiting: u32,
    /// The backlog, which one more may exceed; `None` where the kernel did not tell.
    pub limit: Option<u32>,
}

/// Reads the queue of one port, by sock_diag where there is one, else from /proc/net/tcp.
#[derive(Debug)]
pub(super) struct QueueReader {
    port: u16,
    diagnostics: Option<SocketDiagnostics>,
}

impl QueueReader {
    /// A reader for `port`.
    pub(super) fn new(port: u16) -> QueueReader {
        QueueReader { port, diagnostics: SocketDiagnostics::open().ok() }
    }

    /// Reads the queue; `None`: nothing in this network namespace listens on the port.
    pub(super) fn read(&mut self) -> Option<AcceptQueue> {
        if let Some(diagnostics) = &self.diagnostics {
            if let Some(sockets) = ask(diagnostics, self.port) {
                return together(sockets);
            }
            // Not asked again: a kernel without it stays one.
            self.diagnostics = None;
        }
        let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
        let tables = tables.into_iter().filter_map(Result::ok);
        together(tables.flat_map(|t| parse_table(&t, self.port)).collect())
    }
}

fn together(sockets: Vec<AcceptQueue>) -> Option<AcceptQueue> {
    sockets.into_iter().reduce(|a, b| AcceptQueue {
        waiting: a.waiting.saturating_add(b.waiting),
        limit: a.limit.zip(b.limit).map(|(a, b)| a.saturating_add(b)),
    })
}

/// Of linux/inet_diag.h, linux/sock_diag.h and linux/netlink.h.
const BY_FAMILY: u16 = 20;
const REQUEST_DUMP: u16 = 0x1 | 0x300;
const MESSAGE_ERROR: u16 = 2;
const MESSAGE_DONE: u16 = 3;
const HEADER: usize = 16;
const STATE_LISTEN: u8 = 10;
/// Datagrams read of one answer; one holds dozens of sockets.
const ANSWERS_MAX: usize = 64;

/// The listening sockets of both families; `None` where the kernel does not answer.
fn ask(diagnostics: &SocketDiagnostics, port: u16) -> Option<Vec<AcceptQueue>> {
    let mut sockets = Vec::new();
    let mut buffer = [0; 16384];
    for family in [libc::AF_INET, libc::AF_INET6] {
        diagnostics.send(&question(family as u8, port)).ok()?;
        let mut is_done = false;
        for _ in 0..ANSWERS_MAX {
            let answer = diagnostics.receive(&mut buffer).ok()?;
            is_done = parse_answer(answer, port, &mut sockets)?;
            if is_done {
                break;
            }
        }
        if !is_done {
            return None;
        }
    }
    Some(sockets)
}

/// nlmsghdr and inet_diag_req_v2: which TCP sockets listen on the port?
fn question(family: u8, port: u16) -> Vec<u8> {
    let mut message = Vec::with_capacity(72);
    message.extend_from_slice(&72_u32.to_ne_bytes());
    message.extend_from_slice(&BY_FAMILY.to_ne_bytes());
    message.extend_from_slice(&REQUEST_DUMP.to_ne_bytes());
    // Sequence number and sender.
    message.extend_from_slice(&[0; 8]);
    message.extend_from_slice(&[family, libc::IPPROTO_TCP as u8, 0, 0]);
    message.extend_from_slice(&(1_u32 << STATE_LISTEN).to_ne_bytes());
    message.extend_from_slice(&port.to_be_bytes());
    message.resize(72, 0);
    message
}

/// Reads the messages of one datagram into `sockets`: whether the answer has ended; `None` where it
/// is an error or is cut off.
fn parse_answer(mut answer: &[u8], port: u16, sockets: &mut Vec<AcceptQueue>) -> Option<bool> {
    while !answer.is_empty() {
        let length = u32::from_ne_bytes(field(answer, 0)?) as usize;
        let kind = u16::from_ne_bytes(field(answer, 4)?);
        let body = answer.get(HEADER..length)?;
        match kind {
            MESSAGE_DONE => return Some(true),
            MESSAGE_ERROR => return None,
            BY_FAMILY => sockets.extend(parse_socket(body, port)?),
            _ => {}
        }
        // Messages begin at multiples of four.
        answer = answer.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(false)
}

/// inet_diag_msg: family, state, timer, retransmissions; the socket's identity of 48 bytes; expiry,
/// receive queue, send queue. Of a listening socket the queues are the accept queue and its limit.
fn parse_socket(body: &[u8], port: u16) -> Option<Option<AcceptQueue>> {
    let state = *body.get(1)?;
    let its_port = u16::from_be_bytes(field(body, 4)?);
    let [waiting, limit] = [field(body, 56)?, field(body, 60)?].map(u32::from_ne_bytes);
    let queue = AcceptQueue { waiting, limit: Some(limit) };
    Some((state == STATE_LISTEN && its_port == port).then_some(queue))
}

/// The sockets that listen on `port` in a table such as /proc/net/tcp: `sl local_address
/// rem_address st tx_queue:rx_queue …`, all hexadecimal; state 0A listens, its rx_queue is the
/// accept queue. The limit is not told there.
fn parse_table(table: &str, port: u16) -> Vec<AcceptQueue> {
    let row = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let (_, local_port) = words.next()?.rsplit_once(':')?;
        let (state, queues) = (words.nth(1)?, words.next()?);
        let (_, waiting) = queues.split_once(':')?;
        let is_it = u16::from_str_radix(local_port, 16).ok()? == port && state == "0A";
        let waiting = u32::from_str_radix(waiting, 16).ok()?;
        is_it.then_some(AcceptQueue { waiting, limit: None })
    };
    table.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_listening_socket_tells_its_queue() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(host).unwrap();
            let address = listener.local_addr().unwrap();
            let clients: Vec<_> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
            let mut reader = QueueReader::new(address.port());
            let queue = reader.read().expect("somebody listens");
            assert_eq!(queue.waiting, 3, "{host}");
            assert!(queue.limit.is_none_or(|l| l > 3));
            // The other way to the same number.
            reader.diagnostics = None;
            let limit = None;
            assert_eq!(reader.read(), Some(AcceptQueue { waiting: 3, limit }));
            drop((clients, listener));
            assert_eq!(reader.read(), None);
        }
    }

    #[test]
    fn a_table_is_read_and_what_is_none_is_not() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n\
             0: 0100007F:1F90 00000000:0000 0A 00000000:00000011 00:00000000 00000000  0\n\
             1: 0100007F:1F90 0100007F:C001 01 00000000:00000099 00:00000000 00000000  0\n\
             2: 0100007F:1F91 00000000:0000 0A 00000000:00000001 00:00000000 00000000  0\n\
             3: torn\n";
        let waiting = |port| together(parse_table(table, port)).map(|q| q.waiting);
        assert_eq!(waiting(8080), Some(0x11));
        assert_eq!(waiting(80), None);
    }

    #[test]
    fn an_error_and_an_answer_cut_off_are_none() {
        let mut sockets = Vec::new();
        let mut message = question(libc::AF_INET as u8, 80);
        assert_eq!(parse_answer(&message[..40], 80, &mut sockets), None);
        message[4] = MESSAGE_ERROR as u8;
        assert_eq!(parse_answer(&message, 80, &mut sockets), None);
        message[4] = MESSAGE_DONE as u8;
        assert_eq!(parse_answer(&message, 80, &mut sockets), Some(true));
        assert!(sockets.is_empty());
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_answer(&bytes, 80, &mut Vec::new());
            let _ = parse_table(&String::from_utf8_lossy(&bytes), 80);
        }
    }
}
