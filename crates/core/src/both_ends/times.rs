//! What is reported of both ends.

use super::{Joined, Sampled, Seen};
use crate::measure::{BothEnds, HostTimes, Split, Window};

/// Where the time of the operations went that lie within the window: as a whole, apart by response
/// time, and as distributions that merge.
pub fn host_times(seen: &Seen, sampled: &Sampled, window: Window) -> (HostTimes, Split, BothEnds) {
    let is_within = |s: &super::Sample| s.written >= window.start && s.last_byte <= window.end;
    let within = Sampled {
        uses: sampled.uses.clone(),
        samples: sampled.samples.iter().copied().filter(is_within).collect(),
        left_out: sampled.left_out,
    };
    let joined: Joined = super::join(seen, &within);
    let mut split = Split::default();
    let mut all = Vec::new();
    for (sample, parts) in within.samples.iter().zip(&joined.parts) {
        let Some(parts) = parts else { continue };
        let response = sample.last_byte - sample.intended;
        split.add(response, parts.host, parts.network);
        all.push([parts.host, parts.network]);
    }
    let all = BothEnds::of(all.into_iter());
    let nothing = within
        .samples
        .is_empty()
        .then(|| "no connection was followed".to_owned());
    let mut times = HostTimes {
        unseen: joined.unseen,
        incomplete: joined.incomplete,
        resent: joined.resent,
        lost: seen.lost,
        because: seen.because.clone().or(nothing),
        ..HostTimes::default()
    };
    times.set(&all);
    (times, split, all)
}
