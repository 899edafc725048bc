//! Options of `knee udp` that make no sense together.

use super::RawUdp;
use crate::args::refuse_first;
use crate::failure::Failure;
use knee_load::experiment::udp::ClientsAs;
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
