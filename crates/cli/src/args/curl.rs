//! Options of curl that knee has, and lines of curl in the place of a URL. Data for a body come in
//! pieces of several kinds, whose order counts.

use super::first_given;
use crate::failure::Failure;
use crate::input;
use crate::usage::TAKE_CURL;
use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches, Id};
use knee_scenario::import::data::{CurlData, DataKind};
use knee_scenario::import::{curl_as_options, is_curl};
use serde::{Serialize, Serializer};
use std::ffi::OsString;

/// The same command line with knee's options in the place of a line of curl.
///
/// # Errors
/// What of the line knee does not support.
pub fn with_curl_line(argv: Vec<OsString>) -> Result<Vec<OsString>, clap::Error> {
    let refused = |what: String| clap::Error::raw(ErrorKind::Io, format!("curl: {what}\n"));
    let has_target = |name: &OsString| TAKE_CURL.iter().any(|command| name == command);
    let end = argv.iter().position(|word| word == "--");
    let Some(end) = end.filter(|_| argv.get(1).is_some_and(has_target)) else {
        return Ok(argv);
    };
    let words = &argv[end + 1..];
    if !words.first().and_then(|word| word.to_str()).is_some_and(is_curl) {
        return Ok(argv);
    }
    let text = |word: &OsString| {
        let shown = word.to_string_lossy();
        let wrong = "is not UTF-8: give such bytes in a file, as --data-binary @FILE";
        word.to_str().map(str::to_owned).ok_or_else(|| refused(format!("'{shown}' {wrong}")))
    };
    let words = words.iter().map(text).collect::<Result<Vec<String>, _>>()?;
    let mut read = |file: &str| input::read(file).map_err(|e| e.line);
    let options = curl_as_options(&words, &mut read).map_err(|e| refused(e.0))?;
    Ok(argv[..end].iter().cloned().chain(options.into_iter().map(OsString::from)).collect())
}

#[derive(Args, Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Options of curl")]
pub struct CurlArgs {
    /// The URL, for those who write it as an option
    #[arg(long = "url", value_name = "URL", hide = true, conflicts_with_all = ["url", "targets"])]
    // Where it is not given, the URL that is no option stays in this place.
    #[serde(rename = "url", skip_serializing_if = "Option::is_none")]
    pub url_option: Option<String>,

    #[command(flatten)]
    #[serde(flatten)]
    pub data: DataArgs,

    /// Part of a form, repeatable: NAME=TEXT, NAME=@FILE or NAME=<FILE, then ;type=TYPE and
    /// ;filename=NAME. The body is multipart/form-data
    #[arg(short = 'F', long, value_name = "PART", hide_short_help = true)]
    #[arg(conflicts_with_all = ["body", "data", "data_raw", "data_binary", "data_urlencode"])]
    #[arg(conflicts_with_all = ["json_body", "get", "targets"])]
    pub form: Vec<String>,

    /// Cookies: 'NAME=VALUE; NAME=VALUE'
    #[arg(long, value_name = "COOKIES", value_parser = parse_cookies, hide_short_help = true)]
    cookie: Vec<String>,

    /// Header User-Agent
    #[arg(short = 'A', long, value_name = "NAME", hide_short_help = true)]
    user_agent: Option<String>,

    /// Header Referer
    #[arg(short = 'e', long, value_name = "URL", hide_short_help = true)]
    referer: Option<String>,

    /// Bytes of the body to ask for, such as 0-1023: header Range
    #[arg(short = 'r', long, value_name = "RANGE", hide_short_help = true)]
    range: Option<String>,

    /// Accept compressed responses; bytes are counted as they come
    #[arg(long, hide_short_help = true)]
    compressed: bool,

    /// Append the data to the URL, and send GET
    #[arg(short = 'G', long, hide_short_help = true)]
    pub get: bool,

    /// Method HEAD instead of GET
    #[arg(short = 'I', long, hide_short_help = true)]
    pub head: bool,
}

impl CurlArgs {
    /// The option, if any is given, that says what one request is.
    pub fn of_one_request(&self) -> Option<&'static str> {
        first_given(&[
            (self.data.is_given(), "--data"),
            (!self.form.is_empty(), "--form"),
            (!self.cookie.is_empty(), "--cookie"),
            (self.get, "--get"),
            (self.head, "--head"),
        ])
    }

    /// The method where none is given.
    pub fn method(&self, has_body: bool) -> &'static str {
        match (self.head, self.get) {
            (true, _) => "HEAD",
            (_, true) => "GET",
            _ if has_body => "POST",
            _ => "GET",
        }
    }

    /// The headers that these options make, each with the option.
    pub fn headers(&self) -> impl Iterator<Item = (&'static str, (String, String))> {
        let cookies = (!self.cookie.is_empty()).then(|| self.cookie.join("; "));
        let range = self.range.as_ref().map(|range| format!("bytes={range}"));
        let encodings = self.compressed.then(|| "deflate, gzip, br, zstd".to_owned());
        let headers = [
            ("--user-agent", "User-Agent", self.user_agent.clone()),
            ("--referer", "Referer", self.referer.clone()),
            ("--cookie", "Cookie", cookies),
            ("--range", "Range", range),
            ("--compressed", "Accept-Encoding", encodings),
        ];
        headers.into_iter().filter_map(|(option, name, value)| {
            let header = (name.to_owned(), value?);
            Some((option, header))
        })
    }

    /// The same URL with data in its query.
    pub fn with_query(url: &str, data: &[u8]) -> Result<String, Failure> {
        let query = std::str::from_utf8(data)
            .map_err(|_| Failure::argument("--get", "the data is not UTF-8 text"))?;
        let url = url.split('#').next().unwrap_or_default();
        let sign = match (query, url.contains('?')) {
            ("", _) => "",
            (_, true) => "&",
            (_, false) => "?",
        };
        Ok(format!("{url}{sign}{query}"))
    }
}

fn parse_cookies(text: &str) -> Result<String, String> {
    if text.contains('=') {
        Ok(text.to_owned())
    } else {
        // A value without its name cannot be told from a secret, so it is not repeated.
        Err("invalid cookie: expected NAME=VALUE; files of cookies are not read".to_owned())
    }
}

/// A header as curl takes it: `Name: value`, or `Name;` for one without a value.
pub fn parse_header(text: &str) -> Result<(String, String), String> {
    let empty = text.strip_suffix(';').filter(|name| !name.contains(':'));
    let header = match empty {
        Some(name) => knee_load::spec::parse_header(&format!("{name}:")),
        None => knee_load::spec::parse_header(text),
    };
    header.map_err(|e| e.to_string())
}

/// The options. Their order among each other is not in them.
#[derive(Args, Clone, Debug)]
struct DataOptions {
    /// Data, or @FILE without its line ends, as in curl; repeated, joined with '&'. The content
    /// type is application/x-www-form-urlencoded unless -T or -H gives another
    #[arg(long, value_name = "DATA", alias = "data-ascii", hide_short_help = true)]
    data: Vec<String>,

    /// The same without a special meaning of @
    #[arg(long, value_name = "DATA", hide_short_help = true, allow_hyphen_values = true)]
    data_raw: Vec<String>,

    /// The same; a file's line ends stay
    #[arg(long, value_name = "DATA", hide_short_help = true, allow_hyphen_values = true)]
    data_binary: Vec<String>,

    /// The same, percent-encoded: TEXT, NAME=TEXT, @FILE or NAME@FILE
    #[arg(long, value_name = "DATA", hide_short_help = true, allow_hyphen_values = true)]
    data_urlencode: Vec<String>,

    /// Body of JSON, or @FILE, with the content type application/json
    #[arg(long, value_name = "JSON", hide_short_help = true)]
    json_body: Vec<String>,
}

/// Each option by its name, and what it gives.
const KINDS: [(&str, DataKind); 5] = [
    ("data", DataKind::Data),
    ("data_raw", DataKind::Raw),
    ("data_binary", DataKind::Binary),
    ("data_urlencode", DataKind::Urlencode),
    ("json_body", DataKind::Json),
];

/// The option that gives data of a kind.
pub fn option_of(kind: DataKind) -> &'static str {
    match kind {
        DataKind::Data => "--data",
        DataKind::Raw => "--data-raw",
        DataKind::Binary => "--data-binary",
        DataKind::Urlencode => "--data-urlencode",
        DataKind::Json => "--json-body",
    }
}

/// What clap calls these options.
pub const DATA_IDS: [&str; 5] = ["data", "data_raw", "data_binary", "data_urlencode", "json_body"];

/// What the options give, in the order in which they were typed.
#[derive(Clone, Debug, Default)]
pub struct DataArgs(pub Vec<CurlData>);

impl DataArgs {
    /// Whether there is any.
    pub fn is_given(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether it is JSON.
    pub fn is_json(&self) -> bool {
        self.0.iter().any(|piece| piece.kind == DataKind::Json)
    }
}

/// Each option without its dashes, with what it was given.
impl Serialize for DataArgs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(KINDS.map(|(id, kind)| {
            let given = self.0.iter().filter(|piece| piece.kind == kind);
            let given: Vec<&str> = given.map(|piece| piece.text.as_str()).collect();
            (id.replace('_', "-"), given)
        }))
    }
}

impl Args for DataArgs {
    fn group_id() -> Option<Id> {
        DataOptions::group_id()
    }

    fn augment_args(command: Command) -> Command {
        DataOptions::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        DataOptions::augment_args_for_update(command)
    }
}

impl FromArgMatches for DataArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<DataArgs, clap::Error> {
        let mut pieces = Vec::new();
        for (id, kind) in KINDS {
            let values = matches.get_many::<String>(id).into_iter().flatten();
            let places = matches.indices_of(id).into_iter().flatten();
            let piece = |text: &String| CurlData { kind, text: text.clone() };
            pieces.extend(places.zip(values.map(piece)));
        }
        pieces.sort_by_key(|(place, _)| *place);
        Ok(DataArgs(pieces.into_iter().map(|(_, piece)| piece).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = DataArgs::from_arg_matches(matches)?;
        Ok(())
    }
}
