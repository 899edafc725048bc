//! Whatever is wrong with the file costs the history, never the run.

use super::Data;
use crate::support::{Ended, KneeServer, STATE};
use std::fs;
use std::process::Command;

/// A run that goes on although it is not kept, and says so in one line; the line.
fn complaint(ended: &Ended) -> String {
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
    assert!(ended.stdout.contains("knee run"), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(ended.stderr.contains("this run is not kept"), "{ended:?}");
    ended.stderr.clone()
}

#[test]
fn what_is_in_the_place_of_the_file_stays_as_it_is() {
    let (server, data) = (KneeServer::start(&[]), Data::new("in-the-way"));
    // The margins are known after this run, so that nothing else is printed.
    data.load(&server, &["--no-save"]);
    let load = |data: &Data| data.load(&server, &[]);
    fs::create_dir_all(data.file()).unwrap();
    complaint(&load(&data));
    assert!(data.refused(&["history"]).contains("history.db"));
    assert_eq!(data.load(&server, &["--quiet"]).stderr, "");
    fs::remove_dir(data.file()).unwrap();

    let garbage = "no database, but notes of a user's\n".repeat(100);
    fs::write(data.file(), &garbage).unwrap();
    assert!(complaint(&load(&data)).contains("is not a history of knee"));
    assert!(data.refused(&["history"]).contains("is not a history of knee"));
    assert!(data.refused(&["history", "show", "1"]).contains("is not a history of knee"));
    assert_eq!(fs::read_to_string(data.file()).unwrap(), garbage);

    fs::remove_dir_all(data.0.join("knee")).unwrap();
    fs::write(data.0.join("knee"), "").unwrap();
    complaint(&load(&data));
    assert_eq!(data.told(&["history"]), "no run is kept yet\n");
}

#[test]
fn a_damaged_file_is_told_and_not_mended() {
    let (server, data) = (KneeServer::start(&[]), Data::new("damaged"));
    data.load(&server, &[]);
    let whole = fs::read(data.file()).unwrap();
    // All but the first page is gone.
    fs::write(data.file(), &whole[..4096]).unwrap();
    complaint(&data.load(&server, &[]));
    data.refused(&["history"]);
    data.refused(&["history", "show", "1"]);
    // Each page but the first is other than it was.
    let mut spoilt = whole.clone();
    spoilt[4096..].iter_mut().for_each(|b| *b = !*b);
    fs::write(data.file(), &spoilt).unwrap();
    complaint(&data.load(&server, &[]));
    data.refused(&["history"]);
}

#[test]
fn a_file_of_a_newer_knee_is_refused() {
    let (server, data) = (KneeServer::start(&[]), Data::new("newer"));
    data.load(&server, &[]);
    // The user version lies at offset 60 of the file (https://www.sqlite.org/fileformat2.html).
    let mut bytes = fs::read(data.file()).unwrap();
    assert_eq!(bytes[60..64], 1u32.to_be_bytes());
    bytes[60..64].copy_from_slice(&2u32.to_be_bytes());
    fs::write(data.file(), &bytes).unwrap();
    assert!(complaint(&data.load(&server, &[])).contains("another version of knee (schema 2"));
    assert!(data.refused(&["history"]).contains("another version of knee (schema 2"));
}

#[test]
fn without_a_home_there_is_no_history() {
    let (server, data) = (KneeServer::start(&[]), Data::new("homeless"));
    data.load(&server, &["--no-save"]);
    let homeless = |arguments: &[&str]| {
        let mut command = data.knee(arguments);
        command.env_remove("HOME").env_remove("XDG_DATA_HOME");
        Ended::of(command.spawn().unwrap())
    };
    let url = server.url();
    let said = complaint(&homeless(&["run", &url, "-n", "5"]));
    assert!(said.contains("HOME"), "{said}");
    assert_eq!(homeless(&["run", &url, "-n", "5", "--no-save"]).stderr, "");
    let listed = homeless(&["history"]);
    assert_eq!(listed.status, Some(2), "{listed:?}");
}

/// `sh -c` with these lines before knee's run; `None` where they cannot be, with 77.
fn run_after(data: &Data, server: &KneeServer, wrap: &[&str], before: &str) -> Option<Ended> {
    let url = server.url();
    let knee = env!("CARGO_BIN_EXE_knee");
    let inside = format!("{before} exec \"{knee}\" run {url} -d 2s --interval 10ms --warmup 0");
    let mut words = wrap.iter().copied().chain(["sh", "-c", &inside]);
    let mut command = Command::new(words.next().unwrap());
    command.args(words).env("LC_ALL", "C.UTF-8");
    command.env("XDG_DATA_HOME", &data.0).env("XDG_STATE_HOME", STATE);
    let output = match command.env_remove("KNEE_HISTORY").output() {
        Ok(output) => output,
        Err(e) => {
            println!("skipped: {e}");
            return None;
        }
    };
    let ended = Ended::from(output);
    let is_refused = ended.status == Some(77) || ended.stderr.starts_with("unshare");
    if is_refused {
        println!("skipped: {}", ended.stderr);
        return None;
    }
    Some(ended)
}

#[test]
fn a_file_that_may_not_grow_costs_the_history_alone() {
    let (server, data) = (KneeServer::start(&[]), Data::new("limited"));
    data.load(&server, &["--no-save"]);
    // From no room at all to room for the tables but not for the run, in blocks of 512 bytes.
    for blocks in [0, 8, 40, 100] {
        let limit = format!("ulimit -f {blocks} || exit 77;");
        let ended = run_after(&data, &server, &[], &limit).expect("a shell with ulimit");
        complaint(&ended);
        fs::remove_dir_all(data.0.join("knee")).unwrap();
    }
}

#[test]
fn a_full_disk_costs_the_history_alone() {
    let (server, data) = (KneeServer::start(&[]), Data::new("full"));
    data.load(&server, &["--no-save"]);
    let here = data.0.to_str().unwrap();
    for size in ["4k", "64k", "128k"] {
        let small = format!("mount -t tmpfs -o size={size} small {here} || exit 77;");
        // A namespace of users and mounts, so that no rights are needed.
        let Some(ended) = run_after(&data, &server, &["unshare", "-rm"], &small) else {
            return;
        };
        let said = complaint(&ended);
        assert!(said.contains("full") || said.contains("space"), "{said}");
    }
}
