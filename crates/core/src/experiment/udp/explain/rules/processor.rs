//! Whether the service lost datagrams as others had its processor, and how they came to have it.
//!
//! Supported if the service was kept from its processor and the loss falls in one of three cells.
//! These are: the service at real-time priority, a processor of its own for it, or a single sender
//! that replays the crowd's times of sending. Ruled out if it always had its processor, or if the
//! loss stays in all of these cells. Where the replay loses more than twice as much, it does so for
//! a reason of its own and shows nothing.
//!
//! Either the service was interrupted as it worked, or it woke and waited for its turn. The time
//! since preemptions is at most their number times its longest pause. Preemption is ruled out if
//! that time is less than half of its waits. It is ruled out too if fewer than a tenth of its turns
//! end in one. It is the cause if at least half of its turns do. In between, the waits are named
//! and preemption is left open. So there is one cause, and one name.
//!
//! A thread **waits** in the run queue after it woke. It is **preempted** where it is put back
//! there as it runs. (sched(7), Documentation/scheduler/sched-stats.rst)

use super::super::cells::CellChange;
use super::super::evidence::{Effect, ExplainEvidence, Ruling};
use super::{percent, rule};
use crate::trial::detail::DatagramReport;
use crate::words::{number, time};
use Ruling::{RuledOut, Supported, Undecided};
use knee_load::stats::sample::mean;

/// The service is kept from its processor if it is for this share of the time, in percent, or so
/// often per second; …
const KEPT_WAITING: (f64, f64) = (1.0, 10.0);
/// … it always had it if both are below these.
const NEVER_WAITED: (f64, f64) = (0.1, 1.0);
/// A replay that loses this many times as much has another trouble.
const LOSES_MORE: f64 = 2.0;
/// Least share of something that is called most of it.
const MOSTLY: f64 = 0.5;
/// Least share of the service's turns after which something happens that keeps it waiting.
const SELDOM: f64 = 0.1;

/// Judges whether clients that wake take the processor while the service works.
pub(super) fn preempted(e: &ExplainEvidence) -> (Ruling, String) {
    let (ruling, because) = judge_waits(e);
    let kept = ProcessorWaits::of(e);
    match (ruling, kept.origin()) {
        (Supported, WaitOrigin::Preempted) => rule(Supported, because),
        (Supported, WaitOrigin::Waits) => {
            rule(RuledOut, format!("few of its waits began so: {}", kept.in_words()))
        }
        (Supported, WaitOrigin::Open) => {
            rule(Undecided, format!("how many of its waits began so is open: {}", kept.in_words()))
        }
        (ruling, _) => rule(ruling, because),
    }
}

/// Judges whether the service waits for its turn.
pub(super) fn waits(e: &ExplainEvidence) -> (Ruling, String) {
    let (ruling, because) = judge_waits(e);
    let kept = ProcessorWaits::of(e);
    match (ruling, kept.origin()) {
        (Supported, WaitOrigin::Preempted) => rule(
            RuledOut,
            format!("its waits began as clients interrupted it: {}", kept.in_words()),
        ),
        (ruling, _) => rule(ruling, because),
    }
}

/// Whether datagrams were lost as others had the service's processor.
pub(super) fn is_the_cause(e: &ExplainEvidence) -> bool {
    judge_waits(e).0 == Supported
}

/// How others came to have the service's processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitOrigin {
    /// Clients took it from the service as it worked.
    Preempted,
    /// Clients had it as the service woke.
    Waits,
    /// Not known which.
    Open,
}

/// How the service was kept from its processor: means over the subject's trials.
#[derive(Clone, Copy, Debug)]
struct ProcessorWaits {
    /// The share of the time in which it was ready to run and others had its processor, in percent.
    waiting: f64,
    /// Times that it was preempted per second.
    preempted_per_s: f64,
    /// The most of the time, in percent, in which it can have waited since it was preempted.
    preempted_at_most: f64,
    /// The longest of its pauses.
    pause_ns: f64,
    /// Preemptions for each time that it was given a processor; `None`: not known.
    share_of_turns: Option<f64>,
    /// The share of a processor that it used, in percent; 0: not known.
    used: f64,
}

impl ProcessorWaits {
    fn of(e: &ExplainEvidence) -> ProcessorWaits {
        let preempted = e.mean(|d| d.service_preempted as f64);
        let turns = e.mean(|d| d.service_scheduled as f64);
        let by_preemption = |d: &DatagramReport, length_s: f64| {
            let ns = d.service_preempted as f64 * d.service_pause_ns_max as f64;
            100.0 * ns / 1e9 / length_s
        };
        let datagrams = e.trials.iter().filter_map(|t| t.datagrams());
        let longest = datagrams.map(|d| d.service_pause_ns_max).max();
        ProcessorWaits {
            waiting: e.mean(|d| d.service_waiting_percent),
            preempted_per_s: per_trial(e, |d, length_s| d.service_preempted as f64 / length_s),
            preempted_at_most: per_trial(e, by_preemption).min(100.0),
            pause_ns: longest.unwrap_or(0) as f64,
            share_of_turns: (turns > 0.0).then_some(preempted / turns),
            used: e.mean(|d| d.service_cpu_percent),
        }
    }

    fn origin(self) -> WaitOrigin {
        if self.waiting < KEPT_WAITING.0 {
            WaitOrigin::Preempted
        } else if self.preempted_at_most < MOSTLY * self.waiting
            || self.share_of_turns.is_some_and(|share| share < SELDOM)
        {
            WaitOrigin::Waits
        } else if self.share_of_turns.is_none_or(|share| share >= MOSTLY) {
            WaitOrigin::Preempted
        } else {
            WaitOrigin::Open
        }
    }

    fn is_kept(self) -> bool {
        self.waiting >= KEPT_WAITING.0 || self.preempted_per_s >= KEPT_WAITING.1
    }

    fn in_words(self) -> String {
        let used = if self.used > 0.0 {
            format!(" and used it for {}", percent(self.used))
        } else {
            String::new()
        };
        let turns = self.share_of_turns.map_or(String::new(), |share| {
            format!(" (after {} of its turns)", percent(100.0 * share.min(1.0)))
        });
        format!(
            "others had its processor for {} of the time as it was ready{used}; it was interrupted \
             {} times a second{turns}, and its longest pause was {}",
            percent(self.waiting),
            number(self.preempted_per_s),
            time(self.pause_ns)
        )
    }
}

/// Whether datagrams were lost because others had the service's processor, and what decided.
fn judge_waits(e: &ExplainEvidence) -> (Ruling, String) {
    let kept = ProcessorWaits::of(e);
    let service = kept.in_words();
    if kept.waiting < NEVER_WAITED.0 && kept.preempted_per_s < NEVER_WAITED.1 {
        return (RuledOut, service);
    }
    let replay = e.at_same_rate(CellChange::Replay);
    let cells: Vec<(&Effect, &str)> = [
        (e.at_same_rate(CellChange::RealTime), "at real-time priority"),
        (
            e.at_same_rate(CellChange::ReplayApart),
            "with a processor of its own, the same times from a single sender on another",
        ),
        (replay, "the same times from a single sender"),
        (e.at_same_rate(CellChange::OtherCore), "with a processor of its own"),
    ]
    .into_iter()
    .filter_map(|(effect, what)| Some((effect?, what)))
    .collect();
    let falls: Vec<String> = cells
        .iter()
        .filter(|(effect, _)| effect.falls())
        .map(|(effect, what)| format!("{what}: {}", effect.lost()))
        .collect();
    // What goes before all others is never kept waiting.
    let real_time_stays = e.at_same_rate(CellChange::RealTime).filter(|e| e.stays());
    if kept.is_kept() && !falls.is_empty() {
        let not_tried = match (e.may_be_realtime, real_time_stays) {
            (_, Some(effect)) => {
                let lost = effect.lost();
                let because = format!("{service}; but at real-time priority: {lost}");
                return (Undecided, because);
            }
            (false, _) => "; real-time priority was not tried, as the service may not have it",
            (true, _) => "",
        };
        return (Supported, format!("{service}; {}{not_tried}", falls.join("; ")));
    }
    match replay {
        Some(alone) if alone.loss > LOSES_MORE * alone.loss_before => (
            Undecided,
            format!(
                "{service}; but the same times from a single sender lose more: {}",
                alone.lost()
            ),
        ),
        Some(alone) if cells.iter().all(|(effect, _)| effect.stays()) => (
            RuledOut,
            format!(
                "the same times from a single sender, which takes no processor from it, lose as \
                 much: {}",
                alone.lost()
            ),
        ),
        None => (Undecided, format!("{service}; no replay kept the times")),
        Some(_) => (Undecided, format!("{service}; the effects are not clear")),
    }
}

/// The mean over the subject's trials of a figure that goes by their length in seconds.
fn per_trial(e: &ExplainEvidence, figure: impl Fn(&DatagramReport, f64) -> f64) -> f64 {
    let values = e.trials.iter().filter_map(|t| {
        let length_s = t.duration_ns as f64 / 1e9;
        (length_s > 0.0).then_some(figure(t.datagrams()?, length_s))
    });
    mean(&values.collect::<Vec<f64>>())
}
