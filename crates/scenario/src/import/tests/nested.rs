//! Steps in one another, several sessions, and all that a request may have.

use crate::import::collect::{Collector, SourceRequest};
use crate::import::*;
use knee_load::session::Deal;
use knee_load::time::Nanos;

fn value(name: &str) -> ImportedText {
    ImportedText::value(name)
}

fn get(url: ImportedText) -> SourceRequest {
    SourceRequest { method: "GET".to_owned(), url, ..SourceRequest::default() }
}

fn url(path: &str, name: &str) -> ImportedText {
    let mut url = ImportedText::from(format!("http://h{path}"));
    url.append(&value(name));
    url
}

fn equal(left: ImportedText, right: &str) -> ImportedCondition {
    ImportedCondition::Compare(left, ImportedRelation::Equal, right.into())
}

fn login() -> SourceRequest {
    let pair = |name: &str, json| (name.to_owned(), json);
    let extract = |name: &str, source| ImportedExtract {
        name: name.to_owned(),
        source,
        default: (name == "next").then(String::new),
    };
    let mut draft = get("http://h/login".into());
    draft.method = "POST".to_owned();
    draft.content = ImportedBody::JsonValue(ImportedJson::Object(vec![
        pair("name", ImportedJson::Text(value("users.name"))),
        pair("id", ImportedJson::Value(value("users.id"))),
        pair("tags", ImportedJson::List(vec![ImportedJson::Plain("1".to_owned())])),
    ]));
    draft.expect = ImportedExpect {
        status: vec!["200".to_owned(), "201".to_owned()],
        time: Some(Nanos::from_millis(300)),
        headers: vec![("X-A".to_owned(), ImportedMatch::Contains("b".into()))],
        body: vec![
            (Some("/n".to_owned()), ImportedMatch::AtLeast("2".into())),
            (None, ImportedMatch::Not(Box::new(ImportedMatch::Contains("no".into())))),
        ],
    };
    let css = ImportedSource::Css {
        selector: "input[name=csrf]".to_owned(),
        attribute: Some("value".to_owned()),
    };
    draft.extract = vec![
        extract("token", ImportedSource::Json("/token".to_owned())),
        extract("csrf", css),
        extract("next", ImportedSource::Header("Location".to_owned())),
    ];
    draft.timeout = Some(Nanos::from_secs(5));
    draft.goes_on = true;
    draft
}

/// Everything at once.
fn all() -> Imported {
    let mut all = Collector::default();
    assert!(all.request(SourceRequest { extract: login().extract, ..get("http://h/a".into()) }));
    all.end_setup();
    assert_eq!(
        all.data("users", "../users.csv", Deal::Random),
        Some(("users".into(), "users.csv".into()))
    );
    all.open();
    assert!(all.request(login()));
    all.open();
    all.know("i");
    assert!(all.request(get(url("/items/", "i"))));
    all.think_law("uniform(1s,3s)");
    let steps = all.close();
    let times = ImportedRepeat::Times("3".into());
    all.push(ImportedStep::Repeat { times, variable: Some("i".to_owned()), steps });
    let steps = all.close();
    all.push(ImportedStep::Group { name: "a: b".to_owned(), steps });
    all.open();
    let part = |content| ImportedPart { content, media: None, filename: None };
    all.request(SourceRequest {
        method: "POST".to_owned(),
        content: ImportedBody::Multipart(vec![
            ("a".to_owned(), part(Ok(value("token")))),
            ("b".to_owned(), part(Err("cat.png".to_owned()))),
        ]),
        ..get("/upload".into())
    });
    let steps = all.close();
    let not = ImportedCondition::Not(Box::new(equal(value("csrf"), "it's")));
    let condition = ImportedCondition::Any(vec![equal(value("next"), ""), not]);
    all.push(ImportedStep::When { condition, steps, otherwise: Vec::new() });
    all.push(ImportedStep::Set(vec![("both".to_owned(), url("/", "setup.token"))]));
    all.end_session("buyer", 3);
    assert!(!all.request(get(url("/", "token"))), "it is of the other session");
    assert!(all.request(get(url("/", "env(PATH)"))));
    all.end_session("buyer", 1);
    all.load.stages_of_users = true;
    let stage = |from, to| ImportedStage { from, to, length: Nanos::from_secs(60) };
    all.load.stages = vec![stage(0.0, 20.0), stage(20.0, 20.0)];
    all.finish("none").unwrap()
}

#[test]
fn everything_is_written() {
    assert_eq!(all().to_yaml("a test"), include_str!("nested.yaml"));
}

#[test]
fn steps_are_bounded() {
    let mut all = Collector::default();
    for _ in 0..20 {
        all.open();
        all.request(get("http://h/".into()));
    }
    for _ in 0..20 {
        let (times, steps) = (ImportedRepeat::Times("2".into()), all.close());
        all.push(ImportedStep::Repeat { times, variable: None, steps });
    }
    let imported = all.finish("none").unwrap();
    assert_eq!(imported.left_out, ["steps more than 8 levels deep (12 times)"]);
}
