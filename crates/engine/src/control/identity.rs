//! What tells whether two processes are on one machine, and in one network namespace.

use std::fs;

/// This machine's boot: the same for all processes of one kernel, and for no other. Empty where
/// the kernel does not tell.
pub(crate) fn boot() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// The network namespace of the calling thread, such as `net:[4026531840]`; empty where the kernel
/// does not tell.
pub(crate) fn network_namespace() -> String {
    let link = fs::read_link("/proc/thread-self/ns/net");
    link.map_or_else(|_| String::new(), |l| l.display().to_string())
}
