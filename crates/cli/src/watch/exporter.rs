//! The running experiment for Prometheus: `--metrics`.

use super::{ExperimentStart, UpcomingTrial, Watcher};
use crate::failure::Failure;
use knee_core::trial::report::TrialReport;
use knee_engine::serve::exposition::{ExposedPage, Exposition};
use knee_load::measure::{Histogram, Interval};
use knee_render::openmetrics::{BOUNDS, CONTENT_TYPE, Metrics, Times};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where the metrics are.
const PATH: &str = "/metrics";

/// Serves the metrics until it is dropped.
pub struct MetricsServer {
    metrics: Shared,
    server: Exposition,
}

impl MetricsServer {
    /// Listens at this address.
    ///
    /// # Errors
    /// It cannot.
    pub fn start(address: SocketAddr) -> Result<MetricsServer, Failure> {
        let metrics = Shared::default();
        let served = metrics.clone();
        let page = ExposedPage {
            path: PATH,
            content_type: CONTENT_TYPE,
            make: Box::new(move || served.lock().text()),
        };
        let server = Exposition::start(address, page).map_err(|e| {
            Failure::argument("--metrics", format!("cannot listen at {address}: {e}"))
        })?;
        Ok(MetricsServer { metrics, server })
    }

    /// Where they are to be had.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.server.address())
    }

    /// Who keeps them up to date.
    pub fn exporter(&self) -> impl Watcher + use<> {
        Exporter(self.metrics.clone())
    }
}

/// The metrics, shared by the thread that watches and the one that serves. Both hold the lock
/// briefly.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Metrics>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Metrics> {
        // Sums are right even where somebody panicked with them in hand.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Exporter(Shared);

impl Watcher for Exporter {
    fn opens(&mut self, start: &ExperimentStart) {
        let command = start.command.to_string();
        let seed = start.seed.to_string();
        let info = [
            ("command", command.as_str()),
            ("version", env!("CARGO_PKG_VERSION")),
            ("started_at", start.started_at.as_str()),
            ("seed", seed.as_str()),
        ];
        *self.0.lock() = Metrics::new(&info);
    }

    fn trial_begins(&mut self, _: usize, upcoming: &UpcomingTrial) {
        self.0.lock().trial_begins(&upcoming.live());
    }

    fn interval(&mut self, interval: &Interval, response: Option<&Histogram>) {
        let times = response.map(|histogram| Times {
            up_to: histogram.counts_up_to(&BOUNDS),
            count: histogram.count(),
            sum_ns: histogram.mean_ns() * histogram.count() as f64,
        });
        self.0.lock().interval(interval, times.as_ref());
    }

    fn trial_ends(&mut self, _: Option<&TrialReport>) {
        self.0.lock().trial_ends();
    }
}
