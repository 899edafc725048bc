//! Users who try again after a failed attempt.

use super::{Action, AnyDriver, Driver};
use crate::measure::{AttemptsMeasured, AttemptsRecorder, Completion, Op, Outcome, Window};
use crate::rng::Rng;
use crate::spec::{RetryBudget, RetryCause, RetryPolicy, Share, TrialSpec, jitter_rng};
use crate::time::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A driver whose operations are retried when they fail.
///
/// The driver beneath starts requests and hears of the end of each once: of the attempt that was
/// served, or of the last one. Its intended time is then that of the first attempt. A retry is
/// intended when its pause ends. None starts at or after the end of the window, so a request may
/// stay without an end.
///
/// The lane of an attempt is the place of its request here. Where users own connections, it is the
/// user's own lane.
#[derive(Debug)]
pub struct Retrying {
    inner: AnyDriver,
    policy: RetryPolicy,
    /// Users own lanes; else a request gets a place that is free.
    has_lanes: bool,
    end: Nanos,
    budget: Option<RetryBudget>,
    rng: Rng,
    /// Requests under way, by lane.
    requests: Vec<Request>,
    /// Places without a request.
    free: Vec<u32>,
    /// Pending retries, by their time.
    due: BinaryHeap<Reverse<(Nanos, u32)>>,
    recorder: AttemptsRecorder,
}

/// A request under way.
#[derive(Clone, Copy, Debug, Default)]
struct Request {
    /// Intended time of the first attempt.
    first: Nanos,
    /// Retries so far.
    retries: u32,
}

/// Places made before a run at the most; more are made where more requests are under way.
const PLACES_MAX: f64 = 1_000_000.0;

impl Retrying {
    /// Retries by `policy` over the driver of one worker's share of the trial.
    pub(super) fn new(
        inner: AnyDriver,
        policy: &RetryPolicy,
        spec: &TrialSpec,
        share: Share,
    ) -> Retrying {
        let has_lanes = spec.load.schedule().is_none();
        let places = places(spec, policy, share);
        let window = Window { start: spec.warmup, end: spec.window_end() };
        let mut requests = Vec::with_capacity(places);
        if has_lanes {
            requests.resize(places, Request::default());
        }
        Retrying {
            inner,
            policy: policy.clone(),
            has_lanes,
            end: spec.window_end(),
            budget: policy.budget.map(RetryBudget::new),
            rng: jitter_rng(spec.seed, share.index),
            requests,
            free: Vec::with_capacity(if has_lanes { 0 } else { places }),
            due: BinaryHeap::with_capacity(places),
            recorder: AttemptsRecorder::new(window, spec.interval),
        }
    }

    /// What was measured of requests in a window that ended at `end` at the latest.
    pub fn finish(self, end: Nanos) -> AttemptsMeasured {
        self.recorder.finish(end)
    }

    #[inline]
    fn begin(&mut self, op: Op, now: Nanos) -> Action {
        let request = Request { first: op.intended, retries: 0 };
        let lane = if self.has_lanes {
            self.requests[op.lane as usize] = request;
            op.lane
        } else if let Some(lane) = self.free.pop() {
            self.requests[lane as usize] = request;
            lane
        } else {
            self.requests.push(request);
            (self.requests.len() - 1) as u32
        };
        if let Some(budget) = &mut self.budget {
            budget.earn();
        }
        self.recorder.on_request(op.intended, now);
        Action::Start(Op { lane, ..op })
    }

    /// Time of the retry of a request that failed; `None` where there is none.
    #[inline]
    fn next_attempt(&mut self, request: Request, failed: &Completion, now: Nanos) -> NextAttempt {
        if request.retries >= self.policy.retries_max
            || !cause_of(failed).is_some_and(|cause| self.policy.causes.has(cause))
        {
            return NextAttempt::None;
        }
        if !self.budget.as_mut().is_none_or(RetryBudget::spend) {
            return NextAttempt::OverBudget;
        }
        let pause = self.policy.pause(request.retries, &mut self.rng);
        NextAttempt::At(failed.picked_up.max(now) + pause)
    }
}

/// What follows a failed attempt.
enum NextAttempt {
    /// A retry.
    At(Nanos),
    /// The end of the request.
    None,
    /// The same, as the budget permits no retry.
    OverBudget,
}

/// Why an attempt failed, if that may be retried.
#[inline]
fn cause_of(completion: &Completion) -> Option<RetryCause> {
    Some(match completion.outcome {
        Outcome::Timeout
        | Outcome::ConnectTimeout
        | Outcome::ResponseTimeout
        | Outcome::HandshakeTimeout
        | Outcome::MessageTimeout => RetryCause::Timeout,
        Outcome::HTTP_5XX => RetryCause::Http5xx,
        Outcome::HTTP_4XX if completion.status == 429 => RetryCause::Http429,
        Outcome::Refused | Outcome::RefusedStream | Outcome::Unreachable => RetryCause::Refused,
        Outcome::Reset
        | Outcome::Closed
        | Outcome::Truncated
        | Outcome::Incomplete
        | Outcome::StreamReset
        | Outcome::Unprocessed => RetryCause::Reset,
        _ => return None,
    })
}

/// Requests that may be under way at once in one worker.
fn places(spec: &TrialSpec, policy: &RetryPolicy, share: Share) -> usize {
    match spec.load.schedule() {
        None => {
            let users = match spec.load {
                crate::spec::Load::Closed { vusers, .. } => vusers,
                _ => 0,
            };
            share.part(users.into()) as usize
        }
        Some((rate, arrival)) => {
            let lasts = policy.lasts_at_most(spec.timeout).min(spec.window_end());
            let peak = arrival.peak_per_s(rate) / f64::from(share.of.max(1));
            (peak * lasts.as_secs_f64()).clamp(16.0, PLACES_MAX) as usize
        }
    }
}

impl Driver for Retrying {
    #[inline]
    fn poll(&mut self, now: Nanos) -> Action {
        let due = self.due.peek().map(|Reverse(next)| *next);
        if let Some((intended, lane)) = due.filter(|&(at, _)| at <= now) {
            self.due.pop();
            let request = &mut self.requests[lane as usize];
            request.retries += 1;
            self.recorder.on_retry(request.first, intended, now);
            return Action::Retry(Op { intended, lane });
        }
        let next = match self.inner.poll(now) {
            Action::Start(op) => return self.begin(op, now),
            other => other,
        };
        match (next, due) {
            (Action::WaitUntil(at), Some((retry, _))) => Action::WaitUntil(at.min(retry)),
            (Action::WaitForCompletion | Action::Done, Some((retry, _))) => {
                Action::WaitUntil(retry)
            }
            (next, _) => next,
        }
    }

    #[inline]
    fn on_completion(&mut self, completion: &Completion, now: Nanos) {
        let request = self.requests[completion.lane as usize];
        let next = if completion.outcome.is_good() {
            self.recorder.on_good(request.first, completion);
            NextAttempt::None
        } else if completion.outcome == Outcome::InFlight {
            NextAttempt::None
        } else {
            let next = self.next_attempt(request, completion, now);
            if !matches!(next, NextAttempt::At(_)) {
                let is_over_budget = matches!(next, NextAttempt::OverBudget);
                self.recorder.on_failure(request.first, completion, is_over_budget);
            }
            next
        };
        if let NextAttempt::At(at) = next
            && at < self.end
        {
            return self.due.push(Reverse((at, completion.lane)));
        }
        if !self.has_lanes {
            self.free.push(completion.lane);
        }
        let ended = Completion { intended: request.first, ..*completion };
        self.inner.on_completion(&ended, now);
    }
}

#[cfg(test)]
mod tests;
