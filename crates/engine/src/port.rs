//! One port for TCP and UDP, and who may reach it.

use crate::error::RunError;
use std::io;
use std::net::{SocketAddr, TcpListener};

/// Ports tried if any will do: one that is free for TCP may be taken for UDP.
const PORTS_TRIED: u32 = 32;

/// Checks that a service which others can reach has a secret.
///
/// # Errors
/// It has none.
pub fn check_token(listen: SocketAddr, token: &str) -> Result<(), RunError> {
    if token.is_empty() && !listen.ip().to_canonical().is_loopback() {
        return Err(RunError::NotPermitted(format!(
            "{listen} can be reached by others: give a secret with --token, and the same to the \
             client, or listen at 127.0.0.1"
        )));
    }
    Ok(())
}

/// Binds TCP and UDP to one port. `datagrams` binds UDP.
///
/// # Errors
/// In use, not permitted, or not an address of this machine.
pub fn bind<S>(
    listen: SocketAddr,
    datagrams: impl Fn(SocketAddr) -> io::Result<S>,
) -> Result<(TcpListener, S), RunError> {
    let cannot = |what: &str, e: &io::Error| {
        RunError::NotPermitted(format!("cannot listen at {listen} ({what}): {e}"))
    };
    let mut last = None;
    for _ in 0..if listen.port() == 0 { PORTS_TRIED } else { 1 } {
        let listener = TcpListener::bind(listen).map_err(|e| cannot("TCP", &e))?;
        let address = listener.local_addr().map_err(|e| cannot("TCP", &e))?;
        match datagrams(address) {
            Ok(socket) => return Ok((listener, socket)),
            Err(error) => last = Some(cannot("UDP", &error)),
        }
    }
    Err(last.unwrap_or_else(|| RunError::NotPermitted(format!("no port is free at {listen}"))))
}
