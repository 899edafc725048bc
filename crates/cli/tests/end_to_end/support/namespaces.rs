//! Two network namespaces with a link between them, for what the loopback does not show.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Where this end of the link is.
pub const NEAR: &str = "10.98.7.1";
/// Where the far end is.
pub const FAR: &str = "10.98.7.2";

/// A network namespace that lives as long as this.
struct Namespace {
    /// Keeps it; it does nothing.
    holder: Child,
}

impl Namespace {
    fn new() -> Option<Namespace> {
        let mut command = Command::new("sleep");
        command.arg("600").stdin(Stdio::null());
        // SAFETY: unshare(2) is a system call without pointers: async-signal-safe.
        unsafe {
            command.pre_exec(|| match libc::unshare(libc::CLONE_NEWNET) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            });
        }
        let holder = command.spawn().ok()?;
        Some(Namespace { holder })
    }

    /// The command, in here.
    fn place(&self, command: &mut Command) {
        let namespace = File::open(format!("/proc/{}/ns/net", self.holder.id())).unwrap();
        // SAFETY: setns(2) is a system call without pointers; the closure keeps the file open.
        unsafe {
            command.pre_exec(move || {
                match libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) {
                    0 => Ok(()),
                    _ => Err(io::Error::last_os_error()),
                }
            });
        }
    }

    /// Runs these commands, one a line; whether all went well.
    fn set_up(&self, lines: &[String]) -> bool {
        lines.iter().all(|line| {
            let mut words = line.split(' ');
            let mut command = Command::new(words.next().unwrap());
            command.args(words);
            self.place(&mut command);
            command.output().is_ok_and(|out| out.status.success())
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Two of them.
pub struct Link {
    near: Namespace,
    far: Namespace,
}

impl Link {
    /// A link whose both directions pass `qdisc` (tc(8), after `root`); `None`, and a line that
    /// says so, where that is not permitted here.
    pub fn through(qdisc: &str) -> Option<Link> {
        let link = Link::try_through(qdisc);
        if link.is_none() {
            println!("skipped: network namespaces, veth or '{qdisc}' are not permitted here");
        }
        link
    }

    fn try_through(qdisc: &str) -> Option<Link> {
        let link = Link { near: Namespace::new()?, far: Namespace::new()? };
        let far = link.far.holder.id();
        let end = |address: &str, device: &str| {
            [
                format!("ip addr add {address}/24 dev {device}"),
                format!("ip link set {device} up"),
                "ip link set lo up".to_owned(),
                format!("tc qdisc add dev {device} root {qdisc}"),
            ]
        };
        let made = format!("ip link add kneea type veth peer name kneeb netns {far}");
        let is_up = link.near.set_up(&[made])
            && link.near.set_up(&end(NEAR, "kneea"))
            && link.far.set_up(&end(FAR, "kneeb"));
        is_up.then_some(link)
    }

    /// Nothing passes any more, either way.
    pub fn cut(&self) {
        assert!(self.near.set_up(&["ip link set kneea down".to_owned()]));
    }

    /// It passes again.
    pub fn mend(&self) {
        assert!(self.near.set_up(&["ip link set kneea up".to_owned()]));
    }

    /// Runs these commands at this end, one a line; whether all went well.
    pub fn set_up_here(&self, lines: &[String]) -> bool {
        self.near.set_up(lines)
    }

    /// Has a command run at this end.
    pub fn here(&self, command: &mut Command) {
        self.near.place(command);
    }

    /// Has a command run at the far end.
    pub fn there(&self, command: &mut Command) {
        self.far.place(command);
    }
}
