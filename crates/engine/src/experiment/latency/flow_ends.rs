//! The two ends of one flow: the sending one and the receiving one.

use super::flow_run::FlowRun;
use super::payload::{HEADER_BYTES, RECORD_MAX, RECORD_MIN, RecordHeader};
use super::wire::{ReceivedSide, SentSide};
use crate::sys::{clock, stream};
use knee_load::experiment::latency::FlowLost;
use knee_load::measure::Histogram;
use knee_load::time::Nanos;
use std::io::{self, IoSlice};
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
            side: ReceivedSide { inside: Histogram::ready(), ..ReceivedSide::default() },
        }
    }

    /// Takes what has come, up to one turn. Returns the bytes so far.
    ///
    /// # Errors
    /// Why the flow is lost.
    pub(super) fn pass(&mut self, flow_run: &FlowRun) -> Result<u64, String> {
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
            self.count(count as u64, flow_run.since(now_ns), flow_run.interval);
            if self.left > 0 {
                self.left -= count as u64;
            } else {
                self.held += count;
                self.head_read(flow_run, now_ns)?;
            }
            // Less than was asked for: nothing more has come.
            if count < asked {
                break;
            }
        }
        Ok(self.side.received_bytes)
    }

    fn count(&mut self, bytes: u64, now: Nanos, interval: Nanos) {
        self.side.note_gap(self.last, now);
        self.last = now;
        self.side.received_bytes += bytes;
        if now >= self.slot_end {
            self.slot = ((now.0 / interval.0) as usize).min(INTERVALS_MAX - 1);
            self.slot_end = Nanos(interval.0.saturating_mul(self.slot as u64 + 1));
            self.side.by_interval.resize(self.slot + 1, 0);
        }
        self.side.by_interval[self.slot] += bytes;
    }

    fn head_read(&mut self, flow_run: &FlowRun, now_ns: u64) -> Result<(), String> {
        if self.held < HEADER_BYTES {
            return Ok(());
        }
        let Some(header) = RecordHeader::decode(&self.head, self.number) else {
            return Err("what came is no record of knee".to_owned());
        };
        self.held = 0;
        self.number += 1;
        self.left = u64::from(header.length) - HEADER_BYTES as u64;
        let delay_ns = now_ns.wrapping_add(flow_run.ahead_ns).wrapping_sub(header.sent_ns);
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
        self.side.note_gap(self.last, ended);
        self.side.ended = ended;
        self.side.lost = lost.map(|why| FlowLost { at: ended, why });
        (self.side, self.stream)
    }
}

/// Bytes handed to the socket in one call.
pub(super) const CHUNK_BYTES: usize = 512 << 10;

/// Time that handing over a record is to take, in nanoseconds. So the latency of a slow flow is
/// measured often, and that of a fast one costs nothing.
const RECORD_NS: f64 = 5e6;

/// Period over which the speed of a flow is measured.
const LOOK_NS: u64 = 50_000_000;

/// Longest record before the speed is known.
const FIRST_MAX: u32 = 128 << 10;

/// Samples of TCP kept: 100 minutes with one in 100 ms.
const SAMPLES_MAX: usize = 60_000;

/// Hands record after record to its socket.
#[derive(Debug)]
pub(super) struct FlowSender {
    pub(super) stream: TcpStream,
    head: [u8; HEADER_BYTES],
    /// What of the head is still to be sent.
    head_left: usize,
    /// What of the record is still to be sent behind its head.
    left: usize,
    /// Of the record that begins next.
    number: u64,
    /// Length in bytes.
    length: u32,
    /// Time and byte count at which the measurement of the speed began.
    look: (u64, u64),
    side: SentSide,
}

impl FlowSender {
    pub(super) fn new(stream: TcpStream) -> FlowSender {
        FlowSender {
            stream,
            head: [0; HEADER_BYTES],
            head_left: 0,
            left: 0,
            number: 0,
            length: 4 * RECORD_MIN,
            look: (0, 0),
            side: SentSide::default(),
        }
    }

    /// Hands over what fits, by one call. Returns the bytes so far. `payload` has [`CHUNK_BYTES`].
    ///
    /// # Errors
    /// Why the flow is lost.
    pub(super) fn pass(&mut self, flow_run: &FlowRun, payload: &[u8]) -> Result<u64, String> {
        let is_new = self.head_left == 0 && self.left == 0;
        if is_new {
            self.open(flow_run);
        }
        let body = self.left.min(payload.len());
        let parts = [
            IoSlice::new(&self.head[HEADER_BYTES - self.head_left..]),
            IoSlice::new(&payload[..body]),
        ];
        match stream::send(&self.stream, &parts) {
            Ok(count) => {
                let of_head = count.min(self.head_left);
                self.head_left -= of_head;
                self.left -= count - of_head;
                self.number += u64::from(is_new);
                self.side.accepted_bytes += count as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                // Nothing of it was taken, so it begins later.
                if is_new {
                    (self.head_left, self.left) = (0, 0);
                }
            }
            Err(e) => return Err(crate::error::reason(&e)),
        }
        Ok(self.side.accepted_bytes)
    }

    /// Begins a record.
    fn open(&mut self, flow_run: &FlowRun) {
        let now_ns = clock::monotonic_ns();
        self.measure(now_ns);
        let header = RecordHeader {
            length: self.length,
            number: self.number,
            sent_ns: now_ns.wrapping_add(flow_run.ahead_ns),
        };
        self.head = header.encode();
        self.head_left = HEADER_BYTES;
        self.left = self.length as usize - HEADER_BYTES;
    }

    /// Decides the length of the next record.
    fn measure(&mut self, now_ns: u64) {
        let (since_ns, since_bytes) = self.look;
        let (time_ns, bytes) = (now_ns - since_ns, self.side.accepted_bytes);
        if since_ns == 0 {
            self.look = (now_ns, bytes);
        } else if time_ns >= LOOK_NS {
            let fit = (bytes - since_bytes) as f64 * RECORD_NS / time_ns as f64;
            self.length = (fit as u32).clamp(RECORD_MIN, RECORD_MAX);
            self.look = (now_ns, bytes);
        } else if bytes < u64::from(FIRST_MAX) {
            self.length = (2 * self.length).min(FIRST_MAX);
        }
    }

    /// Samples the state of TCP.
    pub(super) fn sample(&mut self, now: Nanos) {
        let Some(info) = stream::tcp_info(&self.stream) else {
            return;
        };
        self.side.ecn |= info.ecn;
        let mut sample = info.sample;
        sample.at = now;
        if self.side.samples.len() < SAMPLES_MAX {
            self.side.samples.push(sample);
        }
    }

    /// Ends the flow at `ended`.
    pub(super) fn finish(mut self, ended: Nanos, lost: Option<String>) -> (SentSide, TcpStream) {
        self.sample(ended);
        self.side.congestion_control = stream::congestion_control(&self.stream);
        self.side.ended = ended;
        self.side.lost = lost.map(|why| FlowLost { at: ended, why });
        (self.side, self.stream)
    }
}
