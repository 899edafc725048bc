//! Whether what is written to a connection leaves this host at once.
//!
//! TCP lets about two small segments of a connection wait in the queues of its own host (TCP small
//! queues); what is written beyond that waits in the socket, goes together in one segment when one
//! of them has left, and only then begins to queue. Where the bottleneck is on this host, such a
//! ping takes up to twice what the queue takes. The same holds where the window is full.

use crate::sys::stream::{Held, held};
use std::os::fd::AsFd;

/// Looks at one connection, of which all messages are small.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// What one segment takes in the host's queues, as far as it was seen there.
    segment: u32,
    /// It was empty when the last message was written.
    was_empty: bool,
}

impl Gate {
    /// Whether a message that is written now leaves TCP at once.
    pub(crate) fn is_open(&mut self, stream: &impl AsFd) -> bool {
        self.judge(held(stream))
    }

    /// To be called once it was written.
    pub(crate) fn has_written(&mut self, stream: &impl AsFd) {
        if self.was_empty {
            self.learn(held(stream).queued);
        }
    }

    fn judge(&mut self, held: Held) -> bool {
        self.was_empty = held.queued == 0;
        held.unsent == 0 && held.queued <= self.segment
    }

    fn learn(&mut self, queued: u32) {
        // Of several that were seen the smallest was of one segment.
        if queued > 0 && (self.segment == 0 || queued < self.segment) {
            self.segment = queued;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_segment_may_follow_and_a_third_may_not() {
        let mut gate = Gate::default();
        let now = |unsent, queued| Held { unsent, queued };
        assert!(gate.judge(now(0, 0)));
        gate.learn(1_280);
        assert!(gate.judge(now(0, 1_280)));
        assert!(!gate.judge(now(0, 2_560)), "two wait in the host");
        assert!(!gate.judge(now(60, 0)), "one waits in the socket");
        assert!(gate.judge(now(0, 0)));
    }

    #[test]
    fn a_connection_that_nothing_holds_up_is_open() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut gate = Gate::default();
        assert!(gate.is_open(&client));
        gate.has_written(&client);
    }
}
