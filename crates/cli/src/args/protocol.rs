//! What is spoken with a target: the options of each protocol, and those of TLS.

mod dns;
#[cfg(feature = "grpc")]
mod grpc;
#[cfg(not(feature = "grpc"))]
mod no_grpc;
mod secure;
mod websocket;

pub use secure::{RESUMES, VERSIONS};
pub use websocket::left_out;

use super::first_given;
use super::responses::MessageArgs;
use crate::failure::Failure;
use clap::Args;
use dns::DnsArgs;
#[cfg(feature = "grpc")]
use grpc::GrpcArgs;
use knee_load::spec::{Endpoint, HttpRequest, Scheme, SkippedLines, Target, Url};
#[cfg(not(feature = "grpc"))]
use no_grpc::GrpcArgs;
use secure::SecureArgs;
use serde::Serialize;
use websocket::WebSocketArgs;

pub const URL_HELP: &str =
    "URL: http://HOST/path, ws://HOST/, dns://HOST/NAME; or a scenario (.yaml, .json, .js)";

pub const TARGETS_HELP: &str = "Several requests from a file, to one server";

pub const TARGETS_LONG_HELP: &str = "Several requests from a file, to one server\n\n\
    Each is a line 'METHOD URL', or a URL alone for GET. 'weight=N' may follow, which needs \
    --pick random, then its lines 'Name: value' and at most one '@FILE' for its body. An empty \
    line ends it; # begins a comment. Each of up to 100 targets is reported on its own; of more, the 100th line is the \
    sum of all further ones. The file has up to 256 MiB. With a URL dns://HOST each line is a \
    question, 'NAME TYPE', as in dnsperf.";

/// The requests in a file to the server of a URL, where such a file has no URLs itself, and the
/// lines of it that are none.
pub fn requests_in_file(
    file: &str,
    url: &str,
) -> Result<(Endpoint, Scheme, Vec<HttpRequest>, SkippedLines), Failure> {
    let server = Url::parse(url).map_err(|e| Failure::argument("URL", e))?;
    let (requests, skipped) = match server.scheme() {
        Scheme::Dns | Scheme::DnsTcp | Scheme::DnsTls => dns::questions(file, &server, url)?,
        _ => {
            let wrong = "has the URLs of HTTP itself: leave URL out, or write dns://HOST";
            return Err(Failure::argument("--targets", wrong));
        }
    };
    Ok((server.endpoint().clone(), server.scheme(), requests, skipped))
}

#[derive(Args, Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ProtocolArgs {
    #[command(flatten)]
    #[serde(flatten)]
    secure: SecureArgs,

    #[command(flatten)]
    #[serde(flatten)]
    websocket: WebSocketArgs,

    #[command(flatten)]
    #[serde(flatten)]
    grpc: GrpcArgs,

    #[command(flatten)]
    #[serde(flatten)]
    dns: DnsArgs,
}

impl ProtocolArgs {
    /// Has any certificate taken where that is `asked` for and none is to be trusted by name.
    pub fn take_any_certificate(&mut self, asked: bool) {
        self.secure.take_any_certificate(asked);
    }

    /// The same target, spoken with and secured as its scheme and the options say. `of_requests`:
    /// which of the options that only single requests of HTTP have were given. `of_http`: which of
    /// those that all that begins in HTTP has. `messages`: what calls of gRPC send.
    pub fn apply(
        &self,
        target: Target,
        scheme: Scheme,
        of_requests: &[(bool, &'static str)],
        of_http: &[(bool, &'static str)],
        messages: &MessageArgs,
    ) -> Result<Target, Failure> {
        let refuse = |option: Option<&'static str>, wrong: &str| match option {
            Some(option) => Err(Failure::argument(option, wrong)),
            None => Ok(()),
        };
        if !matches!(scheme, Scheme::Ws | Scheme::Wss) {
            refuse(self.websocket.given(), "is of WebSocket: give ws:// or wss://")?;
        }
        if !matches!(scheme, Scheme::Grpc | Scheme::Grpcs) {
            refuse(self.grpc.given(), "is of gRPC: give grpc:// or grpcs://")?;
            let wrong = "what a call of gRPC sends: give grpc:// or grpcs://, or leave it out";
            refuse(messages.given_of_calls(), wrong)?;
        }
        if !matches!(scheme, Scheme::Dns | Scheme::DnsTcp | Scheme::DnsTls) {
            refuse(self.dns.given(), "is of DNS: give dns://, dns+tcp:// or dns+tls://")?;
        }
        match scheme {
            Scheme::Http | Scheme::Https => self.secure.apply(target, scheme),
            Scheme::Dns | Scheme::DnsTcp | Scheme::DnsTls => {
                refuse(self.secure.of_http(), "is of HTTP, and not of DNS: leave it out")?;
                let wrong = "is of HTTP, and a query of DNS has none: leave it out";
                refuse(first_given(&[of_requests, of_http].concat()), wrong)?;
                let target = self.secure.apply(target, scheme)?;
                self.dns.apply(target, scheme, self.secure.streams)
            }
            Scheme::Ws | Scheme::Wss => {
                refuse(self.secure.of_http(), "a WebSocket begins in HTTP/1.1: leave it out")?;
                let wrong = "a WebSocket opens with GET and carries many messages: leave it out";
                refuse(first_given(of_requests), wrong)?;
                let target = self.secure.apply(target, scheme)?;
                self.websocket.apply(target, self.secure.streams)
            }
            Scheme::Grpc | Scheme::Grpcs => {
                refuse(self.secure.of_other_http(), "gRPC is over HTTP/2: leave it out")?;
                let wrong = "a call of gRPC is a POST over a kept connection: leave it out";
                refuse(first_given(of_requests), wrong)?;
                let target = self.secure.apply(target, scheme)?;
                self.grpc.apply(target, self.secure.http2_limits(), messages.calls())
            }
        }
    }
}
