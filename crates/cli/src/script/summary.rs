//! `handleSummary` of a script: the results of a run in the form that k6 gives them, and what the
//! function returns.

use crate::failure::Failure;
use crate::{confined, stdio, whole_file};
use knee_core::report::Report;
use knee_core::trial::figure::TimesReport;
use knee_core::trial::report::TrialReport;
use knee_core::trial::sessions::{CheckReport, ScriptMetricReport};
use knee_engine::sys::clock::{monotonic_ns, thread_cpu_ns};
use knee_load::measure::error_share;
use knee_load::session::{ScriptPlan, SessionPlan};
use knee_load::time::Nanos;
use knee_script::{HANDLE_SUMMARY, MetricKind, MetricName, summarize, threshold_texts};
use serde_json::{Map, Value, json};
use std::path::{Component, Path};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Separates the names of groups and checks.
const GROUP_SEPARATOR: &str = "::";

/// Calls `handleSummary` where the script of a run has one, and writes what it returns. What goes
/// wrong is said in a line, and changes nothing else, as in k6. `has_stdout`: whether standard
/// output has the report as text, and room for another one.
pub fn handle_summary(sessions: &SessionPlan, report: &Report, has_stdout: bool) {
    let script = sessions.script.as_ref().filter(|script| script.has_summary);
    let (Some(script), Some(trial)) = (script, report.trials.first()) else {
        return;
    };
    let results = Results { report, trial, script, given: &sessions.given }.value().to_string();
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let clocks: [knee_script::Clock; 2] =
        [Rc::new(|| Nanos(monotonic_ns())), Rc::new(|| Nanos(thread_cpu_ns()))];
    let origin_ns = (since_1970.as_nanos() as u64).saturating_sub(monotonic_ns());
    let texts = match summarize(script, &results, clocks, origin_ns) {
        Ok(texts) => texts,
        Err(failure) => return stdio::say(&format!("{HANDLE_SUMMARY} failed: {failure}")),
    };
    for (place, text) in texts {
        let written = match &*place {
            "stdout" if has_stdout => stdio::write(|out| out.write_all(text.as_bytes())),
            "stdout" | "stderr" => {
                stdio::say(text.trim_end_matches('\n'));
                Ok(())
            }
            path => write_file(path, &text),
        };
        if let Err(failure) = written {
            stdio::say(&failure.to_string());
        }
    }
}

/// Writes a file below the current folder. A script has no other way to write one.
fn write_file(path: &str, text: &str) -> Result<(), Failure> {
    let wrong = |why: &str| Err(Failure::argument(HANDLE_SUMMARY, format!("'{path}': {why}")));
    if confined::is_confined() {
        return wrong("this process writes no files for scripts");
    }
    let is_below = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    if path.is_empty() || !Path::new(path).components().all(is_below) {
        return wrong("expected a path below the current folder");
    }
    match whole_file::replace(Path::new(path), text.as_bytes()) {
        Ok(()) => Ok(()),
        Err(e) => wrong(&format!("cannot be written: {e}")),
    }
}

/// The results of a run, from which `data` of k6 is made.
struct Results<'a> {
    report: &'a Report,
    trial: &'a TrialReport,
    script: &'a Arc<ScriptPlan>,
    given: &'a [Vec<u8>],
}

impl Results<'_> {
    /// `data`: see "Custom summary" in the documentation of k6.
    fn value(&self) -> Value {
        let given = self.given.first().and_then(|given| serde_json::from_slice(given).ok());
        json!({
            "root_group": self.groups(),
            "options": {
                "summaryTrendStats": self.trend_names(),
                "summaryTimeUnit": self.option("summaryTimeUnit").as_str().unwrap_or_default(),
                "noColor": stdio::refuses_color(),
            },
            "state": {
                "isStdOutTTY": stdio::is_stdout(),
                "isStdErrTTY": stdio::is_stderr(),
                "testRunDurationMs": self.trial.duration_ns as f64 / 1e6,
            },
            "metrics": self.metrics(),
            "setup_data": given.unwrap_or(Value::Null),
        })
    }

    fn option(&self, name: &str) -> Value {
        let options: Value = serde_json::from_str(&self.script.options).unwrap_or_default();
        options[name].clone()
    }

    /// Names of the figures of trends.
    fn trend_names(&self) -> Vec<String> {
        match serde_json::from_value(self.option("summaryTrendStats")) {
            Ok(names) => names,
            Err(_) => ["avg", "min", "med", "max", "p(90)", "p(95)"].map(str::to_owned).into(),
        }
    }

    /// Checks in their groups.
    fn groups(&self) -> Value {
        let mut root = Group::default();
        let script = self.trial.sessions().and_then(|sessions| sessions.script.as_ref());
        for check in script.map_or(&[][..], |script| &script.checks) {
            let mut names: Vec<&str> = check.name.split(GROUP_SEPARATOR).collect();
            let name = names.pop().unwrap_or_default();
            let mut group = &mut root;
            for inner in names {
                let known = group.groups.iter().position(|of| of.name == inner);
                let at = known.unwrap_or_else(|| {
                    let path = format!("{}{GROUP_SEPARATOR}{inner}", group.path);
                    group.groups.push(Group { name: inner.to_owned(), path, ..Group::default() });
                    group.groups.len() - 1
                });
                group = &mut group.groups[at];
            }
            group.checks.push((name.to_owned(), check.clone()));
        }
        root.value()
    }

    fn metrics(&self) -> Map<String, Value> {
        let (trial, mut metrics) = (self.trial, Map::new());
        let seconds = trial.duration_ns as f64 / 1e9;
        let per_s = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
        let mut add = |name: &str, kind: &str, contains: &str, values: Value| {
            let metric = json!({ "type": kind, "contains": contains, "values": values });
            metrics.insert(name.to_owned(), metric);
        };
        let counter = |count: f64| json!({ "count": count, "rate": per_s(count) });
        let rate = |passes: u64, fails: u64| {
            let share = passes as f64 / (passes + fails).max(1) as f64;
            json!({ "rate": share, "passes": passes, "fails": fails })
        };
        let names = self.trend_names();
        let trend = |times: &TimesReport| trend(&names, times, 1e6);
        add("http_reqs", "counter", "default", counter(trial.attempted as f64));
        add("http_req_duration", "trend", "time", trend(&trial.response_time_ns));
        let failed = (error_share(&trial.outcomes) * trial.attempted as f64).round() as u64;
        add("http_req_failed", "rate", "default", rate(failed, trial.attempted - failed));
        add("data_received", "counter", "data", counter(trial.bytes_received as f64));
        let sent = trial.http().map_or(0, |http| http.traffic.bytes_sent);
        add("data_sent", "counter", "data", counter(sent as f64));
        if let Some(users) = self.report.spec.get("vusers").and_then(Value::as_u64) {
            let gauge = json!({ "value": users, "min": users, "max": users });
            add("vus", "gauge", "default", gauge.clone());
            add("vus_max", "gauge", "default", gauge);
        }
        let Some(sessions) = trial.sessions() else {
            return metrics;
        };
        let ended: u64 = sessions.kinds.iter().map(|kind| kind.completed + kind.failed).sum();
        add("iterations", "counter", "default", counter(ended as f64));
        if let [kind] = &sessions.kinds[..] {
            add("iteration_duration", "trend", "time", trend(&kind.session_time_ns));
        }
        let mut own = Vec::new();
        if let Some(script) = &sessions.script {
            if !script.checks.is_empty() {
                let sum = |of: fn(&CheckReport) -> u64| script.checks.iter().map(of).sum();
                add("checks", "rate", "default", rate(sum(|c| c.succeeded), sum(|c| c.failed)));
            }
            for metric in &script.metrics {
                let contains = if metric.is_time { "time" } else { "default" };
                let values = match &*metric.kind {
                    "counter" => counter(metric.value.unwrap_or_default()),
                    "rate" => {
                        let [hits, all] = metric.hits.unwrap_or_default();
                        rate(hits, all - hits)
                    }
                    "gauge" => {
                        let [min, max] = metric.range.unwrap_or_default();
                        json!({ "value": metric.value, "min": min, "max": max })
                    }
                    _ => own_trend(&names, metric),
                };
                add(&metric.metric, &metric.kind, contains, values);
                let kind = serde_json::from_value(Value::from(&*metric.kind));
                let kind = kind.unwrap_or(MetricKind::Trend);
                let (name, is_time) = (metric.metric.clone(), metric.is_time);
                own.push(MetricName { name, kind, is_time });
            }
        }
        self.add_thresholds(&mut metrics, &own);
        metrics
    }

    /// Says of each metric which of its thresholds were kept.
    fn add_thresholds(&self, metrics: &mut Map<String, Value>, own: &[MetricName]) {
        for (metric, expression, text) in threshold_texts(&self.script.options, own) {
            let judged = self.report.thresholds.iter().find(|known| known.expression == text);
            if let (Some(judged), Some(metric)) = (judged, metrics.get_mut(&metric)) {
                metric["thresholds"][expression] = json!({ "ok": judged.is_kept() });
            }
        }
    }
}

/// Figures of a trend by their names, in units of `unit` of what the report has.
fn trend(names: &[String], times: &TimesReport, unit: f64) -> Value {
    let figure = |name: &str| match name {
        "avg" => Some("mean"),
        "min" => Some("min"),
        "med" | "p(50)" => Some("p50"),
        "max" => Some("max"),
        "p(75)" => Some("p75"),
        "p(90)" => Some("p90"),
        "p(95)" => Some("p95"),
        "p(99)" => Some("p99"),
        "p(99.9)" => Some("p999"),
        _ => None,
    };
    let mut values = Map::new();
    for name in names {
        if name == "count" {
            values.insert(name.clone(), times.count.into());
        }
        let known = TimesReport::FIGURES.iter().find(|known| Some(known.key) == figure(name));
        let value = known.and_then(|known| {
            let most = || times.ranges.get(known.key)?.at_most;
            known.value(times).or_else(most)
        });
        if let Some(value) = value {
            values.insert(name.clone(), (value as f64 / unit).into());
        }
    }
    values.into()
}

/// The same of a metric that the script made, whose report has the percentiles that it names.
fn own_trend(names: &[String], metric: &ScriptMetricReport) -> Value {
    let mut values = metric.trend.as_ref().map_or(json!({}), |times| trend(names, times, 1e6));
    for name in names {
        if let Some(value) = metric.percentiles.get(name) {
            values[name] = (*value).into();
        }
    }
    values
}

/// A group with its checks.
#[derive(Default)]
struct Group {
    name: String,
    path: String,
    groups: Vec<Group>,
    checks: Vec<(String, CheckReport)>,
}

impl Group {
    fn value(&self) -> Value {
        let checks = self.checks.iter().map(|(name, check)| {
            let path = format!("{}{GROUP_SEPARATOR}{name}", self.path);
            json!({
                "name": name, "path": path, "id": path,
                "passes": check.succeeded, "fails": check.failed,
            })
        });
        json!({
            "name": self.name, "path": self.path, "id": self.path,
            "groups": self.groups.iter().map(Group::value).collect::<Vec<_>>(),
            "checks": checks.collect::<Vec<_>>(),
        })
    }
}
