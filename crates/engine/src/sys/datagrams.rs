//! Receiving datagrams: many in one call (recvmmsg(2)), each with its address and the kernel's
//! receive timestamp, and what the kernel knows of the socket's buffer.
//!
//! Timestamps lie in control messages (Documentation/networking/timestamping.rst in the kernel's
//! source).

use super::socket::RawAddress;
use super::{check_count, set_option, socket_memory};
use rustix::io::retry_on_intr;
use rustix::net::{SendFlags, SocketAddrAny, sendto};
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::{io, slice};

/// A non-blocking UDP socket that receives with timestamps.
#[derive(Debug)]
pub struct DatagramSocket(UdpSocket);

/// What the kernel knows of a socket's receive side: SO_MEMINFO (socket(7)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveMemory {
    /// Bytes taken by what is queued, the kernel's own bookkeeping included.
    pub used: u32,
    /// Bytes that may be taken.
    pub limit: u32,
    /// Datagrams dropped at this socket since it was made; wraps.
    pub drops: u32,
}

impl DatagramSocket {
    /// Binds to `address` and asks for receive timestamps (SO_TIMESTAMPNS).
    ///
    /// # Errors
    /// In use, not permitted, not an address of this machine.
    pub fn bind(address: SocketAddr) -> io::Result<DatagramSocket> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        set_timestamps(&socket)?;
        Ok(DatagramSocket(socket))
    }

    /// Local address.
    ///
    /// # Errors
    /// None in correct use.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Asks for a receive buffer of `bytes`, which the kernel doubles for its own bookkeeping; more
    /// than net.core.rmem_max needs CAP_NET_ADMIN. The result is the limit of
    /// [`DatagramSocket::memory`].
    ///
    /// # Errors
    /// None in correct use.
    pub fn set_receive_buffer(&self, bytes: u32) -> io::Result<()> {
        let value = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
        set_option(self, libc::SOL_SOCKET, libc::SO_RCVBUF, &value)?;
        if u64::from(self.memory()?.limit) < 2 * u64::from(bytes) {
            // If it is not permitted, the result of the first call remains.
            let _ = set_option(self, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &value);
        }
        Ok(())
    }

    /// What the kernel knows of the socket's buffer now.
    ///
    /// # Errors
    /// A kernel before Linux 4.12.
    pub fn memory(&self) -> io::Result<ReceiveMemory> {
        let info = socket_memory(&self.0)?;
        Ok(ReceiveMemory {
            used: info[libc::SK_MEMINFO_RMEM_ALLOC as usize],
            limit: info[libc::SK_MEMINFO_RCVBUF as usize],
            drops: info[libc::SK_MEMINFO_DROPS as usize],
        })
    }

    /// Receives up to `limit` available datagrams into `batch` in one call. Returns their number.
    ///
    /// # Errors
    /// Those of recvmmsg(2) but `WouldBlock`.
    #[inline]
    pub fn receive(&self, batch: &mut DatagramBatch, limit: usize) -> io::Result<usize> {
        match batch.receive(&self.0, limit) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(0),
            received => received,
        }
    }

    /// Sends datagram `index` of the batch back to its sender. Returns whether the kernel took it.
    #[inline]
    pub fn send_back(&self, batch: &DatagramBatch, index: usize) -> bool {
        self.send_to(batch.bytes(index), &batch.sender(index))
    }

    /// Sends a datagram. Returns whether the kernel took it.
    #[inline]
    pub fn send_to(&self, bytes: &[u8], to: &RawAddress) -> bool {
        retry_on_intr(|| sendto(&self.0, bytes, SendFlags::DONTWAIT, &to.0)).is_ok()
    }
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Buffers for the datagrams of one receive call.
pub type DatagramBatch = ReceiveBatch<libc::sockaddr_storage>;

impl DatagramBatch {
    /// Source address of datagram `index`; IPv4 in IPv6 as plain IPv4. `None` for another family.
    #[inline]
    pub fn source(&self, index: usize) -> Option<IpAddr> {
        let from = SocketAddr::try_from(self.sender(index).0);
        from.ok().map(|from| from.ip().to_canonical())
    }

    /// Source address of datagram `index`, for an answer.
    #[inline]
    pub fn sender(&self, index: usize) -> RawAddress {
        let (name, length) = self.address(index);
        // SAFETY: the kernel wrote a whole address of this length.
        RawAddress(unsafe { SocketAddrAny::read((&raw const *name).cast(), length) })
    }
}

/// Room for control messages: one timestamp, aligned as a `cmsghdr` is (cmsg(3)).
type Control = [u64; 8];

/// Type of a message's address. `()` for connected sockets, whose messages need none.
///
/// # Safety
/// All zeroes are a valid value, and so is any address that the kernel writes.
pub unsafe trait MessageAddress: Copy {}

// SAFETY: it has no bytes.
unsafe impl MessageAddress for () {}
// SAFETY: it is made of integers.
unsafe impl MessageAddress for libc::sockaddr_storage {}
// SAFETY: it is made of integers.
unsafe impl MessageAddress for libc::sockaddr_ll {}

/// Buffers for the messages of one receive call, used again for each.
pub struct ReceiveBatch<A: MessageAddress> {
    /// Bytes kept of each message.
    size: usize,
    /// Messages of the last call.
    count: usize,
    buffers: Box<[u8]>,
    addresses: Box<[A]>,
    _controls: Box<[Control]>,
    _pieces: Box<[libc::iovec]>,
    headers: Box<[libc::mmsghdr]>,
}

// SAFETY: the pointers in headers and pieces are into boxes of the same batch, whose contents stay
// where they are when the batch moves.
unsafe impl<A: MessageAddress + Send> Send for ReceiveBatch<A> {}

impl<A: MessageAddress> ReceiveBatch<A> {
    /// Room for `messages` of `size` bytes each. Longer ones are cut.
    pub fn new(messages: usize, size: usize) -> ReceiveBatch<A> {
        let mut buffers = vec![0; messages * size].into_boxed_slice();
        // SAFETY: all zeroes are a valid address, by the trait.
        let address = unsafe { MaybeUninit::<A>::zeroed().assume_init() };
        let mut addresses = vec![address; messages].into_boxed_slice();
        let mut controls = vec![Control::default(); messages].into_boxed_slice();
        let pieces = buffers
            .chunks_exact_mut(size)
            .map(|buffer| libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: size });
        let mut pieces: Box<[libc::iovec]> = pieces.collect();
        let parts = pieces.iter_mut().zip(&mut addresses).zip(&mut controls);
        let headers = parts.map(|((piece, address), control)| {
            // SAFETY: all zeroes are a valid mmsghdr: no address, no buffers, no control.
            let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
            header.msg_hdr.msg_iov = piece;
            header.msg_hdr.msg_iovlen = 1;
            if size_of::<A>() > 0 {
                header.msg_hdr.msg_name = (&raw mut *address).cast();
            }
            header.msg_hdr.msg_control = control.as_mut_ptr().cast();
            offer_room::<A>(&mut header);
            header
        });
        ReceiveBatch {
            size,
            count: 0,
            headers: headers.collect(),
            buffers,
            addresses,
            _controls: controls,
            _pieces: pieces,
        }
    }

    /// Most messages of a call.
    pub fn capacity(&self) -> usize {
        self.headers.len()
    }

    /// Receives up to `limit` messages that have come, without blocking. Returns their number.
    ///
    /// # Errors
    /// Those of recvmmsg(2): `WouldBlock` if there is no message.
    #[inline]
    pub(super) fn receive(&mut self, socket: &impl AsFd, limit: usize) -> io::Result<usize> {
        for header in &mut self.headers[..self.count] {
            offer_room::<A>(header);
        }
        self.count = 0;
        let (fd, flags) = (socket.as_fd().as_raw_fd(), libc::MSG_DONTWAIT as _);
        let limit = limit.min(self.headers.len()) as libc::c_uint;
        let (headers, no_timeout) = (self.headers.as_mut_ptr(), std::ptr::null_mut());
        // SAFETY: the headers are ours, as many as the limit at least. They point to boxes of the
        // batch, with the lengths that they say.
        self.count = check_count(|| unsafe {
            libc::recvmmsg(fd, headers, limit, flags, no_timeout) as libc::ssize_t
        })?;
        Ok(self.count)
    }

    /// Bytes of a message, cut to the room for it.
    #[inline]
    pub fn bytes(&self, index: usize) -> &[u8] {
        let length = (self.headers[index].msg_len as usize).min(self.size);
        &self.buffers[index * self.size..][..length]
    }

    /// Whether a message was longer than the room for it.
    #[inline]
    pub fn is_cut(&self, index: usize) -> bool {
        self.headers[index].msg_hdr.msg_flags & libc::MSG_TRUNC != 0
    }

    /// Time at which the kernel received a message, in nanoseconds of CLOCK_REALTIME; `None` if it
    /// does not tell.
    #[inline]
    pub fn received_realtime_ns(&self, index: usize) -> Option<u64> {
        // SAFETY: the kernel has filled the control buffer, which belongs to this batch.
        realtime_ns(unsafe { control_of(&self.headers[index].msg_hdr) })
    }

    /// Bytes and times of the messages of the last call.
    pub fn received(&self) -> impl Iterator<Item = (&[u8], Option<u64>)> {
        (0..self.count).map(|index| (self.bytes(index), self.received_realtime_ns(index)))
    }

    /// The address of a message, and its length.
    #[inline]
    pub(super) fn address(&self, index: usize) -> (&A, libc::socklen_t) {
        let length = self.headers[index].msg_hdr.msg_namelen;
        (&self.addresses[index], length)
    }
}

/// Sets lengths to the room of the buffers: the kernel has written the used lengths over them.
#[inline]
fn offer_room<A>(header: &mut libc::mmsghdr) {
    header.msg_hdr.msg_namelen = size_of::<A>() as libc::socklen_t;
    header.msg_hdr.msg_controllen = size_of::<Control>() as _;
    header.msg_hdr.msg_flags = 0;
}

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
    use crate::sys::clock;

    fn wait(socket: &DatagramSocket, batch: &mut DatagramBatch, limit: usize) -> usize {
        for _ in 0..2_000 {
            match socket.receive(batch, limit).unwrap() {
                0 => std::thread::sleep(std::time::Duration::from_millis(1)),
                n => return n,
            }
        }
        0
    }

    #[test]
    fn datagrams_come_with_their_bytes_source_and_time_and_go_back() {
        for listen in ["127.0.0.1:0", "[::1]:0"] {
            let socket = DatagramSocket::bind(listen.parse().unwrap()).unwrap();
            let to = socket.local_address().unwrap();
            let sender = UdpSocket::bind((to.ip(), 0)).unwrap();
            let mut batch = DatagramBatch::new(8, 10);
            assert_eq!(socket.receive(&mut batch, 8).unwrap(), 0);
            let before = clock::realtime_ns();
            sender.send_to(b"short", to).unwrap();
            sender.send_to(b"much too long", to).unwrap();
            assert_eq!(wait(&socket, &mut batch, 1), 1, "no more than asked for");
            assert_eq!((batch.bytes(0), batch.is_cut(0)), (&b"short"[..], false));
            assert_eq!(batch.source(0), Some(to.ip()));
            let at = batch.received_realtime_ns(0).unwrap();
            assert!(before <= at && at <= clock::realtime_ns());
            assert!(socket.send_back(&batch, 0));
            let mut back = [0; 16];
            assert_eq!(sender.recv(&mut back).unwrap(), 5);
            assert_eq!(wait(&socket, &mut batch, 8), 1);
            assert_eq!((batch.bytes(0), batch.is_cut(0)), (&b"much too l"[..], true));
        }
    }

    #[test]
    fn drops_at_the_socket_are_told_at_once() {
        let socket = DatagramSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        socket.set_receive_buffer(4096).unwrap();
        assert_eq!(socket.memory().unwrap().limit, 8192);
        let to = socket.local_address().unwrap();
        let sender = UdpSocket::bind((to.ip(), 0)).unwrap();
        for _ in 0..100 {
            sender.send_to(&[7; 64], to).unwrap();
        }
        let drops = socket.memory().unwrap().drops;
        let mut batch = DatagramBatch::new(128, 64);
        let received = wait(&socket, &mut batch, 128);
        assert_eq!(received + drops as usize, 100);
        assert!(drops > 0 && received > 0);
    }

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
