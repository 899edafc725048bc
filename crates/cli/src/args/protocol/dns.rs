//! DNS: questions in place of requests, and what queries ask for beside them.

use crate::args::first_given;
use crate::args::values::within;
use crate::failure::Failure;
use crate::input;
use clap::Args;
use knee_load::session::RequestStep;
use knee_load::spec::{
    Cut, DnsNames, DnsQuestion, DnsSettings, Endpoint, HttpRequest, ParseError, Part, Protocol,
    Scheme, SkippedLines, Target, Url, parse_names,
};
use serde::Serialize;

#[derive(Args, Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Streams")]
pub struct DnsArgs {
    /// Largest DNS answer over UDP that each query permits by EDNS, in bytes: 512 to 65535
    /// [default: no EDNS; 1232 with --dnssec]
    #[arg(long, value_name = "SIZE", hide_short_help = true)]
    #[arg(value_parser = within::<u16>(512, 65_535))]
    edns: Option<u16>,

    /// Ask for the records of DNSSEC: DNS queries with EDNS and the flag DO
    #[arg(long, hide_short_help = true)]
    dnssec: bool,

    /// Ask for no recursion: DNS queries without the flag RD
    #[arg(long, hide_short_help = true)]
    no_recursion: bool,
}

/// The questions in a file to a server, of this URL.
pub fn questions(
    file: &str,
    server: &Url,
    url: &str,
) -> Result<(Vec<HttpRequest>, SkippedLines), Failure> {
    if server.path() != "/" {
        let wrong = "has the names: leave out what follows the host in URL";
        return Err(Failure::argument("--targets", wrong));
    }
    let text = input::read(file).map_err(|e| Failure::argument("--targets", e.line))?;
    let DnsNames { paths, skipped } =
        parse_names(&text).map_err(|e| Failure::argument("--targets", format!("{file}: {e}")))?;
    let base = url.trim_end_matches('/');
    let request = |path: String| {
        let url = Url::parse(&format!("{base}{path}"))?;
        HttpRequest::new("GET", &url, Vec::new(), Vec::new(), 1)
    };
    let requests = paths.into_iter().map(request).collect::<Result<_, _>>();
    Ok((requests.map_err(|e| Failure::argument("--targets", e))?, skipped))
}

impl DnsArgs {
    /// An option that was given.
    pub fn given(&self) -> Option<&'static str> {
        first_given(&[
            (self.edns.is_some(), "--edns"),
            (self.dnssec, "--dnssec"),
            (self.no_recursion, "--no-recursion"),
        ])
    }

    /// The same target, spoken with in DNS, with at most this many queries under way on a
    /// connection.
    pub fn apply(
        &self,
        mut target: Target,
        scheme: Scheme,
        queries_max: Option<u32>,
    ) -> Result<Target, Failure> {
        let over_tcp = scheme != Scheme::Dns;
        if !over_tcp && matches!(target.endpoint, Endpoint::Unix { .. }) {
            let wrong = "carries no datagrams: leave it out, or write dns+tcp://";
            return Err(Failure::argument("--unix-socket", wrong));
        }
        for request in &target.requests {
            check_question(request).map_err(|e| Failure::argument("URL", e))?;
        }
        if target.sessions.as_ref().is_some_and(|plan| plan.requests.iter().any(reads)) {
            let wrong = "a step of DNS has neither 'extract' nor 'expect', as only the code of its \
                         answer is read: leave them out";
            return Err(Failure::argument("URL", wrong));
        }
        let queries_max = queries_max.unwrap_or(DnsSettings::QUERIES_MAX);
        target.protocol = Protocol::Dns(DnsSettings {
            over_tcp,
            queries_max: queries_max.min(DnsSettings::QUERIES_MAX),
            edns_bytes: self.edns,
            dnssec: self.dnssec,
            no_recursion: self.no_recursion,
            skipped: SkippedLines::default(),
        });
        Ok(target)
    }
}

/// Checks that a request is a question, as far as that is known before its holes are filled.
fn check_question(request: &HttpRequest) -> Result<(), ParseError> {
    // Steps have a place for their session's cookies.
    let is_own = |(name, _): &(String, String)| !name.eq_ignore_ascii_case("cookie");
    let has_more = !request.body.is_empty() || request.headers.iter().any(is_own);
    if request.method != "GET" || has_more {
        let wrong =
            "a step of DNS is a question alone, without headers and body: get: /NAME?type=A";
        return Err(ParseError(wrong.to_owned()));
    }
    // A letter fits where a part of a name belongs, and nothing where the type does.
    let mut path = Vec::new();
    for cut in request.cut(Part::Path) {
        match cut {
            Cut::Text(text) => path.extend_from_slice(&text),
            Cut::Hole(_) if path.contains(&b'?') => return Ok(()),
            Cut::Hole(_) => path.push(b'a'),
        }
    }
    DnsQuestion::of_path(&String::from_utf8_lossy(&path)).map(|_| ())
}

/// Whether a step reads its response.
fn reads(step: &RequestStep) -> bool {
    !step.extract.is_empty() || !step.expect.is_empty()
}
