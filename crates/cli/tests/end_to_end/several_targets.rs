//! Sessions that go to several servers: a shop, and a login over TLS on another host.

use crate::support::http_servers::{HttpServer, launch};
use crate::support::{Certificates, measured, run};
use serde_json::json;

const SERVERS: &str = r#"
const fs = require('fs'), http = require('http'), https = require('https');
let login;
const see = (name, request) => fs.appendFileSync('SEEN', JSON.stringify([name, request.method,
  request.url, request.headers.cookie || '', request.headers.authorization || '',
  request.headers.host.split(':')[0]]) + '\n');
const shop = http.createServer((request, response) => {
  see('shop', request);
  request.resume();
  if (request.url === '/start') {
    return response.writeHead(302, {Location: `https://localhost:${login.address().port}/form?a`,
      'Set-Cookie': 'cart=1'}).end();
  }
  response.end('ok');
});
login = https.createServer({cert: fs.readFileSync('CERT'), key: fs.readFileSync('KEY')},
  (request, response) => {
    see('login', request);
    if (request.url === '/form?a') {
      response.writeHead(200, {'Set-Cookie': 'sid=2; Secure', 'Content-Type': 'text/html'});
      return response.end(`<form action="http://127.0.0.1:PORT/done?token=3">`);
    }
    if (request.url === '/back') {
      return response.writeHead(303, {Location: 'http://127.0.0.1:PORT/end'}).end();
    }
    response.end('ok');
  });
login.listen(0, '127.0.0.1', () => {
  fs.writeFileSync('LOGIN', String(login.address().port));
  shop.listen(PORT, '127.0.0.1');
});
"#;

const STEPS: &str = r#"
sessions:
  buyer:
    steps:
      - get: /start
        redirects: 2
        headers: {Authorization: shop alone}
        extract: {action: {css: form, attribute: action}}
      - {post: "${raw(action)}", body: x}
      - {get: "LOGIN/me"}
      - {get: "LOGIN/back", redirects: 1}
"#;

fn servers(certificates: &Certificates) -> Option<HttpServer> {
    launch("node", |site, port| {
        let files = [site.write("seen", ""), site.write("login", "")];
        let text = SERVERS.replace("PORT", &port.to_string()).replace("SEEN", &files[0]);
        let text = text.replace("LOGIN", &files[1]);
        let text = text.replace("CERT", certificates.server.str());
        let text = text.replace("KEY", certificates.server_key.str());
        vec![site.write("servers.js", &text)]
    })
}

/// The scenario, and the URL of the login.
fn scenario(servers: &HttpServer) -> (String, String) {
    let login = format!("https://localhost:{}", servers.site.read("login"));
    let shop = servers.url("");
    let targets = format!("target: [{}, '{login}']\n", shop.trim_end_matches('/'));
    let text = targets + &STEPS.replace("LOGIN", &login);
    (servers.site.write("several.yaml", &text), login)
}

#[test]
fn a_user_goes_from_server_to_server() {
    let certificates = Certificates::new();
    let Some(servers) = servers(&certificates) else { return };
    let (file, login) = scenario(&servers);
    let trust = certificates.authority.str();
    let report = measured(&["run", &file, "--vusers", "1", "-n", "2", "--cacert", trust]);
    let lines = servers.site.read("seen");
    let seen: Vec<[String; 6]> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let user = [
        ["shop", "GET", "/start", "", "shop alone", "127.0.0.1"],
        ["login", "GET", "/form?a", "", "", "localhost"],
        ["shop", "POST", "/done?token=3", "cart=1", "", "127.0.0.1"],
        ["login", "GET", "/me", "sid=2", "", "localhost"],
        ["login", "GET", "/back", "sid=2", "", "localhost"],
        ["shop", "GET", "/end", "cart=1", "", "127.0.0.1"],
    ];
    let user = user.map(|request| request.map(str::to_owned));
    assert_eq!(seen, [&user[..], &user].concat());
    let trial = &report["trials"][0];
    assert_eq!(trial["sessions"]["kinds"][0]["completed"], 2);
    assert_eq!(trial["connections_max"], 2, "one to each server");
    let targets = trial["targets"].as_array().unwrap().iter();
    let names: Vec<_> = targets.map(|target| target["target"].clone()).collect();
    let host = login.trim_start_matches("https://");
    let steps = ["GET /start".to_owned(), "POST ${raw(action)}".to_owned()];
    let own = [format!("GET {host}/me"), format!("GET {host}/back")];
    assert_eq!(json!(names), json!([&steps[..], &own].concat()));
}

const TWO_SERVERS: &str = r#"
const fs = require('fs'), http = require('http');
const serve = (name, leads) => http.createServer((request, response) => {
  let body = '';
  request.on('data', data => body += data);
  request.on('end', () => {
    const sent = request.headers;
    fs.appendFileSync('SEEN', JSON.stringify([name, request.method, request.url, body,
      [sent.authorization, sent['x-api-key'], sent['x-tenant'], sent.accept].join()]) + '\n');
    const [status, to] = leads(request.url) || [200, ''];
    response.writeHead(status, {Location: to}).end();
  });
});
const other = serve('other', url => url === '/again' && [302, 'http://127.0.0.1:PORT/home']);
other.listen(0, '127.0.0.1', () => {
  const port = other.address().port;
  fs.writeFileSync('OTHER', String(port));
  serve('own', url => url === '/go' ? [307, `http://127.0.0.1:${port}/again`]
    : url === '/loop' && [302, '/loop']).listen(PORT, '127.0.0.1');
});
"#;

#[test]
fn redirections_keep_the_body_and_leave_credentials() {
    let Some(servers) = launch("node", |site, port| {
        let files = [site.write("seen", ""), site.write("other", "")];
        let text = TWO_SERVERS.replace("PORT", &port.to_string()).replace("SEEN", &files[0]);
        vec![site.write("two.js", &text.replace("OTHER", &files[1]))]
    }) else {
        return;
    };
    let own = servers.url("");
    let other = servers.site.read("other");
    let own = own.trim_end_matches('/');
    let text = format!(
        "target: [{own}, 'http://127.0.0.1:{other}']\nsessions: {{s: {{steps: [{{put: /go, body: \
         'b${{seq()}}', redirects: 2, headers: {{X-Api-Key: k, Accept: a}}}}]}}}}\n"
    );
    let file = servers.site.write("two.yaml", &text);
    let options = ["-H", "Authorization: t", "-H", "X-Tenant: u", "--secret", "x-tenant"];
    let load = ["run", &file, "--vusers", "1", "-n", "1", "-t", "1"];
    measured(&[&load[..], &options].concat());
    let lines = servers.site.read("seen");
    let seen: Vec<[String; 5]> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let want = [
        ["own", "PUT", "/go", "b1", "t,k,u,a"],
        ["other", "PUT", "/again", "b1", ",,,a"],
        ["own", "PUT", "/home", "b1", "t,k,u,a"],
    ];
    assert_eq!(seen, want.map(|request| request.map(str::to_owned)));
    // One more than permitted is a failure.
    let url = servers.url("loop");
    let report = measured(&["run", &url, "-L", "--vusers", "1", "-n", "1", "-t", "1"]);
    let outcomes = &report["trials"][0]["outcomes"];
    assert_eq!(*outcomes, json!({"ok": 50, "too_many_redirections": 1}));
}

#[test]
fn what_several_targets_cannot_have_is_said() {
    let certificates = Certificates::new();
    let Some(servers) = servers(&certificates) else { return };
    let (file, login) = scenario(&servers);
    let trust = certificates.authority.str();
    let one = ["--cacert", trust];
    for (options, status, words) in [
        (&["run", &file, "--sni", "h", one[0], one[1]][..], 2, "--sni: is the name of one server"),
        (&["run", &file, "--unix-socket", "/s"], 2, "--unix-socket: is one server"),
        (&["run", &file, "--http2", one[0], one[1]], 2, "--http2: is chosen in TLS"),
        (&["run", &file], 4, "localhost"),
        (&["overload", &file, "--simple", "1", one[0], one[1]], 2, "several targets"),
    ] {
        let ended = run(&[options, &["-d", "100ms"]].concat());
        assert_eq!(ended.status, Some(status), "{options:?}: {}", ended.stderr);
        let line = ended.stderr.lines().next().unwrap_or_default();
        assert!(line.starts_with("error: ") && line.contains(words), "{options:?}: {line}");
    }
    assert_eq!(servers.site.read("seen"), "", "no load");
    // knee names a server that is away before any load.
    let away = login.replace("localhost", "127.0.0.2");
    let shop = servers.url("");
    let shop = shop.trim_end_matches('/');
    let text = format!("target: ['{shop}', '{away}']\nsessions: {{s: {{steps: [{{get: /}}]}}}}\n");
    let ended = run(&["run", &servers.site.write("away.yaml", &text), "-d", "100ms"]);
    assert_eq!(ended.status, Some(4), "{}", ended.stderr);
    assert!(ended.stderr.contains("127.0.0.2"), "{}", ended.stderr);
    assert_eq!(servers.site.read("seen"), "", "no load");
}
