//! The station, M servers with one FIFO queue, and a look-aside cache that service times depend on.
//! Both are in ideal time.

use super::stats::StationCounts;
use knee_load::law::Law;
use knee_load::rng::{self, Rng};
use knee_load::spec::{ParseError, parse_duration, parse_law};
use knee_load::time::Nanos;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// M servers, each serving one request at a time, fed from one FIFO queue (Kendall's G/G/M).
///
/// Arrivals go in, finishes come out; it reads no clock. start = max(arrival, the earliest free
/// server), finish = start + S. A thread that wakes up late writes a response late, but the next
/// request still starts at the ideal finish of the one before. So no lateness adds up and the
/// saturation throughput is exactly M/E\[S\].
#[derive(Debug)]
pub struct Station {
    law: Law,
    rng: Rng,
    /// Time at which each server becomes free.
    free_at: BinaryHeap<Reverse<Nanos>>,
    /// Starts that lie after the latest arrival: the queue.
    waiting: VecDeque<Nanos>,
    latest: Nanos,
    /// Counts so far.
    pub(super) counts: StationCounts,
}

/// One request's way through the station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Arrival.
    pub arrival: Nanos,
    /// Begin of its service.
    pub start: Nanos,
    /// End of its service.
    pub finish: Nanos,
}

impl Station {
    /// `servers` idle servers (0 counts as 1) whose service times follow `law`.
    pub fn new(servers: u32, law: Law, rng: Rng) -> Station {
        let workers = servers.max(1);
        Station {
            law,
            rng,
            free_at: (0..workers).map(|_| Reverse(Nanos::ZERO)).collect(),
            waiting: VecDeque::new(),
            latest: Nanos::ZERO,
            counts: StationCounts::new(workers),
        }
    }

    /// Adds a request that arrives at `at`. Arrivals come in order: an earlier time than the last
    /// one counts as the last one.
    pub fn arrive(&mut self, at: Nanos) -> Visit {
        let arrival = at.max(self.latest);
        self.latest = arrival;
        // Requests whose service has begun have left the queue.
        while self.waiting.front().is_some_and(|&start| start <= arrival) {
            self.waiting.pop_front();
        }
        let service = self.law.sample(&mut self.rng);
        let mut earliest = self.free_at.peek_mut().expect("there is at least one server");
        let start = arrival.max(earliest.0);
        let finish = start + service;
        *earliest = Reverse(finish);
        drop(earliest);

        self.counts.stats.arrivals += 1;
        self.counts.begun += 1;
        self.counts.service_sum_ns += u128::from(service.0);
        self.counts.queue_sum += self.waiting.len() as u128;
        if start > arrival {
            self.waiting.push_back(start);
            self.counts.stats.queue_max =
                self.counts.stats.queue_max.max(self.waiting.len() as u64);
        }
        Visit { arrival, start, finish }
    }
}

/// A cache before something slow. Each request asks for one of its keys, all alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CacheSpec {
    /// Service time of a request whose key is in the cache.
    pub hit: Law,
    /// Service time of one whose key is not.
    pub miss: Law,
    /// Number of keys, at least 1.
    pub keys: u32,
    /// Time for which a key stays; `None`: for ever.
    pub ttl: Option<Nanos>,
    /// Most keys at once, at least 1; beyond them the one stored first goes. `None`: all.
    pub capacity: Option<u32>,
    /// Whether all keys are there at the start.
    pub is_warm: bool,
}

impl CacheSpec {
    /// One key that takes no time, not yet there.
    #[cfg(test)]
    pub(super) const ONE: CacheSpec = CacheSpec {
        hit: Law::ZERO,
        miss: Law::ZERO,
        keys: 1,
        ttl: None,
        capacity: None,
        is_warm: false,
    };
}

/// Reads `hit=1ms, miss=50ms, keys=1000, ttl=60s, capacity=500, start=cold`.
///
/// # Errors
/// An unknown name, a value that does not fit it, hit or miss missing.
pub fn parse_cache(text: &str) -> Result<CacheSpec, ParseError> {
    let (mut hit, mut miss) = (None, None);
    let (mut keys, mut ttl, mut capacity, mut is_warm) = (1000, None, None, true);
    for part in super::batch::parts(text) {
        let Some((name, value)) = part.split_once('=') else {
            return Err(part_error(part, "has no '='"));
        };
        let value = value.trim();
        match (name.trim(), value) {
            ("hit", _) => hit = Some(law(value)?),
            ("miss", _) => miss = Some(law(value)?),
            ("keys", _) => keys = super::batch::count(value)?,
            ("ttl", _) => ttl = Some(parse_duration(value)?),
            ("capacity", _) => capacity = Some(super::batch::count(value)?),
            ("start", "warm") => is_warm = true,
            ("start", "cold") => is_warm = false,
            _ => return Err(part_error(part, "is unknown")),
        }
    }
    let (Some(hit), Some(miss)) = (hit, miss) else {
        return Err(ParseError("hit and miss have to be given, such as hit=1ms, miss=50ms".into()));
    };
    Ok(CacheSpec { hit, miss, keys, ttl, capacity, is_warm })
}

/// A law, or a time alone, which is fixed.
fn law(text: &str) -> Result<Law, ParseError> {
    if text.contains('(') { parse_law(text) } else { parse_duration(text).map(Law::Fixed) }
}

fn part_error(part: &str, what: &str) -> ParseError {
    ParseError(format!(
        "'{part}' {what}: expected hit=LAW, miss=LAW, keys=N, ttl=T, capacity=N, start=warm|cold"
    ))
}

/// What is in the cache.
#[derive(Debug)]
pub(super) struct Cache {
    spec: CacheSpec,
    /// When each key was stored, by its number.
    stored: Vec<Option<Nanos>>,
    /// The keys that are there, the one stored first in front; some may have been stored again.
    order: VecDeque<(u32, Nanos)>,
    present: usize,
}

impl Cache {
    pub(super) fn new(spec: CacheSpec) -> Cache {
        let keys = spec.keys.max(1) as usize;
        let mut cache =
            Cache { spec, stored: vec![None; keys], order: VecDeque::new(), present: 0 };
        if spec.is_warm {
            (0..keys as u32).for_each(|key| cache.store(key, Nanos::ZERO));
        }
        cache
    }

    /// Looks up a random key at `now`. Returns the service time, and the key if it was missing.
    pub(super) fn look_up(&mut self, now: Nanos, rng: &mut Rng) -> (Nanos, Option<u32>) {
        let key = (rng::unit(rng) * self.stored.len() as f64) as usize % self.stored.len();
        let is_hit =
            self.stored[key].is_some_and(|at| self.spec.ttl.is_none_or(|ttl| now < at + ttl));
        if is_hit {
            (self.spec.hit.sample(rng), None)
        } else {
            (self.spec.miss.sample(rng), Some(key as u32))
        }
    }

    /// Stores a key at `at`.
    pub(super) fn store(&mut self, key: u32, at: Nanos) {
        self.present += usize::from(self.stored[key as usize].replace(at).is_none());
        self.order.push_back((key, at));
        let most = self.spec.capacity.map_or(usize::MAX, |n| n as usize);
        while self.present > most
            && let Some((oldest, then)) = self.order.pop_front()
        {
            let slot = &mut self.stored[oldest as usize];
            // It may have been stored again since.
            if *slot == Some(then) {
                *slot = None;
                self.present -= 1;
            }
        }
        if self.order.len() > 2 * self.stored.len() {
            let stored = &self.stored;
            self.order.retain(|&(key, at)| stored[key as usize] == Some(at));
        }
    }

    /// Forgets all keys.
    pub(super) fn empty(&mut self) {
        self.stored.fill(None);
        self.order.clear();
        self.present = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_load::rng;
    use proptest::prelude::*;

    const MS: Nanos = Nanos::from_millis(1);

    fn fixed(servers: u32, service: Nanos) -> Station {
        Station::new(servers, Law::Fixed(service), rng::stream(1, 0))
    }

    /// Mean wait and mean queue found, over Poisson arrivals at `rate_per_s`.
    fn mean_wait_ns(mut station: Station, rate_per_s: f64, arrivals: u32) -> (f64, Station) {
        let mut gaps = rng::stream(7, 7);
        let (mut now_ns, mut wait_ns) = (0.0, 0.0);
        for _ in 0..arrivals {
            now_ns += rng::exp1(&mut gaps) * 1e9 / rate_per_s;
            let visit = station.arrive(Nanos(now_ns as u64));
            wait_ns += (visit.start - visit.arrival).0 as f64;
        }
        (wait_ns / f64::from(arrivals), station)
    }

    fn assert_close(what: &str, measured: f64, theory: f64, tolerance: f64) {
        let off = measured / theory - 1.0;
        assert!(off.abs() < tolerance, "{what}: {measured} for {theory}");
    }

    #[test]
    fn idle_servers_serve_at_once_and_busy_ones_in_order() {
        let mut station = fixed(2, Nanos(10));
        let finishes = [0, 1, 2, 3, 50].map(|at| station.arrive(Nanos(at)).finish.0);
        assert_eq!(finishes, [10, 11, 20, 21, 60]);
        assert_eq!(station.counts.stats.queue_max, 2);
        assert_eq!(station.counts.queue_mean(), 1.0 / 5.0);
    }

    #[test]
    fn an_arrival_told_late_counts_as_the_latest() {
        let mut station = fixed(1, Nanos(10));
        station.arrive(Nanos(100));
        assert_eq!(station.arrive(Nanos(40)).arrival, Nanos(100));
    }

    #[test]
    fn saturation_throughput_is_exact() {
        for (servers, burst) in [(1, 1_000), (3, 999), (7, 7_000)] {
            let mut station = fixed(servers, MS);
            let last = (0..burst).map(|_| station.arrive(Nanos::ZERO)).last();
            let last = last.expect("the burst is not empty").finish;
            assert_eq!(last.0, u64::from(burst / servers) * MS.0, "{servers} servers");
        }
    }

    #[test]
    fn late_clients_do_not_slow_a_saturated_station() {
        // Five users for two servers, each of whom comes back 30 µs after its finish.
        let mut station = fixed(2, MS);
        let mut back = BinaryHeap::from([Reverse(Nanos::ZERO); 5]);
        for k in 0..10_000_u64 {
            let Reverse(at) = back.pop().expect("five users");
            let finish = station.arrive(at).finish;
            assert_eq!(finish.0, (k / 2 + 1) * MS.0);
            back.push(Reverse(finish + Nanos::from_micros(30)));
        }
    }

    #[test]
    fn m_d_1_waits_as_pollaczek_and_khinchine_say() {
        // Mean wait ρ/(2μ(1−ρ)); by Little's law the queue seen by Poisson arrivals is λ times it.
        for rho in [0.5, 0.8] {
            let (wait, station) = mean_wait_ns(fixed(1, MS), rho * 1e3, 400_000);
            let theory_ns = rho / (2.0 * 1e3 * (1.0 - rho)) * 1e9;
            assert_close("wait", wait, theory_ns, 0.04);
            assert_close("queue", station.counts.queue_mean(), theory_ns * rho / 1e6, 0.04);
            assert_eq!(station.counts.service_mean_ns(), 1e6);
        }
    }

    #[test]
    fn m_m_2_waits_as_erlang_c_says() {
        // Two servers at ρ = 0.8: C = 2ρ²/(1+ρ) = 0.711, mean wait C/(2μ(1−ρ)) = 1.778/μ.
        let station = Station::new(2, Law::Exp(MS), rng::stream(3, 1));
        let (wait, station) = mean_wait_ns(station, 1.6e3, 400_000);
        assert_close("wait", wait, 1.778e6, 0.05);
        assert_close("service", station.counts.service_mean_ns(), 1e6, 0.01);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn never_more_in_service_than_servers_and_always_in_order(
            servers in 1_u32..5,
            gaps in prop::collection::vec(0_u64..30, 1..80),
        ) {
            let law = Law::Exp(Nanos(40));
            let mut station = Station::new(servers, law, rng::stream(5, 5));
            let mut at = 0;
            let visits: Vec<Visit> = gaps.iter().map(|gap| {
                at += gap;
                station.arrive(Nanos(at))
            }).collect();
            for (i, visit) in visits.iter().enumerate() {
                prop_assert!(visit.arrival <= visit.start && visit.start <= visit.finish);
                prop_assert!(i == 0 || visits[i - 1].start <= visit.start);
                let in_service = visits[..=i].iter()
                    .filter(|v| v.start <= visit.start && visit.start < v.finish);
                prop_assert!(in_service.count() <= servers as usize);
            }
        }
    }

    #[test]
    fn caches_are_read_and_nonsense_is_refused() {
        let spec = parse_cache("hit=1ms, miss=exp(50ms), keys=10, ttl=2s, capacity=5, start=cold");
        let expected = CacheSpec {
            hit: Law::Fixed(Nanos::from_millis(1)),
            miss: Law::Exp(Nanos::from_millis(50)),
            keys: 10,
            ttl: Some(Nanos::from_secs(2)),
            capacity: Some(5),
            is_warm: false,
        };
        assert_eq!(spec, Ok(expected));
        for bad in ["", "hit=1ms", "hit=1ms, miss=2ms, keys=0", "hit=1ms,miss=2ms,x=1", "hit"] {
            assert!(parse_cache(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn key_goes_by_time_and_by_room() {
        let spec =
            CacheSpec { keys: 2, ttl: Some(Nanos(100)), capacity: Some(1), ..CacheSpec::ONE };
        let mut cache = Cache::new(spec);
        let mut rng = rng::stream(1, 1);
        let mut missing = |cache: &mut Cache, now| {
            let misses = (0..64).filter_map(|_| cache.look_up(Nanos(now), &mut rng).1);
            let mut keys: Vec<u32> = misses.collect();
            keys.sort_unstable();
            keys.dedup();
            keys
        };
        assert_eq!(missing(&mut cache, 0), [0, 1]);
        cache.store(0, Nanos(10));
        assert_eq!(missing(&mut cache, 20), [1]);
        cache.store(1, Nanos(20));
        assert_eq!(missing(&mut cache, 30), [0]);
        assert_eq!(missing(&mut cache, 120), [0, 1]);
        cache.store(1, Nanos(130));
        cache.empty();
        assert_eq!(missing(&mut cache, 140), [0, 1]);
    }

    #[test]
    fn storing_the_same_keys_takes_no_more_room() {
        let mut cache = Cache::new(CacheSpec { keys: 4, capacity: Some(3), ..CacheSpec::ONE });
        (0..1_000_u32).for_each(|n| cache.store(n % 4, Nanos(n.into())));
        assert!(cache.order.len() <= 8 && cache.present == 3);
    }
}
