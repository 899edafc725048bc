//! A server that stands still for a second: whether the waiting of those who came is reported.

use super::lab::Lab;
use super::peer::{Load, Peer, Rate};
use super::round;
use super::stats::spread;
use super::table::Table;

const RATE_PER_S: f64 = 1_000.0;

/// Mean and percentiles of the response time over a stall.
///
/// # Errors
/// A contender or the server fails.
pub fn run(lab: &Lab) -> Result<String, String> {
    let fault = if lab.small {
        "stall(100ms,100ms)"
    } else {
        "stall(4s,1s)"
    };
    let line = format!("serve http --listen 127.0.0.1:0 --size 1294 --fault {fault}");
    let serve: Vec<String> = line.split(' ').map(String::from).collect();
    let peers = lab.present(&[
        Peer::BareSpin,
        Peer::KneeEpoll,
        Peer::KneeUring,
        Peer::Wrk2,
        Peer::Oha,
    ]);
    let contenders = round::alternate(lab, 1, &peers, |peer| {
        let server = lab.serve(&lab.knee, &serve)?;
        let (port, seconds) = (server.port, lab.seconds(10.0));
        let rate = Some(Rate::Constant(RATE_PER_S));
        let measured = lab.measure(
            peer,
            &Load {
                port,
                connections: 256,
                seconds,
                rate,
            },
        )?;
        server.stop()?;
        Ok(measured)
    })?;
    let mut table = Table::new(&["generator", "mean ms", "p50 ms", "p90 ms", "p99 ms"]);
    let ideal = ["theory, stall of 1 s in 10 s", "50", "0", "0", "900"].map(String::from);
    table.row(&ideal);
    for contender in &contenders {
        let ms = |of: fn(&super::peer::Response) -> f64| {
            spread(
                &contender.each(|m| m.sample.response.as_ref().map_or(0.0, of) / 1e3),
                1,
            )
        };
        let told = contender.rounds.iter().all(|m| {
            m.sample
                .response
                .is_some_and(|response| response.mean_us.is_some())
        });
        table.row(&[
            contender.full_label(),
            if told {
                ms(|r| r.mean_us.unwrap_or_default())
            } else {
                "–".into()
            },
            ms(|r| r.p50_us),
            ms(|r| r.p90_us),
            ms(|r| r.p99_us),
        ]);
    }
    Ok(format!(
        "## A server that stalls\n\n\
         Constant {RATE_PER_S}/s at `knee serve http --fault '{fault}'`.\n\n{}",
        table.finish()
    ))
}
