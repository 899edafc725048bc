//! Receiving datagrams: many in one call (recvmmsg(2)), each with its address and the kernel's
//! receive timestamp, and what the kernel knows of the socket's buffer.

use super::socket::RawAddress;
use super::timestamps::{control_of, realtime_ns, set_timestamps};
use super::{check_count, set_option, socket_memory};
use rustix::io::retry_on_intr;
use rustix::net::{SendFlags, SocketAddrAny, sendto};
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

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
    /// Errors of recvmmsg(2) other than `WouldBlock`.
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
    /// Errors of recvmmsg(2); `WouldBlock` if there is no message.
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
}
