//! What the screen looks like.

use super::*;
use crate::fixtures;
use knee_load::measure::{AgentInterval, band_of};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;

const PLAIN: TerminalStyle = TerminalStyle { color: false, unicode: true };

/// What a terminal of this size shows.
fn shown(screen: LiveScreen<'_>, (width, height): (u16, u16)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| frame.render_widget(screen, frame.area())).unwrap();
    let text = terminal.backend().to_string();
    // The backend quotes its lines.
    let lines = text.lines().map(|l| l.trim_matches('"').trim_end());
    lines.collect::<Vec<_>>().join("\n")
}

fn screen(live: &LiveState) -> LiveScreen<'_> {
    LiveScreen {
        live,
        style: PLAIN,
        elapsed: Nanos::from_millis(8_500),
        stopping: false,
        pane: LatencyView::HeatMap,
        help: false,
        hint: "",
    }
}

fn trial(label: &str, kind: LiveKind) -> LiveTrial {
    LiveTrial {
        label: label.to_string(),
        kind,
        warmup: Nanos::from_secs(1),
        total: Some(Nanos::from_secs(11)),
        interval: Nanos::from_millis(500),
        asked_per_s: None,
        names: Default::default(),
    }
}

/// The `i`th half second of a server that slows down from the tenth on.
fn half_second(i: u64) -> (Interval, Vec<(u16, u64)>) {
    let slow = if i < 10 { 1 } else { 1 + (i - 9) * 4 };
    let us = 1_000 * slow;
    let interval = Interval {
        start_ns: i * 500_000_000,
        end_ns: (i + 1) * 500_000_000,
        attempted: 500,
        completed: if i < 10 { 499 } else { 430 },
        errors: if i > 12 { 7 } else { 0 },
        p50_ns: 700 * us,
        p90_ns: 1_000 * us,
        p95_ns: 1_300 * us,
        p99_ns: 1_900 * us,
        max_ns: 6_000 * us,
        pacing_error_ns_mean: Some(3_100),
        pacing_error_ns_max: Some(52_000),
        ..Interval::default()
    };
    let band = |part_us: u64, n| (band_of(Nanos(part_us * us)), n);
    let bands = vec![
        band(350, 20),
        band(500, 90),
        band(700, 250),
        band(900, 110),
        band(1_800, 24),
        band(6_000, 5),
    ];
    (interval, bands)
}

fn open_loop() -> LiveState {
    let mut live = LiveState::new("run", "http://127.0.0.1:8080/items");
    live.trial_begins(LiveTrial {
        asked_per_s: Some(1_000.0),
        ..trial("rate=1000/s", LiveKind::Operations)
    });
    for i in 0..15 {
        let (interval, bands) = half_second(i);
        live.interval(interval, bands);
    }
    live
}

/// Two levels that are over, and a third that runs.
fn sweep() -> LiveState {
    let mut live = LiveState::new("sweep", "http://127.0.0.1:8080/");
    for (at, report) in fixtures::sweep_good().trials.iter().take(3).enumerate() {
        live.trial_begins(trial(&report.label, LiveKind::Operations));
        for i in 0..6 {
            let (mut interval, bands) = half_second(i);
            interval.completed *= at as u64 + 1;
            live.interval(interval, bands);
        }
        if at < 2 {
            live.trial_ends(Some(report));
            live.note("  1  vusers=1   as in the table");
        }
    }
    live
}

fn flows() -> LiveState {
    let mut live = LiveState::new("latency", "192.0.2.7:7171");
    live.note("19 scenarios, about 5 min");
    live.trial_begins(trial("1 up, 31 down", LiveKind::Flows));
    for i in 0..12 {
        let (interval, bands) = half_second(i);
        let carried = Interval {
            up_bytes: Some(1_200_000 + 20_000 * i),
            down_bytes: Some(5_900_000 - 90_000 * i),
            ..interval
        };
        live.interval(carried, bands);
    }
    live
}

#[test]
fn agents_that_need_a_look_come_first() {
    let mut live = LiveState::new("run", "http://127.0.0.1:8080/");
    live.trial_begins(trial("", LiveKind::Operations));
    let agent = |number: u64| AgentInterval {
        agent: format!("loader-{number}"),
        is_silent: number == 4,
        completed: 100 + number,
        errors: if number == 7 { 3 } else { 0 },
        p99_ns: Some(1_000_000 + number * 250_000),
    };
    for i in 0..3 {
        let (interval, bands) = half_second(i);
        let agents = (1..=9).map(agent).collect();
        live.interval(Interval { agents, ..interval }, bands);
    }
    insta::assert_snapshot!(shown(screen(&live), (80, 28)));
    // Where one process makes the load there is no such table.
    let (interval, bands) = half_second(3);
    live.interval(interval, bands);
    assert!(!shown(screen(&live), (80, 28)).contains("loader-1"));
}

#[test]
fn an_open_loop() {
    let live = open_loop();
    for size in [(80, 24), (120, 40), (60, 20)] {
        let name = format!("live_run_{}x{}", size.0, size.1);
        insta::assert_snapshot!(name, shown(screen(&live), size));
    }
    let ascii = LiveScreen {
        style: TerminalStyle { color: false, unicode: false },
        pane: LatencyView::Percentiles,
        ..screen(&live)
    };
    let text = shown(ascii, (80, 24));
    assert!(text.is_ascii());
    insta::assert_snapshot!("live_run_ascii", text);
}

#[test]
fn a_sweep_flows_datagrams_and_rows() {
    insta::assert_snapshot!("live_sweep", shown(screen(&sweep()), (80, 30)));
    insta::assert_snapshot!("live_flows", shown(screen(&flows()), (80, 24)));
    let mut datagrams = LiveState::new("udp", "127.0.0.1:7000");
    datagrams.trial_begins(LiveTrial {
        total: None,
        ..trial("3 of 9  exp(200us)*128", LiveKind::Datagrams)
    });
    for i in 0..9 {
        let sent =
            Interval { sent: Some(5_000 - 100 * i), p50_ns: 0, max_ns: 0, ..half_second(i).0 };
        datagrams.interval(sent, Vec::new());
    }
    insta::assert_snapshot!("live_datagrams", shown(screen(&datagrams), (80, 20)));
    let mut rows = LiveState::new("throttle", "");
    let row = LiveKind::Row {
        number: 5,
        of: 130,
        before: Nanos::from_secs(20),
        all: Nanos::from_secs(65),
    };
    rows.trial_begins(trial("hybrid 50 µs", row));
    rows.note("hold: 1,000/s for 5 s");
    insta::assert_snapshot!("live_rows", shown(screen(&rows), (80, 12)));
}

#[test]
fn before_anything_is_known_and_at_the_end() {
    let live = LiveState::new("run", "http://127.0.0.1:8080/");
    insta::assert_snapshot!("live_nothing", shown(screen(&live), (60, 16)));
    let live = open_loop();
    let help = LiveScreen { help: true, stopping: true, ..screen(&live) };
    insta::assert_snapshot!("live_help", shown(help, (80, 24)));
}

#[test]
fn a_trial_that_warms_up_has_no_figures_of_the_one_before() {
    let is_empty =
        |live: &LiveState| shown(screen(live), (80, 24)).contains("nothing measured yet");
    let mut live = open_loop();
    assert!(!is_empty(&live));
    live.trial_begins(trial("rate=2000/s", LiveKind::Operations));
    assert!(is_empty(&live));
    let (interval, bands) = half_second(0);
    live.interval(interval, bands);
    assert!(!is_empty(&live));
}

#[test]
fn any_size_and_any_text_will_do() {
    let mut long = open_loop();
    long.note(&"words ".repeat(100));
    long.note("\u{1b}[31mnot a colour\u{7}");
    for live in [LiveState::default(), long, sweep(), flows()] {
        for width in [0, 1, 3, 4, 10, 25, 59, 99, 101, 300] {
            for height in [0, 1, 2, 3, 5, 8, 13, 60] {
                for help in [false, true] {
                    let screen = LiveScreen { help, ..screen(&live) };
                    let area = ratatui::layout::Rect::new(0, 0, width, height);
                    let mut buffer = ratatui::buffer::Buffer::empty(area);
                    ratatui::widgets::Widget::render(screen, area, &mut buffer);
                    let cells = buffer.content().iter();
                    assert!(cells.flat_map(|c| c.symbol().chars()).all(|c| !c.is_control()));
                }
            }
        }
    }
}

#[test]
fn without_colour_there_is_none() {
    let live = open_loop();
    for (color, expected) in [(true, true), (false, false)] {
        let screen = LiveScreen { style: TerminalStyle { color, unicode: true }, ..screen(&live) };
        let area = ratatui::layout::Rect::new(0, 0, 80, 24);
        let mut buffer = ratatui::buffer::Buffer::empty(area);
        ratatui::widgets::Widget::render(screen, area, &mut buffer);
        let colored = buffer.content().iter().any(|c| c.fg != Color::Reset);
        assert_eq!(colored, expected);
    }
}

#[test]
fn the_same_finding_at_several_trials_is_one_line() {
    let mut live = LiveState::new("sweep", "");
    let mut report = fixtures::run_errors().trials[0].clone();
    for label in ["vusers=1", "vusers=2", "vusers=3"] {
        live.trial_begins(trial(label, LiveKind::Operations));
        report.label = label.to_string();
        live.trial_ends(Some(&report));
    }
    let errors: Vec<&LogEntry> = live.entries.iter().filter(|e| e.code == "errors").collect();
    assert_eq!(errors.len(), 1, "{:?}", live.entries);
    assert_eq!(errors[0].also, ["vusers=2", "vusers=3"]);
}
