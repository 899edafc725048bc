//! Stages of rates or users, and the times at which sessions begin by those of rates.

use super::ScenarioLoad;
use knee_load::quantity::{ParseError, error};
use knee_load::rng;
use knee_load::spec::UserStage;
use knee_load::time::Nanos;

/// A period in which the rate is constant or changes linearly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateStage {
    /// Sessions per second at its begin.
    pub from_per_s: f64,
    /// Sessions per second at its end.
    pub to_per_s: f64,
    /// Its length, above 0.
    pub length: Nanos,
}

/// Stages one after another.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadStages {
    /// Of rates: an open loop.
    Rates(Vec<RateStage>),
    /// Of users, each with one session after another: a closed loop.
    Users(Vec<UserStage>),
}

impl Default for LoadStages {
    fn default() -> LoadStages {
        LoadStages::Rates(Vec::new())
    }
}

impl LoadStages {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.length() == Nanos::ZERO
    }

    /// Length of all together.
    pub fn length(&self) -> Nanos {
        let none = Nanos::ZERO;
        match self {
            LoadStages::Rates(stages) => stages.iter().fold(none, |sum, one| sum + one.length),
            LoadStages::Users(stages) => stages.iter().fold(none, |sum, one| sum + one.length),
        }
    }

    /// Of users, how many there are at most, and all stages.
    pub fn of_users(&self) -> Option<(u32, &[UserStage])> {
        let LoadStages::Users(stages) = self else {
            return None;
        };
        Some((stages.iter().map(|stage| stage.from.max(stage.to)).max()?, stages))
    }
}

/// The most sessions of all stages.
const SESSIONS_MAX: f64 = 20e6;

impl RateStage {
    /// Number of sessions that begin in the stage.
    fn sessions(&self) -> f64 {
        (self.from_per_s + self.to_per_s) / 2.0 * self.length.as_secs_f64()
    }

    /// Time into the stage at which this number of its sessions has begun.
    fn after(&self, sessions: f64) -> Nanos {
        let length_s = self.length.as_secs_f64();
        let slope = (self.to_per_s - self.from_per_s) / length_s;
        // from·t + slope/2·t² = sessions, solved so that no two near numbers are subtracted.
        let root = (self.from_per_s.powi(2) + 2.0 * slope * sessions).max(0.0);
        let below = self.from_per_s + root.sqrt();
        let t = if below > 0.0 { 2.0 * sessions / below } else { 0.0 };
        Nanos((t.min(length_s) * 1e9) as u64).min(self.length)
    }
}

impl ScenarioLoad {
    /// When sessions begin by the stages of rates: as the arrival process says, with a rate that
    /// follows them.
    ///
    /// # Errors
    /// None begins, or more than can be held.
    pub fn moments(&self, seed: u64) -> Result<Vec<Nanos>, ParseError> {
        let stages = match &self.stages {
            LoadStages::Rates(stages) => &stages[..],
            LoadStages::Users(_) => &[],
        };
        let all: f64 = stages.iter().map(RateStage::sessions).sum();
        if all > SESSIONS_MAX {
            return Err(error(format!(
                "the stages have {all:.0} sessions: expected at most {SESSIONS_MAX:.0}"
            )));
        }
        let arrival = self.arrival.as_ref().map_or("constant", |arrival| arrival.name());
        let mut rng = rng::stream(seed, rng::ARRIVALS);
        let mut gap = || match arrival {
            "poisson" => rng::exp1(&mut rng),
            "uniform" => 2.0 * rng::unit(&mut rng),
            _ => 1.0,
        };
        // Counted in sessions, the rate is 1 all the time.
        let mut next = if arrival == "constant" { 0.0 } else { gap() };
        let (mut begin, mut before) = (Nanos::ZERO, 0.0);
        let mut moments = Vec::with_capacity(all as usize + 1);
        for stage in stages {
            let sessions = stage.sessions();
            while next < before + sessions {
                moments.push(begin + stage.after(next - before));
                next += gap();
            }
            before += sessions;
            begin += stage.length;
        }
        if moments.is_empty() {
            Err(error("no session begins in the stages: write longer ones".to_owned()))
        } else {
            Ok(moments)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_load::arrival::AskedArrival;

    fn load(arrival: &str, stages: &[(f64, f64, u64)]) -> ScenarioLoad {
        let stage = |&(from_per_s, to_per_s, s): &(f64, f64, u64)| RateStage {
            from_per_s,
            to_per_s,
            length: Nanos::from_secs(s),
        };
        ScenarioLoad {
            arrival: Some(AskedArrival::parse(arrival).unwrap()),
            stages: LoadStages::Rates(stages.iter().map(stage).collect()),
            ..ScenarioLoad::default()
        }
    }

    #[test]
    fn each_stage_has_its_sessions() {
        let stages = [(0.0, 200.0, 10), (200.0, 200.0, 5), (600.0, 600.0, 1), (200.0, 0.0, 10)];
        for arrival in ["constant", "poisson", "uniform"] {
            let load = load(arrival, &stages);
            assert_eq!(load.stages.length(), Nanos::from_secs(26));
            let moments = load.moments(1).unwrap();
            assert!(moments.is_sorted(), "{arrival}");
            assert_eq!(moments, load.moments(1).unwrap(), "{arrival}");
            for (from, to, want) in [
                (0, 5, 250.0),
                (5, 10, 750.0),
                (10, 15, 1_000.0),
                (15, 16, 600.0),
                (16, 26, 1_000.0),
            ] {
                let [from, to] = [from, to].map(Nanos::from_secs);
                let count = moments.iter().filter(|&&m| from <= m && m < to).count() as f64;
                let slack = if arrival == "constant" { 1.0 } else { 4.5 * f64::sqrt(want) };
                assert!((count - want).abs() <= slack, "{arrival}: {count} of {want}");
            }
        }
        // A session begins when the rate until then adds up to it.
        let ramp = load("constant", &[(0.0, 2.0, 10)]).moments(1).unwrap();
        assert_eq!(ramp.len(), 10);
        assert!((ramp[4].as_secs_f64() - 40f64.sqrt()).abs() < 1e-6);
    }

    #[test]
    fn too_few_and_too_many_are_refused() {
        let none = load("constant", &[]).moments(1).unwrap_err();
        assert!(none.0.contains("no session begins"), "{none}");
        let many = load("constant", &[(1e6, 1e6, 3_600)]).moments(1).unwrap_err();
        assert!(many.0.contains("at most 20000000"), "{many}");
    }
}
