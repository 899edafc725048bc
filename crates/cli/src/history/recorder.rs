//! Keeps the run that it watches. The disk is written on a thread of its own: however slow it is,
//! the experiment does not wait for it.

use super::write::{RunWriter, TrialStart};
use super::{of_file, of_user};
use crate::watch::{ExperimentStart, UpcomingTrial, Watcher};
use knee_core::report::Report;
use knee_core::trial::report::Verdict;
use knee_load::measure::{Histogram, Interval};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Events that may wait for the disk; further intervals are not kept one by one. An event has some
/// kilobytes at most, except for the few reports of trials.
const EVENTS_MAX: usize = 1_000;

/// How long the disk is waited for before a trial begins, so that what is still to be written does
/// not disturb it.
const CALM: Duration = Duration::from_millis(100);

/// How long the disk is waited for when the run is over.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whether and how a run is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeepOptions {
    /// The baseline that it becomes.
    pub baseline: Option<String>,
    /// Whether the id is printed when the run is over.
    pub tells_id: bool,
}

/// The watcher that keeps what it sees.
#[derive(Debug)]
pub struct HistoryRecorder {
    keep: KeepOptions,
    began: Instant,
    writer: Option<Writer>,
    /// The number of the running trial, and of its next interval.
    at: [usize; 2],
    kept_as: Option<i64>,
    remark: Option<String>,
    has_complained: bool,
}

#[derive(Debug)]
struct Writer {
    path: PathBuf,
    events: SyncSender<(u64, HistoryEvent)>,
    replies: Receiver<WriterReply>,
}

enum HistoryEvent {
    /// Its number.
    TrialBegins(usize, TrialStart),
    /// The trial's number and its own.
    Interval([usize; 2], Box<Interval>, Option<String>),
    /// How many trials have ended, and what they lead to.
    SoFar(usize, Box<Report>),
    /// Tell when all before it is written.
    Flush(SyncSender<()>),
    Closes(Box<Report>, Option<String>),
    Fails(String),
}

enum WriterReply {
    Failed(String),
    Kept(i64),
}

impl HistoryRecorder {
    /// One that keeps a run so.
    pub fn new(keep: KeepOptions) -> HistoryRecorder {
        HistoryRecorder {
            keep,
            began: Instant::now(),
            writer: None,
            at: [0, 0],
            kept_as: None,
            remark: None,
            has_complained: false,
        }
    }

    pub(super) fn start(&mut self, path: PathBuf, opening: &ExperimentStart) -> Result<(), String> {
        let (events, to_write) = sync_channel(EVENTS_MAX);
        // As many as the writer ever tells: it never waits.
        let (answers, replies) = sync_channel(2);
        let (file, opening) = (path.clone(), opening.clone());
        thread::Builder::new()
            .name("history".to_string())
            .spawn(move || write(&file, &opening, &to_write, &answers))
            .map_err(|e| of_file(&path, &e.to_string()))?;
        self.writer = Some(Writer { path, events, replies });
        Ok(())
    }

    /// Complains once.
    fn complain(&mut self, wrong: &str) {
        if !self.has_complained {
            self.has_complained = true;
            self.remark = Some(format!("{wrong}: this run is not kept"));
        }
    }

    fn at_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Passes an event on, unless too many wait already.
    fn pass(&mut self, event: HistoryEvent) {
        let at_ns = self.at_ns();
        if let Some(writer) = &self.writer {
            // What is left out is in the report of its trial, or of the run.
            let _ = writer.events.try_send((at_ns, event));
        }
    }

    /// Waits for the disk, but not long.
    fn wait_for_disk(&mut self) {
        let (done, settled) = sync_channel(1);
        self.pass(HistoryEvent::Flush(done));
        // Too slow, or gone: then it is no use to wait.
        let _ = settled.recv_timeout(CALM);
    }

    /// Passes the last event on, and waits for the disk.
    fn finish(&mut self, event: HistoryEvent) {
        let at_ns = self.at_ns();
        let Some(Writer { path, events, replies }) = self.writer.take() else {
            return;
        };
        let deadline = Instant::now() + PATIENCE;
        let mut last = Some((at_ns, event));
        while let Some(event) = last.take() {
            match events.try_send(event) {
                Err(TrySendError::Full(event)) if Instant::now() < deadline => {
                    last = Some(event);
                    thread::sleep(Duration::from_millis(10));
                }
                // Gone, or too slow: it will not say that the run is kept.
                _ => break,
            }
        }
        drop(events);
        loop {
            match replies.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(WriterReply::Failed(wrong)) => self.complain(&of_file(&path, &wrong)),
                Ok(WriterReply::Kept(id)) => return self.kept(id),
                Err(RecvTimeoutError::Timeout) => {
                    let wrong = format!("the disk took nothing for {PATIENCE:?}");
                    return self.complain(&of_file(&path, &wrong));
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn kept(&mut self, id: i64) {
        self.kept_as = Some(id);
        if self.keep.tells_id && !self.has_complained {
            self.remark = Some(format!("kept as {id}: knee history show {id}"));
        }
    }
}

impl Watcher for HistoryRecorder {
    fn opens(&mut self, opening: &ExperimentStart) {
        self.began = Instant::now();
        let started = match of_user() {
            Ok(path) => self.start(path, opening),
            Err(wrong) => Err(format!("the history: {wrong}")),
        };
        if let Err(wrong) = started {
            self.complain(&wrong);
        }
    }

    fn trial_begins(&mut self, number: usize, upcoming: &UpcomingTrial) {
        self.at = [number, 0];
        self.pass(HistoryEvent::TrialBegins(number, TrialStart::from(upcoming)));
        self.wait_for_disk();
    }

    fn interval(&mut self, interval: &Interval, response: &Histogram) {
        let response = Some(response).filter(|r| !r.is_empty());
        let response = response.and_then(|r| serde_json::to_string(r).ok());
        let at = self.at;
        self.at[1] += 1;
        self.pass(HistoryEvent::Interval(at, interval.clone().into(), response));
    }

    fn follows(&self) -> bool {
        self.writer.is_some()
    }

    fn so_far(&mut self, report: &Report) {
        self.pass(HistoryEvent::SoFar(self.at[0] + 1, Box::new(report.clone())));
    }

    fn closes(&mut self, report: &Report) {
        let has_measured = report.has_measured();
        let is_sound = report.verdict == Verdict::Valid && !report.interrupted && has_measured;
        let baseline = self.keep.baseline.take();
        let refused = baseline.as_ref().filter(|_| !is_sound).cloned();
        let baseline = baseline.filter(|_| is_sound);
        self.finish(HistoryEvent::Closes(Box::new(report.clone()), baseline));
        if let Some(name) = refused.filter(|_| !self.has_complained) {
            let why = if report.interrupted {
                "was interrupted"
            } else if !has_measured {
                "has measured nothing"
            } else {
                "is INVALID"
            };
            self.remark = Some(format!(
                "--save-baseline: this run {why}, so it is kept, but not as the baseline '{name}'"
            ));
        }
    }

    fn fails(&mut self, reason: &str) {
        self.finish(HistoryEvent::Fails(reason.to_string()));
    }

    fn kept_as(&self) -> Option<i64> {
        self.kept_as
    }

    fn remark(&mut self) -> Option<String> {
        let reply = self.writer.as_ref().map(|w| (w.replies.try_recv(), &w.path));
        if let Some((Ok(WriterReply::Failed(wrong)), path)) = reply {
            let wrong = of_file(path, &wrong);
            self.complain(&wrong);
        }
        self.remark.take()
    }
}

/// Writes events until they end, and tells what became of it. What could not be written on the way
/// is no loss where the report is there in the end.
fn write(
    path: &Path,
    opening: &ExperimentStart,
    events: &Receiver<(u64, HistoryEvent)>,
    answers: &SyncSender<WriterReply>,
) {
    let reply = match RunWriter::begin(path, opening, &knee_engine::host()) {
        Ok(run) => write_events(run, events),
        Err(wrong) => Some(WriterReply::Failed(wrong)),
    };
    if let Some(reply) = reply {
        // The experiment may no longer listen.
        let _ = answers.try_send(reply);
    }
}

fn write_events(mut run: RunWriter, events: &Receiver<(u64, HistoryEvent)>) -> Option<WriterReply> {
    let mut reply = None;
    for (at_ns, event) in events {
        let written = match &event {
            HistoryEvent::TrialBegins(trial, begun) => run.trial_begins(*trial, begun, at_ns),
            HistoryEvent::Interval(at, interval, response) => {
                run.interval(*at, interval, response.as_deref(), at_ns)
            }
            HistoryEvent::SoFar(ended, report) => run.so_far(report, *ended, at_ns),
            HistoryEvent::Flush(done) => {
                // It may have been waited for long enough.
                let _ = done.try_send(());
                Ok(())
            }
            HistoryEvent::Closes(report, baseline) => {
                run.closes(report, baseline.as_deref(), at_ns)
            }
            HistoryEvent::Fails(reason) => run.fails(reason, at_ns),
        };
        reply = match (event, written) {
            (HistoryEvent::Closes(..), Ok(())) => Some(WriterReply::Kept(run.id())),
            (HistoryEvent::Closes(..) | HistoryEvent::Fails(_), Err(wrong)) => {
                Some(WriterReply::Failed(wrong))
            }
            _ => None,
        };
    }
    // The file is closed before this reply, so nothing is left to do when the process ends.
    reply
}
