//! Other people's programs.

use std::path::PathBuf;
use std::process::Command;

/// Where a program is; `None`, and a line that says so, where it is not installed. That is a
/// failure where `CI` is set.
pub fn program(name: &str) -> Option<PathBuf> {
    let found = find(name);
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "{name} is missing");
        println!("skipped: {name} is not installed");
    }
    found
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.extend(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.into_iter().map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// What curl says of these requests, one line each: status, bytes of the body, new connections,
/// version of HTTP.
pub fn curl(options: &[&str]) -> Option<String> {
    let told = "%{http_code} %{size_download} %{num_connects} %{http_version}\\n";
    let mut command = Command::new(program("curl")?);
    command.args(["-sS", "--noproxy", "*", "-w", told]).args(options);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}
