//! Users who try again after a failed attempt.

use super::{Action, AnyDriver, Driver};
use crate::measure::{AttemptsMeasured, AttemptsRecorder, Completion, Op, Outcome, Window};
use crate::rng::Rng;
use crate::spec::{RetryBudget, RetryCause, RetryPolicy, Share, TrialSpec, jitter_rng};
use crate::time::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Decides whether and when a failed attempt is followed by another, and counts requests and their
/// attempts, for one worker.
#[derive(Debug)]
pub struct Retries {
    policy: RetryPolicy,
    budget: Option<RetryBudget>,
    rng: Rng,
    end: Nanos,
    recorder: AttemptsRecorder,
}

impl Retries {
    /// Retries by `policy` in one worker's share of the trial. None starts at or after the end of
    /// the window, so a request may stay without an end.
    pub fn new(policy: &RetryPolicy, spec: &TrialSpec, share: Share) -> Retries {
        let window = Window { start: spec.warmup, end: spec.window_end() };
        Retries {
            policy: policy.clone(),
            budget: policy.budget.map(RetryBudget::new),
            rng: jitter_rng(spec.seed, share.index),
            end: window.end,
            recorder: AttemptsRecorder::new(window, spec.interval),
        }
    }

    /// Notes the first attempt of a request, which starts at `now`.
    #[inline]
    pub fn on_request(&mut self, intended: Nanos, now: Nanos) {
        if let Some(budget) = &mut self.budget {
            budget.earn();
        }
        self.recorder.on_request(intended, now);
    }

    /// Notes a retry, which starts at `now`, of a request first intended at `first`.
    #[inline]
    pub fn on_retry(&mut self, first: Nanos, intended: Nanos, now: Nanos) {
        self.recorder.on_retry(first, intended, now);
    }

    /// Notes the end of an attempt of a request that was first intended at `first` and has been
    /// retried `retries` times. Returns when the next attempt is to start, if there is one.
    #[inline]
    pub fn on_end(
        &mut self,
        first: Nanos,
        retries: u32,
        ended: &Completion,
        now: Nanos,
    ) -> Option<Nanos> {
        if ended.outcome.is_good() {
            self.recorder.on_good(first, ended);
            return None;
        }
        if ended.outcome == Outcome::InFlight {
            return None;
        }
        let has_next = retries < self.policy.retries_max
            && cause_of(ended).is_some_and(|cause| self.policy.causes.has(cause));
        if has_next && self.budget.as_mut().is_none_or(RetryBudget::spend) {
            let pause = self.policy.pause(retries, &mut self.rng);
            let at = ended.picked_up.max(now) + pause;
            return (at < self.end).then_some(at);
        }
        self.recorder.on_failure(first, ended, has_next);
        None
    }

    /// What was measured of requests in a window that ended at `end` at the latest.
    pub fn finish(self, end: Nanos) -> AttemptsMeasured {
        self.recorder.finish(end)
    }
}

/// A driver whose operations are retried when they fail.
///
/// The driver beneath starts requests and hears of the end of each once: of the attempt that was
/// served, or of the last one. Its intended time is then that of the first attempt. A retry is
/// intended when its pause ends.
///
/// The lane of an attempt is the place of its request here. Where users own connections, it is the
/// user's own lane.
#[derive(Debug)]
pub struct Retrying {
    inner: AnyDriver,
    retries: Retries,
    /// Users own lanes; else a request gets a place that is free.
    has_lanes: bool,
    /// Requests under way, by lane.
    requests: Vec<Request>,
    /// Places without a request.
    free: Vec<u32>,
    /// Pending retries, by their time.
    due: BinaryHeap<Reverse<(Nanos, u32)>>,
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
        let mut requests = Vec::with_capacity(places);
        if has_lanes {
            requests.resize(places, Request::default());
        }
        Retrying {
            inner,
            retries: Retries::new(policy, spec, share),
            has_lanes,
            requests,
            free: Vec::with_capacity(if has_lanes { 0 } else { places }),
            due: BinaryHeap::with_capacity(places),
        }
    }

    /// What was measured of requests in a window that ended at `end` at the latest.
    pub fn finish(self, end: Nanos) -> AttemptsMeasured {
        self.retries.finish(end)
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
        self.retries.on_request(op.intended, now);
        Action::Start(Op { lane, ..op })
    }
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
        Outcome::StreamError => RetryCause::StreamError,
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
            self.retries.on_retry(request.first, intended, now);
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
        if let Some(at) = self.retries.on_end(request.first, request.retries, completion, now) {
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
