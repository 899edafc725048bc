//! Whole experiments against targets of known behaviour.

mod beside;
mod changing_servers;
mod ends;
pub(crate) mod fake;
mod findings;
mod limits;
mod random_servers;
mod rates;
mod rounds;
mod simulated;
mod tables;
mod users;

use crate::experiment::Conducted;
use crate::experiment::sweep::report::SweepConclusion;
use crate::finding::Finding;
use crate::trial::report::TrialReport;

fn codes(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|f| f.code.as_str()).collect()
}

fn levels(conducted: &Conducted<TrialReport, SweepConclusion>) -> Vec<f64> {
    let levels = conducted.trials.iter().map(|t| t.level);
    levels.map(crate::words::value).collect()
}

fn near(value: f64, truth: f64, share: f64) -> bool {
    (value / truth - 1.0).abs() <= share
}
