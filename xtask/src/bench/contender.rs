//! The contenders, as data: a name, a program, a command line, and what reads its output.

use super::reader;

/// A program that is measured.
#[derive(Clone, Copy, Debug)]
pub struct Contender {
    /// The name in tables.
    pub name: &'static str,
    pub program: BenchProgram,
    /// The command line. Words in braces are placeholders, such as `{url}`.
    pub line: &'static str,
    /// Reads its standard output.
    pub read: ReadReport,
    /// What stands for `{backend}` in its command line.
    pub backend: &'static str,
}

/// Reads what a contender prints.
pub type ReadReport = fn(&str) -> Result<ContenderReport, String>;

/// Where a contender's binary comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BenchProgram {
    /// The binary under test.
    Knee,
    /// The same against a server without clients.
    KneeUnserved,
    /// A loop that makes only the system calls, of `bench/`.
    Bare(&'static str),
    /// Another load generator, from the path.
    Peer(&'static str),
}

impl BenchProgram {
    /// The binary's file name.
    pub fn name(self) -> &'static str {
        match self {
            BenchProgram::Knee | BenchProgram::KneeUnserved => "knee",
            BenchProgram::Bare(name) | BenchProgram::Peer(name) => name,
        }
    }

    /// Whether an exit code means that it has measured. 3 is knee's for an INVALID run, 1 for a run
    /// without any success.
    pub fn accepts(self, exit_code: Option<i32>) -> bool {
        match exit_code {
            Some(0) => true,
            Some(1) => self == BenchProgram::KneeUnserved,
            Some(3) => matches!(self, BenchProgram::Knee | BenchProgram::KneeUnserved),
            _ => false,
        }
    }
}

/// What a contender reports of its run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContenderReport {
    /// Responses, or datagrams sent.
    pub requests: f64,
    /// Length of the run.
    pub seconds: f64,
    /// Requests that failed.
    pub errors: f64,
    /// Its own verdict on the run, if any.
    pub valid: Option<bool>,
    pub response: Option<ResponseTimes>,
    pub peak_rss_bytes: Option<f64>,
    /// TLS handshakes that resumed a session.
    pub resumed: Option<f64>,
    /// Median and 99th percentile of the pacing error.
    pub pacing_us: Option<[f64; 2]>,
    /// Processor time of both ends, where it accounts for that itself.
    pub cpu_s: Option<f64>,
}

impl ContenderReport {
    /// A report of these figures alone.
    pub fn new(requests: f64, seconds: f64, errors: f64) -> ContenderReport {
        ContenderReport { requests, seconds, errors, ..ContenderReport::default() }
    }
}

/// Response times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ResponseTimes {
    pub mean_us: Option<f64>,
    pub p50_us: f64,
    pub p90_us: f64,
    pub p99_us: f64,
}

/// An open loop's arrivals, per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OfferedRate {
    Constant(f64),
    Poisson(f64),
}

/// What stands for the placeholders of a command line, such as `{port}`.
#[derive(Clone, Debug, Default)]
pub struct LineValues(Vec<(&'static str, String)>);

impl LineValues {
    /// `{seconds}`, `{ms}` and, for programs that accept whole seconds only, `{whole}`.
    pub fn of(seconds: f64) -> LineValues {
        let whole = seconds.round().max(1.0);
        let ms = (seconds * 1e3).round();
        LineValues::default().with("seconds", seconds).with("ms", ms).with("whole", whole)
    }

    /// The same with `{key}`.
    pub fn with(mut self, key: &'static str, value: impl ToString) -> LineValues {
        self.0.push((key, value.to_string()));
        self
    }

    /// The same with the arrivals of an open loop: `{rate}`, `{arrivals}` as knee has them, and
    /// `{poisson}` as the bare loops have them.
    pub fn with_rate(self, rate: OfferedRate) -> LineValues {
        let (per_s, arrivals, poisson) = match rate {
            OfferedRate::Constant(per_s) => (per_s, "constant", ""),
            OfferedRate::Poisson(per_s) => (per_s, "poisson", " poisson"),
        };
        self.with("rate", per_s)
            .with("poisson", poisson)
            .with("arrivals", format!(" --rate {per_s} --arrival {arrivals}"))
    }

    /// A command line with values for its placeholders, and for those in the values. A brace
    /// before a letter, a digit or an underscore opens a placeholder; any other stays, such as
    /// those of JSON. `{url}` is the server's over HTTP unless given.
    ///
    /// # Errors
    /// A placeholder has no value, so that such a load cannot be made, or no end.
    pub fn fill(&self, line: &str) -> Result<String, String> {
        // A closed loop has no arrivals.
        let defaults = [("url", "http://127.0.0.1:{port}/"), ("arrivals", "")];
        let values = self.0.iter().map(|(key, value)| (*key, value.as_str()));
        let values: Vec<(&str, &str)> = values.chain(defaults).collect();
        let mut pieces = line.split('{');
        let mut filled = pieces.next().unwrap_or_default().to_string();
        for piece in pieces {
            if !piece.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
                filled += "{";
                filled += piece;
                continue;
            }
            let (name, rest) =
                piece.split_once('}').ok_or_else(|| format!("no end of {{{piece} in {line}"))?;
            let value = values.iter().find(|(key, _)| *key == name);
            let (_, value) = value.ok_or_else(|| format!("no value of {{{name}}} in {line}"))?;
            filled += &self.fill(value)?;
            filled += rest;
        }
        Ok(filled)
    }
}

impl Contender {
    /// The arguments for these values.
    ///
    /// # Errors
    /// As [`LineValues::fill`].
    pub fn arguments(&self, values: &LineValues) -> Result<String, String> {
        let values = values.clone().with("backend", self.backend);
        values.fill(self.line).map_err(|e| format!("{}: {e}", self.name))
    }

    /// The command line with the program's name, as a person types it.
    ///
    /// # Errors
    /// As [`LineValues::fill`].
    pub fn shown(&self, values: &LineValues) -> Result<String, String> {
        Ok(format!("{} {}", self.program.name(), self.arguments(values)?))
    }
}

/// The words of a command line; what stands between single quotes is one of them.
pub fn split(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    let words = parts.flat_map(|(index, part)| match index % 2 {
        0 => part.split_whitespace().map(String::from).collect(),
        _ => vec![part.to_string()],
    });
    words.collect()
}

const fn contender(
    name: &'static str,
    program: BenchProgram,
    line: &'static str,
    read: ReadReport,
) -> Contender {
    Contender { name, program, line, read, backend: "" }
}

/// A contender that is knee.
pub const fn knee(name: &'static str, line: &'static str) -> Contender {
    contender(name, BenchProgram::Knee, line, reader::knee)
}

/// knee over both backends, with a line that has `--backend {backend}`.
pub const fn knee_on_both(line: &'static str) -> [Contender; 2] {
    [
        Contender { backend: "epoll", ..knee("knee (epoll)", line) },
        Contender { backend: "io_uring", ..knee("knee (io_uring)", line) },
    ]
}

/// A contender of `bench/`.
pub const fn bare(name: &'static str, program: &'static str, line: &'static str) -> Contender {
    contender(name, BenchProgram::Bare(program), line, reader::bare)
}

/// Another load generator, called as its program is.
pub const fn peer(program: &'static str, line: &'static str, read: ReadReport) -> Contender {
    contender(program, BenchProgram::Peer(program), line, read)
}

const KNEE: [Contender; 2] = knee_on_both(
    "run {url} -c {connections} -t 1 -d {ms}ms --warmup 0s --backend {backend}{arrivals} --json - \
     --quiet",
);
pub const KNEE_EPOLL: Contender = KNEE[0];
pub const KNEE_URING: Contender = KNEE[1];
pub const KNEE_EPOLL_UNSTAMPED: Contender = knee(
    "knee (epoll, no timestamps)",
    "run {url} -c {connections} -t 1 -d {ms}ms --warmup 0s --backend epoll --timestamps off\
     {arrivals} --json - --quiet",
);

/// An open loop that polls all the time.
pub const BARE_SPIN: Contender =
    bare("bare spin loop", "open_spin", "{port} {connections} {rate} {seconds}{poisson}");
/// An open loop that sleeps, then polls.
pub const BARE_HYBRID: Contender =
    bare("bare hybrid loop", "open_hybrid", "{port} {connections} {rate} {seconds}{poisson}");
pub const WRK2: Contender =
    peer("wrk2", "-t1 -c{connections} -d{whole}s -R{rate} --latency {url}", reader::wrk);
/// oha at a constant rate.
pub const OHA_RATE: Contender = peer(
    "oha",
    "--no-tui --output-format json -z {ms}ms -c {connections} -q {rate} {url}",
    reader::oha,
);
/// Contenders of constant rates.
pub const OPEN_LOOPS: &[Contender] =
    &[BARE_SPIN, BARE_HYBRID, KNEE_EPOLL, KNEE_URING, WRK2, OHA_RATE];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::closed::{BARE_EPOLL, BARE_EPOLL_STAMPED, WRK};

    #[test]
    fn a_load_becomes_a_command_line_or_nothing() {
        let closed = LineValues::of(0.3).with("port", 80).with("connections", 64);
        let open = closed.clone().with_rate(OfferedRate::Constant(1_000.0));
        let line = |contender: Contender, values| contender.arguments(values).ok();
        assert_eq!(line(WRK, &closed).unwrap(), "-t1 -c64 -d1s --latency http://127.0.0.1:80/");
        assert_eq!(line(WRK2, &closed), None);
        assert_eq!(line(BARE_EPOLL, &closed).unwrap(), "80 64 0.3");
        assert_eq!(line(BARE_EPOLL_STAMPED, &closed).unwrap(), "80 64 0.3 stamped");
        assert_eq!(line(BARE_SPIN, &open).unwrap(), "80 64 1000 0.3");
        assert_eq!(line(BARE_SPIN, &closed), None);
        assert!(line(KNEE_URING, &open).unwrap().contains(" -d 300ms --warmup 0s "));
    }

    #[test]
    fn only_knee_may_call_its_run_invalid() {
        let wrk = WRK.program;
        assert!(BenchProgram::Knee.accepts(Some(3)) && !BenchProgram::Knee.accepts(Some(2)));
        assert!(wrk.accepts(Some(0)) && !wrk.accepts(Some(3)));
        assert!(
            BenchProgram::KneeUnserved.accepts(Some(1)) && !BenchProgram::Knee.accepts(Some(1))
        );
        assert!(!wrk.accepts(None));
    }

    #[test]
    fn a_command_line_is_split_as_a_shell_does() {
        let values = LineValues::default().with("port", 81).with("body", r#"{"text":"{port}"}"#);
        let words = |line| split(&values.fill(line).unwrap());
        let expected = ["-d1s", "-H", "Connection: close", "http://127.0.0.1:81/"];
        assert_eq!(words("-d1s -H 'Connection: close' {url}"), expected);
        assert_eq!(words("-d '{body}' '{ {port}'"), ["-d", r#"{"text":"81"}"#, "{ 81"]);
    }

    #[test]
    fn a_placeholder_has_a_value_or_is_an_error() {
        let values = LineValues::default().with("port", 81).with("iperf3_cc", " -C cubic");
        assert_eq!(values.fill("-p {port} -J{iperf3_cc}").unwrap(), "-p 81 -J -C cubic");
        for kept in [r#"{"a":{"b":1}}"#, "{}", "{ port }", "{", "a}", "{'a': {-1}}"] {
            assert_eq!(values.fill(kept).unwrap(), kept);
        }
        for bad in ["{rate}", "{Port}", "{0}", "{port", "{port {port}", "{port-2}", "{_}", "{é}"] {
            let why = values.fill(&format!("{{port}} {bad}")).unwrap_err();
            assert!(why.starts_with("no value of {") || why.starts_with("no end of {"), "{why}");
        }
        let bad = LineValues::default().with("target", "http://{host}/").fill("{target}");
        assert_eq!(bad, Err("no value of {host} in http://{host}/".into()));
    }
}
