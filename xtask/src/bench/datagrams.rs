//! Datagrams and queries of DNS: what sending one costs, and whether each leaves when it should.

use super::contender::{Contender, LineValues, OfferedRate, bare, knee, knee_on_both, peer};
use super::lab::Lab;
use super::round::{Contest, Turn, column, cost, median, rate, ratio};
use super::{open, process, reader};
use crate::repo::write;
use std::path::Path;

/// The host may change its speed from second to second: short turns, and several times the rounds.
const TURN_S: f64 = 1.0;
const ROUNDS_FACTOR: usize = 3;
/// Payload of each datagram in bytes.
const SIZE: u32 = 64;
/// Schedules are tried at this share of what knee reaches without one.
const PACED_SHARE: f64 = 0.6;

const fn knee_udp(name: &'static str, line: &'static str) -> Contender {
    Contender { read: reader::knee_udp, ..knee(name, line) }
}

const BARE_SENDMMSG: Contender =
    bare("bare sendmmsg loop", "udp_sendmmsg", "{port} {size} {seconds}");
const KNEE: Contender = knee_udp(
    "knee",
    "udp 127.0.0.1:{port} --wait none --size {size} -t 1 -d {ms}ms --json - --quiet",
);
const BARE_GSO: Contender = bare("bare UDP_SEGMENT loop", "udp_gso", "{port} {size} {seconds}");
const KNEE_GSO: Contender = knee_udp(
    "knee --gso",
    "udp 127.0.0.1:{port} --wait none --gso --size {size} -t 1 -d {ms}ms --json - --quiet",
);
const IPERF3: Contender = Contender {
    name: "iperf3 -u -b 0 (to its own server)",
    ..peer("iperf3", "-c 127.0.0.1 -p {port} -u -b 0 -l {size} -t {whole} -J", reader::iperf3_udp)
};
const KNEE_POISSON: Contender = knee_udp(
    "knee, Poisson",
    "udp 127.0.0.1:{port} --wait poisson -R {rate}/s --size {size} -t 1 -d {ms}ms --json - --quiet",
);

/// Datagrams per second, their price, and how well a schedule is kept.
///
/// # Errors
/// A sender or the service fails.
pub fn run_udp(lab: &Lab) -> Result<String, String> {
    let contest = |contenders, rate_per_s| Contest {
        who: "sender",
        contenders,
        values: values(lab.seconds(TURN_S), rate_per_s),
        factor: ROUNDS_FACTOR,
    };
    let serve = |sender: &Contender| {
        if sender.name != IPERF3.name {
            return lab.serve_knee("udp --listen 127.0.0.1:0");
        }
        // It counts at both ends: its client sends to nothing but its server.
        let line = format!("-s -1 --forceflush -p {}", process::free_port()?);
        Ok(lab.serve(IPERF3.program, &line)?.once())
    };
    let columns = |floor| {
        [
            column("datagrams/s", 0, rate),
            column("CPU s per million", 3, cost),
            ratio("rate against its bare loop", rate, floor),
            ratio("CPU against its bare loop", cost, floor),
        ]
    };
    let single = contest(&[BARE_SENDMMSG, KNEE, IPERF3], 0.0);
    let rounds = single.measure(lab, &serve, || Ok(()))?;
    let reached = rounds.iter().find(|one| one.contender.name == KNEE.name);
    let reached = reached.map_or(0.0, |one| median(&one.each(|turn| turn.per_s())));
    let rate_per_s = PACED_SHARE * reached;
    let late = [
        column("sent/s", 0, rate),
        column("late p50 µs", 2, |t: &Turn<()>| Some(t.sample.pacing_us?[0])),
        column("p99 µs", 2, |t| Some(t.sample.pacing_us?[1])),
    ];
    Ok(format!(
        "## Datagrams: what one costs, and whether it leaves when it should\n\n\
         {SIZE} bytes to `knee serve udp`, from the bare loops as well, whose datagrams it \
         takes for a stranger's. One sending thread.\n\n{}{}\
         A Poisson schedule of {rate_per_s:.0}/s, {:.0} % of what knee reaches without one, and how \
         late datagrams left:\n\n{}",
        single.show(lab, &columns(BARE_SENDMMSG.name), &[], &rounds)?,
        contest(&[BARE_GSO, KNEE_GSO], 0.0).run(lab, &serve, &columns(BARE_GSO.name))?,
        PACED_SHARE * 100.0,
        contest(&[KNEE_POISSON], rate_per_s).run(lab, &serve, &late)?,
    ))
}

fn values(seconds: f64, rate_per_s: f64) -> LineValues {
    LineValues::of(seconds).with("size", SIZE).with("rate", format!("{rate_per_s:.0}"))
}

const DNS_TURN_S: f64 = 2.0;
const DNS_ROUNDS_FACTOR: usize = 2;
const QUERIES: usize = 100;

const DNS_OPEN_TURN_S: f64 = 3.0;
const RATE_PER_S: f64 = 1_000.0;

const DNSPERF: Contender = peer(
    "dnsperf",
    "-s 127.0.0.1 -p {port} -d {names} -c 1 -T 1 -q {queries} -l {whole}",
    reader::dnsperf,
);

const KNEE_CLOSED: [Contender; 2] = knee_on_both(
    "run dns://127.0.0.1:{port} --targets {names} --vusers {queries} -c 1 -t 1 -d {ms}ms --warmup \
     0s --backend {backend} --json - --quiet",
);
const CLOSED: [Contender; 3] = [KNEE_CLOSED[0], KNEE_CLOSED[1], DNSPERF];

const KNEE_OPEN: [Contender; 2] = knee_on_both(
    "run dns://127.0.0.1:{port} --targets {names}{arrivals} -c 1 -t 1 -d {ms}ms --warmup 0s \
     --backend {backend} --json - --quiet",
);
const OPEN: [Contender; 3] = [
    KNEE_OPEN[0],
    KNEE_OPEN[1],
    Contender {
        line: "-s 127.0.0.1 -p {port} -d {names} -c 1 -T 1 -Q {rate} -l {whole}",
        ..DNSPERF
    },
];

/// Queries over UDP from one source port, in a closed loop and at a constant rate.
///
/// # Errors
/// A contender or the server fails.
pub fn run_dns(lab: &Lab) -> Result<String, String> {
    let names = lab.scratch("names");
    write(&names, "www.example.com A\nexample.com SOA\n")?;
    Ok(closed(lab, &names)? + &open(lab, &names)?)
}

fn closed(lab: &Lab, names: &Path) -> Result<String, String> {
    let contest = Contest {
        who: "generator",
        contenders: &CLOSED,
        values: LineValues::of(lab.seconds(DNS_TURN_S))
            .with("names", names.display())
            .with("queries", QUERIES),
        factor: DNS_ROUNDS_FACTOR,
    };
    let per_core = |t: &Turn<()>| Some(1e6 / t.cpu_s_per_million());
    let columns = [
        column("queries/s", 0, rate),
        column("CPU s per million", 2, cost),
        column("queries per s of a core", 0, per_core),
        ratio("against dnsperf", per_core, DNSPERF.name),
    ];
    Ok(format!(
        "## DNS: what a query costs\n\n\
         `knee serve dns` answers over UDP; {QUERIES} queries at once from one source port. Goal: \
         at least dnsperf's rate per core.\n\n{}",
        contest.run(lab, &|_| lab.serve_knee("dns --listen 127.0.0.1:0"), &columns)?
    ))
}

fn open(lab: &Lab, names: &Path) -> Result<String, String> {
    let contest = Contest {
        who: "generator",
        contenders: &OPEN,
        values: LineValues::of(lab.seconds(DNS_OPEN_TURN_S))
            .with_rate(OfferedRate::Constant(RATE_PER_S))
            .with("names", names.display()),
        factor: 1,
    };
    let table = open::schedule(lab, &contest, RATE_PER_S, |_, file| {
        lab.serve_knee(&format!("dns --listen 127.0.0.1:0 --arrivals {}", file.display()))
    })?;
    Ok(format!(
        "### {RATE_PER_S}/s\n\n\
         A constant rate from one source port. The kernel stamps each query at the server. Goal: \
         a coefficient of variation of the gaps under 0.1.\n\n{table}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_asked_for_in_whole_datagrams_per_second() {
        let values = values(0.3, 199_999.6).with("port", 9000);
        let line = KNEE_POISSON.arguments(&values).unwrap();
        assert_eq!(
            line,
            "udp 127.0.0.1:9000 --wait poisson -R 200000/s --size 64 -t 1 -d 300ms --json - --quiet"
        );
    }
}
