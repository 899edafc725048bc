//! Many datagrams in one system call, over connected UDP sockets.

use super::clock::timespec;
use super::{check_count, set_option};
use knee_load::time::Nanos;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{self, SendFlags};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// A socket connected to `target`, so that the network's answers come back to it (udp(7)).
///
/// # Errors
/// There is no way to the target, or no descriptor left.
pub(crate) fn connected(target: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr =
        if target.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(target)?;
    Ok(socket)
}

/// Buffers of datagrams of one size, side by side, ready for sendmmsg(2).
pub struct SendBatch {
    size: usize,
    bytes: Vec<u8>,
    /// What the headers point to; never read here.
    _iovecs: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

impl SendBatch {
    /// `capacity` datagrams of `size` bytes, all zero.
    pub fn new(capacity: usize, size: usize) -> SendBatch {
        let mut bytes = vec![0_u8; capacity * size];
        let pieces = bytes
            .chunks_exact_mut(size)
            .map(|piece| libc::iovec { iov_base: piece.as_mut_ptr().cast(), iov_len: size });
        let mut iovecs: Vec<libc::iovec> = pieces.collect();
        let headers = iovecs.iter_mut().map(|iovec| {
            // SAFETY: all zeroes are a valid mmsghdr: no address, no buffers, no control.
            let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
            header.msg_hdr.msg_iov = iovec;
            header.msg_hdr.msg_iovlen = 1;
            header
        });
        SendBatch { size, headers: headers.collect(), bytes, _iovecs: iovecs }
    }

    /// Number of datagrams that fit.
    pub fn capacity(&self) -> usize {
        self.headers.len()
    }

    /// The payload of datagram `index`, below the capacity.
    #[inline]
    pub fn datagram(&mut self, index: usize) -> &mut [u8] {
        &mut self.bytes[index * self.size..][..self.size]
    }

    /// The payloads from datagram `from` to before datagram `to`, side by side.
    pub fn side_by_side(&self, from: usize, to: usize) -> &[u8] {
        &self.bytes[from * self.size..to * self.size]
    }
}

/// Sends the datagrams from `from` to before `to` in one call, without blocking: sendmmsg(2).
/// Returns how many the kernel took. If it took some, the error of the next one is not reported.
///
/// # Errors
/// Of the first datagram: `WouldBlock` if the send buffer is full, or what the network has
/// answered to an earlier one. The first was then not sent, see udp(7).
#[inline]
pub fn send_batch(
    socket: &UdpSocket,
    batch: &mut SendBatch,
    from: usize,
    to: usize,
) -> io::Result<usize> {
    let headers = &mut batch.headers[from..to];
    let (fd, flags) = (socket.as_raw_fd(), libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL);
    check_count(|| {
        // SAFETY: the headers are ours, and their number is the one passed. The iovecs and payloads
        // that they point to live in vectors of the batch that never grow, and are only read.
        let count = unsafe {
            libc::sendmmsg(fd, headers.as_mut_ptr(), headers.len() as libc::c_uint, flags as _)
        };
        count as libc::ssize_t
    })
}

/// Sends one datagram (or, on a socket that cuts, one burst) without blocking.
///
/// # Errors
/// As [`send_batch`].
#[inline]
pub fn try_send(socket: &UdpSocket, payload: &[u8]) -> io::Result<usize> {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    Ok(retry_on_intr(|| net::send(socket, payload, flags))?)
}

/// Lets the kernel cut what is sent in one piece into datagrams of `bytes`: UDP_SEGMENT.
///
/// # Errors
/// A kernel before 4.18.
pub fn set_segment(socket: &UdpSocket, bytes: u16) -> io::Result<()> {
    set_option(socket, libc::SOL_UDP, libc::UDP_SEGMENT, &libc::c_int::from(bytes))
}

/// Turns IP_RECVERR on. A later call then reports what the network answers to a datagram. The same
/// call reports that this host dropped the datagram itself (`ENOBUFS`). Without it Linux reports
/// neither absent hosts nor full queues of devices (ip(7), udp(7)). What was reported stays in a
/// queue, which makes the socket look ready, until [`forget_errors`].
///
/// # Errors
/// None in correct use.
pub fn report_errors(socket: &UdpSocket) -> io::Result<()> {
    match socket.local_addr()? {
        SocketAddr::V4(_) => set_option(socket, libc::SOL_IP, libc::IP_RECVERR, &1_i32),
        SocketAddr::V6(_) => set_option(socket, libc::SOL_IPV6, libc::IPV6_RECVERR, &1_i32),
    }
}

/// Empties the queue of errors: recvmsg(2) with MSG_ERRQUEUE until it is empty.
pub fn forget_errors(socket: &UdpSocket) {
    let (fd, flags) = (socket.as_raw_fd(), libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT);
    // SAFETY: all zeroes are a valid msghdr: no address, no buffers, no control.
    let mut nothing: libc::msghdr = unsafe { std::mem::zeroed() };
    // SAFETY: the header is ours and says that nothing of the message is to be written anywhere.
    while unsafe { libc::recvmsg(fd, &raw mut nothing, flags) } >= 0 {}
}

/// Buffers for the beginnings of datagrams of a connected socket.
pub type PrefixBatch = super::datagrams::ReceiveBatch<()>;

/// Receives in one call and without blocking: recvmmsg(2). Returns the number of datagrams.
///
/// # Errors
/// `WouldBlock` if nothing has come; what the network has answered to what was sent.
pub fn receive_batch(socket: &UdpSocket, batch: &mut PrefixBatch) -> io::Result<usize> {
    batch.receive(socket, batch.capacity())
}

/// Result of a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpReadiness {
    /// The socket is ready.
    pub found: bool,
    /// An error is pending or in the queue of errors.
    pub error: bool,
}

/// Waits until there is something to read, or `timeout` has passed: ppoll(2). Without a socket it
/// only waits.
///
/// # Errors
/// None in correct use; a signal ends it early without one.
pub fn wait_readable(socket: Option<&UdpSocket>, timeout: Nanos) -> io::Result<UdpReadiness> {
    wait_for(socket, PollFlags::IN, timeout)
}

/// Waits until there is room in the send buffer, or `timeout` has passed: ppoll(2).
///
/// # Errors
/// None in correct use; a signal ends it early without one.
pub fn wait_writable(socket: &UdpSocket, timeout: Nanos) -> io::Result<UdpReadiness> {
    wait_for(Some(socket), PollFlags::OUT, timeout)
}

fn wait_for(
    socket: Option<&UdpSocket>,
    events: PollFlags,
    timeout: Nanos,
) -> io::Result<UdpReadiness> {
    let mut watched: Vec<PollFd<'_>> = Vec::new();
    watched.extend(socket.map(|socket| PollFd::new(socket, events)));
    match poll(&mut watched, Some(&timespec(timeout.0))) {
        Err(Errno::INTR) | Ok(_) => {}
        Err(e) => return Err(e.into()),
    }
    let ready = watched.first().map_or(PollFlags::empty(), PollFd::revents);
    Ok(UdpReadiness { found: ready.intersects(events), error: ready.contains(PollFlags::ERR) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::clock::realtime_ns;
    use crate::sys::timestamps::set_timestamps;

    fn pair() -> (UdpSocket, UdpSocket) {
        let one = UdpSocket::bind("127.0.0.1:0").unwrap();
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        one.connect(other.local_addr().unwrap()).unwrap();
        other.connect(one.local_addr().unwrap()).unwrap();
        (one, other)
    }

    fn fill(batch: &mut SendBatch) {
        for k in 0..batch.capacity() {
            batch.datagram(k).fill(k as u8 + 1);
        }
    }

    #[test]
    fn a_batch_leaves_in_one_call_and_comes_in_one() {
        let (one, other) = pair();
        set_timestamps(&other).unwrap();
        let mut batch = SendBatch::new(8, 50);
        fill(&mut batch);
        let begin = realtime_ns();
        assert_eq!(send_batch(&one, &mut batch, 2, 7).unwrap(), 5);
        let mut received = PrefixBatch::new(4, 40);
        assert!(wait_readable(Some(&other), Nanos::from_secs(5)).unwrap().found);
        // Twice, as the control buffers have to be offered anew each time.
        for (count, first) in [(4, 3), (1, 7)] {
            assert_eq!(receive_batch(&other, &mut received).unwrap(), count);
            for (i, (bytes, came)) in received.received().enumerate() {
                assert_eq!(bytes, [i as u8 + first; 40]);
                let came = came.expect("the socket was asked to tell");
                assert!(came.abs_diff(begin) < 60_000_000_000, "{came} is near {begin}");
            }
        }
        let none = receive_batch(&other, &mut received).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(received.received().count(), 0);
    }

    #[test]
    fn one_buffer_is_cut_into_datagrams() {
        let (one, other) = pair();
        set_segment(&one, 50).unwrap();
        let mut batch = SendBatch::new(64, 50);
        fill(&mut batch);
        assert_eq!(try_send(&one, batch.side_by_side(0, 64)).unwrap(), 64 * 50);
        let mut bytes = [0; 100];
        for k in 0..64 {
            assert_eq!(other.recv(&mut bytes).unwrap(), 50);
            assert_eq!(bytes[..50], [k + 1; 50]);
        }
        assert!(!wait_readable(Some(&other), Nanos::ZERO).unwrap().found);
    }

    #[test]
    fn a_datagram_that_nobody_awaits_comes_back_as_an_error() {
        let (one, other) = pair();
        drop(other);
        report_errors(&one).unwrap();
        try_send(&one, b"hello").unwrap();
        assert!(wait_readable(Some(&one), Nanos::from_secs(5)).unwrap().error);
        let refused = try_send(&one, b"hello").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        assert!(wait_writable(&one, Nanos::ZERO).unwrap().found);
        assert!(wait_writable(&one, Nanos::ZERO).unwrap().error, "it is in the queue");
        forget_errors(&one);
        let nothing = UdpReadiness::default();
        assert_eq!(wait_readable(Some(&one), Nanos::ZERO).unwrap(), nothing);
        assert_eq!(wait_readable(None, Nanos(1)).unwrap(), nothing);
        if let Ok(six) = UdpSocket::bind("[::1]:0") {
            report_errors(&six).unwrap();
        }
    }
}
