//! Segments of followed connections, both ways: a filter for the kernel, and a parser. As in
//! [`super::segment`], IPv4 and IPv6 without extension headers.

use super::segment::{
    FOR_THIS_HOST, OUTGOING, PACKET_TYPE, PROTOCOL, SYN, headers, jump, load_byte, load_half,
    load_word, unless_equal,
};
use crate::sys::field;
use crate::sys::packet::{BpfInstruction, SNAP};
use knee_load::both_ends::port_mask;
use std::net::Ipv6Addr;

/// A TCP segment with a SYN or with bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamSegment {
    /// Sender; IPv4 as mapped into IPv6.
    pub from: Ipv6Addr,
    /// Port of that address.
    pub from_port: u16,
    /// Receiver; IPv4 as mapped into IPv6.
    pub to: Ipv6Addr,
    /// Port of that address.
    pub to_port: u16,
    /// The sequence number of the SYN, or of the first byte.
    pub sequence: u32,
    /// Whether it is a SYN, which begins a direction.
    pub is_syn: bool,
    /// Number of bytes, which follow the SYN.
    pub length: u32,
}

/// Parses a packet from its network header on. `None` if it is not such a segment, is cut off
/// before its flags, or is inconsistent.
pub fn parse(packet: &[u8]) -> Option<StreamSegment> {
    let (from, to, tcp) = headers(packet)?;
    let header = packet.len() - tcp.len();
    let segment_length = match packet[0] >> 4 {
        4 => usize::from(u16::from_be_bytes(field(packet, 2)?)).checked_sub(header)?,
        _ => usize::from(u16::from_be_bytes(field(packet, 4)?)),
    };
    let is_syn = *tcp.get(13)? & SYN != 0;
    let tcp_header = usize::from(tcp[12] >> 4) * 4;
    let length = segment_length.checked_sub(tcp_header)?;
    (tcp_header >= 20 && (is_syn || length > 0)).then_some(StreamSegment {
        from,
        from_port: u16::from_be_bytes(field(tcp, 0)?),
        to,
        to_port: u16::from_be_bytes(field(tcp, 2)?),
        sequence: u32::from_be_bytes(field(tcp, 4)?),
        is_syn,
        length: length as u32,
    })
}

/// The filter for the kernel. It selects packets to `port` of this host and from it, with a SYN or
/// with bytes, whose client's port is one of `one_of`. That number is rounded up to a power of two.
pub fn filter(port: u16, one_of: u16) -> Vec<BpfInstruction> {
    let (port, mask) = (u32::from(port), u32::from(port_mask(one_of)));
    vec![
        load_word(PROTOCOL),
        // 1: on to IPv4, or over it to IPv6.
        jump(0x15, libc::ETH_P_IP as u32, 1, 0),
        jump(0x15, libc::ETH_P_IPV6 as u32, 9, 35),
        // 3: IPv4: TCP, no later fragment; X is the length of the header, M[0] of the rest.
        load_byte(9),
        unless_equal(6, 33),
        load_half(6),
        jump(0x45, 0x1fff, 31, 0),
        jump(0xb1, 0, 0, 0),
        load_half(2),
        jump(0x1c, 0, 0, 0),
        jump(0x02, 0, 0, 0),
        jump(0x05, 5, 0, 0),
        // 12: IPv6: TCP next to the header of 40 bytes.
        load_byte(6),
        unless_equal(6, 24),
        load_half(4),
        jump(0x02, 0, 0, 0),
        jump(0x01, 40, 0, 0),
        // 17: which way.
        load_word(PACKET_TYPE),
        jump(0x15, FOR_THIS_HOST, 1, 0),
        jump(0x15, OUTGOING, 4, 18),
        // 20: it came: to the port, from a client that is followed.
        jump(0x48, 2, 0, 0),
        unless_equal(port, 16),
        jump(0x48, 0, 0, 0),
        jump(0x05, 3, 0, 0),
        // 24: it goes: from the port, to such a client.
        jump(0x48, 0, 0, 0),
        unless_equal(port, 12),
        jump(0x48, 2, 0, 0),
        // 27: the client's port; then a SYN is kept, …
        jump(0x45, mask, 10, 0),
        jump(0x50, 13, 0, 0),
        jump(0x45, SYN.into(), 7, 0),
        // 30: … or bytes: the rest but for TCP's header.
        jump(0x50, 12, 0, 0),
        jump(0x54, 0xf0, 0, 0),
        jump(0x74, 2, 0, 0),
        jump(0x07, 0, 0, 0),
        jump(0x60, 0, 0, 0),
        jump(0x1c, 0, 0, 0),
        jump(0x15, 0, 1, 0),
        jump(0x06, SNAP as u32, 0, 0),
        // 38
        jump(0x06, 0, 0, 0),
    ]
}

#[cfg(test)]
mod tests;
