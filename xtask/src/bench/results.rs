//! What stands above the tables: when, where and how.

use super::lab::Lab;
use crate::shell::output;

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
        line.and_then(|line| line.split(':').nth(1))
            .unwrap_or("unknown")
            .trim()
            .to_string()
    };
    let cpus = cpuinfo
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    let guest = if field("flags").contains("hypervisor") {
        ", a virtual machine"
    } else {
        ""
    };
    let build = if release {
        "release build"
    } else {
        "debug build: speeds mean nothing"
    };
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
