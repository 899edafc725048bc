//! Segments that open or close connections to a port: a filter for the kernel, and a parser. Both
//! read IPv4 and IPv6 without extension headers, and ignore fragments other than the first.

use crate::sys::field;
use crate::sys::packet::{BpfInstruction, SNAP};
use std::net::{Ipv4Addr, Ipv6Addr};

/// What a client's segment does to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// SYN without ACK, FIN and RST: it asks for a connection.
    Syn,
    /// FIN or RST: it ends a connection.
    End,
}

/// A TCP segment with SYN (and no ACK), FIN or RST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlSegment {
    /// Sender; IPv4 as mapped into IPv6.
    pub from: Ipv6Addr,
    /// Port of that address.
    pub from_port: u16,
    /// Receiver; IPv4 as mapped into IPv6.
    pub to: Ipv6Addr,
    /// Port of that address.
    pub to_port: u16,
    /// The sequence number; of a SYN the initial one, which each attempt draws anew.
    pub sequence: u32,
    /// What it does to the connection.
    pub kind: SegmentKind,
}

/// Flags of the TCP header (RFC 9293, 3.1).
const FIN: u8 = 0x01;
pub(super) const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

const TCP: u8 = 6;

/// Offsets of words that the kernel adds to a packet: its protocol and its type.
pub(super) const PROTOCOL: u32 = 0xffff_f000;
pub(super) const PACKET_TYPE: u32 = PROTOCOL + 4;

/// Packet types of the kernel: received for this host, and sent by it.
pub(super) const FOR_THIS_HOST: u32 = 0;
/// See [`FOR_THIS_HOST`].
pub(super) const OUTGOING: u32 = 4;

/// Parses a packet from its network header on. `None` if it is not such a segment, is cut off
/// before its flags, or is inconsistent.
pub fn parse(packet: &[u8]) -> Option<ControlSegment> {
    let (from, to, tcp) = headers(packet)?;
    let flags = *tcp.get(13)?;
    let kind = match flags & (FIN | SYN | RST | ACK) {
        SYN => SegmentKind::Syn,
        f if f & (FIN | RST) != 0 => SegmentKind::End,
        _ => return None,
    };
    Some(ControlSegment {
        from,
        from_port: u16::from_be_bytes(field(tcp, 0)?),
        to,
        to_port: u16::from_be_bytes(field(tcp, 2)?),
        sequence: u32::from_be_bytes(field(tcp, 4)?),
        kind,
    })
}

/// Sender, receiver and TCP part of a packet; `None` if it has no TCP part.
pub(super) fn headers(packet: &[u8]) -> Option<(Ipv6Addr, Ipv6Addr, &[u8])> {
    match packet.first()? >> 4 {
        4 => ipv4(packet),
        6 => ipv6(packet),
        _ => None,
    }
}

fn ipv4(packet: &[u8]) -> Option<(Ipv6Addr, Ipv6Addr, &[u8])> {
    let header = usize::from(packet[0] & 0x0f) * 4;
    let is_later_fragment = u16::from_be_bytes(field(packet, 6)?) & 0x1fff != 0;
    if header < 20 || *packet.get(9)? != TCP || is_later_fragment {
        return None;
    }
    let address = |at| Some(Ipv4Addr::from(field::<4>(packet, at)?).to_ipv6_mapped());
    Some((address(12)?, address(16)?, packet.get(header..)?))
}

fn ipv6(packet: &[u8]) -> Option<(Ipv6Addr, Ipv6Addr, &[u8])> {
    if *packet.get(6)? != TCP {
        return None;
    }
    let address = |at| Some(Ipv6Addr::from(field::<16>(packet, at)?));
    Some((address(8)?, address(24)?, packet.get(40..)?))
}

/// The filter for the kernel: such segments to `port` in packets that this host received. Packets
/// that it sent are left out, so that loopback counts each once. Keeps [`SNAP`] bytes of each.
///
/// Classic BPF over a packet from its network header on (Documentation/networking/filter.rst in the
/// kernel's source).
pub fn filter(port: u16) -> Vec<BpfInstruction> {
    let (port, flags) = (u32::from(port), u32::from(FIN | SYN | RST | ACK));
    let ends = u32::from(FIN | RST);
    vec![
        load_word(PACKET_TYPE),
        unless_equal(FOR_THIS_HOST, 22),
        load_word(PROTOCOL),
        // 3: on to IPv4, or over it to IPv6.
        jump(0x15, libc::ETH_P_IP as u32, 1, 0),
        jump(0x15, libc::ETH_P_IPV6 as u32, 9, 19),
        // 5: IPv4: TCP, no later fragment; X is the length of the header.
        load_byte(9),
        unless_equal(TCP.into(), 17),
        load_half(6),
        jump(0x45, 0x1fff, 15, 0),
        jump(0xb1, 0, 0, 0),
        jump(0x48, 2, 0, 0),
        unless_equal(port, 12),
        jump(0x50, 13, 0, 0),
        // 13: over IPv6.
        jump(0x05, 5, 0, 0),
        // 14: IPv6: TCP next to the header of 40 bytes.
        load_byte(6),
        unless_equal(TCP.into(), 8),
        load_half(42),
        unless_equal(port, 6),
        load_byte(53),
        // 19: the flags: SYN alone, or FIN or RST.
        jump(0x54, flags, 0, 0),
        jump(0x15, SYN.into(), 2, 0),
        jump(0x45, ends, 1, 0),
        // 22: not wanted: over the next.
        jump(0x05, 1, 0, 0),
        jump(0x06, SNAP as u32, 0, 0),
        jump(0x06, 0, 0, 0),
    ]
}

pub(super) fn load_word(at: u32) -> BpfInstruction {
    jump(0x20, at, 0, 0)
}

pub(super) fn load_half(at: u32) -> BpfInstruction {
    jump(0x28, at, 0, 0)
}

pub(super) fn load_byte(at: u32) -> BpfInstruction {
    jump(0x30, at, 0, 0)
}

/// Skips `skip` instructions unless what was loaded is `value`.
pub(super) fn unless_equal(value: u32, skip: u8) -> BpfInstruction {
    jump(0x15, value, 0, skip)
}

pub(super) fn jump(code: u16, operand: u32, jump_true: u8, jump_false: u8) -> BpfInstruction {
    BpfInstruction { code, jump_true, jump_false, operand }
}

#[cfg(test)]
pub(super) mod tests;
