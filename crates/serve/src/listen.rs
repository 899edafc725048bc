//! Listening sockets. A Unix socket is a file: one of another program is never removed, unless it
//! is a socket without a listener.

use knee_engine::sys::socket::{Address, Listener, RawAddress, Socket};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Binds, and takes over a Unix socket without a listener.
///
/// # Errors
/// The address is in use, not permitted, or not this machine's; another file has the name.
pub(super) fn bind(listen: &Address, backlog: u32) -> io::Result<(Listener, Option<SocketFile>)> {
    let address = RawAddress::new(listen)?;
    let bound = Listener::bind(&address, backlog);
    let Address::Unix(path) = listen else {
        return Ok((bound?, None));
    };
    let listener = match bound {
        Err(e) if e.kind() == io::ErrorKind::AddrInUse => {
            remove_dead(path, &address)?;
            Listener::bind(&address, backlog)?
        }
        bound => bound?,
    };
    let file = SocketFile { path: path.clone(), id: id(&fs::symlink_metadata(path)?) };
    Ok((listener, Some(file)))
}

/// Removes a socket without a listener.
///
/// # Errors
/// Somebody listens, or may; the file is no socket.
fn remove_dead(path: &Path, address: &RawAddress) -> io::Result<()> {
    let file = fs::symlink_metadata(path)?;
    let refused = |why: &str| Err(io::Error::new(io::ErrorKind::AddrInUse, why.to_owned()));
    if file.is_symlink() {
        return refused("a symbolic link has this name: remove it, or give another path");
    }
    if !file.file_type().is_socket() {
        return refused("a file that is no socket has this name: remove it, or give another path");
    }
    match Socket::new(address)?.connect(address) {
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {}
        // Also where it cannot be known, as the socket is another user's or of another kind.
        _ => return refused("another process listens there: give another path, or end it"),
    }
    // Another server may have replaced it meanwhile.
    if id(&fs::symlink_metadata(path)?) != id(&file) {
        return refused("another process has just begun to listen there");
    }
    fs::remove_file(path)
}

/// The file of a socket that this server made; removed when dropped, unless another has its name
/// by then.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    id: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|file| id(&file) == self.id) {
            // The next server takes over one that stays.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Identity of a file: its device and inode.
fn id(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch_for_tests::ScratchPath;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::{UnixDatagram, UnixListener};

    impl ScratchPath {
        fn bind(&self) -> io::Result<(Listener, Option<SocketFile>)> {
            bind(&Address::Unix(self.0.clone()), 8)
        }

        fn refused(&self, why: &str) {
            let wrong = self.bind().unwrap_err();
            assert!(wrong.to_string().starts_with(why), "{wrong}");
        }
    }

    #[test]
    fn regular_file_and_link_are_neither_removed_nor_followed() {
        let file = ScratchPath::new("listen-file");
        fs::write(&file.0, "precious").unwrap();
        file.refused("a file that is no socket");
        let link = ScratchPath::new("listen-link");
        symlink(&file.0, &link.0).unwrap();
        link.refused("a symbolic link");
        let dangling = ScratchPath::new("listen-dangling");
        symlink("/nonexistent/socket", &dangling.0).unwrap();
        dangling.refused("a symbolic link");
        assert_eq!(fs::read_to_string(&file.0).unwrap(), "precious");
        assert!(link.0.is_symlink() && dangling.0.is_symlink());
    }

    #[test]
    fn socket_that_somebody_uses_is_left_alone() {
        let stream = ScratchPath::new("listen-stream");
        let _listener = UnixListener::bind(&stream.0).unwrap();
        stream.refused("another process listens there");
        let datagrams = ScratchPath::new("listen-datagrams");
        let _socket = UnixDatagram::bind(&datagrams.0).unwrap();
        datagrams.refused("another process listens there");
        assert!(stream.0.exists() && datagrams.0.exists());
    }

    #[test]
    fn dead_socket_is_taken_over_and_removed_at_the_end() {
        let path = ScratchPath::new("listen-dead");
        drop(UnixListener::bind(&path.0).unwrap());
        assert!(path.0.exists());
        let bound = path.bind().unwrap();
        drop(bound);
        assert!(!path.0.exists());
    }

    #[test]
    fn another_file_of_the_name_survives_the_end() {
        let path = ScratchPath::new("listen-replaced");
        let bound = path.bind().unwrap();
        fs::remove_file(&path.0).unwrap();
        let _other = UnixListener::bind(&path.0).unwrap();
        drop(bound);
        assert!(path.0.exists());
    }
}
