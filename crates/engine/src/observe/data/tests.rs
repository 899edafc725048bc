use super::super::segment::tests::{SYN_V4, run, syn_v6};
use super::*;
use knee_load::both_ends::is_followed;
use proptest::prelude::*;

/// A segment of 5 bytes from 47414 (0xb936) to 8080.
fn data_v4() -> Vec<u8> {
    let mut packet = SYN_V4.to_vec();
    packet[33] = 0x18;
    packet[3] += 5;
    packet.extend_from_slice(b"bytes");
    packet
}

fn data_v6() -> Vec<u8> {
    let mut packet = syn_v6();
    packet[53] = 0x18;
    packet[5] += 5;
    packet.extend_from_slice(b"bytes");
    packet
}

/// The same the other way.
fn back(packet: &[u8], tcp: usize) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet.swap(tcp, tcp + 2);
    packet.swap(tcp + 1, tcp + 3);
    packet
}

#[test]
fn a_segment_is_read_with_its_length() {
    let syn = parse(&SYN_V4).expect("a SYN");
    assert_eq!((syn.is_syn, syn.length), (true, 0));
    assert_eq!((syn.from_port, syn.to_port), (47414, 8080));
    assert_eq!(syn.sequence, 0x1d0c_6b5e);
    for packet in [data_v4(), data_v6()] {
        let data = parse(&packet).expect("data");
        assert_eq!((data.is_syn, data.length), (false, 5));
        // Only headers are kept of most packets.
        let kept = packet.len() - 5;
        assert_eq!(parse(&packet[..kept]), Some(data));
    }
    let syn_ack = {
        let mut packet = SYN_V4.to_vec();
        packet[33] = 0x12;
        parse(&packet).expect("a SYN with an ACK")
    };
    assert!(syn_ack.is_syn);
}

#[test]
fn what_carries_nothing_or_contradicts_itself_is_not_read() {
    let mut ack = SYN_V4.to_vec();
    ack[33] = 0x10;
    assert_eq!(parse(&ack), None);
    let mut shorter_than_its_headers = data_v4();
    shorter_than_its_headers[3] = 39;
    assert_eq!(parse(&shorter_than_its_headers), None);
    let mut no_header = data_v4();
    no_header[32] = 0x40;
    assert_eq!(parse(&no_header), None);
    assert_eq!(parse(&data_v4()[..33]), None);
    assert_eq!(parse(&[]), None);
}

#[test]
fn the_filter_takes_both_ways_of_followed_clients() {
    let kept = |one_of, packet: &[u8], kind, protocol| {
        run(&filter(8080, one_of), packet, kind, protocol).is_some_and(|n| n > 0)
    };
    let [v4, v6] = [data_v4(), data_v6()];
    for (packet, tcp, protocol) in [(&v4, 20, 0x0800), (&v6, 40, 0x86dd)] {
        let back = back(packet, tcp);
        let both = |kind| [kept(1, packet, kind, protocol), kept(1, &back, kind, protocol)];
        assert_eq!(both(FOR_THIS_HOST), [true, false]);
        assert_eq!(both(OUTGOING), [false, true]);
        assert_eq!(both(3), [false, false], "for another host");
        let mut ack = packet[..packet.len() - 5].to_vec();
        ack[if tcp == 20 { 3 } else { 5 }] -= 5;
        assert!(!kept(1, &ack, FOR_THIS_HOST, protocol), "nothing in it");
    }
    assert!(kept(1, &SYN_V4, FOR_THIS_HOST, 0x0800));
    // 47414 >> 1 is odd, and so is half of it.
    assert!(!is_followed(47414, 2) && !kept(2, &v4, FOR_THIS_HOST, 0x0800));
}

proptest! {
    /// The kernel keeps whatever the parser reads of the clients that are followed.
    #[test]
    fn kernel_and_parser_agree(
        is_v6 in any::<bool>(),
        goes in any::<bool>(),
        one_of in 1_u16..5,
        changes in prop::collection::vec((1_usize..74, any::<u8>()), 0..6),
    ) {
        let (packet, tcp, protocol) =
            if is_v6 { (data_v6(), 40, 0x86dd) } else { (data_v4(), 20, 0x0800) };
        let mut packet = if goes { back(&packet, tcp) } else { packet };
        for (at, byte) in changes {
            if at < packet.len() {
                packet[at] = byte;
            }
        }
        let kind = if goes { OUTGOING } else { FOR_THIS_HOST };
        let kept = run(&filter(8080, one_of), &packet, kind, protocol).is_some_and(|n| n > 0);
        let wanted = parse(&packet).is_some_and(|data| {
            let ports = (data.from_port, data.to_port);
            let (server, client) = if goes { ports } else { (ports.1, ports.0) };
            server == 8080 && is_followed(client, one_of)
        });
        prop_assert!(kept || !wanted);
    }
}
