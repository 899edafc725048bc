//! Counting what passes a tracepoint of the kernel: perf_event_open(2).

use super::{check, owned};
use rustix::io::retry_on_intr;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// struct perf_event_attr (linux/perf_event.h) in its first version, which every kernel takes.
#[repr(C)]
#[derive(Debug, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    /// Sample period, sample type, read format and flags: a plain count needs none.
    plain: [u64; 4],
    /// When to wake up, and breakpoints.
    unused: [u64; 2],
}

const PERF_TYPE_TRACEPOINT: u32 = 2;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;
const PERF_EVENT_IOC_SET_FILTER: u64 = libc::_IOW::<*const libc::c_char>(b'$' as u32, 6) as u64;

/// Counts the events of one tracepoint on one processor that a filter accepts, of all processes.
/// Counts from when it was opened until it is dropped.
#[derive(Debug)]
pub struct Count(OwnedFd);

impl Count {
    /// Begins to count. The tracepoint is named by its number in tracefs (`id`), the filter is
    /// written as there. `None` if there is no such processor now.
    ///
    /// # Errors
    /// Not permitted (CAP_PERFMON), no more descriptors, no such tracepoint, a wrong filter.
    pub fn open(tracepoint: u64, filter: &CStr, cpu: u32) -> io::Result<Option<Count>> {
        let attributes = Attributes {
            kind: PERF_TYPE_TRACEPOINT,
            size: size_of::<Attributes>() as u32,
            config: tracepoint,
            ..Attributes::default()
        };
        let (everyone, no_group) = (-1, -1);
        // SAFETY: the attributes are ours, and as long as they say; the kernel keeps none of them.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                everyone as libc::pid_t,
                cpu as libc::c_int,
                no_group as libc::c_int,
                PERF_FLAG_FD_CLOEXEC,
            )
        };
        let fd = match owned(fd as libc::c_int) {
            Err(e) if e.raw_os_error() == Some(libc::ENODEV) => return Ok(None),
            opened => opened?,
        };
        let request = PERF_EVENT_IOC_SET_FILTER as _;
        // SAFETY: the filter ends with a zero; the kernel copies it.
        check(unsafe { libc::ioctl(fd.as_raw_fd(), request, filter.as_ptr()) })?;
        Ok(Some(Count(fd)))
    }

    /// Number of events so far.
    ///
    /// # Errors
    /// It counts no more, as its processor left.
    pub fn now(&self) -> io::Result<u64> {
        let mut count = [0; 8];
        let length = retry_on_intr(|| rustix::io::read(&self.0, &mut count))?;
        if length == count.len() {
            Ok(u64::from_ne_bytes(count))
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }
}

/// Number of processors that this machine may have, including those that are offline.
pub fn processors() -> u32 {
    // SAFETY: no pointers.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    u32::try_from(count).unwrap_or(1).max(1)
}
