//! Follows a share of the connections to a port of this host, on a thread of its own.

use super::data;
use super::streams::FollowedStreams;
use super::watch::why_not;
use crate::kernel::timestamps::Timestamps;
use crate::sys::clock::realtime_ahead_ns;
use crate::sys::packet::{PacketBatch, PacketSocket};
use crate::threads::StoppableThread;
use knee_load::both_ends::ObservedStreams;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Packets that the kernel keeps between two looks.
const BUFFER: usize = 32 << 20;

/// Interval of reading packets: the thread is not woken by each. What comes in between fits into a
/// buffer of 400 KB at 100,000 packets a second.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Batches read in one pass: more than the buffer holds. What comes in that time waits for the next
/// pass.
const BATCHES_MAX: usize = 10_000;

/// Connections that are being followed, until it is finished or dropped.
#[derive(Debug)]
pub struct StreamCapture(Result<StoppableThread<ObservedStreams>, String>);

impl StreamCapture {
    /// Follows one of `one_of` connections to `port`, chosen by the client's port, that begin from
    /// now on. Where that is not permitted, [`StreamCapture::finish`] tells why.
    pub fn begin(port: u16, one_of: u16) -> StreamCapture {
        let filter = data::filter(port, one_of);
        let begun = PacketSocket::open(&filter, BUFFER, true).and_then(|tap| {
            // A packet without a timestamp has the time of the read that finds it.
            let kept = Timestamps::settled();
            StoppableThread::start("follow", None, move |stop| {
                let _kept = kept;
                follow(&tap, stop)
            })
        });
        StreamCapture(begun.map_err(|e| why_not(&e)))
    }

    /// Ends it and returns what was seen.
    pub fn finish(self) -> ObservedStreams {
        match self.0 {
            Ok(thread) => thread.stop(),
            Err(because) => {
                ObservedStreams { because: Some(because), ..ObservedStreams::default() }
            }
        }
    }
}

fn follow(tap: &PacketSocket, stop: &AtomicBool) -> ObservedStreams {
    let (mut streams, mut batch) = (FollowedStreams::default(), PacketBatch::for_packets());
    loop {
        thread::park_timeout(LOOK_EVERY);
        let is_over = stop.load(Ordering::Relaxed);
        read_packets(tap, &mut batch, &mut streams);
        if is_over {
            // Where the kernel does not tell how many were lost, holes tell of most.
            return streams.finish(tap.take_lost().unwrap_or(0));
        }
    }
}

fn read_packets(tap: &PacketSocket, batch: &mut PacketBatch, streams: &mut FollowedStreams) {
    for _ in 0..BATCHES_MAX {
        match tap.receive(batch) {
            Ok(0) => return,
            Ok(_) => {}
            // An interface went down; the others go on.
            Err(_) => continue,
        }
        // Read for each batch: a step of the time of day in between does no harm.
        let ahead = realtime_ahead_ns();
        for packet in batch.packets() {
            // A packet without a time is left out: its bytes are then missing, and known to be.
            let (Some(segment), Some(at)) = (data::parse(packet.bytes), packet.realtime_ns) else {
                continue;
            };
            let at_ns = at.saturating_sub(ahead);
            if packet.is_outgoing {
                streams.goes(&segment, at_ns);
            } else {
                streams.came(&segment, at_ns);
            }
        }
    }
}

#[cfg(test)]
mod tests;
