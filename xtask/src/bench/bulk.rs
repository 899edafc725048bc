//! Bulk transfer: one flow and 32, knee beside iperf3 and bare loops, with what a GiB costs.

use super::contender::{BenchProgram, Contender, ContenderReport, LineValues, bare, knee, peer};
use super::lab::Lab;
use super::process::{self, BenchServer};
use super::reader::{json, number};
use super::round::{Contest, Turn, column, ratio};

/// Short turns, as the host may change its speed from second to second; iperf3 takes whole seconds.
const TURN_S: f64 = 1.0;

/// `{iperf3_cc}` and its like are the congestion control after the option that names it.
const BARE: Contender =
    Contender { read: read_bare, ..bare("bare loop", "bulk_send", "{port} {seconds}{bare_cc}") };
const BARE_COPYING: Contender = Contender { name: "bare loop, copying", ..BARE };
const IPERF3: Contender =
    peer("iperf3", "-c 127.0.0.1 -p {port} -P {flows} -t {whole} -J{iperf3_cc}", read_iperf3);
const KNEE: Contender = Contender {
    read: read_knee,
    ..knee(
        "knee",
        "latency 127.0.0.1:{port} --scenarios {flows}/0 -d {seconds}s --threads 1 --json - \
         --quiet{knee_cc}",
    )
};
/// The bare loops carry one flow.
const ONE_FLOW: &[Contender] = &[BARE, BARE_COPYING, IPERF3, KNEE];
const FLOWS: &[Contender] = &[IPERF3, KNEE];

/// Throughput and its cost, with one flow and with 32.
///
/// # Errors
/// A contender fails.
pub fn run(lab: &Lab) -> Result<String, String> {
    let mut text = "## Bulk transfer: uploads over loopback\n\n\
         The receiver has one core, the sender the other, each end one thread (iperf3 too). The \
         bare loop writes 512 KiB at a time to a blocking socket; its receiver throws away what \
         comes (MSG_TRUNC), as knee's does, or copies it, as iperf3's does. CPU s per GiB is of \
         both ends together: as the kernel accounts it to their processes, and of knee as it says \
         itself, since its trial without flows comes before. Ratios are of the same round, to the \
         first row.\n\n"
        .to_string();
    for (contenders, flows, control) in
        [(ONE_FLOW, 1, "cubic"), (FLOWS, 32, "cubic"), (ONE_FLOW, 1, ""), (FLOWS, 32, "")]
    {
        let shown = if control.is_empty() { "the host's congestion control" } else { control };
        let who = format!("{flows} flow{}, {shown}", if flows == 1 { "" } else { "s" });
        let values = values(lab.seconds(TURN_S), flows, control);
        let first = contenders.iter().find(|c| lab.program(c.program).is_some());
        let first = first.map_or(KNEE.name, |contender| contender.name);
        let speed = |t: &Turn<()>| Some(t.per_s() * f64::from(1 << 30) * 8.0 / 1e9);
        let cost = |t: &Turn<()>| {
            Some(t.sample.cpu_s.unwrap_or(t.cpu_s() + t.cpu_server_s) / t.sample.requests)
        };
        let columns = [
            column("Gbit/s", 1, speed),
            ratio("ratio", speed, first),
            column("CPU s per GiB", 3, cost),
            ratio("ratio of CPU", cost, first),
        ];
        let contest = Contest { who: &who, contenders, values, factor: 1 };
        text += &contest.run(lab, &|sender| receiver(lab, sender), &columns)?;
    }
    Ok(text)
}

/// The receiver for a sender. Those of others end with their flows.
fn receiver(lab: &Lab, sender: &Contender) -> Result<BenchServer, String> {
    if sender.name == KNEE.name {
        return lab.serve_knee("latency --listen 127.0.0.1:0 --threads 1");
    }
    let receiver = if sender.name == IPERF3.name {
        let line = format!("-s -1 --forceflush -p {}", process::free_port()?);
        lab.serve(IPERF3.program, &line)?
    } else {
        let taken = if sender.name == BARE_COPYING.name { "copy" } else { "discard" };
        lab.serve(BenchProgram::Bare("bulk_receive"), &format!("0 {taken}"))?
    };
    Ok(receiver.once())
}

fn values(seconds: f64, flows: u32, control: &str) -> LineValues {
    let option = |name: &str| match control {
        "" => String::new(),
        control => format!("{name}{control}"),
    };
    LineValues::of(seconds)
        .with("flows", flows)
        .with("bare_cc", option(" "))
        .with("iperf3_cc", option(" -C "))
        .with("knee_cc", option(" --cc "))
}

/// GiB in the place of requests.
fn transfer(bytes: f64, seconds: f64) -> ContenderReport {
    ContenderReport::new(bytes / f64::from(1 << 30), seconds, 0.0)
}

fn read_bare(out: &str) -> Result<ContenderReport, String> {
    let line = json(out)?;
    Ok(transfer(number(&line, "/bytes")?, number(&line, "/seconds")?))
}

/// The report's trial with flows; an idle one comes before it.
fn read_knee(out: &str) -> Result<ContenderReport, String> {
    let value = json(out)?;
    let trials = value["trials"].as_array().ok_or("no trials")?;
    let trial = trials.iter().find(|t| t.pointer("/flows/up/flows").is_some_and(|n| n.is_u64()));
    let trial = trial.ok_or("no trial with flows")?;
    let seconds = number(trial, "/duration_ns")? / 1e9;
    let bytes = number(trial, "/flows/up/total_kib_per_s")? * 1024.0 * seconds;
    let report = transfer(bytes, seconds);
    let cpu_s = number(trial, "/flows/cpu_s_per_gib")? * report.requests;
    let valid = Some(value["verdict"] == "valid");
    Ok(ContenderReport { valid, cpu_s: Some(cpu_s), ..report })
}

/// `-J`.
fn read_iperf3(out: &str) -> Result<ContenderReport, String> {
    let report = json(out)?;
    let received = |name: &str| number(&report, &format!("/end/sum_received/{name}"));
    Ok(transfer(received("bytes")?, received("seconds")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_ends_say_is_read() {
        let knee = r#"{"trials": [
            {"duration_ns": 1000000000, "flows": {"up": null, "cpu_s_per_gib": null}},
            {"duration_ns": 1000000000,
             "flows": {"up": {"flows": 32, "total_kib_per_s": 1048576}, "cpu_s_per_gib": 0.1}}
        ]}"#;
        let read = read_knee(knee).unwrap();
        assert_eq!((read.requests, read.seconds, read.cpu_s), (1.0, 1.0, Some(0.1)));
        assert!(read_knee(r#"{"trials": []}"#).is_err());
        let iperf3 = r#"{"end": {"sum_received": {"bytes": 2147483648, "seconds": 2.0}}}"#;
        let bare = r#"{"bytes": 2147483648, "seconds": 2.0, "cpu_s": 1.0}"#;
        for read in [read_iperf3(iperf3).unwrap(), read_bare(bare).unwrap()] {
            assert_eq!((read.requests, read.seconds), (2.0, 2.0));
        }
    }

    #[test]
    fn all_command_lines_are_filled() {
        for control in ["", "cubic"] {
            let values = values(1.0, 32, control).with("port", 7);
            for contender in ONE_FLOW {
                let line = contender.arguments(&values).unwrap();
                assert_eq!(line.contains("cubic"), !control.is_empty(), "{line}");
            }
        }
    }
}
