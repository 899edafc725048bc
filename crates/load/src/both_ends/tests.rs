use super::*;
use crate::measure::{Split, Window};
use proptest::prelude::*;

/// A direction that begins after the sequence number 1,000.
fn built(segments: &[(u32, u32, u64)]) -> StreamTimes {
    let mut builder = StreamTimesBuilder::new(999);
    for &(from, length, at) in segments {
        builder.pass(1_000_u32.wrapping_add(from), length, at);
    }
    builder.finish()
}

#[test]
fn bytes_have_passed_with_all_before_them() {
    let stream = built(&[(0, 100, 5), (200, 50, 6), (100, 100, 9), (250, 10, 11)]);
    assert_eq!(stream.marks, [(100, 5), (250, 9), (260, 11)]);
    let at = [0, 1, 100, 101, 250, 251, 260, 261].map(|n| stream.passed(n));
    let expected = [5, 5, 9, 9, 11, 11].map(Some);
    assert_eq!(at[0], None);
    assert_eq!(at[1..7], expected);
    assert_eq!(at[7], None);
    assert_eq!((stream.resent, stream.holes.len()), (0, 0));
}

#[test]
fn what_is_sent_again_counts_once_and_where_it_came_first() {
    let stream = built(&[(0, 100, 5), (0, 100, 8), (50, 100, 9), (0, 0, 10)]);
    assert_eq!(stream.marks, [(100, 5), (150, 9)]);
    assert_eq!(stream.resent, 2);
}

#[test]
fn sequence_numbers_wrap() {
    let mut builder = StreamTimesBuilder::new(u32::MAX - 10);
    let (mut sequence, mut at) = (u32::MAX - 9, 0);
    // Three times around.
    for _ in 0..13 {
        at += 1;
        builder.pass(sequence, 1 << 30, at);
        sequence = sequence.wrapping_add(1 << 30);
    }
    let stream = builder.finish();
    assert_eq!(stream.passed(13 << 30), Some(13));
    assert_eq!(stream.passed((5 << 30) + 1), Some(6));
    // One of an earlier connection.
    let mut builder = StreamTimesBuilder::new(5);
    builder.pass(1, 3, 9);
    assert_eq!(builder.finish(), StreamTimes::default());
}

#[test]
fn what_the_capture_lost_is_a_hole() {
    let mut sent = StreamTimesBuilder::new(999);
    sent.send(1_000, 100, 5);
    sent.send(1_300, 100, 6);
    sent.send(1_400, 100, 7);
    let sent = sent.finish();
    assert_eq!(sent.holes, [(100, 300)]);
    let at = [100, 101, 300, 301, 500].map(|n| sent.passed(n));
    assert_eq!(at, [Some(5), None, None, Some(6), Some(7)]);

    // What came in may be late instead, until there is too much of it.
    let pieces = |count: u32| -> StreamTimes {
        let all: Vec<_> = (1..=count).map(|n| (n * 20, 10, n.into())).collect();
        built(&all)
    };
    assert_eq!(pieces(64).holes, []);
    let lost = pieces(65);
    assert_eq!(lost.holes, [(0, 20)]);
    assert_eq!(lost.passed(25), Some(65), "no earlier than it was known");
}

/// A connection from port 40,000 with a request of 50 bytes and a response of 1,000 in two
/// segments, 20 ms apart.
fn connection() -> ObservedConnection {
    let mut responses = StreamTimesBuilder::new(7);
    responses.send(8, 200, 1_300_000);
    responses.send(208, 800, 21_300_000);
    ObservedConnection {
        port: 40_000,
        requests: built(&[(0, 50, 1_000_000)]),
        responses: responses.finish(),
    }
}

const SAMPLE: Sample = Sample {
    port: 40_000,
    use_of_port: 0,
    request_end: 50,
    response_begin: 0,
    response_end: 1_000,
    intended: Nanos(400),
    written: Nanos(500),
    first_byte: Nanos(500 + 450_000),
    last_byte: Nanos(500 + 20_500_000),
};

/// Samples from a port that was used so often.
fn sampled(samples: &[Sample], uses: u32) -> Sampled {
    Sampled { uses: BTreeMap::from([(SAMPLE.port, uses)]), samples: samples.to_vec(), left_out: 0 }
}

fn seen(connections: &[ObservedConnection]) -> ObservedStreams {
    ObservedStreams { connections: connections.to_vec(), ..ObservedStreams::default() }
}

#[test]
fn the_hosts_time_is_of_its_clock_and_the_rest_is_the_networks() {
    let joined = join(&seen(&[connection()]), &sampled(&[SAMPLE], 1));
    let parts = TimeParts {
        host_first: Nanos(300_000),
        network_first: Nanos(150_000),
        host: Nanos(20_300_000),
        network: Nanos(200_000),
    };
    assert_eq!(joined.parts, [Some(parts)]);
    assert_eq!((joined.unseen, joined.incomplete), (0, 0));
}

#[test]
fn what_cannot_be_told_is_counted() {
    let other_port = Sample { port: 1, ..SAMPLE };
    let never_came = Sample { request_end: 51, ..SAMPLE };
    let not_whole = Sample { response_end: 1_001, ..SAMPLE };
    let samples = [other_port, never_came, not_whole, SAMPLE];
    let joined = join(&seen(&[connection()]), &sampled(&samples, 1));
    assert_eq!((joined.unseen, joined.incomplete), (1, 2));
    let told: Vec<bool> = joined.parts.iter().map(Option::is_some).collect();
    assert_eq!(told, [false, false, false, true]);
}

#[test]
fn reused_port_is_told_apart_by_order_or_not_at_all() {
    let mut later = connection();
    later.responses.marks[0].1 += 100_000;
    let both = seen(&[connection(), later]);
    let second = Sample { use_of_port: 1, ..SAMPLE };
    let joined = join(&both, &sampled(&[SAMPLE, second], 2));
    let host: Vec<u64> = joined.parts.iter().flatten().map(|p| p.host_first.0).collect();
    assert_eq!(host, [300_000, 400_000]);
    let one_missed = join(&seen(&[connection()]), &sampled(&[SAMPLE, second], 2));
    assert_eq!(one_missed.unseen, 2);
}

#[test]
fn the_parts_add_up_whatever_the_clocks_say() {
    let hasty = Sample { first_byte: Nanos(500 + 100_000), ..SAMPLE };
    let joined = join(&seen(&[connection()]), &sampled(&[hasty], 1));
    let parts = joined.parts[0].expect("it was seen");
    assert_eq!(parts.host_first, Nanos(100_000), "no more than there was");
    assert_eq!(parts.network_first, Nanos::ZERO);
}

#[test]
fn a_share_of_the_ports_is_followed_whatever_their_parity() {
    for one_of in [1_u16, 2, 16, 1024] {
        for parity in [0, 1] {
            let ports = (32_768..61_000_u16).filter(|port| port % 2 == parity);
            let followed = ports.filter(|&port| is_followed(port, one_of)).count();
            let expected = 14_116 / usize::from(one_of);
            assert!(followed.abs_diff(expected) <= 1, "{one_of}: {followed}");
        }
    }
    assert!(is_followed(40_000, 0));
    assert!(is_followed(32_768, u16::MAX));
}

#[test]
fn the_report_is_of_the_window_and_says_what_is_missing() {
    let window = |start, end| Window { start: Nanos(start), end: Nanos(end) };
    let never_came = Sample { request_end: 51, ..SAMPLE };
    let (seen, sampled) = (seen(&[connection()]), sampled(&[SAMPLE, never_came], 1));
    let (times, split, _) = host_times(&seen, &sampled, window(0, 30_000_000));
    assert_eq!((times.operations, times.unseen, times.incomplete), (1, 0, 1));
    assert_eq!(times.because, None);
    let percent = times.host_percent.expect("one operation");
    assert!((percent - 20.3 / 20.5 * 100.0).abs() < 1e-6, "{percent}");
    let mean = times.host_ns.mean.expect("one operation");
    assert!(mean.abs_diff(20_300_000) < 20_000, "{mean}");
    assert_eq!(times.host_ns.p99, None, "of one");

    let (later, unsplit, _) = host_times(&seen, &sampled, window(1_000, 30_000_000));
    assert_eq!((later.operations, later.host_percent), (0, None));
    assert!(later.because.is_some());
    let mut expected = Split::default();
    expected.add(Nanos(20_500_100), Nanos(20_300_000), Nanos(200_000));
    assert_eq!((split, unsplit), (expected, Split::default()));
}

proptest! {
    /// However segments are cut, repeated and shuffled, each byte has passed when the last of those
    /// before it came for the first time.
    #[test]
    fn any_order_of_segments(
        segments in prop::collection::vec((0_u32..40, 1_u32..12), 0..60),
        first in any::<u32>(),
    ) {
        let mut builder = StreamTimesBuilder::new(first.wrapping_sub(1));
        let mut came = [u64::MAX; 64];
        for (at, &(from, length)) in segments.iter().enumerate() {
            builder.pass(first.wrapping_add(from), length, at as u64);
            for byte in &mut came[from as usize..(from + length) as usize] {
                *byte = (*byte).min(at as u64);
            }
        }
        let stream = builder.finish();
        let mut latest = 0;
        for (n, at) in came.iter().enumerate() {
            latest = latest.max(*at);
            let expected = (latest < u64::MAX).then_some(latest);
            prop_assert_eq!(stream.passed(n as u64 + 1), expected, "byte {}", n);
        }
    }
}

/// What comes once the queue of early pieces is full, and leaves no gap, was not missing.
#[test]
fn piece_without_gap_makes_no_hole_in_a_full_queue() {
    let mut builder = StreamTimesBuilder::new(9);
    for piece in 0..64 {
        builder.pass(10 + 100 + 20 * piece, 10, 1);
    }
    builder.pass(10, 10, 2);
    let stream = builder.finish();
    assert_eq!((stream.holes, stream.marks), (vec![], vec![(10, 2)]));
}
