//! Remarks on a trial that still runs. Findings are made of the whole trial.

use crate::finding::Severity;
use crate::words::{exact, time};
use knee_load::measure::Interval;

/// From this share of the median response time on a mean pacing error is worth a remark, …
const LATE_SHARE: f64 = 0.2;
/// … if it is over this: the same as makes a whole trial invalid.
const LATE_NS: u64 = 100_000;
/// Lateness from which on the generator is stalled.
const STOOD_STILL_NS: u64 = 100_000_000;
/// A target is silent after this multiple of the longest response so far without any response.
const SILENT_TIMES: u64 = 2;
/// The median response time over the smallest so far, from which on it has grown.
const GROWN_TIMES: u64 = 10;
/// Intervals without an event until it is reported again.
const CALM: u32 = 5;

/// An event in a running trial that a person should notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// How grave it is.
    pub severity: Severity,
    /// Its time in nanoseconds, from the begin of the window.
    pub at_ns: u64,
    /// A phrase without the time.
    pub text: String,
}

/// Finds remarks in the intervals of one trial as they end.
#[derive(Clone, Debug, Default)]
pub struct RemarkDetector {
    /// Started and not ended, of those started in the window.
    in_flight: u64,
    longest_ns: u64,
    smallest_p50_ns: Option<u64>,
    /// Whether a schedule starts operations, which shows in their pacing error.
    is_scheduled: bool,
    /// Since when nothing ended while something was in flight.
    quiet_since_ns: Option<u64>,
    is_silent: bool,
    errors: RepeatFilter,
    late: RepeatFilter,
    grown: RepeatFilter,
}

impl RemarkDetector {
    /// Remarks on an interval that has ended, the gravest first.
    pub fn on_interval(&mut self, interval: &Interval) -> Vec<Remark> {
        self.is_scheduled |= interval.pacing_error_ns_mean.is_some();
        let remarks = [
            self.silence(interval),
            self.errors(interval),
            self.late(interval),
            self.grown(interval),
        ];
        let ended = interval.completed + interval.errors;
        self.in_flight = (self.in_flight + interval.attempted).saturating_sub(ended);
        self.longest_ns = self.longest_ns.max(interval.max_ns);
        remarks.into_iter().flatten().collect()
    }

    fn silence(&mut self, i: &Interval) -> Option<Remark> {
        if i.completed + i.errors > 0 {
            let from_ns = self.quiet_since_ns.take();
            let was_silent = std::mem::take(&mut self.is_silent);
            let silent_ns = i.start_ns - from_ns?;
            return was_silent.then(|| Remark {
                severity: Severity::Info,
                at_ns: i.start_ns,
                text: format!("responses come again, after {}", time(silent_ns as f64)),
            });
        }
        if self.in_flight == 0 {
            self.quiet_since_ns = None;
            return None;
        }
        let from_ns = *self.quiet_since_ns.get_or_insert(i.start_ns);
        let lasts_ns = i.end_ns.saturating_sub(from_ns);
        // If a schedule starts nothing, the generator may be stalled.
        let is_awake = i.attempted > 0 || !self.is_scheduled;
        let is_long = is_awake && self.longest_ns > 0 && lasts_ns > SILENT_TIMES * self.longest_ns;
        let begins = is_long && !self.is_silent;
        self.is_silent |= is_long;
        begins.then(|| Remark {
            severity: Severity::Error,
            at_ns: from_ns,
            text: "no response any more: operations are in flight, none ends".to_owned(),
        })
    }

    fn errors(&mut self, i: &Interval) -> Option<Remark> {
        let [failed, ended] = [i.errors, i.errors + i.completed].map(|n| exact(n as f64));
        self.errors.is_news(i.errors > 0).then(|| Remark {
            severity: Severity::Error,
            at_ns: i.start_ns,
            text: format!("errors begin: {failed} of {ended} operations failed"),
        })
    }

    fn late(&mut self, i: &Interval) -> Option<Remark> {
        let (mean_ns, max_ns) = (i.pacing_error_ns_mean?, i.pacing_error_ns_max?);
        let is_news = self.late.is_news(distorts(i) || max_ns > STOOD_STILL_NS);
        let [mean, max] = [mean_ns, max_ns].map(|ns| time(ns as f64));
        is_news.then(|| Remark {
            severity: Severity::Warning,
            at_ns: i.start_ns,
            text: format!("the generator is late: {mean} on average, {max} at the most"),
        })
    }

    fn grown(&mut self, i: &Interval) -> Option<Remark> {
        if i.completed == 0 || distorts(i) {
            return None;
        }
        let before_ns = self.smallest_p50_ns.unwrap_or(i.p50_ns).max(1);
        self.smallest_p50_ns = Some(before_ns.min(i.p50_ns));
        let is_news = self.grown.is_news(i.p50_ns > GROWN_TIMES * before_ns);
        let [now, before] = [i.p50_ns, before_ns].map(|ns| time(ns as f64));
        is_news.then(|| Remark {
            severity: Severity::Warning,
            at_ns: i.start_ns,
            text: format!("response times grow: p50 is {now}, it was {before}"),
        })
    }
}

/// Whether the generator distorts the response times of an interval.
fn distorts(i: &Interval) -> bool {
    let mean_ns = i.pacing_error_ns_mean.unwrap_or(0);
    i.completed > 0 && mean_ns > LATE_NS && mean_ns as f64 > LATE_SHARE * i.p50_ns as f64
}

/// Reports an event when it begins, and not while it lasts.
#[derive(Clone, Copy, Debug, Default)]
struct RepeatFilter {
    /// Intervals without the event until it counts as new.
    needed: u32,
}

impl RepeatFilter {
    fn is_news(&mut self, is_there: bool) -> bool {
        let is_news = is_there && self.needed == 0;
        self.needed = if is_there { CALM } else { self.needed.saturating_sub(1) };
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    const SILENT: &str = "no response any more: operations are in flight, none ends";

    /// One second in which this happened.
    fn second(at_s: u64, attempted: u64, completed: u64, errors: u64) -> Interval {
        let answered = completed > 0;
        Interval {
            start_ns: at_s * S,
            end_ns: (at_s + 1) * S,
            attempted,
            completed,
            errors,
            p50_ns: if answered { 1_000_000 } else { 0 },
            max_ns: if answered { 20_000_000 } else { 0 },
            pacing_error_ns_mean: Some(5_000),
            pacing_error_ns_max: Some(90_000),
            ..Interval::default()
        }
    }

    fn remarks(intervals: &[Interval]) -> Vec<Remark> {
        let mut watch = RemarkDetector::default();
        intervals.iter().flat_map(|i| watch.on_interval(i)).collect()
    }

    #[test]
    fn a_calm_trial_is_not_worth_a_word() {
        let calm: Vec<Interval> = (0..20).map(|s| second(s, 100, 100, 0)).collect();
        assert_eq!(remarks(&calm), []);
    }

    #[test]
    fn errors_are_told_when_they_begin_and_again_after_a_calm() {
        let errors = |at: &[u64]| -> Vec<Interval> {
            let failed = |s| if at.contains(&s) { 3 } else { 0 };
            (0..20).map(|s| second(s, 100, 97, failed(s))).collect()
        };
        let events = remarks(&errors(&[2, 3, 6, 15]));
        let at: Vec<u64> = events.iter().map(|r| r.at_ns / S).collect();
        assert_eq!(at, [2, 15]);
        assert_eq!(events[0].text, "errors begin: 3 of 100 operations failed");
    }

    #[test]
    fn silence_is_told_where_it_lasts_far_longer_than_any_response() {
        let silent = [
            second(0, 100, 90, 0),
            second(1, 100, 0, 0),
            second(2, 100, 0, 0),
            second(3, 100, 300, 0),
        ];
        let events = remarks(&silent);
        let events: Vec<_> = events.iter().map(|r| (r.at_ns, r.text.as_str())).collect();
        let began = (S, SILENT);
        assert_eq!(events, [began, (3 * S, "responses come again, after 2 s")]);
        // Nothing is in flight; or responses take that long anyway.
        let idle = [second(0, 100, 100, 0), second(1, 0, 0, 0)];
        assert_eq!(remarks(&idle), []);
        let mut slow = silent.clone();
        slow[0].max_ns = 2 * S;
        assert_eq!(remarks(&slow), []);
    }

    #[test]
    fn stalled_generator_is_not_taken_for_a_silent_target() {
        let stopped = Interval {
            pacing_error_ns_mean: None,
            pacing_error_ns_max: None,
            ..second(1, 0, 0, 0)
        };
        let back = Interval {
            p50_ns: 900_000_000,
            pacing_error_ns_mean: Some(500_000_000),
            pacing_error_ns_max: Some(S),
            ..second(2, 200, 210, 0)
        };
        let events = remarks(&[second(0, 100, 90, 0), stopped, back]);
        assert_eq!(events.len(), 1, "{events:?}");
        assert!(events[0].text.starts_with("the generator is late"), "{events:?}");
        // In a closed loop nothing is started while all wait.
        let closed = |s, attempted, completed| Interval {
            pacing_error_ns_mean: None,
            pacing_error_ns_max: None,
            ..second(s, attempted, completed, 0)
        };
        let events = remarks(&[closed(0, 100, 90), closed(1, 0, 0)]);
        let events: Vec<_> = events.iter().map(|r| (r.at_ns, r.text.as_str())).collect();
        assert_eq!(events, [(S, SILENT)]);
    }

    #[test]
    fn a_late_generator_is_told_where_it_distorts_or_stood_still() {
        let late = |mean_ns, max_ns, p50_ns| Interval {
            pacing_error_ns_mean: Some(mean_ns),
            pacing_error_ns_max: Some(max_ns),
            p50_ns,
            ..second(0, 100, 100, 0)
        };
        assert_eq!(remarks(&[late(300_000, 2_000_000, 1_000_000)]).len(), 1);
        assert_eq!(remarks(&[late(300_000, 2_000_000, 2_000_000)]), []);
        assert_eq!(remarks(&[late(90_000, 2_000_000, 100_000)]), []);
        let stood = remarks(&[late(50_000, 150_000_000, 1_000_000)]);
        assert_eq!(stood[0].text, "the generator is late: 50 µs on average, 150 ms at the most");
    }

    #[test]
    fn response_times_that_grow_are_told_once() {
        let at = |s, p50_ns| Interval { p50_ns, ..second(s, 100, 100, 0) };
        let events =
            remarks(&[at(0, 1_000_000), at(1, 9_000_000), at(2, 11_000_000), at(3, 50_000_000)]);
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].text, "response times grow: p50 is 11 ms, it was 1 ms");
    }
}
