//! Reading a stream with the kernel's receive timestamps (SO_TIMESTAMPING).

use super::{check, check_count};
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// Room for the one control message that is asked for: a header and three timespecs, aligned.
type Control = [u64; 12];

/// From now on the kernel notes when each segment came, and [`receive`] tells; sockets that a
/// listener accepts inherit it. Unix sockets take it and never tell.
///
/// # Errors
/// None in correct use.
pub fn enable(socket: &impl AsFd) -> io::Result<()> {
    let what = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    let (fd, length) = (
        socket.as_fd().as_raw_fd(),
        size_of_val(&what) as libc::socklen_t,
    );
    let (level, name) = (libc::SOL_SOCKET, libc::SO_TIMESTAMPING);
    // SAFETY: the value is ours and has the length that we say.
    check(unsafe { libc::setsockopt(fd, level, name, (&raw const what).cast(), length) }).map(drop)
}

/// Reads what has come, 0 at the end, and when the last byte of it came, by CLOCK_REALTIME in
/// nanoseconds; `None` where the kernel does not tell.
///
/// # Errors
/// `WouldBlock` where nothing is there and the socket does not block; reset.
#[inline]
pub fn receive(socket: &impl AsFd, into: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
    let fd = socket.as_fd().as_raw_fd();
    let mut part = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let mut control: Control = [0; 12];
    // SAFETY: all zeroes are a valid msghdr: no address, no buffers, no control.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    let read = check_count(|| {
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of::<Control>() as _;
        // SAFETY: the header points to a buffer and to control data of ours, each with its length.
        unsafe { libc::recvmsg(fd, &raw mut message, 0) }
    })?;
    Ok((read, stamp(&message)))
}

/// Waits until the kernel notes times, which it begins some time after the first socket of the host
/// has asked for them; 100 ms at the most.
pub fn await_times() {
    const TRIES: u32 = 100;
    let is_noted = |socket: &UdpSocket| {
        let mut byte = [0];
        socket.send(&byte)?;
        receive(socket, &mut byte)
    };
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| {
        socket.connect(socket.local_addr()?)?;
        socket.set_read_timeout(Some(Duration::from_millis(1)))?;
        enable(&socket)?;
        Ok(socket)
    });
    for _ in 0..TRIES {
        if let Ok(Ok((_, Some(_)))) = socket.as_ref().map(is_noted) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The software timestamp among the control messages.
fn stamp(message: &libc::msghdr) -> Option<u64> {
    // SAFETY: the kernel has filled the control buffer up to the length in the header; the macros
    // stay within it.
    let time = unsafe {
        let found = libc::CMSG_FIRSTHDR(message);
        let header = found.as_ref()?;
        if (header.cmsg_level, header.cmsg_type) != (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) {
            return None;
        }
        libc::CMSG_DATA(found)
            .cast::<libc::timespec>()
            .read_unaligned()
    };
    let ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
    (ns > 0).then_some(ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::clock::realtime_ns;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    #[test]
    fn what_is_accepted_tells_when_its_bytes_came() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        enable(&listener).unwrap();
        await_times();
        // Another test may end meanwhile, as the last that asked for it.
        let stamped = (0..200).any(|_| {
            let before = realtime_ns();
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (server, _) = listener.accept().unwrap();
            client.write_all(b"four").unwrap();
            let mut peeked = [0; 4];
            server.peek(&mut peeked).unwrap();
            let between = realtime_ns();
            std::thread::sleep(Duration::from_millis(5));
            let (read, came) = receive(&server, &mut peeked).unwrap();
            assert_eq!((read, &peeked), (4, b"four"));
            came.is_some_and(|came| {
                assert!(
                    before <= came && came <= between,
                    "{before} {came} {between}"
                );
                true
            })
        });
        assert!(stamped);
    }

    #[test]
    fn a_unix_socket_tells_nothing_and_an_end_is_an_end() {
        let (mut client, server) = UnixStream::pair().unwrap();
        enable(&server).unwrap();
        client.write_all(b"one").unwrap();
        let mut into = [0; 8];
        assert_eq!(receive(&server, &mut into).unwrap(), (3, None));
        server.set_nonblocking(true).unwrap();
        let nothing = receive(&server, &mut into).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        drop(client);
        assert_eq!(receive(&server, &mut into).unwrap(), (0, None));
    }
}
