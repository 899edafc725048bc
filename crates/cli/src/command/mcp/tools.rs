//! The tools: commands of knee with a choice of their options. The command line declares the
//! arguments and judges them: here they become its words.

use clap::{Arg, ArgAction, Command};
use serde_json::{Map, Value, json};

/// A tool.
#[derive(Debug)]
pub(super) struct KneeTool {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// What it does and when to use it, for a model.
    pub(super) description: &'static str,
    /// The words of the command before all arguments.
    pub(super) words: &'static [&'static str],
    /// Arguments without a name on the command line, in their order there.
    pub(super) own: &'static [OwnArgument],
    /// Commands, and options of theirs that are arguments of the tool.
    pub(super) options: &'static [(&'static str, &'static [&'static str])],
    pub(super) output: ToolOutput,
}

/// What a tool's command prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolOutput {
    /// The report of a measurement, as JSON.
    Measurement,
    /// A comparison that was measured, as JSON.
    LiveComparison,
    /// A comparison of reports, as JSON.
    Comparison,
    /// A report, as JSON; a page of it is shown.
    Page,
    /// Text.
    Text,
}

impl ToolOutput {
    /// Whether load is sent.
    pub(super) fn is_measured(self) -> bool {
        matches!(self, ToolOutput::Measurement | ToolOutput::LiveComparison)
    }
}

/// An argument without a name on the command line.
#[derive(Debug)]
pub(super) struct OwnArgument {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) kind: OwnKind,
}

/// The place of an argument in the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnKind {
    /// A word.
    Required,
    /// A word that may be missing.
    Optional,
    /// Words.
    List,
    /// Words after `--` if words stand before, and none may be missing.
    ListBehind,
    /// A JSON Pointer, for a page.
    Pointer,
    /// A number, for a page.
    Offset,
}

const fn own(name: &'static str, kind: OwnKind, description: &'static str) -> OwnArgument {
    OwnArgument { name, description, kind }
}

/// Options of a request.
const REQUEST: &[&str] = &[
    "method",
    "header",
    "body",
    "json-body",
    "content-type",
    "user",
    "targets",
    "pick",
    "expect-status",
    "expect-body",
    "location",
    "no-keepalive",
    "http2",
    "http2-prior-knowledge",
    "insecure",
    "secret",
];

/// Options of a load.
const LOAD: &[&str] = &["rate", "vusers", "connections", "arrival", "think", "retries", "timeout"];

/// All tools.
pub(super) const TOOLS: &[KneeTool] = &[
    KneeTool {
        name: "run",
        title: "Measure one load",
        description: "Sends one load to a server and measures throughput, response times and \
            errors. With 'rate' requests start on schedule whatever the server does (open loop, \
            what independent users do); with 'vusers' each user waits for its response (closed \
            loop). The result says whether it is valid: an INVALID one is not the server's, and \
            its findings say what to change. Takes 'duration' and a second of warm-up.",
        words: &["run", "--json=-"],
        own: &[own("url", OwnKind::Required, URL)],
        options: &[
            ("run", LOAD),
            ("run", &["duration", "warmup", "requests", "repeat", "fail-if"]),
            ("run", REQUEST),
            ("run", &["seed"]),
        ],
        output: ToolOutput::Measurement,
    },
    KneeTool {
        name: "sweep",
        title: "Find the capacity",
        description: "Finds the most that a server serves and its knee: the load beyond which \
            response times grow and throughput does not. With 'bound' also the most throughput \
            within a limit on response time. Takes up to 'budget' (60 s by default). Of a \
            scenario only the sessions are used, not its load.",
        words: &["sweep", "--json=-"],
        own: &[own("url", OwnKind::Required, URL)],
        options: &[
            ("sweep", &["bound", "axis", "vusers", "rates", "budget", "duration", "think"]),
            ("sweep", &["arrival", "connections", "timeout", "fail-if"]),
            ("sweep", REQUEST),
            ("sweep", &["seed"]),
        ],
        output: ToolOutput::Measurement,
    },
    KneeTool {
        name: "compare_targets",
        title: "Compare two servers in turns",
        description: "Measures two URLs in turns under the same load and says whether B differs \
            from A by more than chance. The best way to compare two versions that both run now. \
            Takes up to 'budget'.",
        words: &["compare", "--live", "--json=-"],
        own: &[
            own("a", OwnKind::Required, "URL of A, the reference"),
            own("b", OwnKind::Required, "URL of B, which is compared with A"),
        ],
        options: &[("compare", &["budget"]), ("run", LOAD), ("run", REQUEST)],
        output: ToolOutput::LiveComparison,
    },
    KneeTool {
        name: "compare",
        title: "Compare runs",
        description: "Says whether the runs B differ from the runs A by more than chance, from \
            their reports alone. Several runs of each side, made in alternation, tell smaller \
            differences.",
        words: &["compare", "--json=-"],
        own: &[
            own("a", OwnKind::List, RUNS_OF_A),
            own("b", OwnKind::ListBehind, "Runs of B, named likewise"),
        ],
        options: &[("compare", &["baseline"])],
        output: ToolOutput::Comparison,
    },
    KneeTool {
        name: "report",
        title: "Read a report",
        description: "Shows a part of the whole JSON report of a run: all intervals, percentiles, \
            stages of response times, evidence, host and options. A large value is shown as \
            'omitted' with its size: ask for its pointer. 'next_offset' continues a page.",
        words: &["history", "show", "--json=-"],
        own: &[
            own(
                "run",
                OwnKind::Optional,
                "Id of a run, name of a baseline or 'last' (the default)",
            ),
            own(
                "pointer",
                OwnKind::Pointer,
                "JSON Pointer of the part, such as /trials/0/outcomes",
            ),
            own("offset", OwnKind::Offset, "Number of the first member to show; the first is 0"),
        ],
        options: &[],
        output: ToolOutput::Page,
    },
    KneeTool {
        name: "history",
        title: "List runs",
        description: "Lists the runs that were kept, the latest first: id, time, target, answer.",
        words: &["history"],
        own: &[],
        options: &[("history", &["limit", "command", "target"])],
        output: ToolOutput::Text,
    },
    KneeTool {
        name: "explain",
        title: "Explain a finding",
        description: "Explains the code of a finding, or why a result is INVALID: its meaning, \
            causes and remedy. Without a code: the list of all codes.",
        words: &["explain"],
        own: &[own("code", OwnKind::Optional, "Code of a finding or reason, or INVALID")],
        options: &[],
        output: ToolOutput::Text,
    },
    KneeTool {
        name: "scenario_check",
        title: "Check a scenario file",
        description: "Checks a scenario file (sessions of users: steps, data, checks) and the \
            files that it names, without sending anything.",
        words: &["scenario", "check"],
        own: &[own("file", OwnKind::Required, "Scenario file (.yaml, .json)")],
        options: &[],
        output: ToolOutput::Text,
    },
    KneeTool {
        name: "scenario_example",
        title: "Show an example of a scenario",
        description: "Shows a commented example of a scenario file, to write one like it. 'run' \
            and 'sweep' take such a file in place of a URL.",
        words: &["scenario", "new"],
        own: &[],
        options: &[],
        output: ToolOutput::Text,
    },
];

const URL: &str = "URL such as http://127.0.0.1:8080/path, or a scenario file (.yaml, .json)";

const RUNS_OF_A: &str = "Runs of A, the reference: ids of runs, names of baselines, 'last', or \
    report files; not with 'baseline'";

impl KneeTool {
    /// The tool with this name.
    pub(super) fn named(name: &str) -> Option<&'static KneeTool> {
        TOOLS.iter().find(|tool| tool.name == name)
    }

    /// The names of all its arguments.
    fn arguments(&self) -> impl Iterator<Item = &'static str> {
        let options = self.options.iter().flat_map(|(_, names)| names.iter().copied());
        self.own.iter().map(|own| own.name).chain(options)
    }

    /// The JSON Schema of its arguments; `knee`: all commands.
    ///
    /// # Errors
    /// The name of an option that the command does not have.
    pub(super) fn input_schema(&self, knee: &Command) -> Result<Map<String, Value>, String> {
        let mut properties = Map::new();
        for own in self.own {
            properties.insert(own.name.to_owned(), own.schema());
        }
        for (command, names) in self.options {
            for name in *names {
                let options = knee.find_subcommand(command).map(Command::get_arguments);
                let option = options.and_then(|mut all| all.find(|o| o.get_long() == Some(*name)));
                let option = option.ok_or_else(|| format!("knee {command} has no --{name}"))?;
                properties.insert((*name).to_owned(), option_schema(option));
            }
        }
        let is_required =
            |own: &&OwnArgument| matches!(own.kind, OwnKind::Required | OwnKind::ListBehind);
        let required: Vec<&str> = self.own.iter().filter(is_required).map(|own| own.name).collect();
        let schema = json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        });
        Ok(schema.as_object().cloned().unwrap_or_default())
    }

    /// The words of the command line, without the name of the program.
    ///
    /// # Errors
    /// An argument is unknown, missing or of a wrong type: one line.
    pub(super) fn words(&self, arguments: &Map<String, Value>) -> Result<Vec<String>, String> {
        let known: Vec<&str> = self.arguments().collect();
        if let Some(name) = arguments.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(format!("unknown argument '{name}': expected {}", known.join(", ")));
        }
        let mut words: Vec<String> = self.words.iter().map(|&word| word.to_owned()).collect();
        for (_, names) in self.options {
            for name in *names {
                if let Some(value) = arguments.get(*name) {
                    push_option(&mut words, name, value)?;
                }
            }
        }
        let before = words.len();
        for own in self.own {
            own.push(&mut words, before, arguments.get(own.name))?;
        }
        Ok(words)
    }

    /// Pointer and offset of a page.
    ///
    /// # Errors
    /// One has a wrong type: one line.
    pub(super) fn place<'a>(
        &self,
        arguments: &'a Map<String, Value>,
    ) -> Result<(&'a str, usize), String> {
        let pointer = match arguments.get("pointer") {
            None => "",
            Some(Value::String(pointer)) => pointer,
            Some(other) => return Err(format!("invalid pointer {other}: expected a string")),
        };
        let offset = match arguments.get("offset") {
            None => Some(0),
            Some(offset) => offset.as_u64().and_then(|offset| usize::try_from(offset).ok()),
        };
        Ok((pointer, offset.ok_or("invalid offset: expected a whole number from 0 on")?))
    }
}

impl OwnArgument {
    fn schema(&self) -> Value {
        let mut schema = match self.kind {
            OwnKind::List | OwnKind::ListBehind => {
                json!({ "type": "array", "items": { "type": "string" } })
            }
            OwnKind::Offset => json!({ "type": "integer", "minimum": 0 }),
            OwnKind::Required | OwnKind::Optional | OwnKind::Pointer => json!({ "type": "string" }),
        };
        schema["description"] = self.description.into();
        schema
    }

    /// Adds its words; the first of its kind would be number `before`.
    fn push(
        &self,
        words: &mut Vec<String>,
        before: usize,
        value: Option<&Value>,
    ) -> Result<(), String> {
        let given = match value {
            None => Vec::new(),
            Some(value) => values(self.name, value)?,
        };
        let is_needed = matches!(self.kind, OwnKind::Required | OwnKind::ListBehind);
        match self.kind {
            OwnKind::Pointer | OwnKind::Offset => return Ok(()),
            _ if is_needed && given.is_empty() => {
                return Err(format!("missing argument '{}': {}", self.name, self.description));
            }
            OwnKind::Required | OwnKind::Optional if given.len() > 1 => {
                return Err(format!("invalid {}: expected one value", self.name));
            }
            OwnKind::ListBehind if words.len() > before => words.push("--".to_owned()),
            _ => {}
        }
        // A word of the command line that begins so is an option.
        if let Some(option) = given.iter().find(|word| word.starts_with('-')) {
            return Err(format!("invalid {} '{option}': it may not begin with '-'", self.name));
        }
        words.extend(given);
        Ok(())
    }
}

/// Adds an option as words that cannot be taken for others.
fn push_option(words: &mut Vec<String>, name: &str, value: &Value) -> Result<(), String> {
    match value {
        Value::Bool(true) => words.push(format!("--{name}")),
        Value::Bool(false) | Value::Null => {}
        value => {
            let given = values(name, value)?;
            words.extend(given.iter().map(|value| format!("--{name}={value}")));
        }
    }
    Ok(())
}

/// A text, a number or a list of them, as words.
fn values(name: &str, value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::String(text) => Ok(vec![text.clone()]),
        Value::Number(number) => Ok(vec![number.to_string()]),
        Value::Null => Ok(Vec::new()),
        Value::Array(items) if !items.iter().any(Value::is_array) => {
            let all: Result<Vec<_>, String> = items.iter().map(|item| values(name, item)).collect();
            Ok(all?.concat())
        }
        other => Err(format!("invalid {name} {other}: expected a string, a number or a list")),
    }
}

/// A longer help of an option gives way to its first paragraph: models read all of them.
const DESCRIPTION_BYTES: usize = 500;

/// The JSON Schema of an option's values.
fn option_schema(option: &Arg) -> Value {
    let long = option.get_long_help().map(ToString::to_string);
    let long = long.filter(|text| text.len() <= DESCRIPTION_BYTES);
    let help = long.or_else(|| option.get_help().map(ToString::to_string)).unwrap_or_default();
    let mut description = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let default: Vec<String> =
        option.get_default_values().iter().map(|v| v.to_string_lossy().into_owned()).collect();
    if option.get_action().takes_values() && !default.is_empty() {
        description.push_str(&format!(" [default: {}]", default.join(", ")));
    }
    let is_number = option.get_value_names().is_some_and(|names| names.iter().any(|n| n == "N"));
    let one = if is_number { "number" } else { "string" };
    let mut schema = match option.get_action() {
        ArgAction::SetTrue => json!({ "type": "boolean" }),
        ArgAction::Append => json!({ "type": "array", "items": { "type": one } }),
        _ => json!({ "type": one }),
    };
    schema["description"] = description.into();
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::raw::RawArgs;
    use clap::CommandFactory;

    fn words(tool: &str, arguments: Value) -> Result<String, String> {
        let arguments = arguments.as_object().cloned().unwrap();
        KneeTool::named(tool).unwrap().words(&arguments).map(|words| words.join(" "))
    }

    #[test]
    fn all_arguments_are_options_of_their_commands() {
        let knee = RawArgs::command();
        for tool in TOOLS {
            let schema = tool.input_schema(&knee).unwrap();
            let properties = schema["properties"].as_object().unwrap();
            assert_eq!(properties.len(), tool.arguments().count(), "{}", tool.name);
            for (name, property) in properties {
                let description = property["description"].as_str().unwrap();
                assert!(description.len() > 10, "{}: {name}: {description}", tool.name);
            }
        }
    }

    /// No tool writes a file, reads outside its checks, or sends load by another way.
    #[test]
    fn no_argument_names_an_output_or_another_way_out() {
        let refused = [
            "json",
            "html",
            "md",
            "csv",
            "junit",
            "hdr",
            "metrics",
            "proxy",
            "unix-socket",
            "observe",
            "fleet",
            "cert",
            "key",
            "cacert",
            "allow-exec",
            "trigger-exec",
            "proto",
            "show-secrets",
            "save-baseline",
            "source",
        ];
        for tool in TOOLS {
            let offered: Vec<&str> = tool.arguments().collect();
            assert!(!refused.iter().any(|name| offered.contains(name)), "{offered:?}");
        }
    }

    #[test]
    fn arguments_become_words_that_cannot_be_taken_for_options() {
        let run = json!({
            "url": "http://h/", "rate": 100, "header": ["A: b", "C: d"], "location": true,
            "insecure": false, "warmup": null,
        });
        let expected = "run --json=- --rate=100 --header=A: b --header=C: d --location http://h/";
        assert_eq!(words("run", run).as_deref(), Ok(expected));
        let compare = json!({"a": ["1", "2"], "b": ["3"]});
        assert_eq!(words("compare", compare).as_deref(), Ok("compare --json=- 1 2 -- 3"));
        let baseline = json!({"baseline": "main", "b": "last"});
        let expected = "compare --json=- --baseline=main -- last";
        assert_ne!(words("compare", baseline.clone()).as_deref(), Ok(expected));
        let expected = "compare --json=- --baseline=main last";
        assert_eq!(words("compare", baseline).as_deref(), Ok(expected));
        assert_eq!(words("explain", json!({})).as_deref(), Ok("explain"));
    }

    #[test]
    fn wrong_arguments_are_named() {
        for (tool, arguments, expected) in [
            ("explain", json!({"cod": "x"}), "unknown argument 'cod': expected code"),
            ("run", json!({}), "missing argument 'url': URL such as"),
            ("run", json!({"url": "--json=x"}), "invalid url '--json=x': it may not begin"),
            ("run", json!({"url": ["a", "b"]}), "invalid url: expected one value"),
            ("run", json!({"url": "a", "rate": {}}), "invalid rate {}: expected a string"),
            ("compare", json!({"a": ["1"]}), "missing argument 'b': Runs of B"),
        ] {
            let wrong = words(tool, arguments).unwrap_err();
            assert!(wrong.starts_with(expected), "{wrong}");
        }
    }
}
