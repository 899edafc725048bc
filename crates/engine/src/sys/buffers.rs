//! A ring of receive buffers that io_uring picks from (IORING_REGISTER_PBUF_RING, Linux 5.19).

use io_uring::Submitter;
use io_uring::types::BufRingEntry;
use std::io;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::{AtomicU16, Ordering};

/// The only group of buffers that a ring has.
const GROUP: u16 = 0;

/// Buffers shared by all connections of one thread. The kernel takes one for each receive. It is
/// handed back with [`BufferRing::give_back`] and offered again by [`BufferRing::publish`].
#[derive(Debug)]
pub struct BufferRing {
    entries: Mapping,
    bytes: Mapping,
    count: u16,
    buffer_bytes: usize,
    tail: u16,
}

impl BufferRing {
    /// Registers `count` (a power of two) buffers of `buffer_bytes` each with a ring. It must
    /// outlive that ring.
    ///
    /// # Errors
    /// Out of memory, or a kernel older than 5.19.
    pub fn register(
        submitter: &Submitter<'_>,
        count: u16,
        buffer_bytes: usize,
    ) -> io::Result<BufferRing> {
        assert!(count.is_power_of_two(), "the kernel masks indices");
        let entries = Mapping::new(usize::from(count) * size_of::<BufRingEntry>())?;
        let bytes = Mapping::new(usize::from(count) * buffer_bytes)?;
        let mut ring = BufferRing { entries, bytes, count, buffer_bytes, tail: 0 };
        let address = ring.entries.start.as_ptr() as u64;
        // SAFETY: the mapping is page-aligned, holds `count` entries and outlives the ring.
        unsafe { submitter.register_buf_ring_with_flags(address, count, GROUP, 0)? };
        for id in 0..count {
            ring.give_back(id);
        }
        ring.publish();
        Ok(ring)
    }

    /// The number of the group, for receive operations.
    pub fn group(&self) -> u16 {
        GROUP
    }

    /// The first `length` bytes of buffer `id`, apart from the borrow of `self`.
    ///
    /// # Safety
    /// The caller holds the buffer (the kernel has told its number in a completion) and does not
    /// give it back while the slice lives.
    pub unsafe fn detached<'a>(&self, id: u16, length: usize) -> &'a [u8] {
        assert!(id < self.count && length <= self.buffer_bytes);
        // SAFETY: within the mapping by the assertion; nobody writes to it until it is given back,
        // which the caller answers for.
        unsafe {
            let start = self.bytes.start.as_ptr().add(usize::from(id) * self.buffer_bytes);
            slice::from_raw_parts(start, length)
        }
    }

    /// Gives buffer `id` back.
    pub fn give_back(&mut self, id: u16) {
        assert!(id < self.count);
        let index = usize::from(self.tail & (self.count - 1));
        // SAFETY: both indices are below `count`; the kernel reads entries only up to the tail that
        // was published, and this one lies beyond it.
        unsafe {
            let address = self.bytes.start.as_ptr().add(usize::from(id) * self.buffer_bytes);
            let entry = &mut *self.entries.start.as_ptr().cast::<BufRingEntry>().add(index);
            entry.set_addr(address as u64);
            entry.set_len(self.buffer_bytes as u32);
            entry.set_bid(id);
        }
        self.tail = self.tail.wrapping_add(1);
    }

    /// Offers all that were given back to the kernel.
    pub fn publish(&mut self) {
        // SAFETY: the tail lies within the first entry (its unused half), aligned for 16 bits;
        // the store releases the entries written before.
        unsafe {
            let tail = BufRingEntry::tail(self.entries.start.as_ptr().cast());
            AtomicU16::from_ptr(tail.cast_mut()).store(self.tail, Ordering::Release);
        }
    }
}

/// Anonymous memory, page-aligned and zeroed, given back on drop.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

impl Mapping {
    fn new(length: usize) -> io::Result<Mapping> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new anonymous mapping touches nothing that exists.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, length })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}
