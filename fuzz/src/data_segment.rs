//! No packet is read beyond its end, what is read is what its headers say, and no order of segments
//! makes a stream go back.

use knee_engine::observe::data::parse;
use knee_load::both_ends::StreamTimesBuilder;

/// Any bytes: a packet from the network header on, and segments of 9 bytes each.
pub fn check(data: &[u8]) {
    check_packet(data);
    check_streams(data);
}

fn check_packet(data: &[u8]) {
    let Some(segment) = parse(data) else {
        return;
    };
    let header = match data[0] >> 4 {
        4 => usize::from(data[0] & 0xf) * 4,
        6 => 40,
        version => panic!("version {version}"),
    };
    let tcp = &data[header..];
    assert_eq!(segment.from_port.to_be_bytes(), tcp[..2]);
    assert_eq!(segment.to_port.to_be_bytes(), tcp[2..4]);
    assert_eq!(segment.sequence.to_be_bytes(), tcp[4..8]);
    assert_eq!(segment.is_syn, tcp[13] & 0x02 != 0);
    assert!(segment.is_syn || segment.length > 0);
    assert!(segment.length <= 0xffff);
    // Bytes behind what was read change nothing, and without the last that was read there is none.
    let read = header + 14;
    assert_eq!(parse(&data[..read]), Some(segment));
    assert_eq!(parse(&data[..read - 1]), None);
}

fn check_streams(data: &[u8]) {
    let (mut came, mut sent) = (StreamTimesBuilder::new(7), StreamTimesBuilder::new(7));
    for (at, segment) in (0..).zip(data.chunks_exact(9)) {
        let number = |from: usize| {
            let bytes = segment[from..from + 4].try_into();
            u32::from_be_bytes(bytes.expect("four bytes"))
        };
        // Most near the begin, so that they meet.
        let sequence = number(0) >> (segment[8] % 32);
        came.pass(sequence, number(4) % 70_000, at);
        sent.send(sequence, number(4) % 70_000, at);
    }
    for stream in [came.finish(), sent.finish()] {
        let marks = stream.marks.windows(2);
        assert!(marks.into_iter().all(|m| m[0].0 < m[1].0 && m[0].1 <= m[1].1));
        assert!(stream.holes.iter().all(|hole| hole.0 < hole.1));
        for &(end, at_ns) in &stream.marks {
            assert_eq!(stream.passed(end), Some(at_ns), "its last byte was seen");
        }
    }
}
