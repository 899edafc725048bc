//! Calls that have no place in some folders.

use super::TidyViolation;
use super::code::RustFile;

/// Crates that only decide: no clock, socket, thread or output.
pub const PURE: [&str; 4] = ["crates/load/", "crates/core/", "crates/scenario/", "crates/sim/"];

const RENDER: &[&str] = &["crates/render/src/"];
const DOCUMENT: &[&str] = &["crates/render/src/document/", "crates/render/src/markdown.rs"];
const TEXT: &[&str] = &["crates/render/src/text/"];
const HTML: &[&str] = &["crates/render/src/html/"];

const ACTING: &[&str] =
    &["crates/cli/src/", "crates/fleet/src/", "crates/engine/src/", "crates/serve/src/"];
/// Crates whose files the user names. The engine's own files are the kernel's and the terminal.
const WITH_FILES: &[&str] = &["crates/cli/src/", "crates/fleet/src/", "crates/serve/src/"];

/// Calls that code below some folders must not make.
struct BannedCalls {
    name: &'static str,
    folders: &'static [&'static str],
    /// Whether tests must not make them either.
    in_tests: bool,
    calls: &'static [&'static str],
    remedy: &'static str,
}

const fn ban(
    name: &'static str,
    folders: &'static [&'static str],
    calls: &'static [&'static str],
    remedy: &'static str,
) -> BannedCalls {
    BannedCalls { name, folders, in_tests: false, calls, remedy }
}

const fn pure(calls: &'static [&'static str], remedy: &'static str) -> BannedCalls {
    BannedCalls { in_tests: true, ..ban("banned call", &PURE, calls, remedy) }
}

const BANNED: &[BannedCalls] = &[
    pure(&["Instant::now", "SystemTime::now"], "take `now` as an argument"),
    pure(&["std::net", "libc::"], "sockets and system calls belong to the engine"),
    pure(&["std::thread", "thread::spawn", "tokio::"], "threads belong to the engine"),
    pure(&["std::fs"], "return a value and let the cli write it"),
    pure(&["print!", "eprintln!"], "return a value and let render show it"),
    // Tests read how many cases they try, and print results.
    ban("banned call", &PURE, &["println!"], "return a value and let render show it"),
    ban("banned call", &PURE, &["std::env"], "take the value as an argument"),
    ban(
        "one place",
        WITH_FILES,
        &["fs::read", "fs::read_to_string", "File::open"],
        "read input files by knee_engine::input",
    ),
    ban(
        "one place",
        ACTING,
        &["from_pem_file", "pem_file_iter"],
        "read input files by knee_engine::input",
    ),
    ban("one place", WITH_FILES, &["fs::write", "File::create"], "write output by whole_file"),
    ban(
        "one place",
        ACTING,
        &["thread::spawn"],
        "it panics where there is no thread: use thread::Builder",
    ),
    ban(
        "render shows",
        RENDER,
        &[
            ".sort()",
            ".sort_by(",
            ".sort_unstable()",
            "value_at_quantile(",
            "quantile(",
            "percentile(",
            ".stdev()",
            ".sqrt()",
            "Histogram",
        ],
        "it computes: make the number a field of the report",
    ),
    ban(
        LAID_OUT,
        &["crates/render/src/document/"],
        &[".sum(", ".sum::<", ".fold(", ".product(", ".powf(", ".powi(", ".ln(", "midpoint("],
        "it computes: show a field of the report, or ask the axis",
    ),
    ban("painters apart", HTML, &["crate::text"], "put what both need into the document"),
    ban("painters apart", TEXT, &["crate::html"], "put what both need into the document"),
    ban("painters apart", DOCUMENT, &["crate::text", "crate::html"], "a document is not painted"),
];

const LAID_OUT: &str = "documents show";
/// Parts of a document that lay out characters, not figures.
const LAYOUT: [&str; 2] = ["document/line.rs", "document/table.rs"];

/// Crates with unsafe code; `script` only for the stacks of its users and QuickJS's values.
const UNSAFE_IN: [&str; 3] = ["crates/engine/", "crates/script/", "fuzz/"];
const FORBID: &str = "forbid(unsafe_code)";

/// Violations in a file.
pub fn check(code: &RustFile) -> Vec<TidyViolation> {
    let mut broken = Vec::new();
    let may_be_unsafe = UNSAFE_IN.iter().any(|folder| code.path.starts_with(folder));
    let is_crate_root = code.path.ends_with("/src/lib.rs") || code.path.ends_with("/src/main.rs");
    if is_crate_root && !may_be_unsafe && code.find(FORBID).next().is_none() {
        let remedy = format!("say #![{FORBID}]: unsafe code belongs to the engine");
        broken.push(TidyViolation::at(&code.path, 1, "unsafe", remedy));
    }
    let is_layout = LAYOUT.iter().any(|file| code.path.ends_with(file));
    for banned in BANNED {
        let is_below = banned.folders.iter().any(|folder| code.path.starts_with(folder));
        if !is_below || (is_layout && banned.name == LAID_OUT) {
            continue;
        }
        for call in banned.calls {
            for token in code.find(call).map(|at| &code.tokens[at]) {
                let is_permitted = token.is_test && !banned.in_tests;
                // The kernel's files are no input.
                let is_of_kernel = || {
                    code.tokens.iter().any(|t| t.line == token.line && t.text.contains("/proc/"))
                };
                if !is_permitted && !is_of_kernel() {
                    let remedy = format!("{call}: {}", banned.remedy);
                    broken.push(TidyViolation::at(&code.path, token.line, banned.name, remedy));
                }
            }
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::super::tests::broken_by;

    #[test]
    fn each_call_is_banned_where_it_has_no_place() {
        let core = "crates/core/src/time.rs";
        let engine = "crates/engine/src/clock.rs";
        let cli = "crates/cli/src/stdio.rs";
        let render = "crates/render/src/text.rs";
        let document = "crates/render/src/document/run.rs";
        let page = "crates/render/src/html/page.rs";
        for (what, path, text, broken) in [
            ("core reads no clock", core, "fn f() { Instant::now(); }", 1),
            ("nor do its tests", core, "#[cfg(test)]\nfn f() { Instant::now(); }", 1),
            ("the engine does", engine, "fn f() { Instant::now(); }", 0),
            ("nor the time of day", core, "fn f() { std::time::SystemTime::now(); }", 1),
            ("a comment is not a call", core, "// Instant::now()", 0),
            ("nor is a string", core, "fn f() { g(\"Instant::now\"); }", 0),
            ("a similar name is not it", core, "fn f() { MyInstant::now(); }", 0),
            ("no sockets", core, "use std::net::TcpStream;", 1),
            ("no threads", core, "use std::thread;", 1),
            ("no printing", core, "fn f() { println!(\"\"); }", 1),
            ("tests print", core, "#[cfg(test)]\nfn f() { println!(\"\"); }", 0),
            ("nor to standard error", core, "fn f() { eprintln!(\"\"); }", 1),
            ("write! is fine", core, "fn f() { writeln!(o, \"\"); }", 0),
            ("no system calls", core, "fn f() { libc::getpid(); }", 1),
            ("input in one place", cli, "fn f() { fs::read(p); }", 1),
            ("the kernel's files", cli, "fn f() { fs::read(\"/proc/stat\"); }", 0),
            ("output in one place", cli, "fn f() { File::create(p); }", 1),
            ("threads are refused", engine, "fn f() { thread::spawn(g); }", 1),
            ("a document adds nothing up", document, "fn f() { v.iter().sum() }", 1),
            ("an axis may", "crates/render/src/plot/scale.rs", "fn f() { v.fold(0.0, g) }", 0),
            ("lines", "crates/render/src/document/line.rs", "fn f() { v.iter().sum() }", 0),
            ("the page knows no text", page, "use crate::text::Text;", 1),
            ("it knows the document", page, "use crate::document::Block;", 0),
            ("render does not sort", render, "fn f() { v.sort(); }", 1),
            ("core does", core, "fn f() { v.sort(); }", 0),
            ("render takes no quantile", render, "fn f() { h.value_at_quantile(0.5); }", 1),
            ("nor builds a histogram", render, "use hdrhistogram::Histogram;", 1),
            ("a field may be called so", render, "fn f() { r.quantiles; }", 0),
        ] {
            let violations = broken_by(path, text);
            assert_eq!(violations.len(), broken, "{what}: {violations:?}");
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
