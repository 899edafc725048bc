//! A backend that only remembers what it was told.

use crate::reactor::{Backend, Close, ConnectOptions, Payload, Sink};
use crate::sys::socket::{SocketKind, TcpState};
use knee_load::time::Nanos;
use std::io;

/// Remembers; fails to open where told to.
#[derive(Default)]
pub(in crate::pool) struct Remembers {
    pub(in crate::pool) opened: Vec<u32>,
    pub(in crate::pool) kinds: Vec<SocketKind>,
    pub(in crate::pool) sent: Vec<(u32, usize)>,
    pub(in crate::pool) closed: Vec<u32>,
    pub(in crate::pool) how: Vec<Close>,
    pub(in crate::pool) sending: Vec<u32>,
    /// What is sent is not whole with the kernel at once.
    pub(in crate::pool) takes_parts: bool,
    /// What is sent stays with the backend until it reports that, as over io_uring.
    pub(in crate::pool) reports: bool,
    pub(in crate::pool) reporting: Vec<u32>,
    /// What was sent that is no registered request.
    pub(in crate::pool) owned: Vec<Vec<u8>>,
    pub(in crate::pool) open_error: Option<i32>,
    pub(in crate::pool) send_error: Option<i32>,
    pub(in crate::pool) state: Option<TcpState>,
}

impl Backend for Remembers {
    fn name(&self) -> &'static str {
        "none"
    }

    fn open(&mut self, slot: u32, options: ConnectOptions<'_>) -> io::Result<()> {
        if let Some(code) = self.open_error {
            return Err(io::Error::from_raw_os_error(code));
        }
        self.opened.push(slot);
        self.kinds.push(options.kind);
        Ok(())
    }

    fn tcp_state(&self, _: u32) -> Option<TcpState> {
        self.state
    }

    fn local_port(&self, slot: u32) -> Option<u16> {
        Some(40_000 + slot as u16)
    }

    fn send(&mut self, slot: u32, payload: Payload) -> io::Result<()> {
        if let Some(code) = self.send_error {
            return Err(io::Error::from_raw_os_error(code));
        }
        let request = match payload {
            Payload::Registered(request) => request,
            Payload::Owned(bytes) => {
                self.owned.push(bytes);
                usize::MAX
            }
        };
        self.sent.push((slot, request));
        if self.takes_parts {
            self.sending.push(slot);
        }
        if self.reports {
            self.reporting.push(slot);
        }
        Ok(())
    }

    fn is_sending(&self, slot: u32) -> bool {
        self.sending.contains(&slot)
    }

    fn is_busy(&self, slot: u32) -> bool {
        self.is_sending(slot) || self.reporting.contains(&slot)
    }

    fn close(&mut self, slot: u32, how: Close) {
        self.closed.push(slot);
        self.how.push(how);
    }

    fn poll(&mut self, _: Nanos, _: &mut dyn Sink) -> io::Result<usize> {
        Ok(0)
    }
}
