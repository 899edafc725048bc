//! `knee udp --explain`: why do two laws of sending differ?
//!
//! # The design
//!
//! A pilot makes one trial of each of the two kinds of clients. The first become the *subject* if
//! they lose more than twice the second's share, else the second. Then come blocks, one per repeat.
//! A block has one trial of each cell, in an order drawn from the seed. The cells are both kinds of
//! clients as they are, and the subject with one thing changed ([`cells::CellChange`]):
//!
//! - the number of clients, or their way of waiting, as the others have it;
//! - synchronised wake-ups: the same waits, but each client begins at a time of its own and ticks by
//!   a clock of its own;
//! - the timer slack, the receive buffer, or the service's work;
//! - where both run, and the service's priority (real-time, where that is permitted);
//! - a single spinning sender in the place of all clients. It sends at the same mean rate, evenly
//!   or Poisson, or at the times at which the subject's datagrams were sent in this block. The
//!   subject's unchanged trial comes before those.
//!
//! The last sender also runs with the service alone on a processor. Clients that have a processor
//! less send less, so only this shows what a processor of its own does at the same rate.
//!
//! Trials of one block are compared with each other only, so that what drifts from block to block
//! cancels. The effect of a change is the mean difference of its pairs, with the 95 % interval by
//! Student's t. The pilot's trials count in the laws' rows, not in the effects.
//!
//! # The conclusion
//!
//! Each explanation ([`evidence::Hypothesis`]) has a fixed rule over the effects and over the
//! subject's trials. It ends as supported, ruled out or undecided. That the receive buffer
//! overflowed says where datagrams were lost and is never given as a cause.
//!
//! Two trials show what a factor does only where they differ in that factor alone. The loss falls
//! without it: the factor is necessary. The loss stays: it is ruled out. Rates that differ by more
//! than 10 % are a second factor, so that such a pair decides nothing.
//!
//! | pair of cells | differs in | decides |
//! | --- | --- | --- |
//! | subject, unsynchronised | wake-ups in common | `synchronised_wakeups` |
//! | subject, other timer slack | wake-ups that the kernel brings together | `synchronised_wakeups` |
//! | subject, real-time service | who goes first on the service's processor | both of the processor |
//! | subject, service alone on a processor | who else uses the service's processor | both of the processor |
//! | subject, replay | a crowd of senders or one, at the same times | both of the processor |
//! | replay, replay on another processor | whether the sender uses the service's processor | both of the processor |
//! | Poisson, even | variance of the times | `poisson_variance` |
//! | subject, even or Poisson | senders and times | only what a rate or a variance does *alone* |
//! | subject, 4 MiB | receive buffer | nothing: a place, no cause |
//! | subject, number, wait, work, one processor | the rate too | nothing |
//!
//! "Both of the processor" are `service_waits_for_processor` and `woken_clients_preempt_service`.
//! Two explanations say that something *alone* is enough: the rate (`offered_beyond_capacity`) and
//! the variance (`poisson_variance`). These are also ruled out by a cell that has nothing but that
//! and loses next to nothing. The rest goes by what the subject's trials measured: a factor that
//! was not there as datagrams were lost (`receiver_pauses`, `sender_drops_or_blocks`).

mod cells;
mod evidence;
mod rules;
#[cfg(test)]
mod tests;

use super::AssessedUdpTrial;
use crate::experiment::udp::findings::datagram_findings;
use crate::experiment::udp::laws::{in_words, law_row, law_verdict, lost_where};
use crate::experiment::udp::report::{LawRow, UdpConclusion};
use crate::experiment::{Concluded, Experiment, NextTrial};
use crate::trial::report::{TrialReport, Verdict};
use crate::words::list;
pub(super) use cells::CODES as BUDGET_CODES;
pub use cells::EXPLAIN_LIMIT;
use cells::{CellChange, DesignCell, block, changed, changes};
pub(super) use evidence::Hypothesis;
use evidence::{Effect, ExplainEvidence, Judgement, Ruling, TrialPair};
use knee_load::experiment::udp::UdpTrialSpec;
use knee_load::rng;
use rules::judge;

/// A loss below this share, in percent, is none that needs to be explained.
const LOSS_PERCENT: f64 = 0.01;
/// The first clients are the subject if they lose this many times as much as the second. Chance in
/// one trial of each then hardly decides.
const CLEARLY_MORE: f64 = 2.0;
/// Trials before the first block.
const PILOT: usize = 2;
/// Fewer pairs than this say nothing about their spread.
const REPEATS_MIN: u32 = 3;

/// Two kinds of clients whose difference is to be explained, and the effort.
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
    /// The part of the request that was cut, in words.
    pub cut: Option<String>,
}

/// The experiment that explains.
#[derive(Clone, Debug)]
pub struct UdpExplain {
    spec: ExplainSpec,
}

impl UdpExplain {
    /// An explanation of the difference between these two. Random waits keep no clients together
    /// but as they all begin. That is no part of their law, so they begin apart.
    pub fn new(mut spec: ExplainSpec) -> UdpExplain {
        for clients in [&mut spec.first, &mut spec.second] {
            clients.unsynchronised = clients.wait.is_random();
        }
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

    fn base(&self, cell: DesignCell) -> &UdpTrialSpec {
        match cell {
            DesignCell::First => &self.spec.first,
            DesignCell::Second | DesignCell::Changed(_) => &self.spec.second,
        }
    }

    /// The design as it follows from the pilot, if that was made.
    fn design<'a>(&self, past: &'a [AssessedUdpTrial]) -> Design<'a> {
        let mut cells = vec![DesignCell::First, DesignCell::Second];
        if rng::unit(&mut rng::stream(self.spec.seed, rng::ORDER)) >= 0.5 {
            cells.reverse();
        }
        let loss = |clients: DesignCell| {
            let trial = cells.iter().zip(past).find(|(cell, _)| **cell == clients);
            let datagrams = trial.and_then(|(_, trial)| trial.report.datagrams());
            datagrams.map_or(0.0, |d| d.loss_percent)
        };
        let (first, second) = (loss(DesignCell::First), loss(DesignCell::Second));
        let (subject, other) = if first >= LOSS_PERCENT && first > CLEARLY_MORE * second {
            (DesignCell::First, DesignCell::Second)
        } else {
            (DesignCell::Second, DesignCell::First)
        };
        let changes = changes(self.base(subject), self.base(other), &self.spec);
        if past.len() >= PILOT {
            for number in 1..=self.repeats() {
                cells.extend(block(subject, &changes, self.spec.seed, number));
            }
        }
        Design { subject, other, changes, cells, past }
    }

    fn evidence<'a>(&'a self, design: &Design<'a>) -> ExplainEvidence<'a> {
        let changed = DesignCell::Changed;
        let effects = design
            .changes
            .iter()
            .filter_map(|&change| Some((change, design.effect(changed(change), design.subject)?)));
        ExplainEvidence {
            spec: self.base(design.subject),
            trials: design.unchanged_trials(design.subject),
            other_spec: self.base(design.other),
            other_trials: design.unchanged_trials(design.other),
            effects: effects.collect(),
            poisson_over_constant: design
                .effect(changed(CellChange::Poisson), changed(CellChange::Constant)),
            may_be_realtime: self.spec.realtime,
        }
    }
}

/// The design and the trials made so far.
struct Design<'a> {
    /// The clients that the explanation is about.
    subject: DesignCell,
    /// The other clients.
    other: DesignCell,
    changes: Vec<CellChange>,
    /// The cells of all trials in their order; until the pilot is made, its cells alone.
    cells: Vec<DesignCell>,
    past: &'a [AssessedUdpTrial],
}

impl<'a> Design<'a> {
    /// What `cell` did against `against`, over the blocks that have both. A single sender that did
    /// not keep its schedule is another load and shows nothing.
    fn effect(&self, cell: DesignCell, against: DesignCell) -> Option<Effect> {
        let in_blocks: Vec<(&DesignCell, &AssessedUdpTrial)> =
            self.cells.iter().zip(self.past).skip(PILOT).collect();
        let blocks = in_blocks.chunks(2 + self.changes.len());
        let pairs = blocks.filter_map(|block| {
            let report = |wanted: DesignCell| {
                let (cell, trial) = block.iter().find(|(cell, _)| **cell == wanted)?;
                let keeps_schedule = trial.report.verdict == Verdict::Valid;
                (keeps_schedule || !cell.is_derived()).then_some(&trial.report)
            };
            Some((report(cell)?, report(against)?))
        });
        Effect::of(&pairs.collect::<Vec<TrialPair>>())
    }

    /// All trials of a kind of clients as they are, the pilot's included.
    fn unchanged_trials(&self, cell: DesignCell) -> Vec<&'a TrialReport> {
        let trials = self.cells.iter().zip(self.past);
        trials.filter(|(c, _)| **c == cell).map(|(_, trial)| &trial.report).collect()
    }
}

impl Experiment for UdpExplain {
    type Spec = UdpTrialSpec;
    type Trial = AssessedUdpTrial;
    type Conclusion = UdpConclusion;

    fn next(&mut self, past: &[AssessedUdpTrial]) -> NextTrial<UdpTrialSpec> {
        let design = self.design(past);
        let Some(&cell) = design.cells.get(past.len()) else {
            return NextTrial::Converged;
        };
        let (base, other) = (self.base(design.subject), self.base(design.other));
        let spec = match cell {
            DesignCell::First | DesignCell::Second => Some(self.base(cell).clone()),
            DesignCell::Changed(change) => {
                let made = &design.cells[..past.len()];
                let unchanged = made.iter().rposition(|cell| *cell == design.subject);
                unchanged.and_then(|i| changed(change, base, other, &self.spec.cpus, &past[i]))
            }
        };
        let Some(mut spec) = spec else {
            let label = &base.label;
            return NextTrial::Doomed(format!("{label} sent nothing that could be sent again"));
        };
        spec.seed = rng::of_trial(self.spec.seed, past.len());
        NextTrial::Run(Box::new(spec))
    }

    fn conclude(&self, past: &[AssessedUdpTrial]) -> Concluded<UdpConclusion> {
        let design = self.design(past);
        let by_law =
            [DesignCell::First, DesignCell::Second].map(|cell| design.unchanged_trials(cell));
        let laws =
            vec![law_row(&self.spec.first, &by_law[0]), law_row(&self.spec.second, &by_law[1])];
        let evidence = self.evidence(&design);
        let (base, others) = (evidence.spec, evidence.other_spec);
        let everything = format!("everything: {} → {}", base.label, others.label);
        let whole = design
            .effect(design.other, design.subject)
            .map(|effect| effect.row(everything, base.label.clone()));
        let single = evidence
            .effects
            .iter()
            .map(|(change, effect)| effect.row(change.words(base, others), base.label.clone()));
        let judged = judge(&evidence);
        let lines = |ruling| -> Vec<String> {
            judged.iter().filter(|j| j.ruling == ruling).map(Judgement::line).collect()
        };
        // What was changed on purpose is in the effects; findings are about what was asked for.
        let as_asked: Vec<&TrialReport> = by_law.iter().flatten().copied().collect();
        let mut findings = datagram_findings(&as_asked, true);
        findings.extend(self.spec.shortened());
        Concluded {
            verdict: law_verdict(&by_law),
            findings,
            conclusion: UdpConclusion {
                answer: answer(&laws, &evidence, &judged),
                effects: whole.into_iter().chain(single).collect(),
                supported: lines(Ruling::Supported),
                ruled_out: lines(Ruling::RuledOut),
                undecided: lines(Ruling::Undecided),
                laws,
            },
        }
    }
}

/// Maximum number of changes that made things worse in the answer.
const WORSE_MAX: usize = 3;

/// The answer for a person: what both did, where it was lost, and which causes are supported. What
/// decided, and what was ruled out, the explanations themselves say.
fn answer(laws: &[LawRow], evidence: &ExplainEvidence, judged: &[Judgement]) -> String {
    let measured: Vec<&LawRow> = laws.iter().filter(|row| row.trials > 0).collect();
    if measured.is_empty() {
        return "Nothing was measured.".to_owned();
    }
    let mut sentences: Vec<String> = measured.iter().map(|row| in_words(row)).collect();
    let places = lost_where(&evidence.trials);
    if evidence.has_loss() && !places.is_empty() {
        sentences.push(format!("{} That is where, not why.", places.trim_start()));
    }
    let supported = || judged.iter().filter(|j| j.ruling == Ruling::Supported);
    let causes = supported().filter(|j| j.hypothesis != Hypothesis::ReceiveBuffer);
    let causes: Vec<&str> = causes.map(|j| j.hypothesis.claim()).collect();
    if !causes.is_empty() {
        sentences.push(format!("The data support: {}.", causes.join("; ")));
    }
    let necessary = supported().filter(|j| j.hypothesis.is_shown_by_absence());
    let necessary: Vec<String> = necessary.map(|j| j.hypothesis.name().replace('_', " ")).collect();
    if !necessary.is_empty() {
        sentences.push(format!(
            "Necessary for the loss, most of which is gone without: {}.",
            necessary.join("; ")
        ));
    }
    if !evidence.has_loss() {
        sentences.extend(without_loss(&measured, evidence));
    } else if !supported().any(|j| j.hypothesis.is_of_loss()) {
        let label = &evidence.spec.label;
        sentences.push(format!("The data support no cause of what {label} lost."));
    }
    sentences.join(" ")
}

/// The answer without a loss to explain: the changes that made datagrams be lost, the most loss
/// first.
fn without_loss(measured: &[&LawRow], evidence: &ExplainEvidence) -> [String; 2] {
    let nothing = if measured.iter().any(|row| row.dropped_per_s > 0.0) {
        "That is too little to need a cause on this machine."
    } else {
        "So there is no loss to explain on this machine."
    };
    let mut worse: Vec<&(CellChange, Effect)> =
        evidence.effects.iter().filter(|(_, effect)| effect.rises()).collect();
    worse.sort_by(|a, b| b.1.loss.total_cmp(&a.1.loss));
    let worse: Vec<String> = worse
        .iter()
        .take(WORSE_MAX)
        .map(|(change, effect)| {
            let change = change.words(evidence.spec, evidence.other_spec);
            format!("{change} ({})", effect.lost())
        })
        .collect();
    let would = if worse.is_empty() {
        "No change that was tried made datagrams be lost either.".to_owned()
    } else {
        format!("What would make datagrams be lost here: {}.", list(&worse))
    };
    [nothing.to_owned(), would]
}
