//! What the load is sent to.

use super::secure::SecureArgs;
use crate::failure::Failure;
use crate::input;
use crate::words::Words;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use knee_core::spec::{Endpoint, HttpRequest, HttpTarget, ParseError, Pick, Url};
use knee_core::spec::{parse_header, parse_targets};

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Target")]
pub struct TargetArgs {
    /// The URL to load, such as http://127.0.0.1:8080/path
    #[arg(value_name = "URL", help_heading = None::<&str>)]
    pub url: Option<String>,

    /// Method [default: GET; POST with a body]
    #[arg(short, long, value_name = "METHOD", short_alias = 'X')]
    method: Option<String>,

    /// A header, repeatable: 'Name: value'
    #[arg(short = 'H', long, value_name = "HEADER", value_parser = parse_header)]
    header: Vec<(String, String)>,

    /// The body, or @FILE of up to 256 MiB
    #[arg(short, long, value_name = "BODY")]
    body: Option<String>,

    /// Form data, or @FILE, as in curl: --body with the content type
    /// application/x-www-form-urlencoded unless -T or -H gives another; repeated, joined with '&'
    #[arg(
        long,
        value_name = "DATA",
        conflicts_with = "body",
        hide_short_help = true
    )]
    data: Vec<String>,

    /// User and password for Basic authentication
    #[arg(short, long, value_name = "USER:PASSWORD", value_parser = parse_user)]
    #[arg(hide_short_help = true)]
    user: Option<User>,

    /// The body's content type
    #[arg(short = 'T', long, value_name = "TYPE", hide_short_help = true)]
    content_type: Option<String>,

    /// Several requests from a file, to one server
    ///
    /// Each is a line 'METHOD URL', or a URL alone for GET, which 'weight=N' may follow, then its
    /// lines 'Name: value' and at most one '@FILE' for its body. An empty line ends it; # begins a
    /// comment. Each of up to 100 targets is reported on its own; of more, the 100th line is the
    /// sum of all further ones. The file has up to 256 MiB.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "method", "body", "data"])]
    #[arg(hide_short_help = true)]
    targets: Option<String>,

    /// Order of several requests: in order, or random by weight
    #[arg(long, value_name = "HOW", default_value = IN_ORDER, value_parser = picks())]
    #[arg(hide_short_help = true)]
    pick: Pick,

    /// Connect to this Unix socket; the URL still gives path and Host
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    pub unix_socket: Option<String>,

    /// Open a new connection for each request
    #[arg(long, alias = "disable-keepalive", hide_short_help = true)]
    no_keepalive: bool,

    #[command(flatten)]
    pub secure: SecureArgs,
}

impl TargetArgs {
    /// Whether the user said what to load.
    pub fn is_given(&self) -> bool {
        self.url.is_some() || self.targets.is_some()
    }

    /// The target; files are read here.
    pub fn resolve(&self) -> Result<HttpTarget, Failure> {
        let (endpoint, is_secure, requests) = match (&self.targets, &self.url) {
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
        let target = HttpTarget::new(endpoint, requests, self.pick, !self.no_keepalive)
            .map_err(|e| Failure::argument("URL", e))?;
        self.secure.apply(target, is_secure)
    }

    fn one(&self, url: &str) -> Result<(Endpoint, bool, Vec<HttpRequest>), Failure> {
        let url = Url::parse(url).map_err(|e| Failure::argument("URL", e))?;
        let body = match &self.body {
            Some(body) => text_or_file("--body", body)?,
            None => self.form()?,
        };
        let has_body = self.body.is_some() || !self.data.is_empty();
        let implied = if has_body { "POST" } else { "GET" };
        let method = self.method.as_deref().unwrap_or(implied);
        let request = HttpRequest::new(method, &url, Vec::new(), body, 1)
            .map_err(|e| Failure::argument("--method", e))?;
        let request = self.with_headers(request)?;
        Ok((url.endpoint().clone(), url.is_secure(), vec![request]))
    }

    /// What `--data` makes, as curl does: joined with '&', line ends of files left out.
    fn form(&self) -> Result<Vec<u8>, Failure> {
        let mut form = Vec::new();
        for (at, data) in self.data.iter().enumerate() {
            let mut part = text_or_file("--data", data)?;
            if data.starts_with('@') {
                part.retain(|b| !matches!(b, b'\r' | b'\n' | 0));
            }
            if at > 0 {
                form.push(b'&');
            }
            form.append(&mut part);
        }
        Ok(form)
    }

    fn several(&self, file: &str) -> Result<(Endpoint, bool, Vec<HttpRequest>), Failure> {
        let told = |e: Failure| Failure::argument("--targets", e.line);
        let text = input::read_text(file).map_err(told)?;
        let mut read_body = |path: &str| input::read_file(path, input::FILE_MAX);
        let targets = parse_targets(&text, &mut read_body)
            .map_err(|e| Failure::argument("--targets", format!("{file}: {e}")))?;
        let requests = targets.requests.into_iter().map(|r| self.with_headers(r));
        let requests = requests.collect::<Result<_, _>>()?;
        Ok((targets.endpoint, targets.is_secure, requests))
    }

    fn with_headers(&self, request: HttpRequest) -> Result<HttpRequest, Failure> {
        let request = request
            .with_common_headers(&self.header)
            .map_err(|e| Failure::argument("--header", e))?;
        let request = match &self.user {
            Some(User(user)) => {
                let credentials = format!("Basic {}", BASE64.encode(user));
                let header = ("Authorization".to_string(), credentials);
                let request = request.with_common_headers(&[header]);
                request.map_err(|e| Failure::argument("--user", e))?
            }
            None => request,
        };
        let is_form = !self.data.is_empty();
        let content_type = match &self.content_type {
            Some(content_type) => content_type.clone(),
            None if is_form => FORM.to_string(),
            None => return Ok(request),
        };
        request
            .with_common_headers(&[("Content-Type".to_string(), content_type)])
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
        words.put_list("data", self.data.iter().cloned());
        // The password is nobody's business who reads the report.
        let user = self.user.as_ref().map(User::without_password);
        words.put_some("user", user);
        words.put_some("content-type", self.content_type.clone());
        words.put_some("unix-socket", self.unix_socket.clone());
        if self.no_keepalive {
            words.put("no-keepalive", true);
        }
        self.secure.tell(words);
    }
}

/// `user:password`; its password is never shown.
#[derive(Clone)]
struct User(String);

impl User {
    fn without_password(&self) -> String {
        let name = self.0.split(':').next().unwrap_or_default();
        format!("{name}:***")
    }
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.without_password())
    }
}

fn parse_user(text: &str) -> Result<User, ParseError> {
    match text.contains(':') {
        true => Ok(User(text.to_owned())),
        false => Err(ParseError(
            "expected USER:PASSWORD; the password may be empty".to_owned(),
        )),
    }
}

/// What is given, or what is in the file that `@FILE` names.
fn text_or_file(argument: &str, given: &str) -> Result<Vec<u8>, Failure> {
    match given.strip_prefix('@') {
        Some(file) => input::read(file).map_err(|e| Failure::argument(argument, e.line)),
        None => Ok(given.as_bytes().to_vec()),
    }
}

fn picks() -> impl TypedValueParser<Value = Pick> {
    PossibleValuesParser::new([IN_ORDER, RANDOM]).map(|word| match word.as_str() {
        RANDOM => Pick::Weighted,
        _ => Pick::InOrder,
    })
}

const FORM: &str = "application/x-www-form-urlencoded";
const IN_ORDER: &str = "in-order";
const RANDOM: &str = "random";
