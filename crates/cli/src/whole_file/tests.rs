//! Output files in a folder of the test's own.

use super::*;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that is removed after the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("knee-whole-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn with(&self, name: &str, content: &str) -> String {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<_> = entries.map(|e| name(e).into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap()
}

fn write(path: &str, content: &str) -> Result<(), Failure> {
    OutputPlace::open("--json", path)?.write(|out| out.write_all(content.as_bytes()))
}

#[test]
fn older_file_stays_until_the_new_one_is_whole() {
    let folder = Folder::new();
    let path = folder.with("a.json", "older");
    let mut file = OutputPlace::open("--json", &path).unwrap().begin().unwrap();
    file.write_all(b"newer").unwrap();
    file.flush().unwrap();
    assert_eq!(text(&path), "older");
    file.finish().unwrap();
    assert_eq!(text(&path), "newer");
    assert_eq!(folder.names(), ["a.json"]);
}

#[test]
fn unfinished_file_leaves_nothing_behind() {
    let folder = Folder::new();
    let path = folder.with("a.json", "older");
    for path in [&path, &folder.path("new.json")] {
        let place = OutputPlace::open("--json", path).unwrap();
        assert_eq!(folder.names(), ["a.json"], "checked, and nothing changed");
        let failed = place.write(|out| {
            out.write_all(b"half")?;
            Err(io::Error::other("no more"))
        });
        let line = failed.unwrap_err().line;
        assert_eq!(line, format!("--json: '{path}' could not be written: no more"));
        assert_eq!(folder.names(), ["a.json"]);
    }
    assert_eq!(text(&path), "older");
}

#[test]
fn mode_and_owner_of_an_older_file_stay() {
    let folder = Folder::new();
    let path = folder.with("a.json", "older");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    // Only root gives files away.
    let is_given = std::os::unix::fs::chown(&path, Some(12_345), Some(12_346)).is_ok();
    write(&path, "newer").unwrap();
    let found = fs::metadata(&path).unwrap();
    assert_eq!(found.mode() & 0o7777, 0o640);
    assert!(!is_given || (found.uid(), found.gid()) == (12_345, 12_346));
    assert_eq!(text(&path), "newer");
}

#[test]
fn target_of_a_link_is_replaced_and_not_the_link() {
    let folder = Folder::new();
    fs::create_dir(folder.0.join("far")).unwrap();
    let real = folder.with("far/real.json", "older");
    symlink("far/real.json", folder.0.join("near")).unwrap();
    symlink("near", folder.0.join("link")).unwrap();
    symlink("far/none.json", folder.0.join("dangling")).unwrap();
    write(&folder.path("link"), "newer").unwrap();
    write(&folder.path("dangling"), "first").unwrap();
    assert_eq!(text(&real), "newer");
    assert_eq!(text(&folder.path("far/none.json")), "first");
    for link in ["link", "near", "dangling"] {
        assert!(folder.0.join(link).is_symlink(), "{link}");
    }
}

#[test]
fn devices_and_descriptors_are_written_in_place() {
    let folder = Folder::new();
    let path = folder.with("a.txt", "before ");
    let open = OpenOptions::new().append(true).open(&path).unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&open);
    let inode = fs::metadata(&path).unwrap().ino();
    write(&format!("/dev/fd/{number}"), "after").unwrap();
    assert_eq!(text(&path), "before after");
    assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
    write("/dev/null", "away").unwrap();
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn places_that_take_no_file_are_refused_early() {
    let folder = Folder::new();
    symlink("loop", folder.0.join("loop")).unwrap();
    let slash = format!("{}/", folder.path("none"));
    for (path, expected) in [
        ("/nonexistent/a.json", "No such file or directory"),
        (folder.0.to_str().unwrap(), "Is a directory"),
        (&slash, "is a directory"),
        ("", "not found"),
        (&folder.path("loop"), "ymbolic links"),
    ] {
        let line = OutputPlace::open("--html", path).unwrap_err().line;
        let start = format!("--html: '{path}' cannot be written: ");
        assert!(line.starts_with(&start), "{line}");
        assert!(line.contains(expected), "{line}");
    }
}

#[test]
fn longest_names_have_room_for_a_temporary_file() {
    let folder = Folder::new();
    let path = folder.path(&"n".repeat(255));
    write(&path, "long").unwrap();
    assert_eq!(text(&path), "long");
}

#[test]
fn left_over_temporary_file_is_in_nobody_s_way() {
    let folder = Folder::new();
    let path = folder.path("a.json");
    let left_over = temporary_name(Path::new(&path), 0);
    folder.with(left_over.to_str().unwrap(), "half");
    write(&path, "whole").unwrap();
    assert_eq!(text(&path), "whole");
    assert_eq!(folder.names().len(), 2);
}
