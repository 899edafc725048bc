//! The requests of a run, serialised before it, and which comes next.

use crate::exchange::http1::serialise_head;
use crate::reactor::{Requests, Wire};
use knee_core::rng::{self, Rng};
use knee_core::spec::{HttpTarget, Pick};

/// One worker's view of the requests.
pub(crate) struct RequestSet {
    bytes: Requests,
    /// Which of them may be sent twice.
    idempotent: Box<[bool]>,
    /// Which of them may come with a handshake, whose bytes others can send again.
    safe: Box<[bool]>,
    /// The running sums of the weights, where requests are picked at random.
    weights: Option<Box<[u64]>>,
    next: usize,
    rng: Rng,
}

/// All requests of a target in their bytes on the wire.
pub(crate) fn serialise_all(target: &HttpTarget) -> Requests {
    let wires = target.requests.iter();
    Requests::new(wires.map(|r| Wire::new(serialise_head(r, target.keep_alive), &r.body)))
}

impl RequestSet {
    /// The requests of `target`, already in `bytes`; `rng` picks where they are picked at random,
    /// `first` says with which to begin where they are taken in order.
    pub(crate) fn new(target: &HttpTarget, bytes: Requests, first: usize, rng: Rng) -> RequestSet {
        let methods = target
            .requests
            .iter()
            .map(|request| request.method.as_str());
        // RFC 9110 §9.2.1
        let is_safe = |method: &str| matches!(method, "GET" | "HEAD" | "OPTIONS" | "TRACE");
        let safe: Box<[bool]> = methods.clone().map(is_safe).collect();
        // §9.2.2
        let idempotent = methods.map(|m| is_safe(m) || matches!(m, "PUT" | "DELETE"));
        let weights = match target.pick {
            Pick::Weighted if bytes.count() > 1 => Some(running_sums(target)),
            _ => None,
        };
        let next = first % bytes.count();
        RequestSet {
            idempotent: idempotent.collect(),
            safe,
            weights,
            next,
            rng,
            bytes,
        }
    }

    /// The number of the next request.
    #[inline]
    pub(crate) fn pick(&mut self) -> usize {
        if let Some(weights) = &self.weights {
            let total = weights[weights.len() - 1];
            let drawn = (rng::unit(&mut self.rng) * total as f64) as u64;
            return weights
                .partition_point(|&sum| sum <= drawn)
                .min(weights.len() - 1);
        }
        let picked = self.next;
        self.next = if picked + 1 == self.bytes.count() {
            0
        } else {
            picked + 1
        };
        picked
    }

    /// What lies in one piece from byte `from` of a request on; empty at its end.
    #[inline]
    pub(crate) fn piece(&self, request: usize, from: usize) -> &[u8] {
        self.bytes.piece(request, from)
    }

    /// Its length on the wire.
    #[inline]
    pub(crate) fn length(&self, request: usize) -> u64 {
        self.bytes.length(request) as u64
    }

    /// Whether it may be sent twice.
    pub(crate) fn is_idempotent(&self, request: usize) -> bool {
        self.idempotent[request]
    }

    /// Whether it may come with a handshake (RFC 8470 §4).
    pub(crate) fn is_safe(&self, request: usize) -> bool {
        self.safe[request]
    }
}

fn running_sums(target: &HttpTarget) -> Box<[u64]> {
    let mut sum = 0;
    let weights = target.requests.iter().map(|r| u64::from(r.weight));
    weights
        .map(|w| {
            sum += w;
            sum
        })
        .collect()
}
