//! Standard output.

use crate::failure::Failure;
use crate::whole_file::settle;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;

/// Writes to standard output and flushes it. A reader that went away is no error.
pub fn write(content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    let written = content(&mut out).and_then(|()| out.flush());
    outcome(written.and_then(|()| end()))
}

/// What became of standard output: a reader or a terminal that went away is no error.
pub fn outcome(written: io::Result<()>) -> Result<(), Failure> {
    let is_gone = |e: &io::Error| {
        e.kind() == io::ErrorKind::BrokenPipe || knee_engine::interrupt::is_hang_up(e)
    };
    match written {
        Err(e) if !is_gone(&e) => {
            Err(Failure::input(format!("standard output could not be written: {e}")))
        }
        _ => Ok(()),
    }
}

/// Makes sure that all of it is where it belongs.
fn end() -> io::Result<()> {
    settle(&File::from(io::stdout().as_fd().try_clone_to_owned()?))
}
