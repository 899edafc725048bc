//! Closed loop, 64 connections: what a request costs the generator.

use super::lab::{Lab, Measured};
use super::peer::{Load, Peer};
use super::round::{self, Contender};
use super::stats::{ratios, spread};
use super::table::{Table, command_lines};

const CONNECTIONS: usize = 64;
/// The host may change its speed from second to second: short turns, and three times the rounds,
/// so that most ratios compare like with like.
const TURN_S: f64 = 1.0;
const ROUNDS_FACTOR: usize = 3;
/// Those who are compared most closely stand next to each other.
const PEERS: [Peer; 12] = [
    Peer::BareUring,
    Peer::BareMultishot,
    Peer::BareEpoll,
    Peer::BareEpollStamped,
    Peer::KneeEpollUnstamped,
    Peer::KneeEpoll,
    Peer::Wrk,
    Peer::KneeUring,
    Peer::KneeUringUnstamped,
    Peer::Ab,
    Peer::H2load,
    Peer::Oha,
];

/// Requests per second and processor time per request.
///
/// # Errors
/// A contender or the server fails.
pub fn run(lab: &Lab) -> Result<String, String> {
    let peers = lab.present(&PEERS);
    let load = |port| Load {
        port,
        connections: CONNECTIONS,
        seconds: lab.seconds(TURN_S),
        rate: None,
    };
    let contenders = round::alternate(lab, ROUNDS_FACTOR, &peers, |peer| {
        let server = lab.serve_lean(None)?;
        let measured = lab.measure(peer, &load(server.port))?;
        server.stop()?;
        Ok(measured)
    })?;
    let lines = peers.iter().filter_map(|peer| {
        Some(format!(
            "{} {}",
            peer.program(),
            peer.arguments(&load(8080))?.join(" ")
        ))
    });
    Ok(format!(
        "## Closed loop: what a request costs\n\n\
         {CONNECTIONS} keep-alive connections; `bench/server_epoll.c` answers with 1,294 bytes. \
         Every generator's core is full here, so that what it costs is what it reaches; knee says \
         so of itself, and calls such a run INVALID as a measurement of the server.\n\n\
         {}{}",
        table(&contenders),
        command_lines(lines)
    ))
}

fn table(contenders: &[Contender<Measured>]) -> String {
    let mut table = Table::new(&[
        "generator",
        "requests/s",
        "CPU s per million",
        "of it user",
        "CPU against wrk",
        "CPU against bare epoll",
    ]);
    let cost = |c: &Contender<Measured>| c.each(Measured::cpu_s_per_million);
    let cost_of = |peer| contenders.iter().find(|c| c.peer == peer).map(cost);
    let (wrk, bare) = (cost_of(Peer::Wrk), cost_of(Peer::BareEpoll));
    for contender in contenders {
        let against = |theirs: &Option<Vec<f64>>| {
            theirs
                .as_ref()
                .map_or("–".into(), |t| spread(&ratios(&cost(contender), t), 2))
        };
        let user = |m: &Measured| m.cpu_user_s / m.sample.requests * 1e6;
        table.row(&[
            contender.full_label(),
            spread(&contender.each(|m| m.sample.requests / m.sample.seconds), 0),
            spread(&cost(contender), 2),
            spread(&contender.each(user), 2),
            against(&wrk),
            against(&bare),
        ]);
    }
    table.finish()
}
