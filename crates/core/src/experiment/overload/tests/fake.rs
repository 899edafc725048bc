//! A server in virtual time, in the place of the engine.

use crate::trial::assess::assess;
use crate::trial::report::TrialReport;
use knee_load::driver::{Action, AnyDriver, Driver};
use knee_load::law::Law;
use knee_load::measure::Op;
use knee_load::measure::{
    Completion, GeneratorUse, Observed, Outcome, Recorder, RecorderConfig, SynSource, Trial, Window,
};
use knee_load::rng::{self, Rng};
use knee_load::spec::{ConnectScheme, Load, Share, TrialSpec};
use knee_load::time::Nanos;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A server of one worker behind an accept queue, as Linux has it: what finds the queue full is not
/// answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Server {
    /// How long the worker takes for one.
    pub service: Law,
    /// Connections that the accept queue holds.
    pub queue: usize,
    /// What each SYN takes from the worker.
    pub per_syn: Nanos,
    /// What is wrong with it.
    pub fault: Fault,
    /// Whether somebody looks at its host.
    pub is_seen: bool,
}

/// Time that whatever is not served takes of the worker.
const TURNED_AWAY: Nanos = Nanos::from_millis(2);

/// What is wrong with a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// Its process ends in that trial (from 0), at that time of it, and never comes back.
    Crash(usize, Nanos),
    /// It takes no connection out of its queue, and ends none, from that time of that trial on. It
    /// ends at the second time and trial, or never.
    Hang((usize, Nanos), Option<(usize, Nanos)>),
    /// From that trial on it serves this many times more slowly.
    Wears(usize, u64),
    /// This share of what it accepts it closes at once.
    Closes(f64),
    /// To this share it says 503 at once.
    Rejects(f64),
    /// This share of what it accepts it never answers.
    Ignores(f64),
    /// A packet filter drops this share of the SYNs.
    Drops(f64),
}

impl Server {
    /// The reference server: 130/s, a queue of 128, SYNs cost nothing.
    pub(crate) const REFERENCE: Server = Server {
        service: Law::Fixed(Nanos(7_692_308)),
        queue: 128,
        per_syn: Nanos::ZERO,
        fault: Fault::None,
        is_seen: true,
    };

    /// The trial of that number (from 0) in virtual time, captured at the server.
    pub(crate) fn run(self, spec: &TrialSpec, trial: usize) -> TrialReport {
        Run::new(self, spec, trial).finish()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A SYN of this connect comes for the nth time (from 0).
    Syn(usize, u32),
    GiveUp(usize),
    /// The time for a response is over.
    TooLate(usize),
    Done(usize),
    Crash,
    /// It goes on, having hung.
    Resume,
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
    /// The connection that the worker is busy with, and what becomes of it in the end; `None`: it
    /// is left alone.
    serving: Option<(usize, Option<Outcome>)>,
    rng: Rng,
    trial: usize,
    has_crashed: bool,
    drops: i64,
    observed: Observed,
}

impl Run<'_> {
    fn new(server: Server, spec: &TrialSpec, trial: usize) -> Run<'_> {
        let window = Window { start: spec.warmup, end: spec.window_end() };
        let mut agenda = BinaryHeap::new();
        let mut has_crashed = false;
        match server.fault {
            Fault::Crash(at_trial, at) if at_trial == trial => {
                agenda.push(Reverse((at, Event::Crash)));
            }
            Fault::Crash(at_trial, _) => has_crashed = at_trial < trial,
            Fault::Hang(_, Some((at_trial, at))) if at_trial == trial => {
                agenda.push(Reverse((at, Event::Resume)));
            }
            _ => {}
        }
        Run {
            server,
            spec,
            window,
            driver: AnyDriver::new(spec, Share::WHOLE),
            recorder: Recorder::new(RecorderConfig {
                window,
                interval: spec.interval,
                open_loop: spec.load.is_open_loop(),
                of_sessions: false,
                starts_max: 1 << 20,
                targets: 1,
            }),
            agenda,
            connects: Vec::new(),
            queue: VecDeque::new(),
            busy: Nanos::ZERO,
            serving: None,
            rng: rng::stream(spec.seed, rng::SERVICE),
            trial,
            has_crashed,
            drops: 0,
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
                    Action::Start(op) | Action::Retry(op) => self.start(op, now),
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
            let next = self.agenda.peek().map_or(Nanos::MAX, |Reverse((at, _))| *at);
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
        self.observed.kernel.insert("TcpExtListenDrops".to_owned(), self.drops);
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
            observed: self.server.is_seen.then_some(self.observed),
            agents: Vec::new(),
            interrupted: false,
        })
    }

    fn start(&mut self, op: Op, now: Nanos) {
        self.recorder.on_start(op, now);
        let id = self.connects.len();
        self.connects.push(Connect { op, started: now, is_established: false, has_ended: false });
        let patience = match &self.spec.load {
            Load::Overload(load) if matches!(load.scheme, ConnectScheme::Simple { .. }) => {
                self.spec.timeout
            }
            _ => self.spec.connect_timeout,
        };
        self.agenda.push(Reverse((now, Event::Syn(id, 0))));
        self.agenda.push(Reverse((now + patience, Event::GiveUp(id))));
        let too_late = op.intended + self.spec.timeout;
        self.agenda.push(Reverse((too_late, Event::TooLate(id))));
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
            Event::TooLate(id) => {
                let connect = self.connects[id];
                if connect.is_established && !connect.has_ended {
                    self.end(id, Outcome::ResponseTimeout, now);
                }
            }
            Event::Done(id) => self.on_done(id, now),
            Event::Crash => {
                self.has_crashed = true;
                let queued: Vec<usize> = self.queue.drain(..).collect();
                let serving = self.serving.take().map(|(id, _)| id);
                for id in queued.into_iter().chain(serving) {
                    self.cut(id, Outcome::Reset, now);
                }
            }
            Event::Resume => match self.serving {
                Some((id, _)) => self.on_done(id, now),
                None => self.serve(now),
            },
        }
    }

    fn on_done(&mut self, id: usize, now: Nanos) {
        let Some((_, outcome)) = self.serving.filter(|s| s.0 == id) else {
            return;
        };
        if !self.is_hanging(now) {
            self.serving = None;
            if let Some(outcome) = outcome {
                self.cut(id, outcome, now);
            }
            self.serve(now);
        }
    }

    fn is_hanging(&self, now: Nanos) -> bool {
        let at = (self.trial, now);
        match self.server.fault {
            Fault::Hang(from, until) => from <= at && until.is_none_or(|until| at < until),
            _ => false,
        }
    }

    fn happens_with(&mut self, share: f64) -> bool {
        rng::unit(&mut self.rng) < share
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
        if let Fault::Drops(share) = self.server.fault
            && self.happens_with(share)
        {
            return self.send_again(id, nth, now);
        }
        if self.has_crashed {
            return self.end(id, Outcome::Refused, now);
        }
        self.busy = self.busy.max(now) + self.server.per_syn;
        // Linux takes one more than the queue is to hold.
        if self.queue.len() > self.server.queue {
            self.drops += i64::from(self.window.contains(now));
            return self.send_again(id, nth, now);
        }
        let connect = &mut self.connects[id];
        connect.is_established = true;
        self.driver.on_established(connect.op.lane, now);
        self.queue.push_back(id);
        let waiting = self.queue.len() as u32;
        self.observed.accept_queue_max = self.observed.accept_queue_max.max(Some(waiting));
        self.serve(now);
    }

    /// Again after 1 s, 2 s, 4 s, … (RFC 6298).
    fn send_again(&mut self, id: usize, nth: u32, now: Nanos) {
        let again = now + Nanos::from_secs(1 << nth.min(6));
        self.agenda.push(Reverse((again, Event::Syn(id, nth + 1))));
    }

    fn serve(&mut self, now: Nanos) {
        if self.serving.is_some() || self.is_hanging(now) || self.has_crashed {
            return;
        }
        let Some(id) = self.queue.pop_front() else {
            return;
        };
        let fault = self.server.fault;
        let (takes, outcome) = match fault {
            Fault::Closes(share) if self.happens_with(share) => {
                (TURNED_AWAY, Some(Outcome::Closed))
            }
            Fault::Rejects(share) if self.happens_with(share) => {
                (TURNED_AWAY, Some(Outcome::HTTP_5XX))
            }
            Fault::Ignores(share) if self.happens_with(share) => (TURNED_AWAY, None),
            _ => {
                let takes = self.server.service.sample(&mut self.rng).max(Nanos(1));
                let times = match fault {
                    Fault::Wears(trial, times) if trial <= self.trial => times,
                    _ => 1,
                };
                (Nanos(takes.0 * times), Some(Outcome::Served))
            }
        };
        self.serving = Some((id, outcome));
        self.busy = self.busy.max(now) + takes;
        self.agenda.push(Reverse((self.busy, Event::Done(id))));
    }

    /// Ends a connection, unless its client has.
    fn cut(&mut self, id: usize, outcome: Outcome, now: Nanos) {
        if !self.connects[id].has_ended {
            self.end(id, outcome, now);
        }
    }

    fn end(&mut self, id: usize, outcome: Outcome, now: Nanos) {
        let connect = &mut self.connects[id];
        connect.has_ended = true;
        let completion = Completion::at_once(connect.op, now, outcome);
        let completion = completion.exchanged(connect.started, now);
        self.recorder.on_completion(&completion);
        self.driver.on_completion(&completion, now);
    }
}
