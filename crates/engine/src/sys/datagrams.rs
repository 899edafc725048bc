//! Receiving datagrams: many in one call, each with the kernel's receive timestamp, and what the
//! kernel knows of the socket's buffer.

use super::socket::RawAddress;
use super::{set_option, socket_memory};
use rustix::io::retry_on_intr;
use rustix::net::{SendFlags, SocketAddrAny, sendto};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// A non-blocking UDP socket that receives with timestamps.
#[derive(Debug)]
pub struct DatagramSocket(UdpSocket);

/// What the kernel knows of a socket's receive side: SO_MEMINFO (socket(7)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveMemory {
    /// Bytes taken by what is queued, the kernel's own bookkeeping included.
    pub used: u32,
    /// Bytes that may be taken.
    pub limit: u32,
    /// Datagrams dropped at this socket since it was made; wraps.
    pub drops: u32,
}

impl DatagramSocket {
    /// Binds to `address` and asks for receive timestamps (SO_TIMESTAMPNS).
    ///
    /// # Errors
    /// In use, not permitted, not an address of this machine.
    pub fn bind(address: SocketAddr) -> io::Result<DatagramSocket> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        let socket = DatagramSocket(socket);
        set_option(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1_i32)?;
        Ok(socket)
    }

    /// Where it is bound.
    ///
    /// # Errors
    /// None in correct use.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Asks for a receive buffer of `bytes`, which the kernel doubles for its own bookkeeping; more
    /// than net.core.rmem_max is had only with CAP_NET_ADMIN. What was got is the limit of
    /// [`DatagramSocket::memory`].
    ///
    /// # Errors
    /// None in correct use.
    pub fn set_receive_buffer(&self, bytes: u32) -> io::Result<()> {
        let value = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
        set_option(self, libc::SOL_SOCKET, libc::SO_RCVBUF, &value)?;
        if u64::from(self.memory()?.limit) < 2 * u64::from(bytes) {
            // Where it is not permitted, what the first call gave holds.
            let _ = set_option(self, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &value);
        }
        Ok(())
    }

    /// What the kernel knows of the socket's buffer now.
    ///
    /// # Errors
    /// A kernel before Linux 4.12.
    pub fn memory(&self) -> io::Result<ReceiveMemory> {
        let info = socket_memory(&self.0)?;
        Ok(ReceiveMemory {
            used: info[libc::SK_MEMINFO_RMEM_ALLOC as usize],
            limit: info[libc::SK_MEMINFO_RCVBUF as usize],
            drops: info[libc::SK_MEMINFO_DROPS as usize],
        })
    }

    /// Receives up to `limit` datagrams that are there already, in one call, and returns how many;
    /// 0 where there is none. Their contents are `batch`'s.
    ///
    /// # Errors
    /// Those of recvmmsg(2) but `WouldBlock`.
    #[inline]
    pub fn receive(&self, batch: &mut DatagramBatch, limit: usize) -> io::Result<usize> {
        match batch.receive(&self.0, limit) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(0),
            received => received,
        }
    }

    /// Sends datagram `index` of the batch back to where it came from; whether the kernel took it.
    #[inline]
    pub fn send_back(&self, batch: &DatagramBatch, index: usize) -> bool {
        self.send_to(batch.bytes(index), &batch.sender(index))
    }

    /// Sends a datagram; whether the kernel took it.
    #[inline]
    pub fn send_to(&self, bytes: &[u8], to: &RawAddress) -> bool {
        retry_on_intr(|| sendto(&self.0, bytes, SendFlags::DONTWAIT, &to.0)).is_ok()
    }
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Buffers for the datagrams of one receive call.
pub type DatagramBatch = super::receive_batch::ReceiveBatch<libc::sockaddr_storage>;

impl DatagramBatch {
    /// Where datagram `index` came from; IPv4 in IPv6 as plain IPv4. `None` for another family.
    #[inline]
    pub fn source(&self, index: usize) -> Option<IpAddr> {
        let from = SocketAddr::try_from(self.sender(index).0);
        from.ok().map(|from| from.ip().to_canonical())
    }

    /// Address that datagram `index` came from, for an answer.
    #[inline]
    pub fn sender(&self, index: usize) -> RawAddress {
        let (name, length) = self.address(index);
        // SAFETY: the kernel wrote a whole address of this length.
        RawAddress(unsafe { SocketAddrAny::read((&raw const *name).cast(), length) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::clock;

    fn wait(socket: &DatagramSocket, batch: &mut DatagramBatch, limit: usize) -> usize {
        for _ in 0..2_000 {
            match socket.receive(batch, limit).unwrap() {
                0 => std::thread::sleep(std::time::Duration::from_millis(1)),
                n => return n,
            }
        }
        0
    }

    #[test]
    fn datagrams_come_with_their_bytes_source_and_time_and_go_back() {
        for listen in ["127.0.0.1:0", "[::1]:0"] {
            let socket = DatagramSocket::bind(listen.parse().unwrap()).unwrap();
            let to = socket.local_address().unwrap();
            let sender = UdpSocket::bind((to.ip(), 0)).unwrap();
            let mut batch = DatagramBatch::new(8, 10);
            assert_eq!(socket.receive(&mut batch, 8).unwrap(), 0);
            let before = clock::realtime_ns();
            sender.send_to(b"short", to).unwrap();
            sender.send_to(b"much too long", to).unwrap();
            assert_eq!(wait(&socket, &mut batch, 1), 1, "no more than asked for");
            assert_eq!((batch.bytes(0), batch.is_cut(0)), (&b"short"[..], false));
            assert_eq!(batch.source(0), Some(to.ip()));
            let at = batch.received_realtime_ns(0).unwrap();
            assert!(before <= at && at <= clock::realtime_ns());
            assert!(socket.send_back(&batch, 0));
            let mut back = [0; 16];
            assert_eq!(sender.recv(&mut back).unwrap(), 5);
            assert_eq!(wait(&socket, &mut batch, 8), 1);
            assert_eq!((batch.bytes(0), batch.is_cut(0)), (&b"much too l"[..], true));
        }
    }

    #[test]
    fn drops_at_the_socket_are_told_at_once() {
        let socket = DatagramSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        socket.set_receive_buffer(4096).unwrap();
        assert_eq!(socket.memory().unwrap().limit, 8192);
        let to = socket.local_address().unwrap();
        let sender = UdpSocket::bind((to.ip(), 0)).unwrap();
        for _ in 0..100 {
            sender.send_to(&[7; 64], to).unwrap();
        }
        let drops = socket.memory().unwrap().drops;
        let mut batch = DatagramBatch::new(128, 64);
        let received = wait(&socket, &mut batch, 128);
        assert_eq!(received + drops as usize, 100);
        assert!(drops > 0 && received > 0);
    }
}
