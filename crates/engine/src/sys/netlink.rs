//! netlink(7): dumps of the kernel's tables and of its sockets.

use super::field;
use rustix::io::retry_on_intr;
use rustix::net::netdevice::index_to_name;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{recv, send, socket, socket_with};
use std::io;
use std::time::Duration;

/// Longest piece of a dump; the kernel fills up to 32 KiB at a time.
const PIECE: usize = 64 << 10;
/// Longest dump that is read: no machine has as many entries.
const DUMP_MAX: usize = 16 << 20;
/// Time limit of an answer. The kernel answers a dump at once.
const PATIENCE: Duration = Duration::from_secs(2);

/// Length of the header of a netlink message (struct nlmsghdr).
pub const HEADER: usize = 16;

/// Asks for a dump: `kind` is the message type, such as RTM_GETQDISC, and `body` what follows the
/// header. Returns the answers behind each other, each with its header, the last one left out. No
/// rights are needed.
///
/// # Errors
/// Netlink is not permitted here, the kernel refuses the question, or the answer has no end.
pub fn dump(kind: u16, body: &[u8]) -> io::Result<Vec<u8>> {
    dump_of(None, kind, body, DUMP_MAX)
}

/// The same of another protocol of netlink, such as NETLINK_NETFILTER, which may need rights. A
/// dump longer than `longest` bytes is an error.
///
/// # Errors
/// As [`dump`].
pub fn dump_of(
    protocol: Option<Protocol>,
    kind: u16,
    body: &[u8],
    longest: usize,
) -> io::Result<Vec<u8>> {
    let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
    let socket = socket_with(family, SocketType::RAW, flags, protocol)?;
    set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
    let request = request(kind, body);
    retry_on_intr(|| send(&socket, &request, SendFlags::empty()))?;
    let mut answers = Vec::new();
    let mut piece = vec![0_u8; PIECE];
    loop {
        let (length, _) = retry_on_intr(|| recv(&socket, &mut piece[..], RecvFlags::empty()))?;
        if length == 0 || answers.len() + length > longest {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if take_piece(&piece[..length], &mut answers)? {
            return Ok(answers);
        }
    }
}

/// Adds the answers of a piece of a dump to `answers`. Returns whether the dump has ended.
///
/// # Errors
/// The error that the kernel answers with; a message that is cut off.
fn take_piece(piece: &[u8], answers: &mut Vec<u8>) -> io::Result<bool> {
    let mut read = 0;
    for message in messages(piece) {
        match message.kind {
            // struct nlmsgerr begins with the error, negative.
            k if k == libc::NLMSG_ERROR as u16 => {
                let code = i32::from_ne_bytes(field(message.body, 0).unwrap_or_default());
                return Err(io::Error::from_raw_os_error(code.saturating_neg()));
            }
            k if k == libc::NLMSG_DONE as u16 => return Ok(true),
            _ => answers.extend_from_slice(message.whole),
        }
        read += message.whole.len();
    }
    if read < piece.len() { Err(io::ErrorKind::InvalidData.into()) } else { Ok(false) }
}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its type.
    pub kind: u16,
    /// What follows its header.
    pub body: &'a [u8],
    /// The whole message with its padding.
    whole: &'a [u8],
}

/// Parses messages, up to the first malformed one.
pub fn messages(bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(field(rest, 0)?) as usize;
        let kind = u16::from_ne_bytes(field(rest, 4)?);
        let body = rest.get(HEADER..length)?;
        let (whole, behind) = rest.split_at(padded(length).min(rest.len()));
        rest = behind;
        Some(Message { kind, body, whole })
    })
}

/// Parses attributes (struct rtattr), type and value, up to the first malformed one.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(field(rest, 0)?));
        let kind = u16::from_ne_bytes(field(rest, 2)?);
        let value = rest.get(4..length)?;
        rest = &rest[padded(length).min(rest.len())..];
        // The two highest bits are flags.
        Some((kind & 0x3fff, value))
    })
}

/// The value of the first attribute of this type.
pub fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|&(attribute, _)| attribute == kind).map(|(_, value)| value)
}

/// Messages and attributes begin at multiples of four.
fn padded(length: usize) -> usize {
    length.next_multiple_of(4)
}

/// The name of the interface with this index in the network namespace of this thread.
pub fn interface_name(index: u32) -> Option<String> {
    let any = socket(AddressFamily::INET, SocketType::DGRAM, None).ok()?;
    index_to_name(any, index).ok()
}

/// A request for a dump, with its header.
fn request(kind: u16, body: &[u8]) -> Vec<u8> {
    let length = (HEADER + body.len()) as u32;
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    let mut request = Vec::with_capacity(length as usize);
    request.extend_from_slice(&length.to_ne_bytes());
    request.extend_from_slice(&kind.to_ne_bytes());
    request.extend_from_slice(&flags.to_ne_bytes());
    // Sequence number and port, which a dump on a socket of its own does not need.
    request.extend_from_slice(&[0; 8]);
    request.extend_from_slice(body);
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_messages_and_attributes_end_the_list() {
        let whole = [20, 0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4];
        for cut in 0..whole.len() {
            assert_eq!(messages(&whole[..cut]).count(), 0, "{cut} bytes");
        }
        let one = messages(&whole).next().unwrap();
        assert_eq!((one.kind, one.body), (36, &[1, 2, 3, 4][..]));
        for lie in [0, 15, 21, 255] {
            let mut wrong = whole;
            wrong[0] = lie;
            assert_eq!(messages(&wrong).count(), 0, "length {lie}");
        }
        let two = [5, 0, 1, 0, 9, 0, 0, 0, 4, 0, 2, 0x80];
        let read: Vec<_> = attributes(&two).collect();
        assert_eq!(read, [(1, &[9][..]), (2, &[][..])]);
        for lie in [0, 3, 13] {
            let mut wrong = two;
            wrong[0] = lie;
            assert_eq!(attributes(&wrong).count(), 0, "length {lie}");
        }
    }

    #[test]
    fn an_error_and_an_answer_cut_off_are_errors() {
        let mut answers = Vec::new();
        let mut message = request(20, &[0; 56]);
        assert!(take_piece(&message[..40], &mut answers).is_err());
        message[4] = libc::NLMSG_ERROR as u8;
        assert!(take_piece(&message, &mut answers).is_err());
        message[4] = libc::NLMSG_DONE as u8;
        assert!(take_piece(&message, &mut answers).unwrap());
        assert!(answers.is_empty());
    }

    #[test]
    fn the_loopback_interface_is_the_first() {
        assert_eq!(interface_name(1).as_deref(), Some("lo"));
        assert_eq!(interface_name(u32::MAX), None);
    }
}
