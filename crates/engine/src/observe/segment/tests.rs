use super::*;
use crate::sys::packet::BpfInstruction;
use proptest::prelude::*;

/// A SYN over loopback as it was captured: 127.0.0.1:47414 to 127.0.0.1:8080.
pub(crate) const SYN_V4: [u8; 60] = [
    0x45, 0x00, 0x00, 0x3c, 0x5f, 0x4e, 0x40, 0x00, 0x40, 0x06, 0xdd, 0x6b, 0x7f, 0x00, 0x00, 0x01,
    0x7f, 0x00, 0x00, 0x01, 0xb9, 0x36, 0x1f, 0x90, 0x1d, 0x0c, 0x6b, 0x5e, 0x00, 0x00, 0x00, 0x00,
    0xa0, 0x02, 0xff, 0xd7, 0xfe, 0x30, 0x00, 0x00, 0x02, 0x04, 0xff, 0xd7, 0x04, 0x02, 0x08, 0x0a,
    0x5c, 0x6a, 0x7b, 0x10, 0x00, 0x00, 0x00, 0x00, 0x01, 0x03, 0x03, 0x07,
];

/// The same segment over IPv6, ::1 to ::1.
pub(crate) fn syn_v6() -> Vec<u8> {
    let mut packet = vec![0x60, 0x0b, 0x1a, 0x2b, 0x00, 0x28, 0x06, 0x40];
    packet.extend_from_slice(&Ipv6Addr::LOCALHOST.octets());
    packet.extend_from_slice(&Ipv6Addr::LOCALHOST.octets());
    packet.extend_from_slice(&SYN_V4[20..]);
    packet
}

fn with(packet: &[u8], at: usize, byte: u8) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet[at] = byte;
    packet
}

#[test]
fn a_recorded_syn_is_read() {
    let v4 = parse(&SYN_V4).expect("a SYN");
    let from = "::ffff:127.0.0.1".parse().unwrap();
    let expected = ControlSegment {
        from,
        from_port: 47414,
        to: from,
        to_port: 8080,
        sequence: 0x1d0c_6b5e,
        kind: SegmentKind::Syn,
    };
    assert_eq!(v4, expected);
    let v6 = parse(&syn_v6()).expect("a SYN");
    assert_eq!((v6.from, v6.to), (Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST));
    assert_eq!((v6.sequence, v6.to_port), (expected.sequence, 8080));
}

#[test]
fn flags_decide() {
    let kind = |flags| parse(&with(&SYN_V4, 33, flags)).map(|s| s.kind);
    for (flags, expected) in [
        (0x02, Some(SegmentKind::Syn)),
        // Explicit congestion notification is asked for: still a SYN.
        (0xc2, Some(SegmentKind::Syn)),
        (0x12, None),
        (0x10, None),
        (0x18, None),
        (0x00, None),
        (0x11, Some(SegmentKind::End)),
        (0x01, Some(SegmentKind::End)),
        (0x04, Some(SegmentKind::End)),
        (0x14, Some(SegmentKind::End)),
        (0x03, Some(SegmentKind::End)),
    ] {
        assert_eq!(kind(flags), expected, "{flags:#x}");
    }
}

#[test]
fn what_is_no_segment_is_not_read() {
    for (what, packet) in [
        ("nothing", vec![]),
        ("UDP", with(&SYN_V4, 9, 17)),
        ("a later fragment", with(&SYN_V4, 7, 5)),
        ("a header of 16 bytes", with(&SYN_V4, 0, 0x44)),
        ("a header longer than the packet", with(&SYN_V4[..50], 0, 0x4f)),
        ("version 5", with(&SYN_V4, 0, 0x55)),
        ("an extension header", with(&syn_v6(), 6, 43)),
        ("cut off before the flags", SYN_V4[..33].to_vec()),
        ("cut off before the flags, v6", syn_v6()[..53].to_vec()),
    ] {
        assert_eq!(parse(&packet), None, "{what}");
    }
    // The first fragment has the header, and options move it.
    assert!(parse(&with(&SYN_V4, 6, 0x20)).is_some());
    let mut options = with(&SYN_V4, 0, 0x46);
    options.splice(20..20, [1, 1, 1, 1]);
    assert_eq!(parse(&options).map(|s| s.to_port), Some(8080));
}

/// What the kernel does with the program: how many bytes it keeps. 0: out of bounds, or dropped.
pub(crate) fn run(
    program: &[BpfInstruction],
    packet: &[u8],
    kind: u32,
    protocol: u32,
) -> Option<u32> {
    let (mut a, mut x, mut kept, mut at) = (0_u32, 0_u32, 0_u32, 0);
    loop {
        let BpfInstruction { code, jump_true, jump_false, operand } = *program.get(at)?;
        at += 1;
        let bytes = |from: u32, count: u32| {
            let range = packet.get(from as usize..(from + count) as usize)?;
            Some(range.iter().fold(0, |sum, &b| sum << 8 | u32::from(b)))
        };
        let mut branch = |holds| at += usize::from(if holds { jump_true } else { jump_false });
        match code {
            0x20 if operand == 0xffff_f000 => a = protocol,
            0x20 if operand == 0xffff_f004 => a = kind,
            0x28 => a = bytes(operand, 2)?,
            0x30 => a = bytes(operand, 1)?,
            0x48 => a = bytes(x + operand, 2)?,
            0x50 => a = bytes(x + operand, 1)?,
            0xb1 => x = (bytes(operand, 1)? & 0xf) * 4,
            0x54 => a &= operand,
            0x74 => a >>= operand,
            0x1c => a = a.wrapping_sub(x),
            0x01 => x = operand,
            0x07 => x = a,
            0x02 => kept = a,
            0x60 => a = kept,
            0x15 => branch(a == operand),
            0x45 => branch(a & operand != 0),
            0x05 => at += operand as usize,
            0x06 => return Some(operand),
            _ => panic!("an instruction that the test does not know: {code:#x}"),
        }
    }
}

#[test]
fn the_filter_takes_what_came_in_for_this_host() {
    let kept = |packet: &[u8], kind, protocol| run(&filter(8080), packet, kind, protocol);
    assert_eq!(kept(&SYN_V4, 0, 0x0800), Some(SNAP as u32));
    assert_eq!(kept(&syn_v6(), 0, 0x86dd), Some(SNAP as u32));
    assert_eq!(kept(&SYN_V4, 4, 0x0800), Some(0), "sent, not received");
    assert_eq!(kept(&SYN_V4, 3, 0x0800), Some(0), "for another host");
    assert_eq!(kept(&SYN_V4, 0, 0x0806), Some(0), "another protocol");
    assert_eq!(run(&filter(8081), &SYN_V4, 0, 0x0800), Some(0), "another port");
}

proptest! {
    /// Filter and parser choose the same packets.
    #[test]
    fn kernel_and_parser_agree(
        is_v6 in any::<bool>(),
        changes in prop::collection::vec((0_usize..74, any::<u8>()), 0..6),
        flags in any::<u8>(),
    ) {
        let mut packet = if is_v6 { syn_v6() } else { SYN_V4.to_vec() };
        let (at, protocol) = if is_v6 { (53, 0x86dd) } else { (33, 0x0800) };
        packet[at] = flags;
        for (at, byte) in changes {
            // The version agrees with the protocol, and a header is whole: the kernel sees to it.
            if at > 0 && at < packet.len() {
                packet[at] = byte;
            }
        }
        let kept = run(&filter(8080), &packet, 0, protocol).is_some_and(|n| n > 0);
        prop_assert_eq!(kept, parse(&packet).is_some_and(|s| s.to_port == 8080));
    }

    #[test]
    fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = parse(&bytes);
    }
}
