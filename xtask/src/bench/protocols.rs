//! TLS and HTTP/2 against other people's servers, and the schedule over one connection.

use super::lab::{Lab, Measured};
use super::peer::Peer;
use super::process::{self, Server};
use super::round::{self, Contender};
use super::schedule;
use super::stats::{ratios, spread};
use super::table::{Table, command_lines};
use crate::shell::{make, write};
use crate::tools;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Short turns and more rounds, as in the closed loop.
const TURN_S: f64 = 1.0;
const ROUNDS_FACTOR: usize = 3;
const CONNECTIONS: usize = 64;
const STREAMS: usize = 32;
const BODY_BYTES: usize = 1_294;
const RATE_PER_S: f64 = 10_000.0;
/// The place of the port in a command line.
const PORT: &str = "PORT";
const KNEE: [(Peer, &str); 2] = [(Peer::KneeEpoll, "epoll"), (Peer::KneeUring, "io_uring")];

/// Who serves.
#[derive(Clone, Copy)]
enum Host {
    /// nginx with TLS 1.3, HTTP/1.1 and HTTP/2.
    NginxTls,
    /// The same, with nothing to resume.
    NginxNoTickets,
    /// nginx with HTTP/2 in cleartext.
    NginxClear,
    /// nghttpd with HTTP/2 in cleartext.
    Nghttpd,
    /// nghttpd with HTTP/2 over TLS 1.3.
    NghttpdTls,
}

/// Contenders with their command lines, for one table.
struct Work {
    title: String,
    host: Host,
    lines: Vec<(Peer, String)>,
    /// Whom knee is compared with.
    against: Peer,
    /// Whether each request has a handshake of its own, so that their kind is told.
    is_handshakes: bool,
}

/// HTTP/1.1 over TLS and handshakes.
///
/// # Errors
/// A contender or the server fails.
pub fn run_tls(lab: &Lab) -> Result<String, String> {
    let url = format!("https://127.0.0.1:{PORT}/");
    let seconds = whole(lab);
    let wrk = format!("-t1 -c{CONNECTIONS} -d{seconds}s --latency");
    let insecure = format!("{url} --vusers {CONNECTIONS} --http1.1 --insecure");
    let work = |title: &str, host, options: &str, peers: Vec<(Peer, String)>| Work {
        title: title.into(),
        host,
        lines: lines(lab, &format!("{insecure}{options}"), peers),
        against: Peer::Wrk,
        is_handshakes: options.contains("--no-keepalive"),
    };
    let close = format!("{wrk} -H 'Connection: close' {url}");
    let all = [
        work(
            "HTTP/1.1 over TLS 1.3 (goal: CPU ≤ 0.85 of wrk)",
            Host::NginxTls,
            "",
            vec![
                (
                    Peer::BareRustls,
                    format!("{PORT} {CONNECTIONS} {}", lab.seconds(TURN_S)),
                ),
                (Peer::Wrk, format!("{wrk} {url}")),
                (
                    Peer::Bombardier,
                    format!("-c {CONNECTIONS} -d {seconds}s -k -o json -p r {url}"),
                ),
            ],
        ),
        work(
            "Full handshakes, one request each (goal: rate ≥ 1.0 of wrk)",
            Host::NginxNoTickets,
            " --no-keepalive --tls-resume off",
            vec![(Peer::Wrk, close.clone())],
        ),
        work(
            "Resumed handshakes, one request each (goal: rate ≥ 1.0 of wrk)",
            Host::NginxTls,
            " --no-keepalive --tls-resume ticket",
            vec![(Peer::Wrk, close)],
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
    for work in &all {
        text += &compare(lab, work)?;
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
         {STREAMS} streams per connection; nginx and nghttpd, one process each, answer with \
         1,294 bytes. The bare loop in C sends cached header blocks and counts the ends of \
         streams: what no generator can do for less.\n\n"
    );
    for (host, name, goal) in [
        (Host::Nghttpd, "nghttpd, cleartext", "0.60"),
        (Host::NginxClear, "nginx, cleartext", "0.60"),
        (Host::NghttpdTls, "nghttpd, TLS 1.3", "0.75"),
        (Host::NginxTls, "nginx, TLS 1.3", "0.75"),
    ] {
        for connections in [1, 16] {
            text += &compare(lab, &streams(lab, host, name, goal, connections))?;
        }
    }
    Ok(text + &open(lab)?)
}

fn streams(lab: &Lab, host: Host, name: &str, goal: &str, connections: usize) -> Work {
    let (scheme, how) = match host {
        Host::NginxTls | Host::NghttpdTls => ("https", "--http2 --insecure"),
        _ => ("http", "--http2-prior-knowledge"),
    };
    let url = format!("{scheme}://127.0.0.1:{PORT}/");
    let users = connections * STREAMS;
    let h2load = format!("-t1 -c{connections} -m{STREAMS} -D{} {url}", whole(lab));
    let bare = format!("{PORT} {connections} {STREAMS} {}", lab.seconds(TURN_S));
    let bare = (scheme == "http").then_some((Peer::BareStreams, bare));
    let peers = bare.into_iter().chain([(Peer::H2loadStreams, h2load)]);
    Work {
        title: format!("{connections} × {STREAMS}, {name} (goal: CPU ≤ {goal} of h2load)"),
        host,
        lines: lines(
            lab,
            &format!("{url} {how} --vusers {users} -c {connections}"),
            peers,
        ),
        against: Peer::H2loadStreams,
        is_handshakes: false,
    }
}

/// Whole seconds, which is what peers take.
fn whole(lab: &Lab) -> f64 {
    lab.seconds(TURN_S).ceil()
}

/// knee's command lines and those of its peers.
fn lines(
    lab: &Lab,
    knee: &str,
    peers: impl IntoIterator<Item = (Peer, String)>,
) -> Vec<(Peer, String)> {
    let ms = lab.seconds(TURN_S) * 1e3;
    let of_knee = KNEE.map(|(peer, backend)| {
        let common = format!("-t 1 -d {ms}ms --warmup 0s --backend {backend} --json - --quiet");
        (peer, format!("run {knee} {common}"))
    });
    of_knee.into_iter().chain(peers).collect()
}

/// Lets them take turns.
fn compare(lab: &Lab, work: &Work) -> Result<String, String> {
    let heading = format!("### {}\n\n", work.title);
    let server = match start(lab, work.host)? {
        Ok(server) => server,
        Err(missing) => return Ok(format!("{heading}Not measured: without {missing}.\n\n")),
    };
    let peers: Vec<Peer> = work.lines.iter().map(|(peer, _)| *peer).collect();
    let contenders = round::alternate(lab, ROUNDS_FACTOR, &lab.present(&peers), |peer| {
        let line = work.lines.iter().find(|(of, _)| *of == peer);
        let line = line.map_or("", |(_, line)| line);
        lab.measure_line(peer, &split(line, server.port), lab.seconds(TURN_S))
    })?;
    server.stop()?;
    Ok(heading + &table(work, &contenders) + &below(lab, &work.lines))
}

/// Who is missing, and the command lines.
fn below(lab: &Lab, lines: &[(Peer, String)]) -> String {
    let missing = lines
        .iter()
        .filter(|(peer, _)| lab.program(*peer).is_none());
    let words =
        missing.map(|(peer, _)| format!("Left out, as it is missing: {}.\n\n", peer.name()));
    let shown = lines
        .iter()
        .map(|(peer, line)| format!("{} {line}", peer.program()));
    words.collect::<String>() + &command_lines(shown)
}

fn table(work: &Work, contenders: &[Contender<Measured>]) -> String {
    let name = work.against.name();
    let (against_rate, against_cpu) = (
        format!("rate against {name}"),
        format!("CPU against {name}"),
    );
    let mut header = vec![
        "generator",
        "requests/s",
        &against_rate,
        "CPU s per million",
        &against_cpu,
    ];
    header.extend(work.is_handshakes.then_some("% resumed"));
    let mut table = Table::new(&header);
    let rate = |m: &Measured| m.sample.requests / m.sample.seconds;
    let theirs = contenders.iter().find(|c| c.peer == work.against);
    for contender in contenders {
        let ratio = |of: &dyn Fn(&Measured) -> f64| {
            theirs.map_or("–".into(), |t| {
                spread(&ratios(&contender.each(of), &t.each(of)), 2)
            })
        };
        let mut cells = vec![
            contender.full_label(),
            spread(&contender.each(rate), 0),
            ratio(&rate),
            spread(&contender.each(Measured::cpu_s_per_million), 2),
            ratio(&Measured::cpu_s_per_million),
        ];
        if work.is_handshakes {
            cells.push(resumed(contender));
        }
        table.row(&cells);
    }
    table.finish()
}

/// The share of requests whose handshake resumed a session, where the contender tells it.
fn resumed(contender: &Contender<Measured>) -> String {
    let share = |m: &Measured| Some(m.sample.resumed? / m.sample.requests * 100.0);
    let shares: Option<Vec<f64>> = contender.rounds.iter().map(share).collect();
    shares.map_or("–".into(), |shares| spread(&shares, 0))
}

/// The schedule over one connection, as `knee serve http` saw it.
fn open(lab: &Lab) -> Result<String, String> {
    let url = format!("http://127.0.0.1:{PORT}/");
    let lines = lines(
        lab,
        &format!("{url} --http2-prior-knowledge --rate {RATE_PER_S} --arrival constant -c 1"),
        [(
            Peer::H2loadStreams,
            format!(
                "-t1 -c1 -m{STREAMS} --rps {RATE_PER_S} -D{} {url}",
                whole(lab)
            ),
        )],
    );
    let peers: Vec<Peer> = lines.iter().map(|(peer, _)| *peer).collect();
    let file = lab.scratch("arrivals");
    let serve = format!(
        "serve http --listen 127.0.0.1:0 --arrivals {}",
        file.display()
    );
    let contenders = round::alternate(lab, ROUNDS_FACTOR, &lab.present(&peers), |peer| {
        let server = lab.serve(&lab.knee, &split(&serve, 0))?;
        let line = lines.iter().find(|(of, _)| *of == peer);
        let line = split(line.map_or("", |(_, line)| line), server.port);
        let measured = lab.measure_line(peer, &line, lab.seconds(TURN_S))?;
        server.stop()?;
        let kept = schedule::compare(&read_arrivals(&file)?, RATE_PER_S)?;
        Ok((measured, kept))
    })?;
    let mut table = Table::new(&[
        "generator",
        "achieved/s",
        "deviation p50 µs",
        "p99 µs",
        "CV of gaps",
        "% of a core",
    ]);
    for contender in &contenders {
        table.row(&[
            contender.label(),
            spread(&contender.each(|(_, kept)| kept.rate_per_s), 1),
            spread(&contender.each(|(_, kept)| kept.deviation_p50_us), 1),
            spread(&contender.each(|(_, kept)| kept.deviation_p99_us), 1),
            spread(&contender.each(|(_, kept)| kept.gap_cv), 3),
            spread(&contender.each(|(m, _)| m.core_percent()), 1),
        ]);
    }
    Ok(format!(
        "### Open loop, {RATE_PER_S}/s over one connection (goal: deviation p50 ≤ 3 µs)\n\n\
         `knee serve http --arrivals` stamps each request; deviations as in the open loop.\n\n{}{}",
        table.finish(),
        below(lab, &lines)
    ))
}

/// Nanoseconds, one per line.
fn read_arrivals(file: &Path) -> Result<Vec<i64>, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let number = |line: &str| line.parse().map_err(|_| format!("an arrival {line:?}"));
    text.lines().map(number).collect()
}

/// Starts a server on its core; within, what it is that is not installed.
fn start(lab: &Lab, host: Host) -> Result<Result<Server, &'static str>, String> {
    let needed: &[&'static str] = match host {
        Host::NginxTls | Host::NginxNoTickets => &["nginx", "openssl"],
        Host::NginxClear => &["nginx"],
        Host::Nghttpd => &["nghttpd"],
        Host::NghttpdTls => &["nghttpd", "openssl"],
    };
    let mut missing = needed.iter().filter(|name| tools::find(name).is_none());
    if let Some(missing) = missing.next() {
        return Ok(Err(missing));
    }
    let site = lab.scratch("site");
    make(&site)?;
    write(&site.join("index.html"), "x".repeat(BODY_BYTES))?;
    if matches!(
        host,
        Host::NginxTls | Host::NginxNoTickets | Host::NghttpdTls
    ) {
        certify(&site)?;
    }
    let port = process::free_port()?;
    let folder = site.display();
    let arguments = match host {
        Host::Nghttpd => format!("--no-tls -a 127.0.0.1 -d {folder} {port}"),
        Host::NghttpdTls => {
            format!("-a 127.0.0.1 -d {folder} {port} {folder}/key.pem {folder}/cert.pem")
        }
        _ => {
            write(&site.join("nginx.conf"), nginx(&site, host, port))?;
            format!("-p {folder} -e error.log -c {folder}/nginx.conf")
        }
    };
    let program: PathBuf = tools::find(needed[0]).ok_or("a server has gone")?;
    let command = process::pinned(lab.server_core, &program, &split(&arguments, port));
    Server::start_on(port, command).map(Ok)
}

fn nginx(site: &Path, host: Host, port: u16) -> String {
    let folder = site.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {folder}/{name};\n"))
        .concat();
    let tickets = match host {
        Host::NginxNoTickets => "off",
        _ => "on",
    };
    let (listen, tls) = match host {
        Host::NginxTls | Host::NginxNoTickets => (
            "ssl http2",
            format!(
                "ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;\n\
                 ssl_session_tickets {tickets}; ssl_protocols TLSv1.3;\n\
                 ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;\n"
            ),
        ),
        _ => ("http2", String::new()),
    };
    format!(
        "daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n{temporary}access_log off; open_file_cache max=10;\n\
         keepalive_requests 1000000000; keepalive_timeout 60s;\n\
         server {{ listen 127.0.0.1:{port} {listen}; root {folder};\n{tls}}}\n}}\n"
    )
}

/// A certificate for this host that signs itself, and its key.
fn certify(site: &Path) -> Result<(), String> {
    let line = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 \
                -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 \
                -keyout key.pem -out cert.pem";
    let mut openssl = Command::new("openssl");
    openssl.args(line.split_whitespace()).current_dir(site);
    let output = openssl.output().map_err(|e| format!("openssl: {e}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// The words of a command line; what stands between single quotes is one of them.
fn split(arguments: &str, port: u16) -> Vec<String> {
    let arguments = arguments.replace(PORT, &port.to_string());
    let parts = arguments.split('\'').enumerate();
    let words = parts.flat_map(|(index, part)| match index % 2 {
        0 => part.split_whitespace().map(String::from).collect(),
        _ => vec![part.to_string()],
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_split_as_a_shell_does() {
        let words = split("-d1s -H 'Connection: close' http://127.0.0.1:PORT/", 81);
        assert_eq!(
            words,
            ["-d1s", "-H", "Connection: close", "http://127.0.0.1:81/"]
        );
    }

    #[test]
    fn nginx_is_told_what_to_speak() {
        let site = Path::new("/site");
        let tls = nginx(site, Host::NginxTls, 81);
        assert!(tls.contains("listen 127.0.0.1:81 ssl http2;") && tls.contains("TLSv1.3"));
        assert!(tls.contains("ssl_session_tickets on;"));
        let full = nginx(site, Host::NginxNoTickets, 81);
        assert!(full.contains("ssl_session_tickets off;"));
        let clear = nginx(site, Host::NginxClear, 81);
        assert!(clear.contains("listen 127.0.0.1:81 http2;") && !clear.contains("ssl"));
    }
}
