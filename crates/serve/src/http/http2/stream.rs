//! Open streams of one connection.

use super::super::app_request::AppRequest;
use super::super::context::Context;
use super::super::grpc::GrpcCall;
use super::super::live_stream::LiveStream;
use super::super::service::{RequestService, ServicePhase};
use super::STREAM_WINDOW;
use knee_engine::exchange::http2::connection::{ReceiveWindow, SendWindow};
use knee_load::time::Nanos;
use std::collections::VecDeque;

/// One request and its response.
#[derive(Debug)]
pub(super) struct ServerStream {
    /// The request is HEAD.
    pub(super) head_only: bool,
    /// Announced and received length of its body.
    pub(super) length: Option<u64>,
    pub(super) received: u64,
    /// Bytes that the client may send.
    pub(super) receive_window: ReceiveWindow,
    /// Bytes that may be sent to the client.
    pub(super) send_window: SendWindow,
    pub(super) stage: StreamPhase,
    /// The whole request, for an application.
    pub(super) app_request: Option<Box<AppRequest>>,
    /// Its service, once all of it has been received.
    pub(super) service: RequestService,
    /// The stream of messages that is the response.
    pub(super) live: Option<Box<LiveBody>>,
    /// The call of gRPC that the request is.
    pub(super) call: Option<Box<GrpcCall>>,
    /// All of the request has been received.
    pub(super) is_received: bool,
    /// It is in the queue of bodies.
    is_queued: bool,
}

/// The body of a response that grows while it is sent.
#[derive(Debug, Default)]
pub(super) struct LiveBody {
    /// The stream of messages that it has; `None`: what a call of gRPC answers.
    pub(super) stream: Option<LiveStream>,
    /// Messages that are due, as far as they are not put out.
    pub(super) bytes: Vec<u8>,
    /// The block of the trailers that end it, once all messages are due.
    pub(super) trailers: Option<Vec<u8>>,
}

impl LiveBody {
    /// Whether more messages may come.
    pub(super) fn is_open(&self) -> bool {
        self.trailers.is_none() && self.stream.as_ref().is_none_or(|stream| !stream.is_whole)
    }
}

/// Progress of a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum StreamPhase {
    /// The body of the request is incomplete.
    Receiving,
    /// In the queue or the station.
    InService(ServicePhase),
    /// Its head is out, and `sent` bytes of its body.
    Sending {
        sent: usize,
        /// Start of the body, if bodies are slow.
        begun: Option<Nanos>,
    },
}

impl ServerStream {
    /// Creates a stream whose head was received. `window` is the client's.
    pub(super) fn new(head_only: bool, length: Option<u64>, window: u32) -> ServerStream {
        ServerStream {
            head_only,
            length,
            received: 0,
            receive_window: ReceiveWindow::new(STREAM_WINDOW),
            send_window: SendWindow::new(window),
            stage: StreamPhase::Receiving,
            app_request: None,
            service: RequestService::default(),
            live: None,
            call: None,
            is_received: false,
            is_queued: false,
        }
    }
}

/// The open streams. With a few dozen of them, a linear search is the fastest.
#[derive(Debug, Default)]
pub(super) struct ServerStreams {
    ids: Vec<u32>,
    streams: Vec<ServerStream>,
    /// Streams whose bodies go on, in turn.
    queue: VecDeque<u32>,
}

impl ServerStreams {
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    fn place(&self, id: u32) -> Option<usize> {
        self.ids.iter().position(|&other| other == id)
    }

    pub(super) fn find(&mut self, id: u32) -> Option<&mut ServerStream> {
        let place = self.place(id)?;
        self.streams.get_mut(place)
    }

    pub(super) fn insert(&mut self, id: u32, stream: ServerStream) {
        self.ids.push(id);
        self.streams.push(stream);
    }

    pub(super) fn remove(&mut self, id: u32) -> Option<ServerStream> {
        let place = self.place(id)?;
        self.ids.swap_remove(place);
        Some(self.streams.swap_remove(place))
    }

    pub(super) fn clear(&mut self) {
        self.ids.clear();
        self.streams.clear();
        self.queue.clear();
    }

    /// Removes streams with incomplete requests. Returns their number.
    pub(super) fn drop_unfinished(&mut self) -> usize {
        let before = self.len();
        for place in (0..before).rev() {
            let stream = &self.streams[place];
            if stream.live.is_none() && matches!(stream.stage, StreamPhase::Receiving) {
                self.ids.swap_remove(place);
                self.streams.swap_remove(place);
            }
        }
        before - self.len()
    }

    /// Logs the requests, which will have no response.
    pub(super) fn abandon(&mut self, context: &mut Context) {
        self.streams.iter_mut().for_each(|stream| stream.service.log_lost(context));
    }

    /// Changes all windows. Returns whether all stay within their limit.
    #[must_use]
    pub(super) fn grow_windows(&mut self, by: i64) -> bool {
        let mut fits = true;
        for place in 0..self.len() {
            fits &= self.streams[place].send_window.grow(by);
            self.resume(self.ids[place]);
        }
        fits
    }

    /// Starts the body of a response, after its head.
    pub(super) fn begin_body(&mut self, id: u32, begun: Option<Nanos>) {
        if let Some(stream) = self.find(id) {
            stream.stage = StreamPhase::Sending { sent: 0, begun };
            self.resume(id);
        }
    }

    /// Starts the body of a response that is a stream of messages, after its head.
    pub(super) fn begin_live(&mut self, id: u32, stream: Option<LiveStream>) {
        if let Some(opened) = self.find(id) {
            opened.live = Some(Box::new(LiveBody { stream, ..LiveBody::default() }));
            opened.stage = StreamPhase::Sending { sent: 0, begun: None };
        }
    }

    /// Bytes of messages that are not put out.
    pub(super) fn messages_unread(&self) -> usize {
        let live = self.streams.iter().filter_map(|stream| stream.live.as_ref());
        live.map(|live| live.bytes.len()).sum()
    }

    /// Ids of streams that are queued, or whose response is a stream of messages.
    pub(super) fn queued_or_live(&self) -> Vec<u32> {
        let pairs = self.ids.iter().zip(&self.streams).filter(|(_, stream)| {
            let is_queued = matches!(stream.stage, StreamPhase::InService(ServicePhase::Queued));
            stream.live.is_some() || is_queued
        });
        pairs.map(|(id, _)| *id).collect()
    }

    /// Queues a stream whose body may go on.
    pub(super) fn resume(&mut self, id: u32) {
        let Some(stream) = self.find(id) else {
            return;
        };
        if matches!(stream.stage, StreamPhase::Sending { .. }) && !stream.is_queued {
            stream.is_queued = true;
            self.queue.push_back(id);
        }
    }

    /// Queues all slow bodies.
    pub(super) fn resume_slow(&mut self) {
        for place in 0..self.len() {
            if let StreamPhase::Sending { begun: Some(_), .. } = self.streams[place].stage {
                self.resume(self.ids[place]);
            }
        }
    }

    /// The next stream whose body may go on.
    pub(super) fn next(&mut self) -> Option<(u32, &mut ServerStream)> {
        while let Some(id) = self.queue.pop_front() {
            if let Some(place) = self.place(id) {
                self.streams[place].is_queued = false;
                return Some((id, &mut self.streams[place]));
            }
        }
        None
    }

    /// Puts a stream back to the front of the queue.
    pub(super) fn put_back(&mut self, id: u32) {
        if let Some(stream) = self.find(id) {
            stream.is_queued = true;
            self.queue.push_front(id);
        }
    }
}
