//! When a target did not answer: users who hang, outages, pauses.
//!
//! A silence is a time in which operations were under way and nothing completed, too long to be
//! explained by the gaps of the same load. It needs no failure, and its place is that of the
//! timeline: warm-up, window, or the wait for what was under way at the window's end.
//!
//! Three laws explain a gap: that of all gaps between completions, that of response times (of each
//! operation that waited in it, from the age that it had), and the median of the slowest target.
//! The laws are fitted without the longest 5 % (see [`Hazard`]). On a noisy host they have long
//! tails, so that rare gaps that are far longer than all others need no law.

use knee_load::measure::{Outcome, Timeline, Trial, Window};
use knee_load::spec::Load;
use knee_load::stats::tail::{Hazard, TailPoints};
use knee_load::time::Nanos;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::slice;

/// Operations and times without an answer of the target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SilenceReport {
    /// Operations that waited for an answer at the end of the measured time and never got one. Each
    /// waited far longer than an answer takes. In a closed loop: users who hang.
    pub hung: u64,
    /// Hung operations that began before the measured time and waited all through it.
    pub hung_throughout: u64,
    /// The shortest time that a hung operation had waited.
    pub hung_ns_min: Option<u64>,
    /// Times in which work waited and nothing completed: of a second or more, or with failures.
    pub outages: Vec<OutageReport>,
    /// Shorter such times.
    pub pauses: Option<PausesReport>,
}

impl SilenceReport {
    /// Whether the target answered all the time.
    pub fn is_none(&self) -> bool {
        *self == SilenceReport::default()
    }
}

/// A time in which work waited and nothing completed, of a second or more, or with failures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutageReport {
    /// Begin, from the begin of the window; negative in the warm-up.
    pub start_ns: i64,
    /// End, likewise. It may be after the window, as what was under way is waited for.
    pub end_ns: i64,
    /// Operations that failed in it or were never answered because of it.
    pub failures: u64,
}

/// Pauses of a server, such as a collection of garbage makes: times below a second in which work
/// waited and nothing completed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PausesReport {
    /// Number of pauses.
    pub count: u64,
    /// From the begin of one to that of the next, the median; absent where they have no period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_ns: Option<u64>,
    /// Length, the mean.
    pub length_ns: u64,
    /// Their share of the time, in percent.
    pub percent: f64,
    /// Begin and end of each, from the begin of the window, or of the sweep: the first thousand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times_ns: Vec<[i64; 2]>,
}

/// An operation hangs if it has waited for this time, …
const HUNG: Nanos = Nanos::from_secs(1);
/// … and for this number of medians of the response time.
const HUNG_MEDIANS: u64 = 20;
/// Shortest silence, and the least time beyond a usual response.
const SHORTEST: Nanos = Nanos::from_millis(100);
/// Probability of a gap as long in the whole run by the law of the others: e^−13.8.
const IMPROBABLE: f64 = 1e-6;
/// Fewest gaps from which a law is fitted.
const GAPS_MIN: u64 = 8;
/// Quantiles by which laws are fitted, …
const POINTS: TailPoints = [0.5, 0.8, 0.95];
/// … and at first, where silences are still among the gaps.
const FIRST_POINTS: TailPoints = [0.5, 0.75, 0.9];
/// Gaps of this many times the length of the one that one in a hundred of the others exceeds, …
const APART: f64 = 6.0;
/// … and of this many times the longest of the others, are no part of their law, …
const APART_OF_LONGEST: f64 = 2.5;
/// … if they are no more than one in this number of all.
const RARE: u64 = 20;
/// Grain of times that are known to the nanosecond.
const EXACT: f64 = 1.0;
/// Share of the response times below which an operation is too young to be missed.
const YOUNG: f64 = 0.1;
/// A silence with failures alone: shortest, …
const FAILING: Nanos = Nanos::from_millis(250);
/// … shortest part of one in a trial, where it reaches to an end of that …
const FAILING_PART: Nanos = Nanos::from_millis(2);
/// … and the good responses that are expected in it. A Poisson process has none then with a
/// probability of 0.03 %. …
const EXPECTED: f64 = 8.0;
/// … It must also last this number of shortest responses, as users in step are silent for one.
const RESPONSES: u64 = 2;
/// A silence of this length is an outage.
const OUTAGE: Nanos = Nanos::from_secs(1);
/// Trials of a load whose times to the first response show what is usual.
const BEGINS_MIN: usize = 3;
/// Share of a silence for which each worker must have been stalled if the generator made it.
const STALLED_SHARE: f64 = 0.5;
/// Least number of pauses that make a period, …
const PAUSES: usize = 4;
/// … if the times between them deviate from their median by no more than this share, …
const REGULAR: f64 = 0.1;
/// … nearly all: one in this number may be off.
const MAY_BE_OFF: usize = 5;
/// A target that is silent for more than this share of the time from its first pause to its last is
/// not paused but works in turns.
const PAUSED_SHARE: f64 = 0.5;
/// The most pauses whose times are reported.
const TIMES_MAX: usize = 1_000;

/// A time in which work waited and nothing completed. Times in nanoseconds: of the run, or of the
/// experiment that the run belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Silence {
    /// The last completion before it, or the first start where nothing was under way then.
    pub begin_ns: u64,
    /// The next completion, or the end.
    pub end_ns: u64,
    /// Operations that failed in it or because of it.
    pub failures: u64,
    /// The generator made it: all its workers were stalled for most of it.
    pub of_generator: bool,
    /// Nothing had completed before it in its trial. Such silences of trials that followed one
    /// another may be one: see [`joined`].
    pub at_begin: bool,
    /// Nothing completed after it in its trial.
    pub at_end: bool,
    /// Whether it shows in its trial alone. Connections are opened before the first completion, so
    /// that only a second is a silence there, or what is longer than in most trials of the load.
    /// After the window single operations may be left that hang.
    pub shows: bool,
}

impl Silence {
    /// Length.
    pub fn length_ns(&self) -> u64 {
        self.end_ns - self.begin_ns
    }

    /// Whether the target made it, and it shows by itself.
    pub fn is_of_target(&self) -> bool {
        self.shows && !self.of_generator
    }

    /// Whether it is an outage, and no pause.
    pub fn is_outage(&self) -> bool {
        let is_failing = self.failures > 0 && self.length_ns() >= FAILING.0;
        self.length_ns() >= OUTAGE.0 || is_failing
    }
}

/// Joins silences of trials that followed one another where nothing completed in between: they end
/// and begin within this time. `silences` are in the order of their begins.
pub fn joined(silences: impl IntoIterator<Item = Silence>, within: Nanos) -> Vec<Silence> {
    let mut merged: Vec<Silence> = Vec::new();
    for next in silences {
        match merged.last_mut() {
            Some(last)
                if last.at_end && next.at_begin && last.end_ns + within.0 >= next.begin_ns =>
            {
                last.end_ns = last.end_ns.max(next.end_ns);
                last.failures += next.failures;
                last.of_generator &= next.of_generator;
                last.at_end = next.at_end;
                last.shows = true;
            }
            _ => merged.push(next),
        }
    }
    merged
}

/// The input for finding silences: the timeline of a trial, and its response times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SilenceRecord {
    timeline: Timeline,
    window: Window,
    timeout: Nanos,
    /// Service times and their counts, ascending; of streams the times to the first message. Waits
    /// for a free connection are no part of them, as others are under way then.
    responses: Vec<(Nanos, u64)>,
    are_streams: bool,
    /// Median response time of the slowest of several targets; zero of one.
    slowest_median: Nanos,
    /// Operations that never ended and waited through the end of the window.
    hung: u64,
    has_timeouts: bool,
}

/// A time without a good response in which something was under way or failed, in bins.
struct Gap {
    bins: Range<usize>,
    /// The first bin in which an operation began that waits in it, first come, first served, and
    /// how many of these it has.
    oldest: (usize, u64),
    /// Time for which operations waited, beyond that of a short response.
    beyond: Nanos,
    at_begin: bool,
    at_end: bool,
    /// The end up to which it is judged: that of the window, where operations are left after it.
    judged: usize,
    /// The generator made it.
    of_generator: bool,
}

impl Gap {
    fn length(&self) -> u64 {
        self.judged.saturating_sub(self.bins.start) as u64
    }
}

impl SilenceRecord {
    /// The record of a trial.
    pub fn of(trial: &Trial) -> SilenceRecord {
        let measured = &trial.measurement;
        let streams = measured.messages.as_ref().filter(|messages| messages.count > 0);
        let responses = streams.map_or(&measured.service, |streams| &streams.first_message);
        // That of one alone is in the law of response times, and grows with the users who wait.
        let several = measured.targets.len() > 1;
        let medians = measured.targets.iter().map(|target| target.response.quantile(0.5));
        SilenceRecord {
            timeline: measured.timeline.clone(),
            window: measured.window,
            timeout: trial.spec.timeout,
            responses: responses.iter_recorded().collect(),
            are_streams: streams.is_some(),
            slowest_median: medians.max().filter(|_| several).unwrap_or_default(),
            hung: hung(trial).0,
            has_timeouts: measured.outcomes.count(Outcome::Timeout) > 0,
        }
    }

    fn bins(&self) -> usize {
        match self.timeline.bin {
            Nanos::ZERO => 0,
            bin => (self.timeline.end.0 / bin.0) as usize + 1,
        }
    }

    /// Time of the first good response; the end without any.
    fn first_good(&self) -> Nanos {
        let Timeline { bin, good, messages, end, .. } = &self.timeline;
        let first = |counts: &[u32]| counts.iter().position(|&n| n > 0);
        let first = first(good).into_iter().chain(first(messages)).min();
        first.map_or(*end, |i| Nanos(i as u64 * bin.0))
    }

    /// Good responses from one time of the run to another.
    pub(super) fn good_between(&self, times: [u64; 2]) -> u64 {
        let Timeline { bin, good, .. } = &self.timeline;
        let [from, until] =
            times.map(|ns| ns.div_ceil(bin.0.max(1)) as usize).map(|i| i.min(good.len()));
        good[from.min(until)..until].iter().map(|&n| u64::from(n)).sum()
    }

    /// Delays of the generator's workers.
    pub(super) fn stalls(&self) -> impl Iterator<Item = [Nanos; 2]> + '_ {
        self.timeline.stalls.iter().flatten().copied()
    }

    /// Length of a bin.
    pub(super) fn bin(&self) -> Nanos {
        self.timeline.bin
    }

    /// Begin and end of these bins.
    fn bin_times(&self, bins: &Range<usize>) -> [Nanos; 2] {
        let at = |i: usize| Nanos(i as u64 * self.timeline.bin.0).min(self.timeline.end);
        [at(bins.start), at(bins.end)]
    }

    /// All gaps of at least one bin, and the number of bins with completions, each of which ends
    /// one.
    fn gaps(&self, short: Nanos) -> (Vec<Gap>, u64) {
        let Timeline { bin, started, good, failed, messages, .. } = &self.timeline;
        let at = |counts: &[u32], i: usize| u64::from(counts.get(i).copied().unwrap_or(0));
        let bins = self.bins();
        let (mut gaps, mut completing) = (Vec::new(), 0);
        // Operations that began and ended before bin `i`, and that began before bin `first`.
        let (mut began, mut ended, mut first, mut before_first) = (0, 0, 0, 0);
        let mut open: Option<Gap> = None;
        let mut waited = 0;
        let mut close = |gap: Gap, end: usize, judged: usize, waited: usize| {
            let age = Nanos(judged.saturating_sub(gap.oldest.0) as u64 * bin.0);
            let waited = waited.min(judged.saturating_sub(gap.bins.start));
            let beyond = Nanos(waited as u64 * bin.0).min(age - short);
            let bins = gap.bins.start..end;
            let [begin, until] = self.bin_times(&bins);
            let of_generator = self.is_of_generator(begin, until);
            gaps.push(Gap { bins, beyond, judged, of_generator, ..gap });
        };
        for i in 0..bins {
            let is_under_way = began > ended || at(started, i) > 0;
            // Users who have failed come again after a while: they wait all the same.
            let has_failed = i > 0 && at(failed, i - 1) > 0;
            let waits = is_under_way || has_failed;
            if at(good, i) + at(messages, i) > 0 {
                if let Some(gap) = open.take() {
                    close(gap, i, i, waited);
                }
                completing += 1;
            } else if waits {
                if open.is_none() {
                    while first < i && before_first + at(started, first) <= ended {
                        before_first += at(started, first);
                        first += 1;
                    }
                    waited = 0;
                    let start = if is_under_way { i } else { i - 1 };
                    open = Some(Gap {
                        bins: start..start,
                        oldest: (first, before_first + at(started, first) - ended),
                        beyond: Nanos::ZERO,
                        at_begin: completing == 0,
                        at_end: false,
                        judged: i,
                        of_generator: false,
                    });
                }
                waited += 1;
            }
            began += at(started, i);
            ended += at(good, i) + at(failed, i);
        }
        if let Some(last) = open {
            let window_end = (self.window.end.0 / bin.0) as usize;
            let begins_within = last.bins.start < window_end;
            let judged = if begins_within { bins.min(window_end) } else { bins };
            close(Gap { at_end: true, ..last }, bins, judged, waited);
        }
        (gaps, completing)
    }

    /// The hazard of operations that waited in a gap not to have ended in it, and their number.
    fn missed(&self, gap: &Gap, responses: &Hazard) -> (f64, u64) {
        let bin = self.timeline.bin.0 as f64;
        // How long ago a stream had its last message is not known.
        let youngest = if self.are_streams { gap.bins.start } else { 0 };
        let age = |i: usize, end: usize| end.saturating_sub(i.max(youngest)) as f64 * bin;
        let begun = self.timeline.started.get(gap.oldest.0..).unwrap_or_default();
        let (mut hazard, mut waiting) = (0.0, 0);
        for (i, &n) in (gap.oldest.0..gap.judged).zip(begun) {
            let n = if i == gap.oldest.0 { gap.oldest.1 } else { u64::from(n) };
            if n > 0 {
                let [before, after] = [gap.bins.start, gap.judged].map(|end| age(i, end));
                hazard += n as f64 * (responses.up_to(after) - responses.up_to(before));
                waiting += n;
            }
        }
        (hazard, waiting)
    }

    /// Operations that failed within a gap, that began then and timed out later, and those that
    /// never ended.
    fn failures(&self, run: &Range<usize>) -> u64 {
        let Timeline { bin, failed, .. } = &self.timeline;
        let within = |bins: Range<usize>| -> u64 {
            let bins = bins.start.min(failed.len())..bins.end.min(failed.len());
            failed[bins].iter().map(|&n| u64::from(n)).sum()
        };
        let timeout = (self.timeout.0 / bin.0.max(1)) as usize;
        let later = if self.has_timeouts {
            run.end.max(run.start + timeout)..run.end + timeout + 1
        } else {
            0..0
        };
        // What never ended counts as failed in the last bin, unless nobody waited for it.
        let never = if run.end >= self.bins() { self.hung } else { 0 };
        (within(run.clone()) + within(later)).max(never)
    }

    /// Whether the generator explains this time: all workers that had operations were stalled for
    /// most of it, or for all but less than the shortest silence.
    fn is_of_generator(&self, begin: Nanos, end: Nanos) -> bool {
        let stalled = |stalls: &Vec<[Nanos; 2]>| -> u64 {
            let within = stalls.iter().map(|[from, until]| (*until).min(end) - (*from).max(begin));
            within.map(|length| length.0).sum()
        };
        let length = end - begin;
        let stalled = self.timeline.stalls.iter().map(stalled).min().map_or(Nanos::ZERO, Nanos);
        let most = length.0 as f64 * STALLED_SHARE;
        stalled.0 as f64 >= most || length - stalled < SHORTEST && stalled > Nanos::ZERO
    }
}

/// The silences of trials of several loads, by load and trial. Those of one load are judged by the
/// gaps and response times of all its trials. Times are of the runs.
pub fn silences(loads: &[Vec<&SilenceRecord>]) -> Vec<Vec<Vec<Silence>>> {
    let loads: Vec<LoadGaps> = loads.iter().map(|records| LoadGaps::of(records)).collect();
    // A target pauses alike at all loads.
    let together = apart(&loads);
    let judged = loads.iter().map(|load| {
        let shared = if load.is_rare(together) { together } else { f64::INFINITY };
        load.silences(apart(slice::from_ref(load)).min(shared))
    });
    judged.collect()
}

/// The shortest of the gaps that are far longer than all others of these loads.
fn apart(loads: &[LoadGaps]) -> f64 {
    let mut lengths: Vec<f64> = loads.iter().flat_map(LoadGaps::target_lengths).collect();
    lengths.sort_by(|a, b| b.total_cmp(a));
    let least = loads.iter().map(|load| load.grain).fold(1.0, f64::max);
    let at = |i: usize| lengths.get(i).map_or(least, |length| length.max(least));
    let ends: u64 = loads.iter().map(|load| load.ends).sum();
    let far = |i: usize| APART * at(i + 1 + ends as usize / 100);
    let apart = (0..lengths.len().min((ends / RARE) as usize))
        .take_while(|&i| lengths[i] >= SHORTEST.0 as f64)
        .filter(|&i| lengths[i] >= far(i) && lengths[i] >= APART_OF_LONGEST * at(i + 1))
        .last();
    apart.map_or(f64::INFINITY, |i| lengths[i])
}

/// All gaps of the trials of one load.
struct LoadGaps<'a> {
    records: &'a [&'a SilenceRecord],
    /// Gaps of each trial.
    gaps: Vec<Vec<Gap>>,
    /// Times at which something completed.
    ends: u64,
    /// Length of a bin.
    grain: f64,
    /// Service times and their counts, ascending.
    responses: Vec<(Nanos, u64)>,
}

impl<'a> LoadGaps<'a> {
    fn of(records: &'a [&'a SilenceRecord]) -> LoadGaps<'a> {
        let bin = records.iter().map(|record| record.timeline.bin).max().unwrap_or_default();
        let mut responses: Vec<(Nanos, u64)> =
            records.iter().flat_map(|record| record.responses.iter().copied()).collect();
        responses.sort_unstable();
        let count: u64 = responses.iter().map(|(_, n)| n).sum();
        let are_streams = records.iter().any(|record| record.are_streams);
        let young = (YOUNG * count as f64) as u64;
        let young = shortest(&responses, young.max(1)).last().map_or(0.0, |(time, _)| time);
        let short = if are_streams { Nanos::ZERO } else { Nanos(young as u64) };
        let (gaps, ends): (Vec<Vec<Gap>>, Vec<u64>) =
            records.iter().map(|record| record.gaps(short)).unzip();
        let ends = ends.iter().sum();
        LoadGaps { records, gaps, ends, grain: bin.0.max(1) as f64, responses }
    }

    /// All gaps, each with the record of its trial.
    fn with_records(&self) -> impl Iterator<Item = (&'a SilenceRecord, &Gap)> {
        let gaps = self.records.iter().zip(&self.gaps);
        gaps.flat_map(|(record, gaps)| gaps.iter().map(move |gap| (*record, gap)))
    }

    /// Lengths of the gaps that the generator did not make.
    fn target_lengths(&self) -> impl Iterator<Item = f64> {
        self.with_records().filter(|(_, gap)| !gap.of_generator).map(|(_, gap)| gap.beyond.0 as f64)
    }

    /// Whether few of the gaps are as long as this.
    fn is_rare(&self, length: f64) -> bool {
        let as_long = self.target_lengths().filter(|other| *other >= length).count() as u64;
        as_long * RARE <= self.ends
    }

    /// The silences of each trial. Gaps of at least the length `apart` need no law.
    fn silences(&self, apart: f64) -> Vec<Vec<Silence>> {
        let (ends, responses) = (self.ends, &self.responses);
        let slowest_median = self.records.iter().map(|record| record.slowest_median).max();
        let slowest_median = slowest_median.unwrap_or_default();
        let limit = ((ends.max(1) as f64) / IMPROBABLE).ln();
        // Gaps that are no silences of at most this length beyond a short response, by their law.
        let law = |longest: f64, points: TailPoints| {
            let mut lengths: Vec<f64> = self.target_lengths().collect();
            lengths.retain(|length| *length <= longest);
            lengths.sort_by(f64::total_cmp);
            let none = ends.saturating_sub(lengths.len() as u64);
            let lengths = lengths.into_iter().map(|length| (length, 1));
            Hazard::of([(0.0, none)].into_iter().chain(lengths), self.grain, points)
        };
        let long = |record: &SilenceRecord, gap: &Gap| {
            let length = gap.length() * record.timeline.bin.0;
            gap.beyond >= SHORTEST && length >= 2 * slowest_median.0
        };
        let longest = |law: &Hazard| {
            let usual = self.with_records().filter(|(record, gap)| {
                !long(record, gap) || law.up_to(gap.beyond.0 as f64) <= limit
            });
            usual.map(|(_, gap)| gap.beyond.0 as f64).fold(SHORTEST.0 as f64, f64::max)
        };
        let count: u64 = responses.iter().map(|(_, n)| n).sum();
        let laws = law(f64::MAX, FIRST_POINTS).filter(|_| ends >= GAPS_MIN).and_then(|first| {
            let usual = longest(&first);
            let gaps = law(usual, POINTS)?;
            // Those that waited in silences have the longest response times.
            let first = Hazard::of(shortest(responses, count), EXACT, FIRST_POINTS)?;
            let silent = self.with_records().filter(|(_, gap)| gap.beyond.0 as f64 > usual);
            let waited: u64 = silent.map(|(record, gap)| record.missed(gap, &first).1).sum();
            let kept = count - waited.min(count / 2);
            Some((gaps, Hazard::of(shortest(responses, kept), EXACT, POINTS)?))
        });
        let improbable = |record: &SilenceRecord, gap: &Gap| {
            laws.as_ref().is_some_and(|(gaps, responses)| {
                let law = || {
                    gaps.up_to(gap.beyond.0 as f64) > limit
                        && record.missed(gap, responses).0 > limit
                };
                // After the window ever fewer operations are left, whose gaps are longer.
                let within = gap.bins.start as u64 * record.timeline.bin.0 < record.window.end.0;
                long(record, gap) && (within && gap.beyond.0 as f64 >= apart || law())
            })
        };
        let good = |record: &&SilenceRecord| {
            record.timeline.good.iter().map(|&n| u64::from(n)).sum::<u64>()
        };
        let good: u64 = self.records.iter().map(good).sum();
        let bins: usize = self.records.iter().map(|record| record.bins()).sum();
        let in_step = responses.first().map_or(0, |(t, _)| t.0) * RESPONSES;
        let failing = |record: &SilenceRecord, gap: &Gap, failures: u64| {
            let outside = (bins as u64).saturating_sub(gap.length()).max(1) as f64;
            let expected = good as f64 * gap.length() as f64 / outside;
            let length = gap.length() * record.timeline.bin.0;
            // What reaches to an end of the trial may go on in the next one.
            let least = if gap.at_begin || gap.at_end { FAILING_PART } else { FAILING };
            failures > 0 && expected >= EXPECTED && length >= least.0.max(in_step)
        };
        let mut begins: Vec<Nanos> =
            self.records.iter().map(|record| record.first_good()).collect();
        begins.sort_unstable();
        let unlike_begins = match begins.get(begins.len() / 2) {
            Some(usual) if begins.len() >= BEGINS_MIN => OUTAGE.min(SHORTEST + Nanos(2 * usual.0)),
            _ => OUTAGE,
        };
        let judged = self.records.iter().zip(&self.gaps).map(|(record, gaps)| {
            let silences = gaps.iter().filter_map(|gap| {
                let failures = record.failures(&gap.bins);
                let is_improbable = improbable(record, gap);
                (is_improbable || failing(record, gap, failures)).then(|| {
                    let [begin, end] = record.bin_times(&gap.bins);
                    let is_long = is_improbable || end - begin >= FAILING;
                    Silence {
                        begin_ns: begin.0,
                        end_ns: end.0,
                        failures,
                        of_generator: gap.of_generator,
                        at_begin: gap.at_begin,
                        at_end: gap.at_end,
                        shows: is_long
                            && if gap.at_end {
                                begin < record.window.end
                            } else {
                                !gap.at_begin || end - begin >= unlike_begins
                            },
                    }
                })
            });
            silences.collect()
        });
        judged.collect()
    }
}

/// This number of the shortest of these times, which ascend, with their counts.
fn shortest(times: &[(Nanos, u64)], number: u64) -> impl Iterator<Item = (f64, u64)> {
    let mut left = number;
    times.iter().map_while(move |&(time, n)| {
        let n = n.min(left);
        left -= n;
        (n > 0).then_some((time.0 as f64, n))
    })
}

/// Hung operations, outages and pauses of a trial.
pub fn silence(trial: &Trial) -> SilenceReport {
    let (hung, hung_ns_min) = hung(trial);
    // An overload has its own words for a target that serves nothing.
    let is_overload = matches!(trial.spec.load, Load::Overload(_));
    let (outages, pauses) = silences(&[vec![&SilenceRecord::of(trial)]])
        .into_iter()
        .flatten()
        .flatten()
        .filter(|silence| silence.is_of_target() && !is_overload)
        .partition::<Vec<Silence>, _>(Silence::is_outage);
    SilenceReport {
        hung,
        hung_throughout: trial.measurement.carried.min(hung),
        hung_ns_min,
        ..report(&outages, &pauses, trial.measurement.window, trial.measurement.timeline.end)
    }
}

/// The report of these silences, by their window. Their share is of the time that all of the run
/// lasted.
fn report(outages: &[Silence], pauses: &[Silence], window: Window, lasted: Nanos) -> SilenceReport {
    let place = |ns: u64| ns as i64 - window.start.0 as i64;
    // What never completed lasted until the end of the window, whatever was waited for after it.
    let end = |silence: &Silence| if silence.at_end { window.end.0 } else { silence.end_ns };
    SilenceReport {
        outages: outages
            .iter()
            .map(|outage| OutageReport {
                start_ns: place(outage.begin_ns),
                end_ns: place(end(outage)),
                failures: outage.failures,
            })
            .collect(),
        pauses: pauses_report(pauses, place, lasted),
        ..SilenceReport::default()
    }
}

/// Operations that hang, and the shortest time that one has waited. An operation that timed out has
/// waited long enough.
fn hung(trial: &Trial) -> (u64, Option<u64>) {
    let measured = &trial.measurement;
    let median = measured.response.quantile(0.5);
    let long = HUNG.max(Nanos(median.0.saturating_mul(HUNG_MEDIANS)));
    let long = long.min(trial.spec.timeout);
    let mut waits = measured.unanswered.iter_recorded().filter(|(waited, _)| *waited >= long);
    let first = waits.next();
    let hung = first.map_or(0, |(_, n)| n) + waits.map(|(_, n)| n).sum::<u64>();
    (hung, first.map(|(waited, _)| waited.0))
}

/// Pauses within a time of this length, with their period if they have one.
pub(crate) fn pauses_report(
    pauses: &[Silence],
    place: impl Fn(u64) -> i64,
    lasted: Nanos,
) -> Option<PausesReport> {
    let mut between: Vec<u64> = pauses.windows(2).map(|w| w[1].begin_ns - w[0].begin_ns).collect();
    between.sort_unstable();
    let middle = between.get(between.len() / 2).copied();
    let period = middle.filter(|&period| {
        let off = between.iter().filter(|b| b.abs_diff(period) as f64 > REGULAR * period as f64);
        pauses.len() >= PAUSES && off.count() * MAY_BE_OFF <= between.len()
    });
    let silent: u64 = pauses.iter().map(Silence::length_ns).sum();
    let share = silent as f64 / lasted.0.max(1) as f64;
    let span =
        pauses.last().map_or(0, |last| last.end_ns) - pauses.first().map_or(0, |p| p.begin_ns);
    let works_in_turns = pauses.len() >= PAUSES && silent as f64 > PAUSED_SHARE * span as f64;
    (!pauses.is_empty() && !works_in_turns).then(|| PausesReport {
        count: pauses.len() as u64,
        period_ns: period,
        length_ns: silent / pauses.len() as u64,
        percent: 100.0 * share,
        times_ns: pauses
            .iter()
            .take(TIMES_MAX)
            .map(|p| [place(p.begin_ns), place(p.end_ns)])
            .collect(),
    })
}

#[cfg(test)]
mod tests;
