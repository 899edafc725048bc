//! A machine that permits little: few threads, little memory, few open files. Each gets one line
//! and an exit code, and never a panic or a wait without end.

use crate::support::{Ended, KneeServer, knee, run};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// A user without any process, so that a limit of threads is known exactly.
const NOBODY_S: u32 = 54_321;

/// Ended as documented; what was not measured says why in one line.
#[track_caller]
fn ends_in_order(what: &str, ended: &Ended) {
    assert!(!ended.stderr.contains("panicked"), "{what}: {ended:?}");
    match ended.status {
        Some(0 | 1 | 3) => {}
        Some(2 | 4) => assert_eq!(ended.stderr.lines().count(), 1, "{what}: {ended:?}"),
        _ => panic!("{what}: {ended:?}"),
    }
}

#[test]
fn threads_that_cannot_be_had_are_one_line() {
    // SAFETY: geteuid has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: only root runs programs as another user");
        return;
    }
    let server = KneeServer::start(&[]);
    let url = server.url();
    let short = ["-d", "100ms", "--no-save", "--quiet"];
    let closed = ["run", &url, "-c", "3", "-t", "3", "--warmup", "0"];
    let udp = ["udp", "--clients", "3", "--clients-as", "threads"];
    let latency = ["latency", "--scenarios", "2/2", "--idle", "0"];
    let throttle = ["throttle", "--methods", "sleep", "--delays", "1ms"];
    for command in [&closed[..], &udp, &latency, &throttle] {
        let mut refused = 0;
        for threads in 1..=8 {
            let mut knee = knee(&[command, &short].concat());
            knee.uid(NOBODY_S).env_remove("HOME");
            // SAFETY: setrlimit is async-signal-safe, and the limit is the closure's.
            unsafe {
                knee.pre_exec(move || {
                    let limit = libc::rlimit { rlim_cur: threads, rlim_max: threads };
                    if libc::setrlimit(libc::RLIMIT_NPROC, &raw const limit) != 0 {
                        return Err(io::Error::last_os_error());
                    }
                    Ok(())
                });
            }
            let ended = Ended::of(knee.spawn().unwrap());
            ends_in_order(&format!("{command:?} with {threads} threads"), &ended);
            let is_refused = ended.stderr.contains("cannot start a thread");
            refused += u32::from(is_refused);
        }
        assert!(refused > 0, "{command:?}");
    }
}

/// `knee` with these arguments after the shell's `limit`.
fn limited(limit: &str, arguments: &[&str]) -> Ended {
    let mut shell = Command::new("sh");
    let line = format!("{limit}; exec \"$0\" \"$@\"");
    shell.args(["-c", &line, env!("CARGO_BIN_EXE_knee")]);
    shell.args(arguments).stdin(Stdio::null());
    Ended::of(shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

#[test]
fn memory_that_cannot_be_had_is_one_line() {
    let server = KneeServer::start(&[]);
    let url = server.url();
    let load = ["run", &url, "-c", "2", "-d", "100ms", "--warmup", "0", "--no-save", "--quiet"];
    let mut lines = 0;
    for kilobytes in (32_000..=96_000).step_by(4_000) {
        let ended = limited(&format!("ulimit -v {kilobytes}"), &load);
        // The program itself does not fit: what the system says of it is not knee's.
        if ended.stderr.contains("shared librar") || matches!(ended.status, None | Some(126 | 127))
        {
            assert!(!ended.stderr.contains("memory allocation of"), "{ended:?}");
            continue;
        }
        ends_in_order(&format!("{kilobytes} KB"), &ended);
        lines += u32::from(ended.stderr.contains("error: out of memory: "));
    }
    assert!(lines > 0);
}

#[test]
fn limit_of_open_files_is_explained_with_its_reserve() {
    let server = KneeServer::start(&[]);
    let url = server.url();
    let ended = limited("ulimit -n 64", &["run", &url, "-c", "200", "--no-save"]);
    let expected = "error: --connections: 200 connections need 264 open files (64 are for \
                    knee itself), and the limit is 64: raise the limit (ulimit -n 264)\n";
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(2), expected));
    let load = ["run", &url, "-c", "200", "-n", "200", "--no-save", "--quiet"];
    let ended = limited("ulimit -n 264", &load);
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
    // Down to where the system starts no program.
    for files in 5..=20 {
        let ended = limited(&format!("ulimit -n {files}"), &["run", &url, "--no-save"]);
        ends_in_order(&format!("{files} files"), &ended);
        assert_eq!(ended.status, Some(2), "{ended:?}");
    }
    assert!(matches!(run(&load).status, Some(0 | 3)));
}
