//! Times in which a server that serves had stopped to.

use crate::measure::Interval;
use crate::trial::report::TrialReport;

/// A shorter time without a response is a pause.
const SILENT_NS: u64 = 1_000_000_000;
/// So many responses would have come meanwhile at the rate of the rest: none came by chance has a
/// probability below e⁻²⁰.
pub(super) const MISSED_MIN: f64 = 20.0;

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
    /// The longest of a trial, if it is long enough to be told from chance.
    pub fn of(trial: &TrialReport) -> Option<Silence> {
        let intervals = &trial.intervals;
        let served: u64 = intervals.iter().map(|i| i.completed).sum();
        let whole_ns = intervals.last()?.end_ns;
        let runs = intervals.chunk_by(|a, b| (a.completed == 0) == (b.completed == 0));
        let silent = runs.filter(|run| run[0].completed == 0);
        let run = silent.max_by_key(|run| length_ns(run))?;
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
mod tests {
    use super::super::fixture::{heard, sclients};
    use super::*;

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
