//! What a whole request goes through before its response, in each version of HTTP: its fault, the
//! application, the queue, the station, and its line in the log.

use super::app_request::AppRequest;
use super::batch::StreamKey;
use super::context::Context;
use super::live_stream::LiveStream;
use super::log::{ConnectionLog, LogEntry};
use super::queue::QueueOutcome;
use super::request::{Persistence, Request};
use super::response::{Response, ResponseKind, Responses, ServerResponse};
use super::station::Visit;
use knee_load::time::Nanos;

/// The path to which a POST empties the cache.
const DROP_CACHE: &str = "/drop-cache";

/// The service of one request.
#[derive(Debug)]
pub(super) struct RequestService {
    /// Its response.
    pub(super) answer: ServerResponse,
    /// The application's response.
    app_response: Option<Box<Response>>,
    /// Its line in the log, if requests are logged.
    pub(super) entry: Option<LogEntry>,
}

/// Where a request waits for its response.
#[derive(Clone, Copy, Debug)]
pub(super) enum ServicePhase {
    /// In the managed queue.
    Queued,
    /// In the station, until `finish`.
    Serving { arrival: Nanos, finish: Nanos },
}

impl RequestService {
    /// A response without service.
    pub(super) fn of(kind: ResponseKind) -> RequestService {
        let answer = ServerResponse::whole(kind);
        RequestService { answer, app_response: None, entry: None }
    }

    /// Counts a whole request that arrived at `arrival`, and chooses its response. `content` is
    /// the request for an application.
    pub(super) fn new(
        request: Request,
        arrival: Nanos,
        content: Option<&AppRequest>,
        context: &mut Context,
    ) -> RequestService {
        context.tally.on_request(arrival);
        let mut answer = ServerResponse {
            head_only: request.head_only,
            ..ServerResponse::with(context.mishaps.draw(), request.persistence)
        };
        let app_response = context.reply(content, &mut answer);
        RequestService { answer, app_response, entry: None }
    }

    /// The bytes of the response.
    #[inline]
    pub(super) fn response<'a>(&'a self, responses: &'a Responses) -> &'a Response {
        responses.pick(self.answer.kind, self.app_response.as_deref())
    }

    /// Begins a stream of messages, if responses are such. Returns it, and when to ask for its
    /// messages unless it waits.
    pub(super) fn begin_stream(
        &mut self,
        key: StreamKey,
        arrival: Nanos,
        log: Option<&mut ConnectionLog>,
        context: &mut Context,
    ) -> Option<(LiveStream, Option<Nanos>)> {
        let ResponseKind::Ok(persistence) = self.answer.kind else {
            return None;
        };
        if self.answer.reset || self.answer.head_only {
            return None;
        }
        let begun = LiveStream::begin(key, arrival, self.answer.halved, context)?;
        self.answer.kind = ResponseKind::Stream(persistence);
        let now = context.now();
        self.note(now, now, log, context);
        Some(begun)
    }

    /// Enters the queue or the station, and sets the timer for the end of the service. `None`: the
    /// request is to be answered at once. A request to empty the cache is.
    pub(super) fn begin(
        &mut self,
        key: StreamKey,
        arrival: Nanos,
        content: Option<&AppRequest>,
        log: Option<&mut ConnectionLog>,
        context: &mut Context,
    ) -> Option<ServicePhase> {
        let at = context.stalls.worked(arrival);
        if let Some(queue) = &mut context.queue {
            if content.is_some_and(|c| c.method == "POST" && c.path() == DROP_CACHE) {
                queue.drop_cache();
            } else if queue.arrive(key, at) {
                return Some(ServicePhase::Queued);
            } else {
                self.answer = self.answer.rejected();
            }
        }
        let Some(station) = &mut context.station else {
            let now = context.now();
            self.note(now, now, log, context);
            return None;
        };
        let visit = station.arrive(at);
        let finish = context.stalls.moment(visit.finish);
        self.note(context.stalls.moment(visit.start), finish, log, context);
        context.set_timer(finish, key.0);
        Some(ServicePhase::Serving { arrival, finish })
    }

    /// Handles the end of a wait in the queue, after which the request is to be answered. Returns
    /// when its service ended, unless it was dropped.
    pub(super) fn on_queue_outcome(
        &mut self,
        outcome: QueueOutcome,
        log: Option<&mut ConnectionLog>,
        context: &mut Context,
    ) -> Option<Nanos> {
        match outcome {
            QueueOutcome::Served(Visit { arrival, start, finish }) => {
                self.note(start, finish, log, context);
                record_service(arrival, finish, context);
                Some(finish)
            }
            QueueOutcome::Dropped => {
                let now = context.now();
                self.note(now, now, log, context);
                self.answer = self.answer.rejected();
                None
            }
        }
    }

    /// Creates its line in the log, with the times of its service.
    fn note(
        &mut self,
        start: Nanos,
        end: Nanos,
        log: Option<&mut ConnectionLog>,
        context: &mut Context,
    ) {
        let logs = log.zip(context.log.as_mut());
        self.entry = logs.map(|(own, log)| own.next_entry(log, start, end));
    }

    /// Logs it, as its whole response is written.
    pub(super) fn log_written(&mut self, context: &mut Context) {
        if let Some(entry) = self.entry.take() {
            let written = Some(context.read_clock());
            context.log_request(Some(LogEntry { written, ..entry }));
        }
    }

    /// Logs it, as it will have no whole response.
    pub(super) fn log_lost(&mut self, context: &mut Context) {
        context.log_request(self.entry.take());
    }
}

impl Default for RequestService {
    /// The service of a request that is not whole.
    fn default() -> RequestService {
        RequestService::of(ResponseKind::Ok(Persistence::KeepAlive))
    }
}

/// Records a service that ended at `finish`, whose response is written now.
pub(super) fn record_service(arrival: Nanos, finish: Nanos, context: &mut Context) {
    context.tally.sojourn.record(finish - arrival);
    let late = context.read_clock() - finish;
    context.tally.write_lateness.record(late);
}
