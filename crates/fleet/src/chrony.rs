//! What chrony says of this host's time of day, where it runs: chronyc(1), `tracking`.

use std::process::{Command, Stdio};

/// How far the time of day is from the true one at the most, in nanoseconds; `None` where chrony
/// does not run or is not synchronised. It asks a program and waits for its answer.
pub(crate) fn error_ns_max() -> Option<u64> {
    let mut ask = Command::new("chronyc");
    ask.args(["-n", "-c", "tracking"]).stdin(Stdio::null());
    let answer = ask.stderr(Stdio::null()).output().ok()?;
    parse(&String::from_utf8_lossy(&answer.stdout))
}

/// What is left to be corrected, the root dispersion and half of the root delay: chrony's own bound
/// (chronyc(1), "Root dispersion").
fn parse(line: &str) -> Option<u64> {
    let fields: Vec<&str> = line.trim().split(',').collect();
    let [_, _, _, _, left, _, _, _, _, _, delay, dispersion, _, leap] = fields[..] else {
        return None;
    };
    let seconds = |text: &str| text.parse::<f64>().ok().filter(|s| s.is_finite());
    let bound = seconds(left)?.abs() + seconds(dispersion)?.abs() + seconds(delay)?.abs() / 2.0;
    (leap != "Not synchronised").then_some((bound * 1e9) as u64)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn the_bound_is_what_chrony_calls_it() {
        let line = "A9FEA97B,169.254.169.123,4,1795408165.495735528,-0.000002500,0.000000813,\
            0.000008412,-9.512,0.001,0.021,0.000400000,0.000100000,16.2,Normal\n";
        assert_eq!(parse(line), Some(2_500 + 100_000 + 200_000));
        let alone = "7F7F0101,,10,1795408165.495735528,0.000000000,0.000000000,0.000000000,0.000,\
            0.000,0.000,0.000000000,0.000000000,0.0,Normal";
        assert_eq!(parse(alone), Some(0));
        assert_eq!(parse(&line.replace("Normal", "Not synchronised")), None);
        for other in ["", "506 Cannot talk to daemon\n", &line[..60]] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
