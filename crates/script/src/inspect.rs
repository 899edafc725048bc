//! Reads a script before a load: what it needs, what it asks for, and what it would send.

use crate::failure::{Failure, FailureKind};
use crate::message::{ScriptRequest, ScriptResponse};
use crate::metric::MetricName;
use crate::modules;
use crate::options::{ScriptOptions, ScriptScenario};
use crate::script::Script;
use crate::shared::{Clock, Iteration, Next, ReadFile, UserSetup};
use crate::thresholds;
use crate::user::User;
use knee_load::rng;
use knee_load::session::ScriptPlan;
use knee_load::time::Nanos;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// Requests of an iteration that are followed.
const REQUESTS_MAX: usize = 1_000;

/// A script that is to be read.
#[derive(Clone)]
pub struct ScriptSource {
    /// Its file name, without a folder.
    pub main: String,
    /// Reads files by their paths from its folder.
    pub read: ReadFile,
    /// `__ENV`.
    pub env: BTreeMap<String, String>,
    /// Most memory, in bytes.
    pub memory_max: u64,
    /// Most processor time between two requests.
    pub time_max: Nanos,
    /// The seed of the run.
    pub seed: u64,
    /// A clock.
    pub clock: Clock,
    /// Processor time of the calling thread.
    pub processor: Clock,
    /// The time of day at the clock's origin.
    pub realtime_origin_ns: u64,
}

/// What a script is.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The script, its modules, and the files that it opens.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The functions that it exports.
    pub functions: Vec<String>,
    /// Its options, and the same as JSON.
    pub options: ScriptOptions,
    /// See `options`.
    pub options_json: String,
    /// Metrics that it makes.
    pub metrics: Vec<MetricName>,
    /// What it wrote to the console.
    pub log: String,
    /// What each function that was tried would do, where each request gets 200 and an empty body.
    pub tried: Vec<ScriptFunction>,
    /// Names of requests, in the order of their rows.
    pub rows: Vec<String>,
    /// Whether a user may have several requests under way.
    pub is_parallel: bool,
}

impl Inspection {
    /// The thresholds, as `--fail-if` has them.
    ///
    /// # Errors
    /// One line: a threshold that knee does not have.
    pub fn fail_if(&self) -> Result<Vec<String>, String> {
        let each = self.options.thresholds.iter().map(|(metric, expression)| {
            thresholds::fail_if(metric, expression, &self.metrics)
                .map_err(|why| format!("options.thresholds.{metric}: '{expression}': {why}"))
        });
        each.collect()
    }
}

/// One iteration of a function.
#[derive(Clone, Debug)]
pub struct ScriptFunction {
    /// Its name.
    pub name: String,
    /// Its requests, in order.
    pub requests: Vec<ScriptRequest>,
    /// Why it ended early.
    pub failure: Option<Failure>,
}

#[derive(Deserialize)]
struct Exports {
    options: serde_json::Value,
    functions: Vec<String>,
}

/// Runs the init code of a script, and an iteration of each of its functions.
///
/// # Errors
/// It cannot run: one line, with file, line and column where they are known.
pub fn inspect(source: &ScriptSource) -> Result<Inspection, Failure> {
    if source.main.ends_with(".ts") {
        return Err(Failure::new(modules::typescript(&source.main)));
    }
    let plan = ScriptPlan {
        main: source.main.clone(),
        env: source.env.clone(),
        memory_max: source.memory_max,
        time_max: source.time_max,
        ..ScriptPlan::default()
    };
    let script = Arc::new(Script::new(Arc::new(plan.clone())));
    let user = new_user(source, &script)?;
    let described = user.shared().iteration.borrow().function.clone();
    let exports: Exports = serde_json::from_str(&described)
        .map_err(|error| Failure::new(format!("options: {error}")))?;
    let options_json = exports.options.to_string();
    let options = ScriptOptions::read(&options_json).map_err(Failure::new)?;
    for scenario in &options.scenarios {
        if !exports.functions.contains(&scenario.function) {
            let what = match &*scenario.function {
                "default" => "it exports no default function: 'export default function () { … }'",
                _ => "it exports no function of this name",
            };
            let name = &scenario.function;
            return Err(Failure::new(format!(
                "scenario '{}', exec '{name}': {what}",
                scenario.name
            )));
        }
    }
    let files = user.shared().files.borrow().clone();
    drop(user);
    // Functions see their options.
    let envs = options.scenarios.iter().map(|scenario| scenario.env.clone()).collect();
    let plan = ScriptPlan { options: options_json.clone(), envs, ..plan };
    let script = Arc::new(Script::new(Arc::new(plan)));
    let (mut tried, mut log) = (Vec::new(), String::new());
    let mut names: Vec<(&str, usize)> = Vec::new();
    for (number, scenario) in options.scenarios.iter().enumerate() {
        let is_same = |other: &ScriptScenario| {
            (&other.function, &other.env) == (&scenario.function, &scenario.env)
        };
        if !options.scenarios[..number].iter().any(is_same) {
            names.push((&scenario.function, number));
        }
    }
    for name in ["setup", "teardown"] {
        if exports.functions.iter().any(|function| function == name) {
            names.push((name, usize::MAX));
        }
    }
    for (name, kind) in names {
        let mut user = new_user(source, &script)?;
        tried.push(try_once(&mut user, (name, kind), source.realtime_origin_ns));
        log.push_str(&user.take_log());
    }
    let texts = files.values().map(|file| String::from_utf8_lossy(file));
    let is_parallel =
        texts.into_iter().any(|text| text.contains("batch") || text.contains("asyncRequest"));
    Ok(Inspection {
        functions: exports.functions,
        options,
        options_json,
        metrics: script.metrics(),
        log,
        rows: script.rows(),
        tried,
        is_parallel,
        files,
    })
}

fn new_user(source: &ScriptSource, script: &Arc<Script>) -> Result<User, Failure> {
    let user = User::new(UserSetup {
        script: Arc::clone(script),
        number: 0,
        rng: rng::stream(source.seed, rng::SCRIPTS),
        clock: Rc::clone(&source.clock),
        processor: Rc::clone(&source.processor),
        origins: Rc::new([]),
        memory_max: source.memory_max,
        read: Some(Rc::clone(&source.read)),
    });
    user.map_err(|failure| match failure.kind {
        FailureKind::Abort => Failure {
            message: format!("the script ended the test: {}", failure.message),
            ..failure
        },
        _ => failure,
    })
}

/// Runs one iteration in which each request gets 200 and an empty body.
fn try_once(
    user: &mut User,
    (function, kind): (&str, usize),
    realtime_origin_ns: u64,
) -> ScriptFunction {
    let mut tried =
        ScriptFunction { name: function.to_owned(), requests: Vec::new(), failure: None };
    let iteration = Iteration {
        kind,
        function: function.to_owned(),
        scenario: ("default".to_owned(), "shared-iterations".to_owned()),
        realtime_origin_ns,
        ..Iteration::default()
    };
    let mut due = Nanos::ZERO;
    let mut next = user.begin(iteration, due);
    loop {
        let mut asked = Vec::new();
        while let Some((operation, request)) = user.take_request() {
            asked.push(operation);
            tried.requests.push(request);
        }
        for operation in &asked {
            let response =
                ScriptResponse { status: 200, version: "HTTP/1.1", ..ScriptResponse::default() };
            user.respond(*operation, response);
        }
        match next {
            Next::Over(ended) => {
                tried.failure = ended.err();
                return tried;
            }
            _ if tried.requests.len() >= REQUESTS_MAX => {
                user.stop();
                return tried;
            }
            // Nothing would come for which it waits.
            Next::Wait(Nanos::MAX) if asked.is_empty() => {
                user.stop();
                return tried;
            }
            Next::Wait(until) if asked.is_empty() => due = due.max(until),
            Next::Wait(_) | Next::Turn => due = user.now(),
        }
        next = user.advance(due);
    }
}
