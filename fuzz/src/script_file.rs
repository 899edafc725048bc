//! Any script ends: it is read and tried within its limits, and what is wrong is one line, whose
//! place is in the script.

use knee_engine::sys::clock::thread_cpu_ns;
use knee_load::time::Nanos;
use knee_script::{Failure, ScriptSource, inspect};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Instant;

/// Any bytes.
pub fn check(data: &[u8]) {
    let begin = Instant::now();
    let script = data.to_vec();
    let source = ScriptSource {
        main: "main.js".to_owned(),
        read: Rc::new(move |path| match path {
            "main.js" => Ok(script.clone()),
            "data.json" => Ok(b"[{\"name\":\"a\"}]".to_vec()),
            "lib.js" => Ok(b"export const base = 'http://h';".to_vec()),
            _ => Err("no such file".to_owned()),
        }),
        env: BTreeMap::from([("NAME".to_owned(), "value".to_owned())]),
        memory_max: 4 << 20,
        time_max: Nanos::from_millis(20),
        seed: 1,
        clock: Rc::new(move || Nanos(begin.elapsed().as_nanos() as u64)),
        processor: Rc::new(|| Nanos(thread_cpu_ns())),
        realtime_origin_ns: 1_700_000_000_000_000_000,
    };
    match inspect(&source) {
        Ok(found) => {
            let failures = found.tried.iter().filter_map(|function| function.failure.as_ref());
            failures.for_each(check_line);
            let _ = found.fail_if();
        }
        Err(failure) => {
            // Of a regular expression the file alone is known.
            let message = &failure.message;
            let has_place = failure.at.is_some() || message.ends_with("(in main.js)");
            assert!(!message.starts_with("SyntaxError: ") || has_place, "{failure}");
            check_line(&failure);
        }
    }
}

fn check_line(failure: &Failure) {
    let line = failure.to_string();
    assert!(!line.is_empty() && !line.chars().any(char::is_control), "one line: {line:?}");
    if let Some((file, line, column)) = &failure.at {
        assert!(["main.js", "lib.js"].contains(&&**file) && *line > 0 && *column > 0, "{failure}");
    }
}
