//! What the load is sent to.

use crate::failure::Failure;
use crate::input;
use crate::words::Words;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use knee_core::spec::{Endpoint, HttpRequest, HttpTarget, Pick, Url};
use knee_core::spec::{parse_header, parse_targets};

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
    #[arg(short = 'H', long, value_name = "HEADER", value_parser = parse_header)]
    header: Vec<(String, String)>,

    /// The body, or @FILE
    #[arg(short, long, value_name = "BODY")]
    body: Option<String>,

    /// The body's content type
    #[arg(short = 'T', long, value_name = "TYPE", hide_short_help = true)]
    content_type: Option<String>,

    /// Several requests from a file, to one server
    ///
    /// Each is a line 'METHOD URL', which 'weight=N' may follow, then its lines 'Name: value' and
    /// at most one '@FILE' for its body. An empty line ends it; # begins a comment.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "method", "body"])]
    #[arg(hide_short_help = true)]
    targets: Option<String>,

    /// How the next of several requests is picked: in order, or at random by weight
    #[arg(long, value_name = "HOW", default_value = IN_ORDER, value_parser = picks())]
    #[arg(hide_short_help = true)]
    pick: Pick,

    /// Connect to this Unix socket; the URL still gives path and Host
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    pub unix_socket: Option<String>,

    /// A new connection for each request
    #[arg(long, alias = "disable-keepalive", hide_short_help = true)]
    no_keepalive: bool,
}

impl TargetArgs {
    /// Whether the user said what to load.
    pub fn is_given(&self) -> bool {
        self.url.is_some() || self.targets.is_some()
    }

    /// The target; files are read here.
    pub fn resolve(&self) -> Result<HttpTarget, Failure> {
        let (endpoint, requests) = match (&self.targets, &self.url) {
            (Some(file), _) => self.several(file)?,
            (None, Some(url)) => self.one(url)?,
            (None, None) => {
                let wrong = "is missing: give one, such as http://127.0.0.1:8080/";
                return Err(Failure::argument("URL", wrong));
            }
        };
        let endpoint = match &self.unix_socket {
            Some(path) => Endpoint::Unix { path: path.clone() },
            None => endpoint,
        };
        let target = HttpTarget::new(endpoint, requests, self.pick, !self.no_keepalive);
        target.map_err(|e| Failure::argument("URL", e))
    }

    fn one(&self, url: &str) -> Result<(Endpoint, Vec<HttpRequest>), Failure> {
        let url = Url::parse(url).map_err(|e| Failure::argument("URL", e))?;
        let body = match self.body.as_deref().map(|b| (b, b.strip_prefix('@'))) {
            None => Vec::new(),
            Some((_, Some(file))) => {
                input::read(file).map_err(|e| Failure::argument("--body", e.line))?
            }
            Some((text, None)) => text.as_bytes().to_vec(),
        };
        let implied = if self.body.is_some() { "POST" } else { "GET" };
        let method = self.method.as_deref().unwrap_or(implied);
        let request = HttpRequest::new(method, &url, Vec::new(), body, 1)
            .map_err(|e| Failure::argument("--method", e))?;
        let request = self.with_headers(request)?;
        Ok((url.endpoint().clone(), vec![request]))
    }

    fn several(&self, file: &str) -> Result<(Endpoint, Vec<HttpRequest>), Failure> {
        let told = |e: Failure| Failure::argument("--targets", e.line);
        let text = input::read_text(file).map_err(told)?;
        let mut read_body = |path: &str| std::fs::read(path).map_err(|e| e.to_string());
        let targets = parse_targets(&text, &mut read_body)
            .map_err(|e| Failure::argument("--targets", format!("{file}: {e}")))?;
        let requests = targets.requests.into_iter().map(|r| self.with_headers(r));
        Ok((targets.endpoint, requests.collect::<Result<_, _>>()?))
    }

    fn with_headers(&self, request: HttpRequest) -> Result<HttpRequest, Failure> {
        let request = request
            .with_common_headers(&self.header)
            .map_err(|e| Failure::argument("--header", e))?;
        let Some(content_type) = &self.content_type else {
            return Ok(request);
        };
        let header = ("Content-Type".to_string(), content_type.clone());
        request
            .with_common_headers(&[header])
            .map_err(|e| Failure::argument("--content-type", e))
    }

    /// The target in the words of the command line.
    pub fn tell(&self, words: &mut Words) {
        words.put_some("url", self.url.clone());
        words.put_some("targets", self.targets.clone());
        if self.pick == Pick::Weighted {
            words.put("pick", RANDOM);
        }
        words.put_some("method", self.method.clone());
        let headers = self
            .header
            .iter()
            .map(|(name, value)| format!("{name}: {value}"));
        words.put_list("header", headers);
        words.put_some("body", self.body.clone());
        words.put_some("content-type", self.content_type.clone());
        words.put_some("unix-socket", self.unix_socket.clone());
        if self.no_keepalive {
            words.put("no-keepalive", true);
        }
    }
}

fn picks() -> impl TypedValueParser<Value = Pick> {
    PossibleValuesParser::new([IN_ORDER, RANDOM]).map(|word| match word.as_str() {
        RANDOM => Pick::Weighted,
        _ => Pick::InOrder,
    })
}

const IN_ORDER: &str = "in-order";
const RANDOM: &str = "random";
