//! Other people's servers that speak TLS and HTTP/2.

use super::Certificates;
use super::http_servers::{HttpServer, Site, launch, launch_file};
use std::path::PathBuf;
use std::process::Command;

/// The kinds of server. Each serves the files of its site.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Http2Kind {
    /// nghttp2's own.
    Nghttpd,
    /// Apache httpd with mod_http2.
    Apache,
    /// HAProxy in front of a server on this port.
    Haproxy(u16),
    /// HAProxy that wants a certificate of the client and answers by itself.
    HaproxyAsking,
    /// Caddy.
    Caddy,
    /// Node's http2.
    Node,
    /// Python's hypercorn.
    Hypercorn,
}

impl Http2Kind {
    /// Starts it over TLS with these certificates, or without in cleartext; `None`, and a line
    /// that says so, where it is not installed. That is a failure where `CI` is set.
    pub fn start(self, tls: Option<&Certificates>) -> Option<HttpServer> {
        if self == Http2Kind::Hypercorn {
            // The program itself is Python's.
            super::program("hypercorn")?;
        }
        launch(self.program(), |site, port| self.arguments(site, port, tls))
    }

    fn program(self) -> &'static str {
        match self {
            Http2Kind::Nghttpd => "nghttpd",
            Http2Kind::Apache => "apache2",
            Http2Kind::Haproxy(_) | Http2Kind::HaproxyAsking => "haproxy",
            Http2Kind::Caddy => "caddy",
            Http2Kind::Node => "node",
            Http2Kind::Hypercorn => "hypercorn",
        }
    }

    fn arguments(self, site: &Site, port: u16, tls: Option<&Certificates>) -> Vec<String> {
        let directory = site.directory();
        let files = tls.map(|c| [c.server.str(), c.server_key.str()]);
        let line = match self {
            Http2Kind::Nghttpd => {
                let common = format!("-a 127.0.0.1 -d {directory}/www");
                match files {
                    Some([certificate, key]) => format!("{common} {port} {key} {certificate}"),
                    None => format!("{common} --no-tls {port}"),
                }
            }
            Http2Kind::Apache => {
                format!("-X -f {}", site.write("apache.conf", &apache(directory, port, files)))
            }
            Http2Kind::Haproxy(behind) => {
                let pair = tls.map(|c| c.server_pair.str());
                format!("-db -f {}", site.write("haproxy.conf", &haproxy(port, behind, pair)))
            }
            Http2Kind::HaproxyAsking => {
                let authority = tls.map_or("", |c| c.authority.str());
                let pair = tls.map_or("", |c| c.server_pair.str());
                let text = format!(
                    "{HAPROXY}frontend in\n  bind 127.0.0.1:{port} ssl crt {pair} \
                     alpn h2,http/1.1 ca-file {authority} verify required\n  \
                     http-request return status 200\n"
                );
                format!("-db -f {}", site.write("haproxy.conf", &text))
            }
            Http2Kind::Caddy => {
                let file = site.write("Caddyfile", &caddy(directory, port, files));
                format!("run --adapter caddyfile --config {file}")
            }
            Http2Kind::Node => site.write("server.js", &node(directory, port, files)),
            Http2Kind::Hypercorn => {
                let app = site.write("app.py", &asgi(directory));
                let secured = files.map_or(String::new(), |[certificate, key]| {
                    format!("--certfile {certificate} --keyfile {key} ")
                });
                format!("{secured}--bind 127.0.0.1:{port} {app}:app")
            }
        };
        line.split(' ').map(String::from).collect()
    }
}

/// A server of Go's net/http over TLS; `None`, and a line that says so, where Go is not installed.
/// That is a failure where `CI` is set.
pub fn go(certificates: &Certificates) -> Option<HttpServer> {
    let compiler = super::program("go")?;
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("go");
    std::fs::create_dir_all(&folder).unwrap();
    let (source, program) = (folder.join("server.go"), folder.join("server"));
    std::fs::write(&source, GO).unwrap();
    let built = Command::new(compiler)
        .args(["build", "-o"])
        .args([&program, &source])
        .env("GOCACHE", folder.join("cache"))
        .env("GOFLAGS", "")
        .output()
        .unwrap();
    assert!(built.status.success(), "{built:?}");
    Some(launch_file(&program, |site, port| {
        let [certificate, key] = [&certificates.server, &certificates.server_key];
        let port = port.to_string();
        [site.directory(), &port, certificate.str(), key.str()].map(String::from).to_vec()
    }))
}

/// Serves a folder over TLS: its folder, port, certificate and key are the arguments.
const GO: &str = r#"package main

import (
	"log"
	"net/http"
	"os"
	"strconv"
)

func main() {
	serve := func(to http.ResponseWriter, asked *http.Request) {
		body, err := os.ReadFile(os.Args[1] + "/www" + asked.URL.Path)
		if err != nil {
			http.NotFound(to, asked)
			return
		}
		to.Header().Set("Content-Length", strconv.Itoa(len(body)))
		to.Write(body)
	}
	at := "127.0.0.1:" + os.Args[2]
	log.Fatal(http.ListenAndServeTLS(at, os.Args[3], os.Args[4], http.HandlerFunc(serve)))
}
"#;

/// What an nginx over TLS is to be like.
#[derive(Clone, Copy)]
pub struct Nginx {
    /// `TLSv1.2 TLSv1.3`
    pub versions: &'static str,
    /// Requests per connection.
    pub requests: u32,
    /// What else is in the section `server`.
    pub more: &'static str,
    /// Whether it speaks HTTP/2.
    pub http2: bool,
}

impl Nginx {
    /// Both versions of TLS, HTTP/2 and no end of requests.
    pub const PLAIN: Nginx =
        Nginx { versions: "TLSv1.2 TLSv1.3", requests: 100_000, more: "", http2: true };

    /// Starts it. Its log `access` has a line for each request: version of HTTP, status, bytes sent
    /// and bytes of the body. `r` follows if the session was resumed, `1` if the request came
    /// before the handshake was over.
    pub fn start(self, certificates: &Certificates) -> Option<HttpServer> {
        launch("nginx", |site, port| {
            let text = self.config(site.directory(), port, certificates);
            let file = site.write("nginx.conf", &text);
            ["-p", site.directory(), "-e", "error.log", "-c", &file].map(String::from).to_vec()
        })
    }

    /// One process, nothing outside the directory.
    fn config(self, directory: &str, port: u16, certificates: &Certificates) -> String {
        let Nginx { versions, requests, more, .. } = self;
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {directory}/{name};"))
            .join("\n");
        let http2 = if self.http2 { " http2" } else { "" };
        let (certificate, key) = (certificates.server.str(), certificates.server_key.str());
        let authority = certificates.authority.str();
        format!(
            "daemon off; master_process off; pid {directory}/pid;\n\
             events {{ worker_connections 256; }}\n\
             http {{ keepalive_requests {requests};\n{temporary}\n\
             log_format told '$server_protocol $status $bytes_sent $body_bytes_sent \
             $ssl_session_reused $ssl_early_data';\n\
             server {{ listen 127.0.0.1:{port} ssl{http2}; root {directory}/www;\n\
             access_log {directory}/access told;\n\
             ssl_protocols {versions}; ssl_certificate {certificate};\n\
             ssl_certificate_key {key}; ssl_client_certificate {authority};\n{more} }} }}\n"
        )
    }
}

/// Without ETag: of a file younger than a second it is a weak one, two bytes longer.
fn apache(directory: &str, port: u16, files: Option<[&str; 2]>) -> String {
    let modules = "/usr/lib/apache2/modules";
    let module = |name: &str| format!("LoadModule {name}_module {modules}/mod_{name}.so\n");
    let protocols = match files {
        Some([certificate, key]) => format!(
            "{}SSLEngine on\nSSLCertificateFile {certificate}\nSSLCertificateKeyFile {key}\n\
             Protocols h2 http/1.1\n",
            module("ssl")
        ),
        None => "Protocols h2c http/1.1\n".to_string(),
    };
    format!(
        "{}{}{}ServerName localhost\nServerRoot {directory}\nDefaultRuntimeDir {directory}\n\
         PidFile {directory}/pid\nErrorLog {directory}/error.log\nListen 127.0.0.1:{port}\n\
         User #65534\nGroup #65534\nKeepAlive On\nMaxKeepAliveRequests 0\n\
         FileETag None\n{protocols}\
         DocumentRoot {directory}/www\n<Directory />\nRequire all granted\n</Directory>\n",
        module("mpm_event"),
        module("authz_core"),
        module("http2")
    )
}

const HAPROXY: &str = "global\n  maxconn 200\n  nbthread 1\ndefaults\n  mode http\n  \
    timeout connect 5s\n  timeout client 30s\n  timeout server 30s\n";

fn haproxy(port: u16, behind: u16, pair: Option<&str>) -> String {
    let how =
        pair.map_or("proto h2".to_string(), |pair| format!("ssl crt {pair} alpn h2,http/1.1"));
    format!(
        "{HAPROXY}frontend in\n  bind 127.0.0.1:{port} {how}\n  default_backend out\n\
         backend out\n  server behind 127.0.0.1:{behind}\n"
    )
}

/// Nothing outside the directory, no certificates of its own.
fn caddy(directory: &str, port: u16, files: Option<[&str; 2]>) -> String {
    let versions = if files.is_some() { "h1 h2 h3" } else { "h1 h2 h2c" };
    let global =
        format!("{{\nadmin off\nauto_https off\nservers {{\nprotocols {versions}\n}}\n}}\n");
    let (scheme, tls) = match files {
        Some([certificate, key]) => ("https", format!("tls {certificate} {key}\n")),
        None => ("http", String::new()),
    };
    format!(
        "{global}{scheme}://:{port} {{\nbind 127.0.0.1\n{tls}root * {directory}/www\n\
         file_server\n}}\n"
    )
}

fn node(directory: &str, port: u16, files: Option<[&str; 2]>) -> String {
    let create = match files {
        Some([certificate, key]) => format!(
            "createSecureServer({{cert: fs.readFileSync('{certificate}'), \
             key: fs.readFileSync('{key}'), allowHTTP1: true}}, "
        ),
        None => "createServer(".to_string(),
    };
    format!(
        "const http2 = require('http2'), fs = require('fs');\n\
         http2.{create}(request, response) => {{\n\
           fs.readFile('{directory}/www' + request.url, (error, body) => {{\n\
             const length = error ? 0 : body.length;\n\
             response.writeHead(error ? 404 : 200, {{'content-length': length}});\n\
             response.end(error ? undefined : body);\n\
           }});\n\
         }}).listen({port}, '127.0.0.1');\n"
    )
}

fn asgi(directory: &str) -> String {
    format!(
        "async def app(scope, receive, send):\n\
         \x20   if scope['type'] != 'http':\n\
         \x20       return\n\
         \x20   body = open('{directory}/www' + scope['path'], 'rb').read()\n\
         \x20   length = (b'content-length', str(len(body)).encode())\n\
         \x20   start = {{'type': 'http.response.start', 'status': 200, 'headers': [length]}}\n\
         \x20   await send(start)\n\
         \x20   await send({{'type': 'http.response.body', 'body': body}})\n"
    )
}
