//! What tests of whole trials share.

use knee_engine::error::RunError;
use knee_load::measure::{Histogram, Interval, IntervalWatcher, Trial};
use knee_load::spec::{BackendChoice, Body, Endpoint, HttpRequest, Pick, Target, TrialSpec};
use knee_load::time::Nanos;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicBool;

/// Watches nothing.
pub struct Quiet;

impl IntervalWatcher for Quiet {
    fn on_interval(&mut self, _: &Interval, _: &Histogram) {}
}

/// One request, to this port of this host.
#[allow(dead_code, reason = "not every test of trials needs it")]
pub fn target(port: u16, method: &str, body: Body, keep_alive: bool) -> Target {
    let host = "127.0.0.1".to_owned();
    let request = HttpRequest {
        method: method.to_owned(),
        path: "/".to_owned(),
        host: host.clone(),
        headers: Vec::new(),
        body,
        weight: 1,
        holes: Vec::new(),
        messages: None,
        timed: None,
        answers_stream: false,
    };
    Target {
        further: Vec::new(),
        endpoint: Endpoint::Tcp { host, port },
        requests: vec![request],
        pick: Pick::InOrder,
        keep_alive,
        protocol: Default::default(),
        connections_max: None,
        tls: None,
        proxy: None,
        route: Default::default(),
        sessions: None,
        recording: None,
        stream_bounds: None,
    }
}

/// Runs it over this backend; `None` where io_uring is not permitted.
pub fn run_over(spec: &TrialSpec, backend: BackendChoice) -> Option<Trial> {
    let mut spec = spec.clone();
    spec.engine.backend = backend;
    match knee_engine::run(&spec, &mut Quiet, &AtomicBool::new(false)) {
        Ok(trial) => Some(trial),
        Err(RunError::NotPermitted(why)) if backend == BackendChoice::IoUring => {
            eprintln!("skipped: {why}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Attempts that must do on a machine that is busy with other things.
const ATTEMPTS: u32 = 12;
/// A worker that was later than this was held up by the host.
const DISTURBED: Nanos = Nanos::from_millis(10);

/// Runs trials again where `check` panics and the host disturbed one of them.
#[allow(dead_code, reason = "not every test of trials needs it")]
pub fn unless_disturbed(mut run: impl FnMut() -> Vec<Trial>, check: impl Fn(&[Trial])) {
    for left in (0..ATTEMPTS).rev() {
        let trials = run();
        let Err(failure) = catch_unwind(AssertUnwindSafe(|| check(&trials))) else {
            return;
        };
        let is_disturbed = |trial: &Trial| {
            let measured = &trial.measurement;
            measured.pacing_error.max().0.max(measured.stall_ns_max) >= DISTURBED.0
        };
        if left == 0 || !trials.iter().any(is_disturbed) {
            resume_unwind(failure);
        }
    }
}
