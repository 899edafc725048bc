//! What all processes promise, and what each one does.

use super::*;
use crate::spec::{ArrivalLaw, OpenLoad, Rate, Share};
use proptest::prelude::*;

fn load(per_s: u64, arrival: ArrivalLaw) -> OpenLoad {
    OpenLoad {
        rate: Rate::per_second(per_s).unwrap(),
        arrival,
        connections_max: 1,
        in_flight_max: None,
    }
}

fn burst(peak_ratio: f64, peak_share: f64, period: Nanos) -> ArrivalLaw {
    ArrivalLaw::Burst(BurstLaw { peak_ratio, peak_share, period })
}

fn ramp(from: u64, to: u64, over: Nanos) -> ArrivalLaw {
    ArrivalLaw::Ramp(RampLaw {
        from: Rate::per_second(from).unwrap(),
        to: Rate::per_second(to).unwrap(),
        over,
    })
}

/// All times of one worker before `end`.
fn part(load: &OpenLoad, share: Share, seed: u64, end: Nanos) -> Vec<Nanos> {
    let mut arrivals = load.arrivals(share, seed);
    std::iter::from_fn(|| arrivals.next()).take_while(|&t| t < end).collect()
}

/// All times before `end`, of all workers together.
fn union(load: &OpenLoad, of: u32, seed: u64, end: Nanos) -> Vec<Nanos> {
    let parts = (0..of).flat_map(|index| part(load, Share { index, of }, seed, end));
    let mut all: Vec<Nanos> = parts.collect();
    all.sort_unstable();
    all
}

fn gaps_s(moments: &[Nanos]) -> Vec<f64> {
    let pairs = moments.windows(2);
    pairs.map(|w| (w[1] - w[0]).as_secs_f64()).collect()
}

fn mean_and_cv(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, variance.sqrt() / mean)
}

/// Variance over mean of the counts per slot: 1 for a Poisson process.
fn dispersion(moments: &[Nanos], slot: Nanos, slots: usize) -> f64 {
    let mut counts = vec![0.0; slots];
    for moment in moments {
        if let Some(count) = counts.get_mut((moment.0 / slot.0) as usize) {
            *count += 1.0;
        }
    }
    let (mean, cv) = mean_and_cv(&counts);
    cv * cv * mean
}

#[test]
fn a_million_constant_arrivals_are_exact() {
    // 3/7 of an operation per 1,000,003 ns: nothing about it is round.
    let rate = Rate::new(3, Nanos(7 * 1_000_003)).unwrap();
    let mut constant = Constant::new(rate, Share::WHOLE);
    for k in 0..1_000_000u64 {
        let exact = u128::from(k) * 7 * 1_000_003 / 3;
        assert_eq!(constant.next(), Some(Nanos(exact as u64)));
    }
}

#[test]
fn constant_does_not_drift_in_a_year() {
    let rate = Rate::per_second(333_333).unwrap();
    let a_year = 333_333 * 365 * 86_400;
    assert_eq!(rate.moment(a_year), Nanos::from_secs(365 * 86_400));
}

#[test]
fn poisson_gaps_are_exponential_for_any_number_of_workers() {
    for of in [1, 2, 7] {
        let end = Nanos::from_secs(100);
        let all = union(&load(5_000, ArrivalLaw::Poisson), of, 11, end);
        let gaps = gaps_s(&all);
        let (mean, cv) = mean_and_cv(&gaps);
        assert!((mean * 5_000.0 - 1.0).abs() < 0.006, "{of} workers: mean gap {mean}");
        assert!((cv - 1.0).abs() < 0.02, "{of} workers: CV {cv}");
        for slot in [1, 10, 100].map(Nanos::from_millis) {
            let slots = (end.0 / slot.0) as usize;
            let index = dispersion(&all, slot, slots);
            // The index of n slots has a standard deviation of about sqrt(2/n).
            let bound = 4.0 * (2.0 / slots as f64).sqrt();
            assert!((index - 1.0).abs() < bound, "{of} workers, {slot}: {index}");
        }
        let beyond_mean = gaps.iter().filter(|g| **g > 1.0 / 5_000.0).count();
        let share = beyond_mean as f64 / gaps.len() as f64;
        assert!((share - (-1.0f64).exp()).abs() < 0.004, "{of} workers: {share}");
    }
}

#[test]
fn poisson_workers_are_independent() {
    let load = load(1_000, ArrivalLaw::Poisson);
    let [a, b] = [0, 1].map(|index| {
        let share = Share { index, of: 2 };
        gaps_s(&part(&load, share, 5, Nanos::from_secs(100)))
    });
    let pairs: Vec<(f64, f64)> = a.into_iter().zip(b).collect();
    let n = pairs.len() as f64;
    // Both have mean and standard deviation 2 ms.
    let covariance = pairs.iter().map(|(x, y)| (x - 0.002) * (y - 0.002)).sum::<f64>() / n;
    assert!((covariance / 0.002f64.powi(2)).abs() < 4.0 / n.sqrt());
}

#[test]
fn uniform_gaps_are_uniform_for_any_number_of_workers() {
    for of in [1, 3] {
        let all = union(&load(1_000, ArrivalLaw::Uniform), of, 3, Nanos::from_secs(200));
        let gaps = gaps_s(&all);
        let (mean, cv) = mean_and_cv(&gaps);
        assert!((mean - 0.001).abs() < 0.000_006, "{mean}");
        assert!((cv - 1.0 / 3f64.sqrt()).abs() < 0.005, "{cv}");
        let longest = gaps.iter().fold(0.0f64, |a, &b| a.max(b));
        assert!(longest <= 0.002 + 2e-9 && longest > 0.001_99, "{longest}");
    }
}

#[test]
fn hyperexp_gaps_have_their_mean_and_variation_for_any_workers() {
    for (cv, of) in [(1.0, 1), (3.0, 1), (3.0, 4)] {
        let all = union(&load(1_000, ArrivalLaw::Hyperexp(cv)), of, 7, Nanos::from_secs(400));
        let gaps = gaps_s(&all);
        let (mean, measured) = mean_and_cv(&gaps);
        assert!((mean * 1_000.0 - 1.0).abs() < 4.0 * cv / (gaps.len() as f64).sqrt(), "{mean}");
        assert!((measured / cv - 1.0).abs() < 0.05, "{cv}: {measured}");
        // Counts over 1 s have a variance of cv² times their mean, or nearly so.
        let index = dispersion(&all, Nanos::from_secs(1), 400);
        assert!((index / (cv * cv) - 1.0).abs() < 0.4, "{cv}: {index}");
    }
}

#[test]
fn erlang_gaps_have_their_mean_and_variation_for_any_workers() {
    for (stages, of) in [(2, 1), (4, 1), (4, 4), (20, 3)] {
        let all = union(&load(1_000, ArrivalLaw::Erlang(stages)), of, 7, Nanos::from_secs(100));
        let gaps = gaps_s(&all);
        let (mean, measured) = mean_and_cv(&gaps);
        let cv = 1.0 / f64::from(stages).sqrt();
        assert!((mean * 1_000.0 - 1.0).abs() < 4.0 * cv / (gaps.len() as f64).sqrt(), "{mean}");
        assert!((measured / cv - 1.0).abs() < 0.03, "{stages}: {measured}");
        // Counts over 1 s have a variance of cv² times their mean, or nearly so.
        let index = dispersion(&all, Nanos::from_secs(1), 100);
        assert!(index < 1.0 && (index / (cv * cv) - 1.0).abs() < 0.6, "{stages}: {index}");
    }
}

#[test]
fn ramp_reaches_each_count_when_the_integral_of_its_rate_does() {
    let over = Nanos::from_secs(10);
    for (from, to) in [(10, 1_990), (1_990, 10), (1_000, 1_000)] {
        let moments = part(&load(1, ramp(from, to, over)), Share::WHOLE, 1, over);
        assert!(moments.len().abs_diff(10_000) <= 1, "{}", moments.len());
        for (k, t) in moments.iter().enumerate() {
            let (f, g, t) = (from as f64, to as f64, t.as_secs_f64());
            let integral = f * t + (g - f) * t * t / 20.0;
            assert!((integral - k as f64).abs() < 1e-5, "{k}: {integral}");
        }
    }
}

#[test]
fn ramp_stays_at_its_last_rate() {
    let over = Nanos::from_secs(10);
    let load = load(1, ramp(100, 300, over));
    let moments = part(&load, Share::WHOLE, 1, Nanos::from_secs(20));
    assert_eq!(moments.len(), 2_000 + 3_000);
    let rates = [0, 5, 10, 15].map(|s| {
        let arrivals = load.arrivals(Share { index: 0, of: 2 }, 1);
        arrivals.rate_at(Nanos::from_secs(s))
    });
    assert_eq!(rates, [50.0, 100.0, 150.0, 150.0]);
}

#[test]
fn burst_has_its_share_at_the_peak_and_the_mean_in_all() {
    // Peak 4 times the mean for a tenth of the time: 40 % of the operations come in it.
    let period = Nanos::from_secs(1);
    let load = load(1_000, burst(4.0, 0.1, period));
    let moments = part(&load, Share::WHOLE, 1, Nanos::from_secs(50));
    assert_eq!(moments.len(), 50_000);
    let at_peak = moments.iter().filter(|t| t.0 % period.0 < 100_000_000);
    assert_eq!(at_peak.count(), 50 * 400);
    let rate = |ms| load.arrivals(Share::WHOLE, 1).rate_at(Nanos::from_millis(ms));
    assert_eq!(rate(50), 4_000.0);
    assert!((rate(150) - 1_000.0 * 0.6 / 0.9).abs() < 1e-9);
}

#[test]
fn burst_may_be_silent_between_its_peaks_and_does_not_drift() {
    let period = Nanos::from_millis(300);
    let load = load(1_000, burst(5.0, 0.2, period));
    let mut arrivals = load.arrivals(Share::WHOLE, 1);
    for k in 0..300_000u64 {
        // 300 operations in each period, all in its first 60 ms, 200 µs apart.
        let exact = k / 300 * period.0 + k % 300 * 200_000;
        let moment = arrivals.next().unwrap();
        assert!(moment.0.abs_diff(exact) <= 1, "{k}: {moment:?} {exact}");
    }
}

#[test]
fn trace_ends_with_its_last_moment() {
    let moments: Vec<Nanos> = [0, 5, 5, 9, 1_000].map(Nanos::from_millis).into();
    let load = load(1, ArrivalLaw::Trace(moments.clone().into()));
    assert_eq!(part(&load, Share::WHOLE, 1, Nanos::MAX), moments);
    let second = part(&load, Share { index: 1, of: 2 }, 1, Nanos::MAX);
    assert_eq!(second, [5, 9].map(Nanos::from_millis));
    let whole = load.arrivals(Share::WHOLE, 1);
    assert_eq!(whole.rate_at(Nanos::from_secs(1)), 1.0);
    assert_eq!(whole.rate_at(Nanos::from_millis(0)), 8.0);
}

#[test]
fn seeds_repeat_and_differ() {
    let end = Nanos::from_secs(1);
    for arrival in
        [ArrivalLaw::Poisson, ArrivalLaw::Uniform, ArrivalLaw::Hyperexp(2.0), ArrivalLaw::Erlang(3)]
    {
        let load = load(1_000, arrival);
        let moments = |seed| part(&load, Share::WHOLE, seed, end);
        assert_eq!(moments(1), moments(1));
        assert_ne!(moments(1), moments(2));
    }
}

/// Any process with sensible parameters.
fn any_arrival() -> impl Strategy<Value = ArrivalLaw> {
    let over = Nanos::from_millis(200);
    let moments = proptest::collection::vec(0u64..300_000_000, 0..200).prop_map(|mut at| {
        at.sort_unstable();
        ArrivalLaw::Trace(at.into_iter().map(Nanos).collect())
    });
    prop_oneof![
        Just(ArrivalLaw::Constant),
        Just(ArrivalLaw::Poisson),
        Just(ArrivalLaw::Uniform),
        (1.0f64..10.0).prop_map(ArrivalLaw::Hyperexp),
        (2u32..=20).prop_map(ArrivalLaw::Erlang),
        (1u64..9_000, 1u64..9_000).prop_map(move |(from, to)| ramp(from, to, over)),
        (1.01f64..20.0, 0.01f64..0.99, 1u64..400)
            .prop_map(|(ratio, part, ms)| { burst(ratio, part / ratio, Nanos::from_millis(ms)) }),
        moments,
    ]
}

fn assert_refusal<T: std::fmt::Debug>(result: Result<T, ParseError>, value: &str, what: &str) {
    let line = result.expect_err(value).to_string();
    assert!(line.contains(what), "{value}: {line}");
    assert!(!line.contains('\n') && line.len() < 260, "{line}");
    assert!(line.starts_with('\'') && line.contains("such as"), "{line}");
}

#[test]
fn arrivals_check_their_arguments() {
    let run = Nanos::from_secs(10);
    let rate = |n| Rate::per_second(n).unwrap();
    let (from, to, over) = (rate(10), rate(2000), run);
    let burst = |peak_ratio, peak_share| {
        ArrivalLaw::Burst(BurstLaw { peak_ratio, peak_share, period: Nanos::from_secs(1) })
    };
    let burst_paper = ArrivalLaw::Burst(BurstLaw {
        peak_ratio: 6.0,
        peak_share: 0.05,
        period: Nanos::from_secs(100),
    });
    for (text, law) in [
        ("constant", ArrivalLaw::Constant),
        (" poisson ", ArrivalLaw::Poisson),
        ("uniform", ArrivalLaw::Uniform),
        ("hyperexp(2.5)", ArrivalLaw::Hyperexp(2.5)),
        ("erlang( 4 )", ArrivalLaw::Erlang(4)),
        ("ramp(10,2k)", ArrivalLaw::Ramp(RampLaw { from, to, over })),
        ("burst(4, 0.1, 1s)", burst(4.0, 0.1)),
        ("burst(5,0.2,1s)", burst(5.0, 0.2)),
        ("burst( paper )", burst_paper),
    ] {
        assert_eq!(parse_arrival(text, run), Ok(law), "{text}");
    }
    for (text, what) in [
        ("hyperexp(0.9)", "has no coefficient of variation"),
        ("hyperexp(inf)", "has no coefficient of variation"),
        ("erlang(1)", "has no number of stages from 2 to 20"),
        ("erlang(2.5)", "has no number of stages from 2 to 20"),
        ("erlang(21)", "has no number of stages from 2 to 20"),
        ("burst(1,0.1,1s)", "has a peak that is not above the mean"),
        ("burst(NaN,0.1,1s)", "has a peak that is not above the mean"),
        ("burst(4,0,1s)", "has a share that is not between 0 and 1"),
        ("burst(4,1,1s)", "has a share that is not between 0 and 1"),
        ("burst(4,0.3,1s)", "has more operations at the peak than in all"),
        ("burst(4,0.1,0s)", "has no period"),
    ] {
        assert_refusal(parse_arrival(text, run), text, what);
    }
    for (text, what) in [
        ("poison", "is no arrival process"),
        ("gamma(2)", "is no arrival process"),
        ("burst", "lacks its arguments"),
        ("ramp(5)", "has the wrong number of arguments"),
        ("poisson(5)", "takes no arguments"),
        ("trace(a.txt)", "cannot be used here"),
    ] {
        let line = parse_arrival(text, run).expect_err(text).to_string();
        assert!(line.contains(what) && line.contains("give constant, poisson"), "{line}");
    }
    let from_nothing = parse_arrival("ramp(0,5)", run).expect("what people type first");
    let ArrivalLaw::Ramp(RampLaw { from, .. }) = from_nothing else {
        panic!("a ramp");
    };
    assert!(from.per_s() < 1e-6);
    assert!(parse_arrival("ramp(-1,5)", run).is_err());
    let line = parse_arrival("ramp(1,2)", Nanos::ZERO).expect_err("no length").to_string();
    assert!(line.contains("needs a duration"), "{line}");
}

/// What help and errors say of the processes comes from their files alone.
#[test]
fn what_is_said_of_processes_is_theirs() {
    assert_eq!(
        either(&shapes(None)),
        "constant, poisson, uniform, hyperexp(cv), erlang(k), burst(a,b,period), \
         ramp(from,to), steps(...) or trace(FILE)"
    );
    assert_eq!(shapes(Some(true)), ["ramp(from,to)", "steps(...)", "trace(FILE)"]);
    for known in shapes(None) {
        assert!(help().contains(known), "{known}");
        assert!(is_name(known), "{known}");
    }
    for text in ["trace(a,b c.txt)", " trace(a,b c.txt) "] {
        let trace = AskedArrival::parse(text).unwrap();
        assert_eq!(trace.file(), Some("a,b c.txt"));
        assert!(trace.carries_rate() && !trace.takes_length());
    }
    assert_eq!(AskedArrival::parse("ramp(1,2)").unwrap().file(), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn skipped_moments_are_those_that_would_have_been_drawn(
        arrival in any_arrival(), per_s in 1u64..50_000, of in 1u32..9, seed: u64,
        skips in prop::collection::vec(0u64..70, 1..8),
    ) {
        let load = load(per_s, arrival);
        let mut drawn = load.arrivals(Share { index: of / 2, of }, seed);
        let mut skipped = drawn.clone();
        for n in skips {
            skipped.skip(n);
            for _ in 0..n {
                drawn.next();
            }
            prop_assert_eq!(skipped.next(), drawn.next());
        }
    }

    #[test]
    fn constant_moments_are_those_of_the_rate(
        operations in 1u64.., period in 1u64.., index in 0u32..5, of in 5u32..9,
        from in 0u64..1_000_000_000,
    ) {
        let rate = Rate::new(operations, Nanos(period)).unwrap();
        let mut constant = Constant::new(rate, Share { index, of });
        constant.skip(from);
        for k in from..from + 100 {
            let moment = rate.moment(u64::from(index) + k * u64::from(of));
            prop_assert_eq!(constant.next(), Some(moment));
        }
    }

    #[test]
    fn moments_ascend(arrival in any_arrival(), per_s in 1u64..50_000, of in 1u32..9, seed: u64) {
        let load = load(per_s, arrival);
        let moments = part(&load, Share { index: of - 1, of }, seed, Nanos::from_millis(300));
        prop_assert!(moments.windows(2).all(|w| w[0] <= w[1]));
    }

    #[test]
    fn the_parts_of_any_number_of_workers_are_the_whole(
        arrival in any_arrival(), per_s in 1u64..50_000, of in 2u32..9, seed: u64,
    ) {
        let load = load(per_s, arrival);
        let end = Nanos::from_millis(300);
        let (parts, whole) = (union(&load, of, seed, end), union(&load, 1, seed, end));
        if load.arrival == ArrivalLaw::Poisson {
            // Equal in law only: compare the counts, five standard deviations apart at the most.
            let expected = per_s as f64 * 0.3;
            let off = (parts.len() as f64 - expected).abs();
            prop_assert!(off <= 5.0 * expected.sqrt() + 6.0, "{} {}", parts.len(), expected);
        } else {
            prop_assert_eq!(parts, whole);
        }
    }

    #[test]
    fn no_text_makes_it_panic_and_refusals_are_one_line(
        text in "\\PC{0,30}|(burst|ramp|trace|poisson)[0-9a-z().,/\\n ]{0,20}",
    ) {
        let refused = parse_arrival(&text, Nanos::from_secs(1)).err();
        prop_assert!(refused.is_none_or(|line| !line.0.contains('\n')));
    }
}
