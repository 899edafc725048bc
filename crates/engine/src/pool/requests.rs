//! Requests of a run, serialised in advance, and their order.

use crate::exchange::{TargetConversation, WithConversation, with_conversation};
use crate::reactor::WireRequests;
use knee_load::rng::{self, Rng};
use knee_load::spec::{HttpRequest, Pick, Target};

/// One worker's view of the requests.
#[derive(Clone)]
pub(crate) struct RequestSet {
    bytes: WireRequests,
    /// Requests that may be sent twice.
    idempotent: Box<[bool]>,
    /// Requests that may be sent as early data, which others can replay.
    safe: Box<[bool]>,
    /// Running sums of the weights, for random picks.
    weights: Option<Box<[u64]>>,
    next: usize,
    /// Bytes of each request beyond its body; `None` where none has messages that are sent again.
    repeated: Option<Box<[i64]>>,
    rng: Rng,
}

/// Serialises all requests of a target.
pub(crate) fn serialise_all(target: &Target) -> WireRequests {
    struct Serialised<'a>(&'a Target);
    impl WithConversation for Serialised<'_> {
        type Output = WireRequests;

        fn with<X: TargetConversation>(self, settings: &X::Settings) -> WireRequests {
            WireRequests::new(X::wire_requests(settings, self.0))
        }
    }
    with_conversation(target, Serialised(target))
}

impl RequestSet {
    /// Requests of `target`, serialised in `bytes`. Random picks use `rng`; picks in order begin
    /// with
    /// `first`.
    pub(crate) fn new(target: &Target, bytes: WireRequests, first: usize, rng: Rng) -> RequestSet {
        let methods = target.requests.iter().map(|request| request.method.as_str());
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
        let idempotent = idempotent.collect();
        RequestSet { idempotent, safe, weights, next, repeated: repeated(target), rng, bytes }
    }

    /// The same requests as they leave over a connection of another kind.
    pub(crate) fn serialised_as(&self, bytes: WireRequests) -> RequestSet {
        RequestSet { bytes, ..self.clone() }
    }

    /// Picks the next request.
    #[inline]
    pub(crate) fn pick(&mut self) -> usize {
        if let Some(weights) = &self.weights {
            let total = weights[weights.len() - 1];
            let drawn = (rng::unit(&mut self.rng) * total as f64) as u64;
            return weights.partition_point(|&sum| sum <= drawn).min(weights.len() - 1);
        }
        let picked = self.next;
        self.next = if picked + 1 == self.bytes.count() { 0 } else { picked + 1 };
        picked
    }

    /// A contiguous piece of a request from byte `from` on; empty at its end.
    #[inline]
    pub(crate) fn piece(&self, request: usize, from: usize) -> &[u8] {
        self.bytes.piece(request, from)
    }

    /// The length of the longest on the wire, in bytes.
    pub(crate) fn length_max(&self) -> usize {
        self.bytes.length_max()
    }

    /// Its length on the wire, in bytes.
    #[inline]
    pub(crate) fn length(&self, request: usize) -> u64 {
        let once = self.bytes.length(request) as u64;
        match &self.repeated {
            None => once,
            Some(further) => once.saturating_add_signed(further[request]),
        }
    }

    /// Whether it may be sent twice.
    pub(crate) fn is_idempotent(&self, request: usize) -> bool {
        self.idempotent[request]
    }

    /// Whether it may be sent as early data (RFC 8470 §4).
    pub(crate) fn is_safe(&self, request: usize) -> bool {
        self.safe[request]
    }
}

/// Bytes of the messages of each request beyond its body.
fn repeated(target: &Target) -> Option<Box<[i64]>> {
    let further = |r: &HttpRequest| {
        let bytes = r.timed.as_ref().map(|timed| timed.bytes());
        bytes.map_or(0, |bytes| bytes as i64 - r.body.len() as i64)
    };
    let any = target.requests.iter().any(|r| further(r) != 0);
    any.then(|| target.requests.iter().map(further).collect())
}

fn running_sums(target: &Target) -> Box<[u64]> {
    let mut sum = 0;
    let weights = target.requests.iter().map(|r| u64::from(r.weight));
    weights
        .map(|w| {
            sum += w;
            sum
        })
        .collect()
}
