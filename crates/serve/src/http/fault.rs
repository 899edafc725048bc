//! Deliberate faults.

use knee_load::rng::{self, Rng};
use knee_load::spec::{ParseError, parse_duration};
use knee_load::time::Nanos;

/// A deliberate fault. Probabilities lie in 0 to 1. Each request draws for each fault; the first in
/// the list that hits counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// From `at` after the start, for `length`, the whole server stalls. It accepts, reads and
    /// writes nothing; its workers stop and go on afterwards.
    Stall {
        /// Time since the start.
        at: Nanos,
        /// Length of the stall.
        length: Nanos,
    },
    /// The connection is reset instead of a response; a Unix socket is closed.
    Reset(f64),
    /// Half of the body is sent (of the head if there is no body), then the connection closed.
    Truncate(f64),
    /// Bodies trickle at this number of bytes per second, at least 1.
    Slow(u64),
    /// Bytes that are no HTTP, then the connection is closed.
    Garbage(f64),
    /// A response with this status (200 to 599) is sent instead.
    Error(f64, u16),
}

/// `stall(at,for)`, `reset(p)`, `truncate(p)`, `slow(bytes/s)`, `garbage(p)`, `error(p,status)`.
///
/// # Errors
/// Another name, another number of arguments, a probability outside 0 to 1, a status outside 200
/// to 599, a speed of zero.
pub fn parse_fault(text: &str) -> Result<Fault, ParseError> {
    let unknown = || {
        ParseError(format!(
            "{text:?} is no fault: give stall(AT,FOR), reset(P), truncate(P), slow(BYTES_PER_S), \
             garbage(P) or error(P,STATUS)"
        ))
    };
    let call = text.trim().strip_suffix(')').and_then(|t| t.split_once('('));
    let (name, arguments) = call.ok_or_else(unknown)?;
    let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
    match (name.trim(), &arguments[..]) {
        ("stall", [at, length]) => {
            Ok(Fault::Stall { at: parse_duration(at)?, length: parse_duration(length)? })
        }
        ("reset", [p]) => parse_probability(p).map(Fault::Reset),
        ("truncate", [p]) => parse_probability(p).map(Fault::Truncate),
        ("garbage", [p]) => parse_probability(p).map(Fault::Garbage),
        ("slow", [speed]) => parse_speed(speed).map(Fault::Slow),
        ("error", [p, status]) => Ok(Fault::Error(parse_probability(p)?, parse_status(status)?)),
        _ => Err(unknown()),
    }
}

fn parse_probability(text: &str) -> Result<f64, ParseError> {
    let p = text.parse().ok().filter(|p| (0.0..=1.0).contains(p));
    p.ok_or_else(|| ParseError(format!("{text:?} is no probability from 0 to 1")))
}

fn parse_speed(text: &str) -> Result<u64, ParseError> {
    let number = text.strip_suffix("/s").unwrap_or(text);
    let speed = number.parse().ok().filter(|&speed| speed > 0);
    speed.ok_or_else(|| ParseError(format!("{text:?} is no number of bytes per second above 0")))
}

fn parse_status(text: &str) -> Result<u16, ParseError> {
    let status = text.parse().ok().filter(|s| (200..600).contains(s));
    status.ok_or_else(|| ParseError(format!("{text:?} is no status from 200 to 599")))
}

/// A fault of one response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mishap {
    Reset,
    Truncate,
    Garbage,
    /// Another status, by its index in [`Mishaps::statuses`].
    Error(usize),
}

/// Draws the fault of each request.
#[derive(Debug)]
pub(super) struct Mishaps {
    chances: Vec<(f64, Mishap)>,
    pub(super) statuses: Vec<u16>,
    rng: Rng,
}

impl Mishaps {
    pub(super) fn new(faults: &[Fault], rng: Rng) -> Mishaps {
        let (mut chances, mut statuses) = (Vec::new(), Vec::new());
        for fault in faults {
            match *fault {
                Fault::Reset(p) => chances.push((p, Mishap::Reset)),
                Fault::Truncate(p) => chances.push((p, Mishap::Truncate)),
                Fault::Garbage(p) => chances.push((p, Mishap::Garbage)),
                Fault::Error(p, status) => {
                    chances.push((p, Mishap::Error(statuses.len())));
                    statuses.push(status);
                }
                Fault::Stall { .. } | Fault::Slow(_) => {}
            }
        }
        Mishaps { chances, statuses, rng }
    }

    #[inline]
    pub(super) fn draw(&mut self) -> Option<Mishap> {
        let rng = &mut self.rng;
        self.chances.iter().find(|(p, _)| rng::unit(rng) < *p).map(|&(_, mishap)| mishap)
    }
}

/// Times at which the whole server stalls, and the workers' own time, which stalls with it.
#[derive(Debug)]
pub(super) struct Stalls {
    /// Begin and length, ascending and disjoint.
    stalls: Vec<(Nanos, Nanos)>,
}

impl Stalls {
    pub(super) fn new(faults: &[Fault]) -> Stalls {
        let stall = |fault: &Fault| match *fault {
            Fault::Stall { at, length } => Some((at, length)),
            _ => None,
        };
        let mut given: Vec<(Nanos, Nanos)> = faults.iter().filter_map(stall).collect();
        given.sort_unstable();
        let mut stalls: Vec<(Nanos, Nanos)> = Vec::new();
        for (at, length) in given {
            match stalls.last_mut() {
                Some((begin, so_far)) if at <= *begin + *so_far => {
                    *so_far = (*so_far).max(at + length - *begin);
                }
                _ => stalls.push((at, length)),
            }
        }
        Stalls { stalls }
    }

    /// Begin of the first stall after `now`.
    pub(super) fn next_after(&self, now: Nanos) -> Option<Nanos> {
        self.stalls.iter().map(|&(at, _)| at).find(|&at| at > now)
    }

    /// End of the stall that `now` lies in.
    pub(super) fn end_of_stall(&self, now: Nanos) -> Option<Nanos> {
        let around = self.stalls.iter().find(|&&(at, l)| at <= now && now < at + l);
        around.map(|&(at, length)| at + length)
    }

    /// The workers' time at `now`: without the stalls so far.
    #[inline]
    pub(super) fn worked(&self, now: Nanos) -> Nanos {
        let stalled = |&(at, length): &(Nanos, Nanos)| (now - at).min(length);
        let stalled_ns: u64 = self.stalls.iter().map(|s| stalled(s).0).sum();
        now - Nanos(stalled_ns)
    }

    /// Time at which the workers' time is `worked`; the earlier one where a stall lies between two.
    #[inline]
    pub(super) fn moment(&self, worked: Nanos) -> Nanos {
        let after = |now: Nanos, &(at, length): &(Nanos, Nanos)| {
            if now > at { now + length } else { now }
        };
        self.stalls.iter().fold(worked, after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_and_nonsense_is_refused() {
        for (text, fault) in [
            ("reset(0.01)", Fault::Reset(0.01)),
            ("truncate( 1 )", Fault::Truncate(1.0)),
            ("slow(1000)", Fault::Slow(1000)),
            ("slow(1000/s)", Fault::Slow(1000)),
            ("garbage(0)", Fault::Garbage(0.0)),
            ("error(0.5, 503)", Fault::Error(0.5, 503)),
        ] {
            assert_eq!(parse_fault(text), Ok(fault), "{text}");
        }
        for bad in [
            "",
            "reset",
            "reset()",
            "reset(1.1)",
            "reset(-0.1)",
            "reset(NaN)",
            "reset(0.1,2)",
            "slow(0)",
            "error(0.1)",
            "error(0.1,99)",
            "error(0.1,600)",
            "explode(1)",
            "stall(1s)",
        ] {
            assert!(parse_fault(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_stall_is_read() {
        let stall = Fault::Stall { at: Nanos::from_secs(2), length: Nanos::from_millis(500) };
        assert_eq!(parse_fault("stall(2s,500ms)"), Ok(stall));
    }

    #[test]
    fn mishaps_strike_as_often_as_asked() {
        let faults = [Fault::Reset(0.25), Fault::Slow(1), Fault::Error(0.5, 503)];
        let mut mishaps = Mishaps::new(&faults, rng::stream(1, 2));
        assert_eq!(mishaps.statuses, [503]);
        let drawn: Vec<_> = (0..40_000).map(|_| mishaps.draw()).collect();
        let share = |what| drawn.iter().filter(|&&m| m == what).count() as f64 / 40_000.0;
        assert!((share(Some(Mishap::Reset)) - 0.25).abs() < 0.01);
        // Of those that were not reset, half.
        assert!((share(Some(Mishap::Error(0))) - 0.375).abs() < 0.01);
        let always = Mishaps::new(&[Fault::Garbage(1.0)], rng::stream(1, 2)).draw();
        assert_eq!(always, Some(Mishap::Garbage));
    }

    fn stall(at: u64, length: u64) -> Fault {
        let (at, length) = (Nanos(at), Nanos(length));
        Fault::Stall { at, length }
    }

    #[test]
    fn work_stands_still_during_stalls() {
        let stalls = Stalls::new(&[stall(100, 10), stall(20, 5), stall(22, 8)]);
        for (now, worked) in
            [(0, 0), (20, 20), (25, 20), (30, 20), (31, 21), (100, 90), (105, 90), (120, 100)]
        {
            assert_eq!(stalls.worked(Nanos(now)), Nanos(worked), "at {now}");
        }
        for (worked, moment) in [(20, 20), (21, 31), (90, 100), (91, 111)] {
            assert_eq!(stalls.moment(Nanos(worked)), Nanos(moment), "after {worked}");
        }
    }

    #[test]
    fn stalls_are_found_by_time() {
        let stalls = Stalls::new(&[stall(20, 5), stall(100, 10)]);
        assert_eq!(stalls.next_after(Nanos(0)), Some(Nanos(20)));
        assert_eq!(stalls.next_after(Nanos(20)), Some(Nanos(100)));
        assert_eq!(stalls.next_after(Nanos(100)), None);
        assert_eq!(stalls.end_of_stall(Nanos(19)), None);
        assert_eq!(stalls.end_of_stall(Nanos(20)), Some(Nanos(25)));
        assert_eq!(stalls.end_of_stall(Nanos(25)), None);
    }
}
