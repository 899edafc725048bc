//! What the kernel grants a thread: timer slack, processors, descriptors.

use super::check;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};
use std::io;
use std::num::NonZero;

/// Permits timers of this thread to fire up to `ns` nanoseconds late for the kernel's batching. 1
/// is the least, 50,000 the default. Zero would mean the default.
///
/// # Errors
/// None on Linux for a value above zero.
pub fn set_timer_slack_ns(slack_ns: u32) -> io::Result<()> {
    Ok(set_current_timer_slack(NonZero::new(slack_ns.into()))?)
}

/// Shortest slice of the scheduler.
const SLICE_MIN_NS: u64 = 100_000;

/// Asks the scheduler for slices of this length, in nanoseconds. A thread with short ones gets the
/// processor sooner after it wakes, at no larger share of it. Linux before 6.12 ignores it.
///
/// # Errors
/// A kernel before 3.14; forbidden, as in some containers.
fn set_slice_ns(slice_ns: u64) -> io::Result<()> {
    let mut attributes = SchedAttributes::default();
    let size = size_of::<SchedAttributes>() as libc::c_uint;
    let (get, set) = (libc::SYS_sched_getattr, libc::SYS_sched_setattr);
    // SAFETY: the struct is ours and has the size that we say; thread 0 is this one.
    check(unsafe { libc::syscall(get, 0, &raw mut attributes, size, 0) } as libc::c_int)?;
    attributes.runtime_ns = slice_ns;
    attributes.size = size;
    // SAFETY: as above; it is only read.
    check(unsafe { libc::syscall(set, 0, &raw const attributes, 0) } as libc::c_int).map(drop)
}

/// Lets this thread run before others when it wakes: for a thread that waits nearly all the time
/// and whose waits are measured. Uses the real-time policy SCHED_FIFO if permitted (threads that it
/// starts do not inherit it), else the shortest slice.
pub fn go_first() {
    if set_realtime(true).is_err() {
        let _ = set_slice_ns(SLICE_MIN_NS);
    }
}

/// Gives this thread the lowest real-time priority (SCHED_FIFO, not inherited by threads that it
/// starts), or the normal policy again.
///
/// # Errors
/// Real-time priority is not permitted (CAP_SYS_NICE, RLIMIT_RTPRIO).
pub fn set_realtime(is_realtime: bool) -> io::Result<()> {
    let (policy, sched_priority) = if is_realtime {
        (libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1)
    } else {
        (libc::SCHED_OTHER, 0)
    };
    // SAFETY: all zeroes are a valid sched_param; with musl it has more fields than this one.
    let mut priority: libc::sched_param = unsafe { std::mem::zeroed() };
    priority.sched_priority = sched_priority;
    // SAFETY: the struct is ours and is only read; thread 0 is this one.
    check(unsafe { libc::sched_setscheduler(0, policy, &raw const priority) }).map(drop)
}

/// Whether threads of this process may have real-time priority; tried on one that then ends.
pub fn may_be_realtime() -> bool {
    let tried = std::thread::Builder::new().spawn(|| set_realtime(true).is_ok());
    tried.is_ok_and(|thread| thread.join().unwrap_or(false))
}

/// `struct sched_attr` in its first version (sched_setattr(2)).
#[repr(C)]
#[derive(Default)]
struct SchedAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// Gives this thread its own table of descriptors, which contains only standard input, output and
/// error. Descriptors that it opens are closed when it ends. It must not use a descriptor that was
/// opened before.
///
/// In a table that threads share each system call has to count its use of a descriptor, and opening
/// and closing take a lock. That costs some hundred nanoseconds for a connection that serves one
/// request. The limit of open files (RLIMIT_NOFILE) then holds for each thread.
///
/// # Errors
/// Linux before 5.9; out of memory; not permitted, as in some containers.
pub fn own_descriptors() -> io::Result<()> {
    let (first, last) = (3, libc::c_uint::MAX);
    let flags = libc::CLOSE_RANGE_UNSHARE;
    // SAFETY: no pointers. Those that are closed are closed for this thread alone, which uses none
    // of them: the caller sees to that.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    check(result as libc::c_int).map(drop)
}

/// The numbers of the processors that this thread may run on, ascending.
///
/// # Errors
/// None on Linux.
pub fn affinity() -> io::Result<Vec<u32>> {
    // The kernel refuses a mask smaller than its own; 2^16 processors are enough for any.
    for words in [16_usize, 128, 1024] {
        let mut mask = vec![0_u64; words];
        // SAFETY: the buffer has the length that we say, and any bytes are a valid mask.
        let written =
            unsafe { libc::sched_getaffinity(0, size_of_val(&mask[..]), mask.as_mut_ptr().cast()) };
        match check(written) {
            Ok(_) => return Ok(bits(&mask)),
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => continue,
            Err(e) => return Err(e),
        }
    }
    Err(io::ErrorKind::Unsupported.into())
}

/// Number of processors that this thread may run on, at least 1.
pub fn cpu_count() -> u32 {
    affinity().map_or(1, |cpus| cpus.len().max(1) as u32)
}

/// Binds this thread to the processors given.
///
/// # Errors
/// None of them exists or is permitted; a number of 1024 or more.
pub fn set_affinity(cpus: &[u32]) -> io::Result<()> {
    let mut mask = CpuSet::new();
    for &cpu in cpus {
        if cpu as usize >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        mask.set(cpu as usize);
    }
    Ok(sched_setaffinity(None, &mask)?)
}

/// Raises the most open files of this process as far as is permitted, to the hard limit
/// (RLIMIT_NOFILE); how many there may be now.
pub fn raise_open_files() -> u64 {
    let maximum = getrlimit(Resource::Nofile).maximum;
    // What is not permitted leaves the limit as it was.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

fn bits(mask: &[u64]) -> Vec<u32> {
    let all = 0..mask.len() as u32 * 64;
    all.filter(|&cpu| mask[cpu as usize / 64] >> (cpu % 64) & 1 == 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_goes_first_does_so_alone() {
        // SAFETY: no pointers; thread 0 is the one that calls.
        let policy = || unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK;
        let (own, of_its_own) = std::thread::spawn(move || {
            go_first();
            let of_its_own = std::thread::spawn(policy).join().unwrap();
            (policy(), of_its_own)
        })
        .join()
        .unwrap();
        // Real-time where that is permitted.
        assert!([libc::SCHED_FIFO, libc::SCHED_OTHER].contains(&own));
        assert_eq!(of_its_own, libc::SCHED_OTHER);
    }

    #[test]
    fn affinity_is_read_as_it_was_set() {
        // In a thread of its own, so that no other test is bound.
        std::thread::spawn(|| {
            let first = affinity().unwrap()[0];
            set_affinity(&[first]).unwrap();
            assert_eq!(affinity().unwrap(), [first]);
            assert_eq!(cpu_count(), 1);
            assert!(set_affinity(&[4096]).is_err());
            set_timer_slack_ns(1).unwrap();
            // Some containers forbid it.
            let _ = set_slice_ns(SLICE_MIN_NS);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn mask_words_are_64_processors_each() {
        assert_eq!(bits(&[0b101, 1 << 63]), [0, 2, 127]);
    }

    #[test]
    fn the_descriptor_limit_can_be_raised_to_the_hard_one() {
        let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        assert_eq!(raise_open_files(), hard);
    }
}
