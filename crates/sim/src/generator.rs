//! The generator in virtual time: the real driver and recorder over connections that are only
//! counted.

use super::World;
use super::agenda::{Agenda, SimulatedEvent};
use crate::station::StallSchedule;
use knee_load::driver::{Action, AnyDriver, Driver};
use knee_load::measure::Op;
use knee_load::measure::{Completion, Measurement, Outcome, Recorder, RecorderConfig, Window};
use knee_load::pool::ConnectionQueue;
use knee_load::sentinel::Sentinels;
use knee_load::spec::{Load, Share, TrialSpec};
use knee_load::time::Nanos;

/// A request under way. The answer to one whose operation has ended meanwhile is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SimulatedRequest {
    ticket: Ticket,
    /// When it comes to the station.
    pub(super) arrives: Nanos,
    /// The number of its connection, from 1 on in the order of opening.
    pub(super) connection: u64,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RequestFate {
    /// A response with a status below 400.
    Served,
    /// A response with a status of 500 or more.
    Rejected,
    /// The connection is refused.
    Refused,
    /// The connection is reset.
    Reset,
}

impl RequestFate {
    fn outcome(self) -> Outcome {
        match self {
            RequestFate::Served => Outcome::Ok,
            RequestFate::Rejected => Outcome::HTTP_5XX,
            RequestFate::Refused => Outcome::Refused,
            RequestFate::Reset => Outcome::Reset,
        }
    }
}

/// One use of a slot: tells whether an operation is still the one that it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ticket {
    slot: u32,
    generation: u32,
}

impl Ticket {
    /// The slot of all sentinels; their generation is their number.
    const SENTINEL: u32 = u32::MAX;
}

/// Maximum starts that are kept for the gap statistics.
const STARTS_MAX: usize = 1 << 20;

/// All operations of a trial, those that wait for a connection included.
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
    /// What the driver wants next, after all that was due.
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
    /// When its time will be looked at; kept when the operation ends, for the next one.
    deadline_look: Option<Nanos>,
}

impl Generator {
    pub(super) fn new(spec: &TrialSpec, world: &World) -> Generator {
        let window = Window { start: spec.warmup, end: spec.window_end() };
        let connections_max = match &spec.load {
            Load::Open(load) => load.connections_max,
            Load::Closed { vusers, .. } => *vusers,
            // Its stations take every connection in at once, so none of them waits.
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

    /// Nothing will start any more, and nothing is in flight.
    pub(super) fn is_over(&self) -> bool {
        self.next == Action::Done && self.in_flight == 0
    }

    /// When it does something unless an event comes first.
    pub(super) fn wakes_at(&self) -> Nanos {
        match self.next {
            Action::WaitUntil(moment) => self.stalls.after(moment),
            _ => Nanos::MAX,
        }
    }

    /// Starts what it has waited for.
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

    /// The same of a server that fails: after a time of its own, or never.
    pub(super) fn answer_after(
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

    /// A sentinel begins. Returns whether they have shown enough.
    pub(super) fn on_sentinel(&mut self, now: Nanos, agenda: &mut Agenda) -> bool {
        let Some(sentinels) = &mut self.sentinels else {
            return false;
        };
        let op = sentinels.begin(now);
        let arrives = now + self.transport;
        // Nobody else has a connection with this number.
        let connection = u64::MAX - u64::from(op.lane);
        let ticket = Ticket { slot: Ticket::SENTINEL, generation: op.lane };
        let request = SimulatedRequest { ticket, arrives, connection };
        agenda.add(arrives, SimulatedEvent::Arrive(request));
        if let Some(due) = sentinels.next_due() {
            agenda.add(due, SimulatedEvent::Sentinel);
        }
        sentinels.have_shown_enough(now)
    }

    /// An answer has come back.
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

    /// The time of the operation in this slot, or of an earlier one in it, may be over.
    pub(super) fn on_deadline(&mut self, slot: u32, now: Nanos, agenda: &mut Agenda) {
        let state = &mut self.slots[slot as usize];
        if state.deadline_look != Some(now) {
            return;
        }
        state.deadline_look = None;
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

    /// Ends everything at once: what is under way stays unfinished, and the window ends here.
    pub(super) fn interrupt(&mut self, now: Nanos) {
        self.window_end = self.window_end.min(now);
        for state in self.slots.iter_mut().filter(|s| s.occupied) {
            state.occupied = false;
            let ended = Completion::at_once(state.op, now, Outcome::InFlight);
            let ended = ended.exchanged(state.started, state.sent.unwrap_or(now));
            self.recorder.on_completion(&ended);
        }
    }

    /// Closes the books.
    pub(super) fn finish(self) -> Measurement {
        let all_made = self.operations_max.is_some_and(|max| self.made >= max);
        let end = if all_made { self.last_end } else { self.window_end };
        let mut measurement = self.recorder.finish(end);
        measurement.attempts = self.driver.finish(end);
        measurement.sentinels = self.sentinels.map_or(Vec::new(), |all| all.finish(end));
        measurement.connections_opened = self.connections.opened;
        measurement.connections_max = self.connections.open_max;
        measurement
    }

    /// Does what the driver wants until it wants to wait.
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
            deadline_look: None,
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(fresh);
            self.slots.len() as u32 - 1
        });
        let state = &mut self.slots[slot as usize];
        let (generation, deadline_look) = (state.generation.wrapping_add(1), state.deadline_look);
        *state = Slot { generation, deadline_look, ..fresh };
        Ticket { slot, generation: state.generation }
    }

    /// Sees to it that the slot's deadline is looked at in time. A look left from an earlier
    /// operation will do: it comes first, and then asks for another; so looks do not pile up.
    fn watch(&mut self, slot: u32, now: Nanos, agenda: &mut Agenda) {
        let state = &mut self.slots[slot as usize];
        let deadline = self.stalls.after(now.max(state.op.intended + self.timeout));
        if state.deadline_look.is_none_or(|look| look > deadline) {
            state.deadline_look = Some(deadline);
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
        // Their deadlines end them.
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

/// The status that a response has.
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
    /// Whether there is one to be had.
    fn has_room(&self) -> bool {
        self.in_use < self.max
    }

    /// Takes an idle one or opens one; `None` if there is none to be had.
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

    /// Gives one back. What ended without an answer has lost its connection.
    fn release(&mut self, connection: u64, outcome: Outcome) {
        self.in_use -= 1;
        if self.keep_alive && outcome.is_response() {
            self.idle.push(connection);
        }
    }
}
