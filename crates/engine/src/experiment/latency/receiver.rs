//! One flow's receiving end.

use super::flow_threads::FlowRun;
use super::payload::{HEADER_BYTES, RecordHeader};
use super::wire::ReceivedSide;
use crate::sys::{clock, stream};
use knee_load::experiment::latency::FlowLost;
use knee_load::time::Nanos;
use std::io;
use std::net::TcpStream;

/// Bytes after which the other flows of the thread have their turn.
const TURN_BYTES: u64 = 1 << 20;

/// Intervals kept. Later events count in the last one.
const INTERVALS_MAX: usize = 1 << 20;

/// Receives records: reads their heads and discards the rest.
#[derive(Debug)]
pub(super) struct FlowReceiver {
    pub(super) stream: TcpStream,
    head: [u8; HEADER_BYTES],
    /// Bytes of the head that have come.
    held: usize,
    /// Bytes of the record that are still to come.
    left: u64,
    /// Number of the next record.
    number: u64,
    /// Time of the last bytes.
    last: Nanos,
    slot: usize,
    slot_end: Nanos,
    side: ReceivedSide,
}

impl FlowReceiver {
    pub(super) fn new(stream: TcpStream) -> FlowReceiver {
        FlowReceiver {
            stream,
            head: [0; HEADER_BYTES],
            held: 0,
            left: 0,
            number: 0,
            last: Nanos::ZERO,
            slot: 0,
            slot_end: Nanos::ZERO,
            side: ReceivedSide::default(),
        }
    }

    /// Takes what has come, up to one turn. Returns the bytes so far.
    ///
    /// # Errors
    /// Why the flow is lost.
    pub(super) fn pass(&mut self, course: &FlowRun) -> Result<u64, String> {
        let until = self.side.received_bytes + TURN_BYTES;
        while self.side.received_bytes < until {
            let (asked, taken) = if self.left == 0 {
                let room = &mut self.head[self.held..];
                (room.len(), stream::receive(&self.stream, room))
            } else {
                let most = self.left.min(until - self.side.received_bytes) as usize;
                (most, stream::discard(&self.stream, most))
            };
            let count = match taken {
                Ok(0) => return Err("its sender closed it".to_owned()),
                Ok(count) => count,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => return Err(crate::error::reason(&e)),
            };
            let now_ns = clock::monotonic_ns();
            self.count(count as u64, course.since(now_ns), course.interval);
            if self.left > 0 {
                self.left -= count as u64;
            } else {
                self.held += count;
                self.head_read(course, now_ns)?;
            }
            // Less than was asked for: nothing more has come.
            if count < asked {
                break;
            }
        }
        Ok(self.side.received_bytes)
    }

    fn count(&mut self, bytes: u64, now: Nanos, interval: Nanos) {
        let gap = now - self.last;
        if gap > self.side.gap_max {
            (self.side.gap_max, self.side.gap_at) = (gap, self.last);
        }
        self.last = now;
        self.side.received_bytes += bytes;
        if now >= self.slot_end {
            self.slot = ((now.0 / interval.0) as usize).min(INTERVALS_MAX - 1);
            self.slot_end = Nanos(interval.0.saturating_mul(self.slot as u64 + 1));
            self.side.by_interval.resize(self.slot + 1, 0);
        }
        self.side.by_interval[self.slot] += bytes;
    }

    fn head_read(&mut self, course: &FlowRun, now_ns: u64) -> Result<(), String> {
        if self.held < HEADER_BYTES {
            return Ok(());
        }
        let Some(header) = RecordHeader::decode(&self.head, self.number) else {
            return Err("what came is no record of knee".to_owned());
        };
        self.held = 0;
        self.number += 1;
        self.left = u64::from(header.length) - HEADER_BYTES as u64;
        let delay_ns = now_ns.wrapping_add(course.ahead_ns).wrapping_sub(header.sent_ns);
        // An inexact clock may put it before the send.
        let delay = Nanos((delay_ns as i64).max(0) as u64);
        self.side.inside.record(delay);
        let longest = &mut self.side.inside_max_by_interval;
        longest.resize(self.slot + 1, Nanos::ZERO);
        longest[self.slot] = longest[self.slot].max(delay);
        Ok(())
    }

    /// Ends the flow at `ended`.
    pub(super) fn finish(
        mut self,
        ended: Nanos,
        lost: Option<String>,
    ) -> (ReceivedSide, TcpStream) {
        let gap = ended - self.last;
        if gap > self.side.gap_max {
            (self.side.gap_max, self.side.gap_at) = (gap, self.last);
        }
        self.side.ended = ended;
        self.side.lost = lost.map(|why| FlowLost { at: ended, why });
        (self.side, self.stream)
    }
}
