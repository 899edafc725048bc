//! The file of margins, in directories of the tests' own.

use super::*;
use std::ffi::OsString;
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that is gone when the test ends.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Directory {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("knee-{}-margins-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    fn store(&self) -> Store {
        Store { path: Some(self.file()) }
    }

    fn file(&self) -> PathBuf {
        self.0.join("knee/margins.json")
    }

    fn write(&self, text: &str) {
        fs::create_dir_all(self.0.join("knee")).unwrap();
        fs::write(self.file(), text).unwrap();
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn machine(cpus: u32) -> MachineKey {
    MachineKey { kernel: "6.1".to_string(), cpu_model: "Z80".to_string(), cpus }
}

fn margins(us: u64) -> Margins {
    Margins::of(Nanos::from_micros(us))
}

#[test]
fn what_is_kept_is_found_again_for_each_machine() {
    let directory = Directory::new();
    let store = directory.store();
    assert_eq!(store.find(&machine(2)), Ok(None));
    store.keep(machine(2), &margins(70)).unwrap();
    store.keep(machine(1), &margins(20)).unwrap();
    assert_eq!(store.find(&machine(2)), Ok(Some(margins(70))));
    assert_eq!(store.find(&machine(1)), Ok(Some(margins(20))));
    assert_eq!(store.find(&machine(3)), Ok(None));
    store.keep(machine(2), &margins(90)).unwrap();
    assert_eq!(store.find(&machine(2)), Ok(Some(margins(90))));
    assert_eq!(store.find(&machine(1)), Ok(Some(margins(20))));
}

#[test]
fn the_machines_seen_last_are_kept() {
    let directory = Directory::new();
    let store = directory.store();
    for cpus in 1..=40 {
        store.keep(machine(cpus), &margins(u64::from(cpus))).unwrap();
    }
    assert_eq!(store.find(&machine(40)), Ok(Some(margins(40))));
    assert_eq!(store.find(&machine(25)), Ok(Some(margins(25))));
    assert_eq!(store.find(&machine(24)), Ok(None));
}

#[test]
fn a_file_that_cannot_be_used_is_told_of_and_replaced() {
    let directory = Directory::new();
    let store = directory.store();
    store.keep(machine(2), &margins(70)).unwrap();
    let good = fs::read_to_string(directory.file()).unwrap();
    for (text, wrong) in [
        ("", "is broken ("),
        (&good[..good.len() / 2], "is broken ("),
        ("[]", "is broken ("),
        (&good.replace("margins/1", "margins/9"), "has the schema 'knee.margins/9'"),
        (&good.replace("70000", "70000000"), "has margins that nobody measured"),
    ] {
        directory.write(text);
        let line = store.find(&machine(2)).unwrap_err();
        let start = format!("{} {wrong}", directory.file().display());
        assert!(line.starts_with(&start) && !line.contains('\n'), "{line}");
        store.keep(machine(2), &margins(80)).unwrap();
        assert_eq!(store.find(&machine(2)), Ok(Some(margins(80))));
    }
}

#[test]
fn where_nothing_can_be_written_that_is_all() {
    let directory = Directory::new();
    // A file where a directory would have to be: not even root may write there.
    fs::write(directory.0.join("knee"), "").unwrap();
    let store = directory.store();
    let line = store.keep(machine(2), &margins(70)).unwrap_err();
    assert!(line.contains("cannot be kept in ") && !line.contains('\n'), "{line}");
    let line = store.find(&machine(2)).unwrap_err();
    assert!(line.contains("cannot be read"), "{line}");
    let nowhere = Store { path: None };
    assert_eq!(nowhere.find(&machine(2)), Ok(None));
    assert!(nowhere.keep(machine(2), &margins(70)).unwrap_err().contains("HOME"));
}

#[test]
fn a_directory_in_its_place_is_not_read() {
    let directory = Directory::new();
    fs::create_dir_all(directory.file()).unwrap();
    let store = directory.store();
    assert!(store.find(&machine(2)).unwrap_err().contains("Is a directory"));
    store.keep(machine(2), &margins(70)).unwrap_err();
    let left = fs::read_dir(directory.0.join("knee")).unwrap().count();
    assert_eq!(left, 1, "nothing half written is left behind");
}

#[test]
fn two_writers_and_a_reader_never_meet_half_a_file() {
    let directory = Directory::new();
    let store = directory.store();
    store.keep(machine(2), &margins(1)).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for us in 2..200 {
                    store.keep(machine(2), &margins(us)).unwrap();
                }
            });
        }
        for _ in 0..500 {
            assert!(matches!(store.find(&machine(2)), Ok(Some(_))));
        }
    });
}

#[test]
fn the_place_follows_the_xdg_specification() {
    let path = |text: &str| Some(OsString::from(text));
    for (xdg, home, expected) in [
        (path("/state"), path("/home/a"), Some("/state")),
        (path("state"), path("/home/a"), Some("/home/a/.local/state")),
        (path(""), path("/home/a"), Some("/home/a/.local/state")),
        (None, path("/home/a"), Some("/home/a/.local/state")),
        (None, path(""), None),
        (None, None, None),
    ] {
        let found = machine::user_directory(xdg, home, ".local/state");
        assert_eq!(found, expected.map(PathBuf::from));
    }
}
