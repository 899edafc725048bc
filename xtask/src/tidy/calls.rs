//! Calls that a place must not make.

use super::TidyViolation;
use super::code::{RustFile, find_word, is_pure};

const NOT_IN_PURE: [(&str, &str); 12] = [
    ("Instant::now", "take `now` as an argument"),
    ("SystemTime::now", "take `now` as an argument"),
    ("std::net", "sockets belong to the engine"),
    ("std::thread", "threads belong to the engine"),
    ("thread::spawn", "threads belong to the engine"),
    ("std::fs", "return a value and let the cli write it"),
    ("std::env", "take the value as an argument"),
    ("println!", "return a value and let render show it"),
    ("print!", "return a value and let render show it"),
    ("eprintln!", "return a value and let render show it"),
    ("libc::", "system calls belong to the engine"),
    ("tokio::", "pure crates are synchronous"),
];

/// What tests may do: read how many cases are asked for, and print what they measured.
const IN_TESTS: [&str; 2] = ["std::env", "println!"];

/// Render shows fields of the report. Heuristic: these words mean that it is computing instead.
const NOT_IN_RENDER: [&str; 8] = [
    ".sort()",
    ".sort_by(",
    ".sort_unstable()",
    "quantile(",
    "percentile(",
    ".stdev()",
    ".sqrt()",
    "Histogram",
];

/// What puts a document together takes numbers as they are: arithmetic over several is a statistic,
/// or the business of an axis.
const NOT_IN_DOCUMENT: [&str; 8] =
    [".sum()", ".sum::<", ".fold(", ".product()", ".powf(", ".powi(", ".ln()", "midpoint("];

/// Parts of a document that lay out characters, not figures.
const LAYOUT: [&str; 2] = ["document/line.rs", "document/table.rs"];

/// Painters know the document and not each other.
const APART: [(&str, &str); 6] = [
    ("render/src/html/", "crate::text"),
    ("render/src/text/", "crate::html"),
    ("render/src/document/", "crate::text"),
    ("render/src/document/", "crate::html"),
    ("render/src/markdown.rs", "crate::text"),
    ("render/src/markdown.rs", "crate::html"),
];

const UNFINISHED: [&str; 3] = ["todo!", "unimplemented!", "dbg!"];

/// Folders that may hold unsafe code; that of scripts for the stacks of their users alone.
const UNSAFE_IN: [&str; 3] = ["crates/engine/", "crates/script/", "fuzz/"];

const FORBID: &str = "#![forbid(unsafe_code)]";

/// What reads or writes files that the user names beside the one place for each. Files below /proc
/// and a folder of a test are no such files.
const FILES: [(&str, &str); 8] = [
    ("fs::read", "read input files by knee_engine::input"),
    ("fs::read_to_string", "read input files by knee_engine::input"),
    ("File::open", "read input files by knee_engine::input"),
    ("from_pem_file", "read input files by knee_engine::input"),
    ("pem_file_iter", "read input files by knee_engine::input"),
    ("fs::write", "write output files by whole_file"),
    ("File::create", "write output files by whole_file"),
    ("thread::spawn", "it panics where there is no thread: use thread::Builder"),
];

/// Files of tests alone, whose names do not say so to the scanner.
const OF_TESTS: [&str; 1] = ["_tests.rs"];

/// Crates whose files the user names.
const WITH_FILES: [&str; 3] = ["crates/cli/src/", "crates/fleet/src/", "crates/engine/src/"];

/// Calls that pass by the one place for input files, output files and threads.
fn beside_the_one_place(code: &RustFile) -> Vec<TidyViolation> {
    let mut broken = Vec::new();
    let has_files = WITH_FILES.iter().any(|folder| code.path.starts_with(folder));
    if !has_files || OF_TESTS.iter().any(|end| code.path.ends_with(end)) {
        return broken;
    }
    // The engine's own files are the kernel's and the terminal.
    let in_engine = code.path.starts_with("crates/engine/");
    for (line, text) in code.product_lines() {
        let is_of_kernel = code.lines[line - 1].contains("/proc/");
        for (call, remedy) in FILES {
            let is_file = call.starts_with("fs::") || call.starts_with("File::");
            let is_free = is_file && (in_engine || is_of_kernel);
            if !is_free && find_word(text, call).is_some() {
                let remedy = format!("{call}: {remedy}");
                broken.push(TidyViolation::at(&code.path, line, "one place", remedy));
            }
        }
    }
    broken
}

/// Violations in a file.
pub fn check(code: &RustFile) -> Vec<TidyViolation> {
    let mut broken = beside_the_one_place(code);
    let mut report = |line, rule, remedy: String| {
        broken.push(TidyViolation::at(&code.path, line, rule, remedy));
    };
    let no_unsafe = !UNSAFE_IN.iter().any(|folder| code.path.starts_with(folder));
    if no_unsafe && is_crate_root(&code.path) && !code.bare.iter().any(|l| l.contains(FORBID)) {
        report(1, "unsafe", format!("say {FORBID}: unsafe code belongs to the engine"));
    }
    if is_pure(&code.path) {
        for (i, line) in code.bare.iter().enumerate() {
            for (call, remedy) in NOT_IN_PURE {
                if find_word(line, call).is_some() && !(code.test[i] && IN_TESTS.contains(&call)) {
                    let remedy = format!("{call} has no place in a pure crate: {remedy}");
                    report(i + 1, "banned call", remedy);
                }
            }
        }
    }
    for (line, text) in code.product_lines() {
        if no_unsafe && find_word(text, "unsafe").is_some() {
            report(line, "unsafe", "put it into the engine behind a safe function".into());
        }
        for word in UNFINISHED {
            if find_word(text, word).is_some() {
                let remedy = format!("{word} does not land: finish it or leave it out");
                report(line, "unfinished", remedy);
            }
        }
        if code.path.starts_with("crates/render/src/") {
            for call in NOT_IN_RENDER.iter().filter(|call| find_word(text, call).is_some()) {
                let remedy = format!("{call} computes: make the number a field of the report");
                report(line, "render shows", remedy);
            }
            for (rule, remedy) in in_render(&code.path, text) {
                report(line, rule, remedy);
            }
        }
    }
    broken
}

/// What a line of render must not do where it stands.
fn in_render(path: &str, text: &str) -> Vec<(&'static str, String)> {
    let mut broken = Vec::new();
    let is_layout = LAYOUT.iter().any(|file| path.ends_with(file));
    if path.contains("/document/") && !is_layout {
        let calls = NOT_IN_DOCUMENT.iter();
        for call in calls.filter(|call| find_word(text, call).is_some()) {
            let remedy = format!("{call} computes: show a field of the report, or ask the axis");
            broken.push(("render shows", remedy));
        }
    }
    for (place, named) in APART {
        if path.contains(place) && find_word(text, named).is_some() {
            let remedy =
                format!("{named} is another painter: put what both need into the document");
            broken.push(("painters apart", remedy));
        }
    }
    broken
}

fn is_crate_root(path: &str) -> bool {
    path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs")
}

#[cfg(test)]
mod tests {
    use super::super::tests::broken_by;

    /// What is checked, a file, its text, and how many rules it breaks.
    fn calls() -> Vec<(&'static str, &'static str, &'static str, usize)> {
        let core = "crates/core/src/time.rs";
        let render = "crates/render/src/text.rs";
        let engine = "crates/engine/src/clock.rs";
        let cli = "crates/cli/src/stdio.rs";
        vec![
            ("core reads no clock", core, "fn f() { Instant::now(); }", 1),
            ("the engine does", engine, "fn f() { Instant::now(); }", 0),
            ("nor the time of day", core, "fn f() { std::time::SystemTime::now(); }", 1),
            ("a comment is not a call", core, "// Instant::now()", 0),
            ("nor is a string", core, "fn f() { g(\"Instant::now\"); }", 0),
            ("a similar name is not it", core, "fn f() { MyInstant::now(); }", 0),
            ("no sockets", core, "use std::net::TcpStream;", 1),
            ("no threads", core, "use std::thread;", 1),
            ("no printing", core, "fn f() { println!(\"\"); }", 1),
            ("nor to standard error", core, "fn f() { eprintln!(\"\"); }", 1),
            ("write! is fine", core, "fn f() { writeln!(o, \"\"); }", 0),
            ("no system calls", core, "fn f() { libc::getpid(); }", 1),
            ("no unsafe", core, "fn f() { unsafe { g() } }", 1),
            ("no unsafe in render", render, "fn f() { unsafe { g() } }", 1),
            ("unsafe in the engine", engine, "fn f() { unsafe { g() } }", 0),
            ("the lint's name is not unsafe", core, "#![deny(unsafe_code)]", 0),
            ("input in one place", cli, "fn f() { fs::read(p); }", 1),
            ("the kernel's files", cli, "fn f() { fs::read(\"/proc/stat\"); }", 0),
            ("output in one place", cli, "fn f() { File::create(p); }", 1),
            ("threads are refused", engine, "fn f() { thread::spawn(g); }", 1),
            ("unfinished", engine, "fn f() { todo!() }", 1),
            ("debugging", engine, "fn f() { dbg!(1); }", 1),
            ("a test may", engine, "#[cfg(test)]\nmod tests {\n fn f() { dbg!(1); }\n}", 0),
        ]
    }

    /// The same of documents and their painters.
    fn calls_that_show() -> Vec<(&'static str, &'static str, &'static str, usize)> {
        let core = "crates/core/src/time.rs";
        let render = "crates/render/src/text.rs";
        let document = "crates/render/src/document/run.rs";
        let lines = "crates/render/src/document/line.rs";
        let page = "crates/render/src/html/page.rs";
        vec![
            ("a document adds nothing up", document, "fn f() { v.iter().sum() }", 1),
            ("an axis may", "crates/render/src/plot/scale.rs", "fn f() { v.fold(0.0, g) }", 0),
            ("lines measure words", lines, "fn f() { v.iter().sum() }", 0),
            ("the page knows no text", page, "use crate::text::Text;", 1),
            ("it knows the document", page, "use crate::document::Block;", 0),
            ("render does not sort", render, "fn f() { v.sort(); }", 1),
            ("core does", core, "fn f() { v.sort(); }", 0),
            ("render takes no quantile", render, "fn f() { h.value_at_quantile(0.5); }", 0),
            ("nor builds a histogram", render, "use hdrhistogram::Histogram;", 1),
            ("a field may be called so", render, "fn f() { r.quantiles; }", 0),
        ]
    }

    #[test]
    fn each_call_is_banned_where_it_has_no_place() {
        for (what, path, text, broken) in calls().into_iter().chain(calls_that_show()) {
            let found: Vec<String> = broken_by(path, text);
            let found: Vec<&String> = found.iter().filter(|v| !v.contains("dead file")).collect();
            assert_eq!(found.len(), broken, "{what}: {found:?}");
        }
    }

    #[test]
    fn a_crate_root_forbids_unsafe() {
        let root = "crates/cli/src/main.rs";
        assert_eq!(broken_by(root, "fn main() {}"), ["1: unsafe"]);
        assert_eq!(broken_by(root, "#![forbid(unsafe_code)]\nfn main() {}").len(), 0);
        assert_eq!(broken_by("crates/engine/src/lib.rs", "fn f() {}").len(), 0);
    }
}
