//! No packet is read beyond its end, and what is read is what its header says.

use knee_engine::observe::segment::{SegmentKind, parse};

/// Any bytes, from the network header on.
pub fn check(data: &[u8]) {
    let Some(segment) = parse(data) else {
        return;
    };
    assert!(data.len() >= 34, "two headers have at least so many bytes");
    let header = match data[0] >> 4 {
        4 => usize::from(data[0] & 0xf) * 4,
        6 => 40,
        version => panic!("version {version}"),
    };
    let tcp = &data[header..];
    let flags = tcp[13];
    assert_eq!(segment.kind == SegmentKind::Syn, flags & 0x17 == 0x02, "{flags:#x}");
    assert_eq!(segment.to_port.to_be_bytes(), tcp[2..4]);
    assert_eq!(segment.sequence.to_be_bytes(), tcp[4..8]);
    // Bytes behind what was read change nothing, and without the last that was read there is none.
    let read = header + 14;
    assert_eq!(parse(&data[..read]), Some(segment));
    assert_eq!(parse(&data[..read - 1]), None);
}
