//! `handleSummary`: what a script makes of the results of its run.

use crate::failure::Failure;
use crate::script::Script;
use crate::shared::{Clock, Iteration, Next, UserSetup};
use crate::user::User;
use knee_load::rng;
use knee_load::session::ScriptPlan;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// The name of the exported function.
pub const HANDLE_SUMMARY: &str = "handleSummary";

/// Calls `handleSummary` with the `results` of a run, as JSON. `clocks`: the time, and the processor
/// time of the calling thread.
///
/// Returns texts by where they go: `stdout`, `stderr`, or the path of a file.
///
/// # Errors
/// It threw, went over a limit of the plan, sent a request, or returned something else than texts.
pub fn summarize(
    plan: &Arc<ScriptPlan>,
    results: &str,
    clocks: [Clock; 2],
    realtime_origin_ns: u64,
) -> Result<BTreeMap<String, String>, Failure> {
    let [clock, processor] = clocks;
    let mut user = User::new(UserSetup {
        script: Arc::new(Script::new(Arc::clone(plan))),
        number: 0,
        rng: rng::stream(0, rng::SCRIPTS),
        clock: Rc::clone(&clock),
        processor,
        origins: Rc::new([]),
        memory_max: plan.memory_max,
        read: None,
    })?;
    let iteration = Iteration {
        function: HANDLE_SUMMARY.to_owned(),
        kind: usize::MAX,
        data: results.into(),
        wants_result: true,
        realtime_origin_ns,
        ..Iteration::default()
    };
    let mut due = clock();
    let mut next = user.begin(iteration, due);
    let result = loop {
        if user.take_request().is_some() {
            user.stop();
            return Err(Failure::new("handleSummary sends a request: it can only return texts"));
        }
        match next {
            Next::Over(result) => break result?,
            Next::Wait(until) => due = due.max(until),
            Next::Turn => due = due.max(user.now()),
        }
        next = user.advance(due);
    };
    let wrong = |what: String| Failure::new(format!("handleSummary: {what}"));
    let places: Map<String, Value> = match result.as_deref().map(serde_json::from_str) {
        None => return Ok(BTreeMap::new()),
        Some(Ok(Value::Object(places))) => places,
        Some(_) => return Err(wrong("expected an object such as {'summary.json': TEXT}".into())),
    };
    let text = |(place, value): (String, Value)| match value {
        Value::String(text) => Ok((place, text)),
        _ => Err(wrong(format!("'{place}' is no text: JSON.stringify() makes one"))),
    };
    places.into_iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_load::time::Nanos;
    use std::cell::Cell;

    fn summary(script: &str, results: &str) -> Result<BTreeMap<String, String>, String> {
        let plan = ScriptPlan {
            main: "main.js".to_owned(),
            files: [("main.js".to_owned(), script.as_bytes().to_vec())].into(),
            memory_max: 16 << 20,
            time_max: Nanos::from_millis(200),
            options: "{}".to_owned(),
            ..ScriptPlan::default()
        };
        // Each look at the clock takes a millisecond.
        let ms = Cell::new(0);
        let clock: Clock = Rc::new(move || Nanos::from_millis(ms.replace(ms.get() + 1)));
        summarize(&Arc::new(plan), results, [Rc::clone(&clock), clock], 0)
            .map_err(|failure| failure.to_string())
    }

    #[test]
    fn what_it_returns_are_texts_by_their_places() {
        let results = r#"{"metrics":{"http_reqs":{"type":"counter","values":{"count":3}}}}"#;
        for (body, want) in [
            (
                "return { 'a.json': JSON.stringify(data), stdout: `${data.metrics.http_reqs.values.count}` }",
                Ok(vec![("a.json", results), ("stdout", "3")]),
            ),
            ("return {}", Ok(vec![])),
            ("", Ok(vec![])),
            ("return { a: 5 }", Err("'a' is no text")),
            ("return 'text'", Err("expected an object")),
            ("return [1]", Err("expected an object")),
            ("throw new Error('no')", Err("no")),
            ("while (true) {}", Err("")),
            ("http.get('http://h/'); return {}", Err("sends a request")),
            ("return new Promise(() => 0)", Err("nothing settles")),
            (
                "return { stdout: textSummary(data) }",
                Ok(vec![("stdout", "  http_reqs......................: 3\n")]),
            ),
        ] {
            let script = format!(
                "import http from 'k6/http';\n\
                 import {{ textSummary }} from 'https://jslib.k6.io/k6-summary/0.0.2/index.js';\n\
                 export default function () {{}}\n\
                 export function handleSummary(data) {{ {body} }}"
            );
            match (summary(&script, results), want) {
                (Ok(places), Ok(want)) => {
                    let places: Vec<_> = places.iter().map(|(k, v)| (&**k, &**v)).collect();
                    assert_eq!(places, want, "{body}");
                }
                (Err(why), Err(want)) => assert!(why.contains(want), "{body}: {why}"),
                (got, want) => panic!("{body}: {got:?}, expected {want:?}"),
            }
        }
    }
}
