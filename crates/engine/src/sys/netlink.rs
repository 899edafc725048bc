//! netlink(7): dumps of the kernel's tables, and its socket diagnostics.

use super::{check_count, owned, set_option};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};

/// Longest piece of a dump; the kernel fills up to 32 KiB at a time.
const PIECE: usize = 64 << 10;
/// Longest dump that is read: no machine has as many entries.
const DUMP_MAX: usize = 16 << 20;
/// The kernel answers a dump at once; whatever keeps it longer than this is not waited for.
const PATIENCE_S: u8 = 2;

/// Length of the header of a netlink message (struct nlmsghdr).
pub const HEADER: usize = 16;

/// Asks for a dump: `kind` is the message type, such as RTM_GETQDISC, and `body` what follows the
/// header. Returns the answers behind each other, each with its header, the last one left out. No
/// rights are needed.
///
/// # Errors
/// Netlink is not permitted here, the kernel refuses the question, or the answer has no end.
pub fn dump(kind: u16, body: &[u8]) -> io::Result<Vec<u8>> {
    dump_of(libc::NETLINK_ROUTE, kind, body, DUMP_MAX)
}

/// The same of another protocol of netlink, such as NETLINK_NETFILTER, which may need rights. A
/// dump longer than `longest` bytes is an error.
///
/// # Errors
/// As [`dump`].
pub fn dump_of(
    protocol: libc::c_int,
    kind: u16,
    body: &[u8],
    longest: usize,
) -> io::Result<Vec<u8>> {
    let socket = open(libc::SOCK_RAW, protocol)?;
    ask(&socket, kind, body)?;
    let mut answers = Vec::new();
    let mut piece = vec![0_u8; PIECE];
    loop {
        let fd = socket.as_raw_fd();
        // SAFETY: the buffer is ours and has the length that we say.
        let length =
            check_count(|| unsafe { libc::recv(fd, piece.as_mut_ptr().cast(), piece.len(), 0) })?;
        if length == 0 || answers.len() + length > longest {
            return Err(io::ErrorKind::InvalidData.into());
        }
        for message in messages(&piece[..length]) {
            match message.kind {
                // struct nlmsgerr begins with the error, negative.
                k if k == libc::NLMSG_ERROR as u16 => {
                    let code = message.body.get(..4).and_then(|b| b.try_into().ok());
                    let code = i32::from_ne_bytes(code.unwrap_or([0; 4]));
                    return Err(io::Error::from_raw_os_error(code.saturating_neg()));
                }
                k if k == libc::NLMSG_DONE as u16 => return Ok(answers),
                _ => answers.extend_from_slice(message.whole),
            }
        }
    }
}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its type.
    pub kind: u16,
    /// What follows its header.
    pub body: &'a [u8],
    /// All of it, with the padding behind it.
    whole: &'a [u8],
}

/// The messages of some bytes; those from the first malformed one on are left out.
pub fn messages(bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(rest.get(..4)?.try_into().ok()?) as usize;
        let kind = u16::from_ne_bytes(rest.get(4..6)?.try_into().ok()?);
        let body = rest.get(HEADER..length)?;
        let (whole, behind) = rest.split_at(padded(length).min(rest.len()));
        rest = behind;
        Some(Message { kind, body, whole })
    })
}

/// The attributes (struct rtattr) of some bytes: type and value; those from the first malformed
/// one on are left out.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(rest.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(rest.get(2..4)?.try_into().ok()?);
        let value = rest.get(4..length)?;
        rest = &rest[padded(length).min(rest.len())..];
        // The two highest bits are flags.
        Some((kind & 0x3fff, value))
    })
}

/// Messages and attributes begin at multiples of four.
fn padded(length: usize) -> usize {
    length.next_multiple_of(4)
}

/// The name of the interface with this index in the network namespace of this thread.
pub fn interface_name(index: u32) -> Option<String> {
    let mut name = [0_u8; libc::IF_NAMESIZE];
    // SAFETY: the buffer has the length that the call asks for, and ends up with a zero in it.
    let found = unsafe { libc::if_indextoname(index, name.as_mut_ptr().cast()) };
    if found.is_null() {
        return None;
    }
    let end = name.iter().position(|&b| b == 0)?;
    String::from_utf8(name[..end].to_vec()).ok()
}

/// Opens a netlink socket of this kind that waits for an answer at most [`PATIENCE_S`] seconds.
fn open(kind: libc::c_int, protocol: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    let socket =
        owned(unsafe { libc::socket(libc::AF_NETLINK, kind | libc::SOCK_CLOEXEC, protocol) })?;
    let patience = libc::timeval { tv_sec: PATIENCE_S.into(), tv_usec: 0 };
    set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &patience)?;
    Ok(socket)
}

fn ask(socket: &OwnedFd, kind: u16, body: &[u8]) -> io::Result<()> {
    let length = (HEADER + body.len()) as u32;
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    let mut question = Vec::with_capacity(length as usize);
    question.extend_from_slice(&length.to_ne_bytes());
    question.extend_from_slice(&kind.to_ne_bytes());
    question.extend_from_slice(&flags.to_ne_bytes());
    // Sequence number and port, which a dump on a socket of its own does not need.
    question.extend_from_slice(&[0; 8]);
    question.extend_from_slice(body);
    let fd = socket.as_raw_fd();
    // SAFETY: the buffer is ours and has the length that we say.
    check_count(|| unsafe { libc::send(fd, question.as_ptr().cast(), question.len(), 0) }).map(drop)
}

/// A socket to the kernel's socket diagnostics (sock_diag(7)); closed when dropped.
#[derive(Debug)]
pub struct SocketDiagnostics(OwnedFd);

impl SocketDiagnostics {
    /// Opens one. It waits for an answer at most two seconds.
    ///
    /// # Errors
    /// A kernel without socket diagnostics; out of descriptors.
    pub fn open() -> io::Result<SocketDiagnostics> {
        open(libc::SOCK_DGRAM, libc::NETLINK_INET_DIAG).map(SocketDiagnostics)
    }

    /// Sends a message to the kernel.
    ///
    /// # Errors
    /// Out of memory.
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        // SAFETY: a struct of integers, for which all zeroes are valid; port 0 is the kernel.
        let mut kernel: libc::sockaddr_nl = unsafe { MaybeUninit::zeroed().assume_init() };
        kernel.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        let length = size_of_val(&kernel) as libc::socklen_t;
        let (fd, from, to) = (self.0.as_raw_fd(), message.as_ptr().cast(), &raw const kernel);
        // SAFETY: message and address are borrowed and have the lengths that we say.
        check_count(|| unsafe { libc::sendto(fd, from, message.len(), 0, to.cast(), length) })
            .map(drop)
    }

    /// Receives one datagram of messages.
    ///
    /// # Errors
    /// `WouldBlock` where none came in time.
    pub fn receive<'a>(&self, into: &'a mut [u8]) -> io::Result<&'a [u8]> {
        let fd = self.0.as_raw_fd();
        // SAFETY: the buffer is ours and has the length that we say.
        let count =
            check_count(|| unsafe { libc::recv(fd, into.as_mut_ptr().cast(), into.len(), 0) })?;
        Ok(&into[..count])
    }
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
    fn the_loopback_interface_is_the_first() {
        assert_eq!(interface_name(1).as_deref(), Some("lo"));
        assert_eq!(interface_name(u32::MAX), None);
    }
}
