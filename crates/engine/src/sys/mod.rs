//! Thin, safe wrappers of the system calls that the standard library lacks.
//!
//! One call each, no policy: errors come back as [`std::io::Error`], interrupted calls are retried.

pub mod buffers;
pub mod clock;
pub mod datagrams;
pub mod epoll;
pub mod guard;
pub mod memory;
pub mod netlink;
pub mod packet;
pub mod process;
pub mod socket;
pub mod stream;
pub mod terminal;
pub mod thread;
pub mod timestamps;
pub mod tracepoint;
pub mod udp;
pub mod xtables;

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// Converts the result of a call that returns −1 and sets `errno` on failure.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// Makes a call that returns a count, again while a signal interrupts it.
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

/// Takes a descriptor that a system call has just returned.
fn owned(result: libc::c_int) -> io::Result<OwnedFd> {
    let fd = check(result)?;
    // SAFETY: the kernel has just given us this descriptor; it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// setsockopt(2) with an integer or a struct of the C library.
pub(crate) fn set_option<T: Copy>(
    socket: &impl AsFd,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let fd = socket.as_fd().as_raw_fd();
    let length = size_of_val(value) as libc::socklen_t;
    // SAFETY: the value is borrowed and has this length.
    check(unsafe { libc::setsockopt(fd, level, name, (&raw const *value).cast(), length) })
        .map(drop)
}

/// The bytes of a field at an offset, if `bytes` is long enough.
pub(crate) fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Types for which any bytes are valid.
trait Plain: Copy {}
impl Plain for u8 {}
impl Plain for u32 {}

/// getsockopt(2) into `value`. Returns the bytes that the kernel wrote.
fn get_option<T: Plain>(
    socket: &impl AsFd,
    level: libc::c_int,
    name: libc::c_int,
    value: &mut [T],
) -> io::Result<usize> {
    let fd = socket.as_fd().as_raw_fd();
    let mut length = size_of_val(value) as libc::socklen_t;
    let to = value.as_mut_ptr().cast();
    // SAFETY: value and length are ours and fit each other; any bytes are valid for it.
    check(unsafe { libc::getsockopt(fd, level, name, to, &raw mut length) })?;
    Ok((length as usize).min(size_of_val(value)))
}

/// Memory of a socket by SO_MEMINFO, indexed by `SK_MEMINFO_*`.
fn socket_memory(socket: &impl AsFd) -> io::Result<[u32; 16]> {
    let mut memory = [0; 16];
    get_option(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut memory)?;
    Ok(memory)
}
