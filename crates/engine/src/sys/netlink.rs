//! Asking the kernel over rtnetlink(7): one dump, as the bytes of its messages.

use super::{check, check_count};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Messages of a dump are at most so long; the kernel fills up to 32 KiB at a time.
const PIECE: usize = 64 << 10;
/// A dump longer than this is given up: no machine has so many of anything asked for here.
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

/// The same of another protocol of netlink, such as NETLINK_NETFILTER, which may need rights; a
/// dump longer than `longest` bytes is given up.
///
/// # Errors
/// As [`dump`].
pub fn dump_of(
    protocol: libc::c_int,
    kind: u16,
    body: &[u8],
    longest: usize,
) -> io::Result<Vec<u8>> {
    let socket = open(protocol)?;
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

fn open(protocol: libc::c_int) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers.
    let fd = check(unsafe { libc::socket(libc::AF_NETLINK, kind, protocol) })?;
    // SAFETY: the kernel has just given us this descriptor; nobody else has it.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let patience = libc::timeval {
        tv_sec: PATIENCE_S.into(),
        tv_usec: 0,
    };
    let length = size_of_val(&patience) as libc::socklen_t;
    let value = (&raw const patience).cast();
    // SAFETY: the value is ours and has the length that we say.
    check(unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVTIMEO, value, length) })?;
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
