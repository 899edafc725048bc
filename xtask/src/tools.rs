//! The programs that the tests and benches need beside cargo, and how to get them.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A program and the Debian package that brings it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tool {
    /// What is looked for on the path.
    pub program: &'static str,
    /// What apt installs; with a slash, a Go module.
    pub package: &'static str,
    /// What goes untested or unmeasured without it.
    pub purpose: &'static str,
}

/// A row of a list of tools.
pub const fn tool(program: &'static str, package: &'static str, purpose: &'static str) -> Tool {
    Tool { program, package, purpose }
}

/// What the benches need: the peers that apt has, the servers of others that they are measured
/// against, and what else they start. The tests need them too, as they run each bench.
pub const FOR_BENCHES: &[Tool] = &[
    tool("wrk", "wrk", "wrk as a peer"),
    tool("ab", "apache2-utils", "ab as a peer"),
    tool("h2load", "nghttp2-client", "h2load as a peer, knee's server with h2load"),
    tool("iperf3", "iperf3", "iperf3 as a peer"),
    tool("dnsperf", "dnsperf", "dnsperf as a peer"),
    tool("nginx", "nginx-light", "knee against nginx"),
    tool("nghttpd", "nghttp2-server", "knee against nghttpd"),
    tool("caddy", "caddy", "knee against Caddy"),
    tool("openssl", "openssl", "knee's server with OpenSSL, a certificate for nginx"),
    tool("nats-server", "nats-server", "fleets"),
    tool("cc", "gcc", "the bare loops"),
    LIBURING,
];

/// A library, seen from the folder of programs.
pub const LIBURING: Tool =
    tool("../include/liburing.h", "liburing-dev", "the bare loop over io_uring");

/// Peers that apt does not have; `cargo xtask bench --install` brings them, as it does oha. wrk2
/// and k6 are measured if they are installed.
pub const OPTIONAL: &[Tool] = &[
    tool("bombardier", "github.com/codesenberg/bombardier@latest", "bombardier as a peer"),
    tool("ghz", "github.com/bojand/ghz/cmd/ghz@v0.121.0", "ghz as a peer"),
];

/// What the tests need beyond [`FOR_BENCHES`].
pub const FOR_TESTS: &[Tool] = &[
    tool("apache2", "apache2", "knee against Apache httpd"),
    tool("lighttpd", "lighttpd", "knee against lighttpd"),
    tool("haproxy", "haproxy", "knee through HAProxy"),
    tool("python3", "python3", "knee against Python's http.server"),
    tool("pytest-3", "python3-pytest", "the Python package"),
    tool("mypy", "mypy", "the types of the Python package"),
    tool("node", "nodejs", "knee against Node"),
    tool("nsd", "nsd", "knee against nsd"),
    tool("knotd", "knot", "knee against Knot DNS"),
    tool("go", "golang-go", "knee against Go's net/http"),
    tool("hypercorn", "python3-hypercorn", "knee against hypercorn"),
    tool("curl", "curl", "knee's server with curl"),
    tool("prometheus", "prometheus", "the dashboard with Prometheus"),
    tool("chromium", "chromium", "HTML reports in a browser"),
    tool("java", "default-jre-headless", "HdrHistogram's own tools"),
    // No programs but libraries, seen from the folder of programs.
    tool(
        "../share/java/hdrhistogram.jar",
        "libhdrhistogram-java",
        "knee's histogram logs with HdrHistogram's own tools",
    ),
    tool(
        "../lib/python3/dist-packages/pandas/__init__.py",
        "python3-pandas",
        "DataFrames of the Python package",
    ),
    tool(
        "../lib/python3/dist-packages/nbclient/__init__.py",
        "python3-nbclient",
        "the Python package in a notebook",
    ),
    tool(
        "../lib/python3/dist-packages/ipykernel/__init__.py",
        "python3-ipykernel",
        "the Python package in a notebook",
    ),
];

/// Finds a program on the path, in the system's sbin folders or in those of cargo and go.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.extend(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from));
    let home = std::env::var_os("HOME").map(PathBuf::from);
    folders.extend(home.iter().flat_map(|home| [".cargo/bin", "go/bin"].map(|f| home.join(f))));
    folders.into_iter().map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Tools that are not installed.
pub fn missing(tools: &[Tool]) -> Vec<Tool> {
    tools.iter().copied().filter(|tool| find(tool.program).is_none()).collect()
}

/// Installs missing tools, if apt and the rights for it are available. Returns those still missing.
pub fn install(tools: &[Tool]) -> Vec<Tool> {
    let wanted = missing(tools);
    if wanted.is_empty() {
        return wanted;
    }
    let (modules, packages): (Vec<&str>, Vec<&str>) =
        wanted.iter().map(|tool| tool.package).partition(|package| package.contains('/'));
    for module in modules {
        let installed = Command::new("go").args(["install", module]).status();
        if !installed.is_ok_and(|status| status.success()) {
            println!("without {module}: go could not install it");
        }
    }
    if packages.is_empty() {
        return missing(tools);
    }
    let line = format!("apt-get install -y {}", packages.join(" "));
    let Some(prefix) = rights() else {
        println!("please install: {line} (no apt here, or neither root nor sudo without password)");
        return wanted;
    };
    println!("installing: {line}");
    let apt = |args: &[&str]| {
        let words: Vec<&str> = prefix.iter().chain(&["apt-get"]).chain(args).copied().collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env("DEBIAN_FRONTEND", "noninteractive");
        command.stdout(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    let arguments: Vec<&str> =
        ["install", "-y", "--no-install-recommends"].into_iter().chain(packages).collect();
    if !apt(&arguments) && (!apt(&["update"]) || !apt(&arguments)) {
        println!("apt-get failed; please install by hand: {line}");
    }
    missing(tools)
}

/// Words to put before apt-get; `None` if it cannot be run.
fn rights() -> Option<&'static [&'static str]> {
    find("apt-get")?;
    if nix::unistd::Uid::effective().is_root() {
        return Some(&[]);
    }
    find("sudo")?;
    let sudo = Command::new("sudo").args(["-n", "true"]).stderr(Stdio::null()).status();
    sudo.is_ok_and(|status| status.success()).then_some(&["sudo", "-n"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_from_what_is_there() {
        let nothing = tool("no-such-program-anywhere", "none", "nothing");
        let shell = tool("sh", "dash", "a shell");
        assert_eq!(missing(&[shell, nothing]), [nothing]);
        assert!(find("sh").is_some());
    }

    #[test]
    fn each_program_is_listed_once() {
        let mut programs: Vec<&str> =
            [FOR_BENCHES, FOR_TESTS, OPTIONAL].concat().iter().map(|tool| tool.program).collect();
        programs.sort_unstable();
        assert!(programs.is_sorted_by(|a, b| a < b), "{programs:?}");
    }
}
