//! Failed allocations: one line and an exit code, where Rust's own allocator aborts.

use super::terminal;
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit code, as for anything else that this machine does not permit.
const NOT_PERMITTED: libc::c_int = 2;

/// The system's allocator, which ends the process if there is no memory.
#[derive(Debug)]
pub struct OrExit;

// SAFETY: all is passed to the system's allocator as it came; a failed allocation is never
// returned, as the process ends.
unsafe impl GlobalAlloc for OrExit {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        had(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        had(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        had(unsafe { System.realloc(memory, layout, size) }, size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn had(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        end(bytes)
    }
    memory
}

/// Bytes of a thread's stack for signals, as the standard library maps it.
const SIGNAL_STACK: usize = 8 << 10;

/// A thread panics before it runs if there is no memory for its stack for signals. That ends
/// the process as any other failed allocation.
pub fn end_on_thread_without_memory() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.location().is_some_and(|at| at.file().ends_with("unix/stack_overflow.rs")) {
            end(SIGNAL_STACK);
        }
        before(info);
    }));
}

/// Nothing here allocates.
#[cold]
fn end(bytes: usize) -> ! {
    static IS_SAID: AtomicBool = AtomicBool::new(false);
    while IS_SAID.swap(true, Ordering::Relaxed) {
        // Another thread says it, and ends this one with the process.
        // SAFETY: pause takes nothing, and returns after a signal was handled.
        unsafe { libc::pause() };
    }
    terminal::put_back();
    let mut line = [0; 256];
    let mut left = &mut line[..];
    // It has room for it.
    let _ = writeln!(
        left,
        "error: out of memory: {bytes} bytes more cannot be had; raise the limit (ulimit -v; \
         memory.max of a container), or ask for less"
    );
    let length = 256 - left.len();
    // SAFETY: the line is ours and is as long; _exit takes any status and does not return.
    unsafe {
        libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), length);
        libc::_exit(NOT_PERMITTED)
    }
}
