//! What an overload is asked to do.

use super::report::BASE_AGAIN;
use knee_load::rng;
use knee_load::spec::{
    ArrivalLaw, CloseKind, ConnectScheme, Level, Load, OverloadLoad, Rate, TrialSpec,
};
use serde::{Deserialize, Serialize};

/// What an overload is asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverloadSpec {
    /// What all trials have in common: the target, the time per level, T (`connect_timeout`). Its
    /// load gives the local addresses and how connections are closed; level, label, seed and the
    /// rest of the load are set per trial.
    pub base: TrialSpec,
    /// Simple clients, one trial each, in this order, before all else; each at least 1.
    pub simple: Vec<u32>,
    /// How many S-Clients the descriptors are shared among, at least 1.
    pub sclients: u32,
    /// Descriptors of the S-Clients, one trial for each number.
    pub descriptors: Descriptors,
    /// How many times the capacity an automatic choice of descriptors offers at the most.
    pub offered_factor_max: f64,
    /// The most descriptors that an automatic choice may use: what this process may have open.
    pub descriptors_max: u32,
    /// In place of the S-Clients one trial whose connection starts follow a schedule. It has the
    /// mean rate, the arrival process, and the most connects in flight.
    pub scheduled: Option<(Rate, ArrivalLaw, u32)>,
}

/// Which numbers of descriptors are tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Descriptors {
    /// As the capacity demands that the simple clients found.
    Auto,
    /// A list of numbers, in this order; each at least 1.
    List(Vec<u32>),
}

impl OverloadSpec {
    /// How many trials it takes at the most: each level, and after several the base load again.
    pub fn trials_max(&self) -> usize {
        let pressing = match (&self.scheduled, &self.descriptors) {
            (Some(_), _) => 1,
            (None, Descriptors::List(list)) => list.len(),
            // With no simple client before them there is one more, for the capacity.
            (None, Descriptors::Auto) => LEVELS + usize::from(self.simple.is_empty()),
        };
        let levels = self.simple.len() + pressing;
        levels + usize::from(levels > 1)
    }

    /// How many times the capacity is offered, unless asked otherwise.
    pub const OFFERED_FACTOR_MAX: f64 = 16.0;

    /// The simple clients tried unless asked otherwise: those of the paper, and on.
    pub fn simple_default() -> Vec<u32> {
        (0..9).map(|k| 1 << k).collect()
    }

    /// Trial number `trial` (from 0) with this many simple clients.
    pub(super) fn simple_trial(&self, clients: u32, trial: usize) -> TrialSpec {
        let label = format!("clients={clients}");
        self.trial(label, ConnectScheme::Simple { clients }, trial)
    }

    /// Trial number `trial` (from 0) with this many descriptors.
    pub(super) fn sclient_trial(&self, descriptors: u32, trial: usize) -> TrialSpec {
        let sclients = self.sclients;
        let scheme = ConnectScheme::SClients { sclients, descriptors };
        self.trial(format!("descriptors={descriptors}"), scheme, trial)
    }

    /// Trial number `trial` (from 0), which offers this level again after the last.
    pub(super) fn base_again(&self, level: Level, trial: usize) -> Option<TrialSpec> {
        let spec = match level {
            Level::Clients(clients) => self.simple_trial(clients, trial),
            Level::Descriptors(descriptors) => self.sclient_trial(descriptors, trial),
            _ => return None,
        };
        Some(TrialSpec { label: format!("{BASE_AGAIN}, {}", spec.label), ..spec })
    }

    /// Trial number `trial` (from 0) by the schedule, if there is one.
    pub(super) fn scheduled_trial(&self, trial: usize) -> Option<TrialSpec> {
        let (rate, arrival, descriptors) = self.scheduled.clone()?;
        let scheme = ConnectScheme::Scheduled { rate, arrival, descriptors };
        Some(self.trial(format!("rate={}/s", rate.per_s()), scheme, trial))
    }

    /// How connections are closed.
    pub(super) fn close(&self) -> CloseKind {
        match &self.base.load {
            Load::Overload(load) => load.close,
            Load::Open(_) | Load::Closed { .. } => CloseKind::default(),
        }
    }

    fn trial(&self, label: String, scheme: ConnectScheme, trial: usize) -> TrialSpec {
        let sources = match &self.base.load {
            Load::Overload(load) => load.sources.clone(),
            Load::Open(_) | Load::Closed { .. } => Vec::new(),
        };
        let load = Load::Overload(OverloadLoad { scheme, sources, close: self.close() });
        TrialSpec {
            label,
            level: load.level(),
            load,
            seed: rng::of_trial(self.base.seed, trial),
            ..self.base.clone()
        }
    }
}

/// The lowest level adds this share of the capacity to it by its descriptors.
const LOWEST: f64 = 0.25;
/// Number of automatic levels, each the same factor above the one before it.
pub(super) const LEVELS: usize = 9;
/// Where nothing is known of the capacity, or nothing is served, these.
const UNKNOWN: [u32; 5] = [64, 128, 256, 512, 1_024];
/// Where no simple client goes before, the capacity is found with this many descriptors.
pub(super) const PROBE: u32 = 16;

/// Numbers of descriptors D, ascending. The rate offered, served + D/T, goes from a quarter above
/// the capacity to `offered_factor_max` times the capacity, as far as descriptors last.
pub(super) fn automatic(spec: &OverloadSpec, capacity_per_s: f64) -> Vec<u32> {
    let patience_s = spec.base.connect_timeout.as_secs_f64();
    let most = spec.descriptors_max.max(1);
    let highest = (spec.offered_factor_max - 1.0).max(LOWEST);
    let step = (highest / LOWEST).powf(1.0 / (LEVELS - 1) as f64);
    let descriptors = |share: f64| {
        // Not a descriptor too few: the highest is to reach the factor that was asked for.
        let wanted = (share * capacity_per_s * patience_s - 1e-6).ceil();
        (wanted.max(1.0) as u32).min(most)
    };
    let mut levels: Vec<u32> = if capacity_per_s > 0.0 {
        (0..LEVELS).map(|k| descriptors(LOWEST * step.powi(k as i32))).collect()
    } else {
        UNKNOWN.iter().map(|&d| d.min(most)).collect()
    };
    levels.dedup();
    levels
}

#[cfg(test)]
mod levels_tests {
    use super::super::tests::spec;
    use super::*;
    use knee_load::time::Nanos;

    #[test]
    fn levels_reach_from_a_quarter_above_the_capacity_to_the_factor() {
        let spec = spec();
        let levels = automatic(&spec, 130.0);
        assert_eq!(levels, [17, 28, 46, 76, 126, 210, 351, 585, 975]);
        let offered = 130.0 + f64::from(levels[8]) / 0.5;
        assert!(offered >= 16.0 * 130.0, "{offered}");
    }

    #[test]
    fn descriptors_end_where_there_are_no_more() {
        let mut spec = spec();
        spec.descriptors_max = 100;
        assert_eq!(automatic(&spec, 130.0), [17, 28, 46, 76, 100]);
        assert_eq!(automatic(&spec, 0.0), [64, 100], "nothing is served");
        spec.base.connect_timeout = Nanos::from_millis(1);
        assert_eq!(automatic(&spec, 130.0), [1, 2], "few descriptors do");
    }
}
