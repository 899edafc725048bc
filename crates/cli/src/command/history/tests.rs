use super::options::{List, json};
use crate::history::{HistoryEntry, RunState};

fn entry(id: i64, state: RunState, answer: &str) -> HistoryEntry {
    HistoryEntry {
        id,
        command: "run".to_string(),
        started_at: "2026-05-04T09:30:00Z".to_string(),
        target: "http://127.0.0.1:8080/".to_string(),
        agents: None,
        state,
        verdict: (state == RunState::Complete).then(|| "valid".to_string()),
        result: (state == RunState::Complete).then(|| "passed".to_string()),
        has_thresholds: false,
        interrupted: false,
        seed: 7,
        knee_version: "1.2.3".to_string(),
        duration_ns: 11_003_000_000,
        answer: Some(answer.to_string()).filter(|a| !a.is_empty()),
        baselines: Vec::new(),
    }
}

fn entries() -> Vec<HistoryEntry> {
    vec![
        entry(105, RunState::Running, ""),
        HistoryEntry {
            command: "sweep".to_string(),
            agents: Some(4),
            ..entry(104, RunState::CutShort, "At most 3,991/s.")
        },
        HistoryEntry {
            verdict: Some("invalid".to_string()),
            result: Some("failed".to_string()),
            interrupted: true,
            ..entry(103, RunState::Complete, "998.8/s, p50 4 ms, p99 4.38 ms, no errors")
        },
        entry(12, RunState::Failed, "127.0.0.1:8080: connection refused"),
        entry(11, RunState::Unfinished, ""),
        HistoryEntry {
            command: "throttle".to_string(),
            target: String::new(),
            baselines: vec!["main".to_string(), "v1.2".to_string()],
            has_thresholds: true,
            ..entry(9, RunState::Complete, "A sleep of 1 ms takes 1.06 ms here; hybrid hits it.")
        },
        HistoryEntry {
            result: None,
            target: "http://a-host-with-a-long-name.example.org/and/a/path".to_string(),
            ..entry(8, RunState::Complete, "1,000/s, p50 1 ms, p99 2 ms, no errors")
        },
    ]
}

fn written(width: usize, unicode: bool) -> String {
    let entries = entries();
    let list = List { entries: &entries, width, unicode };
    let mut bytes = Vec::new();
    list.write(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn the_list_as_people_read_it() {
    insta::assert_snapshot!("list", written(150, true));
    insta::assert_snapshot!("list_narrow_ascii", written(100, false));
    for width in [60, 72, 80, 90, 100, 120] {
        let text = written(width, true);
        assert!(text.lines().all(|l| l.chars().count() <= width), "{width}: {text}");
        assert!(text.contains("no errors"), "{text}");
        assert!(width < 72 || text.contains("took") && text.contains("≥11 s"), "{width}: {text}");
    }
    assert!(written(100, false).is_ascii());
    let mut bytes = Vec::new();
    json(&entries()[1..2], &mut bytes).unwrap();
    insta::assert_snapshot!("list_json", String::from_utf8(bytes).unwrap());
}
