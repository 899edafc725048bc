//! Open loop at constant rates: whether each request leaves when it should.

use super::lab::{Lab, Measured};
use super::peer::{Load, Peer, Rate};
use super::round::{self, Contender};
use super::schedule::{self, Kept};
use super::stats::spread;
use super::table::{Table, command_lines};

const CONNECTIONS: usize = 64;
const RATES: [f64; 4] = [1_000.0, 10_000.0, 50_000.0, 100_000.0];
const PEERS: [Peer; 6] = [
    Peer::BareSpin,
    Peer::BareHybrid,
    Peer::KneeEpoll,
    Peer::KneeUring,
    Peer::Wrk2,
    Peer::Oha,
];

/// The schedule as the server saw it, and its price.
///
/// # Errors
/// A contender or the server fails.
pub fn run(lab: &Lab) -> Result<String, String> {
    let peers = lab.present(&PEERS);
    let rates = if lab.small { &RATES[..2] } else { &RATES };
    let mut text = format!(
        "## Open loop: whether each request leaves when it should\n\n\
         Constant rates over {CONNECTIONS} connections. Each arrival is stamped by the server; its \
         deviation is its distance from t₀ + k/rate, with the phase t₀ fitted by the median.\n\n"
    );
    for &rate in rates {
        let contenders = round::alternate(lab, 1, &peers, |peer| measure(lab, peer, rate))?;
        text += &format!("### {rate}/s\n\n{}", table(&contenders));
    }
    let shown = load(lab, 8080, RATES[0]);
    Ok(text
        + &command_lines(peers.iter().filter_map(|peer| {
            Some(format!(
                "{} {}",
                peer.program(),
                peer.arguments(&shown)?.join(" ")
            ))
        })))
}

fn load(lab: &Lab, port: u16, rate_per_s: f64) -> Load {
    let rate = Some(Rate::Constant(rate_per_s));
    Load {
        port,
        connections: CONNECTIONS,
        seconds: lab.seconds(3.0),
        rate,
    }
}

fn measure(lab: &Lab, peer: Peer, rate_per_s: f64) -> Result<(Measured, Kept), String> {
    let file = lab.scratch("stamps");
    let room = (rate_per_s * 8.0) as usize + 1_000;
    let server = lab.serve_lean(Some((&file, room)))?;
    let measured = lab.measure(peer, &load(lab, server.port, rate_per_s))?;
    server.stop()?;
    let kept = schedule::compare(&schedule::read_stamps(&file)?, rate_per_s)?;
    Ok((measured, kept))
}

fn table(contenders: &[Contender<(Measured, Kept)>]) -> String {
    let mut table = Table::new(&[
        "generator",
        "achieved/s",
        "deviation p50 µs",
        "p99 µs",
        "CV of gaps",
        "% of a core",
    ]);
    for contender in contenders {
        let invalid = contender
            .rounds
            .iter()
            .any(|(m, _)| m.sample.valid == Some(false));
        let mark = if invalid { " (INVALID)" } else { "" };
        table.row(&[
            contender.label() + mark,
            spread(&contender.each(|(_, kept)| kept.rate_per_s), 1),
            spread(&contender.each(|(_, kept)| kept.deviation_p50_us), 1),
            spread(&contender.each(|(_, kept)| kept.deviation_p99_us), 1),
            spread(&contender.each(|(_, kept)| kept.gap_cv), 3),
            spread(&contender.each(|(m, _)| m.core_percent()), 1),
        ]);
    }
    table.finish()
}
