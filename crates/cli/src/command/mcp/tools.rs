//! The tools: commands of knee with a choice of their options.

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
}
