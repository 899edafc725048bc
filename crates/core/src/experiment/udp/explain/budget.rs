//! How an explanation keeps within its time.

use super::cells::{changes, outline};
use super::{ExplainSpec, PILOT, REPEATS_MIN};
use crate::finding::{Finding, codes};
use crate::words::list;
use knee_load::experiment::udp::UdpTrialSpec;
use knee_load::time::Nanos;

/// The longest time that a whole explanation takes.
pub const EXPLAIN_LIMIT: Nanos = Nanos::from_secs(60);

/// Blocks, unless asked for: with three, losses that come in bouts leave the intervals wide.
const REPEATS: u32 = 6;
/// No more fit: a block has two trials, of 300 ms at the least.
const REPEATS_MAX: u32 = 100;
/// Time of a cell, unless asked for, …
const CELL: Nanos = Nanos::from_millis(500);
/// … which may be this short for the sake of more blocks, …
const CELL_SHORT: Nanos = Nanos::from_millis(250);
/// … and this short where it would not fit otherwise.
const CELL_MIN: Nanos = Nanos::from_millis(100);
/// Times of cells are multiples of this.
const STEP: Nanos = Nanos::from_millis(10);

codes! {
    SHORTENED = "explanation_shortened":
        cause "More was asked of an explanation than fits into the 60 s that it takes at most.",
        remedy "Ask for less of one thing: shorter trials for more repeats, or fewer clients, \
                which start sooner.";
}

/// What the user asks of an explanation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExplainRequest {
    /// Time of a cell.
    pub duration: Option<Nanos>,
    /// Blocks.
    pub repeats: Option<u32>,
}

impl ExplainSpec {
    /// The plan with as many blocks and as long cells as fit into [`EXPLAIN_LIMIT`], and with what
    /// was cut of what the user asked for. Blocks go first, then time, then changes on which no
    /// explanation rests; what the user asked for goes after what was not asked for.
    ///
    /// # Errors
    /// Even the least does not fit; in words.
    pub fn fit(mut self, asked: ExplainRequest) -> Result<ExplainSpec, String> {
        let most = asked.duration.unwrap_or(CELL);
        let short = match (asked.duration, asked.repeats) {
            (Some(duration), _) => duration,
            (None, Some(_)) => CELL_MIN,
            (None, None) => CELL_SHORT,
        };
        let repeats_max = asked.repeats.unwrap_or(REPEATS).clamp(REPEATS_MIN, REPEATS_MAX);
        let whole = (REPEATS_MIN..=repeats_max).rev().map(|n| (0, n, short));
        let least = (0..=super::DISPENSABLE.len()).map(|n| (n, REPEATS_MIN, CELL_MIN));
        for (left_out, repeats, least) in whole.chain(least) {
            (self.left_out, self.repeats) = (left_out, repeats);
            let cell = self.longest_cell();
            if cell >= least.min(most) {
                let duration = cell.min(most);
                for spec in [&mut self.first, &mut self.second] {
                    spec.duration = duration;
                    spec.interval = spec.interval.min(duration);
                }
                self.cut = self.cut(asked);
                return Ok(self);
            }
        }
        let around = |spec: &UdpTrialSpec| spec.around().0;
        let longest = around(&self.first).max(around(&self.second));
        Err(format!(
            "an explanation takes at most {EXPLAIN_LIMIT}, and each of its trials would take {} to \
             start and end: expected fewer clients, --clients-as threads, or less work per \
             datagram",
            Nanos(longest)
        ))
    }

    /// How long it takes at most, trial by trial.
    pub fn length(&self) -> Nanos {
        let (trials, around) = self.trials_and_around();
        Nanos(trials * self.first.duration.0 + around.0)
    }

    fn longest_cell(&self) -> Nanos {
        let (trials, around) = self.trials_and_around();
        let left = EXPLAIN_LIMIT - around;
        Nanos(left.0 / trials / STEP.0 * STEP.0)
    }

    /// The number of trials, and the time that they take beside their sending. Either kind of
    /// clients may become the subject: these are the larger figures of the two.
    fn trials_and_around(&self) -> (u64, Nanos) {
        let both = [&self.first, &self.second];
        let blocks = u64::from(self.repeats.max(REPEATS_MIN));
        let with = |[subject, other]: [&UdpTrialSpec; 2]| {
            let changes = changes(subject, other, self);
            let of_changes = changes.iter();
            let of_changes = of_changes.map(|&c| outline(c, subject, other, &self.cpus).around().0);
            let of_both: u64 = both.iter().map(|spec| spec.around().0).sum();
            let each = of_both + of_changes.sum::<u64>();
            let trials = PILOT as u64 + blocks * (2 + changes.len() as u64);
            (trials, Nanos(of_both + blocks * each))
        };
        let [first, second] = both;
        let (a, b) = (with([first, second]), with([second, first]));
        (a.0.max(b.0), a.1.max(b.1))
    }

    /// The part of the request that was cut, in words.
    fn cut(&self, asked: ExplainRequest) -> Option<String> {
        let duration = asked.duration.filter(|&d| d > self.first.duration);
        let repeats = asked.repeats.filter(|&n| n > self.repeats);
        let cut = [
            repeats.map(|n| format!("{} repeats instead of {n}", self.repeats)),
            duration.map(|d| format!("trials of {} instead of {d}", self.first.duration)),
            (self.left_out > 0).then(|| {
                let n = self.left_out;
                format!("{n} changes left out on which no explanation rests")
            }),
        ];
        let cut: Vec<String> = cut.into_iter().flatten().collect();
        let limit = EXPLAIN_LIMIT;
        (!cut.is_empty()).then(|| format!("an explanation takes at most {limit}: {}", list(&cut)))
    }

    /// A finding that says what was cut.
    pub(super) fn shortened(&self) -> Option<Finding> {
        let text = self.cut.clone()?;
        let evidence = [
            ("repeats", f64::from(self.repeats)),
            ("duration_ns", self.first.duration.0 as f64),
            ("changes_left_out", self.left_out as f64),
        ];
        Some(SHORTENED.info(text, evidence, ""))
    }
}
