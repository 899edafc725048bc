//! Connections whose peer has vanished without a word.

use super::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Lets the kernel ask the peer of a quiet TCP connection whether it is still there, first after
/// 10 s; one that does not answer for 15 s more ends it with an error.
///
/// # Errors
/// Not TCP, or already reset.
pub fn keep_alive(stream: &impl AsFd) -> io::Result<()> {
    let fd = stream.as_fd().as_raw_fd();
    for (level, name, value) in [
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 10),
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, 5),
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 3),
    ] {
        let value: libc::c_int = value;
        let length = size_of_val(&value) as libc::socklen_t;
        let pointer = (&raw const value).cast();
        // SAFETY: the value is ours and has the length that we say.
        check(unsafe { libc::setsockopt(fd, level, name, pointer, length) })?;
    }
    Ok(())
}
