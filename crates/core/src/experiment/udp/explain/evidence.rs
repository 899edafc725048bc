//! The explanations, what they are judged by, and how they end.

use super::LOSS_PERCENT;
use super::cells::CellChange;
use crate::experiment::udp::laws::loss_percent;
use crate::experiment::udp::report::EffectRow;
use crate::trial::detail::DatagramReport;
use crate::trial::report::TrialReport;
use crate::words;
use knee_load::experiment::udp::UdpTrialSpec;
use knee_load::names::names;
use knee_load::stats::sample::{self, mean_and_ci95};

names! {
    /// What could explain the difference, in the order in which a report lists it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Hypothesis {
        /// Sending and waking take time that adds to each wait.
        PerSendOverhead = "per_send_overhead",
        /// The receive buffer: the place, never a cause.
        ReceiveBuffer = "receive_buffer",
        /// More comes than the service can do, however it is spread.
        OfferedBeyondCapacity = "offered_beyond_capacity",
        /// The service is ready to run and waits for its turn.
        ServiceWaitsForProcessor = "service_waits_for_processor",
        /// Clients that wake take the processor from the service as it works.
        WokenClientsPreemptService = "woken_clients_preempt_service",
        /// Clients that sleep wake together.
        SynchronisedWakeups = "synchronised_wakeups",
        /// Random gaps alone.
        PoissonVariance = "poisson_variance",
        /// The service is stalled for longer than its buffer covers.
        ReceiverPauses = "receiver_pauses",
        /// Datagrams do not leave the sender, or leave it late.
        SenderDropsOrBlocks = "sender_drops_or_blocks",
    }
}

impl Hypothesis {
    /// Whether it is a cause of losses: one is of the rate, one says where.
    pub(super) fn is_of_loss(self) -> bool {
        use Hypothesis::{PerSendOverhead, ReceiveBuffer};
        !matches!(self, ReceiveBuffer | PerSendOverhead)
    }

    /// Whether it is supported only where the loss is gone without it.
    pub(super) fn is_shown_by_absence(self) -> bool {
        use Hypothesis as H;
        matches!(
            self,
            H::SynchronisedWakeups | H::ServiceWaitsForProcessor | H::WokenClientsPreemptService
        )
    }

    /// The claim, as a clause.
    pub(crate) fn claim(self) -> &'static str {
        use Hypothesis as H;
        match self {
            H::PerSendOverhead => {
                "the time that each send and each wake-up takes adds to the wait and lowers the \
                 rate"
            }
            H::WokenClientsPreemptService => {
                "clients that wake interrupt the service as it works, while datagrams pile up"
            }
            H::ServiceWaitsForProcessor => {
                "the service waits behind clients for its processor after it woke, while datagrams \
                 pile up"
            }
            H::SynchronisedWakeups => "clients wake together, and their bursts overflow the buffer",
            H::ReceiveBuffer => {
                "the place where they are lost is the service's receive buffer (not a cause)"
            }
            H::PoissonVariance => "the variance of Poisson arrivals alone overflows the buffer",
            H::ReceiverPauses => "the service itself stalls for longer than its buffer covers",
            H::OfferedBeyondCapacity => {
                "more comes on average than the service can take, however it is spread"
            }
            H::SenderDropsOrBlocks => {
                "datagrams are dropped or held up before they leave the sender"
            }
        }
    }
}

/// How an explanation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ruling {
    /// The data support it.
    Supported,
    /// The data rule it out.
    RuledOut,
    /// The data do neither.
    Undecided,
}

/// An explanation that was judged.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Judgement {
    pub hypothesis: Hypothesis,
    pub ruling: Ruling,
    /// What decided, as a clause with its numbers.
    pub because: String,
}

impl Judgement {
    /// `name: claim: because`, as reported: the only sentence that says how it ended and why.
    pub(super) fn line(&self) -> String {
        let (hypothesis, because) = (self.hypothesis, &self.because);
        format!("{}: {}: {because}", hypothesis.name(), hypothesis.claim())
    }
}

/// The evidence that the rules judge.
#[derive(Clone, Debug)]
pub(super) struct ExplainEvidence<'a> {
    /// The clients that the explanation is about.
    pub spec: &'a UdpTrialSpec,
    /// Their trials, unchanged.
    pub trials: Vec<&'a TrialReport>,
    /// The other clients.
    pub other_spec: &'a UdpTrialSpec,
    /// Trials of the other clients.
    pub other_trials: Vec<&'a TrialReport>,
    /// What each change does to the clients that the explanation is about.
    pub effects: Vec<(CellChange, Effect)>,
    /// What a single Poisson sender does against an even one.
    pub poisson_over_constant: Option<Effect>,
    /// Whether the service may have real-time priority.
    pub may_be_realtime: bool,
}

impl ExplainEvidence<'_> {
    /// Whether there is a loss to be explained.
    pub(super) fn has_loss(&self) -> bool {
        loss_percent(&self.trials) >= LOSS_PERCENT
    }

    /// The mean of a figure over the subject's trials.
    pub(super) fn mean(&self, figure: impl Fn(&DatagramReport) -> f64) -> f64 {
        mean(&self.trials, figure)
    }

    /// What a change does; `None` where it was not tried.
    pub(super) fn effect(&self, change: CellChange) -> Option<&Effect> {
        self.effects.iter().find(|(tried, _)| *tried == change).map(|(_, effect)| effect)
    }

    /// What a change does, where the rate is the same with it. Otherwise two things differ, and
    /// which of them moved the loss is not known.
    pub(super) fn at_same_rate(&self, change: CellChange) -> Option<&Effect> {
        self.effect(change).filter(|effect| effect.keeps_rate())
    }
}

/// The mean of a figure over trials; 0 where there are none.
pub(super) fn mean(trials: &[&TrialReport], figure: impl Fn(&DatagramReport) -> f64) -> f64 {
    let values = trials.iter().filter_map(|t| t.datagrams()).map(figure);
    sample::mean(&values.collect::<Vec<f64>>())
}

/// One trial changed and one unchanged, of the same block.
pub(super) type TrialPair<'a> = (&'a TrialReport, &'a TrialReport);

/// What a change did over several pairs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Effect {
    /// Number of pairs.
    pub pairs: u32,
    /// Mean loss with the change, in percent.
    pub loss: f64,
    /// Mean loss without it, in percent.
    pub loss_before: f64,
    /// Changed − unchanged, in percentage points, and its 95 % confidence interval.
    pub change: (f64, Option<[f64; 2]>),
    /// Ratio of the rates of sending (geometric mean), and its 95 % confidence interval.
    pub sent_ratio: (f64, Option<[f64; 2]>),
}

impl Effect {
    /// The effect that these pairs show; `None` where there are none.
    pub(super) fn of(pairs: &[TrialPair]) -> Option<Effect> {
        if pairs.is_empty() {
            return None;
        }
        let loss = |t: &TrialReport| t.datagrams().map_or(0.0, |d| d.loss_percent);
        let sent = |t: &TrialReport| t.datagrams().map_or(0.0, DatagramReport::attempted_per_s);
        let mean = |values: Vec<f64>| mean_and_ci95(&values).0;
        let changes: Vec<f64> = pairs.iter().map(|(a, b)| loss(a) - loss(b)).collect();
        // Logarithms, as a ratio and its inverse are equally far from 1.
        let ratios: Vec<f64> = pairs
            .iter()
            .map(|(a, b)| sent(a) / sent(b))
            .filter(|ratio| ratio.is_finite() && *ratio > 0.0)
            .map(f64::ln)
            .collect();
        let (ratio, ratio_ci95) = mean_and_ci95(&ratios);
        Some(Effect {
            pairs: pairs.len() as u32,
            loss: mean(pairs.iter().map(|(a, _)| loss(a)).collect()),
            loss_before: mean(pairs.iter().map(|(_, b)| loss(b)).collect()),
            change: mean_and_ci95(&changes),
            sent_ratio: (ratio.exp(), ratio_ci95.map(|ci| ci.map(f64::exp))),
        })
    }

    /// The loss with the change, and what the change did to the rate besides: `0.9 % lost at 0.25
    /// times the rate`.
    pub(super) fn lost(&self) -> String {
        let beside = if self.keeps_rate() {
            String::new()
        } else {
            format!(" at {} times the rate", words::ratio(self.sent_ratio.0))
        };
        format!("{} lost{beside}", words::share(self.loss))
    }

    /// Whether the change leaves the rate of sending as it is.
    pub(super) fn keeps_rate(&self) -> bool {
        (1.0 / SAME_RATE..=SAME_RATE).contains(&self.sent_ratio.0)
    }

    /// The row of the report.
    pub(super) fn row(&self, change: String, base: String) -> EffectRow {
        EffectRow {
            change,
            base,
            pairs: self.pairs,
            sent_ratio: self.sent_ratio.0,
            sent_ratio_ci95: self.sent_ratio.1,
            loss_change_points: self.change.0,
            loss_change_ci95_points: self.change.1,
        }
    }

    /// Whether the change takes most of the loss away, beyond chance.
    pub(super) fn falls(&self) -> bool {
        let surely = self.change.1.is_some_and(|[_, hi]| hi < 0.0);
        surely && self.loss <= MOST_GONE * self.loss_before
    }

    /// Whether at least half of the loss remains with the change.
    pub(super) fn stays(&self) -> bool {
        !self.falls() && self.loss >= HALF * self.loss_before
    }

    /// Whether the change adds loss, beyond chance and by as much as matters.
    pub(super) fn rises(&self) -> bool {
        let surely = self.change.1.is_some_and(|[lo, _]| lo > 0.0);
        surely && self.change.0 >= LOSS_PERCENT
    }
}

/// Loss that falls to this share of itself is mostly gone; one of at least …
const MOST_GONE: f64 = 0.5;
/// … this share remains.
const HALF: f64 = 0.5;
/// Rates that differ by less than this factor are the same.
const SAME_RATE: f64 = 1.1;
