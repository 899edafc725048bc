//! Input files and standard input, each up to a limit; see [`knee_engine::input`].

use crate::confined;
use crate::failure::Failure;
use knee_engine::input::{self, Unreadable};
use std::fs::File;
use std::io;

/// Largest input file, in bytes.
pub const FILE_MAX: u64 = 256 << 20;

/// A file's bytes; `-` is standard input.
pub fn read(file: &str) -> Result<Vec<u8>, Failure> {
    let bytes = match file {
        "-" => input::read_stream(io::stdin().lock(), FILE_MAX),
        path => permitted(path).and_then(|()| input::read(path, FILE_MAX)),
    };
    bytes.map_err(|unreadable| Failure::argument(file, in_words(unreadable)))
}

/// A file's text; `-` is standard input.
pub fn read_text(file: &str) -> Result<String, Failure> {
    String::from_utf8(read(file)?).map_err(|_| Failure::argument(file, "is not UTF-8 text"))
}

/// The bytes of a file of at most `max` bytes, where standard input cannot be named.
///
/// # Errors
/// One line without the file's name: it cannot be read, is a pipe or a device, or is larger.
pub fn read_file(path: &str, max: u64) -> Result<Vec<u8>, String> {
    permitted(path).and_then(|()| input::read(path, max)).map_err(String::from)
}

/// A regular file to read from, however long.
///
/// # Errors
/// As [`read_file`].
pub fn open(path: &str) -> Result<File, String> {
    permitted(path).and_then(|()| input::open(path)).map_err(String::from)
}

/// Refuses files that whoever limits this process does not let it read.
fn permitted(path: &str) -> Result<(), Unreadable> {
    confined::check_file(path).map_err(Unreadable::Because)
}

/// Why it is not read, and what to do where `-` is standard input.
fn in_words(unreadable: Unreadable) -> String {
    match unreadable {
        Unreadable::Pipe => {
            "is a pipe: expected a regular file; for a pipe give '-' and connect it to standard \
             input"
                .to_owned()
        }
        Unreadable::Because(why) => why,
    }
}
