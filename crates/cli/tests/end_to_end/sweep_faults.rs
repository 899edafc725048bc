//! Sweeps of servers and hosts that change while they are measured. Each test asks for names of
//! findings and for relations within one report; none depends on the speed of the machine.

use crate::support::{Answer, Ended, KneeServer, Station, TempPath, knee, run, unless_disturbed};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const MS: Duration = Duration::from_millis(1);

fn sweep(url: &str, options: &[&str]) -> Ended {
    run(&[&["sweep", url, "--json", "-", "--quiet"], options].concat())
}

fn report_of(url: &str, options: &[&str]) -> Value {
    let ended = sweep(url, options);
    assert!(matches!(ended.status, Some(0 | 1 | 3)), "{ended:?}");
    ended.json()
}

fn finding<'a>(report: &'a Value, code: &str) -> Option<&'a Value> {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().find(|f| f["code"] == code)
}

fn answer(report: &Value) -> String {
    report["conclusion"]["answer"].as_str().unwrap().to_owned()
}

fn levels(report: &Value) -> &Vec<Value> {
    report["conclusion"]["levels"].as_array().unwrap()
}

fn users(level: &Value) -> u64 {
    level["level"]["vusers"].as_u64().unwrap()
}

fn per_s(level: &Value) -> f64 {
    level["throughput_per_s"].as_f64().unwrap()
}

/// Three threads that need a processor each.
struct BusyLoops(Arc<AtomicBool>);

impl BusyLoops {
    fn begin() -> BusyLoops {
        let goes_on = Arc::new(AtomicBool::new(true));
        for _ in 0..3 {
            let goes_on = goes_on.clone();
            std::thread::spawn(move || while goes_on.load(Ordering::Relaxed) {});
        }
        BusyLoops(goes_on)
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Four workers of 1 ms serve 4,000/s at the most. The loops begin after the fifth slice and end
/// after seven more.
#[test]
fn busy_loops_in_the_middle_are_no_capacity() {
    let server = KneeServer::start(&["--workers", "4", "--service", "fixed(1ms)"]);
    let list = ["--vusers", "1,4,8,16", "-d", "2s", "--json", "-"];
    let mut child = knee(&[&["sweep", &server.url()][..], &list].concat()).spawn().unwrap();
    let stdout = child.stdout.take().unwrap();
    let text = std::thread::spawn(move || {
        let mut text = String::new();
        BufReader::new(stdout).read_to_string(&mut text).unwrap();
        text
    });
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert_eq!(lines.by_ref().take(5).count(), 5);
    let busy = BusyLoops::begin();
    assert_eq!(lines.by_ref().take(7).count(), 7);
    drop(busy);
    lines.for_each(drop);
    Ended::of(child);
    let report: Value = serde_json::from_str(&text.join().unwrap()).unwrap();
    let c = &report["conclusion"];
    let most = c["max_throughput_per_s"].as_f64().unwrap();
    let interval = &c["max_throughput_ci95_per_s"];
    let upper = interval[1].as_f64().unwrap_or(most);
    let is_explained = [
        "throughput_varies",
        "host_speed_varied",
        "figures_undetermined",
        "confidence_not_reached",
        "generator_limited",
        "regime_change",
        "drifts_over_time",
    ];
    let is_explained = is_explained.iter().any(|c| finding(&report, c).is_some());
    assert!(most <= 1.03 * 4_000.0, "{c:#}");
    assert!(upper >= 0.97 * 4_000.0 || is_explained, "{report:#}");
}

/// Once eight users are in the server for the fiftieth time, nothing is answered for 1.2 s.
#[test]
fn an_outage_while_one_level_runs_is_named() {
    let attempt = || {
        let mut full = 0;
        let mut silent_until: Option<Instant> = None;
        let url = Station::start(4, move |inside| {
            full += u32::from(inside >= 8);
            if full == 50 && silent_until.is_none() {
                silent_until = Some(Instant::now() + 1_200 * MS);
            }
            match silent_until.filter(|end| *end > Instant::now()) {
                Some(end) => Answer::At(end),
                None => Answer::After(5 * MS),
            }
        });
        sweep(&url, &["--vusers", "1,4,8", "-d", "3s"])
    };
    unless_disturbed(attempt, |report| {
        let outage = finding(report, "outage").unwrap_or_else(|| panic!("{report:#}"));
        let text = outage["text"].as_str().unwrap();
        let level = text.split(" at ").last().unwrap();
        assert!(level.contains('8'), "{text}");
        let outages = report["conclusion"]["outages"].as_array().unwrap();
        let longest = outages.iter().map(|o| {
            let [begin, end] = ["begin_ns", "end_ns"].map(|name| o[name].as_u64().unwrap());
            end - begin
        });
        assert!(longest.max() >= Some(250_000_000), "{outages:#?}");
        assert!(finding(report, "retrograde").is_none(), "{report:#}");
    });
}

/// Eight workers of 20 ms; once 21 users are inside, each operation takes 60 ms for ever.
#[test]
fn a_server_that_falls_for_ever_has_two_regimes() {
    let attempt = || {
        let mut has_fallen = false;
        let url = Station::start(8, move |inside| {
            has_fallen |= inside >= 21;
            Answer::After(if has_fallen { 60 * MS } else { 20 * MS })
        });
        sweep(&url, &["--budget", "24s"])
    };
    unless_disturbed(attempt, |report| {
        let c = &report["conclusion"];
        assert!(finding(report, "regime_change").is_some(), "{report:#}");
        let side = |name: &str| c["regime_change"][name].as_f64().unwrap();
        let (before, after) = (side("before_per_s"), side("after_per_s"));
        assert!((2.2..=3.8).contains(&(before / after)), "{c:#}");
        let most = c["max_throughput_per_s"].as_f64().unwrap();
        assert!(most == before || most == after, "{c:#}");
        // No row of a busy server is a mean of both.
        for level in levels(report).iter().filter(|l| users(l) >= 12) {
            let is_between = per_s(level) > 1.25 * after && per_s(level) < 0.8 * before;
            assert!(!is_between, "{level:#}");
        }
        assert!(answer(report).contains("changed for good"), "{c:#}");
        // The analysis of the report finds the same.
        let file = TempPath::with("sweep.json", &report.to_string());
        let again = run(&["analyze", "sweep", file.str(), "--json", "-"]).json();
        let change = |report: &Value| report["conclusion"]["regime_change"].clone();
        let [live, read] = [change(report), change(&again)];
        assert_eq!((&live["at_ns"], &live["after_level"]), (&read["at_ns"], &read["after_level"]));
        for side in ["before_per_s", "after_per_s"] {
            let ratio = read[side].as_f64().unwrap() / live[side].as_f64().unwrap();
            assert!((0.9..=1.1).contains(&ratio), "{live:#} {read:#}");
        }
        assert!(finding(&again, "regime_change").is_some(), "{again:#}");
        assert!(finding(&again, "time_not_separated").is_none(), "{again:#}");
    });
}

/// Four workers of 3 ms, which take a quarter more and less in turn, with a period of 2.3 s.
#[test]
fn a_server_whose_speed_wavers_has_a_maximum_and_a_knee() {
    let mut seen = Vec::new();
    for _ in 0..3 {
        let begin = Instant::now();
        let url = Station::start(4, move |_| {
            let turn = std::f64::consts::TAU * begin.elapsed().as_secs_f64() / 2.3;
            Answer::After(Duration::from_secs_f64(0.003 * (1.0 + 0.25 * turn.sin())))
        });
        let report = report_of(&url, &["--budget", "12s"]);
        let c = &report["conclusion"];
        let most = c["max_throughput_per_s"].as_f64().unwrap();
        let ends = |name: &str| [0, 1].map(|i| c[name][i].as_f64().unwrap_or(f64::NAN));
        let [lo, hi] = ends("max_throughput_ci95_per_s");
        // A finding names what is not known well.
        let is_named = ["throughput_varies", "confidence_not_reached", "host_speed_varied"];
        let is_named = is_named.iter().any(|code| finding(&report, code).is_some());
        assert!((hi - lo) / most <= 0.1 || is_named, "{report:#}");
        assert!(most <= 4.0 / (0.003 * 0.75), "{c:#}");
        let has_range = c["knee_range"].is_array();
        let [knee_lo, knee_hi] = ends(if has_range { "knee_range" } else { "knee_ci95" });
        let is_found = knee_lo <= 8.0 && knee_hi >= 2.5 && knee_hi / knee_lo <= 8.0;
        if is_found && finding(&report, "not_saturated").is_none() {
            return;
        }
        seen.push(answer(&report));
    }
    panic!("{seen:#?}");
}

/// Eight workers of 2 ms, of whose requests 300 per second succeed.
#[test]
fn rejections_above_a_limit_bound_the_goodput() {
    let begin = Instant::now();
    let mut granted = 0.0;
    let url = Station::start(8, move |_| {
        let due = begin.elapsed().as_secs_f64() * 300.0;
        granted = f64::max(granted, due - 3.0);
        if granted + 1.0 > due {
            return Answer::Reject;
        }
        granted += 1.0;
        Answer::After(2 * MS)
    });
    let report = report_of(&url, &["--budget", "10s"]);
    let c = &report["conclusion"];
    let most = c["max_throughput_per_s"].as_f64().unwrap();
    assert!(most <= 1.1 * 300.0, "{c:#}");
    let rows = levels(&report);
    let has_errors = |l: &&Value| l["errors"].as_u64() > Some(0);
    let clean = rows.iter().rposition(|l| !has_errors(&l));
    let first = &rows[clean.map_or(0, |i| i + 1)];
    let text = answer(&report);
    let stated = format!("From {} user", users(first));
    assert!(text.contains(&stated), "{stated}: {text}");
    let next: Vec<&str> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|f| f["next_step"].as_str())
        .collect();
    let repeats = |step: &&str| step.contains("--vusers auto");
    assert!(!next.iter().any(repeats), "{next:#?}");
}

/// Two workers of 3 ms; from the fifth request inside on, each one costs a fifth of that more.
#[test]
fn a_server_that_contends_has_a_peak() {
    let attempt = || {
        let url = Station::start(2, move |inside| {
            let beyond = inside.saturating_sub(4) as f64;
            Answer::After(Duration::from_secs_f64(0.003 * (1.0 + 0.2 * beyond)))
        });
        sweep(&url, &["--vusers", "1,2,4,8,16,32", "-d", "2s"])
    };
    unless_disturbed(attempt, |report| {
        let retrograde = finding(report, "retrograde").unwrap_or_else(|| panic!("{report:#}"));
        let peak = retrograde["evidence"]["peak_level"].as_f64().unwrap();
        let by_throughput = |a: &&Value, b: &&Value| per_s(a).total_cmp(&per_s(b));
        let top = levels(report).iter().max_by(by_throughput).unwrap();
        assert!(peak <= 4.0 && users(top) <= 4, "{retrograde:#}");
        assert!(answer(report).contains("falls to"), "{}", answer(report));
    });
}

#[test]
fn a_table_that_falls_has_a_peak() {
    let text = "10,1000\n20,900\n40,700\n80,400\n";
    let table = TempPath::with("falls.csv", text);
    let ended = run(&["analyze", "sweep", table.str(), "--json", "-"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let report = ended.json();
    let retrograde = finding(&report, "retrograde").unwrap_or_else(|| panic!("{report:#}"));
    assert_eq!(retrograde["evidence"]["peak_level"], 10.0);
    assert!(finding(&report, "saturated_below_range").is_none());
    let text = answer(&report);
    assert!(!text.contains("every level") && !text.contains("Every level"), "{text}");
    assert!(text.contains("10 users"), "{text}");
}

#[test]
fn rows_of_several_slices_obey_littles_law() {
    let attempt = || {
        let server = KneeServer::start(&["--workers", "3", "--service", "exp(4ms)"]);
        sweep(&server.url(), &["--vusers", "1,3,12", "-d", "2s"])
    };
    unless_disturbed(attempt, |report| {
        let trials = report["trials"].as_array().unwrap();
        for (level, trial) in levels(report).iter().zip(trials) {
            assert_eq!(level["level"], trial["level"]);
            assert!(level["trials"].as_u64() > Some(1), "{level:#}");
            let mean_s = level["mean_ns"].as_f64().unwrap() / 1e9;
            let inside = per_s(level) * mean_s;
            let n = users(level) as f64;
            assert!(inside <= 1.02 * n, "{inside} of {n}: {level:#}");
            // What the generator takes of a cycle is missing.
            assert!(inside >= 0.6 * n, "{inside} of {n}: {level:#}");
            let count = trial["response_time_ns"]["count"].as_f64().unwrap();
            let length_s = trial["duration_ns"].as_f64().unwrap() / 1e9;
            assert!((count / length_s / per_s(level) - 1.0).abs() < 0.02, "{trial:#}");
        }
    });
}

/// One worker of exponential service: throughput is that of one user, whatever the load.
#[test]
fn the_knee_of_a_single_worker_is_about_one_user() {
    let server = KneeServer::start(&["--workers", "1", "--service", "exp(2ms)"]);
    let attempt = || sweep(&server.url(), &["--budget", "12s"]);
    unless_disturbed(attempt, |report| {
        let c = &report["conclusion"];
        let has_range = c["knee_range"].is_array();
        if !has_range && c["knee_ci95"].is_null() {
            // A host on which levels differ by chance alone: only that it is not below one user.
            let answer = c["answer"].as_str().unwrap();
            return assert!(answer.contains("the knee is at 1 user or beyond"), "{c:#}");
        }
        let stated = if has_range { &c["knee_range"] } else { &c["knee_ci95"] };
        let [lo, hi] = [0, 1].map(|i| stated[i].as_f64().unwrap_or_else(|| panic!("{c:#}")));
        assert!(lo <= 1.3 && hi >= 0.95, "{c:#}");
        // A single number is near the truth; where the host is too noisy for one, it is not stated.
        let knee = c["knee_vusers"].as_f64();
        assert!(knee.is_none_or(|k| (0.75..=1.4).contains(&k)), "{c:#}");
        assert!(knee.is_some() || has_range, "{c:#}");
    });
}

/// Four workers of 2 ms; every 500 ms nothing is answered for 120 ms.
#[test]
fn periodic_pauses_are_found_in_a_list_of_levels() {
    let begin = Instant::now();
    let url = Station::start(4, move |_| {
        let now = begin.elapsed();
        let within = now.as_millis() % 500;
        if within < 120 {
            let left = 120 - within as u32;
            return Answer::At(begin + now + left * MS);
        }
        Answer::After(2 * MS)
    });
    // A host that pauses itself hides them.
    let reports = std::iter::repeat_with(|| report_of(&url, &["--vusers", "2,4,8", "-d", "3s"]));
    let found = reports.take(3).find(|report| finding(report, "periodic_pauses").is_some());
    let report = found.expect("pauses are found in one of three reports");
    let pauses = finding(&report, "periodic_pauses").unwrap();
    let period_ms = pauses["evidence"]["period_ns"].as_f64().unwrap() / 1e6;
    assert!((450.0..=550.0).contains(&period_ms), "{pauses:#}");
    // What slices cut off at their edges is no deviation from Little's law.
    let violation = finding(&report, "littles_law_violation");
    assert!(violation.is_none(), "{report:#}");
}
