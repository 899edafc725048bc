//! Thin, safe wrappers of the system calls that the standard library lacks.
//!
//! One call each, no policy: errors come back as [`std::io::Error`], interrupted calls are retried.

pub mod buffers;
pub mod clock;
pub mod datagrams;
pub mod epoll;
pub mod eventfd;
pub mod guard;
pub mod keepalive;
mod listener;
pub mod memory;
pub mod netlink;
pub mod packet;
pub mod process;
pub mod sockdiag;
pub mod socket;
pub mod stamp;
pub mod stream;
mod tcp_state;
pub mod terminal;
pub mod thread;
pub mod timer;
pub mod tracepoint;
pub mod udp;
pub mod uring_timer;
pub mod xtables;

use std::io;

/// The result of a call that returns −1 and sets `errno` where it fails.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// The same for calls that return a count; retried while a signal interrupts them.
fn check_count(mut call: impl FnMut() -> libc::ssize_t) -> io::Result<usize> {
    loop {
        if let Ok(count) = usize::try_from(call()) {
            return Ok(count);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}
