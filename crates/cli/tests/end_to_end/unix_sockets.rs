//! `knee serve http --listen unix:PATH`: what becomes of a file that has the name already.

use crate::support::{KneeServer, TempPath, run};

/// Refused in one line that says why.
#[track_caller]
fn refused(path: &TempPath, why: &str) {
    let listen = format!("unix:{}", path.str());
    let ended = run(&["serve", "http", "--listen", &listen]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(ended.stderr.contains(why), "{ended:?}");
}

fn listening_at(path: &TempPath) -> KneeServer {
    KneeServer::with(&["--listen", &format!("unix:{}", path.str())])
}

#[test]
fn file_and_link_of_the_socket_s_name_survive() {
    let file = TempPath::with("socket-file", "precious");
    refused(&file, "a file that is no socket has this name");
    let link = TempPath::new("socket-link");
    std::os::unix::fs::symlink(&file.0, &link.0).unwrap();
    refused(&link, "a symbolic link has this name");
    assert!(link.0.is_symlink());
    assert_eq!(std::fs::read_to_string(&file.0).unwrap(), "precious");
}

#[test]
fn live_socket_is_refused_and_a_dead_one_is_replaced() {
    let path = TempPath::new("socket-live");
    let first = listening_at(&path);
    refused(&path, "another process listens there");
    let to = ["--unix-socket", path.str(), "-n", "5", "--no-save", "--quiet"];
    let load = [&["run", "http://localhost/"][..], &to].concat();
    assert!(matches!(run(&load).status, Some(0 | 3)));
    // Killed, it leaves its socket behind.
    drop(first);
    assert!(path.0.exists());
    let second = listening_at(&path);
    assert!(matches!(run(&load).status, Some(0 | 3)));
    let (_, status) = second.terminate();
    assert_eq!(status, Some(0));
    assert!(!path.0.exists());
}

#[test]
fn at_its_end_a_server_removes_no_socket_but_its_own() {
    let path = TempPath::new("socket-own");
    let server = listening_at(&path);
    std::fs::remove_file(&path.0).unwrap();
    let _other = std::os::unix::net::UnixListener::bind(&path.0).unwrap();
    assert_eq!(server.terminate().1, Some(0));
    assert!(path.0.exists());
}
