//! Counts of the server.

use super::log::{RequestLog, StreamLog};
use super::response::ResponseKind;
use super::secure::Handshake;
use knee_engine::sys::clock::ThreadUse;
use knee_load::measure::Histogram;
use knee_load::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

/// Counts of a reference HTTP server from its start to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HttpServerStats {
    /// From start to end, in seconds.
    pub elapsed_s: f64,
    /// Whole requests read.
    pub requests: u64,
    /// Whole responses handed to the kernel, of any status.
    pub responses: u64,
    /// Connections accepted.
    pub connections: u64,
    /// Most connections open at once.
    pub connections_max: u64,
    /// Bytes read, after decryption.
    pub bytes_received: u64,
    /// Bytes written, before encryption.
    pub bytes_sent: u64,
    /// What went wrong, by kind. Bad requests are `malformed`, `head_too_large`, `unknown_coding`
    /// and `version`. `incomplete`: ended within a request. `client_reset`: reset by the client
    /// while it was read from. `write`: gone when the response was written. `accept`: not accepted.
    pub errors: BTreeMap<String, u64>,
    /// What went wrong on purpose, by kind: `reset`, `truncate`, `garbage`, `error`.
    pub faults: BTreeMap<String, u64>,
    /// Processor time of the server's thread in user mode, in seconds.
    pub cpu_user_s: f64,
    /// Processor time of the server's thread in the kernel, in seconds.
    pub cpu_system_s: f64,
    /// Standard deviation over mean of the gaps between requests (0: a clockwork, 1: Poisson);
    /// absent with fewer than three requests.
    pub gap_cv: Option<f64>,
    /// TLS of the connections, if they use it.
    pub tls: Option<TlsStats>,
    /// What was specific to HTTP/2, where any connection spoke it.
    pub http2: Option<Http2Stats>,
    /// The workers, if any.
    pub station: Option<StationStats>,
    /// When requests arrived, from the start of the server: as many as the spec asked to keep.
    #[serde(skip)]
    pub arrivals: Vec<Nanos>,
    /// What each request went through: as many as the spec asked to keep.
    #[serde(skip)]
    pub log: RequestLog,
    /// When each message of a stream left: as many as the spec asked to keep.
    #[serde(skip)]
    pub stream_log: StreamLog,
}

/// Counts of TLS over TCP. A connection that ends before it sends anything is not counted, nor is
/// one of HTTP/3, whose TLS is a part of QUIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsStats {
    /// Handshakes that began a new session.
    pub full: u64,
    /// Handshakes that resumed an earlier one.
    pub resumed: u64,
    /// Those of the resumed that brought early data, which were accepted.
    pub early_data: u64,
    /// Handshakes that failed: no TLS, nothing in common, or abandoned by the client.
    pub failed: u64,
    /// Bytes read from sockets, handshakes and all.
    pub bytes_received: u64,
    /// Bytes written to sockets, likewise.
    pub bytes_sent: u64,
}

impl TlsStats {
    pub(super) fn on_handshake(&mut self, handshake: Handshake) {
        self.full += u64::from(!handshake.is_resumed);
        self.resumed += u64::from(handshake.is_resumed);
        self.early_data += u64::from(handshake.is_early);
    }
}

/// Counts of HTTP/2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Http2Stats {
    /// Connections that spoke HTTP/2.
    pub connections: u64,
    /// Streams that clients opened.
    pub streams: u64,
    /// Most streams of one connection at once.
    pub streams_max: u64,
    /// Streams that clients reset.
    pub reset_by_clients: u64,
    /// Streams refused as beyond the limit.
    pub refused: u64,
}

/// `http2  1 connections, 90 streams (at most 32 at once on one), 0 reset by clients, 0 refused`
impl fmt::Display for Http2Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "http2  {} connections, {} streams (at most {} at once on one), \
             {} reset by clients, {} refused",
            self.connections, self.streams, self.streams_max, self.reset_by_clients, self.refused
        )
    }
}

/// `tls    2 handshakes full, 5 resumed (1 with early data), 0 failed; 1200 bytes in, 9000 out`
impl fmt::Display for TlsStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "tls    {} handshakes full, {} resumed ({} with early data), {} failed; \
             {} bytes in, {} out",
            self.full,
            self.resumed,
            self.early_data,
            self.failed,
            self.bytes_received,
            self.bytes_sent
        )
    }
}

/// Counts of the station in ideal time, and how late the thread was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StationStats {
    /// Workers.
    pub workers: u32,
    /// Requests that came.
    pub arrivals: u64,
    /// Mean of the service times drawn.
    pub service_mean_ns: f64,
    /// Time from arrival to ideal finish of the requests that finished.
    pub sojourn: TimeQuantiles,
    /// Mean number of requests that an arriving one found waiting for a worker.
    pub queue_mean: f64,
    /// Most requests that waited for a worker at once.
    pub queue_max: u64,
    /// Requests that found the queue full.
    #[serde(default)]
    pub rejected: u64,
    /// Requests dropped from the queue.
    #[serde(default)]
    pub dropped: u64,
    /// Requests that left the queue with their client.
    #[serde(default)]
    pub left: u64,
    /// Requests served after their client had gone, in a managed queue.
    #[serde(default)]
    pub in_vain: u64,
    /// Requests that found nothing in the cache.
    #[serde(default)]
    pub misses: u64,
    /// Delay of writing the response after the ideal finish.
    pub write_lateness: TimeQuantiles,
}

/// A distribution of times in six numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeQuantiles {
    /// Mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// Longest.
    pub max_ns: u64,
}

impl From<&Histogram> for TimeQuantiles {
    fn from(times: &Histogram) -> TimeQuantiles {
        TimeQuantiles {
            mean_ns: times.mean_ns(),
            p50_ns: times.quantile(0.5).0,
            p90_ns: times.quantile(0.9).0,
            p99_ns: times.quantile(0.99).0,
            p999_ns: times.quantile(0.999).0,
            max_ns: times.max().0,
        }
    }
}

impl HttpServerStats {
    /// Writes the arrival stamps that were kept, in nanoseconds since the start, one per line.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn write_arrivals(&self, out: &mut dyn Write) -> io::Result<()> {
        self.arrivals.iter().try_for_each(|at| writeln!(out, "{}", at.0))
    }
}

impl fmt::Display for HttpServerStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpu_s = self.cpu_user_s + self.cpu_system_s;
        writeln!(
            f,
            "served {} of {} requests on {} connections (at most {} at once) in {:.1} s",
            self.responses, self.requests, self.connections, self.connections_max, self.elapsed_s
        )?;
        writeln!(f, "bytes  {} in, {} out", self.bytes_received, self.bytes_sent)?;
        self.tls.as_ref().map_or(Ok(()), |tls| tls.fmt(f))?;
        self.http2.as_ref().map_or(Ok(()), |http2| http2.fmt(f))?;
        write!(f, "cpu    {:.2} s user, {:.2} s system", self.cpu_user_s, self.cpu_system_s)?;
        if self.requests > 0 {
            write!(f, ", {:.1} µs per request", cpu_s * 1e6 / self.requests as f64)?;
        }
        writeln!(f)?;
        if let Some(cv) = self.gap_cv {
            writeln!(f, "gaps   coefficient of variation {cv:.3}")?;
        }
        for (what, counts) in [("errors", &self.errors), ("faults", &self.faults)] {
            if !counts.is_empty() {
                let list: Vec<String> = counts.iter().map(|(k, n)| format!("{n} {k}")).collect();
                writeln!(f, "{what} {}", list.join(", "))?;
            }
        }
        self.station.as_ref().map_or(Ok(()), |s| s.fmt(f))
    }
}

impl fmt::Display for StationStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "station {} workers, mean service {}, queue mean {:.2}, max {}",
            self.workers,
            Nanos(self.service_mean_ns as u64),
            self.queue_mean,
            self.queue_max
        )?;
        let counts = [
            (self.rejected, "rejected      ", "as the queue was full"),
            (self.dropped, "dropped       ", "as the queue was long for too long"),
            (self.left, "left          ", "with their clients, before service"),
            (self.in_vain, "in vain       ", "served after their clients had gone"),
            (self.misses, "missed        ", "as the cache did not have their key"),
        ];
        for (count, name, why) in counts.iter().filter(|(count, ..)| *count > 0) {
            writeln!(f, "  {name} {count} requests, {why}")?;
        }
        writeln!(f, "  sojourn        {}", self.sojourn)?;
        writeln!(f, "  write lateness {}", self.write_lateness)
    }
}

impl fmt::Display for TimeQuantiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "mean {}, p50 {}, p90 {}, p99 {}, p99.9 {}, max {}",
            Nanos(self.mean_ns as u64),
            Nanos(self.p50_ns),
            Nanos(self.p90_ns),
            Nanos(self.p99_ns),
            Nanos(self.p999_ns),
            Nanos(self.max_ns)
        )
    }
}

/// What a station counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct StationCounts {
    /// What is counted as it happens; the rest is added at the end.
    pub(super) stats: StationStats,
    /// Services that have begun, and the sum of their times in nanoseconds.
    pub(super) begun: u64,
    pub(super) service_sum_ns: u128,
    /// Sum over arrivals of the requests found waiting.
    pub(super) queue_sum: u128,
}

impl StationCounts {
    /// Empty counts of this number of workers.
    pub(super) fn new(workers: u32) -> StationCounts {
        let stats = StationStats { workers, ..StationStats::default() };
        StationCounts { stats, ..StationCounts::default() }
    }

    /// Mean of the service times drawn, in nanoseconds; 0 before the first.
    pub(super) fn service_mean_ns(&self) -> f64 {
        self.service_sum_ns as f64 / self.begun.max(1) as f64
    }

    /// Mean number of requests that an arriving one found waiting; 0 before the first.
    pub(super) fn queue_mean(&self) -> f64 {
        self.queue_sum as f64 / self.stats.arrivals.max(1) as f64
    }
}

/// An error or fault. The numbers are indices of the tally; the names stand in the counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    Malformed,
    HeadTooLarge,
    UnknownCoding,
    Version,
    Incomplete,
    ClientReset,
    Write,
    Accept,
    Reset,
    Truncate,
    Garbage,
    Error,
}

/// Names, and whether they are deliberate.
const TROUBLES: [(&str, bool); 12] = [
    ("malformed", false),
    ("head_too_large", false),
    ("unknown_coding", false),
    ("version", false),
    ("incomplete", false),
    ("client_reset", false),
    ("write", false),
    ("accept", false),
    ("reset", true),
    ("truncate", true),
    ("garbage", true),
    ("error", true),
];

/// The counts while the server runs.
#[derive(Debug, Default)]
pub(super) struct ServerTally {
    /// What is counted as it happens; the rest is added at the end.
    pub(super) stats: HttpServerStats,
    pub(super) tls: TlsStats,
    pub(super) http2: Http2Stats,
    /// Responses that were streams of messages.
    pub(super) streams: u64,
    pub(super) sojourn: Histogram,
    pub(super) write_lateness: Histogram,
    troubles: [u64; TROUBLES.len()],
    gaps: ArrivalGaps,
    arrivals_max: usize,
}

impl ServerTally {
    pub(super) fn new(arrivals_max: usize) -> ServerTally {
        let arrivals = Vec::with_capacity(arrivals_max);
        ServerTally {
            stats: HttpServerStats { arrivals, ..HttpServerStats::default() },
            arrivals_max,
            sojourn: Histogram::ready(),
            write_lateness: Histogram::ready(),
            ..ServerTally::default()
        }
    }

    /// Counts a whole request at `at`.
    #[inline]
    pub(super) fn on_request(&mut self, at: Nanos) {
        self.stats.requests += 1;
        self.gaps.on_arrival(at);
        if self.stats.arrivals.len() < self.arrivals_max {
            self.stats.arrivals.push(at);
        }
    }

    /// Counts a whole response.
    pub(super) fn on_response(&mut self, kind: ResponseKind) {
        self.stats.responses += 1;
        if let ResponseKind::Error(..) = kind {
            self.on_trouble(Trouble::Error);
        }
    }

    pub(super) fn on_trouble(&mut self, trouble: Trouble) {
        self.troubles[trouble as usize] += 1;
    }

    pub(super) fn finish(
        self,
        elapsed: Nanos,
        cpu: ThreadUse,
        station: Option<StationCounts>,
    ) -> HttpServerStats {
        let by_kind = |on_purpose: bool| {
            let named = TROUBLES.iter().zip(self.troubles);
            named
                .filter(|((_, purpose), n)| *purpose == on_purpose && *n > 0)
                .map(|((name, _), n)| ((*name).to_owned(), n))
                .collect()
        };
        HttpServerStats {
            elapsed_s: elapsed.as_secs_f64(),
            errors: by_kind(false),
            faults: by_kind(true),
            cpu_user_s: cpu.user.as_secs_f64(),
            cpu_system_s: cpu.system.as_secs_f64(),
            gap_cv: self.gaps.coefficient_of_variation(),
            http2: (self.http2.connections > 0).then_some(self.http2),
            station: station.map(|counts| StationStats {
                service_mean_ns: counts.service_mean_ns(),
                sojourn: TimeQuantiles::from(&self.sojourn),
                queue_mean: counts.queue_mean(),
                write_lateness: TimeQuantiles::from(&self.write_lateness),
                ..counts.stats
            }),
            ..self.stats
        }
    }
}

/// Mean and variance of the gaps between arrivals in one pass (Welford 1962).
#[derive(Debug, Default)]
struct ArrivalGaps {
    last: Option<Nanos>,
    count: u64,
    mean_ns: f64,
    squares_ns2: f64,
}

impl ArrivalGaps {
    #[inline]
    fn on_arrival(&mut self, at: Nanos) {
        if let Some(last) = self.last {
            let gap_ns = (at - last).0 as f64;
            self.count += 1;
            let off = gap_ns - self.mean_ns;
            self.mean_ns += off / self.count as f64;
            self.squares_ns2 += off * (gap_ns - self.mean_ns);
        }
        self.last = Some(at);
    }

    fn coefficient_of_variation(&self) -> Option<f64> {
        let variance = self.squares_ns2 / (self.count.checked_sub(1).filter(|&n| n > 0)? as f64);
        (self.mean_ns > 0.0).then(|| variance.sqrt() / self.mean_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_of_a_clockwork_and_of_a_known_sample() {
        let cv = |moments: &[u64]| {
            let mut gaps = ArrivalGaps::default();
            moments.iter().for_each(|&at| gaps.on_arrival(Nanos(at)));
            gaps.coefficient_of_variation()
        };
        assert_eq!(cv(&[5, 10]), None);
        assert_eq!(cv(&[5, 10, 15, 20]), Some(0.0));
        // Gaps 1, 2, 3: mean 2, sample variance 1.
        assert_eq!(cv(&[0, 1, 3, 6]), Some(0.5));
        assert_eq!(cv(&[7, 7, 7]), None);
    }

    #[test]
    fn troubles_are_told_by_name_and_purpose() {
        let mut tally = ServerTally::new(1);
        tally.on_request(Nanos(3));
        tally.on_request(Nanos(9));
        tally.on_trouble(Trouble::Accept);
        tally.on_trouble(Trouble::Error);
        tally.on_trouble(Trouble::Error);
        let stats = tally.finish(Nanos::from_secs(1), ThreadUse::default(), None);
        assert_eq!(stats.errors, BTreeMap::from([("accept".to_owned(), 1)]));
        assert_eq!(stats.faults, BTreeMap::from([("error".to_owned(), 2)]));
        assert_eq!(stats.arrivals, [Nanos(3)], "one was asked for");
        let mut file = Vec::new();
        stats.write_arrivals(&mut file).unwrap();
        assert_eq!(file, b"3\n");
        let json = serde_json::to_string(&stats).unwrap();
        let back: HttpServerStats = serde_json::from_str(&json).unwrap();
        assert_eq!(back.errors, stats.errors);
        assert!(stats.to_string().contains("errors 1 accept\nfaults 2 error\n"));
    }
}
