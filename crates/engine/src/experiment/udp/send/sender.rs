//! One sender: a thread that sends for one or several clients.

use super::outlet::DatagramOutlet;
use super::send_period::{SendCost, SendPeriod};
use super::source::{ClientPause, NextSend, PausingClients, SendSource, first_sends};
use super::tally::SendTally;
use crate::generator::WorkerUse;
use crate::reactor::{COVERED, Waiter};
use crate::sys::clock::{self, ThreadUse};
use crate::sys::thread;
use knee_load::arrival::Arrivals;
use knee_load::experiment::udp::{ClientWait, ClientsAs, UdpSent, UdpTrialSpec};
use knee_load::spec::Share;
use knee_load::throttle::{CatchUp, Throttle};
use knee_load::time::Nanos;
use serde::{Deserialize, Serialize};
use std::io;
use std::net::UdpSocket;

/// Timer slack of a sender with a schedule: the least there is, in nanoseconds.
const SLACK_MIN: u32 = 1;

/// Time before a send in which a sender reads no echoes.
const QUIET: Nanos = Nanos::from_micros(3);

/// A sender that is ready to begin.
pub(super) struct DatagramSender<'a> {
    spec: &'a UdpTrialSpec,
    share: Share,
    term: SendPeriod<'a>,
    outlet: DatagramOutlet,
    tally: SendTally,
    polled: Nanos,
    cost: SendCost,
}

/// Result of a sender.
#[derive(Serialize, Deserialize)]
pub(super) struct SenderResult {
    /// Counts of the datagrams.
    pub(super) sent: UdpSent,
    /// Cost of sending.
    pub(super) cost: WorkerUse,
    /// Whether it was stopped early.
    pub(super) interrupted: bool,
}

impl<'a> DatagramSender<'a> {
    /// A sender for a share of the trial's clients, over a connected socket. Create it on the
    /// thread that runs it: it sets the thread's processors and timer slack.
    ///
    /// # Errors
    /// What the machine does not permit.
    pub(super) fn new(
        spec: &'a UdpTrialSpec,
        session: u64,
        share: Share,
        term: SendPeriod<'a>,
        socket: UdpSocket,
        starts_max: usize,
    ) -> Result<DatagramSender<'a>, String> {
        if !spec.client_cpus.is_empty() {
            thread::set_affinity(&spec.client_cpus).map_err(|e| {
                format!("clients cannot run on processors {:?}: {e}", spec.client_cpus)
            })?;
        }
        let slack = match spec.wait {
            ClientWait::Schedule { .. } => SLACK_MIN,
            ClientWait::Sleep(_) | ClientWait::Tick(_) if is_emulated(spec) => SLACK_MIN,
            _ => spec.timer_slack.0.clamp(1, u32::MAX.into()) as u32,
        };
        // Where it is refused, the default slack stays.
        let _ = thread::set_timer_slack_ns(slack);
        let paced = matches!(spec.wait, ClientWait::Schedule { .. });
        let is_single = !paced && spec.wait != ClientWait::None && !is_emulated(spec);
        let outlet = DatagramOutlet::new(socket, spec, session, share, is_single).map_err(|e| {
            if spec.gso {
                format!("--gso: the kernel does not cut datagrams (Linux 4.18 does): {e}")
            } else {
                format!("no socket to send from: {e}")
            }
        })?;
        Ok(DatagramSender {
            spec,
            share,
            term,
            outlet,
            tally: SendTally::new(spec, starts_max),
            polled: Nanos::ZERO,
            cost: SendCost::new(spec.send_cost),
        })
    }

    /// Sends from the origin to the end of the period, and passes each interval that is over to
    /// `emit`.
    ///
    /// # Errors
    /// The kernel refuses to wait.
    pub(super) fn run(mut self, emit: &mut dyn FnMut(u64, u64)) -> io::Result<SenderResult> {
        let max = self.spec.datagrams_max.map_or(u64::MAX, |n| self.share.part(n));
        let spec = self.spec;
        let pause = ClientPause::of(spec, self.share, self.term.clock.origin);
        self.term.await_origin(matches!(spec.wait, ClientWait::Schedule { .. }));
        let used = ThreadUse::now();
        self.cost.begin(clock::thread_cpu_ns());
        let mut intended = None;
        match (&spec.wait, pause) {
            (ClientWait::Schedule { rate, arrival }, _) => {
                let arrivals = Arrivals::of(*rate, arrival, self.share, spec.seed);
                let mut throttle = Throttle::new(arrivals, CatchUp::ALL, Nanos::ZERO);
                if spec.datagrams_max.is_some() {
                    throttle = throttle.with_operations_max(max);
                }
                let clients = self.outlet.clients();
                let source = SendSource::Schedule { throttle, clients, next: 0 };
                intended = Some(self.paced(source, emit)?);
            }
            (_, Some(pause)) if is_emulated(spec) => {
                let first = first_sends(spec, self.share);
                let source = SendSource::Clients(PausingClients::new(&first, pause, max));
                self.paced(source, emit)?;
            }
            (ClientWait::None, _) => self.unpaced(max, emit),
            (_, pause) => self.waiting(pause, max, emit),
        }
        let end = self.term.now();
        let cost = WorkerUse { used: ThreadUse::now().since(used), polled: self.polled, over: end };
        let interrupted = self.term.is_stopped();
        if !interrupted {
            self.outlet.await_replies(&self.term, &mut self.tally)?;
        }
        self.tally.roll(end, emit);
        Ok(SenderResult {
            sent: self.tally.finish(end, self.term.end, intended),
            cost,
            interrupted,
        })
    }

    /// Sends at the times of the source: sleeps until a margin before each, then polls. Returns how
    /// many times there were before the end.
    fn paced(&mut self, mut source: SendSource, emit: &mut dyn FnMut(u64, u64)) -> io::Result<u64> {
        let engine = &self.spec.engine;
        let mut waiter = Waiter::new(engine.wait, COVERED, &engine.margins);
        let is_schedule = source.is_schedule();
        let (mut expected, mut polling_since) = (Nanos::MAX, None);
        let mut intended = 0;
        let mut last = self.term.end;
        loop {
            let now = self.term.now();
            self.tally.stalled(now - expected);
            self.tally.roll(now, emit);
            if let Some(since) = polling_since.take() {
                waiter.polled(now - since);
            }
            if self.term.is_stopped() {
                last = last.min(now);
                break;
            }
            if now >= self.term.given_up() {
                break;
            }
            let next = self.gather(&mut source, now, is_schedule);
            let pending = self.outlet.pending() as u64;
            if pending > 0 {
                intended += pending;
                if !self.cost.is_none() {
                    self.cost.leave_out_waiting(clock::thread_cpu_ns());
                }
                self.spend(pending as usize);
                self.outlet.flush(&self.term, &mut self.tally);
                if !self.cost.is_none() {
                    self.cost.handed_over(clock::thread_cpu_ns());
                }
                source.sent(if is_schedule { now } else { self.term.now() });
                expected = if let NextSend::WaitUntil(t) = next { t } else { Nanos::MAX };
                continue;
            }
            let until = match next {
                NextSend::WaitUntil(moment) => moment.min(self.term.end),
                _ => break,
            };
            if until <= now {
                break;
            }
            let asked = waiter.sleep_for(now, until);
            if asked == Nanos::ZERO {
                polling_since = Some(now);
                expected = until;
                if until - now > QUIET {
                    self.outlet.take_replies(&self.term, &mut self.tally);
                }
            } else {
                let came = self.outlet.sleep(asked)?;
                let woke = self.term.now();
                if came {
                    self.outlet.take_replies(&self.term, &mut self.tally);
                } else {
                    waiter.woke(woke - (now + asked));
                }
                expected = now + asked;
            }
        }
        self.polled = waiter.polled_total();
        Ok(intended + source.left_before(last))
    }

    /// Adds what is due at `now`, and returns what comes next: nothing is due at the end or later.
    #[inline]
    fn gather(&mut self, source: &mut SendSource, now: Nanos, is_schedule: bool) -> NextSend {
        while !self.outlet.is_full() {
            match source.poll(now) {
                NextSend::Send(client, intended) if intended < self.term.end => {
                    self.outlet.push(client, is_schedule.then_some(intended));
                }
                NextSend::Send(..) => return NextSend::Done,
                next => return next,
            }
        }
        NextSend::WaitUntil(now)
    }

    /// Sends for each client in turn, a batch at a time, without ever waiting.
    fn unpaced(&mut self, max: u64, emit: &mut dyn FnMut(u64, u64)) {
        let (clients, mut client) = (self.outlet.clients(), 0);
        let (mut left, mut now) = (max, self.term.now());
        while left > 0 && now < self.term.end && !self.term.is_stopped() {
            let count = left.min(self.outlet.at_once() as u64);
            for _ in 0..count {
                self.outlet.push(client, None);
                client = if client + 1 < clients { client + 1 } else { 0 };
            }
            self.spend(count as usize);
            now = self.outlet.flush(&self.term, &mut self.tally);
            left -= count;
            self.tally.roll(now, emit);
            self.outlet.take_replies(&self.term, &mut self.tally);
        }
    }

    /// Uses the processor until `count` datagrams have taken the time that they are to take.
    #[inline]
    fn spend(&mut self, count: usize) {
        if !self.cost.is_none() {
            let term = self.term;
            let is_stopped = || term.is_stopped();
            self.cost.spend(count, clock::thread_cpu_ns, is_stopped);
        }
    }

    /// Sends for each client in turn, one datagram at a time, and waits after each in the way that
    /// the trial names.
    fn waiting(
        &mut self,
        mut pause: Option<ClientPause>,
        max: u64,
        emit: &mut dyn FnMut(u64, u64),
    ) {
        let (clients, mut client) = (self.outlet.clients(), 0);
        let (mut left, mut expected) = (max, Nanos::MAX);
        let term = self.term;
        // Those that sleep have a thread each, with one client.
        if let [first] = first_sends(self.spec, self.share)[..] {
            term.sleep_until(first);
        }
        loop {
            let now = term.now();
            self.tally.stalled(now - expected);
            self.tally.roll(now, emit);
            self.outlet.take_replies(&term, &mut self.tally);
            if left == 0 || now >= term.end || term.is_stopped() {
                return;
            }
            self.spend(1);
            if !self.cost.is_none() && term.now() >= term.end {
                return;
            }
            self.outlet.push(client, None);
            self.outlet.flush(&term, &mut self.tally);
            left -= 1;
            if left == 0 {
                return;
            }
            match &mut pause {
                Some(pause) => {
                    let asleep = term.now();
                    let until = pause.after(client, asleep);
                    expected = until.min(term.end);
                    match pause {
                        ClientPause::For(..) => term.sleep_for(asleep, until - asleep),
                        ClientPause::Tick { .. } => term.sleep_until(until),
                    }
                }
                None if self.spec.wait == ClientWait::Yield => std::thread::yield_now(),
                None => clock::sleep_for(0),
            }
            client = if client + 1 < clients { client + 1 } else { 0 };
        }
    }
}

/// Whether clients that sleep are states of one thread, not threads that sleep.
fn is_emulated(spec: &UdpTrialSpec) -> bool {
    let sleeps = matches!(spec.wait, ClientWait::Sleep(_) | ClientWait::Tick(_));
    sleeps && spec.carried_as == ClientsAs::Multiplexed
}
