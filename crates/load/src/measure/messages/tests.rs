use super::*;
use crate::measure::{Op, Outcome};

const MS: fn(u64) -> Nanos = Nanos::from_millis;

fn recorder(slo: Option<&str>) -> MessageRecorder {
    let window = Window { start: MS(100), end: MS(10_000) };
    MessageRecorder::new(window, slo.map(|text| StreamBounds::parse(text).unwrap()), vec![true])
}

/// Records a stream with messages at these times, in milliseconds, that ends with the last.
fn stream(recorder: &mut MessageRecorder, op: u32, intended: u64, at: &[u64], outcome: Outcome) {
    for &ms in at {
        let (stream, intended) = (op, MS(intended));
        let message = StreamMessage {
            stream,
            request: 0,
            intended,
            at: MS(ms),
            units: Some(1),
            is_cut: false,
        };
        recorder.on_message(&message);
    }
    let op = Op { intended: MS(intended), lane: 0 };
    let end = MS(at.last().copied().unwrap_or(intended + 500));
    let completion = Completion { stream: 0, ..Completion::at_once(op, end, outcome) };
    let completion = completion.exchanged(op.intended, op.intended);
    recorder.count(&completion);
    recorder.on_end(&completion);
}

#[test]
fn each_figure_is_as_defined() {
    let mut recorder = recorder(None);
    stream(&mut recorder, 0, 200, &[300, 320, 320, 350], Outcome::Ok);
    let told = recorder.finish().unwrap();
    assert_eq!((told.count, told.units, told.streams, told.whole), (4, 4, 1, 1));
    assert_eq!(told.shared, 2, "two messages share a receive timestamp");
    assert_eq!((told.gap.count(), told.gap.min()), (3, Nanos::ZERO));
    let close = |histogram: &Histogram, ns: f64| (histogram.mean_ns() / ns - 1.0).abs() < 0.01;
    assert!(close(&told.first_message, 100e6), "from the intended time");
    assert!(close(&told.per_message, 50e6 / 3.0));
    assert!(close(&told.stream, 150e6));
    assert!(close(&told.longest_gap, 30e6));
    assert!((told.gap.max().0 as f64 / 30e6 - 1.0).abs() < 0.001);
}

#[test]
fn messages_count_on_arrival_and_streams_by_intention() {
    let mut recorder = recorder(None);
    // Before the window; only the last two messages lie in it.
    for ms in [50, 90, 110, 130] {
        let message = StreamMessage {
            stream: 7,
            request: 0,
            intended: MS(0),
            at: MS(ms),
            units: Some(2),
            is_cut: false,
        };
        recorder.on_message(&message);
    }
    let told = recorder.finish().unwrap();
    assert_eq!((told.count, told.units, told.gap.count(), told.streams), (2, 4, 2, 0));
}

#[test]
fn a_stream_without_a_message_in_time_is_not_left_out() {
    let mut recorder = recorder(None);
    stream(&mut recorder, 0, 200, &[], Outcome::Timeout);
    // Not even its connection was there, so that it has no number.
    let op = Op { intended: MS(300), lane: 0 };
    recorder.count(&Completion::at_once(op, MS(900), Outcome::Timeout));
    recorder.count(&Completion::at_once(op, MS(900), Outcome::Refused));
    let told = recorder.finish().unwrap();
    assert_eq!((told.streams, told.first_message.count(), told.whole), (2, 2, 0));
    assert!((told.first_message.max().0 as f64 / 600e6 - 1.0).abs() < 0.01);
}

#[test]
fn a_number_given_to_another_operation_begins_anew() {
    let mut recorder = recorder(None);
    stream(&mut recorder, 0, 200, &[300, 400], Outcome::Ok);
    stream(&mut recorder, 0, 500, &[900], Outcome::Ok);
    let told = recorder.finish().unwrap();
    assert_eq!((told.gap.count(), told.per_message.count(), told.whole), (1, 1, 2));
}

#[test]
fn good_streams_meet_every_bound() {
    let mut recorder = recorder(Some("first_message<150ms, gap_p50<30ms, stream<1s"));
    stream(&mut recorder, 0, 200, &[300, 320, 340, 900], Outcome::Ok);
    stream(&mut recorder, 0, 200, &[400, 420], Outcome::Ok);
    stream(&mut recorder, 0, 200, &[300, 340, 380], Outcome::Ok);
    stream(&mut recorder, 0, 200, &[300, 310, 1_300], Outcome::Ok);
    stream(&mut recorder, 0, 200, &[300, 310], Outcome::Incomplete);
    let told = recorder.finish().unwrap();
    assert_eq!((told.streams, told.whole, told.good), (5, 4, 1));
}

#[test]
fn units_of_a_stream_without_numbers_are_its_messages() {
    let mut recorder = recorder(None);
    for ms in [300, 400] {
        let message = StreamMessage {
            stream: 0,
            request: 0,
            intended: MS(200),
            at: MS(ms),
            units: None,
            is_cut: false,
        };
        assert_eq!(recorder.on_message(&message), Some(0));
    }
    let op = Op { intended: MS(200), lane: 0 };
    let completion = Completion { stream: 0, ..Completion::at_once(op, MS(400), Outcome::Ok) };
    recorder.count(&completion);
    assert_eq!(recorder.on_end(&completion), 2);
    let told = recorder.finish().unwrap();
    assert_eq!((told.units, told.numbers), (2, 0));
}

#[test]
fn bursts_that_begin_in_the_middle_of_a_message_are_counted() {
    let mut recorder = recorder(None);
    let mut send = |at: u64, is_cut: bool| {
        let (stream, intended, units) = (0, MS(200), Some(1));
        let message = StreamMessage { stream, request: 0, intended, at: MS(at), units, is_cut };
        recorder.on_message(&message);
    };
    for (at, is_cut) in [(300, false), (600, true), (900, false)] {
        (0..4).for_each(|number| send(at, is_cut && number == 0));
    }
    // Messages that follow at once are no burst, however many they are.
    (0..4).for_each(|_| send(910, true));
    let told = recorder.finish().unwrap();
    assert_eq!((told.bursts, told.cut_bursts), (3, 1));
}

#[test]
fn recorders_of_workers_merge_exactly() {
    let streams: [&[u64]; 4] = [&[300, 320], &[350, 350, 380], &[700], &[210, 900, 910]];
    let mut all = recorder(Some("gap_max<100ms"));
    let mut parts = [recorder(Some("gap_max<100ms")), recorder(Some("gap_max<100ms"))];
    for (number, at) in streams.iter().enumerate() {
        stream(&mut all, 0, 200, at, Outcome::Ok);
        stream(&mut parts[number % 2], 0, 200, at, Outcome::Ok);
    }
    let [a, b] = parts.map(|part| part.finish().unwrap());
    let mut merged = a;
    merged.merge(b);
    assert_eq!(merged, all.finish().unwrap());
}

/// Records a stream whose messages answer three that leave 10 ms apart.
fn answer_three(at: &[u64]) -> MessagesMeasured {
    let timed = TimedMessages::new(vec![1], 3, MS(10), true);
    let mut recorder = recorder(None).answering([timed.as_ref()].into_iter());
    recorder.on_left(MS(200), MS(201));
    recorder.on_left(MS(50), MS(51));
    stream(&mut recorder, 0, 200, at, Outcome::Ok);
    recorder.finish().unwrap()
}

#[test]
fn answers_count_from_the_message_of_their_number() {
    let told = answer_three(&[203, 215, 227]);
    assert_eq!((told.answer.count(), told.unpaired), (3, 0));
    let is_about = |time: Nanos, ms: f64| (time.0 as f64 / (ms * 1e6) - 1.0).abs() < 0.01;
    assert!(is_about(told.answer.min(), 3.0) && is_about(told.answer.max(), 7.0));
    assert_eq!(told.sent, 1, "in the window");
    assert!(is_about(told.sent_late.max(), 1.0));
    for (at, why) in [
        (&[203, 215][..], "one is missing"),
        (&[203, 215, 227, 230], "one too many"),
        (&[203, 204, 227], "before its message"),
    ] {
        assert_eq!(answer_three(at).unpaired, 1, "{why}");
    }
}
