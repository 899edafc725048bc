//! Log of when each message of a stream left, against which measured times are checked.

use knee_load::time::Nanos;
use std::io::{self, Write};

/// Most messages that `--stream-log` keeps: 160 MB.
pub const STREAM_LOG_MAX: usize = 4_000_000;

/// The first line of the file.
const HEADER: &str = "stream,message,arrival_ns,due_ns,written_ns";

/// A message that was handed to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentMessage {
    /// Its stream, in the order of their arrivals, from 0.
    pub stream: u32,
    /// Its number in the stream, from 1.
    pub message: u32,
    /// Arrival of the request of the stream, by the time of the read.
    pub arrival: Nanos,
    /// When it was due.
    pub due: Nanos,
    /// When the kernel had it.
    pub written: Nanos,
}

/// Messages in the order in which they left. Times count from `origin_ns`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamLog {
    /// CLOCK_MONOTONIC at the start of the server.
    pub origin_ns: u64,
    /// The messages.
    pub messages: Vec<SentMessage>,
    /// Messages that there was no room for.
    pub left_out: u64,
    /// Most messages that are kept.
    pub(super) max: usize,
}

impl StreamLog {
    /// Adds a message.
    pub(super) fn push(&mut self, message: SentMessage) {
        if self.messages.len() < self.max {
            self.messages.push(message);
        } else {
            self.left_out += 1;
        }
    }

    /// Writes it as CSV with a header; times are those of CLOCK_MONOTONIC in nanoseconds.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{HEADER}")?;
        self.messages.iter().try_for_each(|sent| {
            let [arrival, due, written] =
                [sent.arrival, sent.due, sent.written].map(|at| self.origin_ns + at.0);
            writeln!(out, "{},{},{arrival},{due},{written}", sent.stream, sent.message)
        })
    }
}
