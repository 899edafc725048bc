//! Files that the user names.

use crate::failure::Failure;
use std::io::{self, Read};

/// A file's bytes; `-` is standard input.
pub fn read(file: &str) -> Result<Vec<u8>, Failure> {
    let bytes = match file {
        "-" => {
            let mut bytes = Vec::new();
            io::stdin().read_to_end(&mut bytes).map(|_| bytes)
        }
        path => std::fs::read(path),
    };
    bytes.map_err(|e| Failure::argument(file, format!("cannot be read: {e}")))
}

/// A file's text; `-` is standard input.
pub fn read_text(file: &str) -> Result<String, Failure> {
    String::from_utf8(read(file)?).map_err(|_| Failure::argument(file, "is not UTF-8 text"))
}
