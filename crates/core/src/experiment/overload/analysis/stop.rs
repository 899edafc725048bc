//! When a server stopped to serve, over all levels of an overload.

use super::OverloadPoint;
use crate::trial::report::TrialReport;
use crate::words::{exact, levels, time};
use knee_load::measure::{Interval, Outcome, Outcomes};
use knee_load::spec::Level;

/// From this share of the attempts on refusals show that nothing listens any more.
const REFUSED_SHARE: f64 = 0.01;

/// A server that served, and then did not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServerStop {
    /// The level in which it stopped.
    pub at: Level,
    /// When, from the begin of that level's window.
    pub from_ns: u64,
    /// Responses in that level until then.
    pub served_before: u64,
    /// Until when it served nothing.
    pub until: StopEnd,
    /// The most telling end of the attempts that were not served, at that level and at all later
    /// ones that it served nothing of.
    pub how: Outcome,
    /// How many of them ended so.
    pub count: u64,
    /// All unserved attempts of these levels.
    pub unserved: u64,
    /// The trials that it concerns: the first and the last, by their order.
    pub trials: (usize, usize),
    /// Requests that had no whole response in time before it: a server that is not told that a
    /// client has gone still works on them.
    pub left_behind: u64,
    /// How long that takes at the rate that it serves at best, in seconds.
    pub left_behind_s: f64,
}

/// When a server that had stopped served again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StopEnd {
    /// Never.
    End,
    /// This time after it stopped, in nanoseconds, within the same level.
    Within(u64),
    /// In this level.
    Level(Level),
    /// As the base load was offered again.
    BaseAgain,
}

impl ServerStop {
    /// All of these trials, in the order in which they were run, with the base load offered again
    /// after them. None where nothing was served at all: such a server never began.
    pub fn all(
        points: &[OverloadPoint],
        again: Option<&OverloadPoint>,
        capacity_per_s: f64,
    ) -> Vec<ServerStop> {
        let is_dead = |p: &OverloadPoint| is_dead(p, capacity_per_s);
        let mut stops = Vec::new();
        let mut next = 0;
        while next < points.len() {
            let first = next;
            let p = &points[first];
            next += 1;
            let (from_ns, served_before) = match p.silence {
                Some(silence) => (silence.from_ns, silence.served_before),
                None if is_dead(p) => (0, 0),
                None => continue,
            };
            let goes_on = p.silence.is_none_or(|s| s.until_ns.is_none());
            // One that is known to have stopped serves nothing, however little that is.
            while goes_on && points.get(next).is_some_and(|later| !later.has_served()) {
                next += 1;
            }
            let until = match (p.silence.and_then(|s| s.until_ns), points.get(next)) {
                (Some(until_ns), _) => StopEnd::Within(until_ns.saturating_sub(from_ns)),
                (None, Some(later)) => StopEnd::Level(later.level),
                (None, None) if again.is_some_and(OverloadPoint::has_served) => StopEnd::BaseAgain,
                (None, None) => StopEnd::End,
            };
            let (how, count, unserved) = ends(&points[first..next]);
            let timed_out = |p: &OverloadPoint| p.row.outcomes.count(Outcome::ResponseTimeout);
            let left_behind = points[..first].iter().map(timed_out).sum();
            stops.push(ServerStop {
                at: p.level,
                from_ns,
                served_before,
                until,
                how,
                count,
                unserved,
                trials: (first, next - 1),
                left_behind,
                left_behind_s: left_behind as f64 / capacity_per_s.max(1e-9),
            });
        }
        stops
    }

    /// Whether this stop says why attempts of that trial ended so.
    pub fn explains(&self, trial: usize, outcome: Outcome) -> bool {
        // Connections that were open as the process ended.
        let is_of_crash = matches!(outcome, Outcome::Reset | Outcome::Closed | Outcome::Truncated);
        let is_affected = (self.trials.0..=self.trials.1).contains(&trial);
        is_affected && (outcome == self.how || self.has_crashed() && is_of_crash)
    }

    /// What a server may still do that seems to have stopped, in words: work on earlier
    /// requests that takes at least a second.
    pub fn works_on(&self) -> Option<String> {
        let is_silent = self.how == Outcome::ResponseTimeout && self.left_behind_s >= 1.0;
        is_silent.then(|| {
            format!(
                "it may still work on the {} earlier requests that timed out: {} of work",
                exact(self.left_behind as f64),
                time(self.left_behind_s * 1e9)
            )
        })
    }

    /// What it did, in words: a server that may still work has not stopped.
    pub fn verb(&self) -> &'static str {
        if self.works_on().is_some() { "stopped answering" } else { "stopped" }
    }

    /// When it stopped and until when, in words.
    pub fn words(&self) -> (String, String) {
        let at = levels(&[self.at]);
        let when = match self.from_ns {
            0 => format!("at the start of the level with {at}"),
            ns => format!("{} into the level with {at}", time(ns as f64)),
        };
        let until = match self.until {
            StopEnd::End => "until the end".to_owned(),
            StopEnd::Within(ns) => format!("for {}", time(ns as f64)),
            StopEnd::Level(level) => format!("until the level with {}", levels(&[level])),
            StopEnd::BaseAgain => "until the base load was offered again".to_owned(),
        };
        (when, until)
    }

    /// Whether nothing listens any more.
    pub fn has_crashed(&self) -> bool {
        self.how == Outcome::Refused
    }
}

/// Whether nothing was served in a level in which much should have been. What is refused at once is
/// no longer under way than the generator is late, so that such a level may be invalid.
fn is_dead(p: &OverloadPoint, capacity_per_s: f64) -> bool {
    let sent = p.row.outcomes.total() - p.row.outcomes.no_resources();
    !p.fell_behind
        && p.shows_stops
        && !p.has_served()
        && sent > 0
        && capacity_per_s * p.seconds >= MISSED_MIN
}

/// The most telling end, how many had it, and how many were not served.
fn ends(points: &[OverloadPoint]) -> (Outcome, u64, u64) {
    let mut outcomes = Outcomes::default();
    points.iter().for_each(|p| outcomes.merge(&p.row.outcomes));
    let served = |o: Outcome| matches!(o, Outcome::Ok | Outcome::Served);
    let unserved = || outcomes.iter().filter(|&(o, _)| !served(o));
    let total: u64 = unserved().map(|(_, n)| n).sum();
    let refused = outcomes.count(Outcome::Refused);
    if refused as f64 > REFUSED_SHARE * total as f64 {
        return (Outcome::Refused, refused, total);
    }
    let (how, count) = unserved().max_by_key(|&(_, n)| n).unwrap_or((Outcome::ConnectTimeout, 0));
    (how, count, total)
}

/// A shorter time without a response is a pause.
const SILENT_NS: u64 = 1_000_000_000;
/// Responses that would have come meanwhile at the rate of the rest: that none came by chance has
/// a probability below e⁻²⁰.
const MISSED_MIN: f64 = 20.0;

/// A time within a trial in which not one response came, although some came before or after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Silence {
    /// When it began, from the begin of the window: the begin of the first interval without one.
    pub from_ns: u64,
    /// When it ended; `None`: it went on until the window ended.
    pub until_ns: Option<u64>,
    /// Responses within the window before it.
    pub served_before: u64,
}

impl Silence {
    /// The longest of a trial, if it is too long for chance.
    pub fn of(trial: &TrialReport) -> Option<Silence> {
        let intervals = &trial.intervals;
        let served: u64 = intervals.iter().map(|i| i.completed).sum();
        let whole_ns = intervals.last()?.end_ns;
        let runs = intervals.chunk_by(|a, b| (a.completed == 0) == (b.completed == 0));
        let run = runs.filter(|run| run[0].completed == 0).max_by_key(|run| length_ns(run))?;
        let (from_ns, end_ns) = (run[0].start_ns, run[run.len() - 1].end_ns);
        let heard_ns = whole_ns.saturating_sub(length_ns(run));
        let missed = served as f64 * length_ns(run) as f64 / heard_ns.max(1) as f64;
        (length_ns(run) >= SILENT_NS && missed >= MISSED_MIN).then(|| Silence {
            from_ns,
            until_ns: (end_ns < whole_ns).then_some(end_ns),
            served_before: intervals
                .iter()
                .filter(|i| i.end_ns <= from_ns)
                .map(|i| i.completed)
                .sum(),
        })
    }
}

fn length_ns(run: &[Interval]) -> u64 {
    run[run.len() - 1].end_ns.saturating_sub(run[0].start_ns)
}

#[cfg(test)]
mod stop_tests {
    use super::*;
    use crate::experiment::overload::tests::trials::{SETTING, heard, report, sclients};
    use crate::trial::report::TrialReport;

    fn stops(trials: &[TrialReport]) -> Vec<ServerStop> {
        let points: Vec<OverloadPoint> =
            trials.iter().filter_map(|t| OverloadPoint::of(t, &SETTING)).collect();
        ServerStop::all(&points, None, 130.0)
    }

    fn dead(descriptors: u32, how: Outcome) -> TrialReport {
        report(Level::Descriptors(descriptors), &[(how, 500)])
    }

    #[test]
    fn a_crash_lasts_over_the_levels_after_it() {
        let mut tenths = [0; 100];
        tenths[..20].fill(13);
        let mut crashed = heard(sclients(64, 260), &tenths);
        crashed.outcomes.add_many(Outcome::Refused, 500);
        let live = || sclients(16, 1_300);
        let found = stops(&[live(), crashed.clone(), dead(128, Outcome::Refused)]);
        let [stop] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!((stop.at, stop.from_ns), (Level::Descriptors(64), 2_000_000_000));
        assert_eq!((stop.served_before, stop.until), (260, StopEnd::End));
        assert!(stop.has_crashed() && stop.count == 1_000, "{stop:?}");
        assert_eq!((stop.unserved, stop.trials), (2_280, (1, 2)));
        assert!(stop.explains(2, Outcome::Refused) && stop.explains(1, Outcome::Reset));
        assert!(!stop.explains(0, Outcome::Refused));
        // Where it serves again, the stop ends.
        let found = stops(&[live(), crashed, sclients(128, 1_300)]);
        assert_eq!(found[0].until, StopEnd::Level(Level::Descriptors(128)));
    }

    #[test]
    fn unserved_level_is_a_stop_if_much_was_expected() {
        let hung = dead(64, Outcome::ConnectTimeout);
        let found = stops(&[sclients(16, 1_300), hung.clone()]);
        assert!(!found[0].has_crashed() && found[0].from_ns == 0, "{found:?}");
        let mut short = hung;
        short.duration_ns = 100_000_000;
        assert_eq!(stops(&[sclients(16, 1_300), short]), []);
        assert_eq!(stops(&[sclients(16, 1_300), sclients(64, 1)]), []);
    }
}

#[cfg(test)]
mod silence_tests {
    use super::*;
    use crate::experiment::overload::tests::trials::{heard, sclients};

    fn silence(completed: &[u64]) -> Option<Silence> {
        Silence::of(&heard(sclients(64, completed.iter().sum()), completed))
    }

    #[test]
    fn a_second_without_a_response_of_a_server_that_gives_many() {
        let stopped = |served: usize| {
            let mut completed = [0; 20];
            completed[..served].fill(13);
            completed
        };
        let found = silence(&stopped(10)).expect("a second");
        assert_eq!((found.from_ns, found.until_ns), (1_000_000_000, None));
        assert_eq!(found.served_before, 130);
        assert_eq!(silence(&stopped(11)), None, "0.9 s");
        let mut resumed = stopped(5);
        resumed[15..].fill(13);
        let found = silence(&resumed).expect("a second");
        assert_eq!(found.until_ns, Some(1_500_000_000));
        assert_eq!(found.served_before, 65);
    }

    #[test]
    fn a_slow_server_is_silent_by_chance() {
        // 2 in 1 s, then none for 9 s: 18 are missing; of 3 it is 27.
        let mut completed = [0; 100];
        completed[9] = 2;
        assert_eq!(silence(&completed), None);
        completed[9] = 3;
        assert!(silence(&completed).is_some());
        assert_eq!(silence(&[0; 100]), None, "one that never serves");
        assert_eq!(silence(&[13; 100]), None);
        assert_eq!(Silence::of(&sclients(64, 1_300)), None, "no intervals");
    }
}
