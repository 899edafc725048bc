//! The generator in virtual time: the real driver and recorder over connections that are only
//! counted.

use super::World;
use super::agenda::{Agenda, SimulatedEvent};
use super::request::{RequestFate, SimulatedRequest, Ticket};
use crate::station::StallSchedule;
use knee_load::driver::{Action, AnyDriver, Driver};
use knee_load::measure::Op;
use knee_load::measure::{Completion, Measurement, Outcome, Recorder, RecorderConfig, Window};
use knee_load::pool::ConnectionQueue;
use knee_load::sentinel::Sentinels;
use knee_load::spec::{Load, Share, TrialSpec};
use knee_load::time::Nanos;

/// Maximum number of starts kept for the gap statistics.
const STARTS_MAX: usize = 1 << 20;

/// All operations of a trial, including those that wait for a connection.
#[derive(Debug)]
pub(super) struct Generator {
    driver: AnyDriver,
    sentinels: Option<Sentinels>,
    recorder: Recorder,
    stalls: StallSchedule,
    transport: Nanos,
    timeout: Nanos,
    operations_max: Option<u64>,
    window_end: Nanos,
    /// The next action of the driver.
    next: Action,
    slots: Vec<Slot>,
    free: Vec<u32>,
    waiting: ConnectionQueue<Ticket>,
    connections: Connections,
    /// Operations started or shed so far.
    made: u64,
    in_flight: u64,
    last_end: Nanos,
}

/// Room for one operation.
#[derive(Clone, Copy, Debug)]
struct Slot {
    op: Op,
    started: Nanos,
    sent: Option<Nanos>,
    /// The number of its connection; 0 while it waits for one.
    connection: u64,
    generation: u32,
    occupied: bool,
    /// Time of the pending check of its deadline; kept for the next operation in this slot.
    deadline_check: Option<Nanos>,
}

impl Generator {
    pub(super) fn new(spec: &TrialSpec, world: &World) -> Generator {
        let window = Window { start: spec.warmup, end: spec.window_end() };
        let connections_max = match &spec.load {
            Load::Open(load) => load.connections_max,
            Load::Closed { vusers, .. } => *vusers,
            // Its stations accept every connection at once, so none waits.
            Load::Overload(load) => load.scheme.connecting_max(),
        };
        Generator {
            driver: AnyDriver::new(spec, Share::WHOLE),
            sentinels: Sentinels::of(spec),
            recorder: Recorder::new(RecorderConfig {
                of_sessions: false,
                ..RecorderConfig::of(spec, STARTS_MAX)
            }),
            stalls: StallSchedule::new(&world.client_stalls),
            transport: world.transport,
            timeout: spec.timeout,
            operations_max: spec.operations_max,
            window_end: window.end,
            next: Action::Done,
            slots: Vec::new(),
            free: Vec::new(),
            waiting: ConnectionQueue::new(connections_max.into()),
            connections: Connections {
                keep_alive: spec.target.keep_alive,
                max: u64::from(connections_max).max(1),
                ..Connections::default()
            },
            made: 0,
            in_flight: 0,
            last_end: Nanos::ZERO,
        }
    }

    /// Starts what is due at the beginning of the run.
    pub(super) fn begin(&mut self, agenda: &mut Agenda) {
        if let Some(due) = self.sentinels.as_ref().and_then(Sentinels::next_due) {
            agenda.add(due, SimulatedEvent::Sentinel);
        }
        self.pump(self.stalls.after(Nanos::ZERO), agenda);
    }

    /// Whether no operation will start and none is in flight.
    pub(super) fn is_over(&self) -> bool {
        self.next == Action::Done && self.in_flight == 0
    }

    /// Time of its next action unless an event comes first.
    pub(super) fn wakes_at(&self) -> Nanos {
        match self.next {
            Action::WaitUntil(moment) => self.stalls.after(moment),
            _ => Nanos::MAX,
        }
    }

    /// Starts the operations that are due.
    pub(super) fn wake(&mut self, agenda: &mut Agenda) {
        let now = self.wakes_at();
        if let Action::WaitUntil(moment) = self.next {
            self.recorder.on_stall(now, now - moment);
        }
        self.pump(now, agenda);
    }

    /// Sends the station's answer, given at `now`, on its way back.
    pub(super) fn answer(
        &mut self,
        request: SimulatedRequest,
        answer: RequestFate,
        now: Nanos,
        agenda: &mut Agenda,
    ) {
        let noticed = self.stalls.after(now + self.transport);
        agenda.add(noticed, SimulatedEvent::Answer { request, answer });
    }

    /// Sends the answer of a failing server after its delay, if there is one.
    pub(super) fn answer_if_any(
        &mut self,
        request: SimulatedRequest,
        fault: Option<(RequestFate, Nanos)>,
        now: Nanos,
        agenda: &mut Agenda,
    ) {
        if let Some((answer, after)) = fault {
            self.answer(request, answer, now + after, agenda);
        }
    }

    /// The server's process dies: its kernel resets all connections.
    pub(super) fn on_crash(&mut self, now: Nanos, agenda: &mut Agenda) {
        for slot in 0..self.slots.len() {
            let state = self.slots[slot];
            if let Some(sent) = state.sent.filter(|_| state.occupied) {
                let request = SimulatedRequest {
                    ticket: Ticket { slot: slot as u32, generation: state.generation },
                    arrives: sent + self.transport,
                    connection: state.connection,
                };
                self.answer(request, RequestFate::Reset, now, agenda);
            }
        }
    }

    /// Starts a sentinel. Returns whether the sentinels have shown enough.
    pub(super) fn on_sentinel(&mut self, now: Nanos, agenda: &mut Agenda) -> bool {
        let Some(sentinels) = &mut self.sentinels else {
            return false;
        };
        let op = sentinels.begin(now);
        let arrives = now + self.transport;
        // No other connection has this number.
        let connection = u64::MAX - u64::from(op.lane);
        let ticket = Ticket { slot: Ticket::SENTINEL, generation: op.lane };
        let request = SimulatedRequest { ticket, arrives, connection };
        agenda.add(arrives, SimulatedEvent::Arrive(request));
        if let Some(due) = sentinels.next_due() {
            agenda.add(due, SimulatedEvent::Sentinel);
        }
        sentinels.have_shown_enough(now)
    }

    /// Handles an answer that has come back.
    pub(super) fn on_answer(
        &mut self,
        request: SimulatedRequest,
        answer: RequestFate,
        now: Nanos,
        agenda: &mut Agenda,
    ) {
        let ticket = request.ticket;
        self.recorder.on_stall(now, self.stalls.ended_at(now));
        if ticket.slot == Ticket::SENTINEL {
            let op = Op { intended: now, lane: ticket.generation };
            let ended = Completion::at_once(op, now, answer.outcome());
            self.sentinels.iter_mut().for_each(|sentinels| sentinels.on_completion(&ended));
        } else if self.is_current(ticket) {
            self.end(ticket.slot, answer.outcome(), now, agenda);
            self.pump(now, agenda);
        }
    }

    /// Checks the deadline of the operation in this slot.
    pub(super) fn on_deadline(&mut self, slot: u32, now: Nanos, agenda: &mut Agenda) {
        let state = &mut self.slots[slot as usize];
        if state.deadline_check != Some(now) {
            return;
        }
        state.deadline_check = None;
        if !state.occupied {
            return;
        }
        if state.op.intended + self.timeout > now {
            self.watch(slot, now, agenda);
            return;
        }
        self.end(slot, Outcome::Timeout, now, agenda);
        self.pump(now, agenda);
    }

    /// Ends the trial at once: operations in flight stay unfinished, and the window ends.
    pub(super) fn interrupt(&mut self, now: Nanos) {
        self.window_end = self.window_end.min(now);
        for state in self.slots.iter_mut().filter(|s| s.occupied) {
            state.occupied = false;
            let ended = Completion::at_once(state.op, now, Outcome::InFlight);
            let ended = ended.exchanged(state.started, state.sent.unwrap_or(now));
            self.recorder.on_completion(&ended);
        }
    }

    /// Returns the measurement.
    pub(super) fn finish(self) -> Measurement {
        let is_complete = self.operations_max.is_some_and(|max| self.made >= max);
        let end = if is_complete { self.last_end } else { self.window_end };
        let mut measurement = self.recorder.finish(end);
        measurement.attempts = self.driver.finish(end);
        measurement.sentinels =
            self.sentinels.map_or(Vec::new(), |sentinels| sentinels.finish(end));
        measurement.connections_opened = self.connections.opened;
        measurement.connections_max = self.connections.open_max;
        measurement
    }

    /// Carries out the driver's actions until it waits.
    fn pump(&mut self, now: Nanos, agenda: &mut Agenda) {
        loop {
            self.next = self.driver.poll(now);
            match self.next {
                Action::Start(op) => {
                    self.recorder.on_start(op, now);
                    self.start(op, now, agenda);
                }
                Action::Retry(op) => {
                    self.recorder.on_retry(op, now);
                    self.start(op, now, agenda);
                }
                Action::Shed(op) => {
                    self.made += 1;
                    self.last_end = now;
                    self.recorder.on_completion(&Completion::at_once(op, now, Outcome::Shed));
                }
                Action::WaitUntil(_) | Action::WaitForCompletion | Action::Done => return,
            }
        }
    }

    fn start(&mut self, op: Op, now: Nanos, agenda: &mut Agenda) {
        self.made += 1;
        self.in_flight += 1;
        let ticket = self.occupy(op, now);
        self.watch(ticket.slot, now, agenda);
        match self.connections.acquire() {
            Some(connection) => self.send(ticket, connection, now, agenda),
            None => self.waiting.push(op.intended + self.timeout, ticket),
        }
    }

    fn occupy(&mut self, op: Op, now: Nanos) -> Ticket {
        let fresh = Slot {
            op,
            started: now,
            sent: None,
            connection: 0,
            generation: 0,
            occupied: true,
            deadline_check: None,
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(fresh);
            self.slots.len() as u32 - 1
        });
        let state = &mut self.slots[slot as usize];
        let (generation, deadline_check) = (state.generation.wrapping_add(1), state.deadline_check);
        *state = Slot { generation, deadline_check, ..fresh };
        Ticket { slot, generation: state.generation }
    }

    /// Schedules a check of the slot's deadline. A pending check of an earlier operation in the
    /// slot is sufficient: it schedules the next one. So checks do not pile up.
    fn watch(&mut self, slot: u32, now: Nanos, agenda: &mut Agenda) {
        let state = &mut self.slots[slot as usize];
        let deadline = self.stalls.after(now.max(state.op.intended + self.timeout));
        if state.deadline_check.is_none_or(|check| check > deadline) {
            state.deadline_check = Some(deadline);
            agenda.add(deadline, SimulatedEvent::Deadline(slot));
        }
    }

    fn send(&mut self, ticket: Ticket, connection: u64, now: Nanos, agenda: &mut Agenda) {
        let state = &mut self.slots[ticket.slot as usize];
        state.sent = Some(now);
        state.connection = connection;
        let arrives = now + self.transport;
        let request = SimulatedRequest { ticket, arrives, connection };
        agenda.add(arrives, SimulatedEvent::Arrive(request));
    }

    fn is_current(&self, ticket: Ticket) -> bool {
        let state = &self.slots[ticket.slot as usize];
        state.occupied && state.generation == ticket.generation
    }

    fn end(&mut self, slot: u32, outcome: Outcome, now: Nanos, agenda: &mut Agenda) {
        let state = &mut self.slots[slot as usize];
        state.occupied = false;
        let state = *state;
        let sent = state.sent.filter(|_| outcome != Outcome::Refused);
        let completion = Completion {
            status: status_of(outcome),
            ..Completion::at_once(state.op, now, outcome)
                .exchanged(state.started, sent.unwrap_or(now))
        };
        self.free.push(slot);
        self.in_flight -= 1;
        self.last_end = now;
        self.recorder.on_completion(&completion);
        self.driver.on_completion(&completion, now);
        if let Some(sent) = state.sent {
            if outcome.is_response() || outcome == Outcome::Timeout {
                self.waiting.note(now - sent, outcome.is_response());
            }
            self.connections.release(state.connection, outcome);
            self.send_waiting(now, agenda);
        }
    }

    fn send_waiting(&mut self, now: Nanos, agenda: &mut Agenda) {
        // Expired operations are ended by their deadlines.
        while self.waiting.expire(now).is_some() {}
        while self.connections.has_room()
            && let Some(ticket) = self.waiting.take(now)
        {
            // Its time may have run out while it waited.
            if self.is_current(ticket)
                && let Some(connection) = self.connections.acquire()
            {
                self.send(ticket, connection, now, agenda);
            }
        }
    }
}

/// Status of a response.
fn status_of(outcome: Outcome) -> u16 {
    match outcome {
        Outcome::Ok | Outcome::Served => 200,
        Outcome::HTTP_4XX => 404,
        Outcome::HTTP_5XX => 503,
        _ => 0,
    }
}

/// Connections, numbered; connecting takes no time. The one that was used last is taken first.
#[derive(Debug, Default)]
struct Connections {
    keep_alive: bool,
    max: u64,
    in_use: u64,
    idle: Vec<u64>,
    opened: u64,
    open_max: u64,
}

impl Connections {
    /// Whether a connection is available.
    fn has_room(&self) -> bool {
        self.in_use < self.max
    }

    /// Takes an idle connection or opens one; `None` at the limit.
    fn acquire(&mut self) -> Option<u64> {
        if !self.has_room() {
            return None;
        }
        self.in_use += 1;
        let idle = self.idle.pop();
        if idle.is_none() {
            self.opened += 1;
            self.open_max = self.open_max.max(self.in_use);
        }
        Some(idle.unwrap_or(self.opened))
    }

    /// Returns a connection. It is closed if its operation ended without an answer.
    fn release(&mut self, connection: u64, outcome: Outcome) {
        self.in_use -= 1;
        if self.keep_alive && outcome.is_response() {
            self.idle.push(connection);
        }
    }
}
