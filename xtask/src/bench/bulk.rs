//! Bulk transfer: one flow and 32, knee beside iperf3 and bare loops, with what a GiB costs.

use super::lab::Lab;
use super::peer;
use super::process::{self, Server};
use super::stats::{ratios, spread};
use super::table::{Table, command_lines};
use crate::tools;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Short turns, as the host may change its speed from second to second; iperf3 takes whole seconds.
const TURN_S: f64 = 1.0;
/// The place of the port in a command line.
const PORT: &str = "PORT";
/// No turn may take longer.
const LIMIT: Duration = Duration::from_secs(30);

/// Who carries flows.
struct Contender {
    name: String,
    /// The two ends and their command lines.
    receiver: (PathBuf, String),
    sender: (PathBuf, String),
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Knee,
    Iperf3,
    Bare,
}

/// One turn.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Turn {
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

fn contenders(lab: &Lab, flows: u32, control: &str) -> Vec<Contender> {
    let seconds = lab.seconds(TURN_S);
    let whole = seconds.ceil();
    let option = |name: &str| match control {
        "" => String::new(),
        control => format!("{name}{control}"),
    };
    let mut all = Vec::new();
    if flows == 1 {
        for (name, mode) in [("bare loop", "discard"), ("bare loop, copying", "copy")] {
            all.push(Contender {
                name: name.to_string(),
                receiver: (lab.bare.join("bulk_receive"), format!("0 {mode}")),
                sender: (
                    lab.bare.join("bulk_send"),
                    format!("{PORT} {seconds}{}", option(" ")),
                ),
                kind: Kind::Bare,
            });
        }
    }
    if let Some(iperf3) = tools::find("iperf3") {
        let control = option(" -C ");
        all.push(Contender {
            name: "iperf3".to_string(),
            receiver: (iperf3.clone(), format!("-s -1 -p {PORT}")),
            sender: (
                iperf3,
                format!("-c 127.0.0.1 -p {PORT} -P {flows} -t {whole} -J{control}"),
            ),
            kind: Kind::Iperf3,
        });
    }
    all.push(Contender {
        name: "knee".to_string(),
        receiver: (
            lab.knee.clone(),
            "serve latency --listen 127.0.0.1:0 --threads 1".to_string(),
        ),
        sender: (
            lab.knee.clone(),
            format!(
                "latency 127.0.0.1:{PORT} --scenarios {flows}/0 -d {seconds}s --threads 1 \
                 --json - --quiet{}",
                option(" --cc ")
            ),
        ),
        kind: Kind::Knee,
    });
    all
}

/// Lets them take turns.
fn table(lab: &Lab, flows: u32, control: &str) -> Result<String, String> {
    let all = contenders(lab, flows, control);
    let mut turns: Vec<Vec<Turn>> = all.iter().map(|_| Vec::new()).collect();
    for _ in 0..lab.rounds {
        for (contender, turns) in all.iter().zip(&mut turns) {
            let turn = contender.turn(lab, flows);
            turns.push(turn.map_err(|e| format!("{}: {e}", contender.name))?);
        }
    }
    let control = if control.is_empty() {
        "the host's congestion control"
    } else {
        control
    };
    let plural = if flows == 1 { "" } else { "s" };
    let title = format!("{flows} flow{plural}, {control}");
    let mut table = Table::new(&[&title, "Gbit/s", "ratio", "CPU s per GiB", "ratio of CPU"]);
    let speeds = |t: &[Turn]| t.iter().map(|t| t.gbit_per_s).collect::<Vec<f64>>();
    let costs = |t: &[Turn]| t.iter().map(|t| t.cpu_s_per_gib).collect::<Vec<f64>>();
    let (first_speeds, first_costs) = (speeds(&turns[0]), costs(&turns[0]));
    for (contender, turns) in all.iter().zip(&turns) {
        table.row(&[
            contender.name.clone(),
            spread(&speeds(turns), 1),
            spread(&ratios(&speeds(turns), &first_speeds), 2),
            spread(&costs(turns), 3),
            spread(&ratios(&costs(turns), &first_costs), 2),
        ]);
    }
    let line = |(program, arguments): &(PathBuf, String)| {
        let program = program.file_name().unwrap_or_default().to_string_lossy();
        format!("{program} {arguments}")
    };
    let lines = all
        .iter()
        .flat_map(|c| [line(&c.receiver), line(&c.sender)]);
    Ok(format!("{}{}", table.finish(), command_lines(lines)))
}

impl Contender {
    fn turn(&self, lab: &Lab, flows: u32) -> Result<Turn, String> {
        if self.kind == Kind::Iperf3 {
            return self.iperf3(lab);
        }
        let server = lab.serve(&self.receiver.0, &split(&self.receiver.1, 0))?;
        let arguments = split(&self.sender.1, server.port);
        let sender = process::pinned(lab.generator_core, &self.sender.0, &arguments);
        let run = process::run(sender, LIMIT)?;
        let said = |e: String| format!("{e}: {}{}", run.stdout, run.stderr);
        match self.kind {
            Kind::Knee => {
                server.stop()?;
                read_knee(&json(&run.stdout).map_err(said)?, flows)
            }
            _ => bare(server, &json(&run.stdout).map_err(said)?),
        }
    }

    /// Its server says where it listens only to people, so the client tries until it is there.
    fn iperf3(&self, lab: &Lab) -> Result<Turn, String> {
        let port = process::free_port()?;
        let arguments = split(&self.receiver.1, port);
        let _server = Quiet::start(process::pinned(
            lab.server_core,
            &self.receiver.0,
            &arguments,
        ))?;
        let arguments = split(&self.sender.1, port);
        let mut said = String::new();
        for _ in 0..40 {
            std::thread::sleep(Duration::from_millis(50));
            let sender = process::pinned(lab.generator_core, &self.sender.0, &arguments);
            let run = process::run(sender, LIMIT)?;
            if run.exit_code == Some(0) {
                return read_iperf3(&json(&run.stdout)?);
            }
            said = run.stdout;
        }
        Err(said)
    }
}

/// A process whose output nobody reads, ended when dropped.
struct Quiet(Child);

impl Quiet {
    fn start(mut command: Command) -> Result<Quiet, String> {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().map_err(|e| format!("{command:?}: {e}"))?;
        Ok(Quiet(child))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The receiver ends with its flows, and says what it took.
fn bare(server: Server, sent: &Value) -> Result<Turn, String> {
    let received = json(&server.output()?)?;
    let bytes = peer::number(&received, "/bytes")?;
    let cpu_s = peer::number(&received, "/cpu_s")? + peer::number(sent, "/cpu_s")?;
    Ok(turn(bytes, peer::number(&received, "/seconds")?, cpu_s))
}

/// The report's trial with flows; an idle one comes before it.
fn read_knee(report: &Value, flows: u32) -> Result<Turn, String> {
    let trials = report["trials"].as_array().ok_or("no trials")?;
    let wanted =
        |t: &&Value| t.pointer("/flows/up/flows").and_then(Value::as_u64) == Some(flows.into());
    let trial = trials.iter().find(wanted).ok_or("no trial with flows")?;
    let kib_per_s = peer::number(trial, "/flows/up/total_kib_per_s")?;
    Ok(Turn {
        gbit_per_s: kib_per_s * 1024.0 * 8.0 / 1e9,
        cpu_s_per_gib: peer::number(trial, "/flows/cpu_s_per_gib")?,
    })
}

/// `-J`; its processor time is told as percent of a core over the run.
fn read_iperf3(report: &Value) -> Result<Turn, String> {
    let at = |path: &str| peer::number(report, &format!("/end/{path}"));
    let seconds = at("sum_received/seconds")?;
    let percent =
        at("cpu_utilization_percent/host_total")? + at("cpu_utilization_percent/remote_total")?;
    let cpu_s = percent / 100.0 * seconds;
    Ok(turn(at("sum_received/bytes")?, seconds, cpu_s))
}

fn turn(bytes: f64, seconds: f64, cpu_s: f64) -> Turn {
    Turn {
        gbit_per_s: bytes * 8.0 / seconds / 1e9,
        cpu_s_per_gib: cpu_s / (bytes / f64::from(1 << 30)),
    }
}

fn split(arguments: &str, port: u16) -> Vec<String> {
    let arguments = arguments.replace(PORT, &port.to_string());
    arguments.split_whitespace().map(String::from).collect()
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|e| format!("no JSON: {e}"))
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
        let read = read_knee(&knee, 32).unwrap();
        assert_eq!((read.gbit_per_s, read.cpu_s_per_gib), (8.192, 0.1));
        assert!(read_knee(&knee, 1).is_err());
        let iperf3 = json!({"end": {
            "sum_received": {"bytes": 2_147_483_648_u64, "seconds": 2.0},
            "cpu_utilization_percent": {"host_total": 100.0, "remote_total": 50.0},
        }});
        let read = read_iperf3(&iperf3).unwrap();
        assert_eq!(read.cpu_s_per_gib, 1.5);
        assert_eq!(read.gbit_per_s, 8.589_934_592);
        assert_eq!(split("-p PORT -J", 7), ["-p", "7", "-J"]);
    }
}
