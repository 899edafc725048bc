//! Cuts a stream of bytes into lines.

use serde::Serialize;

/// A message as a line of JSON with its end.
///
/// # Panics
/// Never: every field can be written as JSON.
pub fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("plain data serialise");
    line.push(b'\n');
    line
}

/// Error: a line is longer than permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// Bytes that came, and the lines in them.
#[derive(Debug)]
pub struct Lines {
    bytes: Vec<u8>,
    /// No line ends before this place in `bytes`.
    searched: usize,
    max: usize,
}

impl Lines {
    /// Reader of lines of up to `max` bytes.
    pub fn new(max: usize) -> Lines {
        Lines { bytes: Vec::new(), searched: 0, max }
    }

    /// Adds bytes that came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes that no line has been made of.
    pub fn held(&self) -> usize {
        self.bytes.len()
    }

    /// Changes the longest line, in bytes.
    pub fn set_max(&mut self, max: usize) {
        self.max = max;
    }

    /// The next whole line, without its end; `None`: more bytes are needed.
    ///
    /// # Errors
    /// The line is too long, whether it has ended or not.
    pub fn take(&mut self) -> Result<Option<Vec<u8>>, TooLong> {
        let found = self.bytes[self.searched..].iter().position(|&b| b == b'\n');
        let Some(end) = found.map(|at| at + self.searched) else {
            self.searched = self.bytes.len();
            return if self.bytes.len() > self.max { Err(TooLong) } else { Ok(None) };
        };
        if end > self.max {
            return Err(TooLong);
        }
        let mut line: Vec<u8> = self.bytes.drain(..=end).collect();
        line.pop();
        self.searched = 0;
        Ok(Some(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_a_limit() {
        let mut lines = Lines::new(4);
        lines.push(b"1234\n\n12");
        assert_eq!(lines.take(), Ok(Some(b"1234".to_vec())));
        assert_eq!(lines.take(), Ok(Some(Vec::new())));
        assert_eq!(lines.take(), Ok(None));
        lines.push(b"345");
        assert_eq!(lines.take(), Err(TooLong));
        lines.set_max(5);
        lines.push(b"\n");
        assert_eq!(lines.take(), Ok(Some(b"12345".to_vec())));
    }
}
