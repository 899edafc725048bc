//! Threads that the system may refuse. `std::thread::spawn` panics then; these are errors.

use crate::error::{RunError, reason};
use crate::sys::epoll::EventFd;
use crate::sys::socket::Address;
use std::io;
use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, Builder, JoinHandle, Scope, ScopedJoinHandle};

/// A thread that works until it is stopped, or until this is dropped.
#[derive(Debug)]
pub struct StoppableThread<T> {
    stop: Arc<AtomicBool>,
    wake: Option<Arc<EventFd>>,
    thread: Option<JoinHandle<T>>,
}

impl<T> StoppableThread<T> {
    /// Starts `work`, which has to end soon after its flag is set. At the same time the thread is
    /// unparked, and `wake` becomes readable.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn start(
        name: &str,
        wake: Option<Arc<EventFd>>,
        work: impl FnOnce(&Arc<AtomicBool>) -> T + Send + 'static,
    ) -> io::Result<StoppableThread<T>>
    where
        T: Send + 'static,
    {
        let stop = Arc::<AtomicBool>::default();
        let stopped = stop.clone();
        let thread = Builder::new().name(name.to_owned());
        Ok(StoppableThread { stop, wake, thread: Some(thread.spawn(move || work(&stopped))?) })
    }

    /// Stops the thread and returns its result.
    pub fn stop(mut self) -> T {
        let ended = self.end().expect("a thread is stopped once");
        ended.unwrap_or_else(|panic| resume_unwind(panic))
    }

    fn end(&mut self) -> Option<thread::Result<T>> {
        let thread = self.thread.take()?;
        self.stop.store(true, Ordering::Relaxed);
        thread.thread().unpark();
        if let Some(wake) = &self.wake {
            wake.notify();
        }
        Some(thread.join())
    }
}

impl<T> Drop for StoppableThread<T> {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// A running server; it ends when it is stopped or dropped.
#[derive(Debug)]
pub struct RunningServer<A, S> {
    address: A,
    thread: StoppableThread<S>,
}

impl<A, S> RunningServer<A, S> {
    /// A server at this address, which serves on this thread.
    pub fn new(address: A, thread: StoppableThread<S>) -> RunningServer<A, S> {
        RunningServer { address, thread }
    }

    /// Stops it, ending what it serves, and returns its counts.
    pub fn stop(self) -> S {
        self.thread.stop()
    }
}

impl<S> RunningServer<SocketAddr, S> {
    /// Address that it listens on, with the port that the kernel picked where 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl<S> RunningServer<Address, S> {
    /// Address that it listens on, with the port that the kernel picked where 0 was asked for.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

/// Starts a thread in a scope.
///
/// # Errors
/// [`RunError::NotPermitted`]: the system refuses it.
pub fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, RunError> {
    let thread = Builder::new().name(name.to_owned());
    thread.spawn_scoped(scope, work).map_err(|e| refused(&e))
}

/// Starts all of these threads, which begin their work together, or none. A thread that waits for
/// the others never waits for a missing one.
///
/// # Errors
/// [`RunError::NotPermitted`]: the system refuses one of them.
pub fn spawn_all<'scope, T, F>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    works: impl IntoIterator<Item = F>,
) -> Result<Vec<ScopedJoinHandle<'scope, io::Result<T>>>, RunError>
where
    T: Send + 'scope,
    F: FnOnce() -> io::Result<T> + Send + 'scope,
{
    let mut threads = Vec::new();
    let mut begins = Vec::new();
    for work in works {
        let (begin, begun) = mpsc::channel::<()>();
        begins.push(begin);
        // Without the word to begin, as another thread was refused, there is nothing to do.
        let when_all_are_there = move || match begun.recv() {
            Ok(()) => work(),
            Err(_) => Err(io::Error::other("another thread could not be had")),
        };
        threads.push(spawn(scope, name, when_all_are_there)?);
    }
    for begin in begins {
        // The thread waits for it.
        let _ = begin.send(());
    }
    Ok(threads)
}

/// Why a thread could not be had, and what to do.
pub fn refused(error: &io::Error) -> RunError {
    RunError::NotPermitted(format!(
        "cannot start a thread: {}; raise the limit of processes (ulimit -u; pids.max of a \
         container) or of memory (ulimit -v), or use fewer threads",
        reason(error)
    ))
}

/// The same where errors of the system are passed on.
pub fn error(error: &io::Error) -> io::Error {
    io::Error::other(refused(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No machine gives a thread a stack of this size.
    const HUGE: usize = 1 << 47;

    #[test]
    fn all_threads_begin_and_give_their_results() {
        let sum: i32 = thread::scope(|scope| {
            let works = (1..=4).map(|n| move || Ok(n));
            let threads = spawn_all(scope, "worker", works).unwrap();
            threads.into_iter().map(|t| t.join().unwrap().unwrap()).sum()
        });
        assert_eq!(sum, 10);
    }

    #[test]
    fn refused_thread_is_an_error_that_says_what_to_do() {
        let refusal = thread::scope(|scope| {
            let huge = Builder::new().stack_size(HUGE);
            huge.spawn_scoped(scope, || ()).unwrap_err()
        });
        let line = refused(&refusal).to_string();
        assert!(line.starts_with("cannot start a thread: "), "{line}");
        assert!(line.contains("ulimit -u"), "{line}");
    }

    /// Stands for a refusal in the middle: the first thread waits for a word that never comes.
    #[test]
    fn threads_without_the_word_to_begin_end() {
        let ended = std::panic::catch_unwind(|| {
            thread::scope(|scope| {
                let works = (0..2).map(|n| {
                    assert_eq!(n, 0, "refused");
                    || -> io::Result<()> { unreachable!("it was not to begin") }
                });
                spawn_all(scope, "worker", works).is_ok()
            })
        });
        assert!(ended.is_err());
    }
}
