//! Other people's HTTP servers, each in a process of its own with a configuration made for it.
//!
//! All of them listen on a free port of 127.0.0.1, need no rights, and keep what they write in one
//! temporary directory. They end with the test: each runs as a single process, which is killed.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Bytes of the files `small` and `large`. Their decimal and hexadecimal lengths have as many
/// digits, so that the heads of the responses are equally long.
pub const SMALL: u64 = 100_000;
/// See [`SMALL`].
pub const LARGE: u64 = 150_000;

/// A directory with the files to serve, for a server's configuration and its logs; gone when
/// dropped.
pub struct Site {
    directory: PathBuf,
}

impl Site {
    /// Makes it.
    pub fn new() -> Site {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("knee-site-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(directory.join("www")).unwrap();
        for (name, size) in [("small", SMALL), ("large", LARGE)] {
            let body: Vec<u8> = (0..size).map(|i| b'a' + (i % 26) as u8).collect();
            std::fs::write(directory.join("www").join(name), body).unwrap();
        }
        Site { directory }
    }

    /// Writes a file next to them; its path.
    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.directory.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_string()
    }

    /// Where it is; the files are in `www`.
    pub fn directory(&self) -> &str {
        self.directory.to_str().unwrap()
    }

    /// What is in one of its files; nothing where there is none.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.directory.join(name)).unwrap_or_default()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // What cannot be removed stays in the directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// A running server.
pub struct HttpServer {
    child: Child,
    /// Where it listens.
    pub port: u16,
    /// What it serves and writes. Dropped after the child was killed.
    pub site: Site,
}

impl HttpServer {
    /// The URL of a path on it.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    /// The same over TLS.
    pub fn secure_url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}/{path}", self.port)
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        // It may have ended by itself, which the test has noticed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a program with the arguments that this makes for a site and a port. `None`, and a line
/// that says so, where it is not installed. That is a failure where `CI` is set.
pub fn launch(name: &str, arguments: impl Fn(&Site, u16) -> Vec<String>) -> Option<HttpServer> {
    Some(launch_file(&super::program(name)?, arguments))
}

/// As [`launch`], with a program that is there.
pub fn launch_file(program: &Path, arguments: impl Fn(&Site, u16) -> Vec<String>) -> HttpServer {
    // Another process may take the free port before the server does.
    let mut attempts = (0..3).map(|_| try_launch(program, &arguments));
    attempts.find_map(Result::ok).unwrap_or_else(|| {
        let last = try_launch(program, &arguments);
        last.unwrap_or_else(|why| panic!("{} does not start: {why}", program.display()))
    })
}

fn try_launch(
    program: &Path,
    arguments: impl Fn(&Site, u16) -> Vec<String>,
) -> Result<HttpServer, String> {
    let site = Site::new();
    let port = free_port();
    let output = std::fs::File::create(site.directory.join("output")).unwrap();
    let mut command = Command::new(program);
    command.args(arguments(&site, port)).stdin(Stdio::null());
    // Some keep state in the user's folders: let those be the site's.
    command.env("HOME", site.directory());
    command.env_remove("XDG_CONFIG_HOME").env_remove("XDG_DATA_HOME");
    command.stdout(output.try_clone().unwrap()).stderr(output);
    let child = command.spawn().map_err(|e| e.to_string())?;
    let mut server = HttpServer { child, port, site };
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) {
        if let Some(status) = server.child.try_wait().unwrap() {
            return Err(format!("{status}: {}", server.site.read("output")));
        }
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(server);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = server.site.read("output");
    Err(format!("it does not listen after 20 s: {output}"))
}

/// The kinds of server.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// nginx; with this number of requests per connection.
    Nginx(u32),
    /// Apache httpd, event MPM.
    Apache,
    /// lighttpd.
    Lighttpd,
    /// HAProxy in front of a server on this port.
    Haproxy(u16),
    /// Python's `http.server`, speaking this version: `HTTP/1.0` ends bodies by closing.
    Python(&'static str),
    /// Node; `/chunked` is sent in pieces.
    Node,
}

impl Kind {
    /// Starts it; `None`, and a line that says so, where it is not installed. That is a failure
    /// where `CI` is set.
    pub fn start(self) -> Option<HttpServer> {
        launch(self.program(), |site, port| self.arguments(site, port))
    }

    fn program(self) -> &'static str {
        match self {
            Kind::Nginx(_) => "nginx",
            Kind::Apache => "apache2",
            Kind::Lighttpd => "lighttpd",
            Kind::Haproxy(_) => "haproxy",
            Kind::Python(_) => "python3",
            Kind::Node => "node",
        }
    }

    fn arguments(self, site: &Site, port: u16) -> Vec<String> {
        let directory = site.directory();
        let words: Vec<&str>;
        let file;
        match self {
            Kind::Nginx(requests) => {
                file = site.write("nginx.conf", &nginx(directory, port, requests));
                words = vec!["-p", directory, "-e", "error.log", "-c", &file];
            }
            Kind::Apache => {
                file = site.write("apache.conf", &apache(directory, port));
                words = vec!["-X", "-f", &file];
            }
            Kind::Lighttpd => {
                file = site.write("lighttpd.conf", &lighttpd(directory, port));
                words = vec!["-D", "-f", &file];
            }
            Kind::Haproxy(behind) => {
                file = site.write("haproxy.conf", &haproxy(port, behind));
                words = vec!["-db", "-f", &file];
            }
            Kind::Python(version) => {
                let line = format!(
                    "-m http.server {port} --bind 127.0.0.1 --directory {directory}/www \
                     --protocol {version}"
                );
                return line.split(' ').map(String::from).collect();
            }
            Kind::Node => {
                file = site.write("server.js", &node(directory, port));
                words = vec![&file];
            }
        }
        words.into_iter().map(String::from).collect()
    }
}

/// One process, nothing outside the directory.
fn nginx(directory: &str, port: u16, requests: u32) -> String {
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {directory}/{name};"))
        .join("\n");
    format!(
        "daemon off; master_process off; pid {directory}/pid;\n\
         events {{ worker_connections 256; }}\n\
         http {{ access_log off; keepalive_requests {requests};\n{temporary}\n\
         server {{ listen 127.0.0.1:{port}; root {directory}/www; }} }}\n"
    )
}

/// Without ETag: of a file younger than a second it is a weak one, two bytes longer.
fn apache(directory: &str, port: u16) -> String {
    let modules = "/usr/lib/apache2/modules";
    let module = |name: &str| format!("LoadModule {name}_module {modules}/mod_{name}.so\n");
    format!(
        "{}{}ServerName localhost\nServerRoot {directory}\nDefaultRuntimeDir {directory}\n\
         PidFile {directory}/pid\nErrorLog {directory}/error.log\nListen 127.0.0.1:{port}\n\
         User #65534\nGroup #65534\nKeepAlive On\nMaxKeepAliveRequests 0\n\
         FileETag None\n\
         DocumentRoot {directory}/www\n<Directory />\nRequire all granted\n</Directory>\n",
        module("mpm_event"),
        module("authz_core")
    )
}

fn lighttpd(directory: &str, port: u16) -> String {
    format!(
        "server.document-root = \"{directory}/www\"\nserver.bind = \"127.0.0.1\"\n\
         server.port = {port}\nserver.errorlog = \"{directory}/error.log\"\n\
         static-file.etags = \"disable\"\nmimetype.assign = ( \"\" => \"text/plain\" )\n"
    )
}

fn haproxy(port: u16, behind: u16) -> String {
    format!(
        "global\n  maxconn 200\n  nbthread 1\n\
         defaults\n  mode http\n  timeout connect 5s\n  timeout client 30s\n  timeout server 30s\n\
         frontend in\n  bind 127.0.0.1:{port}\n  default_backend out\n\
         backend out\n  server behind 127.0.0.1:{behind}\n"
    )
}

/// Serves the files whole, and `/chunked` in ten writes without a length.
fn node(directory: &str, port: u16) -> String {
    format!(
        "const http = require('http'), fs = require('fs');\n\
         http.createServer((request, response) => {{\n\
           if (request.url === '/chunked') {{\n\
             for (let i = 0; i < 10; i++) response.write('x'.repeat({SMALL} / 10));\n\
             return response.end();\n\
           }}\n\
           fs.readFile('{directory}/www' + request.url, (error, body) => {{\n\
             const length = error ? 0 : body.length;\n\
             response.writeHead(error ? 404 : 200, {{'Content-Length': length}});\n\
             response.end(error || request.method === 'HEAD' ? undefined : body);\n\
           }});\n\
         }}).listen({port}, '127.0.0.1');\n"
    )
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}
