//! A look-aside cache in ideal time: what service times depend on.

use knee_load::law::Law;
use knee_load::rng::{self, Rng};
use knee_load::spec::{ParseError, parse_duration, parse_law};
use knee_load::time::Nanos;
use std::collections::VecDeque;

/// A cache before something slow. Each request asks for one of its keys, all alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CacheSpec {
    /// Service time of a request whose key is in the cache.
    pub hit: Law,
    /// Service time of one whose key is not.
    pub miss: Law,
    /// Number of keys, at least 1.
    pub keys: u32,
    /// How long a key stays; `None`: for ever.
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
            return Err(wrong(part, "has no '='"));
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
            _ => return Err(wrong(part, "is unknown")),
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

fn wrong(part: &str, what: &str) -> ParseError {
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

    /// A request asks for a key at `now`: its service time, and the key where it was not there.
    pub(super) fn look_up(&mut self, now: Nanos, rng: &mut Rng) -> (Nanos, Option<u32>) {
        let key = (rng::unit(rng) * self.stored.len() as f64) as usize % self.stored.len();
        let is_there =
            self.stored[key].is_some_and(|at| self.spec.ttl.is_none_or(|ttl| now < at + ttl));
        if is_there {
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
