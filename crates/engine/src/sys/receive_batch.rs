//! recvmmsg(2): many messages in one call, each with its address and the kernel's timestamp.

use super::{check_count, stamp};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};

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
        stamp::realtime_ns(unsafe { stamp::control_of(&self.headers[index].msg_hdr) })
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
