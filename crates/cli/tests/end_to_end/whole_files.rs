//! Output files: the older one is there until the new one is whole.

use crate::support::{Ended, KneeServer, TempPath, knee, run, signal};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// A folder that is removed after the test.
struct Folder(TempPath);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = TempPath::new(name);
        std::fs::create_dir_all(&path.0).unwrap();
        Folder(path)
    }

    /// The path of a file there.
    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.0.str())
    }

    /// The same with content of before.
    fn older(&self, name: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, "older").unwrap();
        path
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0.0).unwrap();
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0.0);
    }
}

fn text(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

const OPTIONS: [&str; 6] = ["--json", "--html", "--md", "--csv", "--junit", "--hdr"];

#[test]
fn kill_9_during_a_run_leaves_all_older_files() {
    let server = KneeServer::start(&[]);
    let folder = Folder::new("killed");
    let files = OPTIONS.map(|option| folder.older(option.trim_start_matches('-')));
    let url = server.url();
    let mut arguments = vec!["run", &url, "-d", "60s", "-c", "1", "--no-save", "--quiet"];
    for (option, file) in OPTIONS.iter().zip(&files) {
        arguments.extend([*option, file.as_str()]);
    }
    let child = knee(&arguments).spawn().unwrap();
    // The log is written, somewhere in the folder, as the run goes on.
    let is_log = |name: &String| text(&folder.path(name)).starts_with("#[Histogram log");
    for _ in 0..6_000 {
        if folder.names().iter().any(is_log) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(folder.names().iter().any(is_log), "{:?}", folder.names());
    signal(&child, libc::SIGKILL);
    assert_eq!(Ended::of(child).status, None);
    for file in &files {
        assert_eq!(text(file), "older", "{file}");
    }
}

#[test]
fn kill_9_of_a_server_leaves_its_older_files() {
    let folder = Folder::new("killed-server");
    let [log, arrivals, stats] = ["log", "arrivals", "stats"].map(|name| folder.older(name));
    let files = ["--log", &log, "--arrivals", &arrivals, "--json", &stats];
    let server = KneeServer::with(&[&["--listen", "127.0.0.1:0"][..], &files].concat());
    // Killed.
    drop(server);
    for file in [&log, &arrivals, &stats] {
        assert_eq!(text(file), "older", "{file}");
    }
}

#[test]
fn whole_files_replace_older_ones_and_leave_nothing_else() {
    let server = KneeServer::start(&[]);
    let folder = Folder::new("replaced");
    let files = OPTIONS.map(|option| folder.older(option.trim_start_matches('-')));
    let url = server.url();
    let mut arguments = vec!["run", &url, "-n", "20", "--no-save", "--quiet"];
    for (option, file) in OPTIONS.iter().zip(&files) {
        arguments.extend([*option, file.as_str()]);
    }
    let ended = run(&arguments);
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
    for file in &files {
        assert!(!text(file).contains("older"), "{file}");
    }
    assert_eq!(folder.names().len(), OPTIONS.len(), "{:?}", folder.names());
}

/// A shell that makes pipes of both kinds, and waits until their readers have read all.
#[test]
fn pipes_and_devices_are_written_in_place() {
    let server = KneeServer::start(&[]);
    let folder = Folder::new("pipes");
    let script = "mkfifo fifo; cat fifo > csv & \
        \"$0\" run \"$1\" -n 20 --no-save --quiet --csv fifo --html /dev/null \
            --json >(cat > json; echo > read); \
        status=$?; wait; until [ -e read ]; do sleep 0.01; done; \
        [ -p fifo ] && [ -c /dev/null ] && exit $status";
    let mut bash = Command::new("bash");
    bash.args(["-c", script, env!("CARGO_BIN_EXE_knee"), &server.url()]);
    let ended = Ended::from(bash.current_dir(&folder.0.0).output().unwrap());
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
    assert!(text(&folder.path("csv")).lines().count() > 1);
    assert!(text(&folder.path("json")).starts_with('{'));
}

#[test]
fn one_file_for_two_outputs_is_refused_before_the_load() {
    let folder = Folder::new("twice");
    let a = folder.path("a");
    let same = format!("{}/./a", folder.0.str());
    for (other, option) in [("--html", &same), ("--hdr", &a)] {
        let ended = run(&["run", "http://127.0.0.1:9/", "--json", &a, other, option]);
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("name another"), "{ended:?}");
        assert!(!std::path::Path::new(&a).exists());
    }
    let server = KneeServer::start(&[]);
    let nowhere = ["--json", "/dev/null", "--html", "/dev/null", "--no-save"];
    let ended = run(&[&["run", &server.url(), "-n", "20"], &nowhere[..]].concat());
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
}

#[test]
fn output_to_the_standard_output_s_file_is_appended() {
    let server = KneeServer::start(&[]);
    let folder = Folder::new("stdout");
    let out = folder.older("out");
    let file = std::fs::File::options().append(true).open(&out).unwrap();
    let url = server.url();
    let load = ["run", &url, "-n", "20", "--no-save", "--json", "/dev/stdout"];
    let ended = Ended::of(knee(&load).stdout(file).spawn().unwrap());
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
    let text = text(&out);
    assert!(text.starts_with("older") && text.contains("VALID") && text.contains("\"schema\""));
}

/// As a user who may write the file and not its folder.
#[test]
fn folder_without_permission_is_refused_before_the_load() {
    // SAFETY: geteuid has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: only root runs programs as another user");
        return;
    }
    let folder = Folder::new("forbidden");
    let older = folder.older("report.json");
    for (path, why) in [
        (folder.path("new.json"), "cannot be written: Permission denied"),
        (older.clone(), "takes no temporary file: Permission denied"),
    ] {
        std::os::unix::fs::chown(&older, Some(54_321), Some(54_321)).unwrap();
        let load = ["run", "http://127.0.0.1:9/", "--no-save", "--json", &path];
        let ended = Ended::of(knee(&load).uid(54_321).spawn().unwrap());
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        assert!(ended.stderr.contains(why), "{ended:?}");
        assert_eq!((text(&older).as_str(), folder.names().len()), ("older", 1));
    }
}
