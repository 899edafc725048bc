//! From argv to the tables that are measured.

use super::*;
use crate::command::raw::RawCommand;
use crate::command::tests::{parse, typed};
use crate::stdio::about;
use knee_core::experiment::throttle::report::ThrottleConclusion;
use knee_core::report::{Command, Conclusion, Host, Kind, Report, ReportResult, SCHEMA};
use knee_core::trial::report::Verdict;
use knee_load::experiment::throttle::{Chore, HoldMethod, HoldSpec, WaitMethod, WaitSpec};
use knee_load::spec::ArrivalLaw;

fn resolve(arguments: &str) -> ThrottleSpec {
    match parse(&format!("throttle {arguments}")) {
        Ok(RawCommand::Throttle(raw)) => raw.resolve().unwrap_or_else(|e| panic!("{e}")),
        other => panic!("{arguments}: {other:?}"),
    }
}

fn waits(arguments: &str) -> Vec<WaitSpec> {
    match resolve(arguments).table {
        Table::Waits { rows, .. } => rows,
        Table::Holds(rows) => panic!("{arguments}: {rows:?}"),
    }
}

fn holds(arguments: &str) -> Vec<HoldSpec> {
    match resolve(arguments).table {
        Table::Holds(rows) => rows,
        Table::Waits { rows, .. } => panic!("{arguments}: {rows:?}"),
    }
}

#[test]
fn without_options_each_method_waits_for_each_delay() {
    let rows = waits("");
    assert_eq!(rows.len(), 130);
    let first: Vec<_> = rows.iter().take(10).map(|row| row.method).collect();
    assert_eq!(first, WaitMethod::ALL);
    assert!(rows.iter().take(10).all(|row| row.delay == Nanos::from_micros(50)));
    assert_eq!(rows[129].delay, Nanos::from_millis(50));
    assert!(rows.iter().all(|row| row.duration == Nanos::from_millis(500)));
    assert!(rows.iter().all(|row| row.chore == Chore::None));
}

#[test]
fn work_doubles_the_rows() {
    let rows = waits("--methods hybrid,sleep --delays 2ms,1ms -d 1s --op udp --to 127.0.0.1:9");
    let named: Vec<_> = rows
        .iter()
        .map(|row| (row.delay.0 / 1_000_000, row.method.name(), row.chore.name()))
        .collect();
    let expected = [
        (2, "hybrid", "none"),
        (2, "hybrid", "udp"),
        (2, "sleep", "none"),
        (2, "sleep", "udp"),
        (1, "hybrid", "none"),
        (1, "hybrid", "udp"),
        (1, "sleep", "none"),
        (1, "sleep", "udp"),
    ];
    assert_eq!(named, expected);
    assert_eq!(rows[1].chore, Chore::Udp("127.0.0.1:9".to_string()));
}

#[test]
fn a_rate_is_held_by_each_method() {
    let rows = holds("-R 1000 --op-time 0.9ms --seed 5");
    let methods: Vec<HoldMethod> = rows.iter().map(|row| row.method).collect();
    assert_eq!(methods, HoldMethod::ALL);
    let row = &rows[6];
    assert_eq!(row.method, HoldMethod::Throttle);
    assert_eq!(row.rate.per_s(), 1000.0);
    assert_eq!(row.arrival, ArrivalLaw::Constant);
    assert_eq!(row.catch_up, CatchUp::ALL);
    assert_eq!(row.wait_min, Nanos::ZERO);
    assert_eq!(row.duration, Nanos::from_secs(2));
    assert_eq!(row.chore, Chore::Busy(Nanos::from_micros(900)));
    assert_eq!(row.seed, 5);
    let rows = holds(
        "-R 90/m --methods throttle,tick --arrival poisson --policy spread(1.5) --min-wait 10ms \
         -d 10s --op qotd --to [::1]:17",
    );
    let methods: Vec<HoldMethod> = rows.iter().map(|row| row.method).collect();
    assert_eq!(methods, [HoldMethod::Throttle, HoldMethod::Tick]);
    assert_eq!(rows[0].arrival, ArrivalLaw::Poisson);
    assert_eq!(rows[0].catch_up, CatchUp::Spread(1.5));
    assert_eq!(rows[0].wait_min, Nanos::from_millis(10));
    assert_eq!(rows[0].duration, Nanos::from_secs(10));
    assert_eq!(rows[0].chore, Chore::Qotd("[::1]:17".to_string()));
    assert_eq!(holds("-R 1 --op-time 0")[0].chore, Chore::None);
}

#[test]
fn without_an_address_a_service_of_its_own_is_asked() {
    for (op, name) in [("udp", "datagrams"), ("qotd", "quote")] {
        let spec = resolve(&format!("--op {op}"));
        let service = spec.service.expect("a service was started");
        assert!(service.announcement.contains(name), "{}", service.announcement);
        let Table::Waits { rows, .. } = spec.table else {
            panic!("{op}");
        };
        let to = service.address.to_string();
        let expected = [Chore::Udp(to.clone()), Chore::Qotd(to)];
        assert!(expected.contains(&rows[1].chore), "{op}");
        assert!(!spec.setup.options.0.contains_key("to"), "the next one has another port");
    }
}

#[test]
fn what_is_resolved_can_be_typed_again() {
    for arguments in [
        "",
        "--methods sleep,spin --delays 50us,1ms -d 20ms --fail-if invalid",
        "--op qotd --to 127.0.0.1:1717",
        "--rate 1000",
        "--rate 90/m --methods throttle --arrival burst(3,0.2,1s) --policy burst(20) -d 5s",
        "--rate 0.5 --min-wait 4s --op-time 2s --policy delay",
        "--rate 5 --policy spread --op udp --to [::1]:9",
    ] {
        let spec = resolve(arguments);
        let words = spec.setup.options.0.iter();
        let again: Vec<String> = words.flat_map(|(k, v)| typed(k, v)).collect();
        let again = resolve(&again.join(" "));
        assert_eq!(again.table, spec.table, "{arguments}");
        assert_eq!(again.setup.options, spec.setup.options, "{arguments}");
    }
}

#[test]
fn only_the_verdict_can_cross_a_threshold() {
    let thresholds = resolve("--rate 5 --fail-if invalid").setup.thresholds;
    for (verdict, crossed) in [(Verdict::Valid, 0), (Verdict::Invalid, 1)] {
        let report = Report {
            schema: SCHEMA.to_string(),
            command: Command::of(Kind::Throttle),
            knee_version: String::new(),
            started_at: String::new(),
            seed: 1,
            verdict,
            result: ReportResult::default(),
            failed_because: Vec::new(),
            interrupted: false,
            thresholds: Vec::new(),
            host: Host::default(),
            spec: Default::default(),
            trials: Vec::new(),
            findings: Vec::new(),
            conclusion: Conclusion::Throttle(ThrottleConclusion::default()),
        };
        let judged = thresholds.judge(&report);
        let lines: usize = judged.iter().map(|t| t.crossed.len()).sum();
        assert_eq!(lines, crossed, "{verdict:?}");
    }
}

#[test]
fn times_are_told_roughly() {
    for (ms, text) in
        [(40, "0.1 s"), (1_540, "1.6 s"), (9_000, "9 s"), (65_000, "65 s"), (210_000, "3.5 min")]
    {
        assert_eq!(about(Nanos::from_millis(ms)), text);
    }
}

#[test]
fn bad_input_gets_one_clear_line() {
    crate::command::tests::refused::check(REFUSED);
}

const REFUSED: &[(&str, &str)] = &[
    ("throttle now", "'now': one argument too many; values follow their options"),
    (
        "throttle --methods sleep,doze",
        "--methods: 'doze' is no way to wait: there are sleep, sleep-min-slack,…",
    ),
    ("throttle --methods naive-sleep", "--methods: 'naive-sleep' is no way to wait:…"),
    ("throttle --methods sleep,sleep", "--methods: 'sleep' is there twice: once is enough"),
    ("throttle --methods sleep,", "--methods: '' is no way to wait:…"),
    ("throttle --delays 1ms,soon", "--delays: 'soon' is not a duration:…"),
    ("throttle --delays -5ms", "--delays: '-5ms' is not a duration:…"),
    ("throttle --delays 0", "--delays: '0' is no time at all: it takes more than 0, such as 500ms"),
    (
        "throttle --delays 11s",
        "--delays: '11s' is too long: at most 10s, as each row makes 5 waits or more",
    ),
    ("throttle --delays 1ms,1000us", "--delays: '1000us' is there twice: once is enough"),
    ("throttle -d 0", "--duration: '0' is no time at all: it takes more than 0, such as 500ms"),
    ("throttle --op http", "--op: 'http' is not one of udp, qotd"),
    (
        "throttle --to 127.0.0.1:17",
        "--to: needs an operation that is sent there: give --op udp or --op qotd",
    ),
    (
        "throttle --op udp --to localhost",
        "--to: 'localhost' is no address to send to: give ADDR:PORT, such as 127.0.0.1:1717 or \
         [::1]:17",
    ),
    ("throttle --op udp --to 127.0.0.1:0", "--to: '127.0.0.1:0' has the port 0: give ADDR:PORT,…"),
    ("throttle --policy skip", "--policy: needs a rate to hold: give --rate, such as --rate 1000"),
    (
        "throttle --min-wait 1ms",
        "--min-wait: needs a rate to hold: give --rate, such as --rate 1000",
    ),
    (
        "throttle --arrival poisson",
        "--arrival: needs a rate to hold: give --rate, such as --rate 1000",
    ),
    ("throttle --op-time 1ms", "--op-time: needs a rate to hold: give --rate, such as --rate 1000"),
    (
        "throttle --rate 5 --delays 1ms",
        "--delays: with --rate the rate is what is asked for: leave one out",
    ),
    (
        "throttle --rate 5 --op udp --op-time 1ms",
        "--op and --op-time exclude each other: leave one out",
    ),
    ("throttle --rate 0", "--rate: '0' would offer nothing:…"),
    (
        "throttle --rate 5 --methods sleep",
        "--methods: 'sleep' is no way to hold a rate: there are naive-sleep,…",
    ),
    ("throttle --rate 5 --policy burst(0)", "--policy: 'burst(0)' is no burst:…"),
    ("throttle --rate 5 --policy spread(1)", "--policy: 'spread(1)' never catches up:…"),
    ("throttle --rate 5 --policy forgive", "--policy: 'forgive' is no policy:…"),
    ("throttle --rate 5 --arrival weekly", "--arrival: 'weekly' is no arrival process:…"),
    (
        "throttle --rate 5 --arrival ramp(1,2)",
        "--arrival: 'ramp(1,2)' carries its own rate, but --rate is held here: give constant, \
         poisson, uniform, hyperexp(cv), erlang(k) or burst(a,b,period)",
    ),
    ("throttle --rate 5 --op-time long", "--op-time: 'long' is not a duration:…"),
    (
        "throttle --rate 5 --fail-if p99>2ms",
        "--fail-if: 'p99>2ms' needs a target that responds: here there is only 'invalid'",
    ),
    (
        "serve qotd --listen 1717",
        "--listen: '1717' is no address to listen at: give ADDR:PORT such as 127.0.0.1:1717",
    ),
    (
        "serve qotd --allow everyone",
        "--allow: 'everyone' is no address to allow: give one such as 192.0.2.7 or 2001:db8::7",
    ),
    ("serve qotd --quote é", "--quote: a quote has printable ASCII…"),
];
