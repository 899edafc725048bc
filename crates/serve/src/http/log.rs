//! Logs of the times of requests and of messages of streams, against which tests check measured
//! times.

use knee_engine::sys::clock;
use knee_engine::sys::socket::{Address, Socket};
use knee_load::time::Nanos;
use std::io::{self, Write};

/// Most requests that `--log` keeps: 256 MB, allocated as they fill.
pub const LOG_MAX: usize = 4_000_000;

/// Validity of one comparison of the two clocks, which drift apart by at most 500 ns in a
/// millisecond (adjtimex(2)).
const AHEAD_HOLDS: Nanos = Nanos::from_millis(10);

/// The first line of the file.
const HEADER: &str = "connection,port,request,clock,arrival_ns,read_ns,start_ns,end_ns,written_ns,\
                      realtime_ahead_ns";

/// Times of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The connection, by the order of their first bytes, from 0.
    pub connection: u32,
    /// The client's port; 0 on a Unix socket.
    pub port: u16,
    /// The request on its connection, from 0.
    pub request: u32,
    /// Whether the arrival is the kernel's timestamp, not the time of the read.
    pub by_kernel: bool,
    /// Arrival of the request's last byte, or of those with which it was read.
    pub arrival: Nanos,
    /// Time of the read.
    pub read: Nanos,
    /// When its service began, in the station's ideal time; without a station when it was read.
    pub start: Nanos,
    /// When its service ended, likewise.
    pub end: Nanos,
    /// When the response's last byte was handed to the kernel; `None` if it never was.
    pub written: Option<Nanos>,
    /// How far CLOCK_REALTIME was ahead of CLOCK_MONOTONIC then.
    pub realtime_ahead_ns: u64,
}

/// Log entries in the order in which requests ended. Times count from `origin_ns`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestLog {
    /// CLOCK_MONOTONIC at the start of the server.
    pub origin_ns: u64,
    /// The requests.
    pub entries: Vec<LogEntry>,
    /// Requests that there was no room for.
    pub left_out: u64,
}

impl RequestLog {
    /// Writes it as CSV with a header; times are those of CLOCK_MONOTONIC in nanoseconds.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{HEADER}")?;
        self.entries.iter().try_for_each(|entry| {
            let clock = if entry.by_kernel { "kernel" } else { "process" };
            let absolute = |at: Nanos| self.origin_ns + at.0;
            let times = [entry.arrival, entry.read, entry.start, entry.end].map(absolute);
            let [arrival, read, start, end] = times;
            let (connection, port, request) = (entry.connection, entry.port, entry.request);
            write!(out, "{connection},{port},{request},{clock},")?;
            write!(out, "{arrival},{read},{start},{end},")?;
            if let Some(written) = entry.written {
                write!(out, "{}", absolute(written))?;
            }
            writeln!(out, ",{}", entry.realtime_ahead_ns)
        })
    }
}

/// The log while the server runs.
#[derive(Debug)]
pub(super) struct Log {
    requests: RequestLog,
    max: usize,
    connections: u32,
    /// How far CLOCK_REALTIME is ahead, and the time of that reading.
    ahead: Option<(u64, Nanos)>,
}

impl Log {
    /// An empty one with room for `max` requests; times count from `origin_ns`.
    pub(super) fn new(max: usize, origin_ns: u64) -> Log {
        let requests = RequestLog { origin_ns, entries: Vec::with_capacity(max), left_out: 0 };
        Log { requests, max, connections: 0, ahead: None }
    }

    pub(super) fn finish(self) -> RequestLog {
        self.requests
    }

    fn ahead(&mut self, now: Nanos) -> u64 {
        match self.ahead {
            Some((ahead_ns, at)) if now - at < AHEAD_HOLDS => ahead_ns,
            _ => {
                let ahead_ns = clock::realtime_ahead_ns();
                self.ahead = Some((ahead_ns, now));
                ahead_ns
            }
        }
    }

    /// Adds a request that has ended.
    pub(super) fn push(&mut self, entry: LogEntry) {
        if self.requests.entries.len() < self.max {
            self.requests.entries.push(entry);
        } else {
            self.requests.left_out += 1;
        }
    }
}

/// Log of one connection.
#[derive(Debug)]
pub(super) struct ConnectionLog {
    connection: u32,
    port: u16,
    requests: u32,
    /// When bytes were read last, and their kernel's timestamp.
    read: Nanos,
    came_ns: Option<u64>,
}

impl ConnectionLog {
    /// Log of a connection whose first bytes have come.
    pub(super) fn new(socket: &Socket, log: &mut Log) -> ConnectionLog {
        let port = match socket.peer_address() {
            Ok(Address::Tcp(address)) => address.port(),
            Ok(Address::Unix(_)) | Err(_) => 0,
        };
        ConnectionLog::of_port(port, log)
    }

    /// Log of a connection of this client's port.
    pub(super) fn of_port(port: u16, log: &mut Log) -> ConnectionLog {
        let connection = log.connections;
        log.connections += 1;
        ConnectionLog { connection, port, requests: 0, read: Nanos::ZERO, came_ns: None }
    }

    /// Notes bytes that were read at `now` and came at `came_ns` by CLOCK_REALTIME, if the kernel
    /// told.
    pub(super) fn on_read(&mut self, now: Nanos, came_ns: Option<u64>) {
        (self.read, self.came_ns) = (now, came_ns);
    }

    /// Creates the entry of the next request, which is served from `start` to `end`. It goes into
    /// the log when the request ends.
    pub(super) fn next_entry(&mut self, log: &mut Log, start: Nanos, end: Nanos) -> LogEntry {
        let realtime_ahead_ns = log.ahead(self.read);
        let origin_ns = log.requests.origin_ns;
        let came = self.came_ns.map(|at| {
            let monotonic_ns = at.saturating_sub(realtime_ahead_ns);
            Nanos(monotonic_ns.saturating_sub(origin_ns)).min(self.read)
        });
        let entry = LogEntry {
            connection: self.connection,
            port: self.port,
            request: self.requests,
            by_kernel: came.is_some(),
            arrival: came.unwrap_or(self.read),
            read: self.read,
            start,
            end,
            written: None,
            realtime_ahead_ns,
        };
        self.requests += 1;
        entry
    }
}

/// Most messages that `--stream-log` keeps: 160 MB.
pub const STREAM_LOG_MAX: usize = 4_000_000;

/// The first line of the file.
const STREAM_HEADER: &str = "stream,message,arrival_ns,due_ns,written_ns";

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
    /// Errors of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{STREAM_HEADER}")?;
        self.messages.iter().try_for_each(|sent| {
            let [arrival, due, written] =
                [sent.arrival, sent.due, sent.written].map(|at| self.origin_ns + at.0);
            writeln!(out, "{},{},{arrival},{due},{written}", sent.stream, sent.message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> ConnectionLog {
        ConnectionLog { connection: 3, port: 40_000, requests: 0, read: Nanos::ZERO, came_ns: None }
    }

    /// A log whose clocks are a second apart.
    fn log(max: usize) -> Log {
        Log { ahead: Some((1_000_000_000, Nanos::ZERO)), ..Log::new(max, 5_000) }
    }

    fn written(log: Log) -> String {
        let mut file = Vec::new();
        log.finish().write(&mut file).unwrap();
        String::from_utf8(file).unwrap()
    }

    /// A request that is served from `start` to `end` and answered at `written`.
    fn request(
        (log, line): (&mut Log, &mut ConnectionLog),
        start: u64,
        end: u64,
        written: Option<u64>,
    ) {
        let entry = line.next_entry(log, Nanos(start), Nanos(end));
        log.push(LogEntry { written: written.map(Nanos), ..entry });
    }

    #[test]
    fn a_request_is_a_line_on_one_clock() {
        let (mut log, mut line) = (log(9), line());
        line.on_read(Nanos(100), Some(1_000_005_070));
        request((&mut log, &mut line), 150, 250, Some(260));
        line.on_read(Nanos(300), None);
        request((&mut log, &mut line), 300, 400, None);
        let lines = "3,40000,0,kernel,5070,5100,5150,5250,5260,1000000000\n\
                     3,40000,1,process,5300,5300,5300,5400,,1000000000\n";
        assert_eq!(written(log), format!("{HEADER}\n{lines}"));
    }

    #[test]
    fn a_timestamp_from_the_future_is_the_time_of_the_read() {
        let (mut log, mut line) = (log(9), line());
        line.on_read(Nanos(100), Some(1_000_009_000));
        request((&mut log, &mut line), 100, 100, None);
        assert_eq!(log.finish().entries[0].arrival, Nanos(100));
    }

    #[test]
    fn what_has_no_room_is_counted() {
        let (mut log, mut line) = (log(1), line());
        for _ in 0..3 {
            request((&mut log, &mut line), 1, 1, None);
        }
        let kept = log.finish();
        assert_eq!((kept.entries.len(), kept.left_out), (1, 2));
    }
}
