//! Values of `knee udp` and `knee serve udp`, and options that make no sense together.

use super::RawUdp;
use crate::args::{Choices, parse_count, parse_whole, refuse_first, service_address};
use crate::failure::Failure;
use crate::resolved_options::Typed;
use knee_load::experiment::udp::{ClientsAs, ServiceMode, UdpTrialSpec};
use knee_load::spec::{AskedArrival, ParseError};
use serde::{Serialize, Serializer};
use serde_json::Value;

/// What a service does with a datagram.
pub const MODES: Choices<ServiceMode> = &[("sink", ServiceMode::Sink), ("echo", ServiceMode::Echo)];

/// What carries clients.
pub const CARRIERS: Choices<ClientsAs> = &[
    ("multiplexed", ClientsAs::Multiplexed),
    ("threads", ClientsAs::Threads),
    ("processes", ClientsAs::Processes),
];

/// Kinds of clients that have a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Those whose difference was published.
    Published,
}

pub const PRESETS: Choices<Preset> = &[("published", Preset::Published)];

/// Serializes the kinds of `--explain` as they are typed: without any it is a flag.
pub fn explained<S: Serializer>(
    kinds: &Option<Vec<String>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match kinds {
        Some(kinds) if kinds.is_empty() => true.serialize(serializer),
        kinds => kinds.serialize(serializer),
    }
}

/// The port of a service that takes datagrams, unless another is given.
pub const PORT: u16 = 7007;

/// The host of a service and, unless it is [`PORT`], its port: always `HOST:PORT` afterwards.
pub fn parse_service(text: &str) -> Result<String, ParseError> {
    service_address(text, "knee serve udp", PORT)
}

/// Bytes of a datagram.
pub fn parse_size(text: &str) -> Result<u32, ParseError> {
    let (least, most) = (UdpTrialSpec::SIZE_MIN, UdpTrialSpec::SIZE_MAX);
    match parse_whole(text)? {
        n if n < u64::from(least) => Err(ParseError(format!(
            "'{text}' is too small: each datagram carries a header of {least} bytes"
        ))),
        n if n > u64::from(most) => Err(ParseError(format!(
            "'{text}' is too large: UDP over IPv4 carries at most {most} bytes"
        ))),
        n => Ok(n as u32),
    }
}

/// Bytes of a receive buffer.
pub fn parse_buffer(text: &str) -> Result<u32, ParseError> {
    match parse_count(text)? {
        n if n > i32::MAX as u32 => {
            Err(ParseError(format!("'{text}' is too large: at most {}", i32::MAX)))
        }
        n => Ok(n),
    }
}

/// A processor, from 0.
pub fn parse_cpu(text: &str) -> Result<u32, ParseError> {
    let n = parse_whole(text)?;
    u32::try_from(n).map_err(|_| ParseError(format!("'{text}' is no processor's number")))
}

/// Processors by their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus(pub Vec<u32>);

impl Typed for Cpus {
    fn typed(&self) -> Value {
        let numbers: Vec<String> = self.0.iter().map(u32::to_string).collect();
        numbers.join(",").into()
    }
}

/// More than this no machine has.
const CPU_MAX: u32 = 65_535;

/// Processors such as `1` or `0,2-3`.
pub fn parse_cpus(text: &str) -> Result<Cpus, ParseError> {
    let error = || {
        ParseError(format!("'{text}' is no list of processors: give numbers such as 1 or 0,2-3"))
    };
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (parse_cpu(first), parse_cpu(last));
        let (Ok(first), Ok(last)) = (first, last) else {
            return Err(error());
        };
        if first > last || last > CPU_MAX {
            return Err(error());
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(Cpus(cpus))
}

/// What the options ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpTask {
    Run,
    Compare,
    Explain,
}

impl RawUdp {
    /// What the options ask for.
    pub(super) fn kind(&self) -> UdpTask {
        match (self.compare.is_empty(), &self.explain) {
            (_, Some(_)) => UdpTask::Explain,
            (false, None) => UdpTask::Compare,
            (true, None) => UdpTask::Run,
        }
    }

    pub(super) fn refuse_contradictions(&self) -> Result<(), Failure> {
        let kind = self.kind();
        let is_own = self.service_address.is_none();
        let token = self.token.option();
        let with_length = self.schedule().filter(AskedArrival::takes_length);
        let lasts = self.datagrams.is_some() && self.duration.is_none();
        let name = with_length.as_ref().map_or("", AskedArrival::name);
        let (option, how) = match kind {
            UdpTask::Explain => ("--explain", "WAIT*N, such as 'yield*64'"),
            _ => ("--compare", "WAIT*N or ARRIVAL@RATE*N"),
        };
        let (is_run, is_several) = (kind == UdpTask::Run, kind != UdpTask::Run);
        let (compares, explains) = (kind == UdpTask::Compare, kind == UdpTask::Explain);
        let each = format!("{option} says of each kind of clients what it does: {how}");
        refuse_first(&[
            (
                is_own && token.is_some(),
                token.unwrap_or_default(),
                "the built-in service needs none: give HOST",
            ),
            (
                self.threads.is_some() && self.carried_as() != ClientsAs::Multiplexed,
                "--threads",
                "each client has a thread of its own: leave it or --clients-as out",
            ),
            (is_run && self.repeats.is_some(), "--repeats", "needs --compare or --explain"),
            (
                is_run && lasts && with_length.is_some(),
                "--wait",
                &format!("a {name} takes its length from --duration: give it too"),
            ),
            (is_several && self.wait.is_some(), "--wait", &each),
            (is_several && self.arrival.is_some(), "--arrival", &each),
            (is_several && self.rate.is_some(), "--rate", &each),
            (is_several && self.clients.is_some(), "--clients", &each),
            (
                is_several && self.datagrams.is_some(),
                "--datagrams",
                &format!("with {option} each trial lasts for --duration: leave one out"),
            ),
            (
                compares && self.compare.len() < 2,
                "--compare",
                "takes two kinds of clients or more, such as 'yield*64' 'exp(200us)*128'",
            ),
            (
                explains && self.explain.as_ref().is_some_and(|laws| laws.len() % 3 == 1),
                "--explain",
                "takes two kinds of clients, or none for 'yield*64' 'exp(200us)*128'",
            ),
            (
                explains && self.repeats.is_some_and(|n| n < 3),
                "--repeats",
                "an explanation takes at least 3 to know what chance does",
            ),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_numbers_and_ranges() {
        for (text, cpus) in [("1", vec![1]), ("3,0-1,1", vec![0, 1, 3])] {
            assert_eq!(parse_cpus(text), Ok(Cpus(cpus)));
        }
        for text in ["", "1-", "3-1", "one", "0,,1", "0-70000"] {
            assert!(parse_cpus(text).is_err(), "{text}");
        }
    }
}
