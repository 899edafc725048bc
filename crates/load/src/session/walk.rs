//! The walk of one user through a session: its state, and its next step.

use super::escape::{UnfitReason, encode_path};
use super::fill::{FILLED_BYTES_MAX, FillScope, Fills};
use super::origin::resolve;
use super::plan::{Ask, Expectation, Instruction, SessionPlan, Source};
use super::response_reader::{ReadResponse, ResponseReaders};
use super::template::{Template, TemplatePiece};
use super::user_state::UserState;
use super::users::Users;
use crate::rng;
use crate::time::Nanos;
use std::rc::Rc;

mod filling;
mod repeating;
mod unexpected;

pub use filling::UnfitValue;
pub use unexpected::Unexpected;

use repeating::RepetitionState;

/// Steps that a session makes at once, before it yields to others. Those of a request, a pause or a
/// branch count too.
pub const STEPS_AT_ONCE_MAX: u32 = 1_000;

/// What a session does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It sends this request of the target.
    Request(u32),
    /// It pauses.
    Think(Nanos),
    /// It goes on, after others had their turn and the clock was looked at.
    Yield,
    /// It cannot go on to this request, because of a value: how often steps are repeated, or one
    /// that is set.
    Unfit(u32, UnfitReason),
    /// It walks through several branches from here on, by this instruction.
    Fork(u32),
    /// A branch has ended.
    Join,
    /// It is over.
    Over,
}

/// A response that is whole.
#[derive(Clone, Copy, Debug)]
pub struct WholeResponse {
    /// Its session's number.
    pub session: u32,
    /// Its status.
    pub status: u16,
    /// Whether this status is a success by its protocol.
    pub is_success: bool,
    /// Its response time.
    pub response: Nanos,
    /// The time of day.
    pub realtime_ns: u64,
}

/// What follows from a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterResponse {
    /// The next step.
    Next,
    /// This request of the target, for where the response redirects to.
    Redirected(u32),
    /// It was not what was expected: the expectation of this number, the extractions after all
    /// expectations.
    Unexpected(u16),
    /// Nothing was said of the status, and it is 400 or more.
    BadStatus,
    /// Nothing was said of the status, and it redirects once more than is permitted.
    TooManyRedirections,
}

/// A session's user.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    /// Its number among all sessions of the run.
    number: u64,
    kind: u16,
    at: u32,
    repetitions: Vec<RepetitionState>,
    /// The groups that it is in, and when it came to each.
    groups: Vec<(u16, Nanos)>,
    /// Groups that it left since the last call, and when each began and ended.
    left_groups: Vec<(u16, Nanos, Nanos)>,
    learnt: UserState,
    /// The server and the path that were asked last.
    server: u16,
    path: Vec<u8>,
    /// Those before.
    server_before: u16,
    before: Vec<u8>,
    redirects_left: u32,
    /// The request of the step whose redirections are followed, as it was sent.
    redirected_from: Option<u32>,
    /// What the holes of that request were filled with, once it `is_sent_kept`.
    sent: Fills,
    is_sent_kept: bool,
    /// Where the last response redirected to.
    location: Vec<u8>,
}

impl Walk {
    /// A new user takes this place, `in_warmup` or in the measured time. `false` where a data set
    /// has no record left for it.
    pub fn begin(&mut self, users: &mut Users, in_warmup: bool) -> bool {
        self.number = users.number();
        self.kind = users.draw_kind();
        self.at = 0;
        let plan = Rc::clone(users.plan());
        let kind = &plan.kinds[usize::from(self.kind)];
        self.repetitions.clear();
        self.repetitions.resize(kind.repetitions.len(), RepetitionState::default());
        self.groups.clear();
        self.left_groups.clear();
        self.learnt.clear(kind.variables.len());
        self.path.clear();
        self.server = 0;
        for set in &kind.data {
            match users.deal(*set, in_warmup) {
                Some(row) => self.learnt.add_row(row),
                None => return false,
            }
        }
        self.redirected_from = None;
        true
    }

    /// Becomes a branch of another walk, which begins at the instruction `at`. What the user knows
    /// stays with that one, and is lent (`lend`) for each step.
    pub fn branch_off(&mut self, of: &Walk, at: u32) {
        (self.number, self.kind, self.at) = (of.number, of.kind, at);
        self.repetitions.clone_from(&of.repetitions);
        self.groups.clear();
        self.left_groups.clear();
        (self.server, self.server_before) = (of.server, of.server_before);
        self.path.clone_from(&of.path);
        self.before.clone_from(&of.before);
        self.redirected_from = None;
    }

    /// Lends another walk what its user knows, or takes it back.
    pub fn lend(&mut self, to: &mut Walk) {
        std::mem::swap(&mut self.learnt, &mut to.learnt);
    }

    /// Its number, which no other session of the run has.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The values of all its variables.
    pub fn variables(&self) -> &[Vec<u8>] {
        self.learnt.variables()
    }

    /// Its kind of session.
    pub fn kind(&self) -> u16 {
        self.kind
    }

    /// As the response to which request that to `request` is read: where a redirection is
    /// followed, as that of the step.
    pub fn reads_as(&self, request: u32, plan: &SessionPlan) -> u32 {
        plan.first_of(self.redirected_from.unwrap_or(request))
    }

    /// What it does next, at `due` by the clock of the run, within what is left of
    /// [`STEPS_AT_ONCE_MAX`].
    pub fn next(
        &mut self,
        users: &mut Users,
        due: Nanos,
        realtime_ns: u64,
        steps_left: &mut u32,
    ) -> Next {
        let plan = Rc::clone(users.plan());
        let kind = &plan.kinds[usize::from(self.kind)];
        while *steps_left > 0 {
            *steps_left -= 1;
            let Some(instruction) = kind.program.get(self.at as usize) else {
                return Next::Over;
            };
            self.at += 1;
            match instruction {
                Instruction::Request(request) => {
                    self.redirected_from = None;
                    self.redirects_left = plan.requests[*request as usize].redirects;
                    return Next::Request(*request);
                }
                Instruction::Think(law) => return Next::Think(law.sample(users.rng())),
                Instruction::Jump(to) => self.at = *to,
                Instruction::Unless { condition, to } => {
                    if !condition.is_so(&mut |of| self.text(of, users, realtime_ns)) {
                        self.at = *to;
                    }
                }
                Instruction::Begin(number) => {
                    let repetition = &kind.repetitions[usize::from(*number)];
                    match self.begun(repetition, users, realtime_ns) {
                        Ok(state) => self.repetitions[usize::from(*number)] = state,
                        Err(reason) => {
                            self.repetitions[usize::from(*number)] = RepetitionState::default();
                            return self.unfit(&kind.program, reason);
                        }
                    }
                }
                Instruction::Pass { repetition: number, end } => {
                    let repetition = &kind.repetitions[usize::from(*number)];
                    if !self.passes(*number, repetition, users, realtime_ns) {
                        self.at = *end;
                    }
                }
                Instruction::Choose(arms) => {
                    let all = arms.last().map_or(0, |(sum, _)| *sum);
                    let drawn = (rng::unit(users.rng()) * all as f64) as u64;
                    let chosen = arms.iter().find(|(sum, _)| drawn < *sum).or(arms.last());
                    self.at = chosen.map_or(self.at, |(_, to)| *to);
                }
                Instruction::Set { variable, value } => {
                    let value = self.text(value, users, realtime_ns);
                    if value.len() > FILLED_BYTES_MAX {
                        return self.unfit(&kind.program, UnfitReason::TooLong);
                    }
                    self.learnt.set(*variable, value);
                }
                Instruction::Fork(_) => return Next::Fork(self.at - 1),
                Instruction::Join(to) => {
                    self.at = *to;
                    return Next::Join;
                }
                Instruction::Enter(group) => self.groups.push((*group, due)),
                Instruction::Leave(_) => {
                    let left = self.groups.pop();
                    self.left_groups.extend(left.map(|(group, from)| (group, from, due)));
                }
            }
        }
        Next::Yield
    }

    /// A value before the next request of its program cannot be used.
    fn unfit(&self, program: &[Instruction], reason: UnfitReason) -> Next {
        let request = program[self.at as usize..].iter().find_map(Instruction::request);
        Next::Unfit(request.unwrap_or_default(), reason)
    }

    /// A group that it left since the last call, and when that began and ended.
    #[inline]
    pub fn take_left(&mut self) -> Option<(u16, Nanos, Nanos)> {
        self.left_groups.pop()
    }

    /// The next action and the pause before it, from `due` on. Both are settled before the pause
    /// begins, so that a program can be asked for the next step's values meanwhile. Of all that a
    /// condition may ask only the time of day changes in a pause: it is that of the pause's end.
    pub fn ahead(
        &mut self,
        users: &mut Users,
        due: Nanos,
        realtime_ns: u64,
        steps_left: &mut u32,
    ) -> (Nanos, Next) {
        let mut pause = Nanos::ZERO;
        loop {
            let realtime_ns = realtime_ns.saturating_add(pause.0);
            match self.next(users, due + pause, realtime_ns, steps_left) {
                Next::Think(time) => pause += time,
                next => return (pause, next),
            }
        }
    }

    /// A program is asked for values: those that it gave before are gone.
    pub fn forget_given(&mut self, ask: &Ask) {
        for &(_, variable) in &ask.gives {
            self.learnt.set(variable, Vec::new());
        }
    }

    /// Takes values that a program gave.
    pub fn take_given(&mut self, values: Vec<(u16, Vec<u8>)>) {
        for (variable, value) in values {
            self.learnt.set(variable, value);
        }
    }

    /// The value of a piece of a template.
    pub fn value(&self, piece: &TemplatePiece, users: &mut Users, realtime_ns: u64) -> Vec<u8> {
        let mut value = Vec::new();
        let mut scope = self.scope(users, realtime_ns);
        scope.put(std::slice::from_ref(piece), &mut value);
        value
    }

    /// The response to `request` is whole. What was learnt from it is kept.
    pub fn answered(
        &mut self,
        request: u32,
        answered: WholeResponse,
        readings: &mut ResponseReaders,
        users: &mut Users,
    ) -> AfterResponse {
        let answer = readings.end(answered.session);
        for cookie in answer.set_cookies() {
            let asked = (self.server, &self.path[..]);
            self.learnt.jar.take(cookie, asked, users.origins(), answered.realtime_ns);
        }
        let plan = Rc::clone(users.plan());
        // What is expected is expected of the response after all redirections.
        let step = self.reads_as(request, &plan);
        let from = self.redirected_from.unwrap_or(request);
        let location = answer.location();
        let to = plan.requests[from as usize].redirected;
        let sent = plan.first_of(request);
        let to = to.filter(|_| !location.is_empty());
        let to = to.and_then(|to| to.after(answered.status, sent));
        let to = to.and_then(|to| {
            self.location.clear();
            let asked = (self.server, &self.path[..]);
            let server = resolve(users.origins(), asked, location, &mut self.location);
            let to = server.and_then(|server| plan.on_server(to, server));
            users.led_away += u64::from(to.is_none());
            to
        });
        match to {
            Some(to) if self.redirects_left > 0 => {
                encode_path(&mut self.location);
                self.redirects_left -= 1;
                self.is_sent_kept &= self.redirected_from.is_some();
                self.redirected_from = Some(from);
                AfterResponse::Redirected(to)
            }
            beyond => self.check(&plan, step, answered, (&answer, beyond.is_some()), users),
        }
    }

    fn check(
        &mut self,
        plan: &SessionPlan,
        step: u32,
        answered: WholeResponse,
        (answer, is_redirected_further): (&ReadResponse<'_>, bool),
        users: &mut Users,
    ) -> AfterResponse {
        let step = &plan.requests[step as usize];
        let status = three_digits(answered.status);
        let value_of = |source: &Source, number| match source {
            Source::Status => Some(&status[..]),
            _ => answer.value(number),
        };
        let mut says_status = false;
        let mut after = AfterResponse::Next;
        for (number, expectation) in step.expect.iter().enumerate() {
            let is_met = match expectation {
                Expectation::Status(ranges) => {
                    says_status = true;
                    let status = answered.status;
                    ranges.iter().any(|(low, high)| (*low..=*high).contains(&status))
                }
                Expectation::Time(most) => answered.response <= *most,
                Expectation::Value { source, is } => {
                    let value = value_of(source, number);
                    let mut text = |template: &_| self.text(template, users, answered.realtime_ns);
                    !answer.is_unknown(number) && is.is_met(value, &mut text)
                }
            };
            if !is_met {
                after = AfterResponse::Unexpected(number as u16);
                break;
            }
        }
        if after == AfterResponse::Next && !says_status {
            if !answered.is_success {
                after = AfterResponse::BadStatus;
            } else if is_redirected_further {
                after = AfterResponse::TooManyRedirections;
            }
        }
        for (number, extraction) in step.extract.iter().enumerate() {
            let number = step.expect.len() + number;
            // A session that goes on has what the response gives: conditions can ask for it.
            if after != AfterResponse::Next && !step.goes_on {
                break;
            }
            let value = value_of(&extraction.source, number);
            let otherwise = extraction.otherwise.as_deref().map(str::as_bytes);
            match value.or(otherwise) {
                Some(value) => self.learnt.set(extraction.variable, value.to_vec()),
                None if after == AfterResponse::Next => {
                    after = AfterResponse::Unexpected(number as u16);
                }
                None => {}
            }
        }
        after
    }

    fn scope<'a>(&'a self, users: &'a mut Users, realtime_ns: u64) -> FillScope<'a> {
        FillScope {
            learnt: &self.learnt,
            users,
            path: &self.path,
            server: self.server,
            sent: &self.sent,
            before: (self.server_before, &self.before),
            realtime_ns,
        }
    }

    fn text(&self, template: &Template, users: &mut Users, realtime_ns: u64) -> Vec<u8> {
        self.scope(users, realtime_ns).text(template)
    }
}

/// A status as it is written (RFC 9110 §15).
fn three_digits(status: u16) -> [u8; 3] {
    [status / 100, status / 10, status].map(|n| b'0' + (n % 10) as u8)
}

#[cfg(test)]
mod tests;
