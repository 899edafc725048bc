//! A station with a managed queue: its order, clients that have gone, and a cache. It runs in ideal
//! time, as [`super::station`] does.

use super::batch::StreamKey;
use super::station::{Cache, CacheSpec, Visit};
use super::stats::StationCounts;
use knee_load::law::Law;
use knee_load::rng::Rng;
use knee_load::spec::{ParseError, parse_duration};
use knee_load::time::Nanos;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

/// Which waiting request is served next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueOrder {
    /// The one that came first.
    #[default]
    Fifo,
    /// The one that came last.
    Lifo,
    /// The one that came first, unless it is dropped, with status 503. Requests are dropped while
    /// all have waited longer than `target` for `interval` (CoDel, RFC 8289).
    Codel {
        /// Acceptable wait.
        target: Nanos,
        /// Time for which the wait has to exceed it.
        interval: Nanos,
    },
}

/// The defaults of RFC 8289, 4.2 and 4.3.
const CODEL: QueueOrder =
    QueueOrder::Codel { target: Nanos::from_millis(5), interval: Nanos::from_millis(100) };

/// Reads `fifo`, `lifo`, `codel` or `codel(5ms,100ms)`.
///
/// # Errors
/// Anything else.
pub fn parse_queue_order(text: &str) -> Result<QueueOrder, ParseError> {
    let text = text.trim();
    let times = text.strip_prefix("codel(").and_then(|rest| rest.strip_suffix(')'));
    match (text, times.and_then(|times| times.split_once(','))) {
        ("fifo", _) => Ok(QueueOrder::Fifo),
        ("lifo", _) => Ok(QueueOrder::Lifo),
        ("codel", _) => Ok(CODEL),
        (_, Some((target, interval))) => {
            let (target, interval) =
                (parse_duration(target.trim())?, parse_duration(interval.trim())?);
            Ok(QueueOrder::Codel { target, interval })
        }
        _ => Err(ParseError(format!(
            "'{text}' is no order: expected fifo, lifo, codel or codel(5ms,100ms)"
        ))),
    }
}

/// Management of a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueSpec {
    /// Most requests that wait; `None`: no limit.
    pub max: Option<u32>,
    /// Order of service.
    pub order: QueueOrder,
    /// Whether waiting requests whose client has gone are served.
    pub serves_gone: bool,
    /// The cache that service times depend on; `None`: they follow the law of the server.
    pub cache: Option<CacheSpec>,
}

impl Default for QueueSpec {
    fn default() -> QueueSpec {
        QueueSpec { max: None, order: QueueOrder::Fifo, serves_gone: true, cache: None }
    }
}

impl QueueSpec {
    /// Whether each request is served, in the order of arrival.
    pub(super) fn is_plain(&self) -> bool {
        *self == QueueSpec::default()
    }
}

/// How a request left the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueOutcome {
    /// It was served.
    Served(Visit),
    /// It was dropped from the queue.
    Dropped,
}

/// Workers, and the requests that wait for them.
#[derive(Debug)]
pub(super) struct QueueStation {
    spec: QueueSpec,
    law: Law,
    rng: Rng,
    cache: Option<Cache>,
    /// Time since which each idle worker is free.
    idle: BinaryHeap<Reverse<Nanos>>,
    waiting: VecDeque<WaitingRequest>,
    /// Services under way, the first to end first.
    serving: BinaryHeap<Reverse<(Nanos, StreamKey)>>,
    /// Services in progress by request.
    visits: HashMap<StreamKey, Service>,
    outcomes: VecDeque<(StreamKey, QueueOutcome)>,
    codel: Option<Codel>,
    /// Counts so far.
    pub(super) counts: StationCounts,
}

#[derive(Clone, Copy, Debug)]
struct WaitingRequest {
    key: StreamKey,
    arrival: Nanos,
    is_gone: bool,
}

#[derive(Clone, Copy, Debug)]
struct Service {
    visit: Visit,
    missed: Option<u32>,
    is_gone: bool,
}

impl QueueStation {
    /// `workers` idle workers (0 counts as 1); without a cache service times follow `law`.
    pub(super) fn new(workers: u32, law: Law, spec: QueueSpec, rng: Rng) -> QueueStation {
        QueueStation {
            cache: spec.cache.map(Cache::new),
            spec,
            law,
            rng,
            idle: (0..workers.max(1)).map(|_| Reverse(Nanos::ZERO)).collect(),
            waiting: VecDeque::new(),
            serving: BinaryHeap::new(),
            visits: HashMap::new(),
            outcomes: VecDeque::new(),
            codel: Codel::new(spec.order),
            counts: StationCounts::new(workers.max(1)),
        }
    }

    /// A request arrives at `at`. Returns `false` if the queue is full.
    pub(super) fn arrive(&mut self, key: StreamKey, at: Nanos) -> bool {
        self.advance(at);
        let is_full = self.spec.max.is_some_and(|max| self.waiting.len() >= max as usize);
        if self.idle.is_empty() && is_full {
            self.counts.stats.rejected += 1;
            return false;
        }
        self.counts.stats.arrivals += 1;
        self.counts.queue_sum += self.waiting.len() as u128;
        let request = WaitingRequest { key, arrival: at, is_gone: false };
        if let Some(Reverse(since)) = self.idle.pop() {
            self.begin(request, at.max(since));
        } else {
            self.waiting.push_back(request);
            self.counts.stats.queue_max =
                self.counts.stats.queue_max.max(self.waiting.len() as u64);
        }
        true
    }

    fn begin(&mut self, request: WaitingRequest, start: Nanos) {
        let WaitingRequest { key, arrival, is_gone } = request;
        let looked_up = self.cache.as_mut().map(|cache| cache.look_up(start, &mut self.rng));
        let (service, missed) = match looked_up {
            None => (self.law.sample(&mut self.rng), None),
            Some((service, missed)) => (service, missed),
        };
        self.counts.stats.misses += u64::from(missed.is_some());
        self.counts.begun += 1;
        self.counts.service_sum_ns += u128::from(service.0);
        let visit = Visit { arrival, start, finish: start + service };
        self.serving.push(Reverse((visit.finish, key)));
        self.visits.insert(key, Service { visit, missed, is_gone });
    }

    /// Ends the services that end by `now`, and begins those that follow.
    pub(super) fn advance(&mut self, now: Nanos) {
        while let Some(&Reverse((finish, key))) = self.serving.peek()
            && finish <= now
        {
            self.serving.pop();
            if let Some(service) = self.visits.remove(&key) {
                self.counts.stats.in_vain += u64::from(service.is_gone);
                // A client that has gone stores nothing in the cache.
                if let (Some(cache), Some(missed), false) =
                    (&mut self.cache, service.missed, service.is_gone)
                {
                    cache.store(missed, finish);
                }
                self.outcomes.push_back((key, QueueOutcome::Served(service.visit)));
            }
            match self.next(finish) {
                Some(request) => self.begin(request, finish),
                None => self.idle.push(Reverse(finish)),
            }
        }
    }

    /// Takes the next request out of the queue at `now`.
    fn next(&mut self, now: Nanos) -> Option<WaitingRequest> {
        loop {
            let next = match self.spec.order {
                QueueOrder::Lifo => self.waiting.pop_back(),
                QueueOrder::Fifo | QueueOrder::Codel { .. } => self.waiting.pop_front(),
            };
            let request = next?;
            let (wait, is_last) = (now - request.arrival, self.waiting.is_empty());
            if !self.codel.as_mut().is_some_and(|codel| codel.should_drop(now, wait, is_last)) {
                return Some(request);
            }
            self.counts.stats.dropped += 1;
            self.outcomes.push_back((request.key, QueueOutcome::Dropped));
        }
    }

    /// When the next service ends.
    pub(super) fn next_end(&self) -> Option<Nanos> {
        self.serving.peek().map(|Reverse((finish, _))| *finish)
    }

    /// Takes the next request that has left the queue.
    pub(super) fn take_outcome(&mut self) -> Option<(StreamKey, QueueOutcome)> {
        self.outcomes.pop_front()
    }

    /// Notes that the client of a request has gone. Returns whether the request left the queue.
    pub(super) fn leave(&mut self, key: StreamKey) -> bool {
        if let Some(service) = self.visits.get_mut(&key) {
            service.is_gone = true;
        }
        let Some(place) = self.waiting.iter().position(|request| request.key == key) else {
            return false;
        };
        if self.spec.serves_gone {
            self.waiting[place].is_gone = true;
            return false;
        }
        self.waiting.remove(place);
        self.counts.stats.left += 1;
        true
    }

    /// Whether there is a cache.
    pub(super) fn has_cache(&self) -> bool {
        self.cache.is_some()
    }

    /// Empties the cache.
    pub(super) fn drop_cache(&mut self) {
        if let Some(cache) = &mut self.cache {
            cache.empty();
        }
    }
}

/// When to drop, by RFC 8289, 5.
#[derive(Clone, Copy, Debug, Default)]
struct Codel {
    target: Nanos,
    interval: Nanos,
    /// Time at which the wait will have exceeded the target for the interval; zero while it does
    /// not.
    first_above: Nanos,
    drop_next: Nanos,
    count: u32,
    last_count: u32,
    is_dropping: bool,
}

impl Codel {
    /// CoDel with the limits of this order; `None` for another order.
    fn new(order: QueueOrder) -> Option<Codel> {
        match order {
            QueueOrder::Codel { target, interval } => {
                Some(Codel { target, interval, ..Codel::default() })
            }
            QueueOrder::Fifo | QueueOrder::Lifo => None,
        }
    }

    /// Whether a request that has waited for `wait` is dropped at `now`.
    fn should_drop(&mut self, now: Nanos, wait: Nanos, is_last: bool) -> bool {
        let is_above = self.is_above(now, wait, is_last);
        if self.is_dropping {
            self.is_dropping = is_above;
            if !is_above || now < self.drop_next {
                return false;
            }
            self.count += 1;
            self.drop_next = next_drop(self.drop_next, self.interval, self.count);
            return true;
        }
        if !is_above {
            return false;
        }
        self.is_dropping = true;
        let more = self.count.saturating_sub(self.last_count);
        let is_recent = now - self.drop_next < Nanos(self.interval.0.saturating_mul(16));
        self.count = if more > 1 && is_recent { more } else { 1 };
        self.drop_next = next_drop(now, self.interval, self.count);
        self.last_count = self.count;
        true
    }

    fn is_above(&mut self, now: Nanos, wait: Nanos, is_last: bool) -> bool {
        if wait < self.target || is_last {
            self.first_above = Nanos::ZERO;
            return false;
        }
        if self.first_above == Nanos::ZERO {
            self.first_above = now + self.interval;
            return false;
        }
        now >= self.first_above
    }
}

/// Time of the next drop. The gap shrinks by the square root of the number of drops.
fn next_drop(from: Nanos, interval: Nanos, count: u32) -> Nanos {
    from + Nanos((interval.0 as f64 / f64::from(count.max(1)).sqrt()) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_load::rng;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    fn station(spec: QueueSpec) -> QueueStation {
        QueueStation::new(1, Law::Fixed(MS(10)), spec, rng::stream(1, 0))
    }

    /// The requests that left the queue, by number, with the millisecond of their end.
    fn settled(station: &mut QueueStation) -> Vec<(u64, Option<u64>)> {
        let next = || {
            let ((number, _), settled) = station.take_outcome()?;
            Some((
                number,
                match settled {
                    QueueOutcome::Served(visit) => Some(visit.finish.0 / 1_000_000),
                    QueueOutcome::Dropped => None,
                },
            ))
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn orders_are_read_and_nonsense_is_refused() {
        assert_eq!(parse_queue_order("lifo"), Ok(QueueOrder::Lifo));
        assert_eq!(parse_queue_order("codel"), parse_queue_order("codel(5ms, 100ms)"));
        for bad in ["", "codel(", "codel(5ms)", "sjf", "codel(a,b)"] {
            assert!(parse_queue_order(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn order_decides_who_is_next() {
        for (order, expected) in
            [(QueueOrder::Fifo, [0, 1, 2, 3]), (QueueOrder::Lifo, [0, 3, 2, 1])]
        {
            let mut station = station(QueueSpec { order, ..QueueSpec::default() });
            for number in 0..4 {
                assert!(station.arrive((number, 0), MS(number)));
            }
            station.advance(MS(100));
            let ends = expected.into_iter().zip([10, 20, 30, 40].map(Some));
            assert_eq!(settled(&mut station), ends.collect::<Vec<_>>());
        }
    }

    #[test]
    fn idle_worker_starts_late_news_when_it_was_free() {
        let mut station = station(QueueSpec::default());
        station.arrive((0, 0), MS(0));
        // The server heard of the end of the first only now, but the second came at 12.
        station.arrive((1, 0), MS(12));
        station.advance(MS(60));
        assert_eq!(settled(&mut station), [(0, Some(10)), (1, Some(22))]);
        assert_eq!(station.next_end(), None);
    }

    #[test]
    fn whoever_goes_leaves_the_queue_or_is_served_in_vain() {
        for ((serves_gone, left, in_vain), ends) in [
            ((true, 0, 2), vec![(0, Some(10)), (1, Some(20)), (2, Some(30))]),
            ((false, 1, 1), vec![(0, Some(10)), (2, Some(20))]),
        ] {
            let mut station = station(QueueSpec { serves_gone, ..QueueSpec::default() });
            for number in 0..3 {
                station.arrive((number, 0), MS(number));
            }
            assert_eq!(station.leave((1, 0)), !serves_gone);
            assert!(!station.leave((0, 0)), "it is being served");
            station.advance(MS(100));
            assert_eq!(settled(&mut station), ends);
            assert_eq!((station.counts.stats.left, station.counts.stats.in_vain), (left, in_vain));
            // The second found none waiting, and the third one.
            let counts = &station.counts;
            assert_eq!((counts.stats.arrivals, counts.queue_mean()), (3, 1.0 / 3.0));
            assert_eq!(counts.service_mean_ns(), 1e7);
        }
    }

    #[test]
    fn full_queue_rejects() {
        let mut station = station(QueueSpec { max: Some(1), ..QueueSpec::default() });
        let taken = [0, 1, 2, 11].map(|at| station.arrive((at, 0), MS(at)));
        assert_eq!(taken, [true, true, false, true]);
        assert_eq!((station.counts.stats.rejected, station.counts.stats.queue_max), (1, 1));
    }

    /// Twice the capacity for 10 s: the wait of those served stays near the target.
    #[test]
    fn codel_keeps_the_wait_short_where_fifo_does_not() {
        let longest = |order| {
            let mut station = station(QueueSpec { order, ..QueueSpec::default() });
            for number in 0..2_000 {
                station.arrive((number, 0), MS(5 * number));
            }
            station.advance(MS(10_000));
            let waits = std::iter::from_fn(|| station.take_outcome()).filter_map(|(key, end)| {
                let QueueOutcome::Served(visit) = end else { return None };
                (key.0 > 1_900).then(|| (visit.start - visit.arrival).0 / 1_000_000)
            });
            let longest = waits.max();
            (longest, station.counts.stats.dropped)
        };
        assert_eq!(longest(QueueOrder::Fifo), (None, 0));
        let (wait, dropped) = longest(CODEL);
        assert!(wait.unwrap() < 1_500, "{wait:?}");
        assert!((500..1_000).contains(&dropped), "{dropped}");
    }

    #[test]
    fn what_is_stored_is_found_and_what_is_dropped_is_not() {
        let cache =
            CacheSpec { hit: Law::Fixed(MS(1)), miss: Law::Fixed(MS(20)), ..CacheSpec::ONE };
        let mut station = station(QueueSpec { cache: Some(cache), ..QueueSpec::default() });
        let ends = |station: &mut QueueStation, at: u64, goes: bool| {
            station.arrive((at, 0), MS(at));
            if goes {
                station.leave((at, 0));
            }
            station.advance(MS(at + 50));
            settled(station)
        };
        assert_eq!(ends(&mut station, 0, true), [(0, Some(20))]);
        assert_eq!(ends(&mut station, 100, false), [(100, Some(120))]);
        assert_eq!(ends(&mut station, 200, false), [(200, Some(201))]);
        station.drop_cache();
        assert_eq!(ends(&mut station, 300, false), [(300, Some(320))]);
        assert_eq!(station.counts.stats.misses, 3);
    }
}
