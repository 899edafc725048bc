//! Transfer of payload over TCP, and what the kernel reports and permits of a flow and its
//! connection.

use super::{check_count, field, get_option, socket_memory};
use knee_load::experiment::latency::TcpSample;
use knee_load::time::Nanos;
use rustix::io::retry_on_intr;
use rustix::net::{self, RecvFlags, SendAncillaryBuffer, SendFlags, sockopt};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// Sends as much of the buffers as fits, without blocking and without a signal: sendmsg(2).
///
/// # Errors
/// `WouldBlock` if nothing fits; reset, broken pipe.
#[inline]
pub fn send(stream: &impl AsFd, from: &[IoSlice<'_>]) -> io::Result<usize> {
    send_pieces(stream, from, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
}

/// Sends pieces in one call.
#[inline]
pub(super) fn send_pieces(
    stream: &impl AsFd,
    pieces: &[IoSlice<'_>],
    flags: SendFlags,
) -> io::Result<usize> {
    let mut none = SendAncillaryBuffer::default();
    Ok(retry_on_intr(|| net::sendmsg(stream, pieces, &mut none, flags))?)
}

/// Discards up to `length` received bytes without copying them and without blocking: MSG_TRUNC
/// (tcp(7)). Returns their number; 0 at the end.
///
/// # Errors
/// `WouldBlock` if nothing is there; reset.
#[inline]
pub fn discard(stream: &impl AsFd, length: usize) -> io::Result<usize> {
    let fd = stream.as_fd().as_raw_fd();
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: with MSG_TRUNC a TCP socket writes nothing to the buffer, so that null is as good.
    check_count(|| unsafe { libc::recv(fd, std::ptr::null_mut(), length, flags) })
}

/// Reads received bytes without blocking; 0 at the end.
///
/// # Errors
/// `WouldBlock` if nothing is there; reset.
#[inline]
pub fn receive(stream: &impl AsFd, into: &mut [u8]) -> io::Result<usize> {
    Ok(retry_on_intr(|| net::recv(stream, &mut *into, RecvFlags::DONTWAIT))?.0)
}

/// Uses this congestion control: TCP_CONGESTION (tcp(7)).
///
/// # Errors
/// The kernel does not have it (`ENOENT`), or not for everyone (`EPERM`).
pub fn set_congestion_control(stream: &impl AsFd, name: &str) -> io::Result<()> {
    Ok(sockopt::set_tcp_congestion(stream, name)?)
}

/// The congestion control in use; empty if the kernel does not report it.
pub fn congestion_control(stream: &impl AsFd) -> String {
    sockopt::tcp_congestion(stream).unwrap_or_default()
}

/// Marks what is sent with a differentiated services code point, 0 to 63: IP_TOS, IPV6_TCLASS.
/// ECN's two bits stay TCP's.
///
/// # Errors
/// None in correct use.
pub fn set_dscp(socket: &impl AsFd, dscp: u8) -> io::Result<()> {
    let v4 = sockopt::set_ip_tos(socket, dscp << 2);
    // A socket of IPv6 may carry either.
    Ok(sockopt::set_ipv6_tclass(socket, u32::from(dscp) << 2).or(v4)?)
}

/// Makes close(2) reset the connection and throw away what waits to be sent, instead of ending it
/// in order: SO_LINGER of 0 s.
///
/// # Errors
/// None in correct use.
pub fn set_reset_on_close(stream: &impl AsFd) -> io::Result<()> {
    Ok(sockopt::set_socket_linger(stream, Some(Duration::ZERO))?)
}

/// What TCP knows of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Sample without its time, which is zero.
    pub sample: TcpSample,
    /// Both ends agreed on explicit congestion notification.
    pub ecn: bool,
}

/// Asks the kernel (TCP_INFO), if it reports it. Fields that an older kernel lacks are zero.
pub fn tcp_info(stream: &impl AsFd) -> Option<TcpInfo> {
    let mut info = [0_u8; TcpInfo::BYTES];
    let count = get_option(stream, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info).ok()?;
    TcpInfo::read(&info[..count])
}

/// Data of a connection that its own host still holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Bytes that TCP has not sent yet: for want of window, or as what it has sent has not left the
    /// host (TCP small queues).
    pub unsent: u32,
    /// Memory of segments that TCP has sent and that have not left the host's queues.
    pub queued: u32,
}

/// Asks the kernel (TCP_INFO, SO_MEMINFO); unknown figures are zero.
pub fn held(stream: &impl AsFd) -> Held {
    let info = tcp_info(stream).unwrap_or_default();
    let memory = socket_memory(stream).unwrap_or_default();
    Held {
        unsent: u32::try_from(info.sample.unsent_bytes).unwrap_or(u32::MAX),
        queued: memory[libc::SK_MEMINFO_WMEM_ALLOC as usize],
    }
}

impl TcpInfo {
    /// Of `struct tcp_info` up to and with `tcpi_delivery_rate` (Linux 4.9).
    const BYTES: usize = 168;

    /// Reads what the kernel wrote (include/uapi/linux/tcp.h). `tcpi_options` is at byte 5, where 8
    /// is TCPI_OPT_ECN, `tcpi_snd_mss` at 16, `tcpi_rtt` at 68, `tcpi_snd_cwnd` at 80.
    /// `tcpi_total_retrans` is at 100, `tcpi_notsent_bytes` at 144, `tcpi_min_rtt` at 148 and
    /// `tcpi_delivery_rate` at 160. Times are in microseconds.
    fn read(info: &[u8]) -> Option<TcpInfo> {
        const ECN: u8 = 8;
        let number = |at: usize| field(info, at).map_or(0, u32::from_ne_bytes);
        // The kernel's word for a smallest round trip that it does not know yet is the largest.
        let rtt_min = Some(number(148)).filter(|&us| us != u32::MAX);
        Some(TcpInfo {
            ecn: info.get(5)? & ECN != 0,
            sample: TcpSample {
                at: Nanos::ZERO,
                rtt: Nanos::from_micros(number(68).into()),
                rtt_min: Nanos::from_micros(rtt_min.unwrap_or(0).into()),
                window_bytes: u64::from(number(80)) * u64::from(number(16)),
                delivery_bytes_per_s: field(info, 160).map_or(0, u64::from_ne_bytes),
                unsent_bytes: number(144).into(),
                retransmitted: number(100).into(),
            },
        })
    }
}

/// Lets the kernel probe the peer of a quiet TCP connection, first after 10 s. A peer that does not
/// answer for 15 s more ends it with an error.
///
/// # Errors
/// Not TCP, or already reset.
pub fn keep_alive(stream: &impl AsFd) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(10))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(5))?;
    Ok(sockopt::set_tcp_keepcnt(stream, 3)?)
}

/// A few facts of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpState {
    /// Phase of the connection.
    pub phase: TcpPhase,
    /// The peer has acknowledged something that was sent over it.
    pub is_acknowledged: bool,
}

/// Phase of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpPhase {
    /// A SYN was sent and not answered.
    Connecting,
    /// The handshake is over on this side; either side may have closed since.
    Established,
    /// No connection: not begun, failed, or over.
    Closed,
}

impl TcpState {
    /// Of `struct tcp_info` up to and with `tcpi_bytes_acked`.
    pub(super) const BYTES: usize = 128;

    /// Reads what the kernel wrote: the state at byte 0 and `tcpi_unacked` (segments on their way)
    /// at 24. `tcpi_bytes_acked` at 120 counts the SYN as one (Linux 4.2 on).
    pub(super) fn read(info: &[u8]) -> Option<TcpState> {
        const SYN_SENT: u8 = 2;
        const CLOSE: u8 = 7;
        let phase = match *info.first()? {
            SYN_SENT => TcpPhase::Connecting,
            CLOSE => TcpPhase::Closed,
            _ => TcpPhase::Established,
        };
        let unacknowledged = u32::from_ne_bytes(field(info, 24)?);
        let acknowledged = field(info, 120).map(u64::from_ne_bytes);
        let is_acknowledged = acknowledged.map_or(unacknowledged == 0, |bytes| bytes > 1);
        Some(TcpState { phase, is_acknowledged })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn what_is_sent_can_be_read_or_thrown_away() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let nothing = discard(&server, 10).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        let sent = send(&client, &[IoSlice::new(b"head"), IoSlice::new(b"body")]);
        assert_eq!(sent.unwrap(), 8);
        let mut head = [0; 4];
        server.peek(&mut head).unwrap();
        assert_eq!(receive(&server, &mut head).unwrap(), 4);
        assert_eq!(&head, b"head");
        assert_eq!(discard(&server, 3).unwrap(), 3);
        assert_eq!(discard(&server, 3).unwrap(), 1);
        set_dscp(&client, 46).unwrap();
        drop(client);
        let patience = std::time::Instant::now();
        while discard(&server, 1).is_err() && patience.elapsed().as_secs() < 20 {}
        assert_eq!(discard(&server, 1).unwrap(), 0);
    }

    #[test]
    fn congestion_control_is_set_and_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        set_congestion_control(&client, "reno").unwrap();
        assert_eq!(congestion_control(&client), "reno");
        assert!(set_congestion_control(&client, "no such").is_err());
        let info = tcp_info(&client).unwrap();
        assert!(info.sample.window_bytes > 0);
    }

    #[test]
    fn an_old_kernel_says_less() {
        let mut info = [0_u8; 104];
        info[5] = 8;
        info[16] = 10;
        info[80] = 3;
        info[100] = 7;
        let read = TcpInfo::read(&info).unwrap();
        let sample = TcpSample { window_bytes: 30, retransmitted: 7, ..TcpSample::default() };
        assert_eq!((read.ecn, read.sample), (true, sample));
        assert_eq!(TcpInfo::read(&info[..5]), None);
    }
}

#[cfg(test)]
mod tcp_state_tests {
    use super::*;
    use crate::sys::socket::{Address, Listener, RawAddress, Socket};

    #[test]
    fn tcp_state_follows_syn_to_first_acknowledgement() {
        let any = RawAddress::new(&Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
        let listener = Listener::bind(&any, 0).unwrap();
        let to = RawAddress::new(&listener.local_address().unwrap()).unwrap();
        let phase = |socket: &Socket| socket.tcp_state().unwrap().phase;
        let first = Socket::new(&to).unwrap();
        assert_eq!(phase(&first), TcpPhase::Closed);
        first.connect(&to).unwrap();
        let wait = |done: &dyn Fn() -> bool| {
            let patience = std::time::Instant::now();
            while !done() && patience.elapsed().as_secs() < 20 {
                std::thread::yield_now();
            }
            assert!(done());
        };
        wait(&|| phase(&first) == TcpPhase::Established);
        // The SYN alone does not count as acknowledged.
        assert!(!first.tcp_state().unwrap().is_acknowledged);
        first.send(b"hello").unwrap();
        wait(&|| first.tcp_state().unwrap().is_acknowledged);
        // A backlog of 0 has room for one: the next is not answered.
        let second = Socket::new(&to).unwrap();
        second.connect(&to).unwrap();
        assert_eq!(phase(&second), TcpPhase::Connecting);
        drop(listener);
    }

    #[test]
    fn an_old_kernel_says_less() {
        let mut info = [0; 104];
        info[0] = 1;
        assert!(TcpState::read(&info).unwrap().is_acknowledged);
        info[24] = 1;
        assert!(!TcpState::read(&info).unwrap().is_acknowledged);
        assert_eq!(TcpState::read(&info[..8]), None);
    }
}
