//! Where things are in this repository, and what a shell script would do with them: run programs,
//! make folders, write and copy files. An error says which of them it was.

use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask has a parent").to_path_buf()
}

/// Cargo's target directory.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// A source file by its path from the root, with `/` between the parts.
#[derive(Clone, Debug, PartialEq)]
pub struct RepoFile {
    /// Path from the repository's root.
    pub path: String,
    /// What it says.
    pub text: String,
}

/// The files of the repository, sorted by path; those that are neither Rust nor Markdown without
/// their text.
pub fn sources(root: &Path) -> Result<Vec<RepoFile>, String> {
    let folder = root.display().to_string();
    let list = ["-C", &folder, "ls-files", "--cached", "--others", "--exclude-standard"];
    let list = output("git", &list)?;
    // What was deleted since the last commit is listed too.
    let paths = list.lines().filter(|path| root.join(path).is_file());
    let file = |path: &str| {
        let is_read = path.ends_with(".rs") || path.ends_with(".md");
        let text = if is_read {
            fs::read_to_string(root.join(path)).map_err(|e| format!("{path}: {e}"))?
        } else {
            String::new()
        };
        Ok(RepoFile { path: path.to_owned(), text })
    };
    let mut files: Vec<RepoFile> = paths.map(file).collect::<Result<_, String>>()?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// What `cargo metadata` says of the workspace's crates.
pub fn metadata() -> Result<Value, String> {
    let args = ["metadata", "--no-deps", "--format-version", "1"];
    let run = cargo_command(&args, &[]).output().map_err(|e| format!("cargo: {e}"))?;
    succeeded(run.status, "cargo", &args)?;
    serde_json::from_slice(&run.stdout).map_err(|e| format!("cargo metadata: {e}"))
}

/// Runs cargo in the repository.
pub fn cargo(args: &[&str], env: &[(&str, &str)]) -> Result<(), String> {
    let status = cargo_command(args, env).status().map_err(|e| format!("cargo: {e}"))?;
    succeeded(status, "cargo", args)
}

fn cargo_command(args: &[&str], env: &[(&str, &str)]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root()).envs(env.iter().copied());
    command
}

/// Environment in which cargo compiles this workspace with clippy, as `cargo clippy` does, and a
/// warning is an error. What is built is linted in passing, so that no crate is built twice.
pub const LINTED: &[(&str, &str)] = &[
    ("RUSTC_WORKSPACE_WRAPPER", "clippy-driver"),
    ("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__"),
];

/// Tests in a program of their own.
pub struct TestProgram {
    /// The name of the crate or of the file that they are built from.
    pub name: String,
    /// Where the program is.
    pub program: PathBuf,
    /// The folder of their package, where they expect to run.
    pub folder: PathBuf,
}

/// Builds what `cargo test` with these arguments would run, and runs nothing.
pub fn built_tests(args: &[&str], env: &[(&str, &str)]) -> Result<Vec<TestProgram>, String> {
    let args = [&["test", "--no-run", "--quiet", "--message-format=json"], args].concat();
    let built = cargo_command(&args, env).stderr(Stdio::inherit()).output();
    let built = built.map_err(|e| format!("cargo: {e}"))?;
    succeeded(built.status, "cargo", &args)?;
    let lines = String::from_utf8_lossy(&built.stdout);
    let tests = lines.lines().filter_map(|line| {
        let artifact: Value = serde_json::from_str(line).ok()?;
        let is_test = artifact["profile"]["test"] == true;
        let program = artifact["executable"].as_str().filter(|_| is_test)?.into();
        let manifest = Path::new(artifact["manifest_path"].as_str()?);
        let name = artifact["target"]["name"].as_str()?.to_owned();
        Some(TestProgram { name, program, folder: manifest.parent()?.to_path_buf() })
    });
    Ok(tests.collect())
}

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

/// What a program prints, without the space around it. An error ends with the program's last line.
pub fn output(program: impl AsRef<OsStr>, args: &[&str]) -> Result<String, String> {
    let name = program.as_ref().display().to_string();
    let run = Command::new(&program).args(args).output();
    let Output { status, stdout, stderr } = run.map_err(|e| format!("{name}: {e}"))?;
    succeeded(status, &name, args).map_err(|why| {
        let stderr = String::from_utf8_lossy(&stderr);
        stderr.lines().last().map_or(why.clone(), |line| format!("{why}: {}", line.trim()))
    })?;
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
