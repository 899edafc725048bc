//! The place of the measurements: two cores, the binaries, how long and how often.

use super::peer::{Load, Peer, Sample};
use super::process::{self, Server};
use crate::shell::output;
use crate::{repo, tools};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where and how everything is measured.
pub struct Lab {
    /// The knee binary under test.
    pub knee: PathBuf,
    /// The folder of the compiled bare loops.
    pub bare: PathBuf,
    /// Whether only function is checked, not speed.
    pub small: bool,
    /// Repeats of each measurement.
    pub rounds: usize,
    /// The server's core.
    pub server_core: usize,
    /// The generator's core; the same one where there is only one.
    pub generator_core: usize,
}

/// One measurement of one contender.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What the contender said.
    pub sample: Sample,
    /// Processor time of its process in user mode.
    pub cpu_user_s: f64,
    /// Processor time of its process in the kernel.
    pub cpu_system_s: f64,
}

impl Measured {
    /// Processor time per million requests, in seconds.
    pub fn cpu_s_per_million(&self) -> f64 {
        (self.cpu_user_s + self.cpu_system_s) / self.sample.requests * 1e6
    }

    /// Processor time over the run's length, in per cent.
    pub fn core_percent(&self) -> f64 {
        (self.cpu_user_s + self.cpu_system_s) / self.sample.seconds * 100.0
    }
}

impl Lab {
    /// Looks at the machine and at the binary.
    ///
    /// # Errors
    /// knee does not start.
    pub fn new(knee: PathBuf, bare: PathBuf, small: bool, rounds: usize) -> Result<Self, String> {
        let version = output(&knee, &["--version"])?;
        if !version.starts_with("knee") {
            return Err(format!("{} --version says {version:?}", knee.display()));
        }
        let cores = allowed_cores();
        let server_core = cores.first().copied().unwrap_or(0);
        let generator_core = cores.get(1).copied().unwrap_or(server_core);
        let rounds = if small { 1 } else { rounds };
        Ok(Lab {
            knee,
            bare,
            small,
            rounds,
            server_core,
            generator_core,
        })
    }

    /// The asked length of a run, or a blink where only function is checked.
    pub fn seconds(&self, asked: f64) -> f64 {
        if self.small { 0.3 } else { asked }
    }

    /// A file for a contender's or a server's output.
    pub fn scratch(&self, name: &str) -> PathBuf {
        repo::target().join("bench").join(name)
    }

    /// Those of `peers` that are on this machine.
    pub fn present(&self, peers: &[Peer]) -> Vec<Peer> {
        peers
            .iter()
            .copied()
            .filter(|peer| self.program(*peer).is_some())
            .collect()
    }

    /// Where a peer's binary is.
    pub fn program(&self, peer: Peer) -> Option<PathBuf> {
        match peer {
            _ if peer.is_knee() => Some(self.knee.clone()),
            _ if peer.is_bare() => Some(self.bare.join(peer.program())).filter(|p| p.is_file()),
            _ => tools::find(peer.program()),
        }
    }

    /// Starts a server on its core and waits until it listens.
    ///
    /// # Errors
    /// It does not.
    pub fn serve(&self, program: &Path, args: &[String]) -> Result<Server, String> {
        Server::start(process::pinned(self.server_core, program, args))
    }

    /// Starts the lean epoll server. `stamps` are a file for arrival times and how many to keep.
    ///
    /// # Errors
    /// It does not start.
    pub fn serve_lean(&self, stamps: Option<(&Path, usize)>) -> Result<Server, String> {
        let mut args = vec!["0".to_string()];
        if let Some((file, count)) = stamps {
            args.extend([file.display().to_string(), count.to_string()]);
        }
        self.serve(&self.bare.join("server_epoll"), &args)
    }

    /// Runs a contender on its core.
    ///
    /// # Errors
    /// It cannot make such a load, fails, or says nothing that can be understood.
    pub fn measure(&self, peer: Peer, load: &Load) -> Result<Measured, String> {
        let name = peer.name();
        let args = peer
            .arguments(load)
            .ok_or(format!("{name} cannot make this load"))?;
        self.measure_line(peer, &args, load.seconds)
    }

    /// Runs a contender on its core with a command line made for it.
    ///
    /// # Errors
    /// It fails, or says nothing that can be understood.
    pub fn measure_line(
        &self,
        peer: Peer,
        args: &[String],
        seconds: f64,
    ) -> Result<Measured, String> {
        let name = peer.name();
        let program = self.program(peer).ok_or(format!("{name} is not here"))?;
        let limit = Duration::from_secs_f64(seconds * 3.0 + 30.0);
        let run = process::run(process::pinned(self.generator_core, &program, args), limit)?;
        if !peer.accepts(run.exit_code) {
            let said = format!("{}{}", run.stdout, run.stderr);
            return Err(format!(
                "{name} {} ended with {:?}: {said}",
                args.join(" "),
                run.exit_code
            ));
        }
        let sample = peer
            .parse(&run.stdout)
            .map_err(|e| format!("{name}: {e}: {}", run.stdout))?;
        Ok(Measured {
            sample,
            cpu_user_s: run.cpu_user_s,
            cpu_system_s: run.cpu_system_s,
        })
    }
}

/// The cores that this process may use, from the kernel's list such as `0-1,4`.
fn allowed_cores() -> Vec<usize> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    parse_cores(list.unwrap_or("0"))
}

fn parse_cores(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_list_of_cores_is_read() {
        assert_eq!(parse_cores("\t0-1\n"), [0, 1]);
        assert_eq!(parse_cores("0,2-4"), [0, 2, 3, 4]);
        assert_eq!(parse_cores(""), [] as [usize; 0]);
    }
}
