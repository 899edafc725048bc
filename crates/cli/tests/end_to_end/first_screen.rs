//! What a command prints unless asked for all: few lines, none wide, the answer last.

use crate::support::{Ended, KneeServer, TempPath, run};

/// Runs it to its end, whatever comes of it, and checks its first screen.
fn screen(arguments: &[&str], most: usize) -> Ended {
    let ended = run(arguments);
    assert!(matches!(ended.status, Some(0 | 1 | 3)), "{arguments:?}: {ended:?}");
    let text = &ended.stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() <= most, "{} lines:\n{text}", lines.len());
    let is_narrow = |line: &&str| line.chars().count() <= 80;
    assert!(lines.iter().all(is_narrow), "{text}");
    let is_answer = |line: &&&str| line.starts_with("VALID") || line.starts_with("INVALID");
    assert_eq!(lines.iter().filter(is_answer).count(), 1, "{text}");
    let last = lines.iter().rev().find(|line| !line.starts_with("  "));
    assert!(last.is_some_and(|line| is_answer(&line)), "{text}");
    assert!(text.starts_with("knee "), "what was asked, and its figures: {text}");
    assert!(!text.contains("\nRepeat\n"), "{text}");
    ended
}

/// The command that shows the rest is that of this very run, or `--full` where it is not kept.
#[test]
fn last_hint_shows_the_rest_of_this_run() {
    let server = KneeServer::start(&[]);
    let url = server.url();
    let of_options = |options: &[&str]| run(&[&["run", &url, "-n", "50"], options].concat()).stdout;
    for text in [of_options(&[]), of_options(&[])] {
        let (_, hint) = text.split_once(": knee history show ").unwrap_or_else(|| panic!("{text}"));
        let (id, _) = hint.split_once(" --full\n").unwrap_or_else(|| panic!("{text}"));
        let again = run(&["history", "show", id]);
        assert_eq!(again.stdout, text);
        let whole = run(&["history", "show", id, "--full"]);
        assert!(whole.stdout.contains("\nRepeat\n"), "{whole:?}");
    }
    let text = of_options(&["--no-save"]);
    assert!(text.contains(": --full\n") && !text.contains("knee history"), "{text}");
}

#[test]
fn passed_is_said_where_something_was_asked() {
    let server = KneeServer::start(&[]);
    let url = server.url();
    for (options, expected) in [
        (&[][..], "VALID  "),
        (&["--fail-if", "p50>10s"][..], "VALID, PASSED  "),
        (&["--fail-if", "p50<10s"][..], "VALID, FAILED  "),
    ] {
        let ended = run(&[&["run", &url, "-n", "200"], options].concat());
        let words = expected.trim_start_matches("VALID");
        let mut answers = ended.stdout.lines().filter(|line| line.contains("VALID"));
        let answer = answers.next_back().unwrap_or_default();
        let invalid = answer.starts_with("INVALID") && !answer.contains("PASSED");
        assert!(invalid || answer.starts_with("VALID") && answer.contains(words), "{ended:?}");
    }
}

#[test]
fn a_run_has_23_lines_at_most() {
    let server = KneeServer::start(&["--workers", "2", "--service", "1ms"]);
    let url = server.url();
    for load in [&["-c", "8"][..], &["-R", "300"], &["-R", "300", "--fail-if", "p50>0ms"]] {
        screen(&[&["run", &url, "-d", "300ms", "--warmup", "0"], load].concat(), 23);
    }
    let failing = KneeServer::start(&["--fault", "error(0.2,503)", "--fault", "reset(0.1)"]);
    let ended = screen(&["run", &failing.url(), "-c", "3", "-n", "200"], 23);
    assert!(ended.stdout.contains("http 5xx"), "{}", ended.stdout);
    let secure = KneeServer::start(&["--tls"]);
    let trusted = secure.certificate.clone().unwrap();
    screen(&["run", &secure.url(), "--cacert", &trusted, "-n", "200"], 23);
}

#[test]
fn a_run_of_sessions_has_23_lines_at_most() {
    let server = KneeServer::start(&["--app", "shop"]);
    let text = run(&["scenario", "new"]).stdout;
    let file = TempPath::new("first-screen.yaml");
    let url = server.url();
    let text = text.replace("http://127.0.0.1:8080", url.trim_end_matches('/'));
    std::fs::write(&file.0, text).unwrap();
    screen(&["run", file.str(), "-n", "20", "--vusers", "4"], 23);
}

#[test]
fn one_request_has_12_lines_at_most() {
    let server = KneeServer::start(&[]);
    let ended = screen(&["run", &server.url(), "-n", "1"], 12);
    assert!(ended.stdout.contains("1 ok"), "{}", ended.stdout);
    let failing = KneeServer::start(&["--fault", "reset(1)"]);
    screen(&["run", &failing.url(), "-n", "1"], 12);
}

#[test]
fn a_sweep_or_an_overload_has_40_lines_at_most() {
    let server = KneeServer::start(&["--workers", "2", "--service", "1ms"]);
    let url = server.url();
    let short = ["-d", "200ms", "--warmup", "0"];
    let levels = ["--vusers", "1,2,4,8"];
    screen(&[&["sweep", &url][..], &levels, &short].concat(), 40);
    let levels = ["--simple", "1,4", "--descriptors", "16,64"];
    screen(&[&["overload", &url][..], &levels, &short].concat(), 40);
}

#[test]
fn other_experiments_have_40_lines_at_most() {
    let service = KneeServer::of(&["latency", "--listen", "127.0.0.1:0"]);
    let limits = ["--scenarios", "1/1,0/2", "--scenario-limit", "500ms"];
    screen(&[&["latency", &service.address][..], &limits].concat(), 40);
    let service = KneeServer::of(&["udp", "--listen", "127.0.0.1:0"]);
    screen(&["udp", &service.address, "-R", "1000", "-d", "300ms"], 40);
    screen(&["throttle", "--rate", "1000", "-d", "100ms"], 40);
}

/// Everything is there, of a run and of its stored report.
#[test]
fn full_prints_what_the_first_screen_leaves_out() {
    let server = KneeServer::start(&[]);
    let stored = TempPath::new("first-screen.json");
    let ended = run(&["run", &server.url(), "-n", "100", "--full", "--json", stored.str()]);
    let again = run(&["report", stored.str(), "--full"]);
    assert_eq!(ended.stdout, again.stdout);
    for title in ["Response time", "Outcomes", "Generator", "Repeat"] {
        let heading = format!("\n{title}");
        assert!(ended.stdout.contains(&heading), "{title}: {}", ended.stdout);
    }
    screen(&["report", stored.str()], 23);
}
