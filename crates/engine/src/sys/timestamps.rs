//! Receive timestamps, and the control messages in which the kernel sends them
//! (Documentation/networking/timestamping.rst in the kernel's source).

use super::{check_count, set_option};
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd};
use std::{io, slice};

/// Words of control buffer that one timestamp needs: a header and a timespec (cmsg(3)). In words,
/// as control messages are aligned so.
pub const CONTROL_WORDS: usize = (HEADER_BYTES + 2 * WORD_BYTES) / WORD_BYTES;

const WORD_BYTES: usize = size_of::<usize>();
/// The kernel's own header: a word for the length, then level and type.
const HEADER_BYTES: usize = WORD_BYTES + 8;

/// Receive time in these control messages, in nanoseconds of CLOCK_REALTIME; `None` if there is
/// none.
#[inline]
pub fn realtime_ns(mut control: &[u8]) -> Option<u64> {
    while let Some(header) = control.get(..HEADER_BYTES) {
        let length = usize::from_ne_bytes(header[..WORD_BYTES].try_into().ok()?);
        let level = i32::from_ne_bytes(header[WORD_BYTES..][..4].try_into().ok()?);
        let kind = i32::from_ne_bytes(header[WORD_BYTES + 4..][..4].try_into().ok()?);
        let is_time = [libc::SCM_TIMESTAMPNS, libc::SCM_TIMESTAMPING].contains(&kind);
        if level == libc::SOL_SOCKET && is_time {
            let word = |index: usize| {
                let bytes = control.get(HEADER_BYTES + index * WORD_BYTES..)?;
                let bytes = bytes.get(..WORD_BYTES)?.try_into().ok()?;
                u64::try_from(isize::from_ne_bytes(bytes)).ok()
            };
            return Some(word(0)? * 1_000_000_000 + word(1)?);
        }
        let next = length.clamp(HEADER_BYTES, control.len());
        let next = next.next_multiple_of(WORD_BYTES);
        control = control.get(next..)?;
    }
    None
}

/// The control messages that the kernel wrote for this header.
///
/// # Safety
/// The header's control buffer is valid while the header is borrowed. The kernel, or whoever wrote
/// it, has initialised it up to the header's length.
#[inline]
pub unsafe fn control_of(header: &libc::msghdr) -> &[u8] {
    let start = header.msg_control;
    // Another type with another C library.
    #[allow(clippy::unnecessary_cast)]
    let length = header.msg_controllen as usize;
    if start.is_null() {
        return &[];
    }
    // SAFETY: promised by the caller.
    unsafe { slice::from_raw_parts(start.cast::<u8>(), length) }
}

/// Turns on receive timestamps (CLOCK_REALTIME): SO_TIMESTAMPNS.
///
/// # Errors
/// A kernel without timestamps.
pub fn set_timestamps(socket: &impl AsFd) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1_i32)
}

/// Asks the kernel for a timestamp only of what it stamps anyway (SO_TIMESTAMPING). SO_TIMESTAMPNS
/// would make one up for a datagram that has none.
///
/// # Errors
/// None in correct use.
pub fn set_only_if_stamped(socket: &UdpSocket) -> io::Result<()> {
    let sources = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &sources)
}

/// Receives one datagram and returns whether it has a timestamp.
///
/// # Errors
/// Nothing came in time.
pub fn comes_stamped(socket: &UdpSocket) -> io::Result<bool> {
    // SAFETY: all zeroes are a valid msghdr: no address, no buffers.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    let mut control = [0_u64; 16];
    header.msg_control = control.as_mut_ptr().cast();
    check_count(|| {
        header.msg_controllen = size_of_val(&control) as _;
        // SAFETY: the header and its control buffer are ours, with the length that it says.
        unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, 0) }
    })?;
    // SAFETY: the control buffer lives here and was initialised above.
    Ok(realtime_ns(unsafe { control_of(&header) }).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
        let mut bytes = (HEADER_BYTES + data.len()).to_ne_bytes().to_vec();
        bytes.extend(level.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(WORD_BYTES), 0);
        bytes
    }

    fn stamp(seconds: isize, nanos: isize) -> Vec<u8> {
        let data = [seconds.to_ne_bytes(), nanos.to_ne_bytes()].concat();
        message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, &data)
    }

    #[test]
    fn a_timestamp_is_found_among_others_and_never_made_up() {
        let whole = stamp(3, 7);
        assert_eq!(realtime_ns(&whole), Some(3_000_000_007));
        let other = message(libc::SOL_SOCKET, libc::SCM_RIGHTS, &[1, 2, 3, 4]);
        assert_eq!(realtime_ns(&[other.clone(), whole.clone()].concat()), Some(3_000_000_007));
        assert_eq!(realtime_ns(&other), None);
        for cut in 0..whole.len() {
            assert_eq!(realtime_ns(&whole[..cut]), None, "cut at {cut}");
        }
        assert_eq!(realtime_ns(&stamp(-1, 0)), None);
        assert_eq!(realtime_ns(&[0; 64]), None, "a length of 0 does not loop");
        assert_eq!(realtime_ns(&[0xFF; 64]), None);
    }
}
