//! Thresholds: `--fail-if`.

use crate::pending::Threshold;
use crate::words::Words;
use clap::Args;
use knee_core::report::Report;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub struct ThresholdArgs {
    /// Exit with 1 where this holds, repeatable: 'p99>200ms', 'throughput<5000', 'errors>0.1%',
    /// 'invalid'
    #[arg(long, value_name = "EXPR")]
    pub fail_if: Vec<Threshold>,
}

impl ThresholdArgs {
    /// Whether any of them holds.
    pub fn crossed(&self, report: &Report) -> bool {
        self.fail_if.iter().any(|t| t.crossed(report))
    }

    /// The thresholds in the words of the command line.
    pub fn tell(&self, words: &mut Words) {
        words.put_list("fail-if", self.fail_if.iter().map(ToString::to_string));
    }
}
