//! The place of the measurements: two cores, the binaries, how long and how often.

use super::contender::{
    BenchProgram, Contender, ContenderReport, LineValues, ResponseTimes, split,
};
use super::process::{self, BenchServer, Run};
use crate::repo::output;
use crate::{repo, tools};
use std::path::PathBuf;

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
    /// The generator's core; the same one if there is only one.
    pub generator_core: usize,
}

/// One measurement of one contender.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Report of the contender.
    pub sample: ContenderReport,
    /// Processor time of its process in user mode.
    pub cpu_user_s: f64,
    /// Processor time of its process in the kernel.
    pub cpu_system_s: f64,
    /// Processor time of its server.
    pub cpu_server_s: f64,
}

impl Measured {
    /// Responses per second.
    pub fn per_s(&self) -> f64 {
        self.sample.requests / self.sample.seconds
    }

    /// Response times; zeros if the contender does not report them.
    pub fn response(&self) -> ResponseTimes {
        self.sample.response.unwrap_or_default()
    }

    /// Processor time of its process, in seconds.
    pub fn cpu_s(&self) -> f64 {
        self.cpu_user_s + self.cpu_system_s
    }

    /// Processor time per million requests, in seconds.
    pub fn cpu_s_per_million(&self) -> f64 {
        self.cpu_s() / self.sample.requests * 1e6
    }

    /// Processor time over the run's length, in per cent.
    pub fn core_percent(&self) -> f64 {
        self.cpu_s() / self.sample.seconds * 100.0
    }
}

impl Lab {
    /// Checks the binary and assigns the cores.
    ///
    /// # Errors
    /// knee does not start.
    pub fn new(knee: PathBuf, bare: PathBuf, small: bool, rounds: usize) -> Result<Self, String> {
        let version = output(&knee, &["--version"])?;
        if !version.starts_with("knee") {
            return Err(format!("{} --version says {version:?}", knee.display()));
        }
        // The cores that this process may use, from the kernel's list such as `0-1,4`.
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let cores = parse_cores(list.unwrap_or("0"));
        let server_core = cores.first().copied().unwrap_or(0);
        let generator_core = cores.get(1).copied().unwrap_or(server_core);
        let rounds = if small { 1 } else { rounds };
        Ok(Lab { knee, bare, small, rounds, server_core, generator_core })
    }

    /// The asked length of a run, or a blink where only function is checked.
    pub fn seconds(&self, asked: f64) -> f64 {
        if self.small { 0.3 } else { asked }
    }

    /// A file for a contender's or a server's output.
    pub fn scratch(&self, name: &str) -> PathBuf {
        repo::target().join("bench").join(name)
    }

    /// Where a program's binary is.
    pub fn program(&self, program: BenchProgram) -> Option<PathBuf> {
        match program {
            BenchProgram::Knee | BenchProgram::KneeUnserved => Some(self.knee.clone()),
            BenchProgram::Bare(name) => Some(self.bare.join(name)).filter(|path| path.is_file()),
            BenchProgram::Peer(name) => tools::find(name),
        }
    }

    /// As [`Lab::program`], where it must be.
    ///
    /// # Errors
    /// It is not on this machine.
    pub fn find(&self, program: BenchProgram) -> Result<PathBuf, String> {
        self.program(program).ok_or_else(|| format!("{} is missing", program.name()))
    }

    /// Starts a server on its core and waits until it listens.
    ///
    /// # Errors
    /// It does not.
    pub fn serve(&self, program: BenchProgram, line: &str) -> Result<BenchServer, String> {
        let path = self.find(program)?;
        BenchServer::start(process::pinned(self.server_core, &path, &split(line)))
    }

    /// Starts `knee serve` with these further arguments on its core.
    ///
    /// # Errors
    /// It does not start.
    pub fn serve_knee(&self, line: &str) -> Result<BenchServer, String> {
        self.serve(BenchProgram::Knee, &format!("serve {line}"))
    }

    /// Starts the lean epoll server.
    ///
    /// # Errors
    /// It does not start.
    pub fn serve_lean(&self) -> Result<BenchServer, String> {
        self.serve(BenchProgram::Bare("server_epoll"), "0")
    }

    /// Runs a contender on its core.
    ///
    /// # Errors
    /// It cannot make such a load, fails, or prints nothing that can be understood.
    pub fn measure(&self, contender: &Contender, values: &LineValues) -> Result<Measured, String> {
        let run = self.run(contender.program, &contender.arguments(values)?)?;
        Ok(Measured {
            sample: run.ended.read(contender.read)?,
            cpu_user_s: run.cpu_user_s,
            cpu_system_s: run.cpu_system_s,
            cpu_server_s: 0.0,
        })
    }

    /// Runs a contender on its core against a server, whose port is `{port}`, and ends that.
    ///
    /// # Errors
    /// As [`Lab::measure`], or the server fails.
    pub fn measure_at(
        &self,
        server: BenchServer,
        contender: &Contender,
        values: &LineValues,
    ) -> Result<Measured, String> {
        let before = process::children_cpu_s()?;
        let mut measured =
            server.serve(|port| self.measure(contender, &values.clone().with("port", port)))?;
        let after = process::children_cpu_s()?;
        measured.cpu_server_s =
            after.0 + after.1 - before.0 - before.1 - measured.cpu_user_s - measured.cpu_system_s;
        Ok(measured)
    }

    /// Runs a program on the generator's core.
    ///
    /// # Errors
    /// It is not here, fails, or does not end in time.
    pub fn run(&self, program: BenchProgram, line: &str) -> Result<Run, String> {
        let path = self.find(program)?;
        let run = process::run(process::pinned(self.generator_core, &path, &split(line)))?;
        let is_measured = program.accepts(run.ended.status.code());
        if is_measured { Ok(run) } else { Err(run.ended.failed("failed:")) }
    }
}

/// The heading of `bench/RESULTS.md`.
///
/// # Errors
/// A program that names the machine does not start.
pub fn heading(lab: &Lab, release: bool) -> Result<String, String> {
    let date = output("date", &["-u", "+%Y-%m-%d %H:%M UTC"])?;
    let kernel = output("uname", &["-sr"])?;
    let version = output(&lab.knee, &["--version"])?;
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split(':').nth(1)).unwrap_or("unknown").trim().to_string()
    };
    let cpus = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    let guest = if field("flags").contains("hypervisor") { ", a virtual machine" } else { "" };
    let build = if release { "release build" } else { "debug build: speeds mean nothing" };
    Ok(format!(
        "# Results\n\n\
         Written by `cargo xtask bench` on {date}; do not edit.\n\n\
         {version}, {build}. {kernel}, {cpus} × {}{guest}. Loopback; server on core {}, generator \
         on core {}. Contenders took turns, {} rounds; a cell is the median (least–most) over the \
         rounds, a ratio is taken within each round. Processor time is the kernel's account of the \
         generator's process.\n\n",
        field("model name"),
        lab.server_core,
        lab.generator_core,
        lab.rounds,
    ))
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
