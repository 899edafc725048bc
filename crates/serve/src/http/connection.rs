//! One connection, whichever version of HTTP it turns out to speak.

use super::context::Context;
use super::drive::{Fate, Tools};
use super::http1::Http1ServerConnection;
use super::http2::Http2ServerConnection;
use super::queue::QueueOutcome;
use super::request::RequestReader;
use super::wire::Wire;
use knee_load::time::Nanos;

/// One accepted connection.
#[derive(Debug)]
pub(super) enum ServerConnection {
    /// HTTP/1.1, or nothing yet.
    Http1(Box<Http1ServerConnection>),
    /// HTTP/2.
    Http2(Box<Http2ServerConnection>),
}

impl ServerConnection {
    /// A connection just accepted. `ready_since`: ideal time since which a worker was ready for it,
    /// if it had to wait for one.
    pub(super) fn new(
        wire: Wire,
        ready_since: Option<Nanos>,
        reader: RequestReader,
    ) -> ServerConnection {
        ServerConnection::Http1(Box::new(Http1ServerConnection::new(wire, ready_since, reader)))
    }

    /// Goes on with HTTP/2.
    pub(super) fn into_http2(self, context: &mut Context) -> ServerConnection {
        match self {
            ServerConnection::Http1(before) => {
                let (wire, unread, ready_since) = before.into_parts();
                ServerConnection::Http2(Box::new(Http2ServerConnection::new(
                    wire,
                    unread,
                    ready_since,
                    context,
                )))
            }
            ServerConnection::Http2(_) => self,
        }
    }

    /// Whether it occupies a worker. A connection without any byte of a request does not: the
    /// request may never come. Where the accept queue was full when its handshake ended the kernel
    /// has dropped the request. The client sends it again seconds later, if it still exists.
    pub(super) fn occupies_worker(&self) -> bool {
        match self {
            ServerConnection::Http1(http1) => http1.has_request_bytes(),
            ServerConnection::Http2(_) => true,
        }
    }

    /// Handles an event of the socket.
    pub(super) fn on_event(&mut self, event_flags: u32, tools: &mut Tools<'_>) -> Fate {
        match self {
            ServerConnection::Http1(http1) => http1.on_event(event_flags, tools),
            ServerConnection::Http2(http2) => http2.on_event(event_flags, tools),
        }
    }

    /// Handles a timer that it had set.
    pub(super) fn on_timer(&mut self, tools: &mut Tools<'_>) -> Fate {
        match self {
            ServerConnection::Http1(http1) => http1.on_timer(tools),
            ServerConnection::Http2(http2) => http2.on_timer(tools),
        }
    }

    /// Handles a stream of messages that got a slot; its first message is due at `at`.
    pub(super) fn on_admitted(&mut self, id: u32, at: Nanos, tools: &mut Tools<'_>) -> Fate {
        match self {
            ServerConnection::Http1(http1) => tools.context.set_timer(at, http1.token()),
            ServerConnection::Http2(http2) => http2.schedule_messages(at, id, tools.context),
        }
        Fate::Open
    }

    /// Handles the outcome of a request that was queued.
    pub(super) fn on_queue_outcome(
        &mut self,
        id: u32,
        outcome: QueueOutcome,
        tools: &mut Tools<'_>,
    ) -> Fate {
        match self {
            ServerConnection::Http1(http1) => http1.on_queue_outcome(outcome, tools),
            ServerConnection::Http2(http2) => http2.on_queue_outcome(id, outcome, tools),
        }
    }

    /// Reads and writes as far as possible without waiting.
    pub(super) fn drive(&mut self, tools: &mut Tools<'_>) -> Fate {
        match self {
            ServerConnection::Http1(http1) => http1.drive(tools),
            ServerConnection::Http2(http2) => http2.drive(tools),
        }
    }

    /// Logs requests that will have no response.
    pub(super) fn abandon(&mut self, context: &mut Context) {
        match self {
            ServerConnection::Http1(http1) => http1.service.log_lost(context),
            ServerConnection::Http2(http2) => http2.abandon(context),
        }
    }
}
