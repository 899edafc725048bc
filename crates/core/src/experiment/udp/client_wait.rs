//! Client waits on the command line: `yield`, `exp(200us)`, `poisson`; with their number
//! `exp(200us)*128`, and with a rate `poisson@6000*4`.

use knee_load::arrival::{is_name, schedules};
use knee_load::experiment::udp::ClientWait;
use knee_load::law::Law;
use knee_load::quantity::{Call, error, quoted};
use knee_load::spec::{ParseError, Rate, parse_arrival, parse_duration, parse_law, parse_rate};
use knee_load::time::Nanos;

/// What a client does between two datagrams: `none`, `yield`, `sleep(0)`, `sleep(T)`, `exp(T)`,
/// `uniform(FROM,TO)`, `lognormal(MEDIAN,SIGMA)`, `tick(T)`, or the schedule of an arrival process.
/// A schedule needs a `rate` (of all clients together) or carries its own over `run_length`.
///
/// # Errors
/// None of these, an argument out of its range, a rate that is missing, or one too many.
pub fn parse_client_wait(
    text: &str,
    rate: Option<Rate>,
    run_length: Nanos,
) -> Result<ClientWait, ParseError> {
    if let Some(wait) = parse_unscheduled(text)? {
        return match rate {
            None => Ok(wait),
            Some(_) => Err(error(format!(
                "{} has no schedule, so it takes no rate: leave the rate out, or give constant or \
                 poisson",
                quoted(text)
            ))),
        };
    }
    let arrival = parse_arrival(text, run_length).map_err(|e| {
        if is_name(text) {
            return e;
        }
        error(format!(
            "{} is no way to wait: give none, yield, sleep(T), exp(T), uniform(FROM,TO), tick(T), \
             or a schedule: {}",
            quoted(text),
            schedules().join(", ")
        ))
    })?;
    let rate = match rate {
        Some(_) if arrival.carries_rate() => Err("carries its own rate: leave the other out"),
        None if arrival.carries_rate() => arrival.own_rate().ok_or("would send nothing"),
        Some(rate) => Ok(rate),
        None => Err("is a schedule and needs a rate, such as 1000"),
    };
    let rate = rate.map_err(|what| error(format!("{} {what}", quoted(text))))?;
    Ok(ClientWait::Schedule { rate, arrival })
}

/// Clients of one kind: `WAIT*N`, a schedule as `ARRIVAL@RATE*N` with the rate of all of them
/// together; without `*N` one.
///
/// # Errors
/// As [`parse_client_wait`], or a number that is none.
pub fn parse_clients(text: &str, run_length: Nanos) -> Result<(ClientWait, u32), ParseError> {
    let (law, clients) = match text.rsplit_once('*') {
        None => (text, 1),
        Some((law, number)) => (law, number_of_clients(text, number)?),
    };
    let Some((arrival, rate)) = law.split_once('@') else {
        let wait = parse_client_wait(law, None, run_length).map_err(|e| {
            // Only the form with a rate differs from that of a single run.
            if e.0.contains("needs a rate") {
                error(format!(
                    "{} is a schedule and needs a rate: such as {}@6000*4",
                    quoted(law),
                    law.trim()
                ))
            } else {
                e
            }
        })?;
        return Ok((wait, clients));
    };
    let rate = parse_rate(rate)?;
    Ok((parse_client_wait(arrival, Some(rate), run_length)?, clients))
}

fn number_of_clients(text: &str, number: &str) -> Result<u32, ParseError> {
    let number = number.trim();
    let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    match number.parse() {
        Ok(n) if digits && n > 0 => Ok(n),
        _ => Err(error(format!(
            "{} has no number of clients after its '*': give WAIT*N, such as exp(200us)*128",
            quoted(text)
        ))),
    }
}

/// The waits without a schedule; `None` where it is none of them.
fn parse_unscheduled(text: &str) -> Result<Option<ClientWait>, ParseError> {
    let Some(call) = Call::parse(text) else {
        return match text.trim() {
            "none" => Ok(Some(ClientWait::None)),
            "yield" => Ok(Some(ClientWait::Yield)),
            name @ ("sleep" | "exp" | "tick" | "lognormal") => Err(error(format!(
                "{} lacks its time: give one, such as {name}({})",
                quoted(text),
                if name == "lognormal" { "200us,0.5" } else { "200us" }
            ))),
            _ => Ok(None),
        };
    };
    let one_time = |arguments: &[&str]| match arguments {
        [t] => parse_duration(t),
        _ => Err(error(format!("{} takes one time: such as {}(200us)", quoted(text), call.name))),
    };
    let wait = match call.name {
        "sleep" => match one_time(&call.arguments)? {
            Nanos::ZERO => ClientWait::SleepZero,
            t => ClientWait::Sleep(Law::Fixed(t)),
        },
        "tick" => ClientWait::Tick(one_time(&call.arguments)?),
        "exp" | "uniform" | "lognormal" => ClientWait::Sleep(parse_law(text)?),
        _ => return Ok(None),
    };
    let is_nothing = match &wait {
        ClientWait::Tick(period) => *period == Nanos::ZERO,
        ClientWait::Sleep(law) => law.is_zero(),
        _ => false,
    };
    if is_nothing {
        Err(error(format!(
            "{} is no time at all: sleep(0), yield and none are what comes near it",
            quoted(text)
        )))
    } else {
        Ok(Some(wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_load::arrival::{ArrivalLaw, RampLaw};

    const RUN: Nanos = Nanos::from_secs(10);

    fn us(n: u64) -> Nanos {
        Nanos::from_micros(n)
    }

    #[test]
    fn waits_without_a_schedule() {
        for (text, expected) in [
            ("none", ClientWait::None),
            (" yield ", ClientWait::Yield),
            ("sleep(0)", ClientWait::SleepZero),
            ("sleep(200us)", ClientWait::Sleep(Law::Fixed(us(200)))),
            ("exp(200us)", ClientWait::Sleep(Law::Exp(us(200)))),
            ("uniform(5us,15us)", ClientWait::Sleep(Law::Uniform(us(5), us(15)))),
            ("lognormal(1ms,0.5)", ClientWait::Sleep(Law::LogNormal(us(1_000), 0.5))),
            ("tick(10ms)", ClientWait::Tick(us(10_000))),
        ] {
            let wait = parse_client_wait(text, None, RUN);
            assert_eq!(wait, Ok(expected), "{text}");
            assert_eq!(wait.unwrap().name(), text.trim());
            let line = parse_client_wait(text, Rate::from_f64(5.0), RUN).unwrap_err();
            assert!(line.0.contains("takes no rate"), "{text}: {line}");
        }
    }

    #[test]
    fn schedules_and_their_rates() {
        let rate = parse_rate("6000").unwrap();
        for (text, arrival) in [
            ("constant", ArrivalLaw::Constant),
            ("poisson", ArrivalLaw::Poisson),
            ("uniform", ArrivalLaw::Uniform),
        ] {
            let expected = ClientWait::Schedule { rate, arrival };
            assert_eq!(parse_client_wait(text, Some(rate), RUN), Ok(expected));
            let line = parse_client_wait(text, None, RUN).unwrap_err();
            assert!(line.0.contains("needs a rate"), "{line}");
        }
        let Ok(ClientWait::Schedule { rate, arrival }) =
            parse_client_wait("ramp(1000,3000)", None, RUN)
        else {
            panic!("a ramp is a schedule");
        };
        assert_eq!(rate.per_s(), 2_000.0);
        assert!(matches!(arrival, ArrivalLaw::Ramp(RampLaw { over: RUN, .. })));
    }

    #[test]
    fn clients_of_one_kind() {
        let poisson = |rate| ClientWait::Schedule {
            rate: parse_rate(rate).unwrap(),
            arrival: ArrivalLaw::Poisson,
        };
        for (text, wait, clients) in [
            ("yield*64", ClientWait::Yield, 64),
            ("yield", ClientWait::Yield, 1),
            ("exp(200us) * 128", ClientWait::Sleep(Law::Exp(us(200))), 128),
            ("poisson@6000*4", poisson("6000"), 4),
            ("poisson@90/m", poisson("90/m"), 1),
        ] {
            assert_eq!(parse_clients(text, RUN), Ok((wait, clients)), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_in_a_line() {
        for (text, beginning) in [
            ("doze", "'doze' is no way to wait: give none, yield,"),
            ("nap(5us)", "'nap(5us)' is no way to wait:"),
            ("5ms", "'5ms' is no way to wait:"),
            ("sleep", "'sleep' lacks its time: give one, such as sleep("),
            ("sleep(1,2)", "'sleep(1,2)' takes one time: such as sleep("),
            ("sleep(soon)", "'soon' is not a duration:"),
            ("exp(0)", "'exp(0)' is no time at all:"),
            ("tick(0)", "'tick(0)' is no time at all:"),
            ("exp(1ms,2ms)", "'exp(1ms,2ms)' has the wrong number"),
            ("burst", "'burst' lacks its arguments:"),
            ("poisson", "'poisson' is a schedule and needs a rate:"),
            ("poisson@0*4", "'0' would offer nothing:"),
            ("yield@5*4", "'yield' has no schedule, so it takes no rate:"),
            ("ramp(1,2)@5", "'ramp(1,2)' carries its own rate:"),
            ("yield*0", "'yield*0' has no number of clients"),
            ("yield*", "'yield*' has no number of clients"),
            ("yield*+4", "'yield*+4' has no number of clients"),
        ] {
            let ParseError(line) = parse_clients(text, RUN).unwrap_err();
            assert!(line.starts_with(beginning), "{text}: {line}");
            assert!(!line.contains('\n'), "{text}");
        }
    }
}
