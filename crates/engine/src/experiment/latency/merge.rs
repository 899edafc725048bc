//! Merges what the two ends of each flow measured.

use super::wire::{FlowSide, LatencyServiceRecord, ReceivedSide, SentSide};
use knee_load::experiment::latency::{FlowLost, FlowMeasured, LatencyTrialSpec};
use knee_load::measure::Direction;
use knee_load::time::Nanos;

/// Bytes that each upload had carried by a time, as the service reported.
pub(super) type UploadProgress = (Nanos, Vec<u64>);

/// Merges both ends of all flows, the uploads first. `ours`: this end, in that order. `record`: the
/// other end; without it, `progress` has at least how much came and when.
pub(super) fn flows(
    spec: &LatencyTrialSpec,
    ours: Vec<FlowSide>,
    record: Option<LatencyServiceRecord>,
    progress: &[UploadProgress],
    elapsed: Nanos,
) -> Vec<FlowMeasured> {
    let has_record = record.is_some();
    let record = record.unwrap_or_default();
    let mut up = record.up.into_iter();
    let mut down = record.down.into_iter();
    let intervals = elapsed.0.div_ceil(spec.interval.0.max(1)) as usize;
    let mut flows = Vec::with_capacity(ours.len());
    for (place, side) in ours.into_iter().enumerate() {
        let mut flow = match side {
            FlowSide::Sent(sent) => {
                let told = || pieced(place, progress, spec.interval, elapsed);
                let received = up.next().unwrap_or_else(told);
                merge(Direction::Up, place as u32, sent, received, elapsed)
            }
            FlowSide::Received(received) => {
                let sent = down.next().unwrap_or_default();
                merge(Direction::Down, place as u32 - spec.up, sent, received, elapsed)
            }
        };
        flow.by_interval.resize(intervals, 0);
        flow.inside_max_by_interval.resize(intervals, Nanos::ZERO);
        if !has_record {
            flow.ended = flow.ended.min(elapsed);
        }
        // A receiver may see the end a little after the sender, and counts the gap until it does.
        flow.gap_at = flow.gap_at.min(flow.ended);
        flow.gap_max = flow.gap_max.min(flow.ended - flow.gap_at);
        flows.push(flow);
    }
    flows
}

fn merge(
    direction: Direction,
    number: u32,
    sent: SentSide,
    received: ReceivedSide,
    elapsed: Nanos,
) -> FlowMeasured {
    // The end that stops first closes, and the other end may see that as a reset.
    let lost = earlier(sent.lost, received.lost).filter(|lost| lost.at < elapsed);
    FlowMeasured {
        direction,
        number,
        begun: Nanos::ZERO,
        ended: lost.as_ref().map_or(received.ended, |l| l.at),
        received_bytes: received.received_bytes,
        gap_max: received.gap_max,
        gap_at: received.gap_at,
        by_interval: received.by_interval,
        inside: received.inside,
        inside_max_by_interval: received.inside_max_by_interval,
        retransmitted: sent.samples.last().map_or(0, |s| s.retransmitted),
        samples: sent.samples,
        congestion_control: sent.congestion_control,
        ecn: sent.ecn,
        lost,
    }
}

fn earlier(one: Option<FlowLost>, other: Option<FlowLost>) -> Option<FlowLost> {
    one.into_iter().chain(other).min_by_key(|lost| lost.at)
}

/// Reconstructs what the receiver of an upload measured from its progress. Gaps are known to a step
/// of that progress, and the latency inside is unknown.
fn pieced(
    place: usize,
    progress: &[UploadProgress],
    interval: Nanos,
    elapsed: Nanos,
) -> ReceivedSide {
    let mut side = ReceivedSide { ended: elapsed, ..ReceivedSide::default() };
    let mut moved_at = Nanos::ZERO;
    let lengthen = |side: &mut ReceivedSide, from: Nanos, to: Nanos| {
        if to - from > side.gap_max {
            (side.gap_max, side.gap_at) = (to - from, from);
        }
    };
    for (at, bytes) in progress.iter().filter(|(at, _)| *at <= elapsed) {
        let Some(&bytes) = bytes.get(place) else {
            continue;
        };
        let more = bytes.saturating_sub(side.received_bytes);
        if more > 0 {
            // It came in the step that ends at `at`, so in the interval before `at`.
            let slot = (at.0.saturating_sub(1) / interval.0.max(1)) as usize;
            if side.by_interval.len() <= slot {
                side.by_interval.resize(slot + 1, 0);
            }
            side.by_interval[slot] += more;
            side.received_bytes = bytes;
            lengthen(&mut side, moved_at, *at);
            moved_at = *at;
        }
    }
    lengthen(&mut side, moved_at, elapsed);
    side
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_tells_what_came_when_and_where_it_stopped() {
        let ms = Nanos::from_millis;
        let progress = [
            (ms(100), vec![0, 10]),
            (ms(200), vec![0, 30]),
            (ms(300), vec![0, 30]),
            (ms(900), vec![0, 99]),
        ];
        let side = pieced(1, &progress, ms(100), ms(400));
        assert_eq!(side.received_bytes, 30);
        assert_eq!(side.by_interval, [10, 20]);
        assert_eq!((side.gap_at, side.gap_max), (ms(200), ms(200)));
        let never = pieced(0, &progress, ms(100), ms(400));
        assert_eq!((never.received_bytes, never.gap_max), (0, ms(400)));
    }

    /// The side that learns of the end first closes. The other side does not count that as a loss.
    #[test]
    fn a_flow_that_ends_with_its_scenario_is_not_lost() {
        let merged = |at: u64| {
            let sent = SentSide {
                lost: Some(FlowLost { at: Nanos(at), why: "connection reset by peer".to_owned() }),
                ..SentSide::default()
            };
            merge(Direction::Up, 0, sent, ReceivedSide::default(), Nanos(600))
        };
        assert!(merged(599).lost.is_some());
        assert_eq!(merged(600).lost, None);
        assert_eq!(merged(601).lost, None);
    }

    #[test]
    fn the_first_to_notice_tells_why_a_flow_was_lost() {
        let lost = |at: u64, why: &str| {
            let at = Nanos(at);
            Some(FlowLost { at, why: why.to_owned() })
        };
        assert_eq!(earlier(lost(2, "b"), lost(1, "a")), lost(1, "a"));
        assert_eq!(earlier(None, lost(1, "a")), lost(1, "a"));
        assert_eq!(earlier(None, None), None);
    }
}
