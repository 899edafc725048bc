//! Thresholds: `--fail-if`.

use crate::words::Words;
use clap::Args;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub struct ThresholdArgs {
    /// Exit with 1 where this holds, repeatable: 'p99>200ms', 'throughput<5000', 'errors>0.1%',
    /// 'invalid'
    #[arg(long, value_name = "EXPR", value_parser = parse_threshold)]
    pub fail_if: Vec<String>,
}
