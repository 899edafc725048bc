//! Datagrams: what sending one costs, and whether each leaves when it should.

use super::lab::{Lab, Measured};
use super::peer::{Sample, number};
use super::process::{self, Server};
use super::round;
use super::stats::{median, ratios, spread};
use super::table::{Table, command_lines};
use crate::tools;
use serde_json::Value;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Payload of each datagram.
const SIZE: u32 = 64;
/// The host may change its speed from second to second: short turns, and several times the rounds.
const TURN_S: f64 = 1.0;
const ROUNDS_FACTOR: usize = 3;
/// Schedules are tried at this share of what knee reaches without one.
const PACED_SHARE: f64 = 0.6;
/// iperf3's server may not listen yet when its client is started.
const IPERF_ATTEMPTS: usize = 20;

/// One who sends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sender {
    /// `bench/udp_sendmmsg.c`.
    BareSendmmsg,
    /// knee without a wait.
    Knee,
    /// `bench/udp_gso.c`.
    BareGso,
    /// knee without a wait, with --gso.
    KneeGso,
    /// iperf3 without a limit.
    Iperf,
    /// knee by a Poisson schedule of so many per second.
    KneePoisson(f64),
}

/// Those that send as fast as they can; who are compared stand next to each other.
const UNPACED: [Sender; 5] = [
    Sender::BareSendmmsg,
    Sender::Knee,
    Sender::BareGso,
    Sender::KneeGso,
    Sender::Iperf,
];

/// One turn of a sender.
struct Turn {
    measured: Measured,
    /// Median and 99th percentile of sent − intended, where there is a schedule.
    pacing_us: Option<[f64; 2]>,
}

impl Sender {
    fn name(self) -> String {
        match self {
            Sender::BareSendmmsg => "bare sendmmsg loop".into(),
            Sender::Knee => "knee".into(),
            Sender::BareGso => "bare UDP_SEGMENT loop".into(),
            Sender::KneeGso => "knee --gso".into(),
            Sender::Iperf => "iperf3 -u -b 0 (to its own server)".into(),
            Sender::KneePoisson(_) => "knee, Poisson".into(),
        }
    }

    /// The loop that makes the same system calls and nothing else.
    fn floor(self) -> Option<Sender> {
        match self {
            Sender::BareGso | Sender::KneeGso => Some(Sender::BareGso),
            Sender::BareSendmmsg | Sender::Knee | Sender::Iperf => Some(Sender::BareSendmmsg),
            Sender::KneePoisson(_) => None,
        }
    }

    fn program(self, lab: &Lab) -> Option<PathBuf> {
        match self {
            Sender::BareSendmmsg => Some(lab.bare.join("udp_sendmmsg")),
            Sender::BareGso => Some(lab.bare.join("udp_gso")),
            Sender::Iperf => tools::find("iperf3"),
            Sender::Knee | Sender::KneeGso | Sender::KneePoisson(_) => Some(lab.knee.clone()),
        }
    }

    fn arguments(self, port: u16, seconds: f64) -> Vec<String> {
        let ms = (seconds * 1e3).round();
        let knee = |how: String| {
            format!("udp 127.0.0.1:{port} {how} --size {SIZE} -t 1 -d {ms}ms --json - --quiet")
        };
        let line = match self {
            Sender::BareSendmmsg | Sender::BareGso => format!("{port} {SIZE} {seconds}"),
            Sender::Iperf => {
                // It takes whole seconds, and takes 0 for 10.
                let whole = seconds.round().max(1.0);
                format!("-c 127.0.0.1 -p {port} -u -b 0 -l {SIZE} -t {whole} -J")
            }
            Sender::Knee => knee("--wait none".into()),
            Sender::KneeGso => knee("--wait none --gso".into()),
            Sender::KneePoisson(rate) => knee(format!("--wait poisson -R {rate:.0}/s")),
        };
        line.split(' ').map(String::from).collect()
    }

    fn parse(self, out: &str) -> Result<(Sample, Option<[f64; 2]>), String> {
        let value: Value = serde_json::from_str(out).map_err(|e| format!("no JSON: {e}"))?;
        let at = |path: &str| number(&value, path);
        let sample = |requests: f64, seconds: f64| Sample {
            requests,
            seconds,
            ..Sample::default()
        };
        match self {
            Sender::BareSendmmsg | Sender::BareGso => {
                Ok((sample(at("/requests")?, at("/seconds")?), None))
            }
            Sender::Iperf => {
                let stream = "/end/streams/0/udp";
                let packets = at(&format!("{stream}/packets"))?;
                Ok((sample(packets, at(&format!("{stream}/seconds"))?), None))
            }
            Sender::Knee | Sender::KneeGso | Sender::KneePoisson(_) => {
                let trial = |path: &str| at(&format!("/trials/0/{path}"));
                let seconds = trial("duration_ns")? / 1e9;
                let sent = trial("ledger/intended")?
                    - trial("ledger/not_attempted")?
                    - trial("ledger/send_errors")?;
                let pacing = |q: &str| trial(&format!("offered/pacing_error_ns/{q}"));
                let pacing_us = match self {
                    Sender::KneePoisson(_) => Some([pacing("p50")? / 1e3, pacing("p99")? / 1e3]),
                    _ => None,
                };
                Ok((sample(sent, seconds), pacing_us))
            }
        }
    }

    /// Whether it has measured when it ends so. knee's 3 says that it calls its run invalid.
    fn accepts(self, exit_code: Option<i32>) -> bool {
        let knee = !matches!(self, Sender::BareSendmmsg | Sender::BareGso | Sender::Iperf);
        exit_code == Some(0) || (knee && exit_code == Some(3))
    }
}

/// Datagrams per second, their price, and how well a schedule is kept.
///
/// # Errors
/// A sender or the service fails.
pub fn run(lab: &Lab) -> Result<String, String> {
    let present = |s: &Sender| s.program(lab).is_some();
    let senders: Vec<Sender> = UNPACED.into_iter().filter(present).collect();
    let unpaced = alternate(lab, &senders)?;
    let reached = unpaced
        .iter()
        .find(|(sender, _)| *sender == Sender::Knee)
        .map_or(0.0, |(_, turns)| median(&each(turns, per_s)));
    let paced = alternate(lab, &[Sender::KneePoisson(PACED_SHARE * reached)])?;
    let shown = unpaced.iter().chain(&paced).map(|(sender, _)| {
        let program = sender.program(lab).unwrap_or_default();
        let program = program.file_name().unwrap_or_default().to_string_lossy();
        format!("{program} {}", sender.arguments(9000, TURN_S).join(" "))
    });
    Ok(format!(
        "## Datagrams: what one costs, and whether it leaves when it should\n\n\
         {SIZE} bytes to `knee serve udp`, from the bare loops as well, whose datagrams it \
         takes for a stranger's. One sending thread.\n\n{}\
         A Poisson schedule at {:.0} % of what knee reaches without one, and how late datagrams \
         left:\n\n{}{}",
        unpaced_table(&unpaced),
        PACED_SHARE * 100.0,
        paced_table(&paced),
        command_lines(shown)
    ))
}

/// Measures A B C A B C …; all turns of each.
fn alternate(lab: &Lab, senders: &[Sender]) -> Result<Vec<(Sender, Vec<Turn>)>, String> {
    let mut all: Vec<_> = senders.iter().map(|s| (*s, Vec::new())).collect();
    let rounds = if lab.small {
        1
    } else {
        ROUNDS_FACTOR * lab.rounds
    };
    for _ in 0..rounds {
        for (sender, turns) in &mut all {
            turns.push(round::undisturbed(lab, || measure(lab, *sender))?.0);
        }
    }
    Ok(all)
}

fn measure(lab: &Lab, sender: Sender) -> Result<Turn, String> {
    if sender == Sender::Iperf {
        return measure_iperf(lab);
    }
    let line = "serve udp --listen 127.0.0.1:0";
    let args: Vec<String> = line.split(' ').map(String::from).collect();
    let server: Server = lab.serve(&lab.knee, &args)?;
    let turn = send(lab, sender, server.port)?;
    server.stop()?;
    Ok(turn)
}

/// iperf3 counts at both ends: its client sends to nothing but its server.
fn measure_iperf(lab: &Lab) -> Result<Turn, String> {
    let program = Sender::Iperf.program(lab).ok_or("iperf3 is not here")?;
    let free = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr());
    let port = free.map_err(|e| format!("a free port: {e}"))?.port();
    let args = ["-s", "-1", "-p", &port.to_string()].map(String::from);
    let mut command: Command = process::pinned(lab.server_core, &program, &args);
    let quiet = command.stdout(std::process::Stdio::null());
    let mut server = quiet.spawn().map_err(|e| format!("iperf3 -s: {e}"))?;
    let mut turn = Err("iperf3 was not tried".to_string());
    for _ in 0..IPERF_ATTEMPTS {
        std::thread::sleep(Duration::from_millis(50));
        turn = send(lab, Sender::Iperf, port);
        if turn.is_ok() {
            break;
        }
    }
    // It ends after one client; where none came it is told to.
    let _ = server.kill();
    let _ = server.wait();
    turn
}

fn send(lab: &Lab, sender: Sender, port: u16) -> Result<Turn, String> {
    let name = sender.name();
    let program = sender.program(lab).ok_or(format!("{name} is not here"))?;
    let seconds = lab.seconds(TURN_S);
    let args = sender.arguments(port, seconds);
    let limit = Duration::from_secs_f64(seconds * 3.0 + 30.0);
    let run = process::run(process::pinned(lab.generator_core, &program, &args), limit)?;
    let said = || format!("{}{}", run.stdout, run.stderr);
    if !sender.accepts(run.exit_code) {
        let line = args.join(" ");
        return Err(format!(
            "{name} {line} ended with {:?}: {}",
            run.exit_code,
            said()
        ));
    }
    let (sample, pacing_us) = sender
        .parse(&run.stdout)
        .map_err(|e| format!("{name}: {e}: {}", said()))?;
    Ok(Turn {
        measured: Measured {
            sample,
            cpu_user_s: run.cpu_user_s,
            cpu_system_s: run.cpu_system_s,
        },
        pacing_us,
    })
}

fn each(turns: &[Turn], of: impl Fn(&Measured) -> f64) -> Vec<f64> {
    turns.iter().map(|turn| of(&turn.measured)).collect()
}

fn per_s(measured: &Measured) -> f64 {
    measured.sample.requests / measured.sample.seconds
}

fn unpaced_table(all: &[(Sender, Vec<Turn>)]) -> String {
    let mut table = Table::new(&[
        "sender",
        "datagrams/s",
        "CPU s per million",
        "rate against its bare loop",
        "CPU against its bare loop",
    ]);
    for (sender, turns) in all {
        let floor = all.iter().find(|(s, _)| Some(*s) == sender.floor());
        let against = |of: fn(&Measured) -> f64| {
            floor.map_or("–".into(), |(_, theirs)| {
                spread(&ratios(&each(turns, of), &each(theirs, of)), 2)
            })
        };
        table.row(&[
            sender.name(),
            spread(&each(turns, per_s), 0),
            spread(&each(turns, Measured::cpu_s_per_million), 3),
            against(per_s),
            against(Measured::cpu_s_per_million),
        ]);
    }
    table.finish()
}

fn paced_table(all: &[(Sender, Vec<Turn>)]) -> String {
    let mut table = Table::new(&["sender", "asked/s", "sent/s", "late p50 µs", "p99 µs"]);
    for (sender, turns) in all {
        let late = |q: usize| {
            let each = turns.iter().filter_map(|turn| turn.pacing_us);
            spread(&each.map(|us| us[q]).collect::<Vec<_>>(), 2)
        };
        let asked = match sender {
            Sender::KneePoisson(rate) => format!("{rate:.0}"),
            _ => "–".into(),
        };
        let sent = spread(&each(turns, per_s), 0);
        table.row(&[sender.name(), asked, sent, late(0), late(1)]);
    }
    table.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_senders_answer_is_read() {
        let bare = r#"{"requests":500,"seconds":2.0,"cpu_user_s":0.1,"cpu_system_s":0.2}"#;
        let iperf = r#"{"end":{"streams":[{"udp":{"packets":500,"seconds":2.0}}]}}"#;
        let knee = r#"{"trials":[{"duration_ns":2000000000,
            "ledger":{"intended":510,"not_attempted":7,"send_errors":3},
            "offered":{"pacing_error_ns":{"p50":1500,"p99":9000}}}]}"#;
        for (sender, out) in [
            (Sender::BareSendmmsg, bare),
            (Sender::BareGso, bare),
            (Sender::Iperf, iperf),
            (Sender::Knee, knee),
            (Sender::KneeGso, knee),
            (Sender::KneePoisson(300.0), knee),
        ] {
            let (sample, pacing_us) = sender.parse(out).unwrap();
            assert_eq!(
                (sample.requests, sample.seconds),
                (500.0, 2.0),
                "{sender:?}"
            );
            let paced = matches!(sender, Sender::KneePoisson(_));
            assert_eq!(pacing_us, paced.then_some([1.5, 9.0]));
            assert!(sender.parse("{}").is_err() && sender.parse("").is_err());
        }
    }

    #[test]
    fn a_schedule_is_asked_for_in_whole_datagrams_per_second() {
        let line = Sender::KneePoisson(199_999.6)
            .arguments(9000, 0.3)
            .join(" ");
        assert_eq!(
            line,
            "udp 127.0.0.1:9000 --wait poisson -R 200000/s --size 64 -t 1 -d 300ms --json - --quiet"
        );
    }
}
