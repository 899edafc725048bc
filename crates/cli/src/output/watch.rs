//! How an experiment can be watched while it runs.

use clap::Args;
use knee_core::spec::ParseError;
use std::net::SocketAddr;

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
pub struct WatchArgs {
    /// Show a progress line instead of the live view
    #[arg(long, hide_short_help = true)]
    pub no_tui: bool,

    /// Address of an OpenMetrics endpoint (/metrics) with the running figures, for Prometheus
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
