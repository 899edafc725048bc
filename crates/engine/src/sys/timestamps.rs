//! Receive timestamps, and the control messages in which the kernel sends them
//! (Documentation/networking/timestamping.rst in the kernel's source).

use super::{check_count, set_option};
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd};
use std::{io, slice};

/// Words of control buffer that one timestamp needs: a header and a timespec (cmsg(3)). In words,
/// as control messages are aligned so.
pub const CONTROL_WORDS: usize = (HEADER_BYTES + 2 * WORD_BYTES) / WORD_BYTES;

/// The same with the length of the datagrams that came together (UDP_GRO), a number of 32 bits.
pub(super) const COALESCED_WORDS: usize = CONTROL_WORDS + HEADER_BYTES / WORD_BYTES + 1;

const WORD_BYTES: usize = size_of::<usize>();
/// The kernel's own header: a word for the length, then level and type.
const HEADER_BYTES: usize = WORD_BYTES + 8;

/// The control messages in a buffer: level, type and data (cmsg(3)).
struct ControlMessages<'a>(&'a [u8]);

impl<'a> Iterator for ControlMessages<'a> {
    type Item = (i32, i32, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (header, rest) = self.0.split_at_checked(HEADER_BYTES)?;
        let length = usize::from_ne_bytes(header[..WORD_BYTES].try_into().ok()?);
        let level = i32::from_ne_bytes(header[WORD_BYTES..][..4].try_into().ok()?);
        let kind = i32::from_ne_bytes(header[WORD_BYTES + 4..][..4].try_into().ok()?);
        let length = length.clamp(HEADER_BYTES, self.0.len());
        self.0 = self.0.get(length.next_multiple_of(WORD_BYTES)..).unwrap_or_default();
        Some((level, kind, &rest[..length - HEADER_BYTES]))
    }
}

/// Receive time in these control messages, in nanoseconds of CLOCK_REALTIME; `None` if there is
/// none.
#[inline]
pub fn realtime_ns(control: &[u8]) -> Option<u64> {
    let is_time = |&(level, kind, _): &(i32, i32, &[u8])| {
        level == libc::SOL_SOCKET && [libc::SCM_TIMESTAMPNS, libc::SCM_TIMESTAMPING].contains(&kind)
    };
    let (.., data) = ControlMessages(control).find(is_time)?;
    let word = |index: usize| {
        let bytes = data.get(index * WORD_BYTES..)?.get(..WORD_BYTES)?.try_into().ok()?;
        u64::try_from(isize::from_ne_bytes(bytes)).ok()
    };
    Some(word(0)? * 1_000_000_000 + word(1)?)
}

/// Length of each of the datagrams that came together, the last of which may be shorter; `None`:
/// there is one datagram.
#[inline]
pub(super) fn coalesced_bytes(control: &[u8]) -> Option<usize> {
    let is_length =
        |&(level, kind, _): &(i32, i32, &[u8])| (level, kind) == (libc::SOL_UDP, libc::UDP_GRO);
    let (.., data) = ControlMessages(control).find(is_length)?;
    let length = i32::from_ne_bytes(data.get(..4)?.try_into().ok()?);
    usize::try_from(length).ok().filter(|length| *length > 0)
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
