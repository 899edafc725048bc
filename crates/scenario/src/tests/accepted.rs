//! Good files, and what they become.

use super::super::draft::{METHODS, OF_REQUESTS};
use super::super::{EXAMPLE, Scenario, schema};
use super::{SHOP, parse, with_steps};
use crate::LoadStages;
use knee_load::law::Law;
use knee_load::secrets::SecretNames;
use knee_load::session::*;
use knee_load::spec::{FurtherServer, Part, Pick, Target};
use knee_load::time::Nanos;
use std::sync::Arc;

/// A request in one line: method, path, headers and body, each hole as `<what it is filled with>`.
fn told(scenario: &Scenario, number: usize) -> String {
    let request = &scenario.requests[number];
    let mut parts = vec![request.method.clone(), request.path.clone()];
    parts.extend(request.headers.iter().map(|(name, value)| format!("{name}: {value}")));
    parts.push(String::from_utf8_lossy(&request.body).into_owned());
    let headers = request.headers.len();
    let fills = &scenario.plan.requests[number].fills;
    assert_eq!(fills.len(), request.holes.len());
    let order: Vec<_> = request.holes.iter().map(|h| (h.part, h.at)).collect();
    assert!(order.windows(2).all(|w| w[0] <= w[1]), "{order:?}");
    for (hole, fill) in request.holes.iter().zip(fills).rev() {
        let (part, before) = match hole.part {
            Part::Path => (1, 0),
            Part::Header(n) => (2 + usize::from(n), request.headers[usize::from(n)].0.len() + 2),
            Part::Body => (2 + headers, 0),
        };
        parts[part].insert_str(before + hole.at as usize, &shown(fill));
    }
    parts.join(" | ")
}

fn shown(fill: &Fill) -> String {
    let escape = match fill.escape {
        Escape::None => "",
        Escape::Component => "c:",
        Escape::Segment => "s:",
        Escape::UrlPiece => "u:",
        Escape::Link => "l:",
        Escape::Header => "h:",
        Escape::Cookie => "k:",
        Escape::Json => "j:",
        Escape::JsonValue => "J:",
        Escape::Form => "f:",
    };
    format!("<{escape}{}>", template(&fill.value))
}

fn template(template: &Template) -> String {
    let piece = |piece: &TemplatePiece| match piece {
        TemplatePiece::Text(text) => text.clone(),
        TemplatePiece::Variable(n) => format!("v{n}"),
        TemplatePiece::Column { data, column } => format!("d{data}.{column}"),
        TemplatePiece::Sent(number) => format!("sent{number}"),
        TemplatePiece::Cookies => "cookies".to_owned(),
        TemplatePiece::Setup(number) => format!("setup{number}"),
        TemplatePiece::Call(function) => match &**function {
            Function::Random { low, high } => format!("random({low},{high})"),
            Function::Uuid => "uuid".to_owned(),
            Function::Now(moment) => format!("now({moment:?})"),
            Function::Seq => "seq".to_owned(),
            Function::Base64(inner) => format!("base64({})", self::template(inner)),
            Function::HmacSha256 { key, message } => {
                format!("hmac({},{})", self::template(key), self::template(message))
            }
            Function::UrlEncode(inner) => format!("urlencode({})", self::template(inner)),
            Function::Raw(inner) => format!("raw({})", self::template(inner)),
        },
    };
    template.0.iter().map(piece).collect()
}

#[test]
fn the_example_of_the_specification() {
    let scenario = parse(SHOP).unwrap();
    assert!(scenario.servers[0].is_secure());
    assert_eq!(scenario.servers[0].endpoint().to_string(), "shop.test:443");
    assert_eq!(scenario.timeout, Some(Nanos::from_secs(5)));
    let requests: Vec<_> = (0..scenario.requests.len()).map(|n| told(&scenario, n)).collect();
    assert_eq!(
        requests,
        [
            "POST | /login | Content-Type: application/json | Accept: application/json | Cookie: \
                <h:cookies> | {\"name\":\"<j:d0.0>\",\"password\":\"<j:d0.1>\"}",
            "GET | /items?page=<c:random(1,50)> | Authorization: Bearer <h:v0> | Accept: \
                application/json | Cookie: <h:cookies> | ",
            "GET | /items/<s:v2> | Accept: application/json | Cookie: <h:cookies> | ",
            "POST | /cart | Content-Type: application/x-www-form-urlencoded | Accept: \
                application/json | Cookie: <h:cookies> | id=<f:v2>",
            "GET | / | Accept: application/json | Cookie: <h:cookies> | ",
            "GET | /items | Accept: application/json | Cookie: <h:cookies> | ",
        ]
    );
    let names: Vec<_> = scenario.plan.requests.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "POST /login",
            "GET /items?page=${random(1,50)}",
            "item",
            "checkout",
            "GET /",
            "GET /items"
        ]
    );
    let [buyer, visitor] = scenario.plan.kinds.as_slice() else { panic!("two kinds") };
    assert_eq!((buyer.weight, visitor.weight), (3, 7));
    assert_eq!(buyer.variables, ["token", "csrf", "item"]);
    assert_eq!(buyer.repetitions.len(), 1);
    assert_eq!((buyer.data.as_slice(), visitor.data.as_slice()), (&[0][..], &[][..]));
    let second = Nanos::from_secs(1);
    assert_eq!(
        visitor.program,
        [Instruction::Request(4), Instruction::Think(Law::Fixed(second)), Instruction::Request(5)]
    );
    let condition = Condition::Compared {
        left: Template(vec![TemplatePiece::Variable(2)]),
        relation: Relation::NotEqual,
        right: Template::default(),
    };
    assert_eq!(
        buyer.program,
        [
            Instruction::Request(0),
            Instruction::Think(Law::Exp(Nanos::from_secs(2))),
            Instruction::Request(1),
            Instruction::Begin(0),
            Instruction::Pass { repetition: 0, end: 7 },
            Instruction::Request(2),
            Instruction::Jump(4),
            Instruction::Unless { condition, to: 9 },
            Instruction::Request(3),
        ]
    );
    let login = &scenario.plan.requests[0];
    assert_eq!(
        login.expect,
        [Expectation::Status(vec![(200, 200)]), Expectation::Time(Nanos::from_millis(300))]
    );
    let sources: Vec<_> =
        login.extract.iter().map(|e| (e.name.as_str(), e.variable, e.source.clone())).collect();
    assert_eq!(
        sources,
        [("token", 0, Source::Json("/token".into())), ("csrf", 1, Source::Header("x-csrf".into()))]
    );
    let ok = Expectation::Value {
        source: Source::Json("/ok".into()),
        is: Match::Equals(Template(vec![TemplatePiece::Text("true".into())])),
    };
    assert_eq!(
        scenario.plan.requests[3].expect,
        [Expectation::Status(vec![(200, 200), (201, 201)]), ok]
    );
    let users = &scenario.plan.data[0];
    assert_eq!(
        (users.deal, users.rows.len(), users.rows[1][1].as_str()),
        (Deal::Unique, 2, "b\"2")
    );
}

#[test]
fn the_load_of_the_specification() {
    let scenario = parse(SHOP).unwrap();
    let load = scenario.load.unwrap();
    assert_eq!(load.rate.unwrap().per_s(), 200.0);
    assert_eq!(load.arrival.as_ref().unwrap().text(), "poisson");
    let LoadStages::Rates(stages) = &load.stages else { panic!("{load:?}") };
    let stages: Vec<_> =
        stages.iter().map(|s| (s.from_per_s, s.to_per_s, s.length.as_secs_f64())).collect();
    assert_eq!(
        stages,
        [(0.0, 200.0, 60.0), (200.0, 200.0, 300.0), (600.0, 600.0, 10.0), (200.0, 200.0, 120.0)]
    );
    let limits: Vec<_> = scenario.fail_if.iter().map(|t| (t.of(), t.to_string())).collect();
    assert_eq!(
        limits,
        [(Some("checkout"), "checkout p99>500ms".to_owned()), (None, "errors>0.1%".to_owned())]
    );
}

#[test]
fn the_example_that_is_written_is_one() {
    let scenario = parse(EXAMPLE).unwrap();
    assert_eq!(scenario.plan.kinds.len(), 2);
    assert_eq!(scenario.plan.requests.len(), 6);
}

/// One step each, and the request that it becomes.
#[test]
fn requests() {
    for (name, step, want) in [
        ("a URL of the target", "get: http://h/a?b=c", "GET | /a?b=c | Cookie: <h:cookies> | "),
        (
            "the host with its port",
            "get: \"http://h:80?b=${uuid()}\"",
            "GET | /?b=<c:uuid> | Cookie: <h:cookies> | ",
        ),
        ("a fragment is left out", "get: \"/a#${uuid()}\"", "GET | /a | Cookie: <h:cookies> | "),
        ("any method", "request: {method: PURGE, url: /a}", "PURGE | /a | Cookie: <h:cookies> | "),
        ("a column", "get: \"/${users.name}/x\"", "GET | /<s:d0.0>/x | Cookie: <h:cookies> | "),
        (
            "two in one hole",
            "get: \"/${users.name}${seq()}\"",
            "GET | /<s:d0.0seq> | Cookie: <h:cookies> | ",
        ),
        (
            "a Cookie of one's own",
            "get: /\n        headers: {cookie: a=b}",
            "GET | / | cookie: a=b | ",
        ),
        (
            "a dollar and what is no template",
            "get: /\n        headers: {A: \"$x $${uuid()} {{b}} $\"}",
            "GET | / | A: $x ${uuid()} {{b}} $ | Cookie: <h:cookies> | ",
        ),
        (
            "a body of text",
            "put: /\n        body: \"a ${now()} \\\"b\\\"\"",
            "PUT | / | Cookie: <h:cookies> | a <now(UnixMs)> \"b\"",
        ),
        (
            "a body in lines",
            "put: /\n        body: |\n          a\n          ${seq()}\n",
            "PUT | / | Cookie: <h:cookies> | a\n<seq>\n",
        ),
        (
            "a file",
            "post: /\n        body_file: order.xml",
            "POST | / | Cookie: <h:cookies> | <order/>",
        ),
        (
            "a form",
            "post: /\n        form: {a b: \"x&${users.name}\", c: [1, true]}",
            "POST | / | Content-Type: application/x-www-form-urlencoded | Cookie: <h:cookies> | \
                a+b=x%26<f:d0.0>&c=1&c=true",
        ),
        (
            "JSON of all kinds",
            "patch: /\n        json: {a: 1, b: 1.50, c: true, d: ~, e: \"1\", f: [x, {g: \"\"}], \
                h: 0x1F, i: yes, \"j\\\"\": \"${env(SECRET)}\"}",
            "PATCH | / | Content-Type: application/json | Cookie: <h:cookies> | \
                {\"a\":1,\"b\":1.50,\"c\":true,\"d\":null,\"e\":\"1\",\"f\":[\"x\",{\"g\":\"\"}],\"h\":31,\"i\":\"yes\",\"j\\\"\":\"s3\\\"cret\"}",
        ),
        (
            "values of templates in JSON",
            "post: /\n        json:\n          a: \"${random(1,5)}\"\n          \
                b: ${users.name}\n          c: \"${users.name}\"\n          \
                d: [\"${seq()}\", \"${now()}\", \"${now(rfc3339)}\"]\n          \
                e: ${users.name} and ${seq()}\n          f: ${env(SECRET)}",
            "POST | / | Content-Type: application/json | Cookie: <h:cookies> | \
                {\"a\":<J:random(1,5)>,\"b\":<J:d0.0>,\"c\":\"<j:d0.0>\",\
                \"d\":[<J:seq>,<J:now(UnixMs)>,\"<j:now(Rfc3339)>\"],\
                \"e\":\"<j:d0.0> and <j:seq>\",\"f\":\"s3\\\"cret\"}",
        ),
        (
            "a content type of one's own",
            "post: /\n        json: 1\n        headers: {content-type: application/vnd.x+json}",
            "POST | / | content-type: application/vnd.x+json | Cookie: <h:cookies> | 1",
        ),
        (
            "functions in one another",
            "get: /\n        headers: {A: \"${base64('${users.name}:${users.password}')} \
                ${hmac_sha256('k', urlencode(users.name))}\"}",
            "GET | / | A: <h:base64(d0.0:d0.1)> <h:hmac(k,urlencode(d0.0))> | Cookie: <h:cookies> \
                | ",
        ),
        (
            "blanks in templates",
            "get: \"/${ random( -5 , +5 ) }\"",
            "GET | /<s:random(-5,5)> | Cookie: <h:cookies> | ",
        ),
        (
            "times",
            "get: \"/${now(unix_s)}/${now(rfc3339)}\"",
            "GET | /<s:now(UnixS)>/<s:now(Rfc3339)> | Cookie: <h:cookies> | ",
        ),
        (
            "a host of one's own",
            "get: /\n        headers: {Host: other}",
            "GET | / | Host: other | Cookie: <h:cookies> | ",
        ),
    ] {
        let text = with_steps(&format!("      - {step}"));
        let scenario = parse(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(told(&scenario, 0), want, "{name}");
    }
}

#[test]
fn what_a_response_has_to_be() {
    let equals = |text: &str| Match::Equals(Template(vec![TemplatePiece::Text(text.to_owned())]));
    let contains =
        |text: &str| Match::Contains(Template(vec![TemplatePiece::Text(text.to_owned())]));
    let value = |source, is| Expectation::Value { source, is };
    for (written, want) in [
        ("{status: 2xx}", vec![Expectation::Status(vec![(200, 299)])]),
        (
            "{status: [\"200\", 3XX, 404-410]}",
            vec![Expectation::Status(vec![(200, 200), (300, 399), (404, 410)])],
        ),
        ("{time: 2s}", vec![Expectation::Time(Nanos::from_secs(2))]),
        ("{header: {X-A: b}}", vec![value(Source::Header("x-a".into()), equals("b"))]),
        (
            "{header: {X-A: {contains: b}}}",
            vec![value(Source::Header("x-a".into()), contains("b"))],
        ),
        ("{body: ok}", vec![value(Source::Body, contains("ok"))]),
        ("{body: {contains: ok}}", vec![value(Source::Body, contains("ok"))]),
        ("{body: {equals: ok}}", vec![value(Source::Body, equals("ok"))]),
        ("{body: {json: /a}}", vec![value(Source::Json("/a".into()), Match::Exists)]),
        (
            "{body: {json: /a, equals: null}}",
            vec![value(Source::Json("/a".into()), equals("null"))],
        ),
        (
            "{body: [{json: /a, contains: 1}, b]}",
            vec![
                value(Source::Json("/a".into()), contains("1")),
                value(Source::Body, contains("b")),
            ],
        ),
        ("{}", vec![]),
    ] {
        let text = with_steps(&format!("      - get: /\n        expect: {written}"));
        let scenario = parse(&text).unwrap_or_else(|e| panic!("{written}: {e}"));
        assert_eq!(scenario.plan.requests[0].expect, want, "{written}");
    }
}

#[test]
fn what_is_kept_of_a_response() {
    for (written, source, otherwise) in [
        ("{json: \"\"}", Source::Json(String::new()), None),
        ("{header: X-A, default: \"\"}", Source::Header("x-a".into()), Some("")),
        ("{cookie: Sid}", Source::Cookie("Sid".into()), None),
        (
            "{between: ['\"', 1], default: 0}",
            Source::Between { before: "\"".into(), after: "1".into(), unescape: false },
            Some("0"),
        ),
        ("{body: true}", Source::Body, None),
        ("{status: true}", Source::Status, None),
    ] {
        let text = with_steps(&format!("      - get: /\n        extract: {{v: {written}}}"));
        let scenario = parse(&text).unwrap_or_else(|e| panic!("{written}: {e}"));
        let [extract] = scenario.plan.requests[0].extract.as_slice() else {
            panic!("{written}");
        };
        assert_eq!(
            (&extract.source, extract.otherwise.as_deref()),
            (&source, otherwise),
            "{written}"
        );
    }
}

#[test]
fn a_redirection_has_a_request_of_its_own() {
    let text = with_steps(
        "      - {post: /a, body: x, redirects: 3, timeout: 2s, on_failure: continue, headers: \
            {Content-Type: a/b, A: \"${seq()}\"}}\n      - get: /b",
    );
    let scenario = parse(&text).unwrap();
    assert_eq!(
        told(&scenario, 1),
        "POST | <u:> | Content-Type: a/b | A: <sent0> | Cookie: <h:cookies> | x"
    );
    assert_eq!(told(&scenario, 2), "GET | <u:> | A: <sent0> | Cookie: <h:cookies> | ");
    let step = &scenario.plan.requests[0];
    let redirected = Some(Redirected { same: 1, get: 2, is_post: true });
    assert_eq!((step.redirects, step.redirected, step.goes_on), (3, redirected, true));
    assert_eq!(step.timeout, Some(Nanos::from_secs(2)));
    assert_eq!(scenario.plan.requests[1].name, "POST /a (redirected)");
    assert_eq!(scenario.plan.kinds[0].program, [Instruction::Request(0), Instruction::Request(3)]);
    assert!(scenario.plan.is_unlisted(1) && scenario.plan.is_unlisted(2));
}

#[test]
fn redirections_keep_what_a_request_has() {
    for (step, same, get) in [
        ("get: /a", "GET | <u:> | Cookie: <h:cookies> | ", None),
        ("head: /a", "HEAD | <u:> | Cookie: <h:cookies> | ", None),
        (
            "put: \"/${seq()}\", body: \"b${uuid()}\"",
            "PUT | <u:> | Cookie: <h:cookies> | b<sent2>",
            Some("GET | <u:> | Cookie: <h:cookies> | "),
        ),
        (
            "delete: /a",
            "DELETE | <u:> | Cookie: <h:cookies> | ",
            Some("GET | <u:> | Cookie: <h:cookies> | "),
        ),
        (
            "post: /a, form: {a: \"${seq()}\"}, headers: {Expect: 100-continue, Content-Language: en}",
            "POST | <u:> | Expect: 100-continue | Content-Language: en | Content-Type: \
             application/x-www-form-urlencoded | Cookie: <h:cookies> | a=<sent1>",
            Some("GET | <u:> | Cookie: <h:cookies> | "),
        ),
    ] {
        let scenario = parse(&with_steps(&format!("      - {{{step}, redirects: 1}}"))).unwrap();
        let redirected = scenario.plan.requests[0].redirected.unwrap();
        assert_eq!(told(&scenario, redirected.same as usize), same, "{step}");
        let changed =
            (redirected.get != redirected.same).then(|| told(&scenario, redirected.get as usize));
        assert_eq!(changed.as_deref(), get, "{step}");
    }
}

#[test]
fn steps_have_names_of_their_own() {
    let text = with_steps(
        "      - get: /a\n      - get: /a\n      - {get: /b, name: GET /a}\n      - get: /a",
    );
    let scenario = parse(&text).unwrap();
    let names: Vec<_> = scenario.plan.requests.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(names, ["GET /a", "GET /a (2)", "GET /a (3)", "GET /a (4)"]);
}

#[test]
fn what_a_repetition_extracts_is_there_the_next_time() {
    let text = with_steps(
        "      - repeat: 2\n        steps:\n        - {get: \"/${x}\"}\n        - {get: /, \
            extract: {x: {body: true}}}",
    );
    assert_eq!(told(&parse(&text).unwrap(), 0), "GET | /<s:v0> | Cookie: <h:cookies> | ");
}

#[test]
fn conditions() {
    for (written, left, relation, right) in [
        ("${users.name} == 'a b'", "d0.0", Relation::Equal, "a b"),
        ("${seq()}<5", "seq", Relation::Less, "5"),
        ("a > \\\"\\\"", "a", Relation::Greater, ""),
        ("'=' != ${base64('a == b')}", "=", Relation::NotEqual, "base64(a == b)"),
    ] {
        let text = with_steps(&format!("      - {{when: \"{written}\", steps: [{{get: /}}]}}"));
        let scenario = parse(&text).unwrap_or_else(|e| panic!("{written}: {e}"));
        let Instruction::Unless { condition, to: 2 } = &scenario.plan.kinds[0].program[0] else {
            panic!("{written}");
        };
        let Condition::Compared { left: one, relation: is, right: other } = condition else {
            panic!("{written}");
        };
        let got = (template(one), *is, template(other));
        assert_eq!(got, (left.to_owned(), relation, right.to_owned()), "{written}");
    }
}

const SETS: &str = "{set: {token: '${uuid()}', id: '1'}}";

#[test]
fn what_is_done_once_gives_values_to_all_sessions() {
    let text = "target: http://h\nsetup: [{post: /login, extract: {token: {json: /t}, id: {body: \
        true}}}]\nteardown: [{post: '/out/${setup.id}'}]\nsessions:\n  a: {steps: [{get: \
        '/${setup.token}'}]}\n  b: {steps: [{get: /}]}\nfail_if: ['b p99>1s']\n";
    let plan = parse(text).unwrap().plan;
    let kinds: Vec<_> = plan.kinds.iter().map(|kind| (kind.name.as_str(), kind.weight)).collect();
    assert_eq!(kinds, [("a", 1), ("b", 1), ("setup", 0), ("teardown", 0)]);
    assert_eq!((plan.setup, plan.teardown), (Some(2), Some(3)));
    assert_eq!(plan.kinds_of_load().count(), 2);
    let listed: Vec<_> = (0..4).map(|request| !plan.is_unlisted(request)).collect();
    assert_eq!(listed, [false, true, true, false]);
    // It need not send anything.
    let set = text.replace("{post: /login, extract: {token: {json: /t}, id: {body: true}}}", SETS);
    assert_eq!(parse(&set).unwrap().plan.setup, Some(2), "{set}");
    let scenario = parse(text).unwrap();
    assert_eq!(told(&scenario, 1), "GET | /<s:setup0> | Cookie: <h:cookies> | ");
    assert_eq!(told(&scenario, 3), "POST | /out/<s:setup1> | Cookie: <h:cookies> | ");
    for (wrong, want) in [
        (
            text.replace("setup.token", "setup.tokn"),
            "unknown variable of 'setup' 'tokn': did you mean 'token'?",
        ),
        (
            text.replace("setup: [{post: /login", "x-a: [{post: /login"),
            "there is no 'setup' that sets variables",
        ),
        (text.replace("b p99", "setup p99"), "unknown step 'setup'"),
        (
            text.replace("{post: '/out/${setup.id}'}", "{think: 1s}"),
            "the session 'teardown' sends nothing",
        ),
        (
            text.replace("/login, ", "'/${setup.token}', "),
            "there is no 'setup' that sets variables before this",
        ),
    ] {
        let told = parse(&wrong).unwrap_err();
        assert!(told.contains(want), "{told}");
    }
}

#[test]
fn stages_of_users() {
    let read = |stages: &str| {
        let text = format!("{}load: {{stages: [{stages}]}}\n", with_steps("      - get: /"));
        parse(&text).map(|scenario| scenario.load.unwrap().stages)
    };
    let stages = read(
        "{ramp: 0 -> 50 users, for: 1m}, {hold: 5m}, {spike: 80 users, for: 10s}, {hold: 1s}, \
         {ramp: 50 -> 10 users, for: 1s}, {ramp: 10 users -> 0, for: 1s}, {hold: 1 user, for: 2s}",
    );
    let stages = stages.unwrap();
    let (most, stages) = stages.of_users().unwrap();
    assert_eq!(most, 80);
    let stages: Vec<_> = stages.iter().map(|s| (s.from, s.to)).collect();
    assert_eq!(stages, [(0, 50), (50, 50), (80, 80), (50, 50), (50, 10), (10, 0), (1, 1)]);
    for (stages, want) in [
        ("{ramp: 0 -> 5 users, for: 1s}, {hold: 5/s, for: 1s}", "stages of rates and of users"),
        ("{ramp: 5/s -> 5 users, for: 1s}", "is no number of users"),
        ("{ramp: 5 users -> 5/s, for: 1s}", "write both of one kind"),
        ("{hold: 1.5 users, for: 1s}", "'1.5 users' is no number of users"),
        ("{hold: 0 users, for: 1s}", "no stage has a user"),
        ("{spike: 0 users, for: 1s}", "a spike of nothing"),
        ("{hold: 9999999 users, for: 1s}", "expected 0 to 1000000"),
    ] {
        let told = read(stages).unwrap_err();
        assert!(told.contains(want), "{stages}: {told}");
    }
    let with_rate =
        with_steps("      - get: /") + "load: {rate: 5/s, stages: [{hold: 5 users, for: 1s}]}\n";
    assert!(parse(&with_rate).unwrap_err().contains("leave 'rate' out"));
}

#[test]
fn json_is_read_too() {
    let text = "{\n\t\"$schema\": \"x\",\n\t\"target\": \"http:\\/\\/${env(HOST)}:81\",\n\t\
        \"sessions\": {\"s\": {\"steps\": [{\"get\": \"/\\u00e9\\n\"}, {\"get\":\"/a\"}]}}\n}";
    let wrong = parse(text).unwrap_err();
    assert!(wrong.starts_with("shop.yaml:4:39: "), "{wrong}");
    let scenario = parse(&text.replace("\\u00e9\\n", "")).unwrap();
    assert_eq!(scenario.servers[0].endpoint().to_string(), "shop.test:81");
}

#[test]
fn requests_go_to_several_targets() {
    let text = "target: [http://h, 'https://${env(HOST)}:444', http://i, http://H:80]\nsessions: \
        {s: {data: users, steps: [{get: /a}, {get: 'https://SHOP.test:444/b?c', redirects: 2, \
        headers: {Authorization: x, Host: y}}, {post: '${raw(users.name)}'}, {get: http://i}]}}\n\
        data: {users: users.csv}\n";
    let scenario = parse(text).unwrap();
    let hosts: Vec<_> = scenario.servers.iter().map(|url| url.host()).collect();
    assert_eq!(hosts, ["h", "shop.test:444", "i"]);
    let plan = &scenario.plan;
    let sent = scenario.requests.iter().zip(&plan.requests);
    let sent: Vec<_> = sent
        .map(|(request, step)| {
            let headers = request.headers.iter().map(|(name, _)| &**name);
            let headers = headers.collect::<Vec<_>>().join(" ");
            (step.server, step.variant_of, format!("{} {} {headers}", step.name, request.host))
        })
        .collect();
    let redirected = "GET shop.test:444/b?c (redirected)";
    let link = "POST ${raw(users.name)}";
    assert_eq!(
        sent,
        [
            (0, None, "GET /a h Cookie".to_owned()),
            (1, None, "GET shop.test:444/b?c shop.test:444 Authorization Host Cookie".to_owned()),
            (0, None, format!("{redirected} h Authorization Cookie")),
            (1, Some(2), format!("{redirected} shop.test:444 Authorization Host Cookie")),
            (2, Some(2), format!("{redirected} i Authorization Cookie")),
            (0, None, format!("{link} h Cookie")),
            (1, Some(5), format!("{link} shop.test:444 Cookie")),
            (2, Some(5), format!("{link} i Cookie")),
            (2, None, "GET i/ i Cookie".to_owned()),
        ]
    );
    assert_eq!(plan.requests[1].redirected.unwrap().all(), [2, 2]);
    assert_eq!([0, 1, 2].map(|server| plan.on_server(5, server)), [Some(5), Some(6), Some(7)]);
    assert_eq!([0, 1, 2].map(|server| plan.on_server(4, server)), [Some(2), Some(3), Some(4)]);
    assert_eq!([0, 1, 2].map(|server| plan.on_server(8, server)), [None, None, Some(8)]);
    let listed: Vec<_> = (0..9).filter(|request| !plan.is_unlisted(*request)).collect();
    assert_eq!(listed, [0, 1, 5, 8]);
}

/// A scenario as the engine gets it.
fn target_of(scenario: Scenario) -> Target {
    let [first, further @ ..] = &scenario.servers[..] else {
        panic!("a server");
    };
    let further = further.iter().map(|url| FurtherServer {
        endpoint: url.endpoint().clone(),
        host: url.host().to_owned(),
        tls: None,
        proxy: None,
    });
    let target = Target::new(first.endpoint().clone(), scenario.requests, Pick::InOrder, true);
    let sessions = Some(Arc::new(scenario.plan));
    Target { sessions, further: further.collect(), ..target.unwrap() }
}

#[test]
fn credentials_stay_with_their_origin() {
    let names = SecretNames::with(["X-Tenant".to_owned()]);
    for (header, follows) in [
        ("Authorization: Bearer x", false),
        ("authorization: '${users.name}'", false),
        ("Proxy-Authorization: x", false),
        ("X-Api-Key: x", false),
        ("X-Auth-Token: 'a${seq()}b'", false),
        ("X-Tenant: x", false),
        ("Cookie: a=1", false),
        ("Host: x", false),
        ("Accept: x", true),
        ("X-Request-Id: '${uuid()}'", true),
        ("Idempotency-Key: x", true),
    ] {
        for (url, is_leading) in [("http://i/a", false), ("${raw(users.name)}", true)] {
            let text = format!(
                "target: [http://h, http://i, http://j]\ndata: {{users: users.csv}}\nsessions: {{s: \
                 {{data: users, steps: [{{put: '{url}', body: 'b${{seq()}}', redirects: 2, headers: \
                 {{{header}, Z: 'z${{seq()}}'}}}}]}}}}\n"
            );
            let mut target = target_of(parse(&text).unwrap());
            target.keep_credentials_at_origin(&names);
            let plan = target.sessions.clone().unwrap();
            let sent_to = if is_leading { vec![0, 1, 2] } else { vec![1] };
            for (number, server) in (0u32..).zip(sent_to) {
                let redirected = plan.requests[number as usize].redirected.unwrap();
                for first in redirected.all() {
                    for other in 0..3 {
                        let to = plan.on_server(first, other).unwrap() as usize;
                        let (request, step) = (&target.requests[to], &plan.requests[to]);
                        let name = header.split(':').next().unwrap();
                        let is_there = request.has_header(name);
                        // The session's own cookies know where they belong.
                        let wants = follows || other == server;
                        let told = format!("{header} from {server} to {other}: {request:?}");
                        assert_eq!(is_there, wants, "{told}");
                        assert_eq!(request.holes.len(), step.fills.len(), "{told}");
                        let of_z =
                            request.headers.iter().position(|(name, _)| name == "Z").unwrap();
                        let hole = request.holes.iter().zip(&step.fills);
                        let mut of_z =
                            hole.filter(|(hole, _)| hole.part == Part::Header(of_z as u16));
                        let sent = of_z.next().unwrap().1.value.0[0].clone();
                        assert!(matches!(sent, TemplatePiece::Sent(_)), "{told}");
                    }
                }
            }
        }
    }
}

#[test]
fn aliases_and_extensions() {
    let text = "x-login: &login {post: /login, json: {a: 1}}\ntarget: http://h\nsessions:\n  a: \
        {steps: [*login, {get: /}]}\n  b: {steps: [*login], connection: new}\n";
    let scenario = parse(text).unwrap();
    assert_eq!(scenario.requests.len(), 3);
    assert!(scenario.plan.kinds[1].new_connection && !scenario.plan.kinds[0].new_connection);
}

/// Each key has a purpose, each choice is a key, and every definition is used.
#[test]
fn the_schema_has_all_keys() {
    let schema = schema();
    let text = schema.to_string();
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        let properties = definition["properties"].as_object().unwrap();
        for (key, property) in properties {
            let about = property["description"].as_str();
            assert!(about.is_some_and(|about| !about.is_empty()), "{name}.{key}");
        }
        let choices = definition["oneOf"].as_array().into_iter().flatten();
        let choices = choices.map(|choice| &choice["required"][0]);
        let required = definition["required"].as_array().unwrap();
        for key in choices.chain(required) {
            assert!(properties.contains_key(key.as_str().unwrap()), "{key}");
        }
        assert!(text.contains(&format!("\"#/$defs/{name}\"")), "{name}");
    }
    for name in METHODS.into_iter().chain(OF_REQUESTS.split(' ')) {
        assert!(schema::STEP.has(name), "{name}");
    }
}
