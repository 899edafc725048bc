//! The open loop beside a sweep over users of a target that pauses.

use super::super::{Sweep, SweepSpec};
use super::codes;
use super::fake::{automatic, list, slice_of};
use crate::experiment::sweep::report::SweepConclusion;
use crate::experiment::{Conducted, conduct};
use crate::finding::Finding;
use crate::trial::report::TrialReport;
use knee_load::law::Law;
use knee_load::spec::{Level, TrialSpec};
use knee_load::time::Nanos;
use knee_sim::{Stall, World, simulate};
use std::convert::Infallible;
use std::ops::ControlFlow;

const MS: Nanos = Nanos::from_millis(1);

/// A sweep of 4 workers with this service time and a recurring pause of this length.
fn sweep(
    mut spec: SweepSpec,
    service: Nanos,
    period: Nanos,
    length: Nanos,
) -> (Conducted<TrialReport, SweepConclusion>, SweepConclusion) {
    spec.base.duration = Nanos::from_secs(12);
    spec.base.interval = Nanos::from_millis(100);
    let mut world = World::station(4, Law::Fixed(service));
    if length > Nanos::ZERO {
        world.server_stalls = Stall::every(period, length, Nanos::from_secs(60));
    }
    let mut now_s = 0.0;
    let run = |spec: &TrialSpec| {
        let report = slice_of(&simulate(spec, &world).trial, &mut now_s);
        Ok::<_, Infallible>(ControlFlow::Continue(report))
    };
    let Ok(conducted) = conduct(&mut Sweep::new(spec), run);
    crate::report::contradictions::assert_consistent(&conducted);
    let conclusion = conducted.conclusion.clone();
    (conducted, conclusion)
}

fn open_trials(conducted: &Conducted<TrialReport, SweepConclusion>) -> usize {
    let is_open = |t: &&TrialReport| matches!(t.level, Level::RatePerS(_));
    conducted.trials.iter().filter(is_open).count()
}

#[test]
fn pauses_that_a_closed_loop_hides_are_shown_by_an_open_one() {
    let (period, length) = (Nanos::from_millis(1_150), Nanos::from_millis(150));
    let (conducted, conclusion) = sweep(automatic(1), MS, period, length);
    assert_eq!(open_trials(&conducted), 1);
    let both = conclusion.open_loop.expect("both were measured");
    assert!(both.closed_p99_ns < 10_000_000, "{both:?}");
    assert!(both.p99_ns > 100_000_000, "{both:?}");
    assert!((87.0..=93.0).contains(&both.percent_of_maximum), "{both:?}");
    let hides = |f: &&Finding| f.code == "closed_loop_hides_pauses";
    let said = conducted.findings.iter().find(hides).expect("it is said");
    assert_eq!(said.evidence["open_p99_ns"], both.p99_ns as f64);
    assert_eq!(said.evidence["closed_p99_ns"], both.closed_p99_ns as f64);
    assert!(said.text.contains("in a closed loop and"), "{}", said.text);
    // The levels are those of the closed loop, and the pauses are said without a call to look.
    let is_of_users = |level: Level| matches!(level, Level::Vusers(_));
    assert!(conclusion.levels.iter().all(|l| is_of_users(l.level)));
    let pauses = conducted.findings.iter().find(|f| f.code == "periodic_pauses");
    assert!(!pauses.expect("pauses").next_step.contains("--rate"));
}

#[test]
fn alike_figures_are_shown_and_not_remarked_on() {
    // Of 56 operations between two pauses one waits: more than one in 100.
    let (period, length) = (Nanos::from_millis(400), Nanos::from_millis(120));
    let (conducted, conclusion) = sweep(automatic(1), Nanos::from_millis(5), period, length);
    let both = conclusion.open_loop.expect("both were measured");
    assert!(both.p99_ns < 2 * both.closed_p99_ns, "{both:?}");
    let codes = codes(&conducted.findings);
    assert!(codes.contains(&"periodic_pauses"), "{codes:?}");
    assert!(!codes.contains(&"closed_loop_hides_pauses"), "{codes:?}");
}

#[test]
fn a_target_without_pauses_and_a_list_get_no_open_loop() {
    let (period, length) = (Nanos::from_millis(1_150), Nanos::from_millis(150));
    let (steady, conclusion) = sweep(automatic(1), MS, period, Nanos::ZERO);
    assert_eq!((open_trials(&steady), conclusion.open_loop), (0, None));
    let (listed, conclusion) = sweep(list(&[1, 2, 4, 8]), MS, period, length);
    assert_eq!((open_trials(&listed), conclusion.open_loop), (0, None));
}
