//! Many connections: what each costs in memory.

use super::lab::{Lab, Measured};
use super::peer::{Load, Peer};
use super::round;
use super::stats::spread;
use super::table::Table;

/// Few connections, to know what the process needs without them.
const FEW: usize = 10;

/// Memory per connection and errors.
///
/// # Errors
/// A contender or the server fails.
pub fn run(lab: &Lab) -> Result<String, String> {
    let many = if lab.small { 200 } else { 10_000 };
    let peers = lab.present(&[Peer::KneeEpoll, Peer::KneeUring]);
    let contenders = round::alternate(lab, 1, &peers, |peer| {
        let few = measure(lab, peer, FEW)?;
        Ok((few, measure(lab, peer, many)?))
    })?;
    let mut table = Table::new(&[
        "generator",
        "requests/s",
        "failed",
        "RSS bytes per connection",
    ]);
    for contender in &contenders {
        let rss = |m: &Measured| m.sample.peak_rss_bytes.unwrap_or_default();
        let each = |(few, all): &(Measured, Measured)| (rss(all) - rss(few)) / (many - FEW) as f64;
        table.row(&[
            contender.label(),
            spread(
                &contender.each(|(_, all)| all.sample.requests / all.sample.seconds),
                0,
            ),
            spread(&contender.each(|(_, all)| all.sample.errors), 0),
            spread(&contender.each(each), 0),
        ]);
    }
    Ok(format!(
        "## {many} connections\n\n\
         Closed loop. Memory is peak RSS beyond that of a run with {FEW} connections, over the \
         connections more; what the kernel keeps per socket is not in it.\n\n{}",
        table.finish()
    ))
}

fn measure(lab: &Lab, peer: Peer, connections: usize) -> Result<Measured, String> {
    let server = lab.serve_lean(None)?;
    let seconds = lab.seconds(5.0);
    let measured = lab.measure(
        peer,
        &Load {
            port: server.port,
            connections,
            seconds,
            rate: None,
        },
    )?;
    server.stop()?;
    Ok(measured)
}
