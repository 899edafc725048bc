//! The policy, and what it concludes.

use super::*;
use crate::spec::fixture::trial;
use crate::spec::{CloseKind, ConnectScheme, Load, OverloadLoad};

/// The sweeps of the paper, T = 500 ms, 5 s per level.
pub fn spec() -> OverloadSpec {
    let load = Load::Overload(OverloadLoad {
        scheme: ConnectScheme::Simple { clients: 1 },
        sources: Vec::new(),
        close: CloseKind::Fin,
    });
    OverloadSpec {
        base: TrialSpec {
            connect_timeout: Nanos::from_millis(500),
            ..trial(load, Nanos::from_secs(5))
        },
        simple: vec![1, 16, 256],
        sclients: 12,
        descriptors: Descriptors::Auto,
        offered_factor_max: OverloadSpec::OFFERED_FACTOR_MAX,
        descriptors_max: 1 << 20,
        scheduled: None,
    }
}
