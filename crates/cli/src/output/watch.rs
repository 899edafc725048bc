//! Options of how an experiment is watched while it runs, and whether it is kept.

use crate::args::listen_address;
use crate::history::{KeepOptions, parse_name};
use clap::Args;
use std::net::SocketAddr;

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
pub struct WatchArgs {
    /// Show a progress line instead of the live view
    #[arg(long, hide_short_help = true)]
    pub no_tui: bool,

    /// Address of an OpenMetrics endpoint (/metrics) with the running figures, for Prometheus
    #[arg(long, value_name = "ADDR:PORT", hide_short_help = true)]
    #[arg(value_parser = |text: &str| listen_address(text, "127.0.0.1:7009"))]
    pub metrics: Option<SocketAddr>,

    /// URL of an OpenTelemetry collector to push the running figures to, by OTLP over HTTP; 'env':
    /// that of OTEL_EXPORTER_OTLP_ENDPOINT
    #[arg(long, value_name = "URL", hide_short_help = true)]
    pub otlp: Option<String>,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "History")]
pub struct KeepArgs {
    /// Do not keep this run in the history ('knee history')
    #[arg(long, hide_short_help = true)]
    no_save: bool,

    /// Name under which this run becomes a baseline if it is VALID; replaces an earlier one
    #[arg(long, value_name = "NAME", value_parser = parse_name, conflicts_with = "no_save")]
    #[arg(hide_short_help = true)]
    save_baseline: Option<String>,
}

impl KeepArgs {
    /// How a run is kept, if it is; its id is printed where somebody watches.
    pub fn resolve(&self, is_watched: bool) -> Option<KeepOptions> {
        (!self.no_save)
            .then(|| KeepOptions { baseline: self.save_baseline.clone(), tells_id: is_watched })
    }
}
