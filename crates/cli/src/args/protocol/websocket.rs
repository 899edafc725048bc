//! Messages of WebSocket, and how their echoes are known.

use crate::args::first_given;
use crate::args::values::{Choices, one_of, parse_positive, word_of};
use crate::failure::Failure;
use crate::resolved_options::{Typed, typed};
use clap::Args;
use knee_load::session::Expectation;
use knee_load::spec::{
    Body, DeflateOffer, Http2Limits, HttpRequest, Matching, ParseError, Part, Protocol, Target,
    WEBSOCKET_HEADERS, WebSocketSettings,
};
use knee_load::time::Nanos;
use serde::Serialize;
use serde_json::Value;

#[derive(Args, Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Streams")]
pub struct WebSocketArgs {
    /// How the echo of a WebSocket message is known: seq, order, none [default: seq; order where -b
    /// has no {seq}]
    ///
    /// seq: by a number, which stands in place of {seq} or at the end of the message. order: echoes
    /// come in the order of the messages. none: no echo; an operation ends once the kernel has the
    /// message.
    #[arg(long = "match", value_name = "HOW", value_parser = one_of(MATCHINGS))]
    #[arg(hide_short_help = true)]
    #[serde(rename = "match", serialize_with = "typed")]
    matching: Option<Matching>,

    /// Send nothing and measure what the server sends by itself, to each of -c N WebSockets
    ///
    /// Each of its messages carries the time at which it left, as those of knee serve ws --publish
    /// and those with {time} in -b do. Both clocks must agree: use one host, or synchronise them.
    /// Messages without a time are not counted.
    #[arg(long, hide_short_help = true, conflicts_with = "matching")]
    subscribe: bool,

    /// Send WebSocket messages as bytes instead of text
    #[arg(long, hide_short_help = true)]
    binary: bool,

    /// Time between two pings of a WebSocket; one that is not answered until the next ends the
    /// connection [default: no pings]
    #[arg(long, value_name = "T", value_parser = parse_positive, hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    ping: Option<Nanos>,
}

impl WebSocketArgs {
    /// An option that was given.
    pub fn given(&self) -> Option<&'static str> {
        first_given(&[
            (self.matching.is_some(), "--match"),
            (self.subscribe, "--subscribe"),
            (self.binary, "--binary"),
            (self.ping.is_some(), "--ping"),
        ])
    }

    /// The same target, spoken with over WebSocket.
    pub fn apply(&self, mut target: Target, messages_max: Option<u32>) -> Result<Target, Failure> {
        let option = if target.sessions.is_some() { "URL" } else { "--header" };
        for request in &target.requests {
            DeflateOffer::of(request).map_err(|e| Failure::argument(option, e))?;
        }
        check_steps(&target).map_err(|e| Failure::argument("URL", e))?;
        let is_text = |request: &HttpRequest| std::str::from_utf8(&request.body).is_ok();
        if !self.binary && !target.requests.iter().all(is_text) {
            let wrong = "is not UTF-8, as a text message has to be: give --binary";
            return Err(Failure::argument("--body", wrong));
        }
        let has_number = |request: &HttpRequest| {
            let place = WebSocketSettings::NUMBER.as_bytes();
            request.body.is_empty() || request.body.windows(place.len()).any(|w| w == place)
        };
        let is_numbered = target.requests.iter().all(has_number);
        let by_default = if is_numbered { Matching::Number } else { Matching::Order };
        for request in &mut target.requests {
            if request.body.is_empty() && request.holes.is_empty() {
                request.body = Body::from(WebSocketSettings::CONTENT.as_bytes().to_vec());
            }
        }
        target.protocol = Protocol::WebSocket(WebSocketSettings {
            matching: self.matching.unwrap_or(by_default),
            messages_max: messages_max.unwrap_or(Http2Limits::STREAMS_DEFAULT),
            is_binary: self.binary,
            ping_every: self.ping,
            message_bytes_max: WebSocketSettings::MESSAGE_BYTES_MAX,
            subscribes: self.subscribe,
        });
        Ok(target)
    }
}

/// Checks that the steps of a scenario say what a WebSocket does: all are messages over one, which
/// is opened as the first of them says.
fn check_steps(target: &Target) -> Result<(), ParseError> {
    let (Some(plan), [first, ..]) = (&target.sessions, &target.requests[..]) else {
        return Ok(());
    };
    // Each step has a place for cookies, which a handshake leaves out, and some the type of a body.
    let is_meant = |(name, value): &&(String, String)| {
        let is_place = name.eq_ignore_ascii_case("cookie") && value.is_empty();
        !is_place && !name.eq_ignore_ascii_case("content-type")
    };
    let wrong = |what: String| Err(ParseError(what));
    if plan.requests.iter().any(|step| step.redirects > 0) {
        return wrong("a WebSocket is not redirected: leave 'redirects' out".to_owned());
    }
    let is_status = |expected: &Expectation| matches!(expected, Expectation::Status(_));
    if plan.requests.iter().any(|step| step.expect.iter().any(is_status)) {
        return wrong("a message of WebSocket has no status: expect its text".to_owned());
    }
    for request in &target.requests {
        let path = &request.path;
        let is_filled = request.holes.iter().any(|hole| match hole.part {
            Part::Body => false,
            Part::Path => true,
            Part::Header(number) => request.headers.get(usize::from(number)).iter().any(is_meant),
        });
        if request.method != "POST" {
            let method = request.method.to_lowercase();
            return wrong(format!(
                "a step of a WebSocket sends a message, and '{method}: {path}' has none: write \
                 'post: {path}' with a body"
            ));
        }
        if is_filled {
            return wrong(format!(
                "each WebSocket is opened in the same way: write no ${{…}} in the path and the \
                 headers of 'post: {path}'"
            ));
        }
        let mut headers = request.headers.iter().filter(is_meant);
        if *path != first.path || headers.any(|header| !first.headers.contains(header)) {
            return wrong(format!(
                "all steps send over one WebSocket, which is opened at {} with the headers of the \
                 first step: give 'post: {path}' the same path, and headers to the first step",
                first.path
            ));
        }
    }
    Ok(())
}

/// What of the headers is not sent with the handshake of a WebSocket, in a line.
pub fn left_out(target: &Target) -> Option<String> {
    let (Protocol::WebSocket(_), Some(request)) = (&target.protocol, target.requests.first())
    else {
        return None;
    };
    let own = WEBSOCKET_HEADERS.into_iter().filter(|name| request.has_header(name));
    let mut names: Vec<&str> = own.collect();
    let offer = DeflateOffer::of(request).ok().flatten();
    if offer.is_some_and(|offer| offer.leaves_out_window) {
        names.push("client_max_window_bits");
    }
    (!names.is_empty()).then(|| {
        let names = names.join(", ");
        format!("note: the handshake of a WebSocket has its own; left out of the given: {names}")
    })
}

const MATCHINGS: Choices<Matching> =
    &[("seq", Matching::Number), ("order", Matching::Order), ("none", Matching::None)];

impl Typed for Matching {
    fn typed(&self) -> Value {
        word_of(MATCHINGS, *self).into()
    }
}
