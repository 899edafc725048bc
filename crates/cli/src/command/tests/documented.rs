//! The documentation agrees with the program. Pages that are made from the code are up to date, and
//! each example is a command line that knee accepts.

use super::parse;
use crate::command::raw::RawArgs;
use clap::{Arg, Command, CommandFactory};
use knee_core::report::codes::chapters;
use knee_core::trial::statistics::{Compared, STATISTICS};
use knee_engine::exchange::success::{SUCCESS, SuccessRules};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Environment variables that the program reads, as the sources name them.
const VARIABLES: &[(&str, &str)] = &[
    ("KNEE_HISTORY", "File of the history"),
    ("KNEE_TOKEN", "Token of a service or an observer, where no option gives one"),
    ("KNEE_PARENT", "Id of the process that started knee: its end ends knee as SIGTERM does"),
    (
        "KNEE_CONFINED",
        "Limits of a process, which `python -m knee.mcp` sets for those that it starts",
    ),
    ("XDG_DATA_HOME", "Directory of `knee/history.db`; default: `~/.local/share`"),
    ("XDG_STATE_HOME", "Directory of `knee/margins.json`; default: `~/.local/state`"),
    ("HOME", "Home directory, for the two defaults above"),
    ("NO_COLOR", "Not empty: no colour anywhere (no-color.org)"),
    ("COLUMNS", "Width of the text where output is not a terminal"),
    ("TERM", "`dumb`: no live view"),
    ("NATS_URL", "Where NATS is, where `--nats` does not say it"),
    ("NATS_USER, NATS_PASSWORD, NATS_TOKEN", "Log in to NATS, where no option says how"),
    ("NATS_CREDS, NATS_NKEY", "Files to log in with, where no option names one"),
    ("NATS_CA, NATS_CERT, NATS_KEY", "PEM files for TLS to NATS, where no option names one"),
    ("NATS_CONTEXT", "Context of the `nats` tool, where `--nats-context` does not name one"),
    ("XDG_CONFIG_HOME", "Directory of `nats/context`; default: `~/.config`"),
    (
        "OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
        "Collector of OpenTelemetry, where `--otlp env` asks for it",
    ),
    (
        "OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_METRICS_HEADERS",
        "Headers of what `--otlp` sends: `NAME=VALUE,NAME=VALUE`, percent-encoded",
    ),
    (
        "OTEL_METRIC_EXPORT_INTERVAL, OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME",
        "Milliseconds between pushes of `--otlp` (default: 5000), and what it says of itself",
    ),
    ("LC_ALL, LC_CTYPE, LANG", "The first one set decides: UTF-8 or plain ASCII in the text"),
];

const MADE: &str = "<!-- Made by `cargo xtask docs`; do not edit. -->\n\n";

/// Compares a page with what it should be, or writes it where that is asked for.
fn up_to_date(page: &str, expected: &str) {
    let path = root().join("docs/src/reference").join(page);
    if std::env::var_os("KNEE_WRITE_DOCS").is_some() {
        fs::write(&path, expected).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "{page} is stale: run `cargo xtask docs`");
}

/// The chapters of the book for programs that read it (llmstxt.org): each with its first paragraph.
#[test]
fn the_list_of_chapters_is_up_to_date() {
    let book = root().join("docs/src");
    let read = |page: &str| fs::read_to_string(book.join(page)).unwrap();
    let first = |page: &str| {
        let text = read(page);
        let mut paragraphs = text.split("\n\n").map(|text| text.replace('\n', " "));
        let is_text = |text: &String| text.starts_with(|c: char| c.is_alphanumeric() || c == '`');
        paragraphs.find(is_text).unwrap_or_default()
    };
    let mut list = format!("# knee\n\n> {}\n", first("index.md"));
    for line in read("SUMMARY.md").lines().skip(1) {
        let link = line.trim_start_matches("- ").strip_prefix('[').and_then(|l| l.split_once("]("));
        match (link, line.strip_prefix("# ")) {
            (Some((title, page)), _) => {
                let page = page.trim_end_matches(')');
                let _ = writeln!(list, "- [{title}]({page}): {}", first(page));
            }
            (None, Some(part)) => {
                let _ = writeln!(list, "\n## {part}\n");
            }
            (None, None) => {}
        }
    }
    let list = list.replacen("- [What", "\n## Begin\n\n- [What", 1);
    up_to_date("../llms.txt", &list);
}

#[test]
fn the_page_of_successes_is_up_to_date() {
    let mut page = format!("# What makes an operation ok\n\n{MADE}");
    page.push_str(
        "An operation is `ok` where its answer is all of this, and nothing else makes it so. \
         Otherwise it has another outcome, and where a rule was broken, the report names the rule.\n",
    );
    for SuccessRules { of, rules } in SUCCESS {
        let _ = writeln!(page, "\n## {of}\n\n| what holds | by |\n| --- | --- |");
        for (rule, section) in *rules {
            let _ = writeln!(page, "| {rule} | {section} |");
        }
    }
    page.push_str(
        "\nThe body of a call of gRPC and the records of other types of DNS are not decoded. A \
         compressed message is not decompressed.\n",
    );
    up_to_date("success.md", &page);
}

#[test]
fn the_page_of_options_is_up_to_date() {
    let mut knee = RawArgs::command().term_width(100);
    knee.build();
    let mut page = format!("# Commands and options\n\n{MADE}");
    page.push_str("| command | purpose |\n| --- | --- |\n");
    let commands = all(&knee);
    for command in &commands {
        let name = command.get_display_name().unwrap_or_default();
        let about = command.get_about().map(ToString::to_string);
        let spelt = name.replace('-', " ");
        let _ = writeln!(page, "| [`{spelt}`](#{name}) | {} |", about.unwrap_or_default());
    }
    for command in &commands {
        section(&mut page, command);
    }
    up_to_date("options.md", &page);
}

/// Commands that do something, in the order of the help.
fn all(command: &Command) -> Vec<Command> {
    let mut found = Vec::new();
    for part in command.get_subcommands() {
        if part.is_hide_set() || part.get_name() == "help" {
            continue;
        }
        if part.get_arguments().any(|a| a.get_id() != "help") || !part.has_subcommands() {
            found.push(part.clone());
        }
        found.extend(all(part));
    }
    found
}

fn section(page: &mut String, command: &Command) {
    let name = command.get_display_name().unwrap_or_default();
    let _ = write!(page, "\n## {}\n\n", name.replace('-', " "));
    let about = command.get_long_about().or(command.get_about());
    for paragraph in about.map(ToString::to_string).unwrap_or_default().split("\n\n") {
        let _ = write!(page, "{}\n\n", escaped(paragraph.trim()));
    }
    let usage = command.clone().render_usage().to_string();
    let _ = write!(page, "```text\n{}\n```\n", usage.trim());
    let shown = |a: &&Arg| !a.is_hide_set() && a.get_id() != "help";
    let mut heading = None;
    for argument in command.get_arguments().filter(shown) {
        if heading != Some(argument.get_help_heading()) {
            heading = Some(argument.get_help_heading());
            let title = argument.get_help_heading().unwrap_or("Arguments and options");
            let _ = write!(page, "\n**{title}**\n\n");
        }
        let _ = writeln!(page, "- {}", described(argument));
    }
}

fn described(argument: &Arg) -> String {
    let values = argument.get_value_names().unwrap_or_default();
    let takes = argument.get_action().takes_values();
    let values: Vec<String> = values.iter().map(|v| format!("<{v}>")).collect();
    let long = argument.get_long().map(|l| format!("--{l}"));
    let short = argument.get_short().map(|s| format!("-{s}"));
    let mut names: Vec<String> = short.into_iter().chain(long).collect();
    let name = if names.is_empty() {
        values.join(" ")
    } else {
        let names = std::mem::take(&mut names).join(", ");
        if takes { format!("{names} {}", values.join(" ")) } else { names }
    };
    let help = argument.get_long_help().or(argument.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let mut text = format!("`{name}`: {}", escaped(&in_one_line(&help)));
    let defaults: Vec<String> =
        argument.get_default_values().iter().map(|v| v.to_string_lossy().into_owned()).collect();
    if takes && !defaults.is_empty() && !argument.is_hide_default_value_set() {
        let _ = write!(text, " [default: {}]", defaults.join(", "));
    }
    let possible = argument.get_possible_values();
    let possible: Vec<&str> = possible.iter().map(|v| v.get_name()).collect();
    if takes && !possible.is_empty() && !argument.is_hide_possible_values_set() {
        let _ = write!(text, " [possible values: {}]", possible.join(", "));
    }
    text
}

/// Paragraphs as sentences of one line.
fn in_one_line(help: &str) -> String {
    let mut line = String::new();
    for paragraph in help.split("\n\n") {
        let words: Vec<&str> = paragraph.split_whitespace().collect();
        if !line.is_empty() {
            line.push_str(if line.ends_with(['.', ':', ']']) { " " } else { ". " });
        }
        line.push_str(&words.join(" "));
    }
    line
}

/// What Markdown would take for markup, made literal.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '<' | '>' | '*' | '_' | '|' | '[' | ']') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[test]
fn the_page_of_findings_is_up_to_date() {
    let mut page = format!("# Findings\n\n{MADE}");
    page.push_str(
        "A finding has a code, a severity, a sentence, its evidence and a next step. \
         `knee explain CODE` prints the same as this page.\n",
    );
    for chapter in chapters() {
        let _ = write!(page, "\n## {}\n", chapter.title);
        for code in chapter.codes {
            let _ = write!(
                page,
                "\n### {}\n\n{}\n\n**Remedy**: {}\n",
                code.name,
                escaped(code.cause),
                escaped(code.remedy)
            );
        }
    }
    up_to_date("findings.md", &page);
}

#[test]
fn the_page_of_statistics_is_up_to_date() {
    let mut page = format!("# Statistics\n\n{MADE}");
    page.push_str(
        "What a trial is judged and compared by. `--fail-if` takes a statistic by its name, \
         comparisons name it by its key.\n\n\
         | key | meaning | unit | in `--fail-if` | compared by |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    for row in STATISTICS.iter() {
        let name = row.has_thresholds.then(|| format!("`{}`", row.name));
        let compared = row.compared_in.iter().map(|experiments| match experiments {
            Compared::Load => "`knee run`, `knee sweep`",
            Compared::Overload => "`knee overload`",
            Compared::Udp => "`knee udp`",
            Compared::Latency => "`knee latency`",
        });
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} | {} |",
            row.key,
            row.meaning,
            row.unit.name(),
            name.unwrap_or_default(),
            compared.collect::<Vec<_>>().join(", ")
        );
    }
    up_to_date("statistics.md", &page);
}

#[test]
fn the_page_of_the_environment_is_up_to_date() {
    let mut page = format!("# Environment and exit codes\n\n{MADE}## Exit codes\n\n");
    let exits = crate::args::EXITS.lines().skip(1);
    page.push_str("| code | meaning |\n| --- | --- |\n");
    let mut rest = Vec::new();
    for line in exits {
        match line.trim_start().split_once("  ") {
            Some((code, meaning)) if line.starts_with(' ') => {
                let _ = writeln!(page, "| {code} | {} |", escaped(meaning.trim()));
            }
            _ => rest.push(line),
        }
    }
    let _ = write!(page, "\n{}\n\n## Environment variables\n\n", rest.join(" "));
    page.push_str("| variable | meaning |\n| --- | --- |\n");
    for (name, meaning) in VARIABLES {
        let names: Vec<String> = name.split(", ").map(|n| format!("`{n}`")).collect();
        let _ = writeln!(page, "| {} | {meaning} |", names.join(", "));
    }
    up_to_date("environment.md", &page);
}

/// A variable that the program reads and the page does not name would be a secret.
#[test]
fn every_environment_variable_is_documented() {
    let mut sources = Vec::new();
    collect(&root().join("crates/cli/src"), "rs", &mut sources);
    let mut seen = 0;
    for path in sources {
        let text = fs::read_to_string(&path).unwrap();
        let product = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = product.lines();
        for line in lines.filter(|l| l.contains("env::var") || l.contains("const VARIABLE: ")) {
            let Some(name) = line.split('"').nth(1) else {
                continue;
            };
            let is_listed = |(names, _): &(&str, &str)| names.split(", ").any(|n| n == name);
            let is_test_only = name == "KNEE_WRITE_DOCS";
            assert!(is_test_only || VARIABLES.iter().any(is_listed), "{name}");
            seen += 1;
        }
    }
    assert!(seen >= 5, "{seen} variables: the test no longer finds them");
}

fn collect(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, extension, found);
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
}

/// Each command line in a block marked `console`, with the page that it is in.
fn examples() -> Vec<(String, String)> {
    let mut pages = vec![root().join("README.md")];
    collect(&root().join("docs/src"), "md", &mut pages);
    pages.sort();
    let mut found = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let name = page.file_name().unwrap_or_default().to_string_lossy();
        let mut is_console = false;
        for line in text.lines().map(str::trim) {
            if let Some(kind) = line.strip_prefix("```") {
                is_console = !is_console && kind == "console";
            } else if let Some(command) = line.strip_prefix("$ ").filter(|_| is_console) {
                found.push((name.to_string(), command.to_owned()));
            }
        }
    }
    found
}

/// The words of a command line, as a shell splits them: quotes hold together; a comment, a
/// redirection or a pipe ends it.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#' | '>' | '|') if word.is_none() => break,
            (None, ' ') => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    assert!(quote.is_none(), "{line}: a quote is open");
    words.extend(word);
    words
}

#[test]
fn every_example_of_the_documentation_is_taken() {
    let mut parsed = 0;
    for (page, line) in examples() {
        let words = words(&line);
        let Some(at) = words.iter().rposition(|w| w == "knee") else {
            continue;
        };
        let read = RawArgs::read(words[at..].iter().cloned());
        assert!(read.is_ok(), "{page}: {line}: {}", read.unwrap_err());
        parsed += 1;
    }
    assert!(parsed > 50, "{parsed} examples: the test no longer finds them");
}

#[test]
fn an_example_that_knee_does_not_take_is_found() {
    assert_eq!(
        words("knee run URL -H 'A: b c' --data \"x y\" > 'file' # so"),
        ["knee", "run", "URL", "-H", "A: b c", "--data", "x y"]
    );
    assert!(parse("run http://127.0.0.1:8080/ --rate 1000").is_ok());
    assert!(parse("run http://127.0.0.1:8080/ --nonsense 1000").is_err());
}
