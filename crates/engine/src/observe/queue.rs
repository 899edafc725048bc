//! Reads the accept queue of a listening socket.

use crate::sys::field;
use crate::sys::netlink;
use rustix::net::netlink::INET_DIAG;
use std::{fs, io};

/// How full the accept queue is: all sockets that listen on the port sum_queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AcceptQueue {
    /// Connections that wait to be accepted.
    pub waiting: u32,
    /// The backlog; the queue holds one connection more. `None` if the kernel does not report it.
    pub limit: Option<u32>,
}

/// Reads the queue of the sockets that listen on `port`; `None` if none in this network namespace
/// does. Uses sock_diag, or else /proc/net/tcp.
pub(super) fn read_queue(port: u16) -> Option<AcceptQueue> {
    match read_sockets(port) {
        Ok(sockets) => sum_queues(sockets),
        Err(_) => read_tables(port),
    }
}

fn read_tables(port: u16) -> Option<AcceptQueue> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
    let tables = tables.into_iter().filter_map(Result::ok);
    sum_queues(tables.flat_map(|t| parse_table(&t, port)).collect())
}

fn sum_queues(sockets: Vec<AcceptQueue>) -> Option<AcceptQueue> {
    sockets.into_iter().reduce(|a, b| AcceptQueue {
        waiting: a.waiting.saturating_add(b.waiting),
        limit: a.limit.zip(b.limit).map(|(a, b)| a.saturating_add(b)),
    })
}

/// Of linux/inet_diag.h and linux/sock_diag.h.
const BY_FAMILY: u16 = 20;
const STATE_LISTEN: u8 = 10;
/// Longest answer that is read: it holds thousands of sockets.
const ANSWER_MAX: usize = 1 << 20;

/// The listening sockets of both families.
///
/// # Errors
/// The kernel has no socket diagnostics, or does not answer.
fn read_sockets(port: u16) -> io::Result<Vec<AcceptQueue>> {
    let mut sockets = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let request = diag_request(family as u8, port);
        let answer = netlink::dump_of(Some(INET_DIAG), BY_FAMILY, &request, ANSWER_MAX)?;
        let messages = netlink::messages(&answer).filter(|message| message.kind == BY_FAMILY);
        sockets.extend(messages.filter_map(|message| parse_socket(message.body, port)));
    }
    Ok(sockets)
}

/// Request for the TCP sockets that listen on the port: inet_diag_req_v2.
fn diag_request(family: u8, port: u16) -> [u8; 56] {
    let mut request = [0; 56];
    request[..2].copy_from_slice(&[family, libc::IPPROTO_TCP as u8]);
    request[4..8].copy_from_slice(&(1_u32 << STATE_LISTEN).to_ne_bytes());
    request[8..10].copy_from_slice(&port.to_be_bytes());
    request
}

/// inet_diag_msg: family, state, timer, retransmissions; the socket's identity of 48 bytes; expiry,
/// receive queue, send queue. Of a listening socket the queues are the accept queue and its limit.
fn parse_socket(body: &[u8], port: u16) -> Option<AcceptQueue> {
    let state = *body.get(1)?;
    let socket_port = u16::from_be_bytes(field(body, 4)?);
    let [waiting, limit] = [field(body, 56)?, field(body, 60)?].map(u32::from_ne_bytes);
    let queue = AcceptQueue { waiting, limit: Some(limit) };
    (state == STATE_LISTEN && socket_port == port).then_some(queue)
}

/// The sockets that listen on `port` in a table such as /proc/net/tcp: `sl local_address
/// rem_address st tx_queue:rx_queue …`, all hexadecimal; state 0A listens, its rx_queue is the
/// accept queue. The table does not have the limit.
fn parse_table(table: &str, port: u16) -> Vec<AcceptQueue> {
    let row = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let (_, local_port) = words.next()?.rsplit_once(':')?;
        let (state, queues) = (words.nth(1)?, words.next()?);
        let (_, waiting) = queues.split_once(':')?;
        let is_match = u16::from_str_radix(local_port, 16).ok()? == port && state == "0A";
        let waiting = u32::from_str_radix(waiting, 16).ok()?;
        is_match.then_some(AcceptQueue { waiting, limit: None })
    };
    table.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{TcpListener, TcpStream};
    use std::thread;
    use std::time::{Duration, Instant};

    #[test]
    fn a_listening_socket_tells_its_queue() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(host).unwrap();
            let address = listener.local_addr().unwrap();
            let clients: Vec<_> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
            let queue = read_queue(address.port()).expect("somebody listens");
            assert_eq!(queue.waiting, 3, "{host}");
            assert!(queue.limit.is_none_or(|l| l > 3));
            // The other way to the same number.
            let limit = None;
            assert_eq!(read_tables(address.port()), Some(AcceptQueue { waiting: 3, limit }));
            drop((clients, listener));
            // A program that another test starts may hold it for a little longer.
            let begin = Instant::now();
            while read_tables(address.port()).is_some() {
                assert!(begin.elapsed() < Duration::from_secs(30), "{host}");
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    #[test]
    fn a_table_is_read_and_what_is_none_is_not() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n\
             0: 0100007F:1F90 00000000:0000 0A 00000000:00000011 00:00000000 00000000  0\n\
             1: 0100007F:1F90 0100007F:C001 01 00000000:00000099 00:00000000 00000000  0\n\
             2: 0100007F:1F91 00000000:0000 0A 00000000:00000001 00:00000000 00000000  0\n\
             3: torn\n";
        let waiting = |port| sum_queues(parse_table(table, port)).map(|q| q.waiting);
        assert_eq!(waiting(8080), Some(0x11));
        assert_eq!(waiting(80), None);
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for message in netlink::messages(&bytes) {
                let _ = parse_socket(message.body, 80);
            }
            let _ = parse_socket(&bytes, 80);
            let _ = parse_table(&String::from_utf8_lossy(&bytes), 80);
        }
    }
}
