//! A timeout of io_uring(7), waited for alone.

use io_uring::types::{TimeoutFlags, Timespec};
use io_uring::{IoUring, opcode};
use std::fmt;
use std::io;

/// A ring for one timeout at a time.
pub struct UringTimer {
    // Dropped first: after it the kernel reads no time.
    ring: IoUring,
    time: Box<Timespec>,
}

impl UringTimer {
    /// A new ring.
    ///
    /// # Errors
    /// Where this kernel or its policy (`kernel.io_uring_disabled`, seccomp in containers) does
    /// not permit io_uring.
    pub fn new() -> io::Result<UringTimer> {
        Ok(UringTimer {
            ring: IoUring::new(2)?,
            time: Box::new(Timespec::new()),
        })
    }

    /// Waits until a moment of CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// The kernel knows no absolute timeouts (before 5.5).
    pub fn wait_until(&mut self, moment_ns: u64) -> io::Result<()> {
        let seconds = Timespec::new().sec(moment_ns / 1_000_000_000);
        *self.time = seconds.nsec((moment_ns % 1_000_000_000) as u32);
        let timeout = opcode::Timeout::new(&raw const *self.time).flags(TimeoutFlags::ABS);
        // SAFETY: the time stays in its box until the ring is gone.
        let queued = unsafe { self.ring.submission().push(&timeout.build()) };
        queued.map_err(|_| io::Error::from(io::ErrorKind::WouldBlock))?;
        loop {
            match self.ring.submit_and_wait(1) {
                Err(e) if e.kind() != io::ErrorKind::Interrupted => return Err(e),
                _ => {}
            }
            let completed = self.ring.completion().next();
            match completed.map(|c| -c.result()) {
                None => {}
                Some(libc::ETIME) => return Ok(()),
                Some(error) => return Err(io::Error::from_raw_os_error(error)),
            }
        }
    }
}

impl fmt::Debug for UringTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UringTimer")
    }
}
