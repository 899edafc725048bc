//! TLS, HTTP/2, HTTP/3 and gRPC against other people's servers, and the schedule over one connection.

use super::contender::{Contender, LineValues, OfferedRate, bare, knee_on_both, peer, split};
use super::lab::Lab;
use super::open::schedule;
use super::process::{self, BenchServer};
use super::reader;
use super::round::{Contest, column, cost, rate, ratio};
use crate::repo::{make, write};
use crate::tools;
use std::path::Path;
use std::process::Command;

/// Short turns and more rounds, as in the closed loop.
const TURN_S: f64 = 1.0;
const ROUNDS_FACTOR: usize = 3;
const CONNECTIONS: usize = 64;
const STREAMS: usize = 32;
const BODY_BYTES: usize = 1_294;
const RATE_PER_S: f64 = 10_000.0;

/// A server, and what it speaks.
#[derive(Clone, Copy)]
enum Host {
    /// nginx: TLS 1.3, HTTP/1.1 and HTTP/2.
    Tls,
    /// The same, with nothing to resume.
    NoTickets,
    /// HTTP/2 in cleartext.
    Clear,
    /// Caddy: HTTP/3.
    Caddy,
}

impl Host {
    fn is_tls(self) -> bool {
        !matches!(self, Host::Clear)
    }

    fn program(self) -> &'static str {
        if matches!(self, Host::Caddy) { "caddy" } else { "nginx" }
    }
}

/// knee over both backends with the options in `{knee}`.
const KNEE: [Contender; 2] =
    knee_on_both("run {knee} -t 1 -d {ms}ms --warmup 0s --backend {backend} --json - --quiet");
const H2LOAD: Contender =
    peer("h2load", "-t1 -c{connections} -m{streams} -D{whole} {target}", reader::h2load);
const WRK: Contender =
    peer("wrk", "-t1 -c{connections} -d{whole}s --latency {target}", reader::wrk);
const WRK_CLOSING: Contender = peer(
    "wrk",
    "-t1 -c{connections} -d{whole}s --latency -H 'Connection: close' {target}",
    reader::wrk,
);

/// A table: contenders against a server.
struct Comparison {
    title: String,
    host: Host,
    /// What is asked for.
    path: &'static str,
    peers: Vec<Contender>,
    /// The options of `knee run`.
    knee: String,
    connections: usize,
    /// The peer that knee is compared with.
    against: &'static str,
    /// Whether each request has a handshake of its own: the table then shows the share of resumed
    /// ones.
    is_handshakes: bool,
}

/// HTTP/1.1 over TLS and handshakes.
///
/// # Errors
/// A contender or the server fails.
pub fn run_tls(lab: &Lab) -> Result<String, String> {
    let comparison = |title: &str, host, options: &str, peers: &[Contender]| Comparison {
        title: title.into(),
        host,
        path: "/",
        peers: peers.to_vec(),
        knee: format!("{{target}} --vusers {CONNECTIONS} --http1.1 --insecure{options}"),
        connections: CONNECTIONS,
        against: WRK.name,
        is_handshakes: options.contains("--no-keepalive"),
    };
    let comparisons = [
        comparison(
            "HTTP/1.1 over TLS 1.3 (goal: CPU ≤ 0.85 of wrk)",
            Host::Tls,
            "",
            &[
                bare("bare rustls loop", "closed_rustls", "{port} {connections} {seconds}"),
                WRK,
                peer(
                    "bombardier",
                    "-c {connections} -d {whole}s -k -o json -p r {target}",
                    reader::bombardier,
                ),
            ],
        ),
        comparison(
            "Full handshakes, one request each (goal: rate ≥ 1.0 of wrk)",
            Host::NoTickets,
            " --no-keepalive --tls-resume off",
            &[WRK_CLOSING],
        ),
        comparison(
            "Resumed handshakes, one request each (goal: rate ≥ 1.0 of wrk)",
            Host::Tls,
            " --no-keepalive --tls-resume ticket",
            &[WRK_CLOSING],
        ),
    ];
    let mut text = format!(
        "## TLS: what a request and a handshake cost\n\n\
         {CONNECTIONS} connections; nginx, one process, answers with 1,294 bytes. Nobody \
         verifies the certificate (P-256), everybody its signature; the cipher is \
         TLS_AES_128_GCM_SHA256 for all. wrk resumes sessions wherever the server lets it, so \
         full handshakes are with an nginx that does not (`ssl_session_tickets off`); h2load does \
         not end with `Connection: close`. The bare rustls loop is rustls's buffered connections \
         over epoll and nothing else.\n\n"
    );
    for comparison in &comparisons {
        text += &compare_on(lab, comparison, "https")?;
    }
    Ok(text)
}

/// HTTP/2 in cleartext and over TLS, closed loop and open.
///
/// # Errors
/// A contender or the server fails.
pub fn run_http2(lab: &Lab) -> Result<String, String> {
    let mut text = format!(
        "## HTTP/2: what a request costs\n\n\
         {STREAMS} streams per connection; nginx, one process, answers with 1,294 bytes. The bare \
         loop in C sends cached header blocks and counts the ends of streams: what no generator \
         can do for less.\n\n"
    );
    let bare_streams =
        bare("bare HTTP/2 loop", "closed_h2", "{port} {connections} {streams} {seconds}");
    let clear = ("http", "--http2-prior-knowledge", "0.60");
    let tls = ("https", "--http2 --insecure", "0.75");
    for (host, name, (scheme, options, goal)) in
        [(Host::Clear, "cleartext", clear), (Host::Tls, "TLS 1.3", tls)]
    {
        for connections in [1, 16] {
            let users = connections * STREAMS;
            let comparison = Comparison {
                title: format!("{connections} × {STREAMS}, {name} (goal: CPU ≤ {goal} of h2load)"),
                host,
                path: "/",
                peers: match scheme {
                    "http" => vec![bare_streams, H2LOAD],
                    _ => vec![H2LOAD],
                },
                knee: format!("{{target}} {options} --vusers {users} -c {connections}"),
                connections,
                against: H2LOAD.name,
                is_handshakes: false,
            };
            text += &compare_on(lab, &comparison, scheme)?;
        }
    }
    Ok(text + &open(lab)?)
}

/// The size of a longer response in bytes.
const LONG_BYTES: usize = 32 << 10;

/// HTTP/3, closed loop.
///
/// # Errors
/// A contender or the server fails.
pub fn run_http3(lab: &Lab) -> Result<String, String> {
    let mut text = format!(
        "## HTTP/3: what a request costs\n\n\
         {STREAMS} streams per connection; Caddy on the server's core, whose own cost is the limit: \
         compare the processor time. The bare loop is quinn-proto over epoll, one datagram per \
         call, and nothing else.\n\n"
    );
    let bare_quinn = bare(
        "bare quinn-proto loop",
        "closed_quinn",
        "{port} {connections} {streams} {seconds} {path}",
    );
    for (path, size) in [("/index.html", "1,294 bytes"), ("/long", "32 KiB")] {
        for connections in [1, 16] {
            let users = connections * STREAMS;
            let comparison = Comparison {
                title: format!("{connections} × {STREAMS}, {size} (goal: CPU ≤ 1.3 of bare)"),
                host: Host::Caddy,
                path,
                peers: vec![bare_quinn],
                knee: format!("{{target}} --http3 --insecure --vusers {users} -c {connections}"),
                connections,
                against: bare_quinn.name,
                is_handshakes: false,
            };
            text += &compare_on(lab, &comparison, "https")?;
        }
    }
    Ok(text)
}

fn values(lab: &Lab, knee: &str, connections: usize, scheme: &str, path: &str) -> LineValues {
    LineValues::of(lab.seconds(TURN_S))
        .with("knee", knee)
        .with("target", format!("{scheme}://127.0.0.1:{{port}}{path}"))
        .with("path", path)
        .with("connections", connections)
        .with("streams", STREAMS)
}

/// Lets them take turns.
fn compare_on(lab: &Lab, comparison: &Comparison, scheme: &str) -> Result<String, String> {
    let Comparison { title, host, peers, against, .. } = comparison;
    let heading = format!("### {title}\n\n");
    let needed = [Some(host.program()), host.is_tls().then_some("openssl")];
    if let Some(missing) = needed.iter().flatten().find(|name| tools::find(name).is_none()) {
        return Ok(format!("{heading}Not measured: without {missing}.\n\n"));
    }
    let contest = Contest {
        who: "generator",
        contenders: &[&KNEE[..], &peers[..]].concat(),
        values: values(lab, &comparison.knee, comparison.connections, scheme, comparison.path),
        factor: ROUNDS_FACTOR,
    };
    let (rate_title, cpu_title) =
        (format!("rate against {against}"), format!("CPU against {against}"));
    let mut columns = vec![
        column("requests/s", 0, rate),
        ratio(&rate_title, rate, against),
        column("CPU s per million", 2, cost),
        ratio(&cpu_title, cost, against),
    ];
    if comparison.is_handshakes {
        columns
            .push(column("% resumed", 0, |t| Some(t.sample.resumed? / t.sample.requests * 100.0)));
    }
    Ok(heading + &contest.run(lab, &|_| start(lab, *host), &columns)?)
}

/// The schedule over one connection, as `knee serve http` saw it.
fn open(lab: &Lab) -> Result<String, String> {
    let knee = "{target} --http2-prior-knowledge{arrivals} -c 1";
    let contest = Contest {
        who: "generator",
        contenders: &[
            KNEE[0],
            KNEE[1],
            peer("h2load", "-t1 -c1 -m{streams} --rps {rate} -D{whole} {target}", reader::h2load),
        ],
        values: values(lab, knee, 1, "http", "/").with_rate(OfferedRate::Constant(RATE_PER_S)),
        factor: ROUNDS_FACTOR,
    };
    let table = schedule(lab, &contest, RATE_PER_S, |_, file| {
        lab.serve_knee(&format!("http --listen 127.0.0.1:0 --arrivals {}", file.display()))
    })?;
    Ok(format!(
        "### Open loop, {RATE_PER_S}/s over one connection (goal: deviation p50 ≤ 3 µs)\n\n\
         `knee serve http --arrivals` stamps each request; deviations as in the open loop.\n\n\
         {table}"
    ))
}

/// Starts a server on its core.
fn start(lab: &Lab, host: Host) -> Result<BenchServer, String> {
    let site = lab.scratch("site");
    make(&site)?;
    write(&site.join("index.html"), "x".repeat(BODY_BYTES))?;
    write(&site.join("long"), "x".repeat(LONG_BYTES))?;
    if host.is_tls() {
        certify(&site)?;
    }
    let port = process::free_port()?;
    let folder = site.display();
    let (config, arguments) = if matches!(host, Host::Caddy) {
        (caddy(&site, port), format!("run --adapter caddyfile --config {folder}/config"))
    } else {
        (nginx(&site, host, port), format!("-p {folder} -e error.log -c {folder}/config"))
    };
    write(&site.join("config"), config)?;
    let program = tools::find(host.program()).ok_or("the server has gone")?;
    let command = process::pinned(lab.server_core, &program, &split(&arguments));
    BenchServer::start_on(port, command)
}

fn nginx(site: &Path, host: Host, port: u16) -> String {
    let folder = site.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {folder}/{name};\n"))
        .concat();
    let tickets = if matches!(host, Host::NoTickets) { "off" } else { "on" };
    let (listen, tls) = if host.is_tls() {
        (
            "ssl http2",
            format!(
                "ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;\n\
                 ssl_session_tickets {tickets}; ssl_protocols TLSv1.3;\n\
                 ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;\n"
            ),
        )
    } else {
        ("http2", String::new())
    };
    format!(
        "daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n{temporary}access_log off; open_file_cache max=10;\n\
         keepalive_requests 1000000000; keepalive_timeout 60s;\n\
         server {{ listen 127.0.0.1:{port} {listen}; root {folder};\n{tls}}}\n}}\n"
    )
}

fn caddy(site: &Path, port: u16) -> String {
    let folder = site.display();
    format!(
        "{{\nadmin off\nauto_https off\nservers {{\nprotocols h1 h2 h3\n}}\n}}\n\
         https://:{port} {{\nbind 127.0.0.1\ntls {folder}/cert.pem {folder}/key.pem\n\
         root * {folder}\nfile_server\n}}\n"
    )
}

/// A certificate for this host that signs itself, and its key.
fn certify(site: &Path) -> Result<(), String> {
    let line = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 \
                -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1,DNS:localhost \
                -keyout key.pem -out cert.pem";
    let mut openssl = Command::new("openssl");
    openssl.args(line.split_whitespace()).current_dir(site);
    process::run(openssl)?.ended.succeeded().map(|_| ())
}

const GRPC_TURN_S: f64 = 2.0;
const GRPC_ROUNDS_FACTOR: usize = 2;
const CALLS: usize = 32;

const GHZ: Contender = peer(
    "ghz",
    "--insecure --call knee.Echo.Say -d '{message}' -c {calls} --connections 1 --cpus 1 -z {ms}ms \
     --duration-stop wait -O json 127.0.0.1:{port}",
    reader::ghz,
);

const KNEE_GRPC: [Contender; 2] = knee_on_both(
    "run grpc://127.0.0.1:{port}/knee.Echo/Say -b '{message}' --vusers {calls} -c 1 -t 1 -d \
     {ms}ms --warmup 0s --backend {backend} --json - --quiet",
);
const CONTENDERS: [Contender; 3] = [KNEE_GRPC[0], KNEE_GRPC[1], GHZ];

/// Unary calls over one connection.
///
/// # Errors
/// A contender or the server fails.
pub fn run_grpc(lab: &Lab) -> Result<String, String> {
    let contest = Contest {
        who: "generator",
        contenders: &CONTENDERS,
        values: LineValues::of(lab.seconds(GRPC_TURN_S))
            .with("message", r#"{"text":"hello"}"#)
            .with("calls", CALLS),
        factor: GRPC_ROUNDS_FACTOR,
    };
    let columns = [
        column("calls/s", 0, rate),
        column("CPU s per million", 2, cost),
        ratio("CPU against ghz", cost, GHZ.name),
    ];
    Ok(format!(
        "## gRPC: what a call costs\n\n\
         `knee serve grpc` echoes a message of 7 bytes; {CALLS} calls at once over one connection. \
         Goal: CPU per call at most 0.25 of ghz's.\n\n{}",
        contest.run(lab, &|_| lab.serve_knee("grpc --listen 127.0.0.1:0"), &columns)?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nginx_is_told_what_to_speak() {
        let site = Path::new("/site");
        let tls = nginx(site, Host::Tls, 81);
        assert!(tls.contains("listen 127.0.0.1:81 ssl http2;") && tls.contains("TLSv1.3"));
        assert!(tls.contains("ssl_session_tickets on;"));
        let full = nginx(site, Host::NoTickets, 81);
        assert!(full.contains("ssl_session_tickets off;"));
        let clear = nginx(site, Host::Clear, 81);
        assert!(clear.contains("listen 127.0.0.1:81 http2;") && !clear.contains("ssl"));
    }
}
