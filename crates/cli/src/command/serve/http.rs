//! `knee serve http`: the reference server of `run` and `sweep`, and its certificate (`--tls`).

use super::{ServeSpec, StationArgs, Stats, StatsArgs};
use crate::args::{
    Choices, RESUMES, SeedArgs, VERSIONS, first_given, one_of, parse_count, parse_whole,
};
use crate::failure::{Exit, Failure};
use crate::stdio;
use crate::whole_file::OutputPlace;
use clap::Args;
use knee_engine::sys::socket::Address;
use knee_load::law::Law;
use knee_load::spec::{ParseError, TlsResume, TlsVersion};
use knee_serve::http::{
    ARRIVALS_MAX, AcceptPolicy, App, CacheSpec, Fault, HttpServerSpec, Identity, IdentityError,
    LOG_MAX, QueueOrder, QueueSpec, STREAM_LOG_MAX, STREAMS_MAX, ServerTls, StreamSpec,
    parse_cache, parse_capacity, parse_fault, parse_listen, parse_queue_order, parse_stream,
};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Serve HTTP/1.1, HTTP/2 and HTTP/3, in clear or over TLS, with a known service time, queue and faults
///
/// Prints 'listening on ADDR:PORT' when ready, serves until SIGTERM, SIGHUP or Ctrl-C, then prints
/// its statistics. With --workers it is a queueing station: M workers, each serving one request at
/// a time, behind one first-come-first-served queue.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Example:\n  \
        knee serve http --workers 6 --service 'fixed(700us)'",
    after_long_help = "Examples:\n  \
        knee serve http --listen 127.0.0.1:0\n  \
        knee serve http --workers 6 --service 'fixed(700us)'\n  \
        knee serve http --workers 1 --service 'exp(120us)' --seed 1\n  \
        knee serve http --capacity 130 --backlog 128\n  \
        knee serve http --service 'fixed(4ms)' --queue lifo --work-after-timeout off\n  \
        knee serve http --cache 'hit=1ms, miss=50ms, keys=500, ttl=60s'\n  \
        knee serve http --stream 'messages=200, gap=exp(20ms), first=fixed(150ms), slots=8'\n  \
        knee serve http --app shop --service 'exp(5ms)' --workers 4\n  \
        knee serve http --tls --tls-resume 0rtt\n  \
        knee serve http --tls --http3\n  \
        knee serve http --fault 'stall(5s,1s)' --fault 'error(0.01,503)'\n\n\
        Exit codes: 0 served and stopped; 2 bad arguments, or it cannot listen there."
)]
pub struct RawServeHttp {
    /// Listening address; port 0 picks a free one; unix:PATH is a Unix socket
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8080")]
    #[arg(value_parser = parse_listen)]
    listen: Address,

    #[command(flatten)]
    secure: ServerTlsArgs,

    /// Speak HTTP/3 too, on the UDP port of the same number
    #[arg(long, requires = "tls", conflicts_with = "stream", hide_short_help = true)]
    http3: bool,

    /// Maximum concurrent streams of an HTTP/2 or HTTP/3 connection
    #[arg(long, value_name = "N", value_parser = parse_count, default_value_t = STREAMS_MAX)]
    streams: u32,

    /// Application that answers: shop [default: every request has the same response]
    ///
    /// POST /login takes {"name","password"} and gives a token, a cookie and X-Csrf. GET
    /// /items?page=N and /items/ID give items. POST /cart takes an id with the token, and GET /cart
    /// reads the cookie. GET /old redirects; GET / is a page with a hidden field.
    #[arg(long, value_name = "NAME", value_parser = one_of(APPS), hide_possible_values = true)]
    app: Option<App>,

    /// Stream of server-sent events as each response, such as 'messages=200, gap=exp(20ms)'
    ///
    /// messages: their number, by default 100. first: time to the first, 100ms. gap: time between
    /// two, 20ms. slots: most streams at once; further ones wait. step: instead of gap, the time
    /// after which all active streams send a message, as step=15ms+0.5ms*active. Messages and end
    /// message have the form of OpenAI's.
    #[arg(long, value_name = "LAW", value_parser = parse_stream)]
    #[arg(conflicts_with_all = ["app", "size", "workers", "service", "capacity"])]
    stream: Option<StreamSpec>,

    /// Size of each response body in bytes
    #[arg(long, value_name = "BYTES", default_value = "1294", value_parser = parse_size)]
    #[arg(conflicts_with = "app")]
    size: u32,

    #[command(flatten)]
    station: StationArgs,

    /// Maximum requests waiting for a worker; further ones get status 503 at once [default: no
    /// limit]
    #[arg(long, value_name = "N", value_parser = parse_whole_u32, hide_short_help = true)]
    max_queue: Option<u32>,

    /// Which waiting request is next: fifo, lifo or codel(5ms,100ms) [default: fifo]
    ///
    /// codel(TARGET,INTERVAL) is fifo, but drops requests, with status 503, while all have waited
    /// for longer than TARGET for INTERVAL (RFC 8289).
    #[arg(long, value_name = "ORDER", value_parser = parse_queue_order, hide_short_help = true)]
    queue: Option<QueueOrder>,

    /// Whether a request is served though its client has gone: on or off [default: on]
    #[arg(long, value_name = "ON", value_parser = one_of(SWITCH), hide_short_help = true)]
    #[arg(hide_possible_values = true)]
    work_after_timeout: Option<bool>,

    /// Cache before something slow, instead of --service, such as 'hit=1ms, miss=50ms, ttl=30s'
    ///
    /// Each request asks for one of the keys (keys=1000), all alike. What was missing is stored
    /// as it is served, if the client is still there. ttl: how long a key stays. capacity: most
    /// keys. start: warm (default) or cold. A POST to /drop-cache empties it.
    #[arg(long, value_name = "CACHE", value_parser = parse_cache, hide_short_help = true)]
    #[arg(conflicts_with_all = ["service", "capacity", "app"])]
    cache: Option<CacheSpec>,

    /// Requests per second of a single worker, instead of --workers and --service
    #[arg(long, value_name = "N", value_parser = parse_capacity)]
    #[arg(conflicts_with_all = ["workers", "service"])]
    capacity: Option<Law>,

    /// When to accept connections: eager (at once) or per-worker (one per free worker until it
    /// closes). With per-worker the kernel's accept queue is the queue [default: eager; with
    /// --capacity and --backlog per-worker]
    #[arg(long, value_name = "HOW", value_parser = one_of(ACCEPT_POLICIES))]
    #[arg(hide_possible_values = true)]
    accept: Option<AcceptPolicy>,

    /// Length of the accept queue [default: 4096]
    #[arg(long, value_name = "B", value_parser = parse_count)]
    backlog: Option<u32>,

    /// Injected fault, repeatable: stall(at,for), reset(p), truncate(p), slow(bytes/s), garbage(p),
    /// error(p,status)
    #[arg(long, value_name = "FAULT", value_parser = parse_fault)]
    fault: Vec<Fault>,

    #[command(flatten)]
    seed: SeedArgs,

    /// File for arrival times of requests, in nanoseconds since the start, one per line
    #[arg(long, value_name = "FILE")]
    arrivals: Option<String>,

    /// CSV file for the times of each request (arrival, read, service, end of write), in
    /// nanoseconds of CLOCK_MONOTONIC; written at the end
    #[arg(long, value_name = "FILE")]
    log: Option<String>,

    /// CSV file for when each message of a stream was due and left, in nanoseconds of
    /// CLOCK_MONOTONIC; written at the end
    #[arg(long, value_name = "FILE", requires = "stream")]
    stream_log: Option<String>,

    #[command(flatten)]
    stats: StatsArgs,
}

/// Files that a server writes at its end.
#[derive(Default)]
pub(super) struct ServerFiles {
    arrivals: Option<OutputPlace>,
    log: Option<OutputPlace>,
    stream_log: Option<OutputPlace>,
}

impl RawServeHttp {
    /// Checks that HTTP/3 is possible, where it was asked for.
    fn check_http3(&self) -> Result<(), Failure> {
        let wrong = if !self.http3 {
            return Ok(());
        } else if matches!(self.listen, Address::Unix(_)) {
            "HTTP/3 is over UDP: give --listen ADDR:PORT"
        } else if self.secure.tls_max == TlsVersion::Tls12 {
            "HTTP/3 needs TLS 1.3: leave out --tls-max 1.2"
        } else if self.fault.iter().any(|fault| matches!(fault, Fault::Slow(_))) {
            "slow bodies are not supported over HTTP/3: leave out --fault slow"
        } else {
            return Ok(());
        };
        Err(Failure::argument("--http3", wrong))
    }

    /// Settles the options and opens the files.
    pub fn resolve(self) -> Result<ServeSpec, Failure> {
        let raw = self;
        raw.check_http3()?;
        let (tls, authority) = raw.secure.resolve(&raw.listen)?.unzip();
        let place = |option| move |path: String| OutputPlace::open(option, &path);
        let files = ServerFiles {
            arrivals: raw.arrivals.map(place("--arrivals")).transpose()?,
            log: raw.log.map(place("--log")).transpose()?,
            stream_log: raw.stream_log.map(place("--stream-log")).transpose()?,
        };
        let has_law = raw.capacity.is_some() || raw.cache.is_some();
        let workers = raw.station.workers().or(has_law.then_some(1));
        let of_queue = first_given(&[
            (raw.max_queue.is_some(), "--max-queue"),
            (raw.queue.is_some(), "--queue"),
            (raw.work_after_timeout.is_some(), "--work-after-timeout"),
        ]);
        if let (Some(option), None) = (of_queue, workers) {
            let wrong = "needs a queue: give --workers, --service, --capacity or --cache";
            return Err(Failure::argument(option, wrong));
        }
        let queue = QueueSpec {
            max: raw.max_queue,
            order: raw.queue.unwrap_or_default(),
            serves_gone: raw.work_after_timeout.unwrap_or(true),
            cache: raw.cache,
        };
        let accept = raw.accept.unwrap_or(match (raw.capacity, raw.backlog) {
            (Some(_), Some(_)) => AcceptPolicy::PerWorker,
            _ => AcceptPolicy::Eager,
        });
        let server = HttpServerSpec {
            listen: raw.listen,
            tls,
            http3: raw.http3,
            streams_max: raw.streams,
            app: raw.app,
            reflect: None,
            stream: raw.stream,
            stream_log_max: files.stream_log.as_ref().map_or(0, |_| STREAM_LOG_MAX),
            body_size: raw.size,
            workers,
            queue,
            service: raw.station.service.or(raw.capacity).unwrap_or(Law::ZERO),
            accept,
            backlog: raw.backlog.unwrap_or(4096),
            faults: raw.fault,
            seed: raw.seed.seed(),
            arrivals_max: files.arrivals.as_ref().map_or(0, |_| ARRIVALS_MAX),
            log_max: files.log.as_ref().map_or(0, |_| LOG_MAX),
        };
        let stats = raw.stats.resolve()?;
        Ok(ServeSpec::new(move || serve(server, authority.flatten(), files, stats)))
    }
}

/// Serves until a signal ends it. `authority`: the certificate that clients have to trust, where it
/// was made on the spot.
pub(super) fn serve(
    server: HttpServerSpec,
    authority: Option<String>,
    files: ServerFiles,
    stats_to: Stats,
) -> Result<Exit, Failure> {
    let (listen, seed) = (server.listen.to_string(), server.seed);
    let stop = super::until_signal();
    let server = knee_serve::http::start(server).map_err(|e| super::cannot_listen(&listen, &e))?;
    // There for as long as it is of use.
    let trust = authority.as_deref().map(TrustFile::write).transpose()?;
    if let Some(file) = &trust {
        stdio::write(|out| writeln!(out, "certificate {}", file.path.display()))?;
    }
    stop.wait(server.address())?;
    let stats = server.stop();
    let arrivals = files.arrivals.map_or(Ok(()), |p| p.write(|out| stats.write_arrivals(out)));
    let log = files.log.map_or(Ok(()), |p| p.write(|out| stats.log.write(out)));
    let messages = files.stream_log;
    let messages = messages.map_or(Ok(()), |p| p.write(|out| stats.stream_log.write(out)));
    let (requests, streamed) = (&stats.log, &stats.stream_log);
    for (option, kept, what, more) in [
        ("--log", requests.entries.len(), "requests", requests.left_out),
        ("--stream-log", streamed.messages.len(), "messages", streamed.left_out),
    ] {
        if more > 0 {
            stdio::say(&format!("{option} has the first {kept} {what}; {more} more had no room"));
        }
    }
    // A file that fails does not take the statistics with it.
    let written = stats_to.write(&stats, &format!("{stats}seed   {seed}\n"));
    arrivals.and(log).and(messages).and(written)?;
    Ok(Exit::Fine)
}

fn parse_whole_u32(text: &str) -> Result<u32, ParseError> {
    let most = u32::MAX;
    u32::try_from(parse_whole(text)?)
        .map_err(|_| ParseError(format!("'{text}' is too many: at most {most}")))
}

fn parse_size(text: &str) -> Result<u32, ParseError> {
    let bytes = parse_whole(text)?;
    u32::try_from(bytes).map_err(|_| ParseError(format!("'{text}' is over 4 GiB")))
}

const APPS: Choices<App> = &[("shop", App::Shop)];
const SWITCH: Choices<bool> = &[("on", true), ("off", false)];

const ACCEPT_POLICIES: Choices<AcceptPolicy> =
    &[("eager", AcceptPolicy::Eager), ("per-worker", AcceptPolicy::PerWorker)];

/// How a server secures its connections.
#[derive(Args, Clone, Debug)]
pub struct ServerTlsArgs {
    /// TLS on every connection. Without --cert a certificate is made at the start, for localhost
    /// and this host, valid for a week. 'certificate FILE' before 'listening on' names the
    /// certificate to trust (--cacert)
    #[arg(long)]
    tls: bool,

    /// PEM file with the server's certificate, then those between it and its root
    #[arg(long, value_name = "FILE", requires_all = ["tls", "key"])]
    cert: Option<PathBuf>,

    /// PEM file with the private key of --cert
    #[arg(long, value_name = "FILE", requires_all = ["tls", "cert"])]
    key: Option<PathBuf>,

    /// Oldest version of TLS: 1.2 or 1.3
    #[arg(long, value_name = "VERSION", value_parser = one_of(VERSIONS), default_value = "1.2")]
    #[arg(hide_possible_values = true, requires = "tls")]
    tls_min: TlsVersion,

    /// Newest version of TLS: 1.2 or 1.3
    #[arg(long, value_name = "VERSION", value_parser = one_of(VERSIONS), default_value = "1.3")]
    #[arg(hide_possible_values = true, requires = "tls")]
    tls_max: TlsVersion,

    /// Resumption of earlier sessions: ticket, off, or 0rtt (with early data, each session once)
    #[arg(long, value_name = "HOW", value_parser = one_of(RESUMES), default_value = "ticket")]
    #[arg(hide_possible_values = true, requires = "tls")]
    tls_resume: TlsResume,
}

impl ServerTlsArgs {
    /// How connections at `listen` are secured, and the certificate that clients have to trust
    /// where it was made here; `None`: not at all.
    pub fn resolve(self, listen: &Address) -> Result<Option<(ServerTls, Option<String>)>, Failure> {
        if !self.tls {
            return Ok(None);
        }
        if self.tls_min > self.tls_max {
            return Err(Failure::argument("--tls-max", "is below --tls-min"));
        }
        let identity = match (&self.cert, &self.key) {
            (Some(certificate), Some(key)) => read(certificate, key)?,
            _ => {
                let address = match listen {
                    Address::Tcp(address) => Some(address.ip()),
                    Address::Unix(_) => None,
                };
                Identity::make(address).map_err(|e| Failure::argument("--tls", e))?
            }
        };
        let authority = identity.authority().map(String::from);
        let tls = ServerTls::new(identity, (self.tls_min, self.tls_max), self.tls_resume);
        let tls = tls.map_err(|wrong| Failure::argument("--cert, --key", wrong))?;
        Ok(Some((tls, authority)))
    }
}

fn read(certificate: &Path, key: &Path) -> Result<Identity, Failure> {
    Identity::read(certificate, key).map_err(|e| match e {
        IdentityError::Certificate(wrong) => Failure::argument("--cert", wrong),
        IdentityError::Key(wrong) => Failure::argument("--key", wrong),
    })
}

/// A file with a certificate to trust, in the directory for temporary files; gone when dropped.
#[derive(Debug)]
pub struct TrustFile {
    /// Where it is.
    pub path: PathBuf,
}

impl TrustFile {
    /// Writes it. A file that is there already, or a link, is never written to.
    pub fn write(pem: &str) -> Result<TrustFile, Failure> {
        let directory = std::env::temp_dir();
        let failed = |e: io::Error| {
            let directory = directory.display();
            let wrong = format!("the certificate cannot be written to '{directory}': {e}");
            Failure::argument("--tls", wrong)
        };
        for attempt in 0..100 {
            let name = format!("knee-{}-{attempt}.pem", std::process::id());
            let path = directory.join(name);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(mut file) => {
                    let written = TrustFile { path };
                    return file.write_all(pem.as_bytes()).map_err(failed).map(|()| written);
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(failed(e)),
            }
        }
        Err(failed(io::ErrorKind::AlreadyExists.into()))
    }
}

impl Drop for TrustFile {
    fn drop(&mut self) {
        // What cannot be removed stays in the directory for temporary files.
        let _ = std::fs::remove_file(&self.path);
    }
}
