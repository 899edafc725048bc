//! Any bytes, however they are cut, are the same lines between an observer and its client; what is
//! no message is refused in one line, and what is one reads back as itself.

use knee_engine::observe::control::{Came, LineReader, Reply, line, parse_reply, parse_request};

const LIMIT: usize = 4096;

/// The first byte says how to cut; the rest is what came.
pub fn check(data: &[u8]) {
    let Some((&choice, stream)) = data.split_first() else {
        return;
    };
    let whole = lines(stream, stream.len());
    // Whether a line is too long is seen at the end of a read.
    if stream.len() <= LIMIT {
        assert_eq!(lines(stream, usize::from(choice % 24) + 1), whole);
    }
    for message in whole {
        match parse_request(&message) {
            Ok(request) => {
                let again = line(&request);
                assert_eq!(parse_request(&again[..again.len() - 1]), Ok(request));
            }
            Err(why) => assert!(!why.chars().any(char::is_control), "{why:?}"),
        }
        match parse_reply(&message) {
            Ok(Reply::Refused(why)) => assert!(!why.chars().any(char::is_control), "{why:?}"),
            Ok(reply) => assert_eq!(parse_reply(&line(&reply)), Ok(reply)),
            Err(why) => assert!(!why.chars().any(char::is_control), "{why:?}"),
        }
    }
}

/// The whole lines of a stream that brings at most so many bytes at once.
fn lines(stream: &[u8], at_once: usize) -> Vec<Vec<u8>> {
    let mut reader = LineReader::default();
    let mut source = Pieces { stream, at_once };
    let mut lines = Vec::new();
    loop {
        match reader.next(&mut source, LIMIT) {
            Ok(Came::Line(line)) => lines.push(line),
            Ok(Came::Part) => {}
            Ok(Came::End) | Err(_) => return lines,
        }
    }
}

struct Pieces<'a> {
    stream: &'a [u8],
    at_once: usize,
}

impl std::io::Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = self.stream.len().min(self.at_once).min(into.len());
        into[..count].copy_from_slice(&self.stream[..count]);
        self.stream = &self.stream[count..];
        Ok(count)
    }
}
