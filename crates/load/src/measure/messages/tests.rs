use super::*;
use crate::measure::{Op, Outcome};

const MS: fn(u64) -> Nanos = Nanos::from_millis;

/// A message with output of a stream whose API is not known.
const MESSAGE: StreamMessage = StreamMessage {
    stream: 0,
    request: 0,
    intended: Nanos(200_000_000),
    at: Nanos(200_000_000),
    units: Some(1),
    tokens: 0,
    api: StreamApi::None,
    is_output: true,
    is_cut: false,
};

fn recorder(slo: Option<&str>) -> MessageRecorder {
    let window = Window { start: MS(100), end: MS(10_000) };
    MessageRecorder::new(window, slo.map(|text| StreamBounds::parse(text).unwrap()), vec![true])
}

/// Records a stream with messages at these times, in milliseconds, that ends with the last.
fn stream(recorder: &mut MessageRecorder, op: u32, intended: u64, at: &[u64], outcome: Outcome) {
    for &ms in at {
        let (stream, intended) = (op, MS(intended));
        let message = StreamMessage { stream, intended, at: MS(ms), ..MESSAGE };
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
        let message =
            StreamMessage { stream: 7, intended: MS(0), at: MS(ms), units: Some(2), ..MESSAGE };
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
        let message = StreamMessage { at: MS(ms), units: None, ..MESSAGE };
        assert_eq!(recorder.on_message(&message), Some((1, 0)));
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
        recorder.on_message(&StreamMessage { at: MS(at), is_cut, ..MESSAGE });
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

/// What was measured of one stream of OpenAI, intended at 200 ms: of each message when it came,
/// whether it has output, and the tokens so far.
fn of_api(slo: Option<&str>, messages: &[(u64, bool, u32)], outcome: Outcome) -> MessagesMeasured {
    let mut recorder = recorder(slo);
    for &(at, is_output, tokens) in messages {
        let api = StreamApi::Openai;
        recorder.on_message(&StreamMessage { at: MS(at), is_output, tokens, api, ..MESSAGE });
    }
    let end = MS(messages.last().map_or(200, |(at, ..)| *at));
    let op = Op { intended: MS(200), lane: 0 };
    let completion = Completion { stream: 0, ..Completion::at_once(op, end, outcome) };
    recorder.count(&completion);
    recorder.on_end(&completion);
    recorder.finish().unwrap()
}

fn is_about(histogram: &Histogram, ms: f64) -> bool {
    histogram.count() == 1 && (histogram.max().0 as f64 / (ms * 1e6) - 1.0).abs() < 0.01
}

#[test]
fn times_are_of_messages_with_output() {
    // A role at once, the text after 300 ms.
    let role = [(202, false, 0), (500, true, 0), (510, true, 0), (511, false, 0)];
    let told = of_api(None, &role, Outcome::Ok);
    assert!(is_about(&told.first_message, 300.0), "{:?}", told.first_message.max());
    assert!(is_about(&told.gap, 10.0) && is_about(&told.longest_gap, 10.0));
    assert_eq!((told.count, told.others, told.per_token.count()), (2, 2, 0));
    assert_eq!(told.apis, BTreeMap::from([(StreamApi::Openai, 1)]));
    // The number of tokens comes 200 ms after the last of them.
    let usage = [(210, true, 0), (225, true, 0), (240, true, 0), (440, false, 3)];
    let told = of_api(None, &usage, Outcome::Ok);
    assert!(is_about(&told.stream, 40.0) && is_about(&told.per_token, 15.0));
    assert_eq!(told.gap.count(), 2);
}

#[test]
fn times_per_token_go_by_the_running_number_of_tokens() {
    for (messages, per_token) in [
        // Four tokens with the first message, eight after it.
        (&[(300, true, 4), (340, true, 8), (380, true, 12)][..], Some(10.0)),
        // Only the sum is known: the first message counts as one.
        (&[(300, true, 0), (340, true, 0), (380, true, 0), (381, false, 9)], Some(10.0)),
        // Nothing was waited for.
        (&[(300, true, 4)], None),
        (&[(300, true, 4), (310, true, 4)], None),
        // No number: per message alone.
        (&[(300, true, 0), (310, true, 0)], None),
    ] {
        let told = of_api(None, messages, Outcome::Ok);
        match per_token {
            Some(ms) => assert!(is_about(&told.per_token, ms), "{messages:?}"),
            None => assert_eq!(told.per_token.count(), 0, "{messages:?}"),
        }
    }
}

#[test]
fn bounds_per_token_hold_per_message_without_a_number() {
    let is_good = |messages: &[(u64, bool, u32)], outcome| {
        of_api(Some("per_token<15ms"), messages, outcome).good == 1
    };
    assert!(is_good(&[(300, true, 4), (340, true, 8)], Outcome::Ok));
    assert!(!is_good(&[(300, true, 0), (340, true, 0)], Outcome::Ok));
    assert!(is_good(&[(300, true, 0), (310, true, 0)], Outcome::Ok));
    assert!(!is_good(&[(300, true, 0), (310, true, 0)], Outcome::StreamError));
    assert!(!is_good(&[(300, false, 0)], Outcome::Ok), "it has no output");
}
