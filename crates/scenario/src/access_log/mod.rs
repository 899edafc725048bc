//! Access logs of servers as recordings: requests with the times at which they came.
//!
//! A log is read line by line, in bounded memory.

mod format;
mod json;
mod line;
mod moment;
mod order;
mod pattern;
#[cfg(test)]
mod tests;
mod text;
mod w3c;

pub use format::LogFormat;
pub use json::LogKeys;
use knee_load::shown::shown;
use knee_load::spec::{RecordedRequest, RecordingHead};
use line::LoggedRequest;
use order::LogOrder;
pub use pattern::LogPattern;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};
pub use w3c::LogColumns;

/// Bytes of a line. A longer one is left out.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Most lines that are named with the reason why they were left out.
const LEFT_OUT_MAX: usize = 20;

/// What a log came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadLog {
    /// Requests of the recording.
    pub requests: u64,
    /// Seconds from the first to the last.
    pub seconds: f64,
    /// Requests whose time was known to the second only. They are spread evenly over their second.
    pub spread: u64,
    /// Requests that stood so far from their place that they were put later than they came.
    pub moved: u64,
    /// Lines that are no request, the first of them with their numbers and why.
    pub left_out: Vec<String>,
    /// Their number.
    pub left_out_count: u64,
    /// The user of all requests, where they are several and have one: each waits for the one before.
    pub only_user: Option<String>,
    /// Requests that ended before the one in the line before, by their times: these are no ends, as
    /// a server writes a line at the end.
    pub unlike_ends: u64,
    /// Requests that began before the first line was written, by how long they took. None where no
    /// request took longer than the log is long.
    pub too_long: u64,
}

/// Reads a log and writes its recording, for the server `target`. Without a format, that of the
/// first line.
///
/// # Errors
/// Reading or writing fails.
pub fn record_log(
    mut log: impl BufRead,
    format: Option<&LogFormat>,
    target: &str,
    mut out: impl Write,
) -> io::Result<ReadLog> {
    let head = RecordingHead { recording: RecordingHead::VERSION, target: target.to_owned() };
    serde_json::to_writer(&mut out, &head)?;
    out.write_all(b"\n")?;
    let read = ReadLog::default();
    let mut writer = RecordingWriter { out, first_ns: None, users: 0, longest_ns: 0, read };
    let mut ends = None;
    let mut order = LogOrder::default();
    let is_asked = format.is_some();
    let mut format = format.cloned();
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        if log.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.len() as u64 == LINE_BYTES_MAX && !line.ends_with(b"\n") {
            log.skip_until(b'\n')?;
            writer.leave_out(number, "more than 1 MiB");
            continue;
        }
        let text = String::from_utf8_lossy(&line);
        // A byte order mark may stand before the first line.
        let text = text.trim_start_matches(|c| number == 1 && c == '\u{feff}').trim();
        if !is_asked && let Some(columns) = LogColumns::of_directive(text) {
            format = Some(LogFormat::Columns(columns));
        }
        if text.is_empty() || LogColumns::is_directive(text) {
            continue;
        }
        let format = format.get_or_insert_with(|| LogFormat::of_line(text));
        match format.read(text) {
            Ok(request) => {
                writer.check_end(&request, &mut ends);
                order.push(request);
            }
            Err(why) => writer.leave_out(number, &why),
        }
        while let Some(request) = order.next_if_full() {
            writer.put(&request)?;
        }
    }
    while let Some(request) = order.next() {
        writer.put(&request)?;
    }
    if ends.is_some_and(|(first, last)| writer.longest_ns <= last - first) {
        writer.read.too_long = 0;
    }
    writer.read.moved = order.moved;
    writer.read.only_user = writer.read.only_user.filter(|_| writer.read.requests > 1);
    writer.out.flush()?;
    Ok(writer.read)
}

/// Writes requests as a recording.
struct RecordingWriter<W> {
    out: W,
    /// The time of the first, in nanoseconds since 1970.
    first_ns: Option<i64>,
    /// Users seen: 0, 1, or 2 for more.
    users: u8,
    /// The longest that a request took.
    longest_ns: i64,
    read: ReadLog,
}

/// Lines of one second may be in any order, and processes of a server are as far apart.
const TOLERANCE_NS: i64 = 1_500_000_000;

impl<W: Write> RecordingWriter<W> {
    fn put(&mut self, request: &LoggedRequest) -> io::Result<()> {
        let first_ns = *self.first_ns.get_or_insert(request.at_ns);
        let at = (request.at_ns - first_ns) as f64 / 1e9;
        let method = (request.method != "GET").then(|| Cow::from(&request.method));
        let recorded = RecordedRequest {
            at,
            method,
            path: Cow::from(&request.path),
            user: request.user.as_ref().map(Cow::from),
            headers: BTreeMap::new(),
            body: None,
        };
        serde_json::to_writer(&mut self.out, &recorded)?;
        self.out.write_all(b"\n")?;
        self.note_user(request.user.as_ref());
        self.read.requests += 1;
        self.read.seconds = at;
        self.read.spread += u64::from(request.is_of_second);
        Ok(())
    }

    /// Counts what cannot be, by a request's end: `ends` are the first one and the last.
    fn check_end(&mut self, request: &LoggedRequest, ends: &mut Option<(i64, i64)>) {
        let Some(end_ns) = request.end_ns else {
            return;
        };
        self.longest_ns = self.longest_ns.max(end_ns - request.at_ns);
        let (first, last) = ends.get_or_insert((end_ns, end_ns));
        self.read.unlike_ends += u64::from(end_ns + TOLERANCE_NS < *last);
        self.read.too_long += u64::from(request.at_ns + TOLERANCE_NS < *first);
        *last = end_ns;
    }

    fn note_user(&mut self, user: Option<&String>) {
        match (self.users, user) {
            (0, Some(user)) => (self.users, self.read.only_user) = (1, Some(user.clone())),
            (1, user) if user != self.read.only_user.as_ref() => {
                (self.users, self.read.only_user) = (2, None);
            }
            (0, None) => self.users = 2,
            _ => {}
        }
    }

    fn leave_out(&mut self, number: u64, why: &str) {
        self.read.left_out_count += 1;
        if self.read.left_out.len() < LEFT_OUT_MAX {
            self.read.left_out.push(format!("line {number}: {}", shown(why)));
        }
    }
}
