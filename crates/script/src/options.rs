//! `options` of a script, as far as they say how it is loaded.

use knee_load::time::Nanos;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What a script's `options` say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptOptions {
    /// The scenarios, at least one.
    pub scenarios: Vec<ScriptScenario>,
    /// Metrics and the expressions that they have to meet, in their order.
    pub thresholds: Vec<(String, String)>,
    /// A threshold asks to end the run early.
    pub aborts_on_fail: bool,
    /// Settings of requests and connections.
    pub settings: ScriptSettings,
}

/// Settings that hold for all scenarios.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScriptSettings {
    /// Each request has a connection of its own.
    pub no_connection_reuse: bool,
    /// The functions around the load, and the thresholds, are left out.
    pub no_setup: bool,
    /// See `no_setup`.
    pub no_teardown: bool,
    /// See `no_setup`.
    pub no_thresholds: bool,
    /// Cookies are kept between iterations.
    pub no_cookies_reset: bool,
    /// Tags of all values, and metrics that thresholds are of.
    pub tags: BTreeMap<String, String>,
    /// See `tags`.
    pub(crate) thresholds: BTreeMap<String, Value>,
    /// Tags of the values of each scenario.
    #[serde(deserialize_with = "read_tags")]
    pub(crate) scenarios: BTreeMap<String, BTreeMap<String, String>>,
    /// User-Agent.
    pub user_agent: Option<String>,
    /// Addresses of host names.
    pub hosts: BTreeMap<String, Value>,
    /// Certificates are not verified.
    #[serde(rename = "insecureSkipTLSVerify")]
    pub insecure_skip_tls_verify: bool,
    /// Certificates that a server may ask for.
    pub tls_auth: Vec<TlsAuth>,
    /// Most requests of a batch under way at once.
    pub batch: Option<u32>,
    /// Most requests of a batch to one host under way at once.
    pub batch_per_host: Option<u32>,
    /// The least time of an iteration.
    #[serde(deserialize_with = "read_time")]
    pub min_iteration_duration: Option<Nanos>,
    /// Time limits of `setup` and `teardown`.
    #[serde(deserialize_with = "read_time")]
    pub setup_timeout: Option<Nanos>,
    /// See `setup_timeout`.
    #[serde(deserialize_with = "read_time")]
    pub teardown_timeout: Option<Nanos>,
    /// Most redirections that a request follows.
    pub max_redirects: Option<u32>,
    /// Most requests per second of all users together; without a limit where it is not above 0.
    pub rps: Option<f64>,
    /// Bodies are not read.
    pub discard_response_bodies: bool,
    /// A request without a response throws.
    #[serde(rename = "throw")]
    pub throws: bool,
}

/// A certificate of the client, in PEM form.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsAuth {
    /// Hosts that are shown it; all without one.
    #[serde(default)]
    pub domains: Vec<String>,
    /// The certificate and those between it and its root.
    pub cert: String,
    /// Its private key.
    pub key: String,
    /// What the key is encrypted by.
    #[serde(default)]
    password: Option<String>,
}

impl ScriptSettings {
    /// Reads them from `options`, given as JSON.
    pub(crate) fn read(json: &str) -> serde_json::Result<ScriptSettings> {
        let all: Map<String, Value> = serde_json::from_str(json)?;
        let present = all.into_iter().filter(|(_, value)| !value.is_null());
        serde_json::from_value(Value::Object(present.collect()))
    }
}

/// A scenario: which function users run, and how they come.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptScenario {
    /// Its name.
    pub name: String,
    /// k6's name of how users come.
    pub executor: String,
    /// The exported function.
    pub function: String,
    /// How users come.
    pub load: ScriptLoad,
    /// When it begins, after the begin of the load.
    pub start: Nanos,
    /// How long an iteration under way at its end goes on.
    pub graceful_stop: Nanos,
    /// Environment variables of its own.
    pub env: BTreeMap<String, String>,
}

/// How users come.
#[derive(Clone, Debug, PartialEq)]
pub enum ScriptLoad {
    /// A number of users for a time.
    Users {
        /// Users.
        users: u32,
        /// For how long; `None`: not said.
        duration: Option<Nanos>,
    },
    /// Users in stages, from a number on.
    Stages {
        /// Users at the begin.
        from: f64,
        /// The stages.
        stages: Vec<ScriptStage>,
    },
    /// Iterations of users, all together.
    Iterations {
        /// Users.
        users: u32,
        /// Iterations of all users.
        iterations: u64,
        /// The time after which none begins.
        at_most: Nanos,
    },
    /// Iterations that begin at a rate.
    Rate {
        /// Per second.
        per_s: f64,
        /// For how long.
        duration: Nanos,
        /// Most users.
        users: Option<u32>,
    },
    /// Iterations that begin at a rate that changes in stages.
    RateStages {
        /// Per second at the begin.
        from: f64,
        /// The stages, in iterations per second.
        stages: Vec<ScriptStage>,
        /// Most users.
        users: Option<u32>,
    },
}

/// A stage: to a number of users, or to a rate, within a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScriptStage {
    /// Users, or iterations per second.
    pub to: f64,
    /// How long it takes.
    pub duration: Nanos,
}

impl ScriptOptions {
    /// Reads `options`, given as JSON.
    ///
    /// # Errors
    /// One line: what cannot be done.
    pub fn read(json: &str) -> Result<ScriptOptions, String> {
        let wrong = |why: String| format!("options: {why}");
        let all: Map<String, Value> =
            serde_json::from_str(json).map_err(|_| wrong("expected an object".to_owned()))?;
        for (name, value) in all.iter().filter(|(_, value)| !value.is_null()) {
            let alone = Value::Object([(name.clone(), value.clone())].into_iter().collect());
            let settings = serde_json::from_value::<ScriptSettings>(alone);
            let settings = settings.map_err(|why| wrong(format!("{name}: {why}")))?;
            if settings.batch == Some(0) || settings.batch_per_host == Some(0) {
                return Err(wrong(format!("{name}: expected at least 1")));
            }
            if settings.tls_auth.iter().any(|own| own.password.is_some()) {
                let why = "tlsAuth: keys with a password are not supported: decrypt it, by \
                           openssl pkey, and leave 'password' out";
                return Err(wrong(why.to_owned()));
            }
            if name == "stages" && !value.is_array() {
                return Err(wrong("stages: expected a list".to_owned()));
            }
        }
        let is_known = |name: &str| {
            KNOWN.contains(&name)
                || WITHOUT_MEANING.contains(&name)
                || REFUSED.iter().any(|(refused, _)| *refused == name)
        };
        if let Some(unknown) = all.keys().find(|name| !is_known(name)) {
            return Err(wrong(format!("'{unknown}' is not supported by knee: leave it out")));
        }
        for (name, why) in REFUSED {
            let is_off = |value: &Value| matches!(value, Value::Null | Value::Bool(false));
            if all.get(name).is_some_and(|value| !is_off(value)) {
                return Err(wrong(format!("{name}: {why}")));
            }
        }
        Ok(ScriptOptions {
            scenarios: scenarios(&all).map_err(wrong)?,
            thresholds: thresholds(&all).map_err(wrong)?,
            aborts_on_fail: all
                .get("thresholds")
                .is_some_and(|of| of.to_string().contains("\"abortOnFail\":true")),
            settings: ScriptSettings::read(json).map_err(|why| wrong(why.to_string()))?,
        })
    }
}

/// Options that knee follows.
const KNOWN: [&str; 25] = [
    "vus",
    "duration",
    "iterations",
    "stages",
    "scenarios",
    "thresholds",
    "setupTimeout",
    "teardownTimeout",
    "noConnectionReuse",
    "noCookiesReset",
    "userAgent",
    "hosts",
    "insecureSkipTLSVerify",
    "tlsAuth",
    "discardResponseBodies",
    "batch",
    "batchPerHost",
    "maxRedirects",
    "throw",
    "minIterationDuration",
    "rps",
    "tags",
    "noThresholds",
    "noSetup",
    "noTeardown",
];

/// Options that are refused unless they are off, and what to do instead.
const REFUSED: [(&str, &str); 2] = [
    ("noVUConnectionReuse", "users keep their connections; give noConnectionReuse for none"),
    ("paused", "a load begins at once: leave it out"),
];

/// Options that change what k6 prints or where it runs, and nothing that is sent.
const WITHOUT_MEANING: [&str; 10] = [
    "ext",
    "cloud",
    "summaryTrendStats",
    "summaryTimeUnit",
    "noUsageReport",
    "noSummary",
    "linger",
    "systemTags",
    "consoleOutput",
    "vusMax",
];

/// Fields of all scenarios.
const OF_ALL: [&str; 6] = ["executor", "exec", "env", "tags", "startTime", "gracefulStop"];

/// Fields that scenarios have beside these, by their executors.
const OF_EXECUTORS: [(&str, &[&str]); 6] = [
    ("constant-vus", &["vus", "duration"]),
    ("ramping-vus", &["startVUs", "stages", "gracefulRampDown"]),
    ("shared-iterations", &["vus", "iterations", "maxDuration"]),
    ("per-vu-iterations", &["vus", "iterations", "maxDuration"]),
    ("constant-arrival-rate", &["rate", "timeUnit", "duration", "preAllocatedVUs", "maxVUs"]),
    ("ramping-arrival-rate", &["startRate", "timeUnit", "stages", "preAllocatedVUs", "maxVUs"]),
];

/// Options that say the load. Two of them exclude each other, but for iterations with a time limit.
const LOADS: [&str; 4] = ["iterations", "duration", "stages", "scenarios"];

type Fields = Map<String, Value>;

fn scenarios(all: &Fields) -> Result<Vec<ScriptScenario>, String> {
    let is_given = |name: &&str| match all.get(*name) {
        Some(Value::Array(all)) => !all.is_empty(),
        value => value.is_some_and(|value| !value.is_null()),
    };
    let mut loads = LOADS.into_iter().filter(is_given);
    let first = loads.next();
    if let Some(first) = first
        && let Some(other) = loads.find(|other| (first, *other) != ("iterations", "duration"))
    {
        return Err(format!("'{first}' and '{other}' exclude each other: leave one of them out"));
    }
    let Some(named) = all.get("scenarios").filter(|value| !value.is_null()) else {
        let has_stages = all.get("stages").and_then(Value::as_array).is_some_and(|s| !s.is_empty());
        let executor = if has_stages {
            "ramping-vus"
        } else if first == Some("iterations") {
            "shared-iterations"
        } else {
            "constant-vus"
        };
        return Ok(vec![scenario("default", executor, all)?]);
    };
    let named = named.as_object().ok_or("scenarios: expected an object")?;
    if named.is_empty() {
        return Err("scenarios: there is none".to_owned());
    }
    let each = named.iter().map(|(name, value)| {
        let place = |why| format!("scenarios.{name}: {why}");
        let fields = value.as_object().ok_or_else(|| place("expected an object".to_owned()))?;
        let executor = fields.get("executor").and_then(Value::as_str);
        let executor = executor.ok_or_else(|| place("'executor' is missing".to_owned()))?;
        let own = OF_EXECUTORS.iter().find(|(name, _)| *name == executor);
        let is_known = |name: &str| {
            OF_ALL.contains(&name) || own.is_none_or(|(_, fields)| fields.contains(&name))
        };
        if let Some(unknown) = fields.keys().find(|name| !is_known(name)) {
            return Err(place(format!("'{unknown}' is no field of {executor}: leave it out")));
        }
        scenario(name, executor, fields).map_err(place)
    });
    each.collect()
}

fn scenario(name: &str, executor: &str, of: &Fields) -> Result<ScriptScenario, String> {
    let users = whole(of, "vus")?.map(|users| users as u32);
    if users == Some(0) && executor != "ramping-vus" {
        return Err("invalid vus 0: expected above 0".to_owned());
    }
    let time = |field: &str| {
        let given = of.get(field).filter(|value| !value.is_null());
        let read = given.map(duration).transpose();
        read.map_err(|why| format!("{field}: {why}"))
    };
    let ready_users = whole(of, "preAllocatedVUs")?.map(|u| u as u32);
    let max_users = whole(of, "maxVUs")?.map(|u| u as u32).or(ready_users);
    if max_users < ready_users {
        return Err("maxVUs is below preAllocatedVUs".to_owned());
    }
    let unit = time("timeUnit")?.unwrap_or(Nanos::from_secs(1)).as_secs_f64();
    let needed = |field: &str| format!("'{field}' is missing");
    let at_most = time("maxDuration")?.unwrap_or(Nanos::from_secs(600));
    let load = match executor {
        "constant-vus" => {
            ScriptLoad::Users { users: users.unwrap_or(1), duration: time("duration")? }
        }
        "ramping-vus" => ScriptLoad::Stages {
            from: number(of, "startVUs")?.or(users.map(f64::from)).unwrap_or(1.0),
            stages: stages(of, 1.0)?,
        },
        "shared-iterations" => {
            let (users, iterations) = (users.unwrap_or(1), whole(of, "iterations")?.unwrap_or(1));
            if iterations < u64::from(users) {
                return Err(format!("{iterations} iterations are fewer than {users} users (vus)"));
            }
            ScriptLoad::Iterations {
                users,
                iterations,
                at_most: time("duration")?.unwrap_or(at_most),
            }
        }
        "per-vu-iterations" => {
            let users = users.unwrap_or(1);
            let each = whole(of, "iterations")?.unwrap_or(1);
            let iterations = each.saturating_mul(u64::from(users));
            ScriptLoad::Iterations { users, iterations, at_most }
        }
        "constant-arrival-rate" => ScriptLoad::Rate {
            per_s: number(of, "rate")?.ok_or_else(|| needed("rate"))? / unit,
            duration: time("duration")?.ok_or_else(|| needed("duration"))?,
            users: max_users,
        },
        "ramping-arrival-rate" => ScriptLoad::RateStages {
            from: number(of, "startRate")?.unwrap_or(0.0) / unit,
            stages: stages(of, unit)?,
            users: max_users,
        },
        other => {
            return Err(format!(
                "executor '{other}' is not supported by knee: expected constant-vus, ramping-vus, \
                 shared-iterations, per-vu-iterations, constant-arrival-rate or \
                 ramping-arrival-rate"
            ));
        }
    };
    let env = of.get("env").and_then(Value::as_object).cloned().unwrap_or_default();
    Ok(ScriptScenario {
        name: name.to_owned(),
        executor: executor.to_owned(),
        function: of.get("exec").and_then(Value::as_str).unwrap_or("default").to_owned(),
        load,
        start: time("startTime")?.unwrap_or(Nanos::ZERO),
        graceful_stop: time("gracefulStop")?.unwrap_or(Nanos::from_secs(30)),
        env: env
            .into_iter()
            .map(|(name, value)| (name, value.as_str().map_or(value.to_string(), str::to_owned)))
            .collect(),
    })
}

fn stages(of: &Fields, unit: f64) -> Result<Vec<ScriptStage>, String> {
    let all = of.get("stages").and_then(Value::as_array).ok_or("'stages' is missing")?;
    let each = all.iter().map(|stage| {
        let fields = stage.as_object().ok_or("stages: expected objects")?;
        let to = number(fields, "target")?.ok_or("stages: 'target' is missing")?;
        let length = fields.get("duration").ok_or("stages: 'duration' is missing")?;
        Ok::<_, String>(ScriptStage { to: to / unit, duration: duration(length)? })
    });
    let stages: Vec<_> = each.collect::<Result<_, _>>()?;
    if stages.iter().all(|stage| stage.duration == Nanos::ZERO) {
        return Err("stages: expected at least one with a duration".to_owned());
    }
    Ok(stages)
}

fn number(of: &Fields, field: &str) -> Result<Option<f64>, String> {
    match of.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
            let number = number.filter(|number| (0.0..=1e12).contains(number));
            number.map(Some).ok_or_else(|| format!("invalid {field} '{value}': expected a number"))
        }
    }
}

fn whole(of: &Fields, field: &str) -> Result<Option<u64>, String> {
    let number = number(of, field)?;
    if number.is_some_and(|number| number.fract() != 0.0) {
        return Err(format!("invalid {field}: expected a whole number"));
    }
    Ok(number.map(|number| number as u64))
}

fn read_tags<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, BTreeMap<String, String>>, D::Error> {
    #[derive(Deserialize)]
    struct Scenario {
        #[serde(default)]
        tags: Option<BTreeMap<String, String>>,
    }
    let all = BTreeMap::<String, Scenario>::deserialize(from)?;
    Ok(all.into_iter().map(|(name, of)| (name, of.tags.unwrap_or_default())).collect())
}

fn read_time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Nanos>, D::Error> {
    duration(&Value::deserialize(from)?).map(Some).map_err(D::Error::custom)
}

fn duration(value: &Value) -> Result<Nanos, String> {
    time(value.as_str().unwrap_or(&value.to_string()))
}

/// A time as k6 writes it: `1m30s`, or a number of milliseconds.
pub(crate) fn time(text: &str) -> Result<Nanos, String> {
    let text = text.trim();
    let wrong = || format!("invalid time '{text}': expected one such as '30s' or '1m30s'");
    if let Ok(ms) = text.parse::<f64>() {
        return if ms >= 0.0 { Ok(Nanos((ms * 1e6) as u64)) } else { Err(wrong()) };
    }
    let (mut rest, mut sum) = (text, 0.0);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let (digits, after) = rest.split_at(end);
        let count: f64 = digits.parse().map_err(|_| wrong())?;
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        sum += count
            * match unit {
                "d" => 86_400e9,
                "h" => 3_600e9,
                "m" => 60e9,
                "s" => 1e9,
                "ms" => 1e6,
                "us" | "µs" => 1e3,
                "ns" => 1.0,
                _ => return Err(wrong()),
            };
        rest = after;
    }
    Ok(Nanos(sum as u64))
}

fn thresholds(all: &Fields) -> Result<Vec<(String, String)>, String> {
    let Some(metrics) = all.get("thresholds").and_then(Value::as_object) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for (metric, value) in metrics {
        let wrong = || format!("thresholds.{metric}: expected a list of expressions");
        for text in crate::thresholds::expressions(value) {
            found.push((metric.clone(), text.ok_or_else(wrong)?.to_owned()));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(json: &str) -> ScriptLoad {
        ScriptOptions::read(json).unwrap().scenarios.remove(0).load
    }

    #[test]
    fn executors_are_loads() {
        let second = Nanos::from_secs(1);
        assert_eq!(
            load(r#"{"vus":3,"duration":"1m30s"}"#),
            ScriptLoad::Users { users: 3, duration: Some(Nanos::from_secs(90)) }
        );
        for none in ["{}", r#"{"stages":[]}"#] {
            assert_eq!(load(none), ScriptLoad::Users { users: 1, duration: None });
        }
        for (together, want) in [
            (r#"{"vus":2,"iterations":2,"duration":"1s"}"#, 2),
            (r#"{"vus":1,"iterations":2,"duration":"1s","stages":[],"scenarios":null}"#, 1),
        ] {
            let want = ScriptLoad::Iterations { users: want, iterations: 2, at_most: second };
            assert_eq!(load(together), want);
        }
        // Without a load, as in k6.
        let json = r#"{"vus":9,"scenarios":{"a":{"executor":"shared-iterations"}}}"#;
        let want =
            ScriptLoad::Iterations { users: 1, iterations: 1, at_most: Nanos::from_secs(600) };
        assert_eq!(load(json), want);
        let stages = vec![ScriptStage { to: 5.0, duration: second }];
        assert_eq!(
            load(r#"{"stages":[{"target":5,"duration":"1s"}]}"#),
            ScriptLoad::Stages { from: 1.0, stages }
        );
        assert_eq!(
            load(
                r#"{"scenarios":{"a":{"executor":"constant-arrival-rate","rate":60,"timeUnit":"1m",
                "duration":"1s","preAllocatedVUs":5,"maxVUs":9}}}"#
            ),
            ScriptLoad::Rate { per_s: 1.0, duration: second, users: Some(9) }
        );
        assert_eq!(
            load(
                r#"{"scenarios":{"a":{"executor":"per-vu-iterations","vus":2,"iterations":3,
                "maxDuration":"1s"}}}"#
            ),
            ScriptLoad::Iterations { users: 2, iterations: 6, at_most: second }
        );
    }

    #[test]
    fn what_cannot_be_done_is_named() {
        for (json, why) in [
            (
                r#"{"scenarios":{"a":{"executor":"externally-controlled"}}}"#,
                "scenarios.a: executor",
            ),
            (r#"{"scenarios":{"a":{}}}"#, "'executor' is missing"),
            (r#"{"vus":"x"}"#, "invalid vus"),
            (r#"{"duration":"1x"}"#, "duration: invalid time"),
            (r#"{"dns":{"ttl":0}}"#, "'dns' is not supported"),
            (r#"{"rps":"5"}"#, "rps: "),
            (r#"{"noVUConnectionReuse":true}"#, "noVUConnectionReuse: users keep"),
            (r#"{"setupTimeout":"x"}"#, "setupTimeout: invalid time 'x'"),
            (r#"{"maxRedirects":-1}"#, "maxRedirects: invalid value"),
            (r#"{"batch":0}"#, "batch: expected at least 1"),
            (r#"{"stages":5}"#, "stages: expected a list"),
            (r#"{"vus":0,"duration":"1s"}"#, "invalid vus 0"),
            (r#"{"vus":3,"iterations":2}"#, "2 iterations are fewer than 3 users"),
            (
                r#"{"iterations":2,"duration":"1s","stages":[{"target":5,"duration":"1s"}]}"#,
                "'iterations' and 'stages' exclude each other",
            ),
            (
                r#"{"duration":"1s","stages":[{"target":5,"duration":"1s"}]}"#,
                "'duration' and 'stages' exclude each other",
            ),
            (
                r#"{"duration":"1s","scenarios":{"a":{"executor":"constant-vus","duration":"1s"}}}"#,
                "'duration' and 'scenarios' exclude each other",
            ),
            (
                r#"{"scenarios":{"a":{"executor":"constant-vus","iterations":1}}}"#,
                "scenarios.a: 'iterations' is no field of constant-vus",
            ),
            (
                r#"{"scenarios":{"a":{"executor":"constant-arrival-rate","rate":1,"duration":"1s",
                "preAllocatedVUs":5,"maxVUs":4}}}"#,
                "scenarios.a: maxVUs is below preAllocatedVUs",
            ),
            (
                r#"{"scenarios":{"a":{"executor":"ramping-vus","stages":[]}}}"#,
                "scenarios.a: stages: expected at least one",
            ),
            (
                r#"{"scenarios":{"a":{"executor":"constant-vus","options":{}}}}"#,
                "scenarios.a: 'options' is no field of constant-vus",
            ),
            ("[]", "expected an object"),
        ] {
            let refused = ScriptOptions::read(json).unwrap_err();
            assert!(refused.contains(why), "{json}: {refused}");
        }
    }

    #[test]
    fn thresholds_are_listed() {
        let json = r#"{"thresholds":{"http_req_duration":["p(95)<500",{"threshold":"max<9"}],
            "checks":"rate>0.9"}}"#;
        let read = ScriptOptions::read(json).unwrap().thresholds;
        let texts: Vec<_> = read.iter().map(|(m, e)| format!("{m}: {e}")).collect();
        assert_eq!(texts.len(), 3);
        assert!(texts.contains(&"http_req_duration: max<9".to_owned()), "{texts:?}");
    }
}
