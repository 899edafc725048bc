//! What is reported of both ends.

use super::{Joined, Sampled, Seen};
use crate::measure::{Histogram, HostTimes, PartTimes, Split, Window};
use crate::time::Nanos;

/// Where the time of the operations went that lie within the window: as a whole, and apart by
/// response time.
pub fn host_times(seen: &Seen, sampled: &Sampled, window: Window) -> (HostTimes, Split) {
    let is_within = |s: &super::Sample| s.written >= window.start && s.last_byte <= window.end;
    let within = Sampled {
        uses: sampled.uses.clone(),
        samples: sampled.samples.iter().copied().filter(is_within).collect(),
        left_out: sampled.left_out,
    };
    let joined: Joined = super::join(seen, &within);
    let (mut host, mut network) = (Histogram::default(), Histogram::default());
    let (mut of_host, mut whole) = (Nanos::ZERO, Nanos::ZERO);
    let mut split = Split::default();
    for (sample, parts) in within.samples.iter().zip(&joined.parts) {
        let Some(parts) = parts else { continue };
        let response = sample.last_byte - sample.intended;
        split.add(response, parts.host, parts.network);
        host.record(parts.host);
        network.record(parts.network);
        of_host += parts.host;
        whole += parts.host + parts.network;
    }
    let nothing = within
        .samples
        .is_empty()
        .then(|| "no connection was followed".to_owned());
    let times = HostTimes {
        operations: host.count(),
        unseen: joined.unseen,
        incomplete: joined.incomplete,
        resent: joined.resent,
        lost: seen.lost,
        because: seen.because.clone().or(nothing),
        host_percent: (whole > Nanos::ZERO).then(|| of_host.0 as f64 * 100.0 / whole.0 as f64),
        host_ns: PartTimes::of(&host),
        network_ns: PartTimes::of(&network),
    };
    (times, split)
}
