//! Follows a share of the connections to a port of this host, on a thread of its own.

use super::data;
use super::streams::Streams;
use super::watch::why_not;
use crate::kernel::timestamps::Timestamps;
use crate::sys::clock::realtime_ahead_ns;
use crate::sys::packet::{Batch, PacketSocket};
use knee_core::both_ends::ObservedStreams;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Packets that the kernel keeps between two looks.
const BUFFER: usize = 32 << 20;

/// Packets are fetched so often: the thread is not woken by each. What comes in between fits into a
/// buffer of 400 KB at 100,000 packets a second.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// So many batches are more than the buffer holds: whatever comes meanwhile waits for the next
/// look.
const BATCHES_MAX: usize = 10_000;

/// Connections that are being followed, until it is finished or dropped.
#[derive(Debug)]
pub struct Following {
    because: Option<String>,
    thread: Option<(Sender<()>, JoinHandle<ObservedStreams>)>,
}

impl Following {
    /// Follows one of `one_of` connections to `port`, chosen by the client's port, that begin from
    /// now on. Where that is not permitted nothing is seen, and the end says why.
    pub fn begin(port: u16, one_of: u16) -> Following {
        let filter = data::filter(port, one_of);
        let begun = PacketSocket::open(&filter, BUFFER, true).and_then(|tap| {
            // Without a time a packet has that of the look that finds it.
            let kept = Timestamps::settled();
            let (stop, stopped) = mpsc::channel();
            let thread = thread::Builder::new().name("follow".to_owned());
            let thread = thread.spawn(move || {
                let _kept = kept;
                follow(&tap, &stopped)
            })?;
            Ok((stop, thread))
        });
        match begun {
            Ok(thread) => Following {
                because: None,
                thread: Some(thread),
            },
            Err(e) => Following {
                because: Some(why_not(&e)),
                thread: None,
            },
        }
    }

    /// Ends it, and says what was seen.
    pub fn finish(mut self) -> ObservedStreams {
        match self.join() {
            Some(Ok(seen)) => seen,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => ObservedStreams {
                because: self.because.take(),
                ..ObservedStreams::default()
            },
        }
    }

    fn join(&mut self) -> Option<thread::Result<ObservedStreams>> {
        let (stop, thread) = self.thread.take()?;
        drop(stop);
        Some(thread.join())
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

fn follow(tap: &PacketSocket, stopped: &Receiver<()>) -> ObservedStreams {
    let (mut streams, mut batch) = (Streams::default(), Batch::new());
    loop {
        let is_over = !matches!(
            stopped.recv_timeout(LOOK_EVERY),
            Err(RecvTimeoutError::Timeout)
        );
        look(tap, &mut batch, &mut streams);
        if is_over {
            // Where the kernel does not say how many were lost, holes tell of most.
            return streams.finish(tap.take_lost().unwrap_or(0));
        }
    }
}

fn look(tap: &PacketSocket, batch: &mut Batch, streams: &mut Streams) {
    for _ in 0..BATCHES_MAX {
        match tap.receive(batch) {
            Ok(0) => return,
            Ok(_) => {}
            // An interface went down; the others go on.
            Err(_) => continue,
        }
        // Anew for each batch: a step of the time of day between two looks does no harm.
        let ahead = realtime_ahead_ns();
        for packet in batch.packets() {
            // One without a time says nothing; its bytes are then missing, and known to be.
            let (Some(segment), Some(at)) = (data::parse(packet.bytes), packet.realtime_ns) else {
                continue;
            };
            let at_ns = at.saturating_sub(ahead);
            match packet.is_outgoing {
                true => streams.goes(&segment, at_ns),
                false => streams.came(&segment, at_ns),
            }
        }
    }
}

#[cfg(test)]
mod tests;
