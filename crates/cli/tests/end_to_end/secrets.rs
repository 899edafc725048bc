//! No secret is in anything that is shown or written, unless that is asked for.

use crate::support::{Ended, TempPath, knee};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A server that repeats what it was asked, and keeps it.
struct Echo {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Echo {
    fn start() -> Echo {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || serve(stream, &kept));
            }
        });
        Echo { port, requests }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// What was sent since the last call, each request once.
    fn take(&self) -> Vec<String> {
        let mut requests = std::mem::take(&mut *self.requests.lock().unwrap());
        requests.sort();
        requests.dedup();
        requests
    }
}

fn serve(mut stream: TcpStream, kept: &Mutex<Vec<String>>) {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                let is_it = name.eq_ignore_ascii_case("content-length");
                is_it.then(|| value.trim().parse::<usize>().unwrap())
            });
            let length = length.unwrap_or(0);
            if body.len() >= length {
                bytes.drain(..head.len() + 4 + length);
                let asked = format!("{head}\n{}", &body[..length]);
                // A report shows the beginning of an unexpected response.
                let secret = head.lines().find(|line| line.contains("CANARY"));
                let echo = format!("no {}", secret.unwrap_or_default());
                kept.lock().unwrap().push(asked);
                let status = "HTTP/1.1 200 OK\r\nSet-Cookie: sid=CANARY-set-cookie";
                let length = echo.len();
                let answer = format!("{status}\r\nContent-Length: {length}\r\n\r\n{echo}");
                if stream.write_all(answer.as_bytes()).is_err() {
                    return;
                }
                continue;
            }
        }
        match stream.read(&mut buffer) {
            Ok(read @ 1..) => bytes.extend_from_slice(&buffer[..read]),
            _ => return,
        }
    }
}

/// A folder for the files of one command.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = TempPath::new(&format!("secrets-{name}")).0.clone();
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.0.join(name), text).unwrap();
        self.path(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Every form of report.
const FORMS: [&str; 6] = ["json", "html", "md", "csv", "junit", "hdr"];

/// Runs the command with every form of report and a history of its own.
fn run_in(folder: &Folder, arguments: &[&str]) -> Ended {
    let files: Vec<String> = FORMS.iter().map(|form| folder.path(&format!("out.{form}"))).collect();
    let mut all = arguments.to_vec();
    let options: Vec<String> = FORMS.iter().map(|form| format!("--{form}")).collect();
    for (option, file) in options.iter().zip(&files) {
        all.extend([option.as_str(), file.as_str()]);
    }
    in_history(folder, &all)
}

fn in_history(folder: &Folder, arguments: &[&str]) -> Ended {
    let mut command = knee(arguments);
    command.env("KNEE_HISTORY", folder.path("history.db"));
    Ended::of(command.spawn().unwrap())
}

/// All bytes that a command left: what it said, and its files.
fn all_bytes(folder: &Folder, ended: &Ended) -> Vec<(String, String)> {
    let mut all = vec![
        ("standard output".to_owned(), ended.stdout.clone()),
        ("standard error".to_owned(), ended.stderr.clone()),
    ];
    for entry in std::fs::read_dir(&folder.0).unwrap().flatten() {
        let name = entry.file_name().to_str().unwrap().to_owned();
        if name.starts_with("out.") || name.starts_with("history.") {
            let bytes = std::fs::read(entry.path()).unwrap();
            all.push((name, String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    // What is stored is compressed: it is shown as it is.
    for show in [
        &["history", "--show-secrets"][..],
        &["history", "show", "last", "--json", "-", "--show-secrets"],
        &["history", "show", "last"],
        &["history", "--json", "-"],
    ] {
        let shown = in_history(folder, show);
        assert_eq!(shown.status, Some(0), "{shown:?}");
        all.push((show.join(" "), shown.stdout + &shown.stderr));
    }
    all
}

fn assert_hidden(folder: &Folder, ended: &Ended) {
    for (place, text) in all_bytes(folder, ended) {
        if let Some(at) = text.find("CANARY") {
            let around = &text.as_bytes()[at.saturating_sub(200)..text.len().min(at + 100)];
            panic!("{place}: {}", String::from_utf8_lossy(around));
        }
    }
}

/// Where [`PLANTED`] and the URL have canaries.
const PLACES: [&str; 6] = ["authorization", "key", "cookie", "referer", "tenant", "query"];

/// What plants a secret in each place of one request.
const PLANTED: [&str; 13] = [
    "--full",
    "-H",
    "Authorization: Bearer CANARY-authorization",
    "-H",
    "X-Api-Key: CANARY-key",
    "--cookie",
    "theme=dark; sid=CANARY-cookie",
    "--referer",
    "http://me:CANARY-referer@other/",
    "-H",
    "X-Tenant: CANARY-tenant",
    "--secret",
    "x-tenant",
];

#[test]
fn no_report_of_any_command_has_a_secret() {
    let echo = Echo::start();
    let url = echo.url("/a?page=2&token=CANARY-query");
    let json = r#"{"user": "ada", "password": "CANARY-json", "list": [1]}"#;
    for (name, load) in [
        ("run", &["-n", "8", "-c", "2", "--body", json, "--expect-body", "never"][..]),
        ("run", &["-n", "4", "--data", "user=ada&pwd=CANARY-form", "--fail-if", "errors<0%"]),
        ("sweep", &["--vusers", "1,2", "-d", "100ms", "--warmup", "0", "--body", json]),
        ("overload", &["--descriptors", "2", "-d", "100ms", "--warmup", "0", "--body", json]),
    ] {
        let folder = Folder::new("all");
        let all = [&[name, &url][..], load, &PLANTED].concat();
        let ended = run_in(&folder, &all);
        assert!(matches!(ended.status, Some(0 | 1 | 3)), "{ended:?}");
        assert_hidden(&folder, &ended);
        assert!(ended.stdout.contains("page=2"), "{ended:?}");
        let sent = echo.take().join("\n");
        for secret in PLACES {
            assert!(sent.contains(&format!("CANARY-{secret}")), "{name} {secret}: {sent}");
        }
        // Written in the clear, and hidden again where it is shown again.
        let ended = run_in(&folder, &[&all[..], &["--show-secrets"]].concat());
        let report = std::fs::read_to_string(folder.path("out.json")).unwrap();
        for secret in PLACES {
            let secret = format!("CANARY-{secret}");
            assert!(ended.stdout.contains(&secret) && report.contains(&secret), "{secret}");
        }
        let again =
            in_history(&folder, &["report", &folder.path("out.json"), "--secret", "x-tenant"]);
        assert_eq!(again.status, Some(0), "{again:?}");
        assert!(!again.stdout.contains("CANARY"), "{}", again.stdout);
        let both = [folder.path("out.json"), folder.path("out.json")];
        let compared = in_history(&folder, &["compare", &both[0], &both[1], "--json", "-"]);
        assert_eq!(compared.status, Some(0), "{compared:?}");
        assert!(!compared.stdout.contains("CANARY"), "{}", compared.stdout);
    }
}

#[test]
fn a_password_of_basic_authentication_is_hidden_as_sent() {
    let echo = Echo::start();
    let folder = Folder::new("user");
    let url = echo.url("/");
    let load = ["-n", "4", "-u", "ada:CANARY-user", "--expect-body", "never"];
    let ended = run_in(&folder, &[&["run", &url][..], &load].concat());
    assert_hidden(&folder, &ended);
    // base64 of 'ada:CANARY-user'
    let encoded = "YWRhOkNBTkFSWS11c2Vy";
    assert!(echo.take().join("\n").contains(encoded));
    for (place, text) in all_bytes(&folder, &ended) {
        assert!(!text.contains(encoded), "{place}");
    }
}

const SCENARIO: &str = r#"
target: http://127.0.0.1:PORT
data:
  users: {file: users.csv, order: in-order}
sessions:
  one:
    data: users
    steps:
      - post: /login?api_key=CANARY-step
        headers: {Authorization: "Bearer ${env(CANARY_VARIABLE)}"}
        json: {name: "${users.name}", password: "${users.password}"}
        extract:
          sign: {between: ["no ", ":"], default: CANARY-default}
        expect: {header: {Set-Cookie: other}}
        on_failure: continue
      - get: /echo
        headers: {X-Sign: "CANARY-sign ${users.card}"}
        expect: {body: {contains: "CANARY-sign ${users.card} "}}
        on_failure: continue
"#;

#[test]
fn no_report_of_a_scenario_has_a_secret() {
    let echo = Echo::start();
    let folder = Folder::new("scenario");
    let text = SCENARIO.replace("PORT", &echo.port.to_string());
    let file = folder.write("s.yaml", &text);
    folder.write("users.csv", "name,password,card\nada,CANARY-row,CANARY-card\n");
    let variable = |command: &mut std::process::Command| {
        command.env("CANARY_VARIABLE", "CANARY-env");
        command.env("KNEE_HISTORY", folder.path("history.db"));
        Ended::of(command.spawn().unwrap())
    };
    let check = variable(&mut knee(&["scenario", "check", &file]));
    assert_eq!(check.status, Some(0), "{check:?}");
    let files: Vec<String> = FORMS.iter().map(|form| folder.path(&format!("out.{form}"))).collect();
    let mut all = vec!["run", &file, "-n", "8", "--full", "--secret", "card", "--secret", "x-sign"];
    let options: Vec<String> = FORMS.iter().map(|form| format!("--{form}")).collect();
    for (option, file) in options.iter().zip(&files) {
        all.extend([option.as_str(), file.as_str()]);
    }
    let ended = variable(&mut knee(&all));
    assert!(matches!(ended.status, Some(0 | 1 | 3)), "{ended:?}");
    assert!(ended.stdout.contains("Set-Cookie") || ended.stdout.contains("set-cookie"));
    assert_hidden(&folder, &ended);
    let sent = echo.take().join("\n");
    for secret in ["step", "env", "row", "sign", "card"] {
        assert!(sent.contains(&format!("CANARY-{secret}")), "{secret}: {sent}");
    }
    all.push("--show-secrets");
    let shown = variable(&mut knee(&all));
    assert!(shown.stdout.contains("CANARY-set-cookie"), "{shown:?}");
}

#[test]
fn targets_that_differ_in_a_secret_stay_apart() {
    let echo = Echo::start();
    let folder = Folder::new("targets");
    let line = |token: &str| format!("GET {}\n", echo.url(&format!("/a?token={token}&b=1")));
    let text = line("CANARY-one") + &line("CANARY-two");
    let file = folder.write("targets.txt", &text);
    let ended = run_in(&folder, &["run", "--targets", &file, "-n", "8"]);
    assert_hidden(&folder, &ended);
    let report = std::fs::read_to_string(folder.path("out.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let targets = report["trials"][0]["targets"].as_array().unwrap();
    let names: Vec<&str> = targets.iter().map(|t| t["target"].as_str().unwrap()).collect();
    assert_eq!(names, ["GET /a?token=***&b=1", "GET /a?token=***&b=1 (2)"]);
    assert!(targets.iter().all(|t| t["attempted"] == 4), "{targets:?}");
}

#[test]
fn the_repeat_line_repeats_the_load() {
    let echo = Echo::start();
    let folder = Folder::new("repeat");
    let url = echo.url("/a?token=CANARY-query&b=1");
    let body = r#"{"a": "it's", "password": "CANARY-\"json"}"#;
    let load = ["-n", "4", "-u", "ada:CANARY $user", "--cookie", "sid=CANARY-cookie", "-b", body];
    let ended = run_in(&folder, &[&["run", &url][..], &load].concat());
    assert_hidden(&folder, &ended);
    let sent = echo.take();
    let page = std::fs::read_to_string(folder.path("out.md")).unwrap();
    let line = page.lines().skip_while(|line| *line != "```sh").nth(1).expect("a command");
    let repeat = std::process::Command::new("/bin/sh")
        .args(["-c", line.trim()])
        .env("PATH", Path::new(env!("CARGO_BIN_EXE_knee")).parent().unwrap())
        .env("KNEE_HISTORY", folder.path("history.db"))
        .env("KNEE_SECRET_TOKEN", "CANARY-query")
        .env("KNEE_SECRET_PASSWORD_2", "CANARY $user")
        .env("KNEE_SECRET_COOKIE", "sid=CANARY-cookie")
        .env("KNEE_SECRET_PASSWORD", r#"CANARY-\"json"#)
        .output()
        .unwrap();
    assert!(matches!(repeat.status.code(), Some(0 | 3)), "{line}: {repeat:?}");
    assert_eq!(echo.take(), sent, "{line}");
}

#[test]
fn what_is_refused_is_told_without_its_secrets() {
    let folder = Folder::new("refused");
    let targets = folder.write("targets.txt", "GET http://h/\nAuthorization Bearer CANARY\n");
    let scenario = folder.write("s.yaml", "target: 'http://me:CANARY-word@h'\nsessions: {}\n");
    for arguments in [
        &["run", "http://me:CANARY@127.0.0.1:1/"][..],
        &["run", "me:CANARY@127.0.0.1:1/"],
        &["run", "http://127.0.0.1:1/?token=CANARY\u{e9}"],
        &["run", "http://h/", "-H", "Authorization Bearer CANARY"],
        &["run", "http://h/", "-H", "Authorization:", "Bearer", "CANARY"],
        &["run", "http://h/", "-u", "CANARY-pass"],
        &["run", "http://h/", "--cookie", "CANARY-cookie"],
        &["run", "http://h/", "-x", "ftp://me:CANARY@h:1"],
        &["run", "http://h/", "-d", "10{\"password\":\"CANARY\"}"],
        &["run", "--targets", &targets],
        &["run", &scenario],
        &["scenario", "check", &scenario],
        &["import", "curl", "curl 'http://me:CANARY@h:99999/'"],
        &["import", "curl", "curl 'http://h/' --nonsense CANARY -u me:CANARY"],
    ] {
        let ended = in_history(&folder, arguments);
        assert_eq!(ended.status, Some(2), "{arguments:?}: {ended:?}");
        let told = ended.stdout.clone() + &ended.stderr;
        assert!(!told.contains("CANARY"), "{arguments:?}: {told}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    }
    let shown = in_history(&folder, &["run", "http://h/?token=CANARY\u{e9}", "--show-secrets"]);
    assert!(shown.stderr.contains("CANARY"), "{shown:?}");
}
