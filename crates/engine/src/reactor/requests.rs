//! Requests of a run, as bytes on the wire.

use knee_load::spec::Body;
use std::sync::Arc;

/// Longest body kept behind its head, so that both are sent in one call. Longer bodies are not
/// copied.
const JOINED_BYTES_MAX: usize = 16 << 10;

/// The requests of a run, serialised once before it. A backend keeps them alive, as the kernel may
/// read from them until a send has completed.
#[derive(Clone, Debug)]
pub(crate) struct WireRequests(Arc<[WireRequest]>);

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct WireRequest {
    /// The head, with a short body behind it.
    head: Box<[u8]>,
    /// A long body, shared with all else that holds it.
    body: Body,
}

impl WireRequest {
    /// A head and the body that follows it.
    pub(crate) fn new(mut head: Vec<u8>, body: &Body) -> WireRequest {
        let mut body = body.clone();
        if body.len() <= JOINED_BYTES_MAX {
            head.extend_from_slice(&body);
            body = Body::default();
        }
        WireRequest { head: head.into_boxed_slice(), body }
    }

    /// Its length on the wire.
    pub(crate) fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }
}

impl WireRequests {
    /// Requests in this order.
    pub(crate) fn new(requests: impl IntoIterator<Item = WireRequest>) -> WireRequests {
        WireRequests(requests.into_iter().collect())
    }

    /// Number of requests.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The length of a request.
    #[inline]
    pub(crate) fn length(&self, request: usize) -> usize {
        self.0[request].len()
    }

    /// The length of the longest.
    pub(crate) fn length_max(&self) -> usize {
        self.0.iter().map(WireRequest::len).max().unwrap_or(0)
    }

    /// A contiguous piece of a request from byte `from` on; empty at its end.
    #[inline]
    pub(crate) fn piece(&self, request: usize, from: usize) -> &[u8] {
        let WireRequest { head, body } = &self.0[request];
        match head.get(from..) {
            Some(rest) if !rest.is_empty() => rest,
            _ => body.get(from - head.len()..).unwrap_or_default(),
        }
    }

    /// The one or two pieces of a request; the second may be empty.
    #[inline]
    pub(crate) fn pieces(&self, request: usize) -> (&[u8], &[u8]) {
        let WireRequest { head, body } = &self.0[request];
        (head, body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_body_is_not_copied() {
        let long = Body::from(vec![b'x'; JOINED_BYTES_MAX + 1]);
        let short = Body::from(vec![b'y'; 3]);
        let wires = [&long, &short].map(|body| WireRequest::new(b"head".to_vec(), body));
        let requests = WireRequests::new(wires);
        assert!(std::ptr::eq(requests.pieces(0).1.as_ptr(), long.as_ptr()));
        assert_eq!(requests.pieces(1), (&b"headyyy"[..], &b""[..]));
        for request in 0..requests.count() {
            let mut all = Vec::new();
            while let piece @ [_, ..] = requests.piece(request, all.len()) {
                // Cut short, as a send may be.
                all.extend_from_slice(&piece[..piece.len().div_ceil(2)]);
            }
            assert_eq!(all.len(), requests.length(request));
            assert!(all.starts_with(b"head"));
        }
        assert_eq!(requests.length_max(), long.len() + 4);
    }
}
