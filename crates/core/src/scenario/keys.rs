//! The keys that a scenario may have: what the reader takes and what the JSON Schema says are both
//! made of these tables.

/// The keys of one kind of map.
#[derive(Debug)]
pub(super) struct Table {
    /// What it is, in errors.
    pub(super) what: &'static str,
    /// Its name in the schema.
    pub(super) name: &'static str,
    pub(super) keys: &'static [Key],
    /// Each map has one of these.
    pub(super) one_of: &'static [&'static str],
    /// Each map has all of these.
    pub(super) required: &'static [&'static str],
}

#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    /// What it is for, in the schema.
    pub(super) about: &'static str,
    pub(super) shape: Shape,
}

/// What may stand behind a key.
#[derive(Debug)]
pub(super) enum Shape {
    /// Text, in which a template may stand where the reader permits it.
    Text,
    /// A whole number from this one on.
    Whole(u64),
    /// One of these words.
    Words(&'static [&'static str]),
    /// Any value.
    Any,
    /// Such a map.
    Object(&'static Table),
    /// A map of names, which the user chooses, to these.
    Named(&'static Shape),
    /// A list of these.
    List(&'static Shape),
    /// Text, a number or a truth value.
    Scalar,
    /// One of these.
    Either(&'static [Shape]),
    /// This and nothing else.
    True,
}

const fn key(name: &'static str, about: &'static str, shape: Shape) -> Key {
    Key { name, about, shape }
}

use Shape::{Any, Either, List, Named, Object, Scalar, Text, True, Whole, Words};

pub(super) static SCENARIO: Table = Table {
    what: "a scenario",
    name: "scenario",
    keys: &[
        key(
            "$schema",
            "The schema that editors check the file against; knee ignores it",
            Text,
        ),
        key(
            "target",
            "The server: http:// or https://, a host and a port; ${env(NAME)} may be in it",
            Text,
        ),
        key("defaults", "What holds for all requests", Object(&DEFAULTS)),
        key(
            "data",
            "Sets of records, by name; each user is dealt one record of a set",
            Named(&Either(&[Text, Object(&DATA)])),
        ),
        key(
            "sessions",
            "The kinds of sessions, by name",
            Named(&Object(&SESSION)),
        ),
        key(
            "load",
            "How many users come; options of the command line win",
            Object(&LOAD),
        ),
        key(
            "fail_if",
            "Thresholds as of --fail-if; 'STEP p99>500ms' is of one step",
            Either(&[Text, List(&Text)]),
        ),
    ],
    one_of: &[],
    required: &["target", "sessions"],
};

pub(super) static DEFAULTS: Table = Table {
    what: "'defaults'",
    name: "defaults",
    keys: &[
        key("headers", HEADERS_ABOUT, Named(&Scalar)),
        key(
            "timeout",
            "Time limit of an operation, such as 5s; --timeout wins",
            Scalar,
        ),
        key("redirects", REDIRECTS_ABOUT, Whole(0)),
    ],
    one_of: &[],
    required: &[],
};

pub(super) static DATA: Table = Table {
    what: "a set of records",
    name: "data",
    keys: &[
        key(
            "file",
            "Its file, below the folder of the scenario: .csv with a header, or .jsonl and \
                .ndjson with an object in each line",
            Text,
        ),
        key(
            "order",
            "How records are dealt: unique (each once; the run ends when none is left), in-order \
                (again from the first after the last) or random. Default: in-order",
            Words(&["unique", "in-order", "random"]),
        ),
    ],
    one_of: &[],
    required: &["file"],
};

pub(super) static SESSION: Table = Table {
    what: "a session",
    name: "session",
    keys: &[
        key(
            "weight",
            "Its share of all users, relative to the other sessions. Default: 1",
            Whole(1),
        ),
        key(
            "data",
            "The set of records, or a list of them; each user is dealt one record of each",
            Either(&[Text, List(&Text)]),
        ),
        key(
            "connection",
            "keep: a connection serves one user after another; new: each user has a new one. \
                Default: keep",
            Words(&["keep", "new"]),
        ),
        key("steps", STEPS_ABOUT, List(&Object(&STEP))),
    ],
    one_of: &[],
    required: &["steps"],
};

/// The keys that name a method.
pub(super) const METHODS: [&str; 7] = ["get", "post", "put", "patch", "delete", "head", "options"];

/// The keys that only a request has.
pub(super) const OF_REQUESTS: [&str; 13] = [
    "name",
    "exec",
    "gives",
    "headers",
    "json",
    "form",
    "body",
    "body_file",
    "expect",
    "extract",
    "redirects",
    "timeout",
    "on_failure",
];

pub(super) static STEP: Table = Table {
    what: "a step",
    name: "step",
    keys: &[
        key("get", METHOD_ABOUT, Text),
        key("post", METHOD_ABOUT, Text),
        key("put", METHOD_ABOUT, Text),
        key("patch", METHOD_ABOUT, Text),
        key("delete", METHOD_ABOUT, Text),
        key("head", METHOD_ABOUT, Text),
        key("options", METHOD_ABOUT, Text),
        key("request", "A request with any method", Object(&REQUEST)),
        key(
            "name",
            "Its name in reports. Default: method and path",
            Text,
        ),
        key(
            "exec",
            "A program below the folder of the scenario, alone or in a list with its arguments. It \
                is asked over lines of JSON before the request is sent; needs --allow-exec",
            Either(&[Text, List(&Scalar)]),
        ),
        key(
            "gives",
            "The variable that the program of 'exec' sets, or a list of them",
            Either(&[Text, List(&Text)]),
        ),
        key("headers", HEADERS_ABOUT, Named(&Scalar)),
        key(
            "json",
            "The body: any value, sent as JSON; templates may stand in texts",
            Any,
        ),
        key(
            "form",
            "The body: names and values, sent as application/x-www-form-urlencoded",
            Named(&Either(&[Scalar, List(&Scalar)])),
        ),
        key(
            "body",
            "The body: text, in which templates may stand",
            Scalar,
        ),
        key(
            "body_file",
            "The body: a file below the folder of the scenario, sent as it is",
            Text,
        ),
        key(
            "expect",
            "What the response has to be. Default: a status below 400",
            Object(&EXPECT),
        ),
        key(
            "extract",
            "Variables that are set from the response, by name",
            Named(&Object(&EXTRACT)),
        ),
        key("redirects", REDIRECTS_ABOUT, Whole(0)),
        key("timeout", "Its time limit, such as 2s", Scalar),
        key(
            "on_failure",
            "end: a session ends where this step fails; continue: it goes on. Default: end",
            Words(&["end", "continue"]),
        ),
        key(
            "think",
            "Waits: 2s, fixed(2s), exp(2s), uniform(1s,3s) or lognormal(2s,0.5)",
            Scalar,
        ),
        key("repeat", "Does 'steps' as often as this", Whole(1)),
        key(
            "when",
            "Does 'steps' only where this holds: A == B, A != B, A < B or A > B",
            Text,
        ),
        key("steps", STEPS_ABOUT, List(&Object(&STEP))),
    ],
    one_of: &[
        "get", "post", "put", "patch", "delete", "head", "options", "request", "think", "repeat",
        "when",
    ],
    required: &[],
};

pub(super) static REQUEST: Table = Table {
    what: "'request'",
    name: "request",
    keys: &[
        key("method", "Its method, such as PURGE", Text),
        key("url", METHOD_ABOUT, Text),
    ],
    one_of: &[],
    required: &["method", "url"],
};

pub(super) static EXPECT: Table = Table {
    what: "'expect'",
    name: "expect",
    keys: &[
        key(
            "status",
            "A status, a class such as 2xx, a range such as 200-204, or a list of them",
            Either(&[Scalar, List(&Scalar)]),
        ),
        key("time", "The longest response time, such as <300ms", Scalar),
        key(
            "header",
            "Headers by name: the text that each has to be",
            Named(&Either(&[Scalar, Object(&MATCH)])),
        ),
        key(
            "body",
            "The text that is in the body, or what one value in it has to be, or a list of them",
            Either(&[
                Scalar,
                Object(&BODY),
                List(&Either(&[Scalar, Object(&BODY)])),
            ]),
        ),
    ],
    one_of: &[],
    required: &[],
};

pub(super) static MATCH: Table = Table {
    what: "what a header has to be",
    name: "match",
    keys: &[
        key("equals", EQUALS_ABOUT, Scalar),
        key("contains", CONTAINS_ABOUT, Scalar),
    ],
    one_of: &["equals", "contains"],
    required: &[],
};

pub(super) static BODY: Table = Table {
    what: "what the body has to be",
    name: "body",
    keys: &[
        key(
            "json",
            "The place of a value in a JSON body: a JSON Pointer such as /items/0/id",
            Text,
        ),
        key("equals", EQUALS_ABOUT, Scalar),
        key("contains", CONTAINS_ABOUT, Scalar),
    ],
    one_of: &[],
    required: &[],
};

pub(super) static EXTRACT: Table = Table {
    what: "where a variable comes from",
    name: "extract",
    keys: &[
        key(
            "json",
            "The place of a value in a JSON body: a JSON Pointer such as /items/0/id",
            Text,
        ),
        key("header", "The name of a header of the response", Text),
        key(
            "cookie",
            "The name of a cookie that the response sets",
            Text,
        ),
        key(
            "between",
            "Two texts: the value lies between the first of the one and the next of the other",
            List(&Scalar),
        ),
        key("body", "The whole body", True),
        key("status", "The status", True),
        key(
            "default",
            "Its value where the response has none. Without it the step fails there",
            Scalar,
        ),
    ],
    one_of: &["json", "header", "cookie", "between", "body", "status"],
    required: &[],
};

pub(super) static LOAD: Table = Table {
    what: "'load'",
    name: "load",
    keys: &[
        key("rate", "Sessions per second, such as 200/s or 90/m", Scalar),
        key("arrival", "Arrival process, as of --arrival", Text),
        key("stages", "Rates one after another", List(&Object(&STAGE))),
        key(
            "vusers",
            "Number of virtual users; each makes one session after the other",
            Whole(1),
        ),
        key("duration", "Measured time, such as 30s", Scalar),
        key("warmup", "Warm-up time, excluded from the results", Scalar),
    ],
    one_of: &[],
    required: &[],
};

pub(super) static STAGE: Table = Table {
    what: "a stage",
    name: "stage",
    keys: &[
        key("ramp", "A rate that moves linearly: 0 -> 200/s", Text),
        key(
            "hold",
            "The rate before goes on for this time, such as 5m; or, beside 'for', this rate",
            Scalar,
        ),
        key(
            "spike",
            "Another rate for a short time; then the one before goes on",
            Scalar,
        ),
        key("for", "How long the stage lasts", Scalar),
    ],
    one_of: &["ramp", "hold", "spike"],
    required: &[],
};

const HEADERS_ABOUT: &str = "Headers by name; templates may stand in their values";
const METHOD_ABOUT: &str =
    "Its path and query, in which templates may stand, or a URL of the target";
const REDIRECTS_ABOUT: &str = "The most redirections that are followed. Default: 0";
const STEPS_ABOUT: &str = "What is done, one after another";
const EQUALS_ABOUT: &str = "The whole value";
const CONTAINS_ABOUT: &str = "A text that is in it";

/// All tables, each with those that it names after it.
pub(super) fn tables() -> [&'static Table; 12] {
    [
        &SCENARIO, &DEFAULTS, &DATA, &SESSION, &STEP, &REQUEST, &EXPECT, &MATCH, &BODY, &EXTRACT,
        &LOAD, &STAGE,
    ]
}
