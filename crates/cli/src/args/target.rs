//! What the load is sent to.

use crate::failure::Failure;
use crate::words::Words;
use clap::Args;
use clap::builder::PossibleValuesParser;
use knee_core::spec::HttpTarget;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Target")]
pub struct TargetArgs {
    /// The URL to load, such as http://127.0.0.1:8080/path
    #[arg(value_name = "URL", help_heading = None::<&str>)]
    pub url: Option<String>,

    /// Method [default: GET; POST with a body]
    #[arg(short, long, value_name = "METHOD")]
    method: Option<String>,

    /// A header, repeatable: 'Name: value'
    #[arg(short = 'H', long, value_name = "HEADER")]
    header: Vec<String>,

    /// The body, or @FILE
    #[arg(short, long, value_name = "BODY")]
    body: Option<String>,

    /// The body's content type
    #[arg(short = 'T', long, value_name = "TYPE", hide_short_help = true)]
    content_type: Option<String>,

    /// Several requests from a file: 'METHOD URL' each, with headers and '@body-file' below it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "method", "body"])]
    #[arg(hide_short_help = true)]
    targets: Option<String>,

    /// How the next of several requests is picked
    #[arg(
        long,
        value_name = "HOW",
        default_value = "in-order",
        hide_short_help = true
    )]
    #[arg(value_parser = PossibleValuesParser::new(["in-order", "random"]))]
    pick: String,

    /// Connect to this Unix socket; the URL still gives path and Host
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    unix_socket: Option<String>,

    /// A new connection for each request
    #[arg(long, alias = "disable-keepalive", hide_short_help = true)]
    no_keepalive: bool,
}

impl TargetArgs {
    /// Whether the user said what to load.
    pub fn is_given(&self) -> bool {
        self.url.is_some() || self.targets.is_some()
    }
    pub fn resolve(&self) -> Result<HttpTarget, Failure> {
        let url = self
            .url
            .clone()
            .ok_or_else(|| Failure::input("URL is missing"))?;
        let rest = url
            .strip_prefix("http://")
            .ok_or_else(|| Failure::input("URL: https"))?;
        let (auth, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = auth.rsplit_once(':').unwrap_or((auth, "80"));
        let port = port.parse().map_err(|_| Failure::input("URL: port"))?;
        use knee_core::spec::*;
        Ok(HttpTarget {
            endpoint: Endpoint::Tcp {
                host: host.into(),
                port,
            },
            requests: vec![HttpRequest {
                method: "GET".into(),
                path: format!("/{path}"),
                host: auth.into(),
                headers: vec![],
                body: vec![],
                weight: 1,
            }],
            pick: Pick::InOrder,
            keep_alive: !self.no_keepalive,
        })
    }
    pub fn tell(&self, words: &mut Words) {
        words.put_some("url", self.url.clone());
    }
}
