//! Operations that the kernel has completed.

use io_uring::cqueue;

/// The kind of an operation, in the low byte of its user data. Above it are 24 bits of the
/// generation of its slot, then 32 of the slot.
pub(super) const KIND_CONNECT: u64 = 0;
pub(super) const KIND_RECEIVE: u64 = 1;
pub(super) const KIND_SEND: u64 = 2;
pub(super) const KIND_CLOSE: u64 = 3;
pub(super) const KIND_WATCH: u64 = 4;

/// What the kernel told of one operation.
#[derive(Clone, Copy)]
pub(super) struct Completed {
    pub(super) user_data: u64,
    pub(super) result: i32,
    pub(super) flags: u32,
}

impl From<cqueue::Entry> for Completed {
    fn from(entry: cqueue::Entry) -> Completed {
        Completed { user_data: entry.user_data(), result: entry.result(), flags: entry.flags() }
    }
}

impl Completed {
    /// Bytes that came with it.
    pub(super) fn received_bytes(self) -> usize {
        if self.user_data & 0xFF == KIND_RECEIVE {
            usize::try_from(self.result).unwrap_or(0)
        } else {
            0
        }
    }
}
