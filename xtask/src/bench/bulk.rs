//! Bulk transfer: one flow and 32, knee beside iperf3 and bare loops, with what a GiB costs.

use super::contender::{BenchProgram, LineValues};
use super::lab::Lab;
use super::process;
use super::reader::{json, number};
use super::round::{MarkdownTable, command_lines, ratios, spread};
use serde_json::Value;

/// Short turns, as the host may change its speed from second to second; iperf3 takes whole seconds.
const TURN_S: f64 = 1.0;
/// Who carries flows: the two ends, each a program and its command line.
struct Contender {
    name: &'static str,
    receiver: (BenchProgram, &'static str),
    sender: (BenchProgram, &'static str),
    /// Reads what the sender and the receiver printed.
    read: fn(&Value, &str, u32) -> Result<ServedTurn, String>,
}

/// `{iperf3_cc}` and its like are the congestion control after the option that names it.
const CONTENDERS: &[Contender] = &[
    Contender {
        name: "bare loop",
        receiver: (BenchProgram::Bare("bulk_receive"), "0 discard"),
        sender: (BenchProgram::Bare("bulk_send"), "{port} {seconds}{bare_cc}"),
        read: read_bare,
    },
    Contender {
        name: "bare loop, copying",
        receiver: (BenchProgram::Bare("bulk_receive"), "0 copy"),
        sender: (BenchProgram::Bare("bulk_send"), "{port} {seconds}{bare_cc}"),
        read: read_bare,
    },
    Contender {
        name: "iperf3",
        receiver: (IPERF3, "-s -1 --forceflush -p {port}"),
        sender: (IPERF3, "-c 127.0.0.1 -p {port} -P {flows} -t {whole} -J{iperf3_cc}"),
        read: read_iperf3,
    },
    Contender {
        name: "knee",
        receiver: (BenchProgram::Knee, "serve latency --listen 127.0.0.1:0 --threads 1"),
        sender: (
            BenchProgram::Knee,
            "latency 127.0.0.1:{port} --scenarios {flows}/0 -d {seconds}s --threads 1 --json - \
             --quiet{knee_cc}",
        ),
        read: read_knee,
    },
];
const IPERF3: BenchProgram = BenchProgram::Peer("iperf3");

/// One turn.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ServedTurn {
    gbit_per_s: f64,
    /// Processor time of both ends per GiB received, in seconds.
    cpu_s_per_gib: f64,
}

/// Throughput and its cost, with one flow and with 32.
///
/// # Errors
/// A contender fails.
pub fn run(lab: &Lab) -> Result<String, String> {
    let mut text = "## Bulk transfer: uploads over loopback\n\n\
         The receiver has one core, the sender the other, each end one thread (iperf3 too). The \
         bare loop writes 512 KiB at a time to a blocking socket; its receiver throws away what \
         comes (MSG_TRUNC), as knee's does, or copies it, as iperf3's does. CPU s per GiB is of \
         both ends together. Ratios are of the same round, to the first row.\n\n"
        .to_string();
    for (flows, control) in [(1, "cubic"), (32, "cubic"), (1, ""), (32, "")] {
        text += &table(lab, flows, control)?;
    }
    Ok(text)
}

/// Lets them take turns.
fn table(lab: &Lab, flows: u32, control: &str) -> Result<String, String> {
    // The bare loops carry one flow.
    let is_able = |c: &&Contender| {
        let is_bare = matches!(c.sender.0, BenchProgram::Bare(_));
        lab.program(c.sender.0).is_some() && (flows == 1 || !is_bare)
    };
    let all: Vec<&Contender> = CONTENDERS.iter().filter(is_able).collect();
    let values = values(lab.seconds(TURN_S), flows, control);
    let mut turns: Vec<Vec<ServedTurn>> = all.iter().map(|_| Vec::new()).collect();
    for _ in 0..lab.rounds {
        for (contender, turns) in all.iter().zip(&mut turns) {
            let turn = contender.turn(lab, &values, flows);
            turns.push(turn.map_err(|e| format!("{}: {e}", contender.name))?);
        }
    }
    let control = if control.is_empty() { "the host's congestion control" } else { control };
    let plural = if flows == 1 { "" } else { "s" };
    let title = format!("{flows} flow{plural}, {control}");
    let mut table =
        MarkdownTable::new(&[&title, "Gbit/s", "ratio", "CPU s per GiB", "ratio of CPU"]);
    let speeds = |t: &[ServedTurn]| t.iter().map(|t| t.gbit_per_s).collect::<Vec<f64>>();
    let costs = |t: &[ServedTurn]| t.iter().map(|t| t.cpu_s_per_gib).collect::<Vec<f64>>();
    let (first_speeds, first_costs) = (speeds(&turns[0]), costs(&turns[0]));
    for (contender, turns) in all.iter().zip(&turns) {
        table.row(&[
            contender.name.to_owned(),
            spread(&speeds(turns), 1),
            spread(&ratios(&speeds(turns), &first_speeds), 2),
            spread(&costs(turns), 3),
            spread(&ratios(&costs(turns), &first_costs), 2),
        ]);
    }
    let shown = values.with("port", "PORT");
    let line = |(program, line): (BenchProgram, &str)| {
        Ok(format!("{} {}", program.name(), shown.fill(line)?))
    };
    let lines = all.iter().flat_map(|c| [line(c.receiver), line(c.sender)]);
    Ok(table.finish() + &command_lines(lines)?)
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

impl Contender {
    fn turn(&self, lab: &Lab, values: &LineValues, flows: u32) -> Result<ServedTurn, String> {
        let own_port = values.clone().with("port", process::free_port()?);
        let server = lab.serve(self.receiver.0, &own_port.fill(self.receiver.1)?)?;
        let send = |port| {
            let values = values.clone().with("port", port);
            lab.run(self.sender.0, &values.fill(self.sender.1)?).map(|run| run.ended)
        };
        // Other receivers end with their flows.
        let (sent, received) = match self.receiver.0 {
            BenchProgram::Knee => (server.serve(send)?, String::new()),
            _ => server.serve_once(send)?,
        };
        sent.read(|out| (self.read)(&json(out)?, &received, flows))
    }
}

fn read_bare(sent: &Value, received: &str, _: u32) -> Result<ServedTurn, String> {
    let received = json(received)?;
    let bytes = number(&received, "/bytes")?;
    let cpu_s = number(&received, "/cpu_s")? + number(sent, "/cpu_s")?;
    Ok(turn(bytes, number(&received, "/seconds")?, cpu_s))
}

/// The report's trial with flows; an idle one comes before it.
fn read_knee(report: &Value, _: &str, flows: u32) -> Result<ServedTurn, String> {
    let trials = report["trials"].as_array().ok_or("no trials")?;
    let wanted =
        |t: &&Value| t.pointer("/flows/up/flows").and_then(Value::as_u64) == Some(flows.into());
    let trial = trials.iter().find(wanted).ok_or("no trial with flows")?;
    let kib_per_s = number(trial, "/flows/up/total_kib_per_s")?;
    Ok(ServedTurn {
        gbit_per_s: kib_per_s * 1024.0 * 8.0 / 1e9,
        cpu_s_per_gib: number(trial, "/flows/cpu_s_per_gib")?,
    })
}

/// `-J`; its processor time is in percent of a core over the run.
fn read_iperf3(report: &Value, _: &str, _: u32) -> Result<ServedTurn, String> {
    let at = |path: &str| number(report, &format!("/end/{path}"));
    let seconds = at("sum_received/seconds")?;
    let percent =
        at("cpu_utilization_percent/host_total")? + at("cpu_utilization_percent/remote_total")?;
    let cpu_s = percent / 100.0 * seconds;
    Ok(turn(at("sum_received/bytes")?, seconds, cpu_s))
}

fn turn(bytes: f64, seconds: f64, cpu_s: f64) -> ServedTurn {
    ServedTurn {
        gbit_per_s: bytes * 8.0 / seconds / 1e9,
        cpu_s_per_gib: cpu_s / (bytes / f64::from(1 << 30)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_peers_say_is_read() {
        let knee = json!({"trials": [
            {"flows": {"up": null, "cpu_s_per_gib": null}},
            {"flows": {"up": {"flows": 32, "total_kib_per_s": 1e6}, "cpu_s_per_gib": 0.1}},
        ]});
        let read = read_knee(&knee, "", 32).unwrap();
        assert_eq!((read.gbit_per_s, read.cpu_s_per_gib), (8.192, 0.1));
        assert!(read_knee(&knee, "", 1).is_err());
        let iperf3 = json!({"end": {
            "sum_received": {"bytes": 2_147_483_648_u64, "seconds": 2.0},
            "cpu_utilization_percent": {"host_total": 100.0, "remote_total": 50.0},
        }});
        let read = read_iperf3(&iperf3, "", 1).unwrap();
        assert_eq!(read.cpu_s_per_gib, 1.5);
        assert_eq!(read.gbit_per_s, 8.589_934_592);
    }

    #[test]
    fn all_command_lines_are_filled() {
        for control in ["", "cubic"] {
            let values = values(1.0, 32, control).with("port", 7);
            for contender in CONTENDERS {
                values.fill(contender.receiver.1).unwrap();
                let line = values.fill(contender.sender.1).unwrap();
                assert_eq!(line.contains("cubic"), !control.is_empty(), "{line}");
            }
        }
    }
}
