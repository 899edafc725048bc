//! Contenders in turn, again where the host took the processor away.

use super::contender::Contender;
use super::lab::{Lab, Measured};

/// A measurement is repeated where the host stole more than this share of the time,
const STEAL_MAX: f64 = 0.05;
/// at most so often.
const REPEATS_MAX: usize = 2;

/// All measurements of one contender, one per round.
pub struct Rounds<T> {
    pub contender: Contender,
    pub rounds: Vec<T>,
    /// The largest share of time stolen in a measurement that was kept.
    pub steal_max: f64,
}

impl<T> Rounds<T> {
    /// A number of each round.
    pub fn each(&self, of: impl Fn(&T) -> f64) -> Vec<f64> {
        self.rounds.iter().map(of).collect()
    }
}

impl<T: AsRef<Measured>> Rounds<T> {
    /// The name, marked where the host stole time in spite of repeats, and where the contender
    /// itself calls a run invalid or had errors.
    pub fn label(&self) -> String {
        let samples = || self.rounds.iter().map(|round| &round.as_ref().sample);
        let invalid = samples().filter(|s| s.valid == Some(false)).count();
        let errors: f64 = samples().map(|s| s.errors).sum();
        let mut label = self.contender.name.to_owned();
        if self.steal_max > STEAL_MAX {
            label += " (steal)";
        }
        if invalid > 0 {
            label += &format!(" ({invalid} of {} INVALID)", self.rounds.len());
        }
        if errors > 0.0 {
            label += &format!(" ({errors} errors)");
        }
        label
    }
}

/// What a contender reports of a run, and what its server saw.
#[derive(Clone, Debug)]
pub struct ServedTurn<S> {
    pub measured: Measured,
    pub seen: S,
}

impl<S> AsRef<Measured> for ServedTurn<S> {
    fn as_ref(&self) -> &Measured {
        &self.measured
    }
}

impl AsRef<Measured> for Measured {
    fn as_ref(&self) -> &Measured {
        self
    }
}

/// Measures A B C A B C …, `factor` times the rounds asked for (small: just those).
///
/// # Errors
/// The first error of a measurement.
pub fn alternate<T>(
    lab: &Lab,
    factor: usize,
    contenders: &[Contender],
    mut measure: impl FnMut(&Contender) -> Result<T, String>,
) -> Result<Vec<Rounds<T>>, String> {
    let new = |contender: &Contender| Rounds {
        contender: *contender,
        rounds: Vec::new(),
        steal_max: 0.0,
    };
    let mut all: Vec<Rounds<T>> = contenders.iter().map(new).collect();
    let factor = if lab.small { 1 } else { factor };
    for _ in 0..factor * lab.rounds {
        for one in &mut all {
            let (result, steal) = undisturbed(lab, || measure(&one.contender))?;
            one.rounds.push(result);
            one.steal_max = one.steal_max.max(steal);
        }
    }
    Ok(all)
}

/// Measures until the host stole little, at most three times; the last result and its steal.
///
/// # Errors
/// The first error of a measurement.
pub fn undisturbed<T>(
    lab: &Lab,
    mut measure: impl FnMut() -> Result<T, String>,
) -> Result<(T, f64), String> {
    let repeats = if lab.small { 0 } else { REPEATS_MAX };
    for last in (0..=repeats).map(|n| n == repeats) {
        let before = Jiffies::now();
        let result = measure()?;
        let steal = before.steal_until(&Jiffies::now());
        if last || steal <= STEAL_MAX {
            return Ok((result, steal));
        }
    }
    Err("no measurement was made".into())
}

/// The kernel's account of all processors' time.
struct Jiffies {
    all: u64,
    stolen: u64,
}

impl Jiffies {
    fn now() -> Self {
        Self::parse(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// From `/proc/stat`, whose first line sums user, nice, system, idle, iowait, irq, softirq and
    /// steal over all processors (proc(5)).
    fn parse(stat: &str) -> Self {
        let words = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
        let fields: Vec<u64> = words.take(8).filter_map(|word| word.parse().ok()).collect();
        Jiffies { all: fields.iter().sum(), stolen: fields.get(7).copied().unwrap_or(0) }
    }

    fn steal_until(&self, later: &Jiffies) -> f64 {
        let all = later.all.saturating_sub(self.all).max(1);
        later.stolen.saturating_sub(self.stolen) as f64 / all as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_a_share_of_all_time() {
        let before = Jiffies::parse("cpu  100 0 50 800 0 0 0 50 0 0\ncpu0 1 2 3");
        let after = Jiffies::parse("cpu  150 0 60 830 0 0 0 60 0 0\n");
        assert_eq!((before.all, before.stolen), (1000, 50));
        assert!((before.steal_until(&after) - 0.1).abs() < 1e-9);
        assert_eq!(Jiffies::parse("").steal_until(&Jiffies::parse("")), 0.0);
    }
}
