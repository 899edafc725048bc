//! What client and observer say to each other: one JSON value per line, over TCP.
//!
//! ```text
//! → {"hello":{"version":3,"service":"observe",…}}   ← {"ready":{"port":8080,"source":"capture"}}
//! → "arm"                                            ← {"armed":{"clock_ns":…}}
//! → {"begin":{"at_ns":…,"interval_ns":…,…}}          ← "begun"
//! → "finish"                                         ← {"observed":{…}}
//! → {"follow":{"one_of":16}}                         ← "following"
//! → "seen"                                           ← {"seen":{…}}
//! ```
//!
//! `arm`, `begin` and `finish` may follow each other again and again. From `arm` on, what comes is
//! kept, so that a `begin` that is late on its way costs nothing; said several times, it tells how
//! the two clocks differ (Cristian, Probabilistic Clock Synchronization, 1989). `follow` and `seen`
//! stand around the load whose connections are to be told of. What is refused is answered with
//! `{"refused":"why"}`, and the connection ends.

pub use crate::control::{Hello, line};
use knee_core::both_ends::Seen;
use knee_core::measure::{Observed, SynSource};
use serde::{Deserialize, Serialize};
use std::io::{self, Read};

/// The command that starts an observer.
pub const SERVICE: &str = "observe";

/// The longest line that a client may send, in bytes.
pub const REQUEST_MAX: usize = 4096;

/// The longest line that an observer may send: a million intervals fit.
pub const REPLY_MAX: usize = 32 << 20;

/// What a client says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// First of all.
    Hello(Hello),
    /// Keep what comes from now on, for a window to be told; and say what time it is there.
    Arm,
    /// Watch a window, instead of one that was begun.
    Begin {
        /// It begins at this moment of the observer's clock, at most an hour away.
        at_ns: u64,
        /// The length of its intervals; 0: it is one.
        interval_ns: u64,
        /// It lasts so long, at most 30 days.
        duration_ns: u64,
    },
    /// End the watch and tell what was seen.
    Finish,
    /// From now on follow new connections, one of so many by the client's port.
    Follow {
        /// Rounded up to a power of two.
        one_of: u16,
    },
    /// End following and tell what was seen of them.
    Seen,
}

/// What an observer says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Reply {
    /// To a hello: it watches this port, and counts its SYNs with that.
    Ready {
        /// The port.
        port: u16,
        /// What counts.
        source: SynSource,
    },
    /// To an arm.
    Armed {
        /// The observer's CLOCK_MONOTONIC, in nanoseconds.
        clock_ns: u64,
    },
    /// To a begin.
    Begun,
    /// To a finish.
    Observed(Box<Observed>),
    /// To a follow.
    Following,
    /// To a question for what was seen.
    Seen(Box<Seen>),
    /// To whatever it does not do, and why; it then closes the connection.
    Refused(String),
}

/// A window begins at most so far from now.
pub const BEGIN_WITHIN_NS: u64 = 3_600 * 1_000_000_000;
const DURATION_MAX_NS: u64 = 30 * 24 * 3_600 * 1_000_000_000;

/// Reads a client's line.
///
/// # Errors
/// What is wrong with it, in one line that repeats none of it.
pub fn parse_request(line: &[u8]) -> Result<Request, String> {
    let request = serde_json::from_slice(line).map_err(|e| {
        format!(
            "a request was expected, as JSON; wrong at column {}",
            e.column()
        )
    })?;
    match request {
        Request::Begin { duration_ns, .. } if duration_ns > DURATION_MAX_NS => {
            Err("a window lasts for at most 30 days".to_owned())
        }
        request => Ok(request),
    }
}

/// Reads an observer's line.
///
/// # Errors
/// What is wrong with it, in one line that repeats none of it.
pub fn parse_reply(line: &[u8]) -> Result<Reply, String> {
    let reply = serde_json::from_slice(line)
        .map_err(|e| format!("no answer of an observer; wrong at column {}", e.column()))?;
    Ok(match reply {
        // It goes to the terminal.
        Reply::Refused(why) => Reply::Refused(printable(&why)),
        Reply::Seen(seen) => Reply::Seen(Box::new(Seen {
            because: seen.because.as_deref().map(printable),
            ..*seen
        })),
        reply => reply,
    })
}

fn printable(text: &str) -> String {
    let printed = text.chars().filter(|c| !c.is_control());
    printed.take(200).collect()
}

/// Reads lines of limited length off a stream.
#[derive(Debug, Default)]
pub struct LineReader {
    kept: Vec<u8>,
}

/// What a read brought.
#[derive(Debug, PartialEq, Eq)]
pub enum Came {
    /// A whole line, without its end.
    Line(Vec<u8>),
    /// Not a whole line yet.
    Part,
    /// The end of the stream; what was no whole line is dropped.
    End,
}

impl LineReader {
    /// The next line, after at most one read.
    ///
    /// # Errors
    /// As the stream says, `WouldBlock` and `TimedOut` among them, after which it can be asked
    /// again; `InvalidData` where a line is longer than `limit`.
    pub fn next(&mut self, from: &mut impl Read, limit: usize) -> io::Result<Came> {
        if let Some(line) = self.take_line(0) {
            return Ok(Came::Line(line));
        }
        let seen = self.kept.len();
        let mut buffer = [0; 4096];
        match from.read(&mut buffer)? {
            0 => return Ok(Came::End),
            count => self.kept.extend_from_slice(&buffer[..count]),
        }
        match self.take_line(seen) {
            Some(line) => Ok(Came::Line(line)),
            None if self.kept.len() > limit => {
                let message = format!("a line of more than {limit} bytes");
                Err(io::Error::new(io::ErrorKind::InvalidData, message))
            }
            None => Ok(Came::Part),
        }
    }

    /// The first line, whose end is not before `from`.
    fn take_line(&mut self, from: usize) -> Option<Vec<u8>> {
        let end = from + self.kept[from..].iter().position(|&b| b == b'\n')?;
        let mut line: Vec<u8> = self.kept.drain(..=end).collect();
        line.pop();
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn requests_read_back_and_strange_ones_are_refused() {
        let begin = |at_ns, duration_ns| Request::Begin {
            at_ns,
            interval_ns: 1,
            duration_ns,
        };
        for request in [
            Request::Hello(Hello::new(SERVICE, "secret")),
            Request::Arm,
            begin(5, 6),
            Request::Finish,
            Request::Follow { one_of: 16 },
            Request::Seen,
        ] {
            let line = line(&request);
            assert_eq!(parse_request(&line[..line.len() - 1]), Ok(request));
        }
        assert!(parse_request(&line(&begin(0, u64::MAX))).is_err());
        for text in [
            "",
            "null",
            "GET / HTTP/1.1",
            "{\"begin\":{\"at_ns\":-1}}",
            "\"finish\" x",
        ] {
            let error = parse_request(text.as_bytes()).unwrap_err();
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn replies_read_back_and_what_is_refused_is_one_line() {
        let observed = Reply::Observed(Box::default());
        let ready = Reply::Ready {
            port: 80,
            source: SynSource::Counters,
        };
        let armed = Reply::Armed { clock_ns: 7 };
        let seen = Reply::Seen(Box::default());
        for reply in [ready, armed, Reply::Begun, observed, Reply::Following, seen] {
            assert_eq!(parse_reply(&line(&reply)), Ok(reply));
        }
        let refused = line(&Reply::Refused("a\n\u{1b}[31mb".to_owned()));
        assert_eq!(
            parse_reply(&refused),
            Ok(Reply::Refused("a[31mb".to_owned()))
        );
    }

    proptest! {
        /// LineReader are the same however they are cut.
        #[test]
        fn lines_come_whole(
            lines in prop::collection::vec("[a-z]{0,50}", 0..20),
            cut in 1_usize..9,
        ) {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let mut pieces = text.as_bytes().chunks(cut).collect::<std::collections::VecDeque<_>>();
            let mut reader = LineReader::default();
            let mut read = Vec::new();
            loop {
                let mut piece = pieces.front().copied().unwrap_or_default();
                let before = piece.len();
                let came = reader.next(&mut piece, 100).unwrap();
                if piece.len() < before {
                    pieces.pop_front();
                }
                match came {
                    Came::Line(line) => read.push(String::from_utf8(line).unwrap()),
                    Came::Part => {}
                    Came::End => break,
                }
            }
            prop_assert_eq!(read, lines);
        }
    }

    #[test]
    fn a_line_without_an_end_is_refused() {
        let mut endless = io::repeat(b'x');
        let mut lines = LineReader::default();
        let error = (0..100).find_map(|_| lines.next(&mut endless, 10_000).err());
        assert_eq!(error.unwrap().kind(), io::ErrorKind::InvalidData);
    }
}
