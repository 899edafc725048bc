//! Counts the datagrams that reach a service: which are new, which came again, which came late.

use crate::experiment::udp::UdpReceived;
use crate::measure::Histogram;
use crate::time::Nanos;
use std::collections::BTreeMap;

/// Numbers per page of remembered numbers.
const PAGE_NUMBERS: u64 = 1 << 16;
const PAGE_WORDS: usize = (PAGE_NUMBERS / 64) as usize;
/// A number further than this beyond its client's highest is no number of a client. At two million
/// a second it would be half a minute of datagrams lost in a row.
const AHEAD_MAX: u64 = 1 << 26;
/// Memory for remembering numbers, in bytes; 8 KiB hold a page with gaps, 65,536
/// numbers, so this is enough for two thousand million. Numbers that all came cost next to nothing.
const MEMORY_MAX: usize = 256 << 20;
/// More clients than this have no numbers.
const CLIENTS_MAX: u32 = 1 << 20;
/// Maximum intervals; what is sent later counts in the last one.
const INTERVALS_MAX: u64 = 1 << 20;

/// The reason given for a datagram whose client or number cannot be right.
const MALFORMED: &str = "malformed";

/// Writes down what a service receives in one trial.
///
/// Each client numbers its datagrams from 0. A number seen before is a duplicate. A new one below
/// the highest of its client plus one is reordered: its sequence number is smaller than the next
/// expected (RFC 4737 §3). Both are exact however late a datagram comes, as every number is
/// remembered, in memory that is bounded. A client number that was not announced counts as
/// discarded, `malformed`, and so does a number too far ahead.
///
/// Only distinct datagrams enter the intervals, the delays and the arrivals.
#[derive(Debug)]
pub struct DatagramRecorder {
    clients_max: u32,
    clients: Vec<ClientNumbers>,
    interval: Nanos,
    intervals_max: usize,
    duration: Nanos,
    arrivals_max: usize,
    memory: usize,
    received: UdpReceived,
    discarded: BTreeMap<&'static str, u64>,
}

impl DatagramRecorder {
    /// A recorder for numbers of `clients` clients (from 0) over a trial of length `duration`. Its
    /// intervals have the length `interval`. It keeps at most `arrivals_max` times of arrival.
    pub fn new(
        clients: u32,
        interval: Nanos,
        duration: Nanos,
        arrivals_max: usize,
    ) -> DatagramRecorder {
        let interval = interval.max(Nanos(1));
        DatagramRecorder {
            clients_max: clients.min(CLIENTS_MAX),
            clients: Vec::new(),
            interval,
            intervals_max: duration.0.div_ceil(interval.0).clamp(1, INTERVALS_MAX) as usize,
            duration,
            arrivals_max,
            memory: MEMORY_MAX,
            received: UdpReceived {
                arrivals_until: Nanos::MAX,
                one_way_delay: Histogram::ready(),
                ..UdpReceived::default()
            },
            discarded: BTreeMap::new(),
        }
    }

    /// Counts datagram `number` of `client`, sent at `sent` and arrived at `arrived`, both on the
    /// sender's clock and since the run began.
    #[inline]
    pub fn record(&mut self, client: u32, number: u64, sent: Nanos, arrived: Nanos) {
        if client >= self.clients_max {
            self.discard(MALFORMED);
            return;
        }
        let index = client as usize;
        if index >= self.clients.len() {
            self.clients.resize_with(index + 1, ClientNumbers::default);
        }
        let sender = &mut self.clients[index];
        match sender.see(number, &mut self.memory) {
            NumberState::New => {}
            NumberState::Late => self.received.reordered += 1,
            NumberState::Before => {
                self.received.duplicates += 1;
                return;
            }
            NumberState::Absurd => {
                self.discard(MALFORMED);
                return;
            }
        }
        sender.received += 1;
        self.count(sent, arrived);
    }

    /// Counts a datagram that is not one of this run's, by the reason.
    pub fn discard(&mut self, reason: &'static str) {
        *self.discarded.entry(reason).or_default() += 1;
    }

    /// Distinct datagrams so far.
    pub fn received(&self) -> u64 {
        self.received.received
    }

    /// All that was counted. What the service knows from elsewhere (drops, pauses, processor time)
    /// is left at its default.
    pub fn finish(self) -> UdpReceived {
        let mut done = self.received;
        done.arrivals.sort_unstable();
        if done.arrivals_until == Nanos::MAX {
            let last = done.arrivals.last().map_or(Nanos::ZERO, |&t| t + Nanos(1));
            done.arrivals_until = self.duration.max(last);
        } else {
            let known = done.arrivals.partition_point(|&arrived| arrived < done.arrivals_until);
            done.arrivals.truncate(known);
        }
        done.by_client = self.clients.iter().map(|c| c.received).collect();
        done.by_client.resize(self.clients_max as usize, 0);
        let discarded = self.discarded.into_iter();
        done.discarded = discarded.map(|(why, n)| (why.to_owned(), n)).collect();
        done
    }

    #[inline]
    fn count(&mut self, sent: Nanos, arrived: Nanos) {
        let done = &mut self.received;
        done.received += 1;
        let interval = ((sent.0 / self.interval.0) as usize).min(self.intervals_max - 1);
        if interval >= done.by_interval.len() {
            done.by_interval.resize(interval + 1, 0);
        }
        done.by_interval[interval] += 1;
        done.one_way_delay.record(arrived - sent);
        if done.arrivals.len() < self.arrivals_max {
            done.arrivals.push(arrived);
        } else {
            done.arrivals_until = done.arrivals_until.min(arrived);
        }
    }
}

/// What a number is to its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NumberState {
    New,
    Late,
    Before,
    Absurd,
}

#[derive(Debug, Default)]
struct ClientNumbers {
    /// One more than the highest number seen.
    next: u64,
    pages: Vec<NumberPage>,
    received: u64,
}

/// Which of [`PAGE_NUMBERS`] consecutive numbers were seen.
#[derive(Debug, Default)]
enum NumberPage {
    #[default]
    None,
    Some(Box<PageBits>),
    All,
}

#[derive(Debug)]
struct PageBits {
    seen: u32,
    words: [u64; PAGE_WORDS],
}

impl ClientNumbers {
    #[inline]
    fn see(&mut self, number: u64, memory: &mut usize) -> NumberState {
        if number >= self.next && number - self.next >= AHEAD_MAX {
            return NumberState::Absurd;
        }
        let index = (number / PAGE_NUMBERS) as usize;
        let is_there = !matches!(self.pages.get(index), None | Some(NumberPage::None));
        if !is_there && !self.begin_page(index, memory) {
            return NumberState::Absurd;
        }
        let page = &mut self.pages[index];
        let NumberPage::Some(marks) = page else {
            return NumberState::Before;
        };
        if !marks.mark(number % PAGE_NUMBERS) {
            return NumberState::Before;
        }
        if u64::from(marks.seen) == PAGE_NUMBERS {
            *page = NumberPage::All;
            *memory += size_of::<PageBits>();
        }
        if number < self.next {
            return NumberState::Late;
        }
        self.next = number + 1;
        NumberState::New
    }

    /// Whether there is memory for a page number `index`, which is then there.
    #[cold]
    fn begin_page(&mut self, index: usize, memory: &mut usize) -> bool {
        let slots = (index + 1).saturating_sub(self.pages.len());
        let cost = slots * size_of::<NumberPage>() + size_of::<PageBits>();
        if cost > *memory {
            return false;
        }
        *memory -= cost;
        if slots > 0 {
            self.pages.resize_with(index + 1, NumberPage::default);
        }
        self.pages[index] =
            NumberPage::Some(Box::new(PageBits { seen: 0, words: [0; PAGE_WORDS] }));
        true
    }
}

impl PageBits {
    /// Marks a number of the page; whether it is new.
    #[inline]
    fn mark(&mut self, offset: u64) -> bool {
        let word = &mut self.words[(offset / 64) as usize];
        let bit = 1 << (offset % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        self.seen += u32::from(is_new);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    const MS: Nanos = Nanos::from_millis(1);

    fn recorder(arrivals_max: usize) -> DatagramRecorder {
        DatagramRecorder::new(3, MS, Nanos::from_millis(10), arrivals_max)
    }

    #[test]
    fn new_again_late_and_out_of_order() {
        let mut r = recorder(100);
        for number in [0, 1, 1, 4, 2, 3, 2, 5] {
            r.record(1, number, Nanos(number), Nanos(number + 7));
        }
        assert_eq!(r.received(), 6);
        let done = r.finish();
        assert_eq!(
            (done.received, done.duplicates, done.reordered),
            (6, 2, 2),
            "2 and 3 came after 4"
        );
        assert_eq!(done.by_client, [0, 6, 0]);
        assert_eq!(done.one_way_delay.max(), Nanos(7));
    }

    #[test]
    fn what_cannot_be_right_is_malformed_and_costs_no_memory() {
        let mut r = recorder(100);
        r.record(3, 0, MS, MS);
        r.record(0, AHEAD_MAX, MS, MS);
        r.record(0, u64::MAX, MS, MS);
        r.discard("not_of_this_run");
        assert_eq!(r.memory, MEMORY_MAX);
        r.record(0, AHEAD_MAX - 1, MS, MS);
        let done = r.finish();
        assert_eq!((done.received, done.discarded["malformed"]), (1, 3));
        assert_eq!(done.discarded["not_of_this_run"], 1);
    }

    #[test]
    fn leaps_do_not_exhaust_memory() {
        let mut r = DatagramRecorder::new(1, MS, MS, 0);
        for leap in 0..100_000 {
            r.record(0, leap * (AHEAD_MAX - 1), MS, MS);
        }
        let pages = r.clients[0].pages.len() * size_of::<NumberPage>();
        assert!(pages < MEMORY_MAX, "{pages}");
        assert!(r.received() > 1_000 && r.finish().discarded["malformed"] > 0);
    }

    #[test]
    fn a_page_of_which_all_came_is_forgotten_but_known() {
        let mut r = DatagramRecorder::new(1, MS, MS, 0);
        for number in 0..3 * PAGE_NUMBERS {
            r.record(0, number, MS, MS);
        }
        assert!(MEMORY_MAX - r.memory < size_of::<PageBits>());
        r.record(0, 70_000, MS, MS);
        let done = r.finish();
        assert_eq!((done.received, done.duplicates), (3 * PAGE_NUMBERS, 1));
    }

    #[test]
    fn more_arrivals_than_are_kept_end_what_is_known() {
        let mut r = recorder(3);
        for (number, arrived) in [(0, 10), (1, 30), (2, 20), (3, 25), (4, 40)] {
            r.record(0, number, Nanos(1), Nanos(arrived));
        }
        let done = r.finish();
        assert_eq!(done.arrivals, [Nanos(10), Nanos(20)]);
        assert_eq!(done.arrivals_until, Nanos(25));
        let mut r = recorder(3);
        r.record(0, 0, MS, Nanos::from_millis(11));
        assert_eq!(r.finish().arrivals_until, Nanos(11_000_001));
        assert_eq!(recorder(3).finish().arrivals_until, Nanos::from_millis(10));
    }

    #[test]
    fn an_interval_is_that_of_sending() {
        let mut r = recorder(0);
        for (number, sent_ms) in [(0, 0), (1, 2), (2, 9), (3, 50)] {
            let sent = Nanos::from_millis(sent_ms);
            r.record(0, number, sent, Nanos::from_secs(1));
        }
        assert_eq!(r.finish().by_interval, [1, 0, 1, 0, 0, 0, 0, 0, 0, 2]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// The same counts as by sets of numbers and a highest number.
        #[test]
        fn counts_are_those_of_a_naive_model(
            steps in proptest::collection::vec((0u32..4, 0u64..200, any::<bool>()), 0..400),
        ) {
            let mut r = recorder(usize::MAX);
            let mut seen: HashSet<(u32, u64)> = HashSet::new();
            let mut next = [0u64; 3];
            let (mut again, mut late, mut wrong) = (0, 0, 0);
            for &(client, small, far) in &steps {
                // Across the edges of pages too.
                let number = if far { small * 1_000 } else { small };
                r.record(client, number, Nanos(number), Nanos(number));
                if client == 3 {
                    wrong += 1;
                } else if seen.insert((client, number)) {
                    late += u64::from(number < next[client as usize]);
                    next[client as usize] = next[client as usize].max(number + 1);
                } else {
                    again += 1;
                }
            }
            let done = r.finish();
            prop_assert_eq!(done.received, seen.len() as u64);
            prop_assert_eq!(done.duplicates, again);
            prop_assert_eq!(done.reordered, late);
            prop_assert_eq!(done.discarded.get("malformed").copied().unwrap_or(0), wrong);
            prop_assert_eq!(done.by_client.iter().sum::<u64>(), done.received);
            prop_assert_eq!(done.by_interval.iter().sum::<u64>(), done.received);
            prop_assert_eq!(done.arrivals.len() as u64, done.received);
            prop_assert!(done.arrivals.is_sorted());
            let sum = done.received + again + wrong;
            prop_assert_eq!(sum, steps.len() as u64);
        }
    }
}
