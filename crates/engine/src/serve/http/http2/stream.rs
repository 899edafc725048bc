//! The streams of one connection that are open.

use super::super::asked::Asked;
use super::super::log::{Log, LogEntry};
use super::super::response::{Answer, Response};
use super::STREAM_WINDOW;
use crate::exchange::http2::flow::{ReceiveWindow, SendWindow};
use knee_core::time::Nanos;
use std::collections::VecDeque;

/// One request and its response.
#[derive(Debug)]
pub(super) struct Stream {
    /// It asked for the head of the response alone.
    pub(super) head_only: bool,
    /// How long its body is by its head, and how long it was so far.
    pub(super) length: Option<u64>,
    pub(super) received: u64,
    /// How much the client may send.
    pub(super) receive_window: ReceiveWindow,
    /// How much it takes.
    pub(super) send_window: SendWindow,
    pub(super) stage: Stage,
    /// All of the request, where an application answers it.
    pub(super) asked: Option<Box<Asked>>,
    /// And what it answers.
    pub(super) own: Option<Box<Response>>,
    /// It is among those whose bodies go on.
    is_queued: bool,
    /// Its line in the log, once its request is whole, where requests are logged.
    pub(super) entry: Option<LogEntry>,
}

/// How far it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    /// The body of the request is to come.
    Receiving,
    /// In the station.
    Serving { answer: Answer, arrival: Nanos },
    /// Its head is out, and so many bytes of its body.
    Sending {
        answer: Answer,
        sent: usize,
        /// When it began, where bodies are slow.
        begun: Option<Nanos>,
    },
}

impl Stream {
    /// One whose head has come, to a client that gives it this window.
    pub(super) fn new(head_only: bool, length: Option<u64>, window: u32) -> Stream {
        Stream {
            head_only,
            length,
            received: 0,
            receive_window: ReceiveWindow::new(STREAM_WINDOW),
            send_window: SendWindow::new(window),
            stage: Stage::Receiving,
            asked: None,
            own: None,
            is_queued: false,
            entry: None,
        }
    }
}

/// The open streams. There are a few dozen: looking through their numbers is the quickest.
#[derive(Debug, Default)]
pub(super) struct Streams {
    ids: Vec<u32>,
    streams: Vec<Stream>,
    /// Those whose bodies go on, each for one frame, then the next.
    queue: VecDeque<u32>,
}

impl Streams {
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    fn place(&self, id: u32) -> Option<usize> {
        self.ids.iter().position(|&other| other == id)
    }

    pub(super) fn find(&mut self, id: u32) -> Option<&mut Stream> {
        let place = self.place(id)?;
        self.streams.get_mut(place)
    }

    pub(super) fn insert(&mut self, id: u32, stream: Stream) {
        self.ids.push(id);
        self.streams.push(stream);
    }

    pub(super) fn remove(&mut self, id: u32) -> Option<Stream> {
        let place = self.place(id)?;
        self.ids.swap_remove(place);
        Some(self.streams.swap_remove(place))
    }

    pub(super) fn clear(&mut self) {
        self.ids.clear();
        self.streams.clear();
        self.queue.clear();
    }

    /// Ends those whose requests are not whole; how many that were.
    pub(super) fn drop_unfinished(&mut self) -> usize {
        let before = self.len();
        for place in (0..before).rev() {
            if let Stage::Receiving = self.streams[place].stage {
                self.ids.swap_remove(place);
                self.streams.swap_remove(place);
            }
        }
        before - self.len()
    }

    /// None of them will have a response.
    pub(super) fn abandon(&mut self, log: &mut Log) {
        let entries = self.streams.iter_mut().filter_map(|s| s.entry.take());
        entries.for_each(|entry| log.push(entry));
    }

    /// All windows change by so much; whether all stay within their limit.
    #[must_use]
    pub(super) fn grow_windows(&mut self, by: i64) -> bool {
        let mut fits = true;
        for place in 0..self.len() {
            fits &= self.streams[place].send_window.grow(by);
            self.resume(self.ids[place]);
        }
        fits
    }

    /// Its head is out: its body follows.
    pub(super) fn begin_body(&mut self, id: u32, answer: Answer, begun: Option<Nanos>) {
        if let Some(stream) = self.find(id) {
            stream.stage = Stage::Sending {
                answer,
                sent: 0,
                begun,
            };
            self.resume(id);
        }
    }

    /// Its body may go on, if it was that far.
    pub(super) fn resume(&mut self, id: u32) {
        let Some(stream) = self.find(id) else {
            return;
        };
        if matches!(stream.stage, Stage::Sending { .. }) && !stream.is_queued {
            stream.is_queued = true;
            self.queue.push_back(id);
        }
    }

    /// Slow bodies may go on.
    pub(super) fn resume_slow(&mut self) {
        for place in 0..self.len() {
            if let Stage::Sending { begun: Some(_), .. } = self.streams[place].stage {
                self.resume(self.ids[place]);
            }
        }
    }

    /// The next whose body may go on.
    pub(super) fn next(&mut self) -> Option<(u32, &mut Stream)> {
        while let Some(id) = self.queue.pop_front() {
            if let Some(place) = self.place(id) {
                self.streams[place].is_queued = false;
                return Some((id, &mut self.streams[place]));
            }
        }
        None
    }

    /// It was not its fault that nothing was sent: it is the next again.
    pub(super) fn put_back(&mut self, id: u32) {
        if let Some(stream) = self.find(id) {
            stream.is_queued = true;
            self.queue.push_front(id);
        }
    }
}
