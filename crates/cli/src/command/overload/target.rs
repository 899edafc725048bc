//! What an overload's trials are run against: a server that may not answer, watched from where its
//! SYNs arrive.

use super::super::http_runner::HttpRunner;
use crate::args::{Fleet, ObserveArgs};
use knee_core::experiment::overload::report::is_base_again;
use knee_core::experiment::overload::{OverloadSpec, PreflightFacts};
use knee_core::trial::report::TrialReport;
use knee_engine::error::RunError;
use knee_engine::observe::watch_for;
use knee_load::spec::{CloseKind, Level, Load};
use std::net::SocketAddr;

/// A target that connections, or requests in datagrams, are offered to.
#[derive(Debug)]
pub struct FoundTarget {
    /// Runs the trials, and watches the target.
    pub runner: HttpRunner,
    address: SocketAddr,
    /// Whether it answered when it was looked for.
    pub answers: bool,
}

impl FoundTarget {
    /// Looks for the target of this overload; `fleet` makes its trials, where there is one.
    ///
    /// # Errors
    /// It refuses, or is not there; an address that connections are to come from is not the
    /// generator's; the observer does not answer.
    pub fn find(
        spec: &OverloadSpec,
        observe: &ObserveArgs,
        fleet: Option<Fleet>,
    ) -> Result<FoundTarget, RunError> {
        let target = &spec.base.target;
        let (address, answers) = match &fleet {
            None => knee_engine::preflight_overload(target)?,
            Some(fleet) => fleet.aim(target)?,
        };
        let vantage = observe.vantage_or_here(address)?;
        let runner = HttpRunner::new(&spec.base, Some(line), observe.clone());
        let runner = runner.made_by(fleet).on_found(vantage);
        Ok(FoundTarget { runner, address, answers })
    }

    /// What is known of this host, and of the server's where it is this one.
    ///
    /// # Errors
    /// None that [`FoundTarget::find`] would not have had.
    pub fn facts(&self, spec: &OverloadSpec) -> Result<PreflightFacts, RunError> {
        let on_this_host = watch_for(self.address, None, None)?.is_some();
        let facts = knee_engine::preflight_facts(self.address.ip(), on_this_host);
        let close = match &spec.base.load {
            Load::Overload(load) => load.close,
            Load::Open(_) | Load::Closed { .. } => CloseKind::default(),
        };
        let target = &spec.base.target;
        let facts = PreflightFacts {
            sources: target.route.sources.len().max(1) as u32,
            close: Some(close),
            // Only over HTTP/1.1 a request says that its connection is the last.
            closes_first: target.keep_alive || target.shared_by().is_some(),
            ..facts
        };
        Ok(if target.protocol.is_in_datagrams() { facts.of_datagrams() } else { facts })
    }
}

/// What an ended level showed, in one line.
fn line(number: usize, trial: &TrialReport) -> String {
    let level = match trial.level {
        Level::Clients(1) => "1 simple client".to_string(),
        Level::Clients(n) => format!("{n} simple clients"),
        Level::Descriptors(n) => format!("{n} descriptors"),
        Level::RatePerS(_) | Level::Vusers(_) | Level::Flows { .. } => trial.label.clone(),
    };
    let level = if is_base_again(trial) { format!("again: {level}") } else { level };
    let (started, served) = (trial.offered.achieved_per_s, trial.responses_per_s());
    let attempts = trial.attempts();
    format!(
        "{:>3}  {level:<20} {started:>9.1}/s attempts  {served:>9.1}/s served  not served {}",
        number + 1,
        attempts.total() - attempts.responses(),
    )
}
