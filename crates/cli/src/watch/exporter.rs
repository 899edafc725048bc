//! The metrics of the running experiment: who keeps them up to date, and `--metrics`, the page of
//! them for Prometheus.

use super::{ExperimentStart, UpcomingTrial, Watcher};
use crate::failure::Failure;
use crate::notes::{Notes, about};
use knee_core::trial::report::TrialReport;
use knee_engine::serve::exposition::{ExposedPage, Exposition};
use knee_load::measure::{Histogram, Interval};
use knee_load::time::Nanos;
use knee_render::metrics::{BOUNDS, MetricLabel, Metrics, Times};
use knee_render::openmetrics::{CONTENT_TYPE, openmetrics};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where the metrics are.
const PATH: &str = "/metrics";

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
            path: PATH,
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
        format!("http://{}{PATH}", self.0.address())
    }

    /// Waits until the last figures were scraped, where somebody scraped the earlier ones.
    pub fn await_last_scrape(&self, notes: Notes) {
        if let Some(limit) = self.0.until_scrape().filter(|limit| !limit.is_zero()) {
            let most = about(Nanos(limit.as_nanos() as u64));
            notes.tell(&format!("metrics: waiting for the last scrape, {most} at most"));
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
        let (live, http) = (upcoming.live(), upcoming.http.clone());
        self.0.lock().trial_begins(&live, http, now_unix_ns());
    }

    fn interval(&mut self, interval: &Interval, response: Option<&Histogram>) {
        let times = response.map(|histogram| Times {
            up_to: histogram.counts_up_to(&BOUNDS),
            count: histogram.count(),
            sum_ns: histogram.mean_ns() * histogram.count() as f64,
        });
        self.0.lock().interval(interval, times.as_ref());
    }

    fn trial_ends(&mut self, trial: Option<&TrialReport>) {
        self.0.lock().trial_ends(trial);
    }
}

/// The time of day, in nanoseconds since 1970-01-01 UTC.
pub(super) fn now_unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
