//! What the load is sent to.

mod recording;
mod scenario;

pub use recording::ReplayArgs;
use recording::{CheckedRecording, names_recording};

use super::curl::{CurlArgs, option_of, parse_header};
use super::protocol::{self, ProtocolArgs};
use super::responses::{ExpectArgs, MessageArgs};
use super::route::RouteArgs;
use super::values::{Choices, User, one_of, parse_user, word_of};
use crate::failure::{Failure, of_command_line_and};
use crate::input;
use crate::resolved_options::{Typed, typed};
use crate::script::ScriptArgs;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use clap::Args;
use knee_load::spec::{
    Endpoint, HttpRequest, Pick, Protocol, Scheme, SkippedLines, Target, Url, parse_targets,
};
use knee_scenario::Scenario;
use knee_scenario::import::data::{self, CurlData};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::slice;
use std::sync::Arc;

#[derive(Args, Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Target")]
pub struct TargetArgs {
    #[arg(value_name = "URL", help = protocol::URL_HELP, help_heading = None::<&str>)]
    pub url: Option<String>,

    /// Method [default: GET; POST with a body]
    #[arg(short, long, value_name = "METHOD", short_alias = 'X', alias = "request")]
    method: Option<String>,

    /// A header, repeatable: 'Name: value'
    #[arg(short = 'H', long, value_name = "HEADER", value_parser = parse_header)]
    #[serde(serialize_with = "headers")]
    header: Vec<(String, String)>,

    /// The body, or @FILE of up to 256 MiB
    #[arg(short, long, value_name = "BODY", conflicts_with_all = super::curl::DATA_IDS)]
    body: Option<String>,

    /// User and password for Basic authentication
    #[arg(short, long, value_name = "USER:PASSWORD", value_parser = parse_user)]
    #[arg(hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    user: Option<User>,

    /// The body's content type
    #[arg(short = 'T', long, value_name = "TYPE", hide_short_help = true)]
    content_type: Option<String>,

    #[arg(help = protocol::TARGETS_HELP, long_help = protocol::TARGETS_LONG_HELP)]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    #[arg(conflicts_with_all = ["method", "body", "get", "head"])]
    #[arg(conflicts_with_all = super::curl::DATA_IDS)]
    targets: Option<String>,

    /// Order of several requests: in order, or random by weight
    #[arg(long, value_name = "HOW", default_value = IN_ORDER, value_parser = one_of(PICKS))]
    #[arg(hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    pick: Pick,

    /// Connect to this Unix socket; the URL still gives path and Host
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    pub unix_socket: Option<String>,

    /// Open a new connection for each request
    #[arg(long, alias = "disable-keepalive", hide_short_help = true)]
    no_keepalive: bool,

    /// Permit the scenario to start the programs that its steps name under 'exec'
    #[arg(long, hide_short_help = true)]
    allow_exec: bool,

    #[command(flatten)]
    #[serde(flatten)]
    pub expect: ExpectArgs,

    #[command(flatten)]
    #[serde(flatten)]
    messages: MessageArgs,

    #[command(flatten)]
    #[serde(flatten)]
    curl: CurlArgs,

    #[command(flatten)]
    #[serde(flatten)]
    pub route: RouteArgs,

    #[command(flatten)]
    #[serde(flatten)]
    script: ScriptArgs,

    #[command(flatten)]
    #[serde(flatten)]
    protocol: ProtocolArgs,

    /// The scenario that the URL names, once it is read.
    #[arg(skip)]
    #[serde(skip)]
    scenario: Option<Arc<Scenario>>,

    /// The recording that the URL names, once it is read.
    #[arg(skip)]
    #[serde(skip)]
    recorded: Option<Arc<CheckedRecording>>,
}

impl TargetArgs {
    /// Whether the user said what to load.
    pub fn is_given(&self) -> bool {
        self.url().is_some() || self.targets.is_some()
    }

    fn url(&self) -> Option<&str> {
        self.url.as_deref().or(self.curl.url_option.as_deref())
    }

    /// The target; files are read here.
    pub fn resolve(&self) -> Result<Target, Failure> {
        if let Some(scenario) = &self.scenario {
            return self.target_of(scenario);
        }
        if let Some(recorded) = &self.recorded {
            return self.target_of_recording(recorded);
        }
        let mut skipped = SkippedLines::default();
        let (endpoint, scheme, requests) = match (&self.targets, self.url()) {
            (Some(file), Some(url)) => {
                let (endpoint, scheme, requests, lines) = protocol::requests_in_file(file, url)?;
                skipped = lines;
                (endpoint, scheme, requests)
            }
            (Some(file), None) => self.several(file)?,
            (None, Some(url)) => self.one(url)?,
            (None, None) => {
                let wrong = "is missing: give one, such as http://127.0.0.1:8080/";
                return Err(Failure::argument("URL", wrong));
            }
        };
        if self.pick == Pick::InOrder && requests.iter().any(|request| request.weight > 1) {
            let wrong =
                "a weight counts only where requests are picked at random: give --pick random";
            return Err(Failure::argument("--targets", wrong));
        }
        let unix = self.unix_socket.as_ref().map(|path| Endpoint::Unix { path: path.clone() });
        let endpoint = unix.unwrap_or(endpoint);
        let target = Target::new(endpoint, requests, self.pick, !self.no_keepalive)
            .map_err(|e| Failure::argument("URL", e))?;
        let target = self.route.apply(target, [scheme])?;
        let mut target = self.speak(target, scheme)?;
        if let Protocol::Dns(settings) = &mut target.protocol {
            settings.skipped = skipped;
        }
        Ok(self.messages.apply(self.expect.apply(target)?))
    }

    /// The same target, spoken with and secured as its scheme and the options say.
    fn speak(&self, target: Target, scheme: Scheme) -> Result<Target, Failure> {
        let of_requests =
            [(self.method.is_some(), "--method"), (self.no_keepalive, "--no-keepalive")];
        let data = &self.curl.data;
        let of_http = [
            (self.body.is_some(), "--body"),
            (data.is_given(), if data.is_json() { "--json-body" } else { "--data" }),
            (!self.header.is_empty(), "--header"),
            (self.user.is_some(), "--user"),
            (self.content_type.is_some(), "--content-type"),
            first_of(self.expect.given()),
            first_of(self.messages.given()),
        ];
        self.protocol.apply(target, scheme, &of_requests, &of_http, &self.messages)
    }

    fn one(&self, url: &str) -> Result<(Endpoint, Scheme, Vec<HttpRequest>), Failure> {
        if names_recording(Some(url)) {
            let wrong = "is a recording, which only knee run sends again: give a URL";
            return Err(Failure::argument(url, wrong));
        }
        if let Some(reader) = input::reader_of(url) {
            return Err(Failure::argument(url, reader));
        }
        if !url.contains("://")
            && ["http/", "http:/", "https/", "https:/"].iter().any(|s| url.starts_with(s))
        {
            let wrong = format!("'{url}' lacks '://' behind its scheme");
            return Err(Failure::argument("URL", wrong));
        }
        let (body, content_type) = self.body()?;
        let (text, body) = if self.curl.get {
            (CurlArgs::with_query(url, &body)?, Vec::new())
        } else {
            (url.to_owned(), body)
        };
        let url = Url::parse(&text).map_err(|e| Failure::argument("URL", e))?;
        let has_body = self.body.is_some() || content_type.is_some();
        let method = self.method.as_deref().unwrap_or(self.curl.method(has_body));
        let request = HttpRequest::new(method, &url, Vec::new(), body, 1)
            .map_err(|e| Failure::argument("--method", e))?;
        let content_type = content_type.filter(|_| !self.curl.get);
        let request = self.with_headers(request, content_type)?;
        Ok((url.endpoint().clone(), url.scheme(), vec![request]))
    }

    /// The body, and the content type that goes with how it is given.
    fn body(&self) -> Result<(Vec<u8>, Option<String>), Failure> {
        let mut read = |file: &str| input::read(file).map_err(|e| e.line);
        if let Some(body) = &self.body {
            let body = match body.strip_prefix('@') {
                Some(file) => read(file).map_err(|e| Failure::argument("--body", e))?,
                None => body.as_bytes().to_vec(),
            };
            return Ok((body, None));
        }
        if !self.curl.form.is_empty() {
            let form = data::multipart(&self.curl.form, &mut read);
            let form = form.map_err(|e| Failure::argument("--form", e))?;
            return Ok((form.body, Some(form.content_type)));
        }
        let pieces = &self.curl.data;
        let body = data::join(&pieces.0, &mut read).map_err(|e| {
            let is_wrong =
                |piece: &&CurlData| data::join(slice::from_ref(*piece), &mut read).is_err();
            let option =
                pieces.0.iter().find(is_wrong).map_or("--data", |piece| option_of(piece.kind));
            Failure::argument(option, e)
        })?;
        let content_type = if pieces.is_json() { JSON } else { FORM };
        Ok((body, pieces.is_given().then(|| content_type.to_owned())))
    }

    fn several(&self, file: &str) -> Result<(Endpoint, Scheme, Vec<HttpRequest>), Failure> {
        let of_targets = |e: Failure| Failure::argument("--targets", e.line);
        let text = input::read_text(file).map_err(of_targets)?;
        let mut read_body = |path: &str| input::read_file(path, input::FILE_MAX);
        let targets = parse_targets(&text, &mut read_body)
            .map_err(|e| Failure::argument("--targets", format!("{file}: {e}")))
            .map_err(|failure| failure.without_secrets(&of_command_line_and(&text)))?;
        let with_headers = |r| self.with_headers(r, None);
        let requests = targets.requests.into_iter().map(with_headers).collect::<Result<_, _>>()?;
        Ok((targets.endpoint, targets.scheme, requests))
    }

    /// The same request with the headers that options give, and the content type that goes with its
    /// body unless one is given.
    fn with_headers(
        &self,
        request: HttpRequest,
        implied: Option<String>,
    ) -> Result<HttpRequest, Failure> {
        let mut request = request
            .with_common_headers(&self.header)
            .map_err(|e| Failure::argument("--header", e))?;
        let mut further = Vec::new();
        if let Some(User(user)) = &self.user {
            let credentials = format!("Basic {}", BASE64.encode(user));
            further.push(("--user", ("Authorization".to_owned(), credentials)));
        }
        further.extend(self.curl.headers());
        if self.curl.data.is_json() && !self.curl.get {
            further.push(("--json-body", ("Accept".to_owned(), JSON.to_owned())));
        }
        if let Some(content_type) = self.content_type.clone().or(implied) {
            further.push(("--content-type", ("Content-Type".to_owned(), content_type)));
        }
        for (option, header) in further {
            request =
                request.with_common_headers(&[header]).map_err(|e| Failure::argument(option, e))?;
        }
        Ok(request)
    }
}

/// An option that was given, as the lists of options that are refused have it.
fn first_of(given: Option<&'static str>) -> (bool, &'static str) {
    (given.is_some(), given.unwrap_or_default())
}

/// Serializes headers as they are typed.
fn headers<S: Serializer>(headers: &[(String, String)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(headers.iter().map(|(name, value)| format!("{name}: {value}")))
}

const PICKS: Choices<Pick> = &[(IN_ORDER, Pick::InOrder), ("random", Pick::Weighted)];
const IN_ORDER: &str = "in-order";

impl Typed for Pick {
    /// The default is left out.
    fn typed(&self) -> Value {
        (*self == Pick::Weighted).then(|| word_of(PICKS, *self)).into()
    }
}

const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";
