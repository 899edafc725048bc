//! Files that the user names. None is read beyond a limit, so that a wrong name costs one line and
//! not the machine's memory.

use crate::failure::Failure;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;

/// No file that is read may be larger.
pub const FILE_MAX: u64 = 256 << 20;

/// A file's bytes; `-` is standard input.
pub fn read(file: &str) -> Result<Vec<u8>, Failure> {
    let bytes = match file {
        "-" => drained(io::stdin().lock(), FILE_MAX),
        path => read_file(path, FILE_MAX),
    };
    bytes.map_err(|wrong| Failure::argument(file, wrong))
}

/// A file's text; `-` is standard input.
pub fn read_text(file: &str) -> Result<String, Failure> {
    String::from_utf8(read(file)?).map_err(|_| Failure::argument(file, "is not UTF-8 text"))
}

/// The bytes of a file or a pipe of at most `max` bytes.
///
/// # Errors
/// One line without the file's name: it cannot be read, is a device, or is larger.
pub fn read_file(path: &str, max: u64) -> Result<Vec<u8>, String> {
    let unreadable = |e: io::Error| format!("cannot be read: {e}");
    // Before it is opened, as that may wait for a device or set it going.
    let facts = fs::metadata(path).map_err(unreadable)?;
    let kind = facts.file_type();
    if kind.is_char_device() || kind.is_block_device() {
        return Err("is a device: give a file".to_owned());
    }
    if facts.is_file() && facts.len() > max {
        return Err(too_large(Some(facts.len()), max));
    }
    drained(File::open(path).map_err(unreadable)?, max)
}

/// All that comes from a stream, which may have no end.
fn drained(from: impl Read, max: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let count = from.take(max + 1).read_to_end(&mut bytes);
    match count.map_err(|e| format!("cannot be read: {e}"))? as u64 > max {
        true => Err(too_large(None, max)),
        false => Ok(bytes),
    }
}

fn too_large(bytes: Option<u64>, max: u64) -> String {
    let bytes = bytes.map_or(String::new(), |n| format!("has {n} bytes, which "));
    format!(
        "{bytes}is more than the {} that are read at most",
        amount(max)
    )
}

/// `256 MiB`; limits are whole.
fn amount(bytes: u64) -> String {
    match bytes {
        n if n % (1 << 20) == 0 => format!("{} MiB", n >> 20),
        n => format!("{n} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A file that goes with the test.
    struct Scratch(std::path::PathBuf);

    impl Scratch {
        fn new(name: &str, bytes: &[u8]) -> Scratch {
            let name = format!("knee-input-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            File::create(&path).unwrap().write_all(bytes).unwrap();
            Scratch(path)
        }

        fn path(&self) -> &str {
            self.0.to_str().unwrap()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_file_at_the_limit_is_read_and_one_beyond_is_not() {
        let file = Scratch::new("limit", b"12345");
        assert_eq!(read_file(file.path(), 5), Ok(b"12345".to_vec()));
        assert_eq!(
            read_file(file.path(), 4).unwrap_err(),
            "has 5 bytes, which is more than the 4 bytes that are read at most"
        );
    }

    /// It takes no room on the disk, and is refused for what it says it has.
    #[test]
    fn a_huge_file_is_refused_unread() {
        let file = Scratch::new("huge", b"");
        File::create(&file.0).unwrap().set_len(1 << 40).unwrap();
        let wrong = read(file.path()).unwrap_err().line;
        let expected = "has 1099511627776 bytes, which is more than the 256 MiB that are read at \
                        most";
        assert_eq!(wrong, format!("{}: {expected}", file.path()));
    }

    #[test]
    fn what_has_no_end_is_given_up_at_the_limit() {
        let wrong = drained(io::repeat(0), 1 << 20).unwrap_err();
        assert_eq!(wrong, "is more than the 1 MiB that are read at most");
        for device in ["/dev/zero", "/dev/random", "/dev/null"] {
            let wrong = read_file(device, FILE_MAX).unwrap_err();
            assert_eq!(wrong, "is a device: give a file");
        }
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        for (path, why) in [("/nonexistent", "No such file"), ("/tmp", "Is a directory")] {
            let wrong = read_file(path, FILE_MAX).unwrap_err();
            assert!(
                wrong.starts_with(&format!("cannot be read: {why}")),
                "{wrong}"
            );
        }
    }
}
