//! How an experiment can be watched while it runs.

use clap::Args;
use knee_core::spec::ParseError;
use std::net::SocketAddr;

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
pub struct WatchArgs {
    /// No live view on the terminal, but a line of progress
    #[arg(long, hide_short_help = true)]
    pub no_tui: bool,

    /// Serve the running figures there as OpenMetrics text, for Prometheus, at /metrics
    #[arg(long, value_name = "ADDR:PORT", value_parser = parse_address, hide_short_help = true)]
    pub metrics: Option<SocketAddr>,
}

fn parse_address(text: &str) -> Result<SocketAddr, ParseError> {
    text.parse().map_err(|_| {
        ParseError(format!(
            "'{text}' is no address to listen at: give ADDR:PORT such as 127.0.0.1:7009"
        ))
    })
}
