//! Options of `knee udp` that make no sense together.

use super::RawUdp;
use crate::args::first_given;
use crate::failure::Failure;
use knee_load::experiment::udp::spec::ClientsAs;
use knee_load::spec::AskedArrival;

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
        if let (Some(option), None) = (self.token.option(), &self.service_address) {
            return refuse(option, "the built-in service needs none: give HOST");
        }
        if self.threads.is_some() && self.carried_as() != ClientsAs::Multiplexed {
            return refuse(
                "--threads",
                "each client has a thread of its own: leave it or --clients-as out",
            );
        }
        match self.kind() {
            UdpTask::Run => self.refuse_for_a_run(),
            UdpTask::Compare | UdpTask::Explain => self.refuse_for_several(),
        }
    }

    fn refuse_for_a_run(&self) -> Result<(), Failure> {
        if self.repeats.is_some() {
            return refuse("--repeats", "needs --compare or --explain");
        }
        let asked = self.schedule().filter(AskedArrival::takes_length);
        match asked {
            Some(asked) if self.datagrams.is_some() && self.duration.is_none() => {
                let name = asked.name();
                let wrong = format!("a {name} takes its length from --duration: give it too");
                refuse("--wait", &wrong)
            }
            _ => Ok(()),
        }
    }

    fn refuse_for_several(&self) -> Result<(), Failure> {
        let (option, how) = match self.kind() {
            UdpTask::Explain => ("--explain", "WAIT*N, such as 'yield*64'"),
            _ => ("--compare", "WAIT*N or ARRIVAL@RATE*N"),
        };
        let of_a_run = first_given(&[
            (self.wait.is_some(), "--wait"),
            (self.arrival.is_some(), "--arrival"),
            (self.rate.is_some(), "--rate"),
            (self.clients.is_some(), "--clients"),
        ]);
        if let Some(given) = of_a_run {
            let wrong = format!("{option} says of each kind of clients what it does: {how}");
            return refuse(given, &wrong);
        }
        if self.datagrams.is_some() {
            let wrong = format!("with {option} each trial lasts for --duration: leave one out");
            return refuse("--datagrams", &wrong);
        }
        match self.kind() {
            UdpTask::Compare if self.compare.len() < 2 => refuse(
                "--compare",
                "takes two kinds of clients or more, such as 'yield*64' 'exp(200us)*128'",
            ),
            UdpTask::Explain if self.explain.as_ref().is_some_and(|laws| laws.len() % 3 == 1) => {
                refuse(
                    "--explain",
                    "takes two kinds of clients, or none for 'yield*64' 'exp(200us)*128'",
                )
            }
            UdpTask::Explain if self.repeats.is_some_and(|n| n < 3) => {
                refuse("--repeats", "an explanation takes at least 3 to know what chance does")
            }
            _ => Ok(()),
        }
    }
}

fn refuse(argument: &str, wrong: &str) -> Result<(), Failure> {
    Err(Failure::argument(argument, wrong))
}
