//! A whole spec for tests, of which only load and time matter.

use super::{
    BackendChoice, Endpoint, EngineOptions, HttpTarget, Load, Margins, Pick, TrialSpec, WaitPolicy,
};
use crate::time::Nanos;

/// A trial of this load over a window of this length: no warm-up, timeouts of 60 s.
pub(crate) fn trial(load: Load, duration: Nanos) -> TrialSpec {
    let level = load.level();
    TrialSpec {
        label: "test".to_owned(),
        level,
        load,
        target: HttpTarget {
            endpoint: Endpoint::Unix {
                path: "/test".to_owned(),
            },
            requests: Vec::new(),
            pick: Pick::InOrder,
            keep_alive: true,
        },
        warmup: Nanos::ZERO,
        duration,
        operations_max: None,
        timeout: Nanos::from_secs(60),
        connect_timeout: Nanos::from_secs(60),
        interval: Nanos::from_secs(1),
        seed: 1,
        engine: EngineOptions {
            workers: 1,
            backend: BackendChoice::Auto,
            wait: WaitPolicy::Hybrid,
            margins: Margins::UNKNOWN,
        },
    }
}
