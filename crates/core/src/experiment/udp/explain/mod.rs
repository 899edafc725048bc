//! `knee udp --explain`: why do two laws of sending differ?
//!
//! # The design
//!
//! A pilot makes one trial of each of the two kinds of clients. The first become the *subject* if
//! they lose more than twice the second's share, else the second. Then come blocks, one per repeat.
//! A block has one trial of each cell in an order drawn from the seed: both kinds of clients as
//! they are, and the subject with one thing changed ([`cells::Change`]): the number of clients and
//! their way of waiting as the others have them, the timer slack, the receive buffer, the service's
//! work, where both run, the service's priority (real-time, where that is permitted), and in the
//! place of the crowd a single spinning sender that sends at the same mean rate evenly, or Poisson,
//! or at the very moments that the crowd's datagrams were sent in this block (so the subject's
//! unchanged trial comes before those), the last also with the service alone on a processor:
//! clients that have a processor less send less, so only a replay tells what a processor of its own
//! does at the same rate.
//!
//! Trials of one block are compared with each other only, so that what drifts from block to block
//! cancels: the effect of a change is the mean difference of its pairs, with the 95 % interval by
//! Student's t. The pilot's trials count in the laws' rows, not in the effects.
//!
//! # The conclusion
//!
//! Each explanation ([`judge::Hypothesis`]) has a fixed rule over the effects and over what the
//! subject's own trials tell; it ends as supported, ruled out or undecided. That the receive buffer
//! overflowed says where datagrams were lost and is never given as a cause.

mod answer;
mod budget;
mod cells;
mod effects;
mod judge;
mod rules;
#[cfg(test)]
mod tests;

pub(super) use budget::SHORTENED;
pub use budget::{EXPLAIN_LIMIT, ExplainAsked};

use super::UdpTried;
use super::laws::{law_row, law_verdict};
use crate::experiment::udp::findings::explained_findings;
use crate::experiment::udp::report::{EffectRow, UdpConclusion};
use crate::experiment::udp::spec::UdpTrialSpec;
use crate::experiment::{Concluded, Experiment, Next};
use crate::rng;
use crate::trial::report::{TrialReport, Verdict};
use answer::answer;
use cells::{Cell, Change, DISPENSABLE, block, changed, changes};
use effects::{Effect, Pair};
pub(super) use judge::Hypothesis;
use judge::{Evidence, Standing, judge};
use rand_core::RngCore;

/// A loss below this share, in percent, is none that needs to be explained.
const LOSS_PERCENT: f64 = 0.01;
/// The first clients lose so many times as much as the second if they are to be the subject, so
/// that chance in one trial of each hardly decides.
const CLEARLY_MORE: f64 = 2.0;
/// Trials before the first block.
const PILOT: usize = 2;
/// Fewer pairs than this say nothing about their spread.
const REPEATS_MIN: u32 = 3;

/// What is to be explained, and with how much effort.
#[derive(Clone, Debug, PartialEq)]
pub struct ExplainSpec {
    /// The first clients; the duration is that of one cell.
    pub first: UdpTrialSpec,
    /// The second.
    pub second: UdpTrialSpec,
    /// Blocks, at least 3: less is taken as 3.
    pub repeats: u32,
    /// Processors that clients and service may be bound to: the first is the service's. With fewer
    /// than two, where they run is not varied.
    pub cpus: Vec<u32>,
    /// Whether the service may have real-time priority; otherwise that is not varied.
    pub realtime: bool,
    /// Seeds the order of the trials and each trial.
    pub seed: u64,
    /// Changes on which no explanation rests and which do not fit into the time.
    pub left_out: usize,
    /// What was cut of what the user asked for, in words.
    pub cut: Option<String>,
}

/// The experiment that explains.
#[derive(Clone, Debug)]
pub struct UdpExplain {
    spec: ExplainSpec,
}

impl UdpExplain {
    /// An explanation of the difference between these two.
    pub fn new(spec: ExplainSpec) -> UdpExplain {
        UdpExplain { spec }
    }

    /// How many trials it makes in all, as far as is known before the first.
    pub fn trials(&self) -> usize {
        let spec = &self.spec;
        let changes = changes(&spec.second, &spec.first, spec).len();
        PILOT + self.repeats() * (2 + changes)
    }

    fn repeats(&self) -> usize {
        self.spec.repeats.max(REPEATS_MIN) as usize
    }

    fn base(&self, cell: Cell) -> &UdpTrialSpec {
        match cell {
            Cell::First => &self.spec.first,
            Cell::Second | Cell::Changed(_) => &self.spec.second,
        }
    }

    /// The order of the pilot.
    fn pilot(&self) -> [Cell; PILOT] {
        let mut rng = rng::stream(self.spec.seed, rng::ORDER);
        match rng::unit(&mut rng) < 0.5 {
            true => [Cell::First, Cell::Second],
            false => [Cell::Second, Cell::First],
        }
    }

    /// The clients that the explanation is about, and the others.
    fn subject(&self, past: &[UdpTried]) -> [Cell; 2] {
        let loss = |of: Cell| {
            let tried = self.pilot().iter().position(|cell| *cell == of);
            let datagrams = tried
                .and_then(|i| past.get(i))
                .and_then(|t| t.report.datagrams());
            datagrams.map_or(0.0, |d| d.loss_percent)
        };
        let (first, second) = (loss(Cell::First), loss(Cell::Second));
        match first >= LOSS_PERCENT && first > CLEARLY_MORE * second {
            true => [Cell::First, Cell::Second],
            false => [Cell::Second, Cell::First],
        }
    }

    fn changes(&self, past: &[UdpTried]) -> Vec<Change> {
        let [subject, other] = self.subject(past).map(|cell| self.base(cell));
        changes(subject, other, &self.spec)
    }

    /// The cells of all trials in their order. Known as soon as the pilot was made.
    fn plan(&self, past: &[UdpTried]) -> Vec<Cell> {
        let mut plan = self.pilot().to_vec();
        if past.len() >= PILOT {
            let [subject, _] = self.subject(past);
            let changes = self.changes(past);
            for number in 1..=self.repeats() {
                plan.extend(block(subject, &changes, self.spec.seed, number));
            }
        }
        plan
    }

    /// The trials made of each block, with their cells.
    fn blocks<'a>(&self, past: &'a [UdpTried]) -> Vec<Vec<(Cell, &'a UdpTried)>> {
        let size = 2 + self.changes(past).len();
        let made: Vec<(Cell, &UdpTried)> = self.plan(past).into_iter().zip(past).collect();
        let blocks = made.get(PILOT..).unwrap_or_default();
        blocks.chunks(size).map(<[_]>::to_vec).collect()
    }

    /// What `cell` did against `against`, over the blocks that have both; a single sender that did
    /// not keep its schedule is another load and tells nothing.
    fn effect(&self, past: &[UdpTried], cell: Cell, against: Cell) -> Option<Effect> {
        let of = |block: &[(Cell, &'_ UdpTried)], cell| block.iter().position(|(c, _)| *c == cell);
        let blocks = self.blocks(past);
        let pairs: Vec<Pair> = blocks
            .iter()
            .filter_map(|b| Some((&b[of(b, cell)?].1.report, &b[of(b, against)?].1.report)))
            .filter(|pair| {
                [cell, against]
                    .iter()
                    .zip([pair.0, pair.1])
                    .all(is_as_meant)
            })
            .collect();
        Effect::of(&pairs)
    }

    /// All trials of a kind of clients as they are, the pilot's included.
    fn trials_of<'a>(&self, cell: Cell, past: &'a [UdpTried]) -> Vec<&'a TrialReport> {
        let made = self.plan(past).into_iter().zip(past);
        made.filter(|(c, _)| *c == cell)
            .map(|(_, tried)| &tried.report)
            .collect()
    }

    fn effect_rows(&self, past: &[UdpTried]) -> Vec<EffectRow> {
        let [subject, other] = self.subject(past);
        let [base, others] = [subject, other].map(|cell| self.base(cell));
        let all = format!("everything: {} → {}", base.label, others.label);
        let whole = self
            .effect(past, other, subject)
            .map(|effect| effect.row(all, base.label.clone()));
        let single = self.changes(past).into_iter().filter_map(|change| {
            let effect = self.effect(past, Cell::Changed(change), subject)?;
            Some(effect.row(change.words(base, others), base.label.clone()))
        });
        whole.into_iter().chain(single).collect()
    }

    fn evidence<'a>(&'a self, past: &'a [UdpTried]) -> Evidence<'a> {
        let [subject, other] = self.subject(past);
        let effect = |change| self.effect(past, Cell::Changed(change), subject);
        Evidence {
            spec: self.base(subject),
            trials: self.trials_of(subject, past),
            other_spec: self.base(other),
            other_trials: self.trials_of(other, past),
            buffer: effect(Change::Buffer),
            other_core: effect(Change::OtherCore),
            constant: effect(Change::Constant),
            poisson: effect(Change::Poisson),
            poisson_over_constant: self.effect(
                past,
                Cell::Changed(Change::Poisson),
                Cell::Changed(Change::Constant),
            ),
            replay: effect(Change::Replay),
            replay_apart: effect(Change::ReplayApart),
            real_time: effect(Change::RealTime),
            may_be_realtime: self.spec.realtime,
        }
    }

    /// The changes that made datagrams be lost, with what they did, the most loss first.
    fn worse(&self, past: &[UdpTried]) -> Vec<(String, Effect)> {
        let [subject, other] = self.subject(past);
        let [base, others] = [subject, other].map(|cell| self.base(cell));
        let mut worse: Vec<(String, Effect)> = self
            .changes(past)
            .into_iter()
            .filter_map(|change| {
                let effect = self.effect(past, Cell::Changed(change), subject)?;
                effect.rises().then(|| (change.words(base, others), effect))
            })
            .collect();
        worse.sort_by(|a, b| b.1.loss.total_cmp(&a.1.loss));
        worse
    }
}

/// Whether a trial is what its cell was to be: a single sender keeps its schedule.
fn is_as_meant((cell, report): (&Cell, &TrialReport)) -> bool {
    let is_derived = matches!(cell, Cell::Changed(change) if change.is_derived());
    !is_derived || report.verdict == Verdict::Valid
}

impl Experiment for UdpExplain {
    type Spec = UdpTrialSpec;
    type Trial = UdpTried;
    type Conclusion = UdpConclusion;

    fn next(&mut self, past: &[UdpTried]) -> Next<UdpTrialSpec> {
        let plan = self.plan(past);
        let Some(&cell) = plan.get(past.len()) else {
            return Next::Converged;
        };
        let [subject, other] = self.subject(past);
        let spec = match cell {
            Cell::First | Cell::Second => Some(self.base(cell).clone()),
            Cell::Changed(change) => {
                let latest = plan[..past.len()].iter().rposition(|c| *c == subject);
                latest.and_then(|i| {
                    let [base, other] = [subject, other].map(|cell| self.base(cell));
                    changed(change, base, other, &self.spec.cpus, &past[i])
                })
            }
        };
        let Some(mut spec) = spec else {
            let label = &self.base(subject).label;
            return Next::Doomed(format!("{label} sent nothing that could be sent again"));
        };
        spec.seed = rng::stream(self.spec.seed, rng::TRIALS + past.len() as u64).next_u64();
        Next::Run(Box::new(spec))
    }

    fn conclude(&self, past: &[UdpTried]) -> Concluded<UdpConclusion> {
        let both = [Cell::First, Cell::Second];
        let by_law = both.map(|cell| self.trials_of(cell, past));
        let laws: Vec<_> = both
            .iter()
            .zip(&by_law)
            .map(|(cell, trials)| law_row(self.base(*cell), trials))
            .collect();
        let evidence = self.evidence(past);
        let judged = judge(&evidence);
        let with = |standing| -> Vec<String> {
            let such = judged.iter().filter(|j| j.standing == standing);
            such.map(judge::Judged::line).collect()
        };
        // What was changed on purpose is in the effects; findings are about what was asked for.
        let as_asked: Vec<&TrialReport> = by_law.iter().flatten().copied().collect();
        let mut findings = explained_findings(&as_asked);
        findings.extend(self.spec.shortened());
        Concluded {
            verdict: law_verdict(&by_law),
            findings,
            conclusion: UdpConclusion {
                answer: answer(&laws, &evidence, &judged, &self.worse(past)),
                effects: self.effect_rows(past),
                supported: with(Standing::Supported),
                ruled_out: with(Standing::RuledOut),
                undecided: with(Standing::Undecided),
                laws,
            },
        }
    }
}
