//! How flows' sockets are made and set up.

use crate::error::{RunError, reason};
use crate::sys::clock;
use crate::sys::epoll::{Epoll, EpollEvent, flags};
use crate::sys::socket::{Connect, RawAddress, Socket};
use crate::sys::stream::{self, Held, held};
use knee_load::experiment::latency::FlowSockets;
use knee_load::time::Nanos;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::{fs, io};

/// Time limit for connecting all flows.
const CONNECT_NS: u64 = 10_000_000_000;

/// Sets up a flow's socket.
///
/// # Errors
/// The kernel refuses an option.
pub(crate) fn set_up(socket: &impl AsFd, how: &FlowSockets) -> io::Result<()> {
    if let Some(name) = &how.congestion_control {
        stream::set_congestion_control(socket, name)?;
    }
    if let Some(dscp) = how.dscp {
        stream::set_dscp(socket, dscp)?;
    }
    Ok(())
}

/// Checks that this host has the congestion control that is asked for.
///
/// # Errors
/// It has not: one line with what it has.
pub(crate) fn check(how: &FlowSockets) -> Result<(), String> {
    let Some(name) = &how.congestion_control else {
        return Ok(());
    };
    let any = RawAddress::from(SocketAddr::from(([127, 0, 0, 1], 0)));
    let tried = Socket::new(&any).and_then(|socket| stream::set_congestion_control(&socket, name));
    let Err(error) = tried else {
        return Ok(());
    };
    let read = |file: &str| {
        let text = fs::read_to_string(format!("/proc/sys/net/ipv4/{file}"));
        text.unwrap_or_default().trim().to_owned()
    };
    let shown: String = name.chars().filter(|c| !c.is_control()).take(32).collect();
    if error.kind() == io::ErrorKind::PermissionDenied {
        return Err(format!(
            "the congestion control '{shown}' is not permitted to every user; permitted are: {}",
            read("tcp_allowed_congestion_control")
        ));
    }
    Err(format!(
        "the congestion control '{shown}' is not available ({}); available are: {}",
        reason(&error),
        read("tcp_available_congestion_control")
    ))
}

/// Connects `count` flows, all at once.
///
/// # Errors
/// The first flow that cannot connect.
pub(crate) fn connect(
    to: SocketAddr,
    count: usize,
    how: &FlowSockets,
) -> Result<Vec<TcpStream>, RunError> {
    let failed = |n: usize, e: &io::Error| {
        RunError::Unreachable(format!("flow {n} cannot connect to {to}: {}", reason(e)))
    };
    let raw = RawAddress::from(to);
    let begin = |n: usize| begin(&raw, how).map_err(|e| failed(n, &e));
    let begun: Vec<(Socket, Connect)> = (0..count).map(begin).collect::<Result<_, _>>()?;
    let until_ns = clock::monotonic_ns() + CONNECT_NS;
    let mut streams = Vec::with_capacity(count);
    for (n, (socket, connect)) in begun.into_iter().enumerate() {
        if connect == Connect::InProgress {
            await_connect(&socket, until_ns).map_err(|e| failed(n, &e))?;
        }
        streams.push(TcpStream::from(OwnedFd::from(socket)));
    }
    Ok(streams)
}

fn begin(to: &RawAddress, how: &FlowSockets) -> io::Result<(Socket, Connect)> {
    let socket = Socket::new(to)?;
    set_up(&socket, how)?;
    let connect = socket.connect(to)?;
    Ok((socket, connect))
}

fn await_connect(socket: &Socket, until_ns: u64) -> io::Result<()> {
    let epoll = Epoll::new()?;
    epoll.add(socket, 0, flags::WRITE)?;
    let mut events = [EpollEvent::EMPTY; 1];
    loop {
        let left_ns = until_ns.saturating_sub(clock::monotonic_ns());
        if left_ns == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if !epoll.wait(&mut events, Some(Nanos(left_ns)))?.is_empty() {
            return socket.take_error()?.map_or(Ok(()), Err);
        }
    }
}

/// Decides whether a message written to a connection leaves this host at once. All its messages are
/// small.
#[derive(Debug, Default)]
pub(crate) struct SendGate {
    /// Bytes of one segment in the host's queues, as observed.
    segment: u32,
    /// Whether the queue was empty when the last message was written.
    was_empty: bool,
}

impl SendGate {
    /// Whether a message that is written now leaves TCP at once.
    pub(crate) fn is_open(&mut self, stream: &impl AsFd) -> bool {
        self.judge(held(stream))
    }

    /// Call this after the write.
    pub(crate) fn has_written(&mut self, stream: &impl AsFd) {
        if self.was_empty {
            self.learn(held(stream).queued);
        }
    }

    fn judge(&mut self, held: Held) -> bool {
        self.was_empty = held.queued == 0;
        held.unsent == 0 && held.queued <= self.segment
    }

    fn learn(&mut self, queued: u32) {
        // The smallest of several was of one segment.
        if queued > 0 && (self.segment == 0 || queued < self.segment) {
            self.segment = queued;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_congestion_control_lists_the_known_ones() {
        let how = |name: &str| FlowSockets {
            congestion_control: Some(name.to_owned()),
            ..FlowSockets::default()
        };
        assert_eq!(check(&FlowSockets::default()), Ok(()));
        assert_eq!(check(&how("reno")), Ok(()));
        for bad in ["nosuch", "", "very-long-and-not-a-name", "a\nb"] {
            let told = check(&how(bad)).unwrap_err();
            assert!(told.contains("available") && told.contains("reno"), "{told}");
            assert!(!told.contains('\n'), "{told}");
        }
    }

    #[test]
    fn nobody_there_is_told_by_flow() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let there = connect(address, 3, &FlowSockets::default()).unwrap();
        assert_eq!(there.len(), 3);
        drop(listener);
        let told = connect(address, 1, &FlowSockets::default()).unwrap_err();
        assert!(told.to_string().starts_with("flow 0 cannot connect"));
    }

    #[test]
    fn a_second_segment_may_follow_and_a_third_may_not() {
        let mut gate = SendGate::default();
        let now = |unsent, queued| Held { unsent, queued };
        assert!(gate.judge(now(0, 0)));
        gate.learn(1_280);
        assert!(gate.judge(now(0, 1_280)));
        assert!(!gate.judge(now(0, 2_560)), "two wait in the host");
        assert!(!gate.judge(now(60, 0)), "one waits in the socket");
        assert!(gate.judge(now(0, 0)));
    }

    #[test]
    fn a_connection_that_nothing_holds_up_is_open() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut gate = SendGate::default();
        assert!(gate.is_open(&client));
        gate.has_written(&client);
    }
}
