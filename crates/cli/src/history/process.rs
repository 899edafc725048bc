//! Which process writes a run, so that one that was killed can be told from one that still works.

use std::fs;

/// A process, by what no other one of any host shares with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number, which others may get later.
    pub pid: u32,
    /// When it began, in the kernel's clock ticks; 0 where that is not known.
    pub began: u64,
    /// The boot and the namespace that both are of; empty where that is not known.
    pub within: String,
}

impl Process {
    /// This process.
    pub fn this() -> Process {
        let pid = std::process::id();
        Process {
            pid,
            began: began(pid).unwrap_or(0),
            within: within().unwrap_or_default(),
        }
    }

    /// Whether it is still there; `None` where it was seen from another host or container, or in
    /// another boot that may still go on there.
    pub fn is_there(&self) -> Option<bool> {
        if self.within.is_empty() || Some(&self.within) != within().as_ref() {
            return None;
        }
        Some(began(self.pid) == Some(self.began))
    }
}

/// Boot and process namespace.
fn within() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", boot.trim(), namespace.display()))
}

/// When a process began, unless it has ended: the 22nd field of proc_pid_stat(5). A zombie has
/// ended.
fn began(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, the 2nd field, may hold anything; it ends with the last parenthesis.
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace();
    let state = fields.next()?;
    let began = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(began)
}

#[cfg(test)]
mod tests {
    use super::Process;

    #[test]
    fn this_process_is_there_and_another_of_its_number_is_not() {
        let this = Process::this();
        let known = (!this.within.is_empty()).then_some(true);
        assert_eq!(this.is_there(), known);
        let earlier = Process {
            began: this.began.wrapping_sub(1),
            ..this.clone()
        };
        assert_eq!(earlier.is_there(), known.map(|_| false));
        let elsewhere = Process {
            within: "another boot".to_string(),
            ..this
        };
        assert_eq!(elsewhere.is_there(), None);
    }
}
