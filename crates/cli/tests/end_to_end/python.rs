//! The Python package: its tests, which run this binary, and its types.

use crate::support::{STATE, program};
use std::path::Path;
use std::process::Command;

/// Runs a program of Python's in the folder of the package; skipped where it is not installed.
fn succeeds(name: &str, arguments: &[&str]) {
    let Some(program) = program(name) else {
        return;
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python");
    let folder = folder.canonicalize().unwrap();
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let output = Command::new(program)
        .args(arguments)
        .current_dir(&folder)
        .env("KNEE_BIN", env!("CARGO_BIN_EXE_knee"))
        .env("PYTHONPATH", &folder)
        .env("PYTHONPYCACHEPREFIX", &cache)
        .env("MYPY_CACHE_DIR", &cache)
        .env("XDG_DATA_HOME", STATE)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn python_package_passes_its_tests() {
    succeeds("pytest-3", &["-q", "-rs", "-p", "no:cacheprovider"]);
}

#[test]
fn python_package_is_typed() {
    succeeds("mypy", &["knee"]);
}
