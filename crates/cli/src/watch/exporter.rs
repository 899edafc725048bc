//! The metrics of the running experiment: who keeps them up to date. `--metrics` is the page of
//! them for Prometheus, and `--otlp` pushes them to an OpenTelemetry collector.
//!
//! Of the environment variables of OpenTelemetry's SDKs, those of the endpoint count only where
//! `--otlp env` asks for them: a variable alone sends nothing anywhere.
//!
//! Sums are cumulative, so a push sends the state and nothing queues up.
//!
//! It joins `openmetrics` of the crate `knee-render` with `exposition` of the crate `knee-serve`, and
//! `otlp` with `push`.

use super::{ExperimentStart, UpcomingTrial, Watcher};
use crate::failure::Failure;
use crate::machine::now_unix_ns;
use crate::stdio::{Notes, about};
use knee_core::trial::report::TrialReport;
use knee_engine::interrupt;
use knee_engine::push::{PushSource, PushTarget, Pusher};
use knee_load::measure::{Histogram, Interval};
use knee_load::percent;
use knee_load::secrets::Secrets;
use knee_load::time::Nanos;
use knee_render::metrics::{BOUNDS, MetricLabel, Metrics, Times};
use knee_render::openmetrics::{CONTENT_TYPE, openmetrics};
use knee_render::otlp::{OTLP_CONTENT_TYPE, otlp_rejected, otlp_request};
use knee_serve::exposition::{ExposedPage, Exposition};
use std::env::VarError;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Where the metrics are.
const PAGE_PATH: &str = "/metrics";

/// Serves the metrics until it is dropped.
pub struct MetricsServer(Exposition);

impl MetricsServer {
    /// Listens at this address.
    ///
    /// # Errors
    /// It cannot.
    pub fn start(address: SocketAddr, metrics: &SharedMetrics) -> Result<MetricsServer, Failure> {
        let served = metrics.clone();
        let page = ExposedPage {
            path: PAGE_PATH,
            content_type: CONTENT_TYPE,
            make: Box::new(move || openmetrics(&served.lock().families(0))),
        };
        let server = Exposition::start(address, page).map_err(|e| {
            Failure::argument("--metrics", format!("cannot listen at {address}: {e}"))
        })?;
        Ok(MetricsServer(server))
    }

    /// Where they are to be had.
    pub fn url(&self) -> String {
        format!("http://{}{PAGE_PATH}", self.0.address())
    }

    /// Waits until the last figures were scraped, where somebody scraped the earlier ones.
    pub fn await_last_scrape(&self, notes: Notes) {
        if let Some(limit) = self.0.until_scrape().filter(|limit| !limit.is_zero()) {
            let most = about(Nanos(limit.as_nanos() as u64));
            notes.say(&format!("metrics: waiting for the last scrape, {most} at most"));
            self.0.await_scrape(limit);
        }
    }
}

/// The metrics, shared by the thread that watches and those that serve and push. Each holds the
/// lock briefly.
#[derive(Clone, Default)]
pub struct SharedMetrics(Arc<Mutex<Metrics>>);

impl SharedMetrics {
    pub(super) fn lock(&self) -> MutexGuard<'_, Metrics> {
        // Sums are right even where somebody panicked with them in hand.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who keeps them up to date.
    pub fn updater(&self) -> impl Watcher + use<> {
        MetricsUpdater(self.clone())
    }
}

struct MetricsUpdater(SharedMetrics);

impl Watcher for MetricsUpdater {
    fn opens(&mut self, start: &ExperimentStart) {
        let info = vec![
            MetricLabel::text("command", start.command.to_string()),
            MetricLabel::text("version", env!("CARGO_PKG_VERSION")),
            MetricLabel::text("started_at", &start.started_at),
            MetricLabel::text("seed", start.seed.to_string()),
        ];
        *self.0.lock() = Metrics::new(info, now_unix_ns());
    }

    fn trial_begins(&mut self, _: usize, upcoming: &UpcomingTrial) {
        self.0.lock().trial_begins(&upcoming.live, upcoming.http.clone(), now_unix_ns());
    }

    fn interval(&mut self, interval: &Interval, response: &Histogram) {
        let times = (!response.is_empty()).then(|| Times {
            up_to: response.counts_up_to(&BOUNDS),
            count: response.count(),
            sum_ns: response.mean_ns() * response.count() as f64,
        });
        self.0.lock().interval(interval, times.as_ref());
    }

    fn trial_ends(&mut self, trial: Option<&TrialReport>) {
        self.0.lock().trial_ends(trial);
    }
}

/// The word that asks for the endpoint of the environment.
const FROM_ENVIRONMENT: &str = "env";
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
const PROTOCOLS: [&str; 2] = ["OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
const HEADERS: [&str; 2] = ["OTEL_EXPORTER_OTLP_METRICS_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"];
const PERIOD: &str = "OTEL_METRIC_EXPORT_INTERVAL";
const ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";

/// The path of metrics below an endpoint.
const OTLP_PATH: &str = "/v1/metrics";
/// Time from one push to the next. The SDKs' minute would be longer than most runs.
const PERIOD_DEFAULT: Duration = Duration::from_secs(5);
/// Time limit of the last push.
const END_LIMIT: Duration = Duration::from_secs(5);

/// Where metrics are pushed, and how often.
#[derive(Clone, Debug)]
pub struct OtlpExport {
    target: PushTarget,
    /// The URL as it may be shown.
    shown: String,
    period: Duration,
    /// Attributes of the resource that the environment adds.
    attributes: Vec<(String, String)>,
}

impl OtlpExport {
    /// What `--otlp` asks for.
    ///
    /// # Errors
    /// What is wrong with it, or with which environment variable.
    pub fn resolve(given: &str) -> Result<OtlpExport, Failure> {
        let (source, given, url) = if given == FROM_ENVIRONMENT {
            endpoint_of_environment()?
        } else {
            ("--otlp", given.to_owned(), below(given))
        };
        let hidden = |text: &str| Secrets::default().hide(text).into_owned();
        let target = PushTarget::new(&url)
            .map_err(|wrong| Failure::argument(source, format!("'{}' {wrong}", hidden(&given))))?;
        let target = match first(&HEADERS)? {
            Some((variable, text)) => target
                .with_headers(&pairs(variable, &text)?)
                .map_err(|wrong| Failure::argument(variable, wrong))?,
            None => target,
        };
        let shown = hidden(&url);
        let attributes = variable(ATTRIBUTES)?;
        let attributes = attributes.map_or(Ok(Vec::new()), |text| pairs(ATTRIBUTES, &text))?;
        let service = variable(SERVICE_NAME)?.map(|name| ("service.name".to_owned(), name));
        let attributes = attributes.into_iter().chain(service).collect();
        Ok(OtlpExport { target, shown, period: period()?, attributes })
    }

    /// What it does, for people.
    pub fn note(&self) -> String {
        format!("otlp: {} every {} s", self.shown, self.period.as_secs_f64())
    }

    /// Who pushes these metrics.
    pub fn pusher(&self, metrics: &SharedMetrics) -> impl Watcher + use<> {
        let (export, metrics) = (self.clone(), metrics.clone());
        OtlpWatcher { export, metrics, pusher: None, fault: None, is_told: false }
    }

    /// What is measured with, by OpenTelemetry's conventions for resources. What the environment
    /// says of it comes first.
    fn resource(&self, start: &ExperimentStart) -> Vec<(String, String)> {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = host.trim();
        let instance = format!("{host}-{}-{}", std::process::id(), start.started_at);
        let arch = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let own = [
            ("service.name", "knee"),
            ("service.version", env!("CARGO_PKG_VERSION")),
            ("service.instance.id", instance.as_str()),
            ("host.name", host),
            ("host.arch", arch),
            ("os.type", std::env::consts::OS),
        ];
        let mut resource = self.attributes.clone();
        for (name, value) in own {
            if !value.is_empty() && resource.iter().all(|(given, _)| given != name) {
                resource.push((name.to_owned(), value.to_owned()));
            }
        }
        resource
    }
}

/// The URL of metrics below this one, unless it is that already.
fn below(url: &str) -> String {
    let base = url.trim_end_matches('/');
    if base.ends_with(OTLP_PATH) { base.to_owned() } else { format!("{base}{OTLP_PATH}") }
}

/// The variable that has the endpoint, its value, and the URL of metrics.
fn endpoint_of_environment() -> Result<(&'static str, String, String), Failure> {
    if let Some((variable, protocol)) = first(&PROTOCOLS)?
        && protocol != "http/protobuf"
    {
        let wrong = format!("'{protocol}': expected http/protobuf, which is all that knee speaks");
        return Err(Failure::argument(variable, wrong));
    }
    match first(&ENDPOINTS)? {
        // That of metrics alone is meant as it is.
        Some((variable, url)) if variable == ENDPOINTS[0] => Ok((variable, url.clone(), url)),
        Some((variable, url)) => Ok((variable, url.clone(), below(&url))),
        None => {
            let wrong = format!("'{FROM_ENVIRONMENT}': expected a URL in {}", ENDPOINTS[1]);
            Err(Failure::argument("--otlp", wrong))
        }
    }
}

fn period() -> Result<Duration, Failure> {
    let Some(text) = variable(PERIOD)? else {
        return Ok(PERIOD_DEFAULT);
    };
    let ms = text.parse::<u64>().ok().filter(|ms| *ms > 0);
    let wrong = || format!("'{text}': expected milliseconds, such as 5000");
    ms.map(Duration::from_millis).ok_or_else(|| Failure::argument(PERIOD, wrong()))
}

/// The value of an environment variable; one that is empty counts as not set.
fn variable(name: &str) -> Result<Option<String>, Failure> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(Failure::argument(name, "is not UTF-8 text")),
    }
}

/// The first of these variables that is set.
fn first(names: &[&'static str]) -> Result<Option<(&'static str, String)>, Failure> {
    for name in names {
        if let Some(text) = variable(name)? {
            return Ok(Some((*name, text)));
        }
    }
    Ok(None)
}

/// The pairs of `name=value,name=value`, percent-encoded. A fault never quotes the text, which may
/// be secret.
fn pairs(variable: &str, text: &str) -> Result<Vec<(String, String)>, Failure> {
    let pairs = text.split(',').filter(|pair| !pair.trim().is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let name = name.trim();
        (!name.is_empty()).then(|| (name.to_owned(), percent::decoded(value.trim())))
    });
    let pairs: Option<Vec<_>> = pairs.collect();
    pairs.ok_or_else(|| Failure::argument(variable, "expected NAME=VALUE,NAME=VALUE"))
}

/// The requests with the metrics.
struct OtlpSource {
    metrics: SharedMetrics,
    resource: Vec<(String, String)>,
    /// Trials that were over in the request under way, and in the last one that was taken: their
    /// figures do not change any more.
    sent: usize,
    taken: usize,
}

impl PushSource for OtlpSource {
    const CONTENT_TYPE: &'static str = OTLP_CONTENT_TYPE;

    fn document(&mut self) -> Vec<u8> {
        let metrics = self.metrics.lock();
        self.sent = metrics.ended();
        let families = metrics.families(self.taken);
        drop(metrics);
        otlp_request(&families, &self.resource, now_unix_ns())
    }

    fn accepted(&mut self, answer: &[u8]) -> Option<String> {
        self.taken = self.sent;
        let (count, why) = otlp_rejected(answer)?;
        let why = if why.is_empty() { why } else { format!(": {why}") };
        Some(format!("it rejected {count} values{why}"))
    }
}

/// Pushes while an experiment runs, and at its end.
struct OtlpWatcher {
    export: OtlpExport,
    metrics: SharedMetrics,
    pusher: Option<Pusher>,
    /// What the user has yet to be told.
    fault: Option<String>,
    is_told: bool,
}

fn warning(url: &str, fault: &str) -> String {
    format!("warning: otlp: {url}: {fault}")
}

impl Watcher for OtlpWatcher {
    fn opens(&mut self, start: &ExperimentStart) {
        let source = OtlpSource {
            metrics: self.metrics.clone(),
            resource: self.export.resource(start),
            sent: 0,
            taken: 0,
        };
        match Pusher::start(self.export.target.clone(), self.export.period, source) {
            Ok(pusher) => self.pusher = Some(pusher),
            Err(e) => self.fault = Some(warning(&self.export.shown, &e.to_string())),
        }
    }

    fn end(&mut self) {
        let Some(pusher) = self.pusher.take() else {
            return;
        };
        let is_taken = pusher.end(END_LIMIT, interrupt::is_raised);
        let OtlpExport { shown, .. } = &self.export;
        self.fault = match (is_taken, self.is_told, pusher.fault()) {
            (true, true, _) => Some(format!("otlp: {shown}: it took all figures in the end")),
            (true, false, _) | (false, true, _) => None,
            (false, false, Some(fault)) => Some(warning(shown, &fault)),
            (false, false, None) if interrupt::is_raised() => {
                Some(warning(shown, "it had not taken the last figures when knee was ended"))
            }
            (false, false, None) => {
                let limit = END_LIMIT.as_secs();
                Some(warning(shown, &format!("no answer within {limit} s to the last figures")))
            }
        };
    }

    fn remark(&mut self) -> Option<String> {
        if let Some(fault) = self.pusher.as_ref().and_then(Pusher::fault) {
            self.fault = Some(warning(&self.export.shown, &fault));
        }
        let fault = self.fault.take();
        self.is_told |= fault.is_some();
        fault
    }
}

#[cfg(test)]
mod tests;
