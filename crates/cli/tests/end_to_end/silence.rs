//! Servers that cannot be reached, refuse, or never answer: all is counted, and nothing hangs.

use crate::support::{Ended, KneeServer, backends, knee, run, run_impatiently, run_load};
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Takes connections in the kernel, and never reads from one.
fn never_answers() -> (TcpListener, String) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    (listener, url)
}

fn both_backends() -> Vec<&'static str> {
    backends(&KneeServer::start(&[]).url())
}

/// Every operation must end as `outcome`, which is no response, and the text must say so too.
fn all_end_as(outcome: &str, ended: &Ended, attempted: u64) {
    assert!(matches!(ended.status, Some(1 | 3)), "{ended:?}");
    let none = format!("none of {attempted} operations succeeded");
    assert!(ended.stderr.contains(&none), "{ended:?}");
    let report = ended.json();
    assert_eq!(report["result"], "failed", "{ended:?}");
    let trial = &report["trials"][0];
    assert_eq!(trial["attempted"], attempted, "{trial:#}");
    assert_eq!(trial["outcomes"][outcome], attempted, "{:#}", trial["outcomes"]);
    assert_eq!(trial["completed"], 0);
}

/// No TCP leads to the broadcast address: the kernel says so and sends nothing.
#[test]
fn an_unreachable_target_is_exit_4_in_one_line() {
    for command in ["run", "sweep"] {
        let ended = run(&[command, "http://255.255.255.255:9/", "--json", "-"]);
        assert_eq!(ended.status, Some(4), "{ended:?}");
        assert_eq!(ended.json()["result"], "failed");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        assert!(ended.stderr.contains("255.255.255.255:9"), "{ended:?}");
    }
}

#[test]
fn a_closed_loop_on_a_silent_server_is_all_timeouts() {
    for backend in both_backends() {
        let (_listener, url) = never_answers();
        let ended = run_impatiently(&url, backend);
        all_end_as("timeout", &ended, 8);
    }
}

/// Those that only waited for one of the two connections have timed out all the same.
#[test]
fn an_open_loop_on_a_silent_server_is_all_timeouts() {
    for backend in both_backends() {
        let (_listener, url) = never_answers();
        let load = ["--rate", "50", "-c", "2", "-d", "1s", "--warmup", "0", "--timeout", "200ms"];
        let options = ["--backend", backend, "--json", "-"];
        let ended = run(&[&["run", &url][..], &load, &options].concat());
        all_end_as("timeout", &ended, 50);
    }
}

#[test]
fn a_sweep_of_a_silent_server_ends() {
    let (_listener, url) = never_answers();
    let time = ["-d", "300ms", "--warmup", "0", "--timeout", "200ms"];
    let ended = run(&[&["sweep", &url][..], &time].concat());
    assert!(matches!(ended.status, Some(1 | 3)), "{ended:?}");
    assert!(ended.stderr.contains("operations succeeded"), "{ended:?}");
}

/// Its accept queue holds two connections, those that looked whether anyone is there; the kernel
/// leaves all others without an answer.
#[test]
fn a_server_that_takes_no_connections_is_all_connect_timeouts() {
    for backend in both_backends() {
        let (listener, url) = never_answers();
        // SAFETY: the descriptor is open; a second listen(2) only changes the backlog, which one
        // connection more than it says fits into.
        assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 1) }, 0);
        let load = ["-n", "4", "-c", "2", "--connect-timeout", "300ms", "--backend", backend];
        let ended = run_load(&url, &load);
        all_end_as("connect_timeout", &ended, 4);
    }
}

/// It goes away with the first request: what it had taken is reset or closed, the rest refused.
#[test]
fn a_server_that_goes_away_refuses_the_rest() {
    for backend in both_backends() {
        let (listener, url) = never_answers();
        let load = ["--rate", "50", "-d", "1s", "--warmup", "0", "--backend", backend];
        let arguments = [&["run", &url, "--json", "-"][..], &load].concat();
        let child = knee(&arguments).spawn().unwrap();
        until_a_request(&listener);
        drop(listener);
        let ended = Ended::of(child);
        assert!(matches!(ended.status, Some(1 | 3)), "{ended:?}");
        let trial = &ended.json()["trials"][0];
        assert_eq!(trial["attempted"], 50);
        let outcome = |name: &str| trial["outcomes"][name].as_u64().unwrap_or(0);
        let (refused, cut) = (outcome("refused"), outcome("reset") + outcome("closed"));
        assert!(refused > 0 && cut > 0, "{backend}: {:#}", trial["outcomes"]);
        assert_eq!(refused + cut, 50, "{backend}: {:#}", trial["outcomes"]);
    }
}

/// Waits for a connection on which something is asked; those before it are closed unasked.
fn until_a_request(listener: &TcpListener) {
    for _ in 0..10 {
        let (mut connection, _) = listener.accept().unwrap();
        connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        if connection.read(&mut [0]).unwrap() > 0 {
            return;
        }
    }
    panic!("ten connections and no request");
}
