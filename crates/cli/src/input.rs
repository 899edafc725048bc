//! Input files and standard input, each up to a limit; see [`knee_engine::input`]. What scenario
//! files may read: files below their own folder, and the environment.

use crate::failure::{Failure, of_command_line_and};
use crate::whole_file::folder_of;
use knee_engine::error::reason;
use knee_engine::input::{self, Unreadable};
use knee_scenario::{Scenario, ScenarioInputs, parse_scenario};
use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Largest input file, in bytes.
pub const FILE_MAX: u64 = 256 << 20;

/// A file's bytes; `-` is standard input.
pub fn read(file: &str) -> Result<Vec<u8>, Failure> {
    let bytes = match file {
        "-" => input::read_stream(io::stdin().lock(), FILE_MAX),
        path => input::read(path, FILE_MAX),
    };
    bytes.map_err(|unreadable| Failure::argument(file, in_words(unreadable)))
}

/// A file's text; `-` is standard input.
pub fn read_text(file: &str) -> Result<String, Failure> {
    String::from_utf8(read(file)?).map_err(|_| Failure::argument(file, "is not UTF-8 text"))
}

/// The bytes of a file of at most `max` bytes, where standard input cannot be named.
///
/// # Errors
/// One line without the file's name: it cannot be read, is a pipe or a device, or is larger.
pub fn read_file(path: &str, max: u64) -> Result<Vec<u8>, String> {
    input::read(path, max).map_err(String::from)
}

/// A regular file to read from, however long.
///
/// # Errors
/// As [`read_file`].
pub fn open(path: &str) -> Result<File, String> {
    input::open(path).map_err(String::from)
}

/// Why it is not read, and what to do where `-` is standard input.
fn in_words(unreadable: Unreadable) -> String {
    match unreadable {
        Unreadable::Pipe => {
            "is a pipe: expected a regular file; for a pipe give '-' and connect it to standard \
             input"
                .to_owned()
        }
        Unreadable::Because(why) => why,
    }
}

/// The endings of scenario files, and whether no host is called so.
const ENDINGS: [(&str, bool); 6] = [
    (".yaml", true),
    (".yml", true),
    (".json", false),
    (".js", true),
    (".mjs", true),
    (".ts", true),
];

/// Whether the argument that names a URL names a scenario file instead.
pub fn is_scenario(argument: &str) -> bool {
    let lower = argument.to_ascii_lowercase();
    let Some((_, is_clear)) = ENDINGS.iter().find(|(ending, _)| lower.ends_with(ending)) else {
        return false;
    };
    // A URL may end so too, with its scheme or without.
    let is_url = argument.contains("://");
    let could_be_url = argument.contains([':', '?']);
    !is_url && (is_there(argument) || (*is_clear && !could_be_url))
}

/// Whether a file is a script, by its name.
pub fn is_script(file: &str) -> bool {
    let lower = file.to_ascii_lowercase();
    [".js", ".mjs", ".cjs", ".ts"].iter().any(|ending| lower.ends_with(ending))
}

/// Endings of other files, and what reads them.
const READERS: [(&str, &str); 6] = [
    (".har", "is a browser's recording: 'knee import har' makes a scenario of it"),
    (".jmx", "is a plan of JMeter: 'knee import jmeter' makes a scenario of it"),
    (".lua", "is a script of wrk: a scenario does its work; 'knee scenario new' prints one"),
    (".txt", "is a file: 'knee run --targets FILE' reads URLs from it, one a line"),
    (
        ".csv",
        "is a table: 'knee run --targets FILE' reads URLs, one a line; 'knee analyze sweep FILE' \
              reads levels; scenarios read records, under 'data'",
    ),
    (".log", "is a log: 'knee import log' makes a recording of it, which 'knee run' sends again"),
];

/// What an argument is that is a file of another kind than the place of a URL takes, and the command
/// that reads it.
pub fn reader_of(argument: &str) -> Option<&'static str> {
    if argument.contains("://") {
        return None;
    }
    let lower = argument.to_ascii_lowercase();
    let found = READERS.iter().find(|(ending, _)| lower.ends_with(ending));
    // A URL without its scheme may end so too.
    let known = found.filter(|_| !argument.contains([':', '?', '/']) || is_there(argument));
    let unknown = || "is a file: expected a URL, or a scenario FILE.yaml";
    known.map(|(_, reader)| *reader).or_else(|| is_there(argument).then(unknown))
}

/// What a file that is no scenario is, by its content.
fn kind_of(bytes: &[u8]) -> Option<&'static str> {
    let text = String::from_utf8_lossy(bytes);
    let has = |key: &str| {
        let quoted = format!("\"{key}\"");
        text.lines()
            .any(|line| line.starts_with(key) && line[key.len()..].trim_start().starts_with(':'))
            || text.trim_start().starts_with('{') && text.contains(&quoted)
    };
    if has("openapi") || has("swagger") {
        Some("is an OpenAPI description: 'knee import openapi' makes a scenario of it")
    } else if text.contains("\"knee.report/") {
        Some("is a report: 'knee report' shows it, 'knee compare' compares it")
    } else if has("log") && has("entries") {
        Some("is a browser's recording: 'knee import har' makes a scenario of it")
    } else {
        None
    }
}

/// Anything but a directory: reading it says what is wrong with a pipe or a device.
fn is_there(argument: &str) -> bool {
    Path::new(argument).metadata().is_ok_and(|found| !found.is_dir())
}

/// Reads a scenario and the files that it names.
pub fn read_scenario(file: &str) -> Result<Scenario, Failure> {
    let of_file = |wrong: String| Failure::argument(file, wrong);
    let bytes = read_file(file, knee_scenario::FILE_MAX as u64).map_err(of_file)?;
    let unreadable = |e: io::Error| of_file(format!("its folder cannot be read: {e}"));
    let folder = folder_of(Path::new(file)).canonicalize().map_err(unreadable)?;
    parse_scenario(&bytes, file, &mut Folder(folder)).map_err(|wrong| {
        if let Some(kind) = kind_of(&bytes) {
            return Failure::argument(file, kind);
        }
        let secrets = of_command_line_and(&String::from_utf8_lossy(&bytes));
        Failure::input(wrong.0).without_secrets(&secrets)
    })
}

/// Reads files below the folder of a file.
pub fn files_below(file: &str) -> impl FnMut(&str) -> Result<Vec<u8>, String> + use<> {
    let folder = folder_of(Path::new(file)).canonicalize();
    move |name| match &folder {
        Ok(folder) => Folder(folder.clone()).file(name),
        Err(e) => Err(format!("its folder cannot be read: {e}")),
    }
}

/// The folder of a scenario.
struct Folder(PathBuf);

impl Folder {
    /// The path of a file, with all links followed, so that none leads out.
    fn find(&self, name: &str, failed: impl Fn(io::Error) -> String) -> Result<PathBuf, String> {
        let path = self.0.join(name).canonicalize().map_err(failed)?;
        if path.starts_with(&self.0) {
            Ok(path)
        } else {
            Err("is a link out of the folder of the scenario: copy the file".to_owned())
        }
    }
}

impl ScenarioInputs for Folder {
    fn file(&mut self, name: &str) -> Result<Vec<u8>, String> {
        let path = self.find(name, |e| format!("cannot be read: {e}"))?;
        let path = path.to_str().ok_or("is not UTF-8: rename it")?;
        read_file(path, FILE_MAX)
    }

    fn program(&mut self, name: &str) -> Result<(String, String), String> {
        let not_startable = |e: io::Error| format!("cannot be started: {}", reason(&e));
        let path = self.find(name, not_startable)?;
        let about = path.metadata().map_err(not_startable)?;
        if !about.is_file() {
            return Err("is no file: expected a program".to_owned());
        }
        if about.permissions().mode() & 0o111 == 0 {
            return Err(format!("is not executable: run chmod +x {name}"));
        }
        let text = |path: &Path| path.to_str().map(str::to_owned);
        text(&path).zip(text(&self.0)).ok_or_else(|| "is not UTF-8: rename it".to_owned())
    }

    fn variable(&mut self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A folder that goes with the test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let name = format!("knee-scenario-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(path.join("in")).unwrap();
            Scratch(path.canonicalize().unwrap())
        }

        fn write(&self, name: &str, text: &str) -> String {
            let path = self.0.join(name);
            fs::write(&path, text).unwrap();
            path.display().to_string()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn urls_are_no_files() {
        for (argument, expected) in [
            ("shop.yaml", true),
            ("a/b/shop.YML", true),
            ("shop.json", false),
            ("http://h/shop.yaml", false),
            ("127.0.0.1:8080/openapi.yaml", false),
            ("h/?f=a.yaml", false),
            ("-", false),
            ("yaml", false),
        ] {
            assert_eq!(is_scenario(argument), expected, "{argument}");
        }
        let folder = Scratch::new("json");
        assert!(is_scenario(&folder.write("shop.json", "")));
    }

    #[test]
    fn files_are_read_below_the_folder_alone() {
        let folder = Scratch::new("files");
        folder.write("in/body.txt", "inside");
        folder.write("secret", "outside");
        let link = |name: &str, to: &str| {
            std::os::unix::fs::symlink(folder.0.join(to), folder.0.join("in").join(name)).unwrap();
        };
        link("good", "in/body.txt");
        link("bad", "secret");
        link("up", "");
        let of = |file: &str| {
            let text = format!(
                "target: http://h\nsessions: {{s: {{steps: [{{post: /, body_file: '{file}'}}]}}}}"
            );
            read_scenario(&folder.write("in/s.yaml", &text)).map(|s| s.requests[0].body.to_vec())
        };
        assert_eq!(of("body.txt").unwrap(), b"inside");
        assert_eq!(of("good").unwrap(), b"inside");
        for (file, want) in [
            ("bad", "'bad' is a link out of the folder of the scenario: copy the file"),
            ("up/secret", "is a link out of the folder"),
            ("../secret", "is not below the folder of the scenario"),
            ("/etc/hosts", "is not below the folder of the scenario"),
            ("none", "'none' cannot be read: No such file"),
        ] {
            let line = of(file).unwrap_err().line;
            assert!(line.contains(want), "{file}: {line}");
            assert!(line.contains("/in/s.yaml:2:45: "), "{file}: {line}");
        }
    }
}
