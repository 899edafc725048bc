//! A server in virtual time, in the place of the engine.

use crate::analysis::assess::assess;
use crate::driver::{Action, AnyDriver, Driver, Op};
use crate::measure::{
    Completion, GeneratorUse, Observed, Outcome, Recorder, RecorderConfig, SynSource, Trial, Window,
};
use crate::report::TrialReport;
use crate::spec::{ConnectScheme, Load, Share, TrialSpec};
use crate::time::Nanos;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A server of one worker behind an accept queue, as Linux has it: what finds the queue full is not
/// answered.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// How long the worker takes for one.
    pub service: Nanos,
    /// Connections that the accept queue holds.
    pub queue: usize,
    /// What each SYN takes from the worker.
    pub per_syn: Nanos,
}

impl Server {
    /// The reference server: 130/s, a queue of 128, SYNs cost nothing.
    pub const REFERENCE: Server = Server {
        service: Nanos(7_692_308),
        queue: 128,
        per_syn: Nanos::ZERO,
    };

    /// One trial in virtual time, captured at the server.
    pub fn run(self, spec: &TrialSpec) -> TrialReport {
        Run::new(self, spec).finish()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A SYN of this connect comes for the nth time (from 0).
    Syn(usize, u32),
    GiveUp(usize),
    Done(usize),
}

#[derive(Clone, Copy, Debug)]
struct Connect {
    op: Op,
    started: Nanos,
    is_established: bool,
    has_ended: bool,
}

struct Run<'a> {
    server: Server,
    spec: &'a TrialSpec,
    window: Window,
    driver: AnyDriver,
    recorder: Recorder,
    agenda: BinaryHeap<Reverse<(Nanos, Event)>>,
    connects: Vec<Connect>,
    queue: VecDeque<usize>,
    /// Until when the worker is busy.
    busy: Nanos,
    serving: bool,
    observed: Observed,
}

impl Run<'_> {
    fn new(server: Server, spec: &TrialSpec) -> Run<'_> {
        let window = Window {
            start: spec.warmup,
            end: spec.window_end(),
        };
        Run {
            server,
            spec,
            window,
            driver: AnyDriver::new(spec, Share::WHOLE),
            recorder: Recorder::new(RecorderConfig {
                window,
                interval: spec.interval,
                open_loop: spec.load.is_open_loop(),
                counts_whole: spec.load.counts_whole(),
                starts_max: 1 << 20,
                targets: 1,
            }),
            agenda: BinaryHeap::new(),
            connects: Vec::new(),
            queue: VecDeque::new(),
            busy: Nanos::ZERO,
            serving: false,
            observed: Observed {
                source: SynSource::Capture,
                elapsed_ns: window.length().0,
                accept_queue_limit: Some(server.queue as u32),
                accept_queue_max: Some(0),
                ..Observed::default()
            },
        }
    }

    fn finish(mut self) -> TrialReport {
        let mut now = Nanos::ZERO;
        loop {
            let action = loop {
                match self.driver.poll(now) {
                    Action::Start(op) => self.start(op, now),
                    Action::Shed(op) => {
                        let shed = Completion::at_once(op, now, Outcome::Shed);
                        self.recorder.on_completion(&shed);
                    }
                    action => break action,
                }
            };
            let wakes = match action {
                Action::WaitUntil(moment) => moment,
                _ => Nanos::MAX,
            };
            let next = self
                .agenda
                .peek()
                .map_or(Nanos::MAX, |Reverse((at, _))| *at);
            if wakes == Nanos::MAX && next == Nanos::MAX {
                break;
            }
            now = now.max(wakes.min(next));
            if next <= now
                && let Some(Reverse((_, event))) = self.agenda.pop()
            {
                self.happens(event, now);
            }
        }
        assess(&Trial {
            spec: self.spec.clone(),
            measurement: self.recorder.finish(self.window.end),
            generator: GeneratorUse {
                backend: "sim".to_owned(),
                workers: 1,
                busiest_worker_percent: 20.0,
                ..GeneratorUse::default()
            },
            kernel: Default::default(),
            observed: Some(self.observed),
            interrupted: false,
        })
    }

    fn start(&mut self, op: Op, now: Nanos) {
        self.recorder.on_start(op, now);
        let id = self.connects.len();
        self.connects.push(Connect {
            op,
            started: now,
            is_established: false,
            has_ended: false,
        });
        let patience = match &self.spec.load {
            Load::Overload(load) if matches!(load.scheme, ConnectScheme::Simple { .. }) => {
                self.spec.timeout
            }
            _ => self.spec.connect_timeout,
        };
        self.agenda.push(Reverse((now, Event::Syn(id, 0))));
        self.agenda
            .push(Reverse((now + patience, Event::GiveUp(id))));
    }

    fn happens(&mut self, event: Event, now: Nanos) {
        match event {
            Event::Syn(id, nth) => self.on_syn(id, nth, now),
            Event::GiveUp(id) => {
                let connect = self.connects[id];
                if !connect.is_established && !connect.has_ended {
                    self.end(id, Outcome::ConnectTimeout, now);
                }
            }
            Event::Done(id) => {
                self.serving = false;
                self.end(id, Outcome::Served, now);
                self.serve(now);
            }
        }
    }

    fn on_syn(&mut self, id: usize, nth: u32, now: Nanos) {
        if self.connects[id].has_ended {
            return;
        }
        if self.window.contains(now) {
            match nth {
                0 => self.observed.first_syns += 1,
                _ => self.observed.repeated_syns += 1,
            }
        }
        self.busy = self.busy.max(now) + self.server.per_syn;
        // Linux takes one more than the queue is to hold.
        if self.queue.len() > self.server.queue {
            // Again after 1 s, 2 s, 4 s, … (RFC 6298).
            let again = now + Nanos::from_secs(1 << nth.min(6));
            self.agenda.push(Reverse((again, Event::Syn(id, nth + 1))));
            return;
        }
        let connect = &mut self.connects[id];
        connect.is_established = true;
        self.driver.on_established(connect.op.lane, now);
        self.queue.push_back(id);
        let waiting = self.queue.len() as u32;
        self.observed.accept_queue_max = self.observed.accept_queue_max.max(Some(waiting));
        self.serve(now);
    }

    fn serve(&mut self, now: Nanos) {
        if self.serving {
            return;
        }
        if let Some(id) = self.queue.pop_front() {
            self.serving = true;
            self.busy = self.busy.max(now) + self.server.service;
            self.agenda.push(Reverse((self.busy, Event::Done(id))));
        }
    }

    fn end(&mut self, id: usize, outcome: Outcome, now: Nanos) {
        let connect = &mut self.connects[id];
        connect.has_ended = true;
        let completion = Completion {
            started: connect.started,
            ..Completion::at_once(connect.op, now, outcome)
        };
        self.recorder.on_completion(&completion);
        self.driver.on_completion(&completion, now);
    }
}
