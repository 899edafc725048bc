//! Over random clients, services and losses at random places. No statement of a report contradicts
//! a number in it, every ledger sums, and what is lost is found somewhere.

use super::fake::{sleeps, yields};
use crate::consistency::CheckedReport;
use crate::experiment::udp::analysis::tests::blank;
use crate::experiment::udp::report::UdpConclusion;
use crate::experiment::udp::{AssessedUdpTrial, ExplainSpec, UdpExplain, UdpLaws};
use crate::experiment::{Concluded, Experiment, conduct};
use crate::finding::Finding;
use crate::report::contradictions::contradictions;
use crate::trial::report::TrialReport;
use crate::words::{exact, share};
use knee_load::experiment::udp::{
    ClientWait, DropCounter, DropPlace, UdpReceived, UdpTrial, UdpTrialSpec,
};
use knee_load::rng::{self, Rng};
use knee_load::time::Nanos;
use rand_core::RngCore;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// A number below `limit`.
fn below(rng: &mut Rng, limit: u64) -> u64 {
    (rng::unit(rng) * limit as f64) as u64
}

/// What holds for a kind of clients in all its trials.
struct Kind {
    sent_per_s: u64,
    /// Lost in 10,000, and where.
    lost: u64,
    places: Vec<DropPlace>,
    /// Whether counters tell all of it.
    is_told: bool,
    waiting: f64,
    preempted: u64,
    pause: Nanos,
}

/// A world. A seed decides what happens to each kind of clients, and another to each trial of it.
struct World(u64);

impl World {
    fn kind(&self, spec: &UdpTrialSpec) -> Kind {
        let name = spec
            .label
            .bytes()
            .fold(self.0, |hash, byte| hash.wrapping_mul(1_099_511_628_211) ^ u64::from(byte));
        let mut rng = rng::stream(name, rng::TRIALS);
        let places = (0..below(&mut rng, 4))
            .map(|_| DropPlace::ALL[below(&mut rng, 12) as usize])
            .filter(|place| *place != DropPlace::Path);
        let places: Vec<DropPlace> = places.collect();
        Kind {
            sent_per_s: 1 + below(&mut rng, 20_000),
            lost: match below(&mut rng, 3) {
                0 => 0,
                1 => below(&mut rng, 3),
                _ => below(&mut rng, 10_000),
            },
            places,
            is_told: below(&mut rng, 4) > 0,
            waiting: [0.0, 0.0005, 0.02, 0.9][below(&mut rng, 4) as usize],
            preempted: [0, 3, 500][below(&mut rng, 3) as usize],
            pause: Nanos(below(&mut rng, 50_000_000)),
        }
    }

    fn trial(&self, spec: &UdpTrialSpec) -> UdpTrial {
        let kind = self.kind(spec);
        let mut rng = rng::stream(self.0 ^ spec.seed, rng::TRIALS + 1);
        let per_s = match &spec.wait {
            ClientWait::Schedule { rate, .. } => rate.per_s() as u64,
            _ => kind.sent_per_s,
        };
        let mut trial = blank(spec.clone());
        let tried = (per_s as f64 * spec.duration.as_secs_f64()) as u64;
        let refused = below(&mut rng, 2) * below(&mut rng, 1 + tried / 50);
        let sent = tried - refused;
        // Clients that wait are never behind a schedule.
        let is_scheduled = matches!(spec.wait, ClientWait::Schedule { .. });
        trial.sent.not_attempted = u64::from(is_scheduled) * below(&mut rng, 30);
        trial.sent.intended = tried + trial.sent.not_attempted;
        trial.sent.sent = sent;
        trial.sent.send_errors = [("ENOBUFS".to_owned(), refused)].into();
        let gap = spec.duration.0 / (sent + 1);
        trial.sent.starts = (0..sent).map(|k| Nanos(k * gap)).collect();
        let lost = sent * kind.lost / 10_000;
        let (mut left, mut at_socket) = (lost, 0);
        for (index, &place) in kind.places.iter().enumerate() {
            let is_last = index + 1 == kind.places.len();
            let here = if is_last && kind.is_told { left } else { below(&mut rng, left + 1) };
            left -= here;
            if place == DropPlace::ReceiveBuffer {
                at_socket += here;
                continue;
            }
            trial.drops.push(DropCounter {
                whole_kernel: false,
                place,
                count: here,
                source: format!("counter of {}", place.name()),
                host_wide: below(&mut rng, 2) > 0,
                at_service: true,
            });
        }
        let discarded = below(&mut rng, 2) * left;
        trial.received = Some(UdpReceived {
            received: sent - lost,
            socket_drops: at_socket,
            discarded: [("malformed".to_owned(), discarded)].into(),
            reordered: below(&mut rng, 3),
            pause_ns_max: kind.pause.0,
            preempted: kind.preempted,
            kept_waiting: Nanos::from_secs_f64(kind.waiting * spec.duration.as_secs_f64()),
            cpu: Nanos::from_secs_f64(0.05 * spec.duration.as_secs_f64()),
            ..UdpReceived::default()
        });
        let is_here = below(&mut rng, 3);
        (trial.service.same_host, trial.service.same_namespace) = (is_here > 0, is_here > 1);
        trial.service.kernel = "6.18".into();
        trial.service.buffer_datagrams = Some(1 + below(&mut rng, 300));
        trial
    }
}

/// An experiment in such a world, and all its trials.
fn concluded<X>(mut experiment: X, world: &World) -> (Vec<TrialReport>, Concluded<UdpConclusion>)
where
    X: Experiment<Spec = UdpTrialSpec, Trial = AssessedUdpTrial, Conclusion = UdpConclusion>,
{
    let result = conduct(&mut experiment, |spec: &UdpTrialSpec| {
        let tried = AssessedUdpTrial::of(&world.trial(spec));
        Ok::<_, Infallible>(ControlFlow::Continue(tried))
    });
    let conducted = result.unwrap_or_else(|never| match never {});
    let concluded = experiment.conclude(&conducted.trials);
    let reports = conducted.trials.iter().map(|t| t.report.clone());
    (reports.collect(), concluded)
}

/// The findings about this kind of clients.
fn about<'a>(findings: &'a [Finding], label: &str, is_one: bool) -> Vec<&'a Finding> {
    let name = format!("with {label}: ");
    findings.iter().filter(|f| is_one || f.text.starts_with(&name)).collect()
}

/// All that must hold of a conclusion, whatever was measured.
fn check(trials: &[TrialReport], concluded: &Concluded<UdpConclusion>) {
    let (findings, conclusion) = (&concluded.findings, &concluded.conclusion);
    let report = CheckedReport { verdict: concluded.verdict, trials, findings };
    assert_eq!(contradictions(report, conclusion), [""; 0]);
    for row in &conclusion.laws {
        let (l, label) = (&row.ledger, &row.label);
        let sent = l.sent();
        let found = about(findings, label, conclusion.laws.len() == 1);
        let count = |code: &str, key: &str| -> f64 {
            found.iter().filter(|f| f.code == code).map(|f| f.evidence[key]).sum()
        };
        assert_eq!(count("datagrams_discarded", "count"), l.discarded as f64);
        let unexplained = count("datagrams_unexplained", "unexplained");
        assert_eq!(unexplained, l.unexplained as f64, "{l:?} {found:?}");
        assert_eq!(count("send_errors", "count"), l.send_errors as f64);
        // No figure of one kind stands with another's name.
        for finding in &found {
            if let (Some(&lost), Some(&percent)) =
                (finding.evidence.get("lost"), finding.evidence.get("percent"))
            {
                assert!((percent - 100.0 * lost / sent as f64).abs() < 1e-9, "{finding:?}");
                assert!(finding.text.contains(&exact(lost)), "{finding:?}");
                assert!(finding.text.contains(&share(percent)), "{finding:?}");
            }
        }
    }
}

/// A cause is named once: where others had the service's processor, that is one cause.
fn check_explained(conclusion: &UdpConclusion) {
    use crate::experiment::udp::explain::Hypothesis;
    let supported = &conclusion.supported;
    let is_supported = |h: Hypothesis| {
        let begins = format!("{}: ", h.name());
        supported.iter().any(|line| line.starts_with(&begins))
    };
    let by_processor = [
        Hypothesis::ServiceWaitsForProcessor,
        Hypothesis::WokenClientsPreemptService,
        Hypothesis::ReceiverPauses,
    ];
    let processor = by_processor.into_iter().filter(|h| is_supported(*h));
    assert!(processor.count() <= 1, "{conclusion:#?}");
    // A cell says what it did to the rate wherever it is spoken of.
    for effect in &conclusion.effects {
        let is_other = !(1.0 / 1.1..=1.1).contains(&effect.sent_ratio);
        if is_other && effect.change.ends_with("one for the service alone") {
            let ratio = crate::words::ratio(effect.sent_ratio);
            let says = |line: &&String| line.contains(" with a processor of its own: ");
            let silent = supported.iter().filter(says);
            let silent = silent.filter(|l| !l.contains(&format!(" at {ratio} times the rate")));
            assert_eq!(silent.count(), 0, "{supported:?}");
        }
    }
}

/// Worlds that each property is checked in.
const WORLDS: u64 = 1_000;

fn short(spec: UdpTrialSpec) -> UdpTrialSpec {
    UdpTrialSpec { duration: Nanos::from_millis(50), ..spec }
}

#[test]
fn a_run_says_what_it_counted() {
    for seed in 0..WORLDS {
        let world = World(seed);
        let spec = short(yields(1 + (seed % 64) as u32));
        let (trials, concluded) = concluded(UdpLaws::new(vec![spec], 1), &world);
        check(&trials, &concluded);
    }
}

#[test]
fn a_comparison_gives_each_kind_its_own_figures() {
    for seed in 0..WORLDS {
        let world = World(seed);
        let laws = vec![yields(64), sleeps(128, 200), sleeps(8, 500)];
        let laws = laws.into_iter().map(short).collect();
        let compare = UdpLaws::new(laws, 1 + (seed % 3) as u32);
        let (trials, concluded) = concluded(compare, &world);
        check(&trials, &concluded);
    }
}

#[test]
fn an_explanation_contradicts_none_of_its_numbers() {
    let mut seeds = rng::stream(1, rng::TRIALS);
    for _ in 0..WORLDS / 5 {
        let seed = seeds.next_u64();
        let experiment = UdpExplain::new(ExplainSpec {
            first: short(yields(64)),
            second: short(sleeps(128, 200)),
            repeats: 3,
            cpus: vec![0; (seed % 3) as usize],
            realtime: seed.is_multiple_of(2),
            seed,
            left_out: 0,
            cut: None,
        });
        let (trials, concluded) = concluded(experiment, &World(seed));
        check(&trials, &concluded);
        check_explained(&concluded.conclusion);
    }
}
