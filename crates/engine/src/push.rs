//! Documents pushed to a collector over HTTP, again and again, by a thread of its own. It makes
//! each document just before it is sent, so that nothing queues up behind a slow collector.

use crate::error::reason;
use crate::link::check_system_file;
use crate::threads;
use rustls::crypto::aws_lc_rs;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};
use ureq::http::{HeaderName, HeaderValue, Response, StatusCode, Uri};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body, Error};

/// Time limit of a push, connecting included.
const PUSH_LIMIT: Duration = Duration::from_secs(5);
/// Time limit of the last push where somebody waits for the end.
const HURRIED_LIMIT: Duration = Duration::from_millis(500);
/// Interval of looking whether somebody does.
const GLANCE: Duration = Duration::from_millis(50);
/// Most bytes of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// Where documents go.
#[derive(Clone)]
pub struct PushTarget {
    agent: Agent,
    url: String,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl PushTarget {
    /// A collector at this URL.
    ///
    /// # Errors
    /// What is wrong with the URL. Of HTTPS: this system has no root certificates.
    pub fn new(url: &str) -> Result<PushTarget, String> {
        let expected = "expected http://HOST:PORT or https://HOST:PORT";
        let uri = url.parse::<Uri>().map_err(|_| format!("is no URL of HTTP: {expected}"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(format!("is no URL of HTTP: {expected}"));
        }
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        if authority.contains('@') {
            let expected = "expected it in the variable OTEL_EXPORTER_OTLP_HEADERS";
            return Err(format!("has a password, which is visible in 'ps': {expected}"));
        }
        if uri.host().is_none_or(str::is_empty) {
            return Err(format!("has no host: {expected}"));
        }
        Ok(PushTarget { agent: agent(uri.scheme_str())?, url: url.to_owned(), headers: Vec::new() })
    }

    /// The same with headers, names and values, that each request has.
    ///
    /// # Errors
    /// Which header is wrong, without its value.
    pub fn with_headers(mut self, headers: &[(String, String)]) -> Result<PushTarget, String> {
        for (name, value) in headers {
            let wrong = |what| format!("invalid {what} of header '{name}'");
            let valid = HeaderName::try_from(name).map_err(|_| wrong("name"))?;
            let mut value = HeaderValue::try_from(value).map_err(|_| wrong("value"))?;
            value.set_sensitive(true);
            self.headers.push((valid, value));
        }
        Ok(self)
    }
}

/// The URL alone: headers are secret.
impl fmt::Debug for PushTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushTarget").field("url", &self.url).finish_non_exhaustive()
    }
}

/// What is pushed.
pub trait PushSource: Send {
    /// Media type of all documents.
    const CONTENT_TYPE: &'static str;

    /// The document as of now.
    fn document(&mut self) -> Vec<u8>;

    /// The collector took the last document, with this answer. A complaint in it, if any.
    fn accepted(&mut self, answer: &[u8]) -> Option<String>;
}

/// Pushes until it is ended or dropped.
#[derive(Debug)]
pub struct Pusher {
    /// The time by which the last push has to be over.
    end: SyncSender<Instant>,
    faults: Receiver<String>,
    /// Whether the last document was taken.
    ended: Receiver<bool>,
}

impl Pusher {
    /// Starts to push, at once and then every `period`.
    ///
    /// # Errors
    /// This system refuses a thread.
    pub fn start(
        target: PushTarget,
        period: Duration,
        source: impl PushSource + 'static,
    ) -> io::Result<Pusher> {
        let (end, to_end) = sync_channel(1);
        let (fault, faults) = sync_channel(1);
        let (over, ended) = sync_channel(1);
        let mut pushing = Pushing { target, period, source, fault, has_reported: false };
        let work = move || {
            let _ = over.send(pushing.work(&to_end));
        };
        let thread = Builder::new().name("push".to_owned()).spawn(work);
        thread.map_err(|e| threads::error(&e))?;
        Ok(Pusher { end, faults, ended })
    }

    /// The first fault, once.
    pub fn fault(&self) -> Option<String> {
        self.faults.try_recv().ok()
    }

    /// Pushes once more, within `limit`, or half a second where `is_hurried`. Whether the collector
    /// took that.
    pub fn end(&self, limit: Duration, is_hurried: impl Fn() -> bool) -> bool {
        let since = Instant::now();
        if self.end.try_send(since + limit).is_err() {
            return false;
        }
        loop {
            match self.ended.recv_timeout(GLANCE) {
                Ok(is_taken) => return is_taken,
                Err(RecvTimeoutError::Disconnected) => return false,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let limit = if is_hurried() { limit.min(HURRIED_LIMIT) } else { limit };
            if since.elapsed() >= limit {
                return false;
            }
        }
    }
}

struct Pushing<S> {
    target: PushTarget,
    period: Duration,
    source: S,
    fault: SyncSender<String>,
    has_reported: bool,
}

/// Why a document was not taken.
struct Refusal {
    why: String,
    /// When the next one may be; `None`: none before the end.
    again: Option<Duration>,
}

impl<S: PushSource> Pushing<S> {
    /// Whether the last document was taken.
    fn work(&mut self, end: &Receiver<Instant>) -> bool {
        let mut pause = Duration::ZERO;
        // What the collector asked for.
        let mut not_before = Instant::now();
        loop {
            match end.recv_timeout(pause) {
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return false,
                Ok(deadline) => return self.push_last(not_before, deadline),
            }
            pause = self.period;
            let Err(Refusal { why, again }) = self.push(PUSH_LIMIT) else {
                continue;
            };
            let then = if let Some(wait) = again {
                not_before = Instant::now() + wait;
                pause = pause.max(wait);
                format!("in {} s", pause.as_secs_f64().ceil())
            } else {
                pause = FOREVER;
                "when it ends".to_owned()
            };
            self.report_first(format!("{why}; the run goes on, knee tries again {then}"));
        }
    }

    fn push_last(&mut self, not_before: Instant, deadline: Instant) -> bool {
        if not_before > deadline {
            return false;
        }
        thread::sleep(not_before.saturating_duration_since(Instant::now()));
        let left = deadline.saturating_duration_since(Instant::now());
        match self.push(left.clamp(Duration::from_millis(1), PUSH_LIMIT)) {
            Ok(()) => true,
            Err(refusal) => {
                self.report_first(format!("{}; the last figures are lost", refusal.why));
                false
            }
        }
    }

    /// Reports a fault, if it is the first.
    fn report_first(&mut self, fault: String) {
        if !std::mem::replace(&mut self.has_reported, true) {
            let _ = self.fault.try_send(fault);
        }
    }

    fn push(&mut self, limit: Duration) -> Result<(), Refusal> {
        let document = self.source.document();
        let mut request = self.target.agent.post(&self.target.url);
        for (name, value) in &self.target.headers {
            request = request.header(name, value);
        }
        let request = request.config().timeout_global(Some(limit)).build();
        let sent = request.content_type(S::CONTENT_TYPE).send(document.as_slice());
        let mut response = sent.map_err(|e| Refusal::of_error(&e, &self.target.url, limit))?;
        if !response.status().is_success() {
            return Err(Refusal::of_response(&response));
        }
        let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        let answer = body.map_err(|e| Refusal::of_error(&e, &self.target.url, limit))?;
        match self.source.accepted(&answer) {
            Some(why) => Err(Refusal { why, again: Some(Duration::ZERO) }),
            None => Ok(()),
        }
    }
}

/// Longer than any run.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3_600);

impl Refusal {
    /// No answer, or none of HTTP.
    fn of_error(error: &Error, url: &str, limit: Duration) -> Refusal {
        let why = match error {
            Error::Timeout(_) => format!("no answer within {} s", limit.as_secs_f64().ceil()),
            Error::Io(e) => match e.get_ref().and_then(|e| e.downcast_ref::<rustls::Error>()) {
                Some(tls) => format!("TLS failed: {tls}"),
                None => reason(e),
            },
            Error::Rustls(tls) => format!("TLS failed: {tls}"),
            Error::HostNotFound => "its host is not known".to_owned(),
            Error::Http(_) | Error::Protocol(_) => "no answer in HTTP".to_owned(),
            other => other.to_string(),
        };
        let port = url.parse::<Uri>().ok().and_then(|uri| uri.port_u16());
        let hint = if port == Some(GRPC_PORT) {
            format!(" (port {GRPC_PORT} is for gRPC; OTLP over HTTP is at port 4318)")
        } else {
            String::new()
        };
        Refusal { why: why + &hint, again: Some(Duration::ZERO) }
    }

    /// Which statuses pass by themselves: opentelemetry.io/docs/specs/otlp, "Retryable Response
    /// Codes".
    fn of_response(response: &Response<Body>) -> Refusal {
        let status = response.status();
        let hint = match status.as_u16() {
            300..=399 => ": expected no redirect, but the URL that it leads to",
            401 | 403 => ": expected credentials, in the variable OTEL_EXPORTER_OTLP_HEADERS",
            404 | 405 => ": expected a receiver of OTLP at this path",
            415 => ": expected a receiver that takes OTLP in protobuf",
            _ => "",
        };
        let passes = matches!(status.as_u16(), 429 | 502..=504);
        let wait = response.headers().get("retry-after").and_then(|value| value.to_str().ok());
        let wait = wait.and_then(|seconds| seconds.trim().parse().ok()).unwrap_or(0);
        let again = passes.then(|| Duration::from_secs(wait).min(FOREVER));
        Refusal { why: format!("it answered {}{hint}", status_text(status)), again }
    }
}

/// The port of collectors for OTLP over gRPC.
const GRPC_PORT: u16 = 4317;

fn status_text(status: StatusCode) -> String {
    let name = status.canonical_reason().map(|name| format!(" {name}"));
    format!("{}{}", status.as_str(), name.unwrap_or_default())
}

/// A client that goes straight to its target, by no proxy and along no redirect.
fn agent(scheme: Option<&str>) -> Result<Agent, String> {
    let config = Agent::config_builder().proxy(None).max_redirects(0).http_status_as_error(false);
    let config = config.user_agent(concat!("knee/", env!("CARGO_PKG_VERSION")));
    if scheme != Some("https") {
        return Ok(config.build().new_agent());
    }
    check_system_file().map_err(|e| e.to_string())?;
    let roots = rustls_native_certs::load_native_certs().certs;
    if roots.is_empty() {
        return Err("this system has no root certificates: name a file with SSL_CERT_FILE".into());
    }
    let roots = roots.iter().map(|der| Certificate::from_der(der).to_owned());
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::from(roots))
        .unversioned_rustls_crypto_provider(Arc::new(aws_lc_rs::default_provider()));
    Ok(config.tls_config(tls.build()).build().new_agent())
}

#[cfg(test)]
mod tests;
