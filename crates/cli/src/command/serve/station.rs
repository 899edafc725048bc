//! How a server serves: the options of a queueing station.

use crate::args::parse_count;
use clap::Args;
use knee_load::law::Law;
use knee_load::spec::parse_law;

#[derive(Args, Clone, Copy, Debug)]
pub(super) struct StationArgs {
    /// Workers behind one queue, each serving one request at a time [default: no queue, every
    /// request is answered at once; 1 with --service]
    #[arg(long, value_name = "M", value_parser = parse_count)]
    workers: Option<u32>,

    /// Service time of a request: fixed(1ms), exp(100us), uniform(1ms,2ms), lognormal(1ms,0.5)
    /// [default: 0]
    #[arg(long, value_name = "S", value_parser = parse_law)]
    service: Option<Law>,
}

impl StationArgs {
    /// The workers; `None`: every request is answered at once.
    pub(super) fn workers(self) -> Option<u32> {
        self.workers.or(self.service.map(|_| 1))
    }

    /// The service time, if it was given.
    pub(super) fn service(self) -> Option<Law> {
        self.service
    }
}
