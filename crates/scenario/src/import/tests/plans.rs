//! Test plans of JMeter, element by element, and recordings with what a scenario cannot have as it
//! is.

use crate::import::{har, jmeter};
use crate::{Scenario, ScenarioInputs, parse_scenario};

/// Every file is there.
struct Files;

impl ScenarioInputs for Files {
    fn file(&mut self, _: &str) -> Result<Vec<u8>, String> {
        Ok(b"user,pass\nann,a1\n".to_vec())
    }

    fn program(&mut self, _: &str) -> Result<(String, String), String> {
        Err("cannot be started".to_owned())
    }

    fn variable(&mut self, _: &str) -> Option<String> {
        None
    }
}

fn parse_any(yaml: &str) -> Result<Scenario, String> {
    parse_scenario(yaml.as_bytes(), "f", &mut Files).map_err(|wrong| wrong.0)
}

/// A plan with these elements in its only thread group.
fn plan(elements: &str) -> String {
    format!(
        "<jmeterTestPlan><hashTree><TestPlan/><hashTree>{}<hashTree>{elements}</hashTree></hashTree>\
         </hashTree></jmeterTestPlan>",
        threads("ThreadGroup", "Users", 3, 0)
    )
}

fn threads(kind: &str, name: &str, threads: u32, ramp_s: u32) -> String {
    element(
        kind,
        name,
        &[
            ("ThreadGroup.num_threads", &threads.to_string()),
            ("ThreadGroup.ramp_time", &ramp_s.to_string()),
            ("ThreadGroup.on_sample_error", "continue"),
        ],
    )
}

/// An element with these properties.
fn element(tag: &str, name: &str, properties: &[(&str, &str)]) -> String {
    let properties = properties.iter();
    let properties = properties.map(|(key, value)| {
        let value = value.replace('&', "&amp;").replace('<', "&lt;");
        format!("<stringProp name='{key}'>{value}</stringProp>")
    });
    format!("<{tag} testname='{name}'>{}</{tag}>", properties.collect::<String>())
}

fn get(path: &str) -> String {
    sampler(path, "", "")
}

fn sampler(path: &str, more: &str, below: &str) -> String {
    format!(
        "<HTTPSamplerProxy testname='{path}'><stringProp name='HTTPSampler.domain'>h</stringProp>\
         <stringProp name='HTTPSampler.path'>{path}</stringProp>{more}</HTTPSamplerProxy><hashTree>\
         {below}</hashTree>"
    )
}

fn within(element: String, below: &str) -> String {
    format!("{element}<hashTree>{below}</hashTree>")
}

fn property(key: &str, value: &str) -> String {
    format!("<stringProp name='{key}'>{value}</stringProp>")
}

/// What becomes of it: the scenario, which knee reads, and what is left out.
fn imported(plan: &str) -> (String, Vec<String>) {
    let imported = jmeter(plan.as_bytes()).unwrap_or_else(|wrong| panic!("{}: {plan}", wrong.0));
    let yaml = imported.to_yaml("a plan");
    parse_any(&yaml).unwrap_or_else(|wrong| panic!("{wrong}\n{yaml}"));
    (yaml, imported.left_out)
}

/// A row: the elements, lines that the scenario has, and what is left out, in part.
type Row<'a> = (String, &'a [&'a str], &'a [&'a str]);

fn check(rows: &[Row]) {
    for (elements, lines, left_out) in rows {
        let (yaml, left) = imported(&plan(elements));
        for line in *lines {
            assert!(yaml.contains(line), "{line} in\n{yaml}\n{elements}");
        }
        let are_told = left.len() == left_out.len()
            && left.iter().zip(*left_out).all(|(left, want)| left.contains(want));
        assert!(are_told, "{left:#?}\n{left_out:#?}\n{elements}");
    }
}

#[test]
fn controllers_are_steps_around_steps() {
    let controller = |tag: &str, properties: &[(&str, &str)], below: &str| {
        within(element(tag, "C", properties), below)
    };
    let token = element(
        "RegexExtractor",
        "T",
        &[("RegexExtractor.refname", "t"), ("RegexExtractor.regex", "id=(.)")],
    );
    let first = sampler("/first", "", &token);
    let under = |condition: &str| {
        let controller =
            controller("IfController", &[("IfController.condition", condition)], &get("/a"));
        format!("{first}{controller}")
    };
    check(&[
        (
            controller("LoopController", &[("LoopController.loops", "4")], &get("/a")),
            &["- repeat: 4\n", "- get: /a\n"],
            &[],
        ),
        (
            controller("LoopController", &[("LoopController.loops", "-1")], &get("/a")),
            &["- get: /a\n"],
            &["LoopController 'C': an endless loop"],
        ),
        (controller("TransactionController", &[], &get("/a")), &["- group: C\n"], &[]),
        (controller("GenericController", &[], &get("/a")), &["- get: /a\n"], &[]),
        (
            controller("RandomController", &[], &(get("/a") + &get("/b"))),
            &["- choose:", "get: /a", "get: /b"],
            &[],
        ),
        (
            controller("InterleaveControl", &[], &(get("/a") + &get("/b"))),
            &["- choose:"],
            &["by chance in place of in turn"],
        ),
        (
            controller(
                "ThroughputController",
                &[
                    ("ThroughputController.style", "1"),
                    ("ThroughputController.percentThroughput", "30"),
                ],
                &get("/a"),
            ),
            &["weight: 3000", "weight: 7000"],
            &[],
        ),
        (
            controller(
                "ThroughputController",
                &[("ThroughputController.style", "0"), ("ThroughputController.maxThroughput", "5")],
                &get("/a"),
            ),
            &["- get: /a"],
            &["a number of executions"],
        ),
        (under("\"${t}\" == \"7\""), &["when: \"${t} == 7\""], &[]),
        (under("${__jexl3(\"${t}\" != \"\",)}"), &["when:", "${t} != "], &[]),
        (under("${__groovy(\"${t}\" > 3 && \"${t}\" <= 9)}"), &["${t} > 3 and ${t} <= 9"], &[]),
        (under("vars.get('t') == 1"), &["/first"], &["its steps are not done"]),
        (
            format!(
                "{first}{}",
                controller(
                    "WhileController",
                    &[("WhileController.condition", "${__jexl3(\"${t}\" != \"x\")}")],
                    &sampler("/b", "", &token)
                )
            ),
            &["while: \"${t} != 'x'\"", "at_most: 1000"],
            &[],
        ),
        (
            controller("ForeachController", &[], &get("/a")),
            &["- get: /a"],
            &["its steps are done once"],
        ),
        (
            controller("OnceOnlyController", &[], &get("/a")),
            &["- get: /a"],
            &["once in each session, not in each thread"],
        ),
        (
            element("JSR223Sampler", "S", &[]) + "<hashTree/>" + &get("/a"),
            &["- get: /a"],
            &["JSR223Sampler 'S': there is nothing of its kind; it is not done"],
        ),
    ]);
}

#[test]
fn what_a_request_needs_is_taken_over() {
    let argument = |name: &str, value: &str| {
        format!(
            "<elementProp elementType='HTTPArgument'>{}{}{}</elementProp>",
            property("HTTPArgument.always_encode", "true"),
            property("Argument.name", name),
            property("Argument.value", value)
        )
    };
    let post = property("HTTPSampler.method", "POST");
    let file = |name: &str| {
        format!(
            "<elementProp elementType='HTTPFileArg'>{}{}{}</elementProp>",
            property("File.path", "C:\\data\\cat.png"),
            property("File.paramname", name),
            property("File.mimetype", "image/png")
        )
    };
    let variables = |name: &str, value: &str| {
        format!(
            "<Arguments><elementProp elementType='Argument'>{}{}</elementProp></Arguments>\
             <hashTree/>",
            property("Argument.name", name),
            property("Argument.value", value)
        )
    };
    check(&[
        (
            sampler("/a", &format!("{post}{}", argument("q", "a b")), ""),
            &["post: /a", "form:", "\"q\": \"a b\""],
            &[],
        ),
        (
            sampler("/a", &format!("{post}{}{}", argument("t", "x"), file("photo")), ""),
            &["multipart:", "\"t\": \"x\"", "file: \"C:/data/cat.png\", type: \"image/png\""],
            &[],
        ),
        (
            sampler("/a", &format!("{post}{}", file("")), ""),
            &["body_file: \"C:/data/cat.png\""],
            &[],
        ),
        (
            sampler("/a", &property("HTTPSampler.follow_redirects", "true"), ""),
            &["redirects: 20"],
            &[],
        ),
        (
            sampler("/a", &property("HTTPSampler.response_timeout", "1500"), ""),
            &["timeout: 1500ms"],
            &[],
        ),
        (
            sampler("/a", &property("HTTPSampler.image_parser", "true"), ""),
            &["get: /a"],
            &["the resources of its page are not loaded"],
        ),
        (get("/a"), &["on_failure: continue"], &[]),
        (variables("host", "shop") + &get("/${host}/x"), &["get: /shop/x"], &[]),
        (
            variables("size", "${__P(size,7)}") + &get("/a?s=${size}&amp;r=${__Random(1,9)}"),
            &["/a?s=7&r=${random(1,9)}"],
            &[],
        ),
        (get("/a/${__UUID}"), &["/a/${uuid()}"], &[]),
        (get("/a/${nosuch}"), &["/a/$${nosuch}"], &["the value of ${nosuch}"]),
        (
            element(
                "CSVDataSet",
                "D",
                &[("filename", "users.csv"), ("variableNames", "user,pass"), ("recycle", "false")],
            ) + "<hashTree/>"
                + &get("/a/${user}"),
            &["users: {file: \"users.csv\", order: unique}", "/a/${users.user}"],
            &[],
        ),
        (
            element(
                "UniformRandomTimer",
                "T",
                &[("ConstantTimer.delay", "100"), ("RandomTimer.range", "50")],
            ) + "<hashTree/>"
                + &get("/a"),
            &["think: uniform(100ms,150ms)"],
            &[],
        ),
        (
            element("ConstantThroughputTimer", "T", &[("throughput", "600")])
                + "<hashTree/>"
                + &get("/a"),
            &["get: /a"],
            &["'600': write a rate under load"],
        ),
    ]);
}

#[test]
fn extractors_and_assertions_are_what_a_step_takes_and_expects() {
    let of = |tag: &str, properties: &[(&str, &str)]| {
        sampler("/a", "", &format!("{}<hashTree/>", element(tag, "E", properties)))
    };
    let assertion = |field: &str, kind: &str, text: &str| {
        let strings = format!(
            "<collectionProp name='Asserion.test_strings'><stringProp>{text}</stringProp>\
             </collectionProp>"
        );
        let properties = property("Assertion.test_field", &format!("Assertion.{field}"))
            + &property("Assertion.test_type", kind);
        let element =
            format!("<ResponseAssertion testname='E'>{strings}{properties}</ResponseAssertion>");
        sampler("/a", "", &element)
    };
    check(&[
        (
            of(
                "RegexExtractor",
                &[
                    ("RegexExtractor.refname", "t"),
                    ("RegexExtractor.regex", "id=\"(.+?)\""),
                    ("RegexExtractor.template", "$1$"),
                    ("RegexExtractor.default", "none"),
                ],
            ) + &get("/b/${t}"),
            &["regex: ", "group: 1", "default: \"none\"", "/b/${t}"],
            &[],
        ),
        (
            of(
                "JSONPostProcessor",
                &[
                    ("JSONPostProcessor.referenceNames", "t;u"),
                    ("JSONPostProcessor.jsonPathExprs", "$.token;$..id"),
                ],
            ),
            &["t: {json: \"/token\", default: \"\"}"],
            &["'$..id' names no single place"],
        ),
        (
            of(
                "BoundaryExtractor",
                &[
                    ("BoundaryExtractor.refname", "t"),
                    ("BoundaryExtractor.lboundary", "id="),
                    ("BoundaryExtractor.rboundary", ";"),
                ],
            ),
            &["between: "],
            &[],
        ),
        (
            of(
                "HtmlExtractor",
                &[
                    ("HtmlExtractor.refname", "t"),
                    ("HtmlExtractor.expr", "input[name=csrf]"),
                    ("HtmlExtractor.attribute", "value"),
                    ("HtmlExtractor.match_number", "3"),
                ],
            ),
            &["css: \"input[name=csrf]\", attribute: value"],
            &["match 3: its variable has the first"],
        ),
        (of("DurationAssertion", &[("DurationAssertion.duration", "300")]), &["time: <300ms"], &[]),
        (assertion("response_code", "8", "201"), &["status: 201"], &[]),
        (assertion("response_code", "4", "500"), &["get: /a"], &["response_code has to be is not"]),
        (assertion("response_data", "16", "welcome"), &["contains: \"welcome\""], &[]),
        (assertion("response_data", "2", "a.b"), &["matches: \"a.b\""], &[]),
        (assertion("response_data", "20", "error"), &["not: {contains: \"error\"}"], &[]),
        (
            of(
                "JSONPathAssertion",
                &[("JSON_PATH", "$.ok"), ("EXPECTED_VALUE", "true"), ("JSONVALIDATION", "true")],
            ),
            &["json: \"/ok\", equals: "],
            &[],
        ),
    ]);
}

#[test]
fn thread_groups_are_sessions_setup_and_teardown() {
    let login = within(
        threads("SetupThreadGroup", "Before", 1, 0),
        &sampler("/login", &property("HTTPSampler.method", "POST"), ""),
    );
    let groups = within(threads("ThreadGroup", "Buyers", 30, 0), &get("/buy"))
        + &within(threads("ThreadGroup", "Visitors", 70, 0), &get("/look"))
        + &login
        + &within(threads("PostThreadGroup", "After", 1, 0), &get("/bye"));
    let plan = format!(
        "<jmeterTestPlan><hashTree><TestPlan/><hashTree>{groups}</hashTree></hashTree>\
         </jmeterTestPlan>"
    );
    let (yaml, left) = imported(&plan);
    for line in [
        "setup:\n  - post: /login",
        "teardown:\n  - get: /bye",
        "weight: 30",
        "weight: 70",
        "vusers: 100",
    ] {
        assert!(yaml.contains(line), "{line}\n{yaml}");
    }
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn recordings_say_what_had_no_answer_and_keep_their_forms() {
    let entry = |request: &str, response: &str, more: &str| {
        format!("{{\"time\": 5, \"request\": {request}, \"response\": {response}{more}}}")
    };
    let form = r#"{"method": "POST", "url": "http://h/up", "headers": [{"name": "Content-Type",
        "value": "multipart/form-data; boundary=x"}], "postData": {"mimeType":
        "multipart/form-data; boundary=x", "params": [{"name": "a", "value": "b c"}, {"name": "f",
        "fileName": "cat.png", "contentType": "image/png"}]}}"#;
    let get = |url: &str| format!("{{\"method\": \"GET\", \"url\": \"{url}\"}}");
    let entries = [
        entry(form, r#"{"status": 200}"#, ""),
        entry(&get("http://h/missing"), r#"{"status": 404}"#, ""),
        entry(&get("http://h/cached"), r#"{"status": 200}"#, r#", "_fromCache": "disk""#),
        "{\"time\": 0, \"request\": {\"method\": \"GET\", \"url\": \"http://h/blocked\"}, \
         \"response\": {\"status\": 0}}"
            .to_owned(),
        entry(&get("http://other/x"), r#"{"status": 200}"#, ""),
    ];
    let text = format!("{{\"log\": {{\"entries\": [{}]}}}}", entries.join(","));
    let imported = har(text.as_bytes()).unwrap();
    let yaml = imported.to_yaml("a recording");
    parse_any(&yaml).unwrap_or_else(|wrong| panic!("{wrong}\n{yaml}"));
    for line in ["multipart:", "\"a\": \"b c\"", "file: \"cat.png\"", "status: 404"] {
        assert!(yaml.contains(line), "{line}\n{yaml}");
    }
    assert!(!yaml.contains("boundary") && !yaml.contains("cached") || yaml.contains("left out"));
    let left: Vec<&str> = imported.left_out.iter().map(String::as_str).collect();
    assert_eq!(
        left,
        [
            "GET http://h/cached: it came from the cache of the browser",
            "GET http://h/blocked: it was blocked, or failed",
            "GET http://other/x: a scenario has one target, h",
        ]
    );
}
