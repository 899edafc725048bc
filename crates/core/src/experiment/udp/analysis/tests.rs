//! Ledgers that balance, and reports of trials whose figures are known.

use super::{assess, ledger};
use crate::experiment::udp::laws::{in_words, law_row, lost_where};
use crate::trial::detail::LedgerReport;
use crate::trial::report::{TrialReport, Verdict};
use knee_load::arrival::{ArrivalProcess, Arrivals};
use knee_load::experiment::udp::recorder::DatagramRecorder;
use knee_load::experiment::udp::{
    ClientWait, ClientsAs, DropCounter, DropPlace, ServiceFacts, ServiceSetup, UdpReceived,
    UdpSent, UdpTrial, UdpTrialSpec,
};
use knee_load::law::Law;
use knee_load::measure::{GeneratorUse, Outcome};
use knee_load::spec::{ArrivalLaw, BackendChoice, EngineOptions, Level, Rate, Share, WaitPolicy};
use knee_load::stats::buffer::Buffer;
use knee_load::time::Nanos;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Clients of this wait for this time.
pub(crate) fn spec(clients: u32, wait: ClientWait, duration: Nanos) -> UdpTrialSpec {
    UdpTrialSpec {
        label: format!("{}*{clients}", wait.name()),
        level: Level::Clients(clients),
        service: "127.0.0.1:7007".to_owned(),
        token: String::new(),
        clients,
        wait,
        carried_as: ClientsAs::Multiplexed,
        unsynchronised: false,
        size: 64,
        gso: false,
        timer_slack: Nanos::from_micros(50),
        send_cost: Nanos::ZERO,
        client_cpus: Vec::new(),
        setup: ServiceSetup::default(),
        duration,
        datagrams_max: None,
        interval: Nanos::from_secs(1),
        seed: 1,
        engine: EngineOptions {
            workers: 1,
            backend: BackendChoice::Auto,
            wait: WaitPolicy::Hybrid,
            ..EngineOptions::default()
        },
    }
}

/// A schedule at this rate.
pub(crate) fn schedule(per_s: u64, arrival: ArrivalLaw) -> ClientWait {
    let rate = Rate::per_second(per_s).expect("not zero");
    ClientWait::Schedule { rate, arrival }
}

/// A trial on one host in which nothing was sent.
pub(crate) fn blank(spec: UdpTrialSpec) -> UdpTrial {
    UdpTrial {
        sent: UdpSent { elapsed: spec.duration, starts_until: spec.duration, ..UdpSent::default() },
        received: Some(UdpReceived { arrivals_until: spec.duration, ..UdpReceived::default() }),
        service_lost: None,
        service: ServiceFacts { same_host: true, same_namespace: true, ..ServiceFacts::default() },
        kernel: BTreeMap::new(),
        drops: Vec::new(),
        not_read: Vec::new(),
        generator: GeneratorUse::default(),
        interrupted: false,
        spec,
    }
}

/// A trial whose datagrams are sent at these times to a service of this fixed work. Its buffer
/// holds `buffer` datagrams. They arrive as they are sent.
pub(crate) fn served(spec: UdpTrialSpec, starts: Vec<Nanos>, work: Nanos, buffer: u64) -> UdpTrial {
    let mut queue = Buffer::of_udp_socket(buffer).before(work);
    let mut trial = queued(spec, starts, |start| queue.takes_in(start));
    trial.service.work = Some(Law::Fixed(work));
    trial.service.buffer_datagrams = Some(buffer);
    trial
}

/// A trial whose datagrams are sent at these times into a queue, or are lost before it.
pub(crate) fn queued(
    spec: UdpTrialSpec,
    starts: Vec<Nanos>,
    mut takes_in: impl FnMut(Nanos) -> bool,
) -> UdpTrial {
    let mut trial = blank(spec);
    let (interval, duration) = (trial.spec.interval, trial.spec.duration);
    let mut recorder = DatagramRecorder::new(trial.spec.clients, interval, duration, usize::MAX);
    let mut lost = 0;
    for (number, &start) in (0..).zip(&starts) {
        if takes_in(start) {
            recorder.record(0, number, start, start);
        } else {
            lost += 1;
        }
    }
    let steps = duration.0.div_ceil(interval.0) as usize;
    trial.sent.by_interval = vec![0; steps];
    for start in &starts {
        let index = (start.0 / interval.0) as usize;
        trial.sent.by_interval[index.min(steps - 1)] += 1;
    }
    trial.sent.intended = starts.len() as u64;
    trial.sent.sent = starts.len() as u64;
    trial.sent.starts = starts;
    trial.received = Some(UdpReceived { socket_drops: lost, ..recorder.finish() });
    trial
}

/// The times of a schedule up to the end of a trial.
pub(crate) fn moments(per_s: u64, arrival: &ArrivalLaw, until: Nanos) -> Vec<Nanos> {
    let rate = Rate::per_second(per_s).expect("not zero");
    let mut schedule = Arrivals::of(rate, arrival, Share::WHOLE, 1);
    std::iter::from_fn(|| schedule.next()).take_while(|&t| t < until).collect()
}

fn scheduled(per_s: u64, arrival: ArrivalLaw, work_us: u64, buffer: u64) -> TrialReport {
    let duration = Nanos::from_secs(10);
    let starts = moments(per_s, &arrival, duration);
    let spec = spec(1, schedule(per_s, arrival), duration);
    assess(&served(spec, starts, Nanos::from_micros(work_us), buffer))
}

fn counter(place: DropPlace, count: u64, host_wide: bool) -> DropCounter {
    DropCounter {
        place,
        count,
        source: "test".to_owned(),
        host_wide,
        whole_kernel: false,
        at_service: true,
    }
}

/// 100 sent, this number received, these drops.
fn lossy(received: u64, drops: Vec<DropCounter>) -> UdpTrial {
    let mut trial = blank(spec(1, ClientWait::Yield, Nanos::from_secs(1)));
    (trial.sent.intended, trial.sent.sent) = (100, 100);
    trial.received = Some(UdpReceived { received, ..UdpReceived::default() });
    trial.drops = drops;
    trial
}

fn lost(ledger: &LedgerReport) -> Vec<(&str, u64)> {
    ledger.lost.iter().map(|(p, &n)| (p.as_str(), n)).collect()
}

fn sum(l: &LedgerReport) -> i128 {
    let lost: i128 = l.lost.values().map(|&n| i128::from(n)).sum();
    let rest = [l.not_attempted, l.send_errors, l.received, l.discarded];
    lost + rest.map(i128::from).iter().sum::<i128>() + i128::from(l.unexplained)
}

#[test]
fn exact_counters_go_before_those_of_the_host() {
    use DropPlace::{Backlog, ReceiveBuffer, SendBuffer};
    let l = ledger(&lossy(
        90,
        vec![
            counter(SendBuffer, 50, true),
            counter(Backlog, 50, true),
            counter(ReceiveBuffer, 4, false),
        ],
    ));
    assert_eq!(lost(&l), [("receive_buffer", 4), ("send_buffer", 6)]);
    assert_eq!(l.unexplained, 0);
    let evidence: Vec<(u64, u64, bool)> =
        l.evidence.iter().map(|e| (e.counted, e.attributed, e.host_wide)).collect();
    let expected = [(4, 4, false), (50, 6, true), (50, 0, true)];
    assert_eq!(evidence, expected, "in the order of the path");
}

/// Its counters and the errors of senders know better whose those drops were.
#[test]
fn of_what_a_whole_kernel_dropped_only_the_rest_is_new() {
    use DropPlace::{Firewall, IpLayer, Qdisc};
    let all = |place, count| DropCounter { whole_kernel: true, ..counter(place, count, true) };
    let with = |received, drops: Vec<DropCounter>, errors: &[(&str, u64)]| {
        let mut trial = lossy(received, drops);
        (trial.service.same_host, trial.service.same_namespace) = (true, false);
        let errors = errors.iter().map(|&(name, n)| (name.to_owned(), n));
        trial.sent.send_errors = errors.collect();
        trial.sent.intended += trial.sent.send_errors.values().sum::<u64>();
        let l = ledger(&trial);
        assert_eq!((l.unexplained, sum(&l)), (0, i128::from(l.intended)));
        let evidence = l.evidence.iter().map(|e| (e.attributed, e.inferred));
        (
            lost(&l)
                .into_iter()
                .map(|(place, n)| format!("{place} {n}"))
                .collect::<Vec<_>>()
                .join(", "),
            evidence.collect::<Vec<_>>(),
        )
    };
    let rule = || counter(Firewall, 30, true);
    let (places, evidence) = with(60, vec![all(Firewall, 40), rule()], &[]);
    assert_eq!(places, "firewall 40");
    assert_eq!(evidence, [(30, false), (10, false)], "the rule goes first");
    let (places, _) = with(60, vec![all(Firewall, 30), rule()], &[]);
    assert_eq!(places, "firewall 30, path 10", "it counts those alone");
    let (places, _) = with(60, vec![all(IpLayer, 40), rule()], &[]);
    assert_eq!(places, "firewall 30, ip_layer 10", "another place");
    let (places, _) = with(88, vec![all(Firewall, 25), all(Qdisc, 7)], &[("EPERM", 20)]);
    assert_eq!(places, "firewall 5, qdisc 7", "a sender was told of 20");
    let two = vec![all(IpLayer, 6), all(IpLayer, 6), counter(IpLayer, 8, true)];
    assert_eq!(with(80, two, &[]).0, "ip_layer 12, path 8");
}

/// Two hosts have two kernels: what one counts is no part of what the other's drops.
#[test]
fn a_kernel_tells_of_its_own_host() {
    let mut here = counter(DropPlace::Qdisc, 10, true);
    here.at_service = false;
    let there = DropCounter { whole_kernel: true, ..counter(DropPlace::Qdisc, 10, true) };
    let mut trial = lossy(80, vec![here, there]);
    (trial.service.same_host, trial.service.same_namespace) = (false, false);
    assert_eq!(lost(&ledger(&trial)), [("qdisc", 20)]);
    trial.service.same_host = true;
    assert_eq!(lost(&ledger(&trial)), [("path", 10), ("qdisc", 10)]);
}

#[test]
fn what_the_socket_dropped_is_told_apart_by_the_host() {
    use DropPlace::{Checksum, ReceiveBuffer, UdpMemory};
    let with = |drops: Vec<DropCounter>| {
        let mut trial = lossy(90, drops);
        trial.received.as_mut().expect("a report of the service").socket_drops = 10;
        let l = ledger(&trial);
        assert_eq!(l.unexplained, 0);
        lost(&l).into_iter().map(|(place, n)| format!("{place} {n}")).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(with(vec![]), "receive_buffer 10");
    let memory = || counter(UdpMemory, 3, true);
    let buffer = |count| counter(ReceiveBuffer, count, true);
    assert_eq!(with(vec![memory()]), "receive_buffer 7, udp_memory 3");
    assert_eq!(
        with(vec![memory(), buffer(25)]),
        "receive_buffer 10",
        "memory was short for others"
    );
    let checksum = counter(Checksum, 9, true);
    assert_eq!(with(vec![memory(), buffer(4), checksum]), "checksum 6, receive_buffer 4");
    assert_eq!(
        with(vec![counter(ReceiveBuffer, 10, false)]),
        "receive_buffer 10",
        "reported twice, counted once"
    );
    assert_eq!(
        with(vec![counter(Checksum, 4, false), counter(UdpMemory, 5, false)]),
        "checksum 4, receive_buffer 1, udp_memory 5",
        "the service separated them, but for one"
    );
}

#[test]
fn what_no_counter_tells_of() {
    let rest = |trial: &UdpTrial| {
        let l = ledger(trial);
        (l.lost.into_iter().next(), l.unexplained)
    };
    let mut trial = lossy(90, vec![]);
    assert_eq!(rest(&trial), (None, 10), "one host");
    (trial.service.same_host, trial.service.same_namespace) = (false, false);
    assert_eq!(rest(&trial), (None, 10), "the other's counters are unknown");
    trial.service.kernel = "6.1".into();
    assert_eq!(rest(&trial).1, 0, "a kernel that is known has its counters");
    trial.service.kernel.clear();
    trial.drops = vec![counter(DropPlace::Backlog, 0, true)];
    assert_eq!(rest(&trial), (Some(("path".into(), 10)), 0));
    trial.received = None;
    assert_eq!(rest(&trial), (Some(("service".into(), 100)), 0));
    trial.drops = vec![counter(DropPlace::NoSocket, 30, true)];
    let l = ledger(&trial);
    assert_eq!(lost(&l), [("no_socket", 30), ("service", 70)]);
    assert_eq!(rest(&lossy(103, vec![])), (None, -3), "more than were sent");
}

#[test]
fn discards_of_other_runs_are_not_of_this_ledger() {
    let mut trial = lossy(90, vec![]);
    let discarded = &mut trial.received.as_mut().expect("a report of the service").discarded;
    discarded.insert("not_of_this_run".into(), 500);
    discarded.insert("malformed".into(), 4);
    let l = ledger(&trial);
    assert_eq!((l.discarded, l.unexplained), (4, 6));
    let report = assess(&trial);
    assert_eq!(report.outcomes.count(Outcome::Discarded), 4);
    assert_eq!(report.outcomes.count(Outcome::Lost), 6);
}

#[test]
fn a_vanished_service_leaves_an_empty_report_that_says_so() {
    let mut trial = lossy(0, vec![]);
    trial.received = None;
    trial.service_lost = Some("the control connection was reset".into());
    let report = assess(&trial);
    assert_eq!((report.attempted, report.completed), (100, 0));
    let datagrams = report.datagrams().cloned().expect("they are datagrams");
    assert_eq!(datagrams.loss_percent, 100.0);
    let why = datagrams.service_lost.as_deref();
    assert_eq!(why, Some("the control connection was reset"));
    assert_eq!(report.intervals[0].received, None);
}

#[test]
fn poisson_through_a_known_queue_loses_what_theory_says() {
    // 6,000/s and 200 µs of work: more comes than can be served.
    let report = scheduled(6_000, ArrivalLaw::Poisson, 200, 5);
    let d = report.datagrams().expect("they are datagrams");
    assert_eq!(d.theory_loss_percent, Some(d.loss_percent));
    // Overload: 1 − 1/ρ and a little, as the buffer runs empty now and then.
    assert!((d.loss_percent / 16.7 - 1.0).abs() < 0.2, "{d:?}");
    let l = report.ledger().expect("they are datagrams");
    assert_eq!(l.unexplained, 0);
    assert_eq!(lost(l)[0].0, "receive_buffer");
    assert!((report.responses_per_s() / 5_000.0 - 1.0).abs() < 0.05);
    let index = report.offered.dispersion.as_ref().and_then(|x| x.ms10);
    assert!((index.expect("1,000 bins") - 1.0).abs() < 0.2);
    assert!(report.offered.ks_p_value.expect("poisson") > 0.01);
    assert_eq!(report.verdict, Verdict::Valid, "{:?}", report.invalid_because);
}

#[test]
fn a_metronome_below_capacity_loses_nothing() {
    let report = scheduled(4_000, ArrivalLaw::Constant, 200, 2);
    let d = report.datagrams().expect("they are datagrams");
    assert_eq!((d.loss_percent, d.theory_loss_percent), (0.0, Some(0.0)));
    assert_eq!(d.burst_max, 4);
    assert_eq!(d.arrivals_per_ms, [0, 0, 0, 0, 10_000]);
    assert_eq!(d.arrival_dispersion.ms10, Some(0.0));
    assert!(d.dispersion_by_scale.len() >= 12);
    assert_eq!(report.intervals.len(), 10);
    let of = |i: usize| {
        let i = &report.intervals[i];
        (i.sent, i.received, i.dropped)
    };
    assert_eq!(of(3), (Some(4_000), Some(4_000), Some(0)));
    assert_eq!(report.offered.asked_per_s, Some(4_000.0));
    assert_eq!(report.outcomes.total(), report.attempted);
}

#[test]
fn moments_that_were_not_all_kept_leave_the_formula() {
    let duration = Nanos::from_secs(1);
    let starts = moments(6_000, &ArrivalLaw::Poisson, duration);
    let spec = spec(1, schedule(6_000, ArrivalLaw::Poisson), duration);
    let mut trial = served(spec, starts, Nanos::from_micros(200), 5);
    trial.sent.starts.truncate(1_000);
    let load = trial.sent.sent as f64 * 200e-6;
    let d = |trial: &UdpTrial| assess(trial).datagrams().cloned().expect("they are datagrams");
    let theory = d(&trial).theory_loss_percent.expect("it is Poisson");
    let overload = 100.0 * (1.0 - 1.0 / load);
    assert!((overload..overload * 1.3).contains(&theory), "{theory}");
    trial.spec.wait = ClientWait::Yield;
    assert_eq!(d(&trial).theory_loss_percent, None, "no formula for that");
    trial.service.work = Some(Law::Exp(Nanos::from_micros(200)));
    assert_eq!(d(&trial).theory_loss_percent, None, "work is not fixed");
}

#[test]
fn only_a_schedule_can_be_broken() {
    let duration = Nanos::from_secs(10);
    // Bursts of ten where single ones were promised.
    let mut starts = moments(1_000, &ArrivalLaw::Constant, duration);
    for start in &mut starts {
        *start = Nanos(start.0 / 10_000_000 * 10_000_000);
    }
    let trial = |wait| served(spec(1, wait, duration), starts.clone(), Nanos(1), 1_000);
    for arrival in [ArrivalLaw::Constant, ArrivalLaw::Poisson] {
        let report = assess(&trial(schedule(1_000, arrival)));
        assert_eq!(report.verdict, Verdict::Invalid);
        assert!(report.invalid_because[0].contains("gaps"));
    }
    assert_eq!(assess(&trial(ClientWait::Yield)).verdict, Verdict::Valid);
    let mut late = trial(ClientWait::None);
    late.spec.wait = schedule(2_000, ArrivalLaw::Constant);
    let clauses = assess(&late).invalid_because;
    assert!(clauses[0].contains("fell behind"), "{clauses:?}");
}

#[test]
fn a_cost_of_sending_promises_processors_of_ones_own() {
    // Of 10 s of a processor the clients used 7 s, the service 1 s and others the rest.
    let shared = |busy_s, cost| {
        let mut trial = blank(spec(64, ClientWait::Yield, Nanos::from_secs(10)));
        trial.spec.send_cost = Nanos::from_micros(cost);
        trial.spec.client_cpus = vec![1];
        trial.sent.processors_busy = Some(Nanos::from_millis(busy_s));
        (trial.generator.cpu_user_s, trial.generator.cpu_system_s) = (5.0, 2.0);
        trial.service.cpus = vec![1];
        trial.received = Some(UdpReceived { cpu: Nanos::from_secs(1), ..UdpReceived::default() });
        trial
    };
    let clauses = assess(&shared(9_500, 75)).invalid_because;
    assert_eq!(
        clauses,
        ["others used 15 % of the processors that the clients are bound to, where each send is \
             to cost 75 µs: the rate is not what these clients alone would make of them"]
    );
    for (what, trial) in
        [("a tenth", shared(9_000, 75)), ("a send costs what it does", shared(9_500, 0))]
    {
        assert_eq!(assess(&trial).verdict, Verdict::Valid, "{what}");
    }
    let mut elsewhere = shared(9_000, 75);
    elsewhere.service.cpus = vec![0];
    let verdict = assess(&elsewhere).verdict;
    assert_eq!(verdict, Verdict::Invalid, "it is the service's no more");
    elsewhere.sent.processors_busy = None;
    assert_eq!(assess(&elsewhere).verdict, Verdict::Valid, "not known");
}

#[test]
fn a_service_that_lags_behind_waits_no_more_than_all_the_time() {
    let mut trial = lossy(100, vec![]);
    let waits = |trial: &mut UdpTrial, over_ms| {
        let received = trial.received.as_mut().expect("a report of the service");
        received.kept_waiting = Nanos::from_millis(1_080);
        received.over = Nanos::from_millis(over_ms);
        let report = assess(trial);
        report.datagrams().cloned().map(|d| d.service_waiting_percent)
    };
    assert_eq!(waits(&mut trial, 1_200), Some(90.0));
    assert_eq!(waits(&mut trial, 0), Some(100.0), "an older record");
}

#[test]
fn what_ends_early_is_counted_over_its_own_time() {
    let mut trial = lossy(50, vec![]);
    trial.spec.datagrams_max = Some(100);
    trial.sent.elapsed = Nanos::from_millis(100);
    assert_eq!(assess(&trial).throughput_per_s, Some(500.0));
    trial.spec.datagrams_max = None;
    assert_eq!(assess(&trial).throughput_per_s, Some(50.0));
    trial.sent.elapsed = Nanos::from_secs(2);
    assert_eq!(assess(&trial).throughput_per_s, Some(25.0), "blocked at the end");
}

/// Each datagram has its wait: a number of them is not rated by the waits in between alone.
#[test]
fn a_number_of_datagrams_has_as_many_waits() {
    let ms = Nanos::from_millis;
    let rate = |clients: u32, wait: ClientWait, carried_as: ClientsAs, starts: &[u64]| {
        let mut trial = blank(UdpTrialSpec { carried_as, ..spec(clients, wait, ms(60_000)) });
        trial.spec.datagrams_max = Some(starts.len() as u64);
        trial.sent.starts = starts.iter().map(|&t| ms(t)).collect();
        let n = starts.len() as u64;
        (trial.sent.intended, trial.sent.sent) = (n, n);
        trial.sent.elapsed = ms(*starts.last().expect("some"));
        assess(&trial).datagrams().expect("datagrams").sent_per_s
    };
    use ClientsAs::{Multiplexed, Processes};
    let constant = || schedule(10, ArrivalLaw::Constant);
    assert_eq!(rate(1, constant(), Multiplexed, &[0, 100]), 10.0);
    assert_eq!(rate(2, constant(), Processes, &[0, 100, 200]), 10.0, "one schedule for both");
    let poisson = schedule(10, ArrivalLaw::Poisson);
    assert_eq!(rate(1, poisson, Multiplexed, &[100, 200]), 10.0, "it begins with a wait");
    let tick = || ClientWait::Tick(ms(10));
    assert_eq!(rate(2, tick(), Multiplexed, &[0, 0, 20, 20]), 100.0);
    assert_eq!(rate(2, ClientWait::Yield, Processes, &[0, 0, 10, 10]), 200.0);
    assert_eq!(rate(2, ClientWait::Yield, Multiplexed, &[0, 5, 10, 15]), 200.0);
}

/// What the sender's kernel refuses is lost like what others drop.
#[test]
fn refused_datagrams_are_losses() {
    let mut trial = lossy(30, vec![]);
    trial.spec.interval = Nanos::from_millis(500);
    (trial.sent.intended, trial.sent.sent, trial.sent.not_attempted) = (110, 40, 10);
    trial.sent.send_errors = [("ENOBUFS".to_owned(), 60)].into();
    (trial.sent.by_interval, trial.sent.refused_by_interval) = (vec![20, 20], vec![0, 60]);
    trial.received.as_mut().expect("it tells").by_interval = vec![20, 10];
    let report = assess(&trial);
    let d = report.datagrams().expect("datagrams");
    assert_eq!((d.sent_per_s, d.attempted_per_s(), d.dropped_per_s), (40.0, 100.0, 70.0));
    assert_eq!(d.loss_percent, 70.0);
    let dropped: Vec<_> = report.intervals.iter().map(|i| (i.attempted, i.dropped)).collect();
    assert_eq!(dropped, [(20, Some(0)), (80, Some(70))]);
    let row = law_row(&trial.spec, &[&report]);
    assert_eq!(in_words(&row), "yield*1 tried to send 100/s and lost 70 % of it.");
    assert_eq!(
        lost_where(&[&report]),
        " Of what is missing: 60 refused by the sender's kernel (ENOBUFS: this host's queues are \
         full) and 10 unexplained."
    );
}

/// Gaps between those that the kernel took are not the generator's where it refused others.
#[test]
fn refusals_are_no_fault_of_the_generator() {
    let wait = schedule(100, ArrivalLaw::Constant);
    let taken = (0..1_000).filter(|i| i % 7 < 2).map(|i| Nanos::from_millis(10 * i));
    let spec = spec(1, wait, Nanos::from_secs(10));
    let mut trial = served(spec, taken.collect(), Nanos(1_000), 1 << 20);
    assert_eq!(assess(&trial).verdict, Verdict::Invalid, "they were not attempted");
    let refused = 1_000 - trial.sent.sent;
    trial.sent.intended = 1_000;
    trial.sent.send_errors = [("ENOBUFS".to_owned(), refused)].into();
    let report = assess(&trial);
    assert_eq!(report.verdict, Verdict::Valid, "{:?}", report.invalid_because);
}

#[test]
fn an_interval_of_confidence_holds_its_estimate_or_is_none() {
    let ci95 = |elapsed_s| {
        let wait = schedule(100, ArrivalLaw::Constant);
        let starts = (0..1_000).map(|i| Nanos::from_millis(10 * i)).collect();
        let spec = spec(1, wait, Nanos::from_secs(10));
        let mut trial = served(spec, starts, Nanos(1_000), 1 << 20);
        trial.sent.elapsed = Nanos::from_secs(elapsed_s);
        let report = assess(&trial);
        (report.throughput_per_s, report.throughput_ci95_per_s)
    };
    assert_eq!(ci95(10), (Some(100.0), Some([100.0, 100.0])));
    assert_eq!(ci95(20), (Some(50.0), None), "held up beyond the end");
}

fn any_counter() -> impl Strategy<Value = DropCounter> {
    let place = (0usize..DropPlace::ALL.len()).prop_map(|i| DropPlace::ALL[i]);
    let such = (any::<bool>(), any::<bool>(), any::<bool>());
    (place, 0u64..2_000, such).prop_map(|(place, count, (host_wide, whole_kernel, at_service))| {
        DropCounter {
            whole_kernel: host_wide && whole_kernel,
            at_service,
            ..counter(place, count, host_wide)
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Every datagram is on exactly one line, whatever the counters say.
    #[test]
    fn ledgers_balance(
        (intended, sent, not_attempted, errors) in (0u64..3_000, 0u64..3_000, 0u64..300, 0u64..300),
        (received, malformed, socket_drops) in (0u64..3_000, 0u64..100, 0u64..2_000),
        drops in proptest::collection::vec(any_counter(), 0..6),
        (vanished, same_host) in (any::<bool>(), any::<bool>()),
    ) {
        let mut trial = lossy(received, drops);
        trial.sent.intended = intended;
        trial.sent.sent = sent;
        trial.sent.not_attempted = not_attempted;
        trial.sent.send_errors = [("ENOBUFS".to_owned(), errors)].into();
        trial.service.same_host = same_host;
        let got = trial.received.as_mut().expect("a report of the service");
        got.socket_drops = socket_drops;
        got.discarded.insert("malformed".to_owned(), malformed);
        if vanished {
            trial.received = None;
        }
        let l = ledger(&trial);
        prop_assert_eq!(sum(&l), i128::from(intended));
        let lost: u64 = l.lost.values().sum();
        prop_assert!(lost + l.discarded <= sent.saturating_sub(l.received));
        prop_assert!(l.lost.values().all(|&n| n > 0));
        let attributed: u64 = l.evidence.iter().map(|e| e.attributed).sum();
        prop_assert_eq!(attributed, lost);
        if vanished && intended == sent + not_attempted + errors {
            prop_assert_eq!(l.unexplained, 0);
        }
        let report = assess(&trial);
        prop_assert_eq!(report.outcomes.total(), report.attempted);
        let room = intended.saturating_sub(not_attempted + errors);
        prop_assert_eq!(report.outcomes.count(Outcome::Ok), l.received.min(room));
    }
}
