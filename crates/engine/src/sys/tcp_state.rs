//! What the kernel says of a TCP connection.

/// A few facts of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpState {
    /// How far it has come.
    pub phase: TcpPhase,
    /// The peer has acknowledged something that was sent over it.
    pub is_acknowledged: bool,
}

/// How far a TCP connection has come.
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
        let unacknowledged = u32::from_ne_bytes(info.get(24..28)?.try_into().ok()?);
        let acknowledged = match info.get(120..128) {
            Some(bytes) => u64::from_ne_bytes(bytes.try_into().ok()?) > 1,
            None => unacknowledged == 0,
        };
        Some(TcpState { phase, is_acknowledged: acknowledged })
    }
}

#[cfg(test)]
mod tests {
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
