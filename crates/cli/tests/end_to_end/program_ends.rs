//! What becomes of the programs of a scenario, and of all that they started, however knee ends.

use crate::support::{Ended, KneeServer, knee, signal};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Starts three processes: one in its group, one in a session of its own and one whose parent has
/// ended. Keeps their numbers in a file, and answers.
const PROGRAM: &str = "#!/bin/sh
trap '' TERM HUP INT
sleep 1000 & echo $! > pids.new
setsid sleep 1000 & echo $! >> pids.new
setsid sh -c 'setsid sleep 1000 & echo $! >> pids.new'
echo $$ >> pids.new
mv pids.new pids
while read -r line; do echo '{\"set\": {\"x\": \"1\"}}'; done
exec sleep 1000
";

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, url: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("knee-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let program = path.join("program.sh");
        fs::write(&program, PROGRAM).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let text = format!(
            "target: {url}\nsessions: {{s: {{steps: [{{think: 1ms}}, {{get: /, exec: ./program.sh, \
             gives: x, headers: {{X: '${{x}}'}}}}]}}}}\n"
        );
        fs::write(path.join("scenario.yaml"), text).unwrap();
        Folder(path)
    }

    fn scenario(&self) -> String {
        self.0.join("scenario.yaml").to_str().unwrap().to_owned()
    }

    /// The processes that the program started, and itself, once all have been.
    fn pids(&self) -> Vec<String> {
        let file = self.0.join("pids");
        wait_until("the program starts", || file.exists());
        let pids = fs::read_to_string(&file).unwrap();
        let pids = pids.lines().map(str::to_owned).collect();
        fs::remove_file(file).unwrap();
        pids
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process runs: one that has ended may wait for whoever inherited it.
fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    let stat = stat.unwrap_or_default();
    let state = stat.rsplit(") ").next().unwrap_or_default();
    !(state.is_empty() || state.starts_with(['Z', 'X']))
}

#[test]
fn a_program_ends_with_all_its_children_however_knee_ends() {
    let server = KneeServer::start(&[]);
    let folder = Folder::new("ends", &server.url());
    for signals in [
        &[][..],
        &[libc::SIGINT],
        &[libc::SIGTERM],
        &[libc::SIGINT, libc::SIGINT],
        &[libc::SIGHUP],
        &[libc::SIGKILL],
    ] {
        let length = if signals.is_empty() { "300ms" } else { "60s" };
        let file = folder.scenario();
        let load = ["--threads", "1", "--vusers", "2", "-d", length];
        let mut command = knee(&[&["run", &file, "--allow-exec"], &load[..]].concat());
        let child = command.spawn().unwrap();
        let pids = folder.pids();
        assert_eq!(pids.len(), 4);
        for number in signals {
            signal(&child, *number);
            // Two at once would be one wish.
            thread::sleep(Duration::from_millis(150));
        }
        Ended::of(child);
        let gone = format!("{signals:?} leaves none of {pids:?}");
        wait_until(&gone, || !pids.iter().any(|pid| runs(pid)));
    }
}
