//! The tables of ip_tables and ip6_tables as the kernel has them: getsockopt(2) of a raw socket.

use super::get_option;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};
use std::io;

/// Options of linux/netfilter_ipv4/ip_tables.h, the same of IPv6.
const GET_INFO: libc::c_int = 64;
const GET_ENTRIES: libc::c_int = 65;
/// Length of struct ipt_getinfo.
pub const INFO: usize = 84;
/// Where the entries begin in struct ipt_get_entries.
const ENTRIES: usize = 40;
/// Length of the name of a table.
const NAME: usize = 32;

/// Which tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// ip_tables.
    V4,
    /// ip6_tables.
    V6,
}

/// A table: struct ipt_getinfo, and its entries with their counters.
///
/// # Errors
/// Not permitted (CAP_NET_RAW and CAP_NET_ADMIN), no such table, or entries of more than `max`
/// bytes.
pub fn table(family: Family, name: &str, max: usize) -> io::Result<([u8; INFO], Vec<u8>)> {
    let (domain, level) = match family {
        Family::V4 => (AddressFamily::INET, libc::IPPROTO_IP),
        Family::V6 => (AddressFamily::INET6, libc::IPPROTO_IPV6),
    };
    let protocol = Some(ipproto::RAW);
    let socket = socket_with(domain, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
    let mut info = [0; INFO];
    let length = name.len().min(NAME - 1);
    info[..length].copy_from_slice(&name.as_bytes()[..length]);
    get_option(&socket, level, GET_INFO, &mut info)?;
    let size = u32::from_ne_bytes(info[INFO - 4..].try_into().unwrap_or_default());
    if size as usize > max {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut entries = vec![0; ENTRIES + size as usize];
    entries[..NAME].copy_from_slice(&info[..NAME]);
    entries[NAME..NAME + 4].copy_from_slice(&size.to_ne_bytes());
    get_option(&socket, level, GET_ENTRIES, &mut entries)?;
    entries.drain(..ENTRIES);
    Ok((info, entries))
}
