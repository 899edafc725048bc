//! Standard output.

use crate::failure::Failure;
use std::io::{self, BufWriter, Write};

/// Writes to standard output and flushes it. A reader that went away is no error.
pub fn write(content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    match content(&mut out).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(Failure::input(format!(
            "standard output could not be written: {e}"
        ))),
        _ => Ok(()),
    }
}
