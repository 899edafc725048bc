//! What never answers, and a disk that is full: each ends within its limit, and says which it was.

use crate::support::{Ended, KneeServer, TempPath, run};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::{Duration, Instant};

/// No limit here is longer than 5 s; a connect that nothing limits takes two minutes.
const AT_MOST: Duration = Duration::from_secs(60);

/// A listener whose accept queue is full, so that no connect to it is answered.
fn black_hole() -> (TcpListener, SocketAddr, Vec<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // SAFETY: listen(2) is a system call without pointers, on a socket that is open.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
    let address = listener.local_addr().unwrap();
    let short = Duration::from_millis(200);
    let connect = |_| TcpStream::connect_timeout(&address, short).ok();
    let queued = (0..16).map_while(connect).collect();
    (listener, address, queued)
}

#[test]
fn the_connect_timeout_holds_for_the_first_connect() {
    let (_listener, address, _queued) = black_hole();
    let url = format!("http://{address}/");
    for command in ["run", "sweep"] {
        let begun = Instant::now();
        let ended = run(&[command, &url, "--connect-timeout", "300ms", "--no-save"]);
        assert_eq!(ended.status, Some(4), "{ended:?}");
        assert!(begun.elapsed() < AT_MOST, "{command}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        let named = format!("cannot connect to {address}: connection timed out");
        assert!(ended.stderr.contains(&named), "{ended:?}");
    }
    // The same limit where somebody answers.
    let server = KneeServer::start(&[]);
    let ended = run(&["run", &server.url(), "--connect-timeout", "300ms", "-n", "5", "--no-save"]);
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
}

/// Runs knee where all names are asked of `server`; `None` where that is not permitted.
fn with_name_server(server: &str, arguments: &str) -> Option<Ended> {
    let settings = TempPath::with("resolv.conf", &format!("nameserver {server}\n"));
    let order = TempPath::with("nsswitch.conf", "hosts: dns\n");
    let (settings, order) = (settings.str(), order.str());
    let inside = format!(
        "mount --bind {settings} /etc/resolv.conf && mount --bind {order} /etc/nsswitch.conf \
         || exit 77; exec \"{}\" {arguments}",
        env!("CARGO_BIN_EXE_knee")
    );
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", &inside]);
    let ended = Ended::from(command.output().ok()?);
    let is_refused = ended.status == Some(77) || ended.stderr.starts_with("unshare");
    (!is_refused).then_some(ended)
}

#[test]
fn a_name_that_nobody_resolves_is_given_up() {
    // It gets what it is asked, and answers none of it.
    let Ok(_silent) = UdpSocket::bind("127.53.53.53:53") else {
        println!("skipped: port 53 is not permitted here");
        return;
    };
    for (arguments, limit) in [
        ("run http://knee.test/ --connect-timeout 300ms --no-save", "300ms"),
        ("latency knee.test:7008 --no-save", "5s"),
        ("udp knee.test:7007 --no-save", "5s"),
    ] {
        let begun = Instant::now();
        let Some(ended) = with_name_server("127.53.53.53", arguments) else {
            println!("skipped: namespaces of mounts are not permitted here");
            return;
        };
        assert!(begun.elapsed() < AT_MOST, "{arguments}");
        assert_eq!(ended.status, Some(4), "{arguments}: {ended:?}");
        assert!(ended.stderr.contains("knee.test"), "{ended:?}");
        let limit = format!("no answer within {limit}");
        assert!(ended.stderr.contains(&limit), "{arguments}: {ended:?}");
    }
    // An address is no name.
    let server = KneeServer::start(&[]);
    let arguments = format!("run {} -n 5 --no-save", server.url());
    let ended = with_name_server("127.53.53.53", &arguments).unwrap();
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
}

/// Runs a load whose `option` goes to a disk of this size, in a namespace of mounts.
fn onto_a_disk_of(size: &str, option: &str, url: &str) -> Option<Ended> {
    let place = TempPath::new("small-disk");
    std::fs::create_dir_all(&place.0).unwrap();
    let here = place.str();
    let inside = format!(
        "mount -t tmpfs -o size={size} small {here} || exit 77; head -c 1M /dev/zero > \
         {here}/rest 2>/dev/null; exec \"{}\" run {url} -d 300ms --warmup 0 -c 1 --no-save \
         --quiet {option} {here}/out",
        env!("CARGO_BIN_EXE_knee")
    );
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", &inside]);
    let output = command.output();
    let _ = std::fs::remove_dir(&place.0);
    let ended = Ended::from(output.ok()?);
    let is_refused = ended.status == Some(77) || ended.stderr.starts_with("unshare");
    (!is_refused).then_some(ended)
}

#[test]
fn an_output_on_a_full_disk_is_exit_2_and_named() {
    let server = KneeServer::start(&[]);
    for option in ["--json", "--html", "--md", "--csv", "--junit", "--hdr"] {
        let Some(ended) = onto_a_disk_of("64k", option, &server.url()) else {
            println!("skipped: namespaces of mounts are not permitted here");
            return;
        };
        assert_eq!(ended.status, Some(2), "{option}: {ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{option}: {ended:?}");
        let named = format!("error: {option}: '");
        assert!(ended.stderr.starts_with(&named), "{ended:?}");
        assert!(ended.stderr.contains("No space left"), "{ended:?}");
        // With room for it nothing is wrong: the rest of the disk is 3 MiB.
        let ended = onto_a_disk_of("4m", option, &server.url()).unwrap();
        assert!(matches!(ended.status, Some(0 | 3)), "{option}: {ended:?}");
    }
}
