//! A tap on all network interfaces (packet(7)): packets from the network header on, filtered in the
//! kernel, with the moment at which each came.

use super::{check, check_count, stamp};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

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
pub struct Instruction {
    /// What to do.
    pub code: u16,
    /// How many instructions to skip where a test holds.
    pub jump_true: u8,
    /// How many to skip where it does not.
    pub jump_false: u8,
    /// The operand.
    pub operand: u32,
}

/// A packet as it came.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Its first bytes, from the network header on.
    pub bytes: &'a [u8],
    /// When it came, by [`super::clock::realtime_ns`]; `None` where the kernel did not say.
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
    /// Taps all interfaces of this network namespace, for packets that `filter` accepts: those that
    /// came in, and where `outgoing` is wanted those that go out as well. The kernel keeps up to
    /// `buffer` bytes of packets that were not read yet (where that is permitted; each counts with
    /// the kernel's own overhead, about 800 bytes).
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_NET_RAW; no such family of sockets; a filter that is none.
    pub fn open(filter: &[Instruction], buffer: usize, outgoing: bool) -> io::Result<PacketSocket> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // With protocol 0 nothing arrives until it is bound: no packet passes by the filter.
        // SAFETY: no pointers.
        let fd = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
        // SAFETY: the kernel has just given us this descriptor; nobody else has it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let mut socket = PacketSocket { fd, buffer: 0 };
        socket.attach(filter)?;
        let buffer = libc::c_int::try_from(buffer).unwrap_or(libc::c_int::MAX);
        // Beyond the host's limit only with CAP_NET_ADMIN, else as far as it goes.
        if socket
            .set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &buffer)
            .is_err()
        {
            socket.set(libc::SOL_SOCKET, libc::SO_RCVBUF, &buffer)?;
        }
        let mut granted: libc::c_int = 0;
        socket.get(libc::SOL_SOCKET, libc::SO_RCVBUF, &mut granted)?;
        socket.buffer = usize::try_from(granted).unwrap_or(0);
        socket.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1_i32)?;
        // Spares the filter what was sent; before Linux 4.20 the filter alone keeps it away.
        let ignores = libc::c_int::from(!outgoing);
        let _ = socket.set(libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &ignores);
        socket.bind_to_all()?;
        Ok(socket)
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
    pub fn receive(&self, batch: &mut Batch) -> io::Result<usize> {
        batch.point();
        let (fd, flags) = (self.fd.as_raw_fd(), libc::MSG_DONTWAIT as _);
        // SAFETY: each header points to buffers of the batch, which are as long as they say and
        // which nothing else uses before the call returns.
        let received = check_count(|| unsafe {
            let (headers, count) = (batch.headers.as_mut_ptr(), BATCH as libc::c_uint);
            libc::recvmmsg(fd, headers, count, flags, ptr::null_mut()) as libc::ssize_t
        });
        batch.filled = match received {
            Ok(count) => count,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => 0,
            Err(e) => {
                batch.filled = 0;
                return Err(e);
            }
        };
        Ok(batch.filled)
    }

    /// Packets that passed the filter and were lost since the last call, as the buffer was full.
    ///
    /// # Errors
    /// None in correct use.
    pub fn take_lost(&self) -> io::Result<u64> {
        // struct tpacket_stats: packets, of them dropped.
        let mut counts = [0_u32; 2];
        self.get(libc::SOL_PACKET, PACKET_STATISTICS, &mut counts)?;
        Ok(counts[1].into())
    }

    fn attach(&self, filter: &[Instruction]) -> io::Result<()> {
        let program = libc::sock_fprog {
            len: filter.len() as libc::c_ushort,
            // The kernel copies from it; it has the layout of sock_filter.
            filter: filter.as_ptr().cast_mut().cast(),
        };
        self.set(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
    }

    fn bind_to_all(&self) -> io::Result<()> {
        // SAFETY: a struct of integers, for which all zeroes are valid; index 0 is all interfaces.
        let mut address: libc::sockaddr_ll = unsafe { MaybeUninit::zeroed().assume_init() };
        address.sll_family = libc::AF_PACKET as libc::c_ushort;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        let length = size_of_val(&address) as libc::socklen_t;
        let pointer = (&raw const address).cast();
        // SAFETY: the address is whole and outlives the call.
        check(unsafe { libc::bind(self.fd.as_raw_fd(), pointer, length) }).map(drop)
    }

    fn get<T>(&self, level: libc::c_int, name: libc::c_int, value: &mut T) -> io::Result<()> {
        let mut length = size_of::<T>() as libc::socklen_t;
        let (fd, value) = (self.fd.as_raw_fd(), (&raw mut *value).cast());
        // SAFETY: value and length are ours and fit each other; it is made of integers.
        check(unsafe { libc::getsockopt(fd, level, name, value, &raw mut length) }).map(drop)
    }

    fn set<T>(&self, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
        let length = size_of::<T>() as libc::socklen_t;
        let value = (&raw const *value).cast();
        // SAFETY: the value is borrowed and has the length that we say.
        check(unsafe { libc::setsockopt(self.fd.as_raw_fd(), level, name, value, length) })
            .map(drop)
    }
}

/// Where packets are received, used again for each batch.
pub struct Batch {
    headers: Box<[libc::mmsghdr]>,
    parts: Box<[libc::iovec]>,
    bytes: Box<[[u8; SNAP]]>,
    from: Box<[libc::sockaddr_ll]>,
    /// Room for one timestamp each, aligned as control messages must be.
    control: Box<[[u64; 8]]>,
    filled: usize,
}

impl Batch {
    /// An empty one.
    pub fn new() -> Batch {
        fn zeroed<T: Copy>() -> Box<[T]> {
            // SAFETY: of the structs below, made of integers and pointers, all zeroes are valid.
            vec![unsafe { MaybeUninit::<T>::zeroed().assume_init() }; BATCH].into_boxed_slice()
        }
        Batch {
            headers: zeroed(),
            parts: zeroed(),
            bytes: zeroed(),
            from: zeroed(),
            control: zeroed(),
            filled: 0,
        }
    }

    /// What the last [`PacketSocket::receive`] took.
    pub fn packets(&self) -> impl Iterator<Item = Packet<'_>> {
        (0..self.filled).map(|i| {
            let length = (self.headers[i].msg_len as usize).min(SNAP);
            Packet {
                bytes: &self.bytes[i][..length],
                // SAFETY: the kernel has filled the control buffer, which is of this batch.
                realtime_ns: stamp::realtime_ns(unsafe {
                    stamp::control_of(&self.headers[i].msg_hdr)
                }),
                interface: self.from[i].sll_ifindex,
                is_outgoing: self.from[i].sll_pkttype == PACKET_OUTGOING,
            }
        })
    }

    /// Makes all headers point to their buffers; the kernel changes lengths, and the batch may have
    /// moved.
    fn point(&mut self) {
        for i in 0..BATCH {
            self.parts[i] = libc::iovec {
                iov_base: self.bytes[i].as_mut_ptr().cast(),
                iov_len: SNAP,
            };
            let header = &mut self.headers[i].msg_hdr;
            header.msg_name = (&raw mut self.from[i]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            header.msg_iov = &raw mut self.parts[i];
            header.msg_iovlen = 1;
            header.msg_control = self.control[i].as_mut_ptr().cast();
            header.msg_controllen = size_of_val(&self.control[i]) as _;
            header.msg_flags = 0;
        }
    }
}

impl Default for Batch {
    fn default() -> Batch {
        Batch::new()
    }
}
