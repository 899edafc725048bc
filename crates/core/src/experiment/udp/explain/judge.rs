//! The explanations, what they are judged by, and how they end.

use super::LOSS_PERCENT;
use super::effects::Effect;
use super::rules::Rule;
use crate::experiment::udp::laws::loss_percent;
use crate::experiment::udp::spec::UdpTrialSpec;
use crate::trial::datagrams::DatagramReport;
use crate::trial::report::TrialReport;

/// What could explain the difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hypothesis {
    /// Sending and waking take time that adds to each wait.
    PerSendOverhead,
    /// Clients that wake take the processor from the service as it works.
    WokenClientsPreemptService,
    /// The service is ready to run and waits for its turn.
    ServiceWaitsForProcessor,
    /// Clients that sleep wake together.
    SynchronisedWakeups,
    /// The receive buffer: the place, never a cause.
    ReceiveBuffer,
    /// Random gaps alone.
    PoissonVariance,
    /// The service stands still for longer than its buffer covers.
    ReceiverPauses,
    /// More comes than the service can do, however it is spread.
    OfferedBeyondCapacity,
    /// Datagrams do not leave the sender, or leave it late.
    SenderDropsOrBlocks,
}

impl Hypothesis {
    /// All of them, in the order in which they are told.
    pub(crate) const ALL: [Hypothesis; 9] = [
        Hypothesis::PerSendOverhead,
        Hypothesis::ReceiveBuffer,
        Hypothesis::OfferedBeyondCapacity,
        Hypothesis::ServiceWaitsForProcessor,
        Hypothesis::WokenClientsPreemptService,
        Hypothesis::SynchronisedWakeups,
        Hypothesis::PoissonVariance,
        Hypothesis::ReceiverPauses,
        Hypothesis::SenderDropsOrBlocks,
    ];

    /// Its stable name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Hypothesis::PerSendOverhead => "per_send_overhead",
            Hypothesis::WokenClientsPreemptService => "woken_clients_preempt_service",
            Hypothesis::ServiceWaitsForProcessor => "service_waits_for_processor",
            Hypothesis::SynchronisedWakeups => "synchronised_wakeups",
            Hypothesis::ReceiveBuffer => "receive_buffer",
            Hypothesis::PoissonVariance => "poisson_variance",
            Hypothesis::ReceiverPauses => "receiver_pauses",
            Hypothesis::OfferedBeyondCapacity => "offered_beyond_capacity",
            Hypothesis::SenderDropsOrBlocks => "sender_drops_or_blocks",
        }
    }

    /// Whether it is a cause of losses: one is of the rate, one says where.
    pub(super) fn is_of_loss(self) -> bool {
        !matches!(
            self,
            Hypothesis::ReceiveBuffer | Hypothesis::PerSendOverhead
        )
    }

    /// What it claims.
    pub(crate) fn claim(self) -> &'static str {
        match self {
            Hypothesis::PerSendOverhead => {
                "the time that each send and each wake-up takes adds to the wait and lowers the \
                 rate"
            }
            Hypothesis::WokenClientsPreemptService => {
                "clients that wake interrupt the service as it works, while datagrams pile up"
            }
            Hypothesis::ServiceWaitsForProcessor => {
                "the service waits behind clients for its processor after it woke, while datagrams \
                 pile up"
            }
            Hypothesis::SynchronisedWakeups => {
                "clients wake together, and their bursts overflow the buffer"
            }
            Hypothesis::ReceiveBuffer => {
                "the place where they are lost is the service's receive buffer (not a cause)"
            }
            Hypothesis::PoissonVariance => {
                "the variance of Poisson arrivals alone overflows the buffer"
            }
            Hypothesis::ReceiverPauses => {
                "the service itself stalls for longer than its buffer covers"
            }
            Hypothesis::OfferedBeyondCapacity => {
                "more comes on average than the service can take, however it is spread"
            }
            Hypothesis::SenderDropsOrBlocks => {
                "datagrams are dropped or held up before they leave the sender"
            }
        }
    }
}

/// How an explanation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The data support it.
    Supported,
    /// They rule it out.
    RuledOut,
    /// They do neither.
    Undecided,
}

/// An explanation that was judged.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Judged {
    /// Which.
    pub hypothesis: Hypothesis,
    /// How it ended.
    pub standing: Standing,
    /// What decided, as a clause with its numbers.
    pub because: String,
}

impl Judged {
    /// `name: claim: because`, as reported: the only sentence that says how it ended and why.
    pub(super) fn line(&self) -> String {
        let hypothesis = self.hypothesis;
        let because = &self.because;
        format!("{}: {}: {because}", hypothesis.name(), hypothesis.claim())
    }
}

/// All that the rules go by.
#[derive(Clone, Debug)]
pub(super) struct Evidence<'a> {
    /// The clients that the explanation is about.
    pub spec: &'a UdpTrialSpec,
    /// Their trials, unchanged.
    pub trials: Vec<&'a TrialReport>,
    /// The other clients.
    pub other_spec: &'a UdpTrialSpec,
    /// Theirs.
    pub other_trials: Vec<&'a TrialReport>,
    /// With 4 MiB of receive buffer.
    pub buffer: Option<Effect>,
    /// With a processor for the service alone.
    pub other_core: Option<Effect>,
    /// One sender, evenly at the same rate.
    pub constant: Option<Effect>,
    /// One sender, Poisson at the same rate.
    pub poisson: Option<Effect>,
    /// The one against the other.
    pub poisson_over_constant: Option<Effect>,
    /// One sender, at the same moments.
    pub replay: Option<Effect>,
    /// The same, with a processor for the service alone.
    pub replay_apart: Option<Effect>,
    /// The service at real-time priority.
    pub real_time: Option<Effect>,
    /// Whether that was permitted.
    pub may_be_realtime: bool,
}

impl Evidence<'_> {
    /// The loss of the subject's datagrams, in percent.
    pub(super) fn loss(&self) -> f64 {
        loss_percent(&self.trials)
    }

    /// Whether there is a loss to be explained.
    pub(super) fn has_loss(&self) -> bool {
        self.loss() >= LOSS_PERCENT
    }

    /// The mean of a figure over the subject's trials.
    pub(super) fn mean(&self, of: impl Fn(&DatagramReport) -> f64) -> f64 {
        mean(&self.trials, of)
    }

    /// The replay, if it was one: at the crowd's rate and on time.
    pub(super) fn true_replay(&self) -> Option<&Effect> {
        self.replay.as_ref().filter(|e| e.reached_the_rate())
    }

    /// The same with a processor for the service alone.
    pub(super) fn true_replay_apart(&self) -> Option<&Effect> {
        self.replay_apart.as_ref().filter(|e| e.reached_the_rate())
    }

    /// The even sender, if it reached the rate.
    pub(super) fn true_constant(&self) -> Option<&Effect> {
        self.constant.as_ref().filter(|e| e.reached_the_rate())
    }

    /// The Poisson sender, if it reached the rate.
    pub(super) fn true_poisson(&self) -> Option<&Effect> {
        self.poisson.as_ref().filter(|e| e.reached_the_rate())
    }
}

/// The mean of a figure over trials; 0 where there are none.
pub(super) fn mean(trials: &[&TrialReport], of: impl Fn(&DatagramReport) -> f64) -> f64 {
    let values = trials.iter().filter_map(|t| t.datagrams()).map(of);
    let (sum, count) = values.fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
    sum / f64::max(count, 1.0)
}

/// Judges every explanation.
pub(super) fn judge(evidence: &Evidence) -> Vec<Judged> {
    Hypothesis::ALL
        .into_iter()
        .map(|hypothesis| {
            let Rule { standing, because } = super::rules::apply(hypothesis, evidence);
            Judged {
                hypothesis,
                standing,
                because,
            }
        })
        .collect()
}
