//! Scripts in the place of a scenario file: what they ask for, as a scenario whose requests are
//! made at run time.

mod options;
mod summary;

use crate::failure::Failure;
use crate::{input, stdio};
use knee_core::threshold::Threshold;
use knee_engine::sys::clock::thread_cpu_ns;
use knee_load::session::{
    Instruction, RequestStep, SCRIPT_ROWS, ScriptGroup, ScriptPlan, SessionKind, SessionPlan,
};
use knee_load::spec::{ClientCertificate, Endpoint, HttpRequest, Pem, Rate, Url, UserStage};
use knee_load::time::Nanos;
use knee_scenario::{
    ConnectionSettings, DomainCertificate, LoadStages, RateStage, Scenario, ScenarioLoad,
};
use knee_script::{
    HANDLE_SUMMARY, Inspection, ScriptLoad, ScriptScenario, ScriptSettings, ScriptSource,
    ScriptStage, TlsAuth, inspect, metrics_in_reports,
};
pub use options::ScriptArgs;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
pub use summary::handle_summary;

/// Iterations of a script that says nothing of its load, as in k6.
const ITERATIONS: u64 = 1;

/// Runs the init code of a script and an iteration of each of its functions, against nothing.
fn read(file: &str, args: &ScriptArgs) -> Result<Inspection, Failure> {
    let name = Path::new(file).file_name().and_then(|name| name.to_str());
    let main = name.ok_or_else(|| Failure::argument(file, "is not UTF-8: rename it"))?.to_owned();
    if !Path::new(file).exists() {
        return Err(Failure::argument(file, "cannot be read: no such file"));
    }
    let below = RefCell::new(input::files_below(file));
    let begin = Instant::now();
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let source = ScriptSource {
        main,
        read: Rc::new(move |path| below.borrow_mut()(path)),
        env: args.environment(std::env::vars()),
        memory_max: args.memory_max(),
        time_max: args.time_max(),
        seed: 1,
        clock: Rc::new(move || Nanos(begin.elapsed().as_nanos() as u64)),
        processor: Rc::new(|| Nanos(thread_cpu_ns())),
        realtime_origin_ns: since_1970.as_nanos() as u64,
    };
    let folder = match file.rfind('/') {
        Some(at) => &file[..=at],
        None => "",
    };
    inspect(&source).map_err(|failure| {
        let place = if failure.at.is_some() { folder } else { &format!("{file}: ") };
        Failure::input(format!("{place}{failure}"))
    })
}

impl ScriptArgs {
    /// A script as a scenario.
    pub fn scenario(&self, file: &str) -> Result<Scenario, Failure> {
        let found = read(file, self)?;
        let wrong = |why: String| Failure::input(format!("{file}: {why}"));
        let chosen = chosen(&found, self.script_scenario.as_deref()).map_err(wrong)?;
        let (servers, asked) = servers(&found, self).map_err(wrong)?;
        let (mut load, groups) = load(&chosen).map_err(wrong)?;
        load.graceful_stop = chosen.iter().map(|s| s.graceful_stop).max().unwrap_or_default();
        let settings = &found.options.settings;
        let fail_if =
            if settings.no_thresholds { Vec::new() } else { found.fail_if().map_err(wrong)? };
        let fail_if = fail_if.iter().map(|text| {
            let threshold = Threshold::parse(text).map(Threshold::or_absent);
            threshold.map_err(|why| wrong(format!("options.thresholds: {why}")))
        });
        let fail_if = fail_if.collect::<Result<_, _>>()?;
        if found.options.aborts_on_fail && !settings.no_thresholds {
            stdio::say(
                "note: thresholds are judged at the end: abortOnFail does not end the run early",
            );
        }
        let plan = plan(&found, (&chosen[..], groups), self, (file, servers.len(), asked));
        let Some(first) = servers.first() else {
            return Err(wrong("it has no servers".to_owned()));
        };
        let request = HttpRequest::new("GET", first, Vec::new(), Vec::new(), 1);
        let request = request.map_err(|why| wrong(why.to_string()))?;
        let connections = ConnectionSettings {
            no_reuse: settings.no_connection_reuse,
            any_certificate: settings.insecure_skip_tls_verify,
            resolve: resolve_rules(settings, &servers).map_err(wrong)?,
            certificates: settings.tls_auth.iter().map(certificate).collect(),
        };
        Ok(Scenario {
            requests: vec![request; SCRIPT_ROWS],
            servers,
            plan,
            load: Some(load),
            fail_if,
            metrics: metrics_in_reports(&found.metrics),
            timeout: Some(Nanos::from_secs(60)),
            connections,
        })
    }

    /// What a script would do, a line each: for `knee scenario check`.
    pub fn summary(&self, file: &str) -> Result<Vec<String>, Failure> {
        let found = read(file, self)?;
        let mut lines = Vec::new();
        for function in &found.tried {
            let count = function.requests.len();
            let plural = if count == 1 { "" } else { "s" };
            lines.push(format!("{}: {count} request{plural} in an iteration", function.name));
            for request in &function.requests {
                let made = &request.made;
                let scheme = if made.is_secure { "https" } else { "http" };
                let path = String::from_utf8_lossy(&made.path);
                lines.push(format!("  {} {scheme}://{}{path}", made.method, made.authority));
            }
            if let Some(failure) = &function.failure {
                lines.push(format!(
                    "  then it fails, where each request gets status 200 and an empty body: {failure}"
                ));
            }
        }
        lines.extend(found.log.lines().map(|line| format!("console: {line}")));
        Ok(lines)
    }
}

/// The rules for `--resolve` that `options.hosts` gives to servers: `HOST[:PORT]` has an address,
/// and `*.HOST` stands for all names below.
fn resolve_rules(settings: &ScriptSettings, servers: &[Url]) -> Result<Vec<String>, String> {
    let mut rules = Vec::new();
    for (pattern, value) in &settings.hosts {
        let wrong = |why: &str| format!("options.hosts: '{pattern}': {why}");
        let text = value.as_str().ok_or_else(|| wrong("expected an address"))?;
        let (name, port) = match pattern.rsplit_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (&**pattern, None),
        };
        for server in servers {
            let Endpoint::Tcp { host, port: own } = server.endpoint() else { continue };
            let own = own.to_string();
            let is_named = match name.strip_prefix('*') {
                Some(below) => host.ends_with(below),
                None => host == name,
            };
            if !is_named || port.is_some_and(|port| port != own) {
                continue;
            }
            let address = match text.parse::<SocketAddr>() {
                Ok(both) if both.port().to_string() == own => both.ip(),
                Ok(_) => return Err(wrong("another port is not supported: write it in the URL")),
                Err(_) => text.parse().map_err(|_| wrong("expected an address"))?,
            };
            rules.push(format!("{host}:{own}:{address}"));
        }
    }
    Ok(rules)
}

/// The scenarios that run.
fn chosen<'a>(
    found: &'a Inspection,
    name: Option<&str>,
) -> Result<Vec<&'a ScriptScenario>, String> {
    let all = &found.options.scenarios;
    let Some(name) = name else { return Ok(all.iter().collect()) };
    match all.iter().find(|scenario| scenario.name == name) {
        Some(scenario) => Ok(vec![scenario]),
        None => {
            let names: Vec<_> = all.iter().map(|scenario| scenario.name.as_str()).collect();
            Err(format!("it has no scenario '{name}': expected {}", names.join(" or ")))
        }
    }
}

/// The servers that requests go to: those of one iteration, those that were given, and where that
/// iteration ended early those whose URLs stand in the script. The number of the first ones, which
/// are there for more than a text.
fn servers(found: &Inspection, args: &ScriptArgs) -> Result<(Vec<Url>, usize), String> {
    let mut urls: Vec<Url> = Vec::new();
    let mut add = |url: Url| {
        if !urls.iter().any(|known| known.has_server_of(&url)) {
            urls.push(url);
        }
    };
    for request in found.tried.iter().flat_map(|function| &function.requests) {
        let scheme = if request.made.is_secure { "https" } else { "http" };
        let text = format!("{scheme}://{}/", request.made.authority);
        add(Url::parse(&text).map_err(|why| why.to_string())?);
    }
    for host in &args.script_host {
        add(Url::parse(host).map_err(|why| format!("--script-host: {why}"))?);
    }
    let asked = urls.len();
    let add = |url: Url| {
        if !urls.iter().any(|known| known.has_server_of(&url)) {
            urls.push(url);
        }
    };
    let failed = found.tried.iter().find_map(|function| function.failure.as_ref());
    if failed.is_some() {
        found.files.values().flat_map(|file| urls_in(&String::from_utf8_lossy(file))).for_each(add);
    }
    match (urls.is_empty(), failed) {
        (false, _) => Ok((urls, asked)),
        (true, Some(failure)) => Err(format!(
            "it fails before its first request: {failure}; with --script-host it runs nevertheless"
        )),
        (true, None) => {
            let warned = found.log.lines().find_map(|line| line.strip_prefix("warn: "));
            let why = warned.map(|why| format!(": {why}")).unwrap_or_default();
            Err(format!("it sends no request{why}"))
        }
    }
}

/// URLs within quotes in a script, comments and imports apart.
fn urls_in(text: &str) -> Vec<Url> {
    let lines = text
        .lines()
        .map(str::trim_start)
        .filter(|line| !["//", "*", "/*", "import "].iter().any(|begin| line.starts_with(begin)));
    let mut found = Vec::new();
    for line in lines {
        for scheme in ["http://", "https://"] {
            for (at, _) in line.match_indices(scheme) {
                if !line[..at].ends_with(['\'', '"', '`']) {
                    continue;
                }
                let rest = &line[at + scheme.len()..];
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !".:-_[]".contains(c));
                let host = &rest[..end.unwrap_or(rest.len())];
                found.extend(Url::parse(&format!("{scheme}{host}/")).ok());
            }
        }
    }
    found
}

fn plan(
    found: &Inspection,
    (chosen, groups): (&[&ScriptScenario], Vec<ScriptGroup>),
    args: &ScriptArgs,
    (file, servers, asked): (&str, usize, usize),
) -> SessionPlan {
    let settings = &found.options.settings;
    let kind = |name: &str, weight: u32| SessionKind {
        name: name.to_owned(),
        weight,
        program: vec![Instruction::Request(0)],
        ..SessionKind::default()
    };
    let mut kinds: Vec<_> =
        chosen.iter().map(|scenario| kind(&scenario.name, weight(scenario))).collect();
    let mut functions: Vec<_> = chosen.iter().map(|s| s.function.clone()).collect();
    let mut scenarios: Vec<_> =
        chosen.iter().map(|s| (s.name.clone(), s.executor.clone())).collect();
    let mut around = |name: &str| {
        let is_there = found.functions.iter().any(|function| function == name);
        is_there.then(|| {
            kinds.push(kind(name, 0));
            functions.push(name.to_owned());
            scenarios.push((String::new(), String::new()));
            kinds.len() as u16 - 1
        })
    };
    let setup = if settings.no_setup { None } else { around("setup") };
    let teardown = if settings.no_teardown { None } else { around("teardown") };
    let (batch, per_host) = (settings.batch.unwrap_or(20), settings.batch_per_host.unwrap_or(6));
    let most = |given: Option<Nanos>| given.unwrap_or(Nanos::from_secs(60));
    let name = Path::new(file).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let texts: Vec<_> = found.files.values().map(|f| String::from_utf8_lossy(f)).collect();
    let is_named = |name: &str| texts.iter().any(|text| text.contains(name));
    let env = args.environment(std::env::vars());
    let env = env.into_iter().filter(|(name, _)| is_named(name));
    let script = ScriptPlan {
        main: name.to_owned(),
        files: found.files.clone(),
        env: env.collect(),
        envs: chosen.iter().map(|scenario| scenario.env.clone()).collect(),
        users_keep_scenarios: chosen.iter().all(|scenario| {
            matches!(scenario.load, ScriptLoad::Users { .. } | ScriptLoad::Iterations { .. })
        }),
        groups,
        graceful_stop: None,
        graceful_stops: chosen.iter().map(|scenario| scenario.graceful_stop).collect(),
        servers_asked: asked as u16,
        functions,
        scenarios,
        options: found.options_json.clone(),
        rows: found.rows.clone(),
        memory_max: args.memory_max(),
        time_max: args.time_max(),
        body_max: args.body_max(),
        batch: (if servers > 1 { batch } else { batch.min(per_host) }, per_host),
        around_max: (most(settings.setup_timeout), most(settings.teardown_timeout)),
        requests_per_s_max: settings.rps.filter(|rps| *rps > 0.0),
        keeps_cookies: settings.no_cookies_reset,
        is_parallel: found.is_parallel,
        has_summary: found.functions.iter().any(|function| function == HANDLE_SUMMARY),
    };
    let step = |row: usize| RequestStep {
        name: found.rows.get(row).cloned().unwrap_or_default(),
        ..RequestStep::default()
    };
    SessionPlan {
        kinds,
        requests: (0..SCRIPT_ROWS).map(step).collect(),
        script: Some(Arc::new(script)),
        setup,
        teardown,
        ..SessionPlan::default()
    }
}

/// The share of a scenario among several at the same time.
fn weight(scenario: &ScriptScenario) -> u32 {
    match &scenario.load {
        ScriptLoad::Users { users, .. } | ScriptLoad::Iterations { users, .. } => (*users).max(1),
        ScriptLoad::Rate { per_s, .. } => ((per_s * 1e3) as u32).max(1),
        ScriptLoad::Stages { stages, .. } | ScriptLoad::RateStages { stages, .. } => {
            let most = stages.iter().map(|stage| stage.to).fold(0.0, f64::max);
            ((most * 1e3) as u32).max(1)
        }
    }
}

/// The load of scenarios that run at the same time, and that of each where they differ.
fn load(chosen: &[&ScriptScenario]) -> Result<(ScenarioLoad, Vec<ScriptGroup>), String> {
    let [first, others @ ..] = chosen else {
        return Err("it has no scenario".to_owned());
    };
    let mut sum = first.load.clone();
    if !others.iter().all(|other| first.start == other.start && add(&mut sum, &other.load)) {
        return grouped(chosen);
    }
    let none = ScenarioLoad { warmup: Some(Nanos::ZERO), ..ScenarioLoad::default() };
    let load = match sum {
        ScriptLoad::Users { users, duration: None } => {
            ScenarioLoad { vusers: Some(users), iterations: Some(ITERATIONS), ..none }
        }
        ScriptLoad::Users { users, duration } => {
            ScenarioLoad { vusers: Some(users), duration, ..none }
        }
        ScriptLoad::Iterations { users, iterations, at_most } if !is_each(first) => ScenarioLoad {
            vusers: Some(users),
            iterations: Some(iterations),
            duration: Some(at_most),
            ..none
        },
        ScriptLoad::Rate { per_s, duration, .. } => {
            let rate = Rate::from_f64(per_s);
            let wrong = || format!("invalid rate {per_s}: expected above 0");
            let rate = Some(rate.ok_or_else(wrong)?);
            ScenarioLoad { rate, duration: Some(duration), ..none }
        }
        _ => return grouped(chosen),
    };
    Ok((load, Vec::new()))
}

/// A certificate of `tlsAuth`.
fn certificate(own: &TlsAuth) -> DomainCertificate {
    let pem = |field: &str, pem: &str| Pem::Text {
        name: format!("options.tlsAuth: {field}"),
        pem: pem.to_owned(),
    };
    DomainCertificate {
        domains: own.domains.clone(),
        certificate: ClientCertificate {
            certificate: pem("cert", &own.cert),
            key: pem("key", &own.key),
        },
    }
}

/// Whether each user has as many iterations as all others.
fn is_each(scenario: &ScriptScenario) -> bool {
    scenario.executor == "per-vu-iterations"
}

/// Whether a scenario has a rate.
fn is_open(scenario: &ScriptScenario) -> bool {
    matches!(scenario.load, ScriptLoad::Rate { .. } | ScriptLoad::RateStages { .. })
}

/// The load of scenarios that differ: each has users of its own, or its part of the rate.
fn grouped(chosen: &[&ScriptScenario]) -> Result<(ScenarioLoad, Vec<ScriptGroup>), String> {
    let open = chosen.iter().find(|scenario| is_open(scenario));
    if let (Some(open), Some(closed)) = (open, chosen.iter().find(|s| !is_open(s))) {
        return Err(format!(
            "its scenario '{}' has a rate and '{}' has users, and a run has one of these: choose \
             one with --script-scenario, and run the other beside it",
            open.name, closed.name
        ));
    }
    let weights = chosen.iter().map(|scenario| u64::from(weight(scenario)));
    let scale = if weights.sum::<u64>() < 4_000_000 { 1e6 } else { 1e3 };
    let begin = chosen.iter().map(|scenario| scenario.start).min().unwrap_or_default();
    let mut groups = Vec::new();
    for scenario in chosen {
        let mut group = group(scenario, scale)?;
        let length = scenario.start - begin;
        if length > Nanos::ZERO {
            group.stages.insert(0, UserStage { from: 0, to: 0, length });
        }
        groups.push(group);
    }
    let stages = summed(&groups);
    let load = ScenarioLoad { warmup: Some(Nanos::ZERO), ..ScenarioLoad::default() };
    let load = if open.is_some() {
        let stages = stages.iter().map(|stage| RateStage {
            from_per_s: f64::from(stage.from) / scale,
            to_per_s: f64::from(stage.to) / scale,
            length: stage.length,
        });
        ScenarioLoad { stages: LoadStages::Rates(stages.collect()), ..load }
    } else {
        ScenarioLoad {
            stages: LoadStages::Users(stages),
            vusers: Some(groups.iter().fold(0, |sum, group| group.users.saturating_add(sum))),
            iterations: groups.iter().map(|group| group.iterations).sum(),
            ..load
        }
    };
    Ok((load, groups))
}

/// A scenario among others that differ; rates are multiplied by `scale`.
fn group(scenario: &ScriptScenario, scale: f64) -> Result<ScriptGroup, String> {
    let scale = if is_open(scenario) { scale } else { 1.0 };
    let stage = |from: f64, to: f64, length| UserStage {
        from: (from * scale).round() as u32,
        to: (to * scale).round() as u32,
        length,
    };
    let constant = |many: f64, length| vec![stage(many, many, length)];
    let mut iterations = None;
    let stages = match &scenario.load {
        ScriptLoad::Users { users, duration: Some(length) } => constant((*users).into(), *length),
        ScriptLoad::Users { .. } => {
            return Err(format!("scenarios.{}: 'duration' is missing", scenario.name));
        }
        ScriptLoad::Iterations { users, iterations: count, at_most } => {
            iterations = Some(*count);
            constant((*users).into(), *at_most)
        }
        ScriptLoad::Rate { per_s, duration, .. } => constant(*per_s, *duration),
        ScriptLoad::Stages { from, stages } | ScriptLoad::RateStages { from, stages, .. } => {
            lengthened(*from, stages, stage)
        }
    };
    let most = stages.iter().map(|stage| stage.from.max(stage.to)).max().unwrap_or_default();
    let users = if is_open(scenario) { 0 } else { most };
    Ok(ScriptGroup { users, stages, iterations, is_each: is_each(scenario) })
}

/// The stages of all groups together.
fn summed(groups: &[ScriptGroup]) -> Vec<UserStage> {
    let mut ends = vec![Nanos::ZERO];
    for group in groups {
        ends.extend(group.stages.iter().scan(Nanos::ZERO, |end, stage| {
            *end += stage.length;
            Some(*end)
        }));
    }
    ends.sort_unstable();
    ends.dedup();
    let at = |time| {
        groups.iter().map(|group| UserStage::at(&group.stages, time)).sum::<f64>().round() as u32
    };
    let stage = |ends: &[Nanos]| UserStage {
        from: at(ends[0]),
        to: at(ends[1] - Nanos(1)),
        length: ends[1] - ends[0],
    };
    ends.windows(2).map(stage).collect()
}

/// Adds another load of the same kind and time. Returns whether it is one.
fn add(sum: &mut ScriptLoad, other: &ScriptLoad) -> bool {
    match (sum, other) {
        (
            ScriptLoad::Users { users, duration },
            ScriptLoad::Users { users: more, duration: other },
        ) if duration == other => *users += more,
        (
            ScriptLoad::Rate { per_s, duration, .. },
            ScriptLoad::Rate { per_s: more, duration: other, .. },
        ) if duration == other => *per_s += more,
        _ => return false,
    }
    true
}

/// Stages from one number to the next. One without length sets the number from which the next one
/// begins.
fn lengthened<T>(from: f64, stages: &[ScriptStage], make: impl Fn(f64, f64, Nanos) -> T) -> Vec<T> {
    let mut at = from;
    let made = stages.iter().filter_map(|stage| {
        let begin = std::mem::replace(&mut at, stage.to);
        (stage.duration > Nanos::ZERO).then(|| make(begin, stage.to, stage.duration))
    });
    made.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_a_script_are_found() {
        let text = "// 'http://a/'\nimport x from 'https://b/x.js';\nconst c = `https://c:8/${d}`;\n\
                    f(\"http://d\");";
        let hosts: Vec<_> = urls_in(text).iter().map(|url| url.host().to_owned()).collect();
        assert_eq!(hosts, ["c:8", "d"]);
    }
}
