//! What a shell script would do: run programs, make folders, write and copy files. An error says
//! which of them it was.

use crate::repo;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitStatus, Output};

/// Runs cargo in the repository.
pub fn cargo(args: &[&str], env: &[(&str, &str)]) -> Result<(), String> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(repo::root()).envs(env.iter().copied());
    let status = command.status().map_err(|e| format!("cargo: {e}"))?;
    succeeded(status, "cargo", args)
}

/// Environment in which cargo compiles this workspace with clippy, as `cargo clippy` does, and a
/// warning is an error. What is built is linted in passing, so that no crate is built twice.
pub const LINTED: &[(&str, &str)] = &[
    ("RUSTC_WORKSPACE_WRAPPER", "clippy-driver"),
    ("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__"),
];

/// Prints a command line and runs it.
pub fn step(program: &str, args: &[&str], folder: &Path) -> Result<(), String> {
    println!("{program} {}", args.join(" "));
    let status = Command::new(program)
        .args(args)
        .current_dir(folder)
        .status()
        .map_err(|e| format!("{program}: {e}"))?;
    succeeded(status, program, args)
}

/// What a program prints, without the space around it.
pub fn output(program: impl AsRef<OsStr>, args: &[&str]) -> Result<String, String> {
    let name = program.as_ref().display().to_string();
    let run = Command::new(&program).args(args).output();
    let Output { status, stdout, .. } = run.map_err(|e| format!("{name}: {e}"))?;
    succeeded(status, &name, args)?;
    Ok(String::from_utf8_lossy(&stdout).trim().to_owned())
}

fn succeeded(status: ExitStatus, program: &str, args: &[&str]) -> Result<(), String> {
    if status.success() { Ok(()) } else { Err(format!("{program} {}: {status}", args.join(" "))) }
}

/// Makes a folder and those above it.
pub fn make(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))
}

/// Writes a file, and makes its folder.
pub fn write(file: &Path, content: impl AsRef<[u8]>) -> Result<(), String> {
    file.parent().map_or(Ok(()), make)?;
    fs::write(file, content).map_err(|e| format!("{}: {e}", file.display()))
}

/// Copies a file, and makes the folder that it goes to.
pub fn copy(from: &Path, to: &Path) -> Result<(), String> {
    to.parent().map_or(Ok(()), make)?;
    fs::copy(from, to).map(|_| ()).map_err(|e| format!("{}: {e}", from.display()))
}
