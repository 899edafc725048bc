use super::write::{RunWriter, TrialStart};
use super::*;
use crate::history::schema::{open_to_read, open_to_write};
use crate::watch::{ExperimentStart, LiveKind, LiveTrial, UpcomingTrial, Watcher};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use knee_core::experiment::run::RunConclusion;
use knee_core::report::{self, Command, Conclusion, Host, ReportResult, SCHEMA};
use knee_core::trial::report::Verdict;
use knee_load::measure::{Histogram, Interval};
use knee_load::spec::Level;
use knee_load::time::Nanos;
use rusqlite::Connection;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// A directory that is gone when dropped.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let name = format!("knee-history-{}-{name}", std::process::id());
        Place(std::env::temp_dir().join(name))
    }

    fn file(&self) -> PathBuf {
        self.0.join("deep/history.db")
    }

    fn store(&self) -> HistoryStore {
        HistoryStore::open(&self.file()).unwrap().unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn opening() -> ExperimentStart {
    let target = ("target".to_string(), Value::from("http://h/"));
    ExperimentStart {
        command: Command::of(report::Kind::Run),
        started_at: "2026-05-04T09:30:00Z".to_string(),
        seed: u64::MAX,
        spec: BTreeMap::from([target]),
    }
}

fn begun(path: &Path) -> RunWriter {
    RunWriter::begin(path, &opening(), &Host::default()).unwrap()
}

fn report() -> Report {
    Report {
        schema: SCHEMA.to_string(),
        command: Command::of(report::Kind::Run),
        knee_version: env!("CARGO_PKG_VERSION").to_string(),
        started_at: opening().started_at,
        seed: u64::MAX,
        verdict: Verdict::Valid,
        result: ReportResult::default(),
        failed_because: Vec::new(),
        interrupted: false,
        host: Host::default(),
        spec: opening().spec,
        trials: Vec::new(),
        findings: Vec::new(),
        thresholds: Vec::new(),
        conclusion: Conclusion::Run(RunConclusion {
            throughput_per_s: Some(12.0),
            ..RunConclusion::default()
        }),
    }
}

fn trial() -> TrialStart {
    TrialStart {
        label: "vusers=1".to_string(),
        level: Some(Level::Vusers(1)),
        planned_ns: Some(1_000),
        asked_per_s: None,
    }
}

fn interval(number: u64) -> Interval {
    Interval {
        start_ns: 100 * number,
        end_ns: 100 * (number + 1),
        attempted: 1,
        completed: 1,
        ..Interval::default()
    }
}

fn count(path: &Path, table: &str) -> i64 {
    let connection = Connection::open(path).unwrap();
    let sql = format!("SELECT count(*) FROM {table}");
    connection.query_row(&sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn what_is_written_is_read_again() {
    let place = Place::new("read-again");
    assert!(HistoryStore::open(&place.file()).unwrap().is_none());
    let mut run = begun(&place.file());
    run.closes(&report(), Some("main"), 5_000).unwrap();
    let store = place.store();
    let entry = &store.entries(&HistoryFilter::default()).unwrap()[0];
    assert_eq!((entry.id, entry.state, entry.seed), (1, RunState::Complete, u64::MAX));
    assert_eq!((entry.target.as_str(), entry.duration_ns), ("http://h/", 5_000));
    assert_eq!(entry.verdict.as_deref(), Some("valid"));
    assert_eq!(entry.baselines, ["main"]);
    assert_eq!(store.report(1), Ok(report()));
    let baseline = RunReference::Baseline("main".to_string());
    assert_eq!(store.id(&baseline), Ok(1));
    assert_eq!(store.id(&RunReference::Last), Ok(1));
}

#[test]
fn intervals_are_needless_once_their_trial_has_led_to_a_report() {
    let place = Place::new("needless");
    let mut run = begun(&place.file());
    for number in 0..2 {
        run.trial_begins(number, &trial(), 1).unwrap();
        run.interval([number, 0], &interval(0), None, 2).unwrap();
        run.interval([number, 1], &interval(1), None, 3).unwrap();
        if number == 0 {
            run.so_far(&report(), 1, 4).unwrap();
        }
    }
    assert_eq!(count(&place.file(), "intervals"), 2, "those of the running trial");
    let so_far = place.store().report(1).unwrap();
    assert!(so_far.interrupted);
    assert_eq!(so_far.trials.len(), 1);
    assert_eq!(so_far.trials[0].intervals, [interval(0), interval(1)]);
    run.closes(&report(), None, 5).unwrap();
    assert_eq!(count(&place.file(), "intervals"), 0);
    assert_eq!(count(&place.file(), "reports"), 1);
}

#[test]
fn what_failed_says_why() {
    let place = Place::new("failed");
    begun(&place.file()).fails("it went away", 1).unwrap();
    let store = place.store();
    assert_eq!(store.entry(1).unwrap().state, RunState::Failed);
    assert!(store.report(1).unwrap_err().contains("it went away"));
}

#[test]
fn a_report_of_another_schema_or_a_damaged_one_is_refused() {
    let place = Place::new("refused");
    let mut run = begun(&place.file());
    let newer = Report { schema: "knee.report/3".to_string(), ..report() };
    run.closes(&newer, None, 1).unwrap();
    let wrong = place.store().report(1).unwrap_err();
    assert!(wrong.contains("schema knee.report/3 is not understood"), "{wrong}");
    begun(&place.file());
    let connection = open_to_write(&place.file()).unwrap();
    let spoil = |sql: &str| connection.execute_batch(sql).unwrap();
    spoil("UPDATE reports SET document = x'00'");
    assert!(place.store().report(1).unwrap_err().contains("damaged"));
    spoil("DELETE FROM reports");
    assert!(place.store().report(1).unwrap_err().contains("missing"));
    spoil("UPDATE runs SET report_schema = 'knee.report/3' WHERE id = 2");
    assert!(place.store().report(2).unwrap_err().contains("not understood"));
    spoil("UPDATE runs SET report_schema = 'knee.report/2', running = 0, running_trial = '{'");
    assert!(place.store().report(2).unwrap_err().contains("damaged"));
}

#[test]
fn runs_of_the_first_versions_are_read() {
    let place = Place::new("first-schema");
    let mut ended = begun(&place.file());
    ended.closes(&report(), None, 1).unwrap();
    let mut killed = begun(&place.file());
    killed.trial_begins(0, &trial(), 1).unwrap();
    killed.interval([0, 0], &interval(0), None, 2).unwrap();
    let connection = open_to_write(&place.file()).unwrap();
    let document = include_bytes!("../../tests/end_to_end/fixtures/before.json");
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
    packed.write_all(document).unwrap();
    let sql = "UPDATE reports SET document = ? WHERE run = 1";
    connection.execute(sql, [packed.finish().unwrap()]).unwrap();
    let sql = "UPDATE runs SET report_schema = 'knee.report/1'";
    connection.execute_batch(sql).unwrap();
    let whole = place.store().report(1).unwrap();
    assert_eq!(whole.schema, SCHEMA);
    assert!(whole.trials.iter().all(|t| t.http().is_some()));
    let rest = place.store().report(2).unwrap();
    assert_eq!(rest.trials[0].attempted, 1);
    assert!(rest.trials[0].is_cut_short());
}

#[test]
fn a_run_that_was_removed_while_it_went_on_is_told() {
    let place = Place::new("removed");
    let mut run = begun(&place.file());
    let connection = open_to_write(&place.file()).unwrap();
    connection.execute("DELETE FROM runs", []).unwrap();
    let wrong = run.closes(&report(), None, 1).unwrap_err();
    assert!(wrong.contains("removed"), "{wrong}");
}

/// A process that finds it half made neither takes it for another program's nor fails.
#[test]
fn a_file_that_several_make_at_once_is_one_history() {
    let place = Place::new("several");
    for round in 0..40 {
        let file = place.0.join(format!("{round}.db"));
        let all_are_there = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    all_are_there.wait();
                    open_to_read(&file).unwrap();
                    open_to_write(&file).unwrap();
                    assert!(open_to_read(&file).unwrap().is_some());
                });
            }
        });
    }
}

#[test]
fn another_programs_database_is_left_alone() {
    let place = Place::new("other");
    std::fs::create_dir_all(place.file().parent().unwrap()).unwrap();
    let other = Connection::open(place.file()).unwrap();
    other.execute_batch("CREATE TABLE theirs (x)").unwrap();
    drop(other);
    let before = std::fs::read(place.file()).unwrap();
    let wrong = RunWriter::begin(&place.file(), &opening(), &Host::default()).unwrap_err();
    assert_eq!(wrong, "is not a history of knee");
    assert!(HistoryStore::open(&place.file()).is_err());
    assert_eq!(std::fs::read(place.file()).unwrap(), before);
}

/// Events are taken although the file cannot be written, and are there once it can.
#[test]
fn the_experiment_does_not_wait_for_the_disk() {
    let place = Place::new("slow");
    drop(begun(&place.file()));
    let lock = open_to_write(&place.file()).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut recorder = HistoryRecorder::new(KeepOptions::default());
    recorder.start(place.file(), &opening()).unwrap();
    let live = LiveTrial {
        label: "vusers=1".to_string(),
        kind: LiveKind::Operations,
        warmup: Nanos::ZERO,
        total: Some(Nanos(1_000)),
        interval: Nanos(100),
        asked_per_s: None,
        names: Default::default(),
    };
    let upcoming = UpcomingTrial { live, level: Some(Level::Vusers(1)), http: None };
    recorder.trial_begins(0, &upcoming);
    let mut response = Histogram::default();
    response.record(Nanos(7));
    // More than wait for the disk at once: the rest is left out, and nobody waits.
    for number in 0..3_000 {
        recorder.interval(&interval(number), &response);
    }
    assert_eq!(recorder.remark(), None);
    lock.execute_batch("COMMIT").unwrap();
    recorder.closes(&report());
    assert_eq!(recorder.remark(), None);
    assert_eq!(place.store().report(2), Ok(report()));
}

#[cfg(unix)]
#[test]
fn the_file_is_for_its_owners_eyes() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new("eyes");
    drop(begun(&place.file()));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place.file()), 0o600);
    assert_eq!(mode(place.file().parent().unwrap()), 0o700);
}

#[test]
fn references() {
    let name = |text: &str| RunReference::Baseline(text.to_string());
    for (text, expected) in [
        ("12", Some(RunReference::Id(12))),
        ("007", Some(RunReference::Id(7))),
        ("last", Some(RunReference::Last)),
        ("main", Some(name("main"))),
        ("feature/cache-2_b.1", Some(name("feature/cache-2_b.1"))),
        ("", None),
        ("-1", None),
        ("1a", None),
        ("99999999999999999999", None),
        ("a b", None),
        ("häh", None),
    ] {
        assert_eq!(RunReference::parse(text).ok(), expected, "{text}");
    }
}

#[test]
fn names_that_mean_something_else_are_refused() {
    for text in ["last", "12", "", "a\nb", &"x".repeat(101)] {
        let wrong = parse_name(text).unwrap_err();
        assert!(!wrong.contains('\n'), "{wrong}");
    }
}
