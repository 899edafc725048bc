//! Datagrams and queries of DNS: what sending one costs, and whether each leaves when it should.

use super::contender::{Contender, LineValues, OfferedRate, bare, knee, knee_on_both, peer};
use super::lab::{Lab, Measured};
use super::open::{columns, compare};
use super::round::{
    self, MarkdownTable, Rounds, ServedTurn, column, command_lines, contender_table, median, ratio,
    spread,
};
use super::{process, reader};
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

/// Those that send as fast as they can; who are compared stand next to each other.
const UNPACED: &[Contender] = &[BARE_SENDMMSG, KNEE, BARE_GSO, KNEE_GSO, IPERF3];
const WITH_GSO: [&str; 2] = [BARE_GSO.name, KNEE_GSO.name];

fn values(seconds: f64, rate_per_s: f64) -> LineValues {
    LineValues::of(seconds).with("size", SIZE).with("rate", format!("{rate_per_s:.0}"))
}

/// Datagrams per second, their price, and how well a schedule is kept.
///
/// # Errors
/// A sender or the service fails.
pub fn run_udp(lab: &Lab) -> Result<String, String> {
    let measure = |sender: &Contender, rate| {
        if sender.name == IPERF3.name {
            return measure_iperf(lab);
        }
        let server = lab.serve_knee("udp --listen 127.0.0.1:0")?;
        lab.measure_at(server, sender, &values(lab.seconds(TURN_S), rate))
    };
    let alternate = |senders: &[Contender], rate: f64| {
        round::alternate(lab, ROUNDS_FACTOR, senders, |sender| measure(sender, rate))
    };
    let unpaced = alternate(&lab.present(UNPACED), 0.0)?;
    let reached = unpaced.iter().find(|one| one.contender.name == KNEE.name);
    let reached = reached.map_or(0.0, |one| median(&one.each(Measured::per_s)));
    let rate = PACED_SHARE * reached;
    let paced = alternate(&[KNEE_POISSON], rate)?;
    let shown = unpaced.iter().chain(&paced);
    let shown = shown.map(|one| one.contender.shown(&values(TURN_S, rate).with("port", 9000)));
    Ok(format!(
        "## Datagrams: what one costs, and whether it leaves when it should\n\n\
         {SIZE} bytes to `knee serve udp`, from the bare loops as well, whose datagrams it \
         takes for a stranger's. One sending thread.\n\n{}\
         A Poisson schedule at {:.0} % of what knee reaches without one, and how late datagrams \
         left:\n\n{}{}",
        unpaced_table(unpaced.as_slice()),
        PACED_SHARE * 100.0,
        paced_table(&paced, rate),
        command_lines(shown)?
    ))
}

/// iperf3 counts at both ends: its client sends to nothing but its server.
fn measure_iperf(lab: &Lab) -> Result<Measured, String> {
    let server = format!("-s -1 --forceflush -p {}", process::free_port()?);
    let values = values(lab.seconds(TURN_S), 0.0);
    let measure = |port| lab.measure(&IPERF3, &values.with("port", port));
    let (measured, _) = lab.serve(IPERF3.program, &server)?.serve_once(measure)?;
    Ok(measured)
}

/// Each sender beside the loop that makes the same system calls and nothing else.
fn unpaced_table(all: &[Rounds<Measured>]) -> String {
    let (rate, cost) = (|m: &Measured| Some(m.per_s()), |m: &Measured| Some(m.cpu_s_per_million()));
    let columns = |floor| {
        [
            column("datagrams/s", 0, rate as fn(&Measured) -> Option<f64>),
            column("CPU s per million", 3, cost),
            ratio("rate against its bare loop", rate, floor),
            ratio("CPU against its bare loop", cost, floor),
        ]
    };
    let plain = contender_table("sender", &columns(BARE_SENDMMSG.name), &[], all);
    let gso = contender_table("sender", &columns(BARE_GSO.name), &[], all);
    let is_gso = |line: &str| WITH_GSO.iter().any(|name| line.starts_with(&format!("| {name} ")));
    let rows = plain.lines().zip(gso.lines());
    let rows = rows.map(|(plain, gso)| if is_gso(plain) { gso } else { plain });
    rows.map(|row| format!("{row}\n")).collect()
}

fn paced_table(all: &[Rounds<Measured>], rate_per_s: f64) -> String {
    let mut table = MarkdownTable::new(&["sender", "asked/s", "sent/s", "late p50 µs", "p99 µs"]);
    for one in all {
        let late = |q: usize| {
            let each = one.rounds.iter().filter_map(|m| m.sample.pacing_us);
            spread(&each.map(|us| us[q]).collect::<Vec<_>>(), 2)
        };
        let sent = spread(&one.each(Measured::per_s), 0);
        table.row(&[one.contender.name.into(), format!("{rate_per_s:.0}"), sent, late(0), late(1)]);
    }
    table.finish()
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
    let server = lab.serve_knee("dns --listen 127.0.0.1:0")?;
    let values = LineValues::of(lab.seconds(DNS_TURN_S))
        .with("port", server.port)
        .with("names", names.display())
        .with("queries", QUERIES);
    let rate = |m: &Measured| Some(m.per_s());
    let cost = |m: &Measured| Some(m.cpu_s_per_million());
    let per_core = |m: &Measured| Some(1e6 / m.cpu_s_per_million());
    let columns = [
        column("queries/s", 0, rate),
        column("CPU s per million", 2, cost),
        column("queries per s of a core", 0, per_core),
        ratio("against dnsperf", per_core, DNSPERF.name),
    ];
    let table = server.serve(|_| {
        round::contest(lab, DNS_ROUNDS_FACTOR, &CLOSED, &values, "generator", &columns)
    })?;
    Ok(format!(
        "## DNS: what a query costs\n\n\
         `knee serve dns` answers over UDP; {QUERIES} queries at once from one source port. Goal: \
         at least dnsperf's rate per core.\n\n{table}"
    ))
}

fn open(lab: &Lab, names: &Path) -> Result<String, String> {
    let file = lab.scratch("arrivals");
    let values = LineValues::of(lab.seconds(DNS_OPEN_TURN_S))
        .with_rate(OfferedRate::Constant(RATE_PER_S))
        .with("names", names.display());
    let present = lab.present(&OPEN);
    let rounds = round::alternate(lab, 1, &present, |contender| {
        let line = format!("dns --listen 127.0.0.1:0 --arrivals {}", file.display());
        let measured = lab.measure_at(lab.serve_knee(&line)?, contender, &values)?;
        let times: Result<Vec<i64>, _> = process::read(&file)?.lines().map(str::parse).collect();
        let times = times.map_err(|e| format!("{}: {e}", file.display()))?;
        Ok(ServedTurn { measured, seen: compare(&times, RATE_PER_S)? })
    })?;
    let shown = values.with("port", 5300);
    Ok(format!(
        "### {RATE_PER_S}/s\n\n\
         A constant rate from one source port. The kernel stamps each query at the server. Goal: \
         a coefficient of variation of the gaps under 0.1.\n\n{}{}",
        contender_table("generator", &columns(), &[], &rounds),
        command_lines(OPEN.iter().map(|c| c.shown(&shown)))?
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
