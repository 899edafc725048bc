//! How datagrams arrived: bunched or evenly, at which time scale.

use crate::trial::datagrams::DispersionAt;
use knee_load::arrival::{ArrivalProcess, Arrivals};
use knee_load::experiment::udp::{ClientWait, UdpTrial};
use knee_load::law::Law;
use knee_load::measure::Window;
use knee_load::spec::{ArrivalLaw, Rate, Share};
use knee_load::stats::buffer::Buffer;
use knee_load::stats::gaps::{WindowCounts, counts};
use knee_load::time::Nanos;

const MS: Nanos = Nanos::from_millis(1);
/// The scales of the plot: three to the decade from here on, as long as there are ten bins.
const SCALE_MIN_NS: u64 = 100_000;
const SCALE_STEPS: [u64; 3] = [1, 2, 5];
const SCALE_DECADES: u32 = 6;
/// Maximum arrivals that are counted in one millisecond.
const PER_MS_MAX: u64 = 10_000;

/// The index of dispersion of ascending `times`, complete within `known`, at three time
/// scales to the decade.
pub(super) fn dispersion_by_scale(times: &[Nanos], known: Window) -> Vec<DispersionAt> {
    let scales = (0..SCALE_DECADES)
        .flat_map(|decade| SCALE_STEPS.map(|step| step * SCALE_MIN_NS * 10u64.pow(decade)));
    scales
        .filter_map(|scale_ns| {
            let WindowCounts { dispersion, .. } = counts(times, known, Nanos(scale_ns))?;
            Some(DispersionAt { scale_ns, index: dispersion })
        })
        .collect()
}

/// Number of whole milliseconds of `known` by how many of these ascending times they have. Its
/// last entry is not 0.
pub(super) fn per_ms(times: &[Nanos], known: Window) -> Vec<u64> {
    let whole = known.length().0 / MS.0;
    if whole == 0 {
        return Vec::new();
    }
    let mut by_count: Vec<u64> = vec![0];
    let mut busy = 0;
    let of = |t: &Nanos| (*t - known.start).0 / MS.0;
    for bin in times.chunk_by(|a, b| of(a) == of(b)) {
        if of(&bin[0]) >= whole {
            break;
        }
        let count = (bin.len() as u64).min(PER_MS_MAX) as usize;
        if count >= by_count.len() {
            by_count.resize(count + 1, 0);
        }
        by_count[count] += 1;
        busy += 1;
    }
    by_count[0] = whole - busy;
    by_count
}

/// The most of these ascending times in any millisecond that begins with one of them.
pub(super) fn burst_max(times: &[Nanos]) -> u64 {
    let mut first = 0;
    let mut most = 0;
    for (last, &t) in times.iter().enumerate() {
        while t - times[first] >= MS {
            first += 1;
        }
        most = most.max(last + 1 - first);
    }
    most as u64
}

/// The share of the datagrams, in percent, that a single server with this fixed work and this
/// buffer loses of what was sent. `None` where work is not fixed or the buffer not known.
///
/// The times of sending themselves go through the buffer, where all are known. On one host a
/// datagram is in the buffer as its send call returns. Where not all times of a Poisson schedule
/// are kept, simulated ones at the achieved rate take their place. The buffer is that of a UDP
/// socket, which has less room than M/D/1/K would (see [`Buffer::of_udp_socket`]).
pub(super) fn theory_loss_percent(trial: &UdpTrial, sent_per_s: f64) -> Option<f64> {
    let Some(Law::Fixed(work)) = trial.service.work.filter(|work| !work.is_zero()) else {
        return None;
    };
    let buffer = Buffer::of_udp_socket(trial.service.buffer_datagrams?);
    let starts = &trial.sent.starts;
    if starts.is_empty() {
        return None;
    }
    let percent = |lost: u64, of: usize| 100.0 * lost as f64 / of as f64;
    if starts.len() as u64 == trial.sent.sent {
        return Some(percent(buffer.lost(starts.iter().copied(), work), starts.len()));
    }
    let ClientWait::Schedule { arrival, .. } = &trial.spec.wait else {
        return None;
    };
    let rate = Rate::from_f64(sent_per_s).filter(|_| *arrival == ArrivalLaw::Poisson)?;
    let mut schedule = Arrivals::of(rate, arrival, Share::WHOLE, trial.spec.seed);
    let simulated = std::iter::from_fn(|| schedule.next()).take(SIMULATED);
    Some(percent(buffer.lost(simulated, work), SIMULATED))
}

/// Enough that chance moves a loss of one in a hundred by a hundredth of itself.
const SIMULATED: usize = 1_000_000;
