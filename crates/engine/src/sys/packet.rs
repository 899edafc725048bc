//! A tap on all network interfaces (packet(7)): packets from the network header on, filtered in the
//! kernel, each with the time of its arrival.

use super::timestamps::set_timestamps;
use super::{check, get_option, set_option};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};

/// The most bytes of a packet that are kept: headers of IP and TCP without the payload.
pub const SNAP: usize = 96;

/// Packets taken by one call.
const BATCH: usize = 128;

/// Of packet(7); the libc crate does not name them for every Linux.
const PACKET_STATISTICS: libc::c_int = 6;
const PACKET_OUTGOING: u8 = 4;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

/// One instruction of a classic BPF program, as the kernel reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct BpfInstruction {
    /// What to do.
    pub code: u16,
    /// Instructions to skip if the test is true.
    pub jump_true: u8,
    /// Instructions to skip if it is false.
    pub jump_false: u8,
    /// The operand.
    pub operand: u32,
}

/// A packet as it came.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Its first bytes, from the network header on.
    pub bytes: &'a [u8],
    /// Receive time by [`super::clock::realtime_ns`], if the kernel gave one.
    pub realtime_ns: Option<u64>,
    /// The index of the interface over which it came.
    pub interface: i32,
    /// This host sends it.
    pub is_outgoing: bool,
}

/// The tap; closed when dropped.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
    /// What [`PacketSocket::buffer`] says.
    buffer: usize,
}

impl PacketSocket {
    /// Taps all interfaces of this network namespace, for packets that `filter` accepts. These are
    /// packets that came in, and with `outgoing` also those that go out. The kernel keeps up to
    /// `buffer` bytes of packets that were not read yet, if permitted. Each counts with
    /// the kernel's own overhead, about 800 bytes.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_NET_RAW; no such family of sockets; a filter that is none.
    pub fn open(
        filter: &[BpfInstruction],
        buffer: usize,
        outgoing: bool,
    ) -> io::Result<PacketSocket> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // With protocol 0 nothing arrives until it is bound: no packet passes by the filter.
        let fd = socket_with(AddressFamily::PACKET, SocketType::DGRAM, flags, None)?;
        attach(&fd, filter)?;
        let buffer = buffer.min(i32::MAX as usize);
        // Beyond the host's limit only with CAP_NET_ADMIN, else as far as it goes.
        if sockopt::set_socket_recv_buffer_size_force(&fd, buffer).is_err() {
            sockopt::set_socket_recv_buffer_size(&fd, buffer)?;
        }
        let buffer = sockopt::socket_recv_buffer_size(&fd)?;
        set_timestamps(&fd)?;
        // Spares the filter what was sent; before Linux 4.20 the filter alone keeps it away.
        let ignores = libc::c_int::from(!outgoing);
        let _ = set_option(&fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &ignores);
        bind_to_all(&fd)?;
        Ok(PacketSocket { fd, buffer })
    }

    /// How many bytes of unread packets the kernel keeps; without CAP_NET_ADMIN it may be far
    /// fewer than asked for (net.core.rmem_max).
    pub fn buffer(&self) -> usize {
        self.buffer
    }

    /// Takes what has come, up to a batch; how many packets. 0: nothing is there.
    ///
    /// # Errors
    /// `NetworkDown` once where an interface went down.
    pub fn receive(&self, batch: &mut PacketBatch) -> io::Result<usize> {
        match batch.receive(&self.fd, BATCH) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(0),
            received => received,
        }
    }

    /// Packets that passed the filter and were lost since the last call, as the buffer was full.
    ///
    /// # Errors
    /// None in correct use.
    pub fn take_lost(&self) -> io::Result<u64> {
        // struct tpacket_stats: packets, of them dropped.
        let mut counts = [0_u32; 2];
        get_option(&self.fd, libc::SOL_PACKET, PACKET_STATISTICS, &mut counts)?;
        Ok(counts[1].into())
    }
}

fn attach(socket: &OwnedFd, filter: &[BpfInstruction]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: filter.len() as libc::c_ushort,
        // The kernel copies from it; it has the layout of sock_filter.
        filter: filter.as_ptr().cast_mut().cast(),
    };
    set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

fn bind_to_all(socket: &OwnedFd) -> io::Result<()> {
    // SAFETY: a struct of integers, for which all zeroes are valid; index 0 is all interfaces.
    let mut address: libc::sockaddr_ll = unsafe { MaybeUninit::zeroed().assume_init() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    let length = size_of_val(&address) as libc::socklen_t;
    let pointer = (&raw const address).cast();
    // SAFETY: the address is whole and outlives the call.
    check(unsafe { libc::bind(socket.as_raw_fd(), pointer, length) }).map(drop)
}

/// Buffers for the packets of one receive call.
pub type PacketBatch = super::datagrams::ReceiveBatch<libc::sockaddr_ll>;

impl PacketBatch {
    /// Room for the beginnings of packets.
    pub fn for_packets() -> PacketBatch {
        PacketBatch::new(BATCH, SNAP)
    }

    /// Packets of the last [`PacketSocket::receive`].
    pub fn packets(&self) -> impl Iterator<Item = Packet<'_>> {
        self.received().enumerate().map(|(index, (bytes, realtime_ns))| {
            let (from, _) = self.address(index);
            Packet {
                bytes,
                realtime_ns,
                interface: from.sll_ifindex,
                is_outgoing: from.sll_pkttype == PACKET_OUTGOING,
            }
        })
    }
}
