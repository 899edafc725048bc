//! The rule of each explanation.
//!
//! "Falls" means: the 95 % interval of the change in loss lies below 0, and at most half of the
//! loss is left. "Stays" means: it does not fall, and at least half of it is left. In between
//! nothing follows.
//! Those about a loss need one to explain: at least 0.01 % of the subject's datagrams.

mod processor;

use super::cells::CellChange;
use super::evidence::{Effect, ExplainEvidence, Hypothesis, Judgement, Ruling, mean};
use crate::experiment::udp::findings::buffer_covers_ns;
use crate::experiment::udp::laws::lost_by_place;
use crate::trial::detail::DatagramReport;
use crate::words::{number, share as percent, time};
use Ruling::{RuledOut, Supported, Undecided};
use knee_load::time::Nanos;

/// A rate below this share of the one that the waits alone would give is lowered; …
const RATE_LOWERED: f64 = 0.90;
/// … one above this is not.
const RATE_KEPT: f64 = 0.95;
/// A place of loss has nearly all of it from the second share on, next to nothing up to the first.
const AT_PLACE: [f64; 2] = [0.1, 0.9];
/// A service that is busy, or kept from its processor, for a smaller part has time left.
const BUSY_PERCENT: f64 = 95.0;
/// A loss of this share of the subject's is next to none.
const NEXT_TO_NONE: f64 = 0.1;
/// Senders that are held up at this share of their sends, or lose it, matter; …
const SENDER_MATTERS: f64 = 0.01;
/// … below this they do not.
const SENDER_FREE: f64 = 0.0001;
/// The places on the sending host.
const AT_SENDER: [&str; 3] = ["send_buffer", "qdisc", "neighbour_queue"];

/// How an explanation ended, and what decided.
fn rule(ruling: Ruling, because: impl Into<String>) -> (Ruling, String) {
    (ruling, because.into())
}

/// Supported where the data support it, else ruled out where they rule it out, else undecided.
fn decide(is_supported: bool, is_ruled_out: bool, because: String) -> (Ruling, String) {
    if is_supported {
        (Supported, because)
    } else if is_ruled_out {
        (RuledOut, because)
    } else {
        (Undecided, because)
    }
}

/// Judges every explanation.
pub(super) fn judge(e: &ExplainEvidence) -> Vec<Judgement> {
    let judged = Hypothesis::ALL.into_iter().map(|hypothesis| {
        let (ruling, because) = match hypothesis {
            Hypothesis::PerSendOverhead => per_send_overhead(e),
            Hypothesis::SenderDropsOrBlocks => sender(e),
            _ if !e.has_loss() => rule(Undecided, "nothing was lost that it could explain"),
            Hypothesis::WokenClientsPreemptService => processor::preempted(e),
            Hypothesis::ServiceWaitsForProcessor => processor::waits(e),
            Hypothesis::SynchronisedWakeups => wakeups(e),
            Hypothesis::ReceiveBuffer => receive_buffer(e),
            Hypothesis::PoissonVariance => poisson(e),
            Hypothesis::ReceiverPauses => pauses(e),
            Hypothesis::OfferedBeyondCapacity => capacity(e),
        };
        Judgement { hypothesis, ruling, because }
    });
    judged.collect()
}

/// Supported if clients that sleep by a law send less than 0.90 of what their waits alone would
/// give. Ruled out if all send at least 0.95 of it.
fn per_send_overhead(e: &ExplainEvidence) -> (Ruling, String) {
    let both = [(e.spec, &e.trials), (e.other_spec, &e.other_trials)];
    let kept = both.into_iter().filter_map(|(spec, trials)| {
        let wait_s = spec.wait.cycle()?.as_secs_f64();
        let sent_per_s = mean(trials, DatagramReport::attempted_per_s);
        let share = sent_per_s * wait_s / f64::from(spec.clients);
        (sent_per_s > 0.0).then_some((spec, wait_s, sent_per_s, share))
    });
    let Some((spec, wait_s, sent_per_s, share)) = kept.min_by(|a, b| a.3.total_cmp(&b.3)) else {
        return rule(Undecided, "no client here waits for a stated time");
    };
    let cycle_s = f64::from(spec.clients) / sent_per_s;
    let because = format!(
        "with {} the waits alone would give {}/s and {}/s were sent, as each cycle took {} \
         instead of {}",
        spec.label,
        number(f64::from(spec.clients) / wait_s),
        number(sent_per_s),
        time(1e9 * cycle_s),
        time(1e9 * wait_s)
    );
    decide(share < RATE_LOWERED, share >= RATE_KEPT, because)
}

/// What brings wake-ups together, each absent in a cell that sends as much: a clock or a beginning
/// in common, and timer slack, by which the kernel delays wake-ups to join them. Supported if the
/// loss falls in one of these cells. Ruled out if it stays in all of them, or if nobody sleeps.
fn wakeups(e: &ExplainEvidence) -> (Ruling, String) {
    if !e.spec.wait.sleeps() {
        return rule(RuledOut, "these clients do not sleep");
    }
    let cells: Vec<(&Effect, &str)> = [
        (e.effect(CellChange::Unsynchronised), "the same waits, each client by a clock of its own"),
        // Only less of it keeps wake-ups apart.
        (
            e.effect(CellChange::Slack).filter(|_| e.spec.timer_slack > Nanos(1)),
            "the same waits without timer slack",
        ),
    ]
    .into_iter()
    .filter_map(|(effect, what)| Some((effect?, what)))
    .collect();
    let Some((first, _)) = cells.first() else {
        return rule(Undecided, "no trial had the same waits without wake-ups in common");
    };
    let lost: Vec<String> =
        cells.iter().map(|(effect, what)| format!("{what}: {}", effect.lost())).collect();
    let because = format!("as they are: {} lost; {}", percent(first.loss_before), lost.join("; "));
    decide(
        cells.iter().any(|(effect, _)| effect.keeps_rate() && effect.falls()),
        cells.iter().all(|(effect, _)| effect.keeps_rate() && effect.stays()),
        because,
    )
}

/// Supported if at least 90 % of what is missing is there by the ledger, ruled out at 10 % or less.
fn receive_buffer(e: &ExplainEvidence) -> (Ruling, String) {
    let places = lost_by_place(&e.trials);
    let missing: u64 = places.iter().map(|(_, n)| n).sum();
    let in_buffer = places.iter().find(|(place, _)| place == "receive_buffer");
    let share = in_buffer.map_or(0, |(_, n)| *n) as f64 / missing.max(1) as f64;
    let mut because = format!("{} of what is missing was lost there", percent(100.0 * share));
    if let Some(effect) = e.effect(CellChange::Buffer) {
        because += &format!("; with 4 MiB: {}", effect.lost());
    }
    decide(share >= AT_PLACE[1], share <= AT_PLACE[0], because)
}

/// Supported if Poisson at the same rate from a single sender loses at least half as much, and more
/// than evenly spaced datagrams do. Ruled out if it loses next to nothing, if the even ones lose as
/// much, or if the subject's waits are not random.
fn poisson(e: &ExplainEvidence) -> (Ruling, String) {
    if !e.spec.wait.is_random() {
        return rule(RuledOut, "the waits of these clients are not random");
    }
    let (Some(poisson), Some(even)) =
        (e.at_same_rate(CellChange::Poisson), e.at_same_rate(CellChange::Constant))
    else {
        return rule(Undecided, "no single sender kept its schedule at this rate");
    };
    let because = format!(
        "from a single sender at the same rate, Poisson loses {}, evenly spaced {}",
        percent(poisson.loss),
        percent(even.loss)
    );
    let is_more = e.poisson_over_constant.as_ref().is_some_and(Effect::rises);
    let is_none = poisson.loss <= NEXT_TO_NONE * poisson.loss_before;
    decide(!is_none && poisson.stays() && is_more, is_none || even.stays() && !is_more, because)
}

/// Supported if the service paused for longer than its buffer takes to fill at the mean rate. It
/// has to do so in at least half of the trials with a loss. Ruled out if it did so in none, or if
/// others had its processor in these times.
fn pauses(e: &ExplainEvidence) -> (Ruling, String) {
    let lossy = e.trials.iter().filter_map(|t| t.datagrams());
    let against: Vec<(f64, f64)> = lossy
        .filter(|d| d.loss_percent > 0.0)
        .filter_map(|d| Some((d.service_pause_ns_max as f64, buffer_covers_ns(d)?)))
        .collect();
    let longest = against.iter().max_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
    let Some(&(pause_ns, covers_ns)) = longest else {
        return rule(Undecided, "how much its buffer holds is not known");
    };
    let longer = against.iter().filter(|(p, covers)| p > covers).count();
    let because = format!(
        "in {longer} of {} trials with a loss it paused for longer than that, at worst for {} \
         where the buffer covers {}",
        against.len(),
        time(pause_ns),
        time(covers_ns)
    );
    match longer {
        0 => rule(RuledOut, because),
        // A cause is named once.
        _ if processor::is_the_cause(e) => {
            rule(RuledOut, format!("others had its processor in its pauses: {because}"))
        }
        n if 2 * n >= against.len() => rule(Supported, because),
        _ => rule(Undecided, because),
    }
}

/// Supported if more is sent than the service's work allows. Ruled out if the service had time
/// left, by its processor time and its waits for the processor. The average rate then did not cause
/// a loss. Otherwise it depends on a single sender that spreads the same rate evenly. Supported if
/// the loss stays then, ruled out if next to nothing is left of it.
fn capacity(e: &ExplainEvidence) -> (Ruling, String) {
    let sent_per_s = e.mean(|d| d.sent_per_s);
    let work_s = e.mean(|d| d.service_work_ns.unwrap_or(0) as f64) / 1e9;
    if sent_per_s * work_s > 1.0 {
        let because = format!(
            "{}/s were sent, and its work allows {}/s",
            number(sent_per_s),
            number(1.0 / work_s)
        );
        return rule(Supported, because);
    }
    let (used, waited) = (e.mean(|d| d.service_cpu_percent), e.mean(|d| d.service_waiting_percent));
    let service = format!(
        "the service used {} of a processor and waited for it {} of the time",
        percent(used),
        percent(waited)
    );
    // A service that used none did not report its use.
    if used > 0.0 && used + waited < BUSY_PERCENT {
        return rule(RuledOut, service);
    }
    let Some(even) = e.at_same_rate(CellChange::Constant) else {
        return rule(Undecided, "no single sender kept its schedule at this rate");
    };
    let because = format!(
        "spread evenly by a single sender, the same rate loses {}; {service}",
        percent(even.loss)
    );
    decide(even.stays(), even.loss <= NEXT_TO_NONE * even.loss_before, because)
}

/// Concerns datagrams that the kernel refused, that the sending host lost, or that had to wait for
/// room in the send buffer. Supported if they are at least 1 % of the subject's datagrams, ruled
/// out below 0.01 %.
fn sender(e: &ExplainEvidence) -> (Ruling, String) {
    let ledgers = || e.trials.iter().filter_map(|t| t.ledger());
    let refused: u64 = ledgers().map(|l| l.send_errors).sum();
    let blocked: f64 = e.mean(|d| d.blocked as f64) * e.trials.len() as f64;
    let places = lost_by_place(&e.trials);
    let at_sender = |(place, _): &&(String, u64)| AT_SENDER.contains(&place.as_str());
    let dropped: u64 = places.iter().filter(at_sender).map(|(_, n)| n).sum();
    let tried: u64 = ledgers().map(|l| l.intended - l.not_attempted.min(l.intended)).sum();
    if tried == 0 {
        return rule(Undecided, "nothing was sent");
    }
    let share = |n: f64| n / tried as f64;
    let because = format!(
        "{} of the sends were refused, {} lost on the sending host, {} had to wait for room",
        percent(100.0 * share(refused as f64)),
        percent(100.0 * share(dropped as f64)),
        percent(100.0 * share(blocked))
    );
    let worst = share((refused + dropped) as f64).max(share(blocked));
    decide(worst >= SENDER_MATTERS, worst < SENDER_FREE, because)
}
