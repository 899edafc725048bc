//! Input files that the user names. Only regular files are read, and none beyond a limit. A wrong
//! name costs one line, neither the machine's memory nor an endless wait.

use crate::confine;
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use std::fmt;
use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Largest file with certificates, keys or credentials, in bytes.
pub const SECRETS_MAX: u64 = 16 << 20;

/// Why a file is not read, in a few words that follow its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// A pipe: FIFO, process substitution, or standard input by its path.
    Pipe,
    /// Any other reason.
    Because(String),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::Pipe => f.write_str(
                "is a pipe: expected a regular file; write what comes from the pipe to a file \
                 first",
            ),
            Unreadable::Because(why) => f.write_str(why),
        }
    }
}

impl From<Unreadable> for String {
    fn from(unreadable: Unreadable) -> String {
        unreadable.to_string()
    }
}

/// The bytes of a regular file of at most `max` bytes.
///
/// # Errors
/// The file cannot be read, is not a regular file, or is larger.
pub fn read(path: impl AsRef<Path>, max: u64) -> Result<Vec<u8>, Unreadable> {
    read_whole(open(path)?, max)
}

/// As [`read`], of a file that knee keeps itself: limits of the process are of files that a user
/// names.
///
/// # Errors
/// As [`read`].
pub fn read_kept(path: impl AsRef<Path>, max: u64) -> Result<Vec<u8>, Unreadable> {
    read_whole(open_anywhere(path.as_ref())?, max)
}

fn read_whole(file: File, max: u64) -> Result<Vec<u8>, Unreadable> {
    let facts = file.metadata().map_err(failed)?;
    if facts.is_file() && facts.len() > max {
        return Err(too_large(Some(facts.len()), max));
    }
    read_stream(file, max)
}

/// A regular file to read from, however long.
///
/// # Errors
/// The file cannot be read, is not a regular file, or may not be read by a process with limits.
pub fn open(path: impl AsRef<Path>) -> Result<File, Unreadable> {
    match confine::folder() {
        Some(folder) => open_below(folder, path.as_ref()),
        None => open_anywhere(path.as_ref()),
    }
}

/// Opens a file below a folder by its name there or its whole path. The kernel refuses whatever
/// leads out, also while somebody changes links, and the links in /proc to what is open elsewhere.
fn open_below(folder: &Path, path: &Path) -> Result<File, Unreadable> {
    let outside = || {
        let folder = folder.display();
        Unreadable::Because(format!("may not be read: expected a file below {folder}"))
    };
    let name = path.strip_prefix(folder).unwrap_or(path);
    let directory = File::open(folder).map_err(failed)?;
    let rules = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let found = openat2(&directory, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), rules);
    let found = File::from(found.map_err(|e| {
        match e {
        Errno::XDEV | Errno::LOOP => outside(),
        Errno::NOSYS | Errno::PERM => Unreadable::Because(
            "may not be read: to keep to one folder needs openat2 (Linux 5.6), which this kernel or \
             a sandbox refuses"
                .to_owned(),
        ),
        e => failed(e.into()),
    }
    })?);
    is_readable_kind(found.metadata().map_err(failed)?.file_type())?;
    // The descriptor's link leads to the very file that was looked at.
    File::open(format!("/proc/self/fd/{}", found.as_raw_fd())).map_err(failed)
}

fn open_anywhere(path: &Path) -> Result<File, Unreadable> {
    check_kind(path)?;
    // Another file may have this name by now: the open must neither wait nor take a terminal.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .map_err(failed)?;
    is_readable_kind(file.metadata().map_err(failed)?.file_type())?;
    Ok(file)
}

/// The same as text.
///
/// # Errors
/// As [`read`]; the file is not UTF-8.
pub fn read_text(path: impl AsRef<Path>, max: u64) -> Result<String, Unreadable> {
    let text = String::from_utf8(read(path, max)?);
    text.map_err(|_| Unreadable::Because("is not UTF-8 text".to_owned()))
}

/// All bytes of a stream of at most `max` bytes.
///
/// # Errors
/// The stream cannot be read, or is longer.
pub fn read_stream(stream: impl Read, max: u64) -> Result<Vec<u8>, Unreadable> {
    let mut bytes = Vec::new();
    let count = stream.take(max.saturating_add(1)).read_to_end(&mut bytes);
    if count.map_err(failed)? as u64 > max {
        return Err(too_large(None, max));
    }
    Ok(bytes)
}

/// Refuses pipes, devices and sockets before they are opened, which may wait for another process or
/// start a device.
///
/// # Errors
/// One of these, or nothing of this name.
pub fn check_kind(path: impl AsRef<Path>) -> Result<(), Unreadable> {
    is_readable_kind(fs::metadata(path).map_err(failed)?.file_type())
}

/// A directory passes: reading it says best what it is.
fn is_readable_kind(kind: FileType) -> Result<(), Unreadable> {
    let is = |what: &str| Unreadable::Because(format!("is a {what}: expected a regular file"));
    if kind.is_fifo() {
        return Err(Unreadable::Pipe);
    }
    if kind.is_char_device() || kind.is_block_device() {
        return Err(is("device"));
    }
    if kind.is_socket() {
        return Err(is("socket"));
    }
    Ok(())
}

fn failed(error: io::Error) -> Unreadable {
    Unreadable::Because(format!("cannot be read: {error}"))
}

fn too_large(bytes: Option<u64>, max: u64) -> Unreadable {
    let bytes = bytes.map_or(String::new(), |n| format!("has {n} bytes, which "));
    Unreadable::Because(format!("{bytes}is more than the {} that are read at most", amount(max)))
}

/// `256 MiB`; limits are whole.
fn amount(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 20) {
        format!("{} MiB", bytes >> 20)
    } else {
        format!("{bytes} bytes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch_for_tests::ScratchPath;
    use std::ffi::CString;
    use std::fs::File;

    fn written(name: &str, bytes: &[u8]) -> ScratchPath {
        let file = ScratchPath::new(name);
        fs::write(&file.0, bytes).unwrap();
        file
    }

    fn why(path: impl AsRef<Path>, max: u64) -> String {
        read(path, max).unwrap_err().to_string()
    }

    #[test]
    fn file_at_the_limit_is_read_and_one_beyond_is_not() {
        let file = written("input-limit", b"12345");
        assert_eq!(read(&file.0, 5), Ok(b"12345".to_vec()));
        let expected = "has 5 bytes, which is more than the 4 bytes that are read at most";
        assert_eq!(why(&file.0, 4), expected);
    }

    /// A sparse file needs no room on the disk.
    #[test]
    fn huge_file_is_refused_unread() {
        let file = written("input-huge", b"");
        File::create(&file.0).unwrap().set_len(1 << 40).unwrap();
        let expected = "has 1099511627776 bytes, which is more than the 256 MiB that are read at \
                        most";
        assert_eq!(why(&file.0, 256 << 20), expected);
    }

    #[test]
    fn pipes_devices_and_sockets_are_refused_unopened() {
        let fifo = ScratchPath::new("input-fifo");
        let name = CString::new(fifo.0.to_str().unwrap()).unwrap();
        // SAFETY: the name is a string that ends with 0 and outlives the call.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        assert_eq!(read(&fifo.0, 9), Err(Unreadable::Pipe));
        for device in ["/dev/zero", "/dev/random", "/dev/null"] {
            assert_eq!(why(device, 9), "is a device: expected a regular file");
        }
        let socket = ScratchPath::new("input-socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket.0).unwrap();
        assert_eq!(why(&socket.0, 9), "is a socket: expected a regular file");
    }

    #[test]
    fn only_what_is_below_the_folder_is_opened() {
        let folder = ScratchPath::new("input-below");
        fs::create_dir_all(folder.0.join("in/deep")).unwrap();
        let root = folder.0.canonicalize().unwrap();
        let inside = root.join("in");
        fs::write(inside.join("deep/file"), "inside").unwrap();
        fs::write(root.join("secret"), "outside").unwrap();
        let link = |name: &str, to: &str| {
            std::os::unix::fs::symlink(to, inside.join(name)).unwrap();
        };
        link("good", "deep/file");
        link("up", "..");
        link("bad", "../secret");
        link("absolute", "/etc/hostname");
        link("loop", "loop");
        let secret = File::open(root.join("secret")).unwrap();
        let opened = format!("/proc/{}/fd/{}", std::process::id(), secret.as_raw_fd());
        link("magic", &opened);
        let whole = |name: &str| inside.join(name).display().to_string();
        let read = |name: &str| {
            let mut text = String::new();
            open_below(&inside, Path::new(name))?.read_to_string(&mut text).map_err(failed)?;
            Ok::<_, Unreadable>(text)
        };
        for name in ["deep/file", "good", "deep/../good", "./good", &whole("good")] {
            assert_eq!(read(name).as_deref(), Ok("inside"), "{name}");
        }
        let outside = [
            "../secret",
            "up/secret",
            "bad",
            "absolute",
            "loop",
            "magic",
            "/etc/hostname",
            "/proc/self/environ",
            "../in/good",
            &opened,
            &whole("../secret"),
            &whole("magic"),
        ];
        for name in outside {
            let why = read(name).unwrap_err().to_string();
            assert_eq!(why, format!("may not be read: expected a file below {}", inside.display()));
        }
        for (name, want) in [("none", "No such file"), ("deep", "Is a directory")] {
            let why = read(name).unwrap_err().to_string();
            assert!(why.starts_with(&format!("cannot be read: {want}")), "{name}: {why}");
        }
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn kernel_files_without_a_length_are_read() {
        assert!(read_text("/proc/self/status", 1 << 20).is_ok_and(|text| text.contains("Pid:")));
    }

    #[test]
    fn endless_stream_ends_at_the_limit() {
        let wrong = read_stream(io::repeat(0), 1 << 20).unwrap_err().to_string();
        assert_eq!(wrong, "is more than the 1 MiB that are read at most");
    }

    #[test]
    fn missing_file_and_directory_are_told_apart() {
        for (path, expected) in [("/nonexistent", "No such file"), ("/tmp", "Is a directory")] {
            let wrong = why(path, 9);
            let expected = format!("cannot be read: {expected}");
            assert!(wrong.starts_with(&expected), "{wrong}");
        }
    }
}
