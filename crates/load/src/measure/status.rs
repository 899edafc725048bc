//! Statuses of responses, in the terms of their protocols.

use super::Outcome;

/// Status of a whole response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Of HTTP.
    Http(u16),
    /// A message, which has none.
    Message,
    /// The close code of a WebSocket connection that ended with operations under way.
    WebSocketClose(u16),
    /// Of gRPC, from the trailers of a call: 0 to 16.
    Grpc(u16),
    /// The response code of DNS (RFC 1035 §4.1.1).
    Dns(u16),
    /// An answer of DNS that says over TCP that it is truncated.
    DnsTruncated,
}

/// What a status says of its operation, where that is a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailedStatus {
    /// HTTP, 400 to 499.
    Http4xx,
    /// HTTP, 500 or more.
    Http5xx,
    /// The close of a WebSocket connection.
    WebSocketClosed,
    /// A call of gRPC whose status is not OK.
    GrpcFailed,
    /// DNS, SERVFAIL.
    DnsServfail,
    /// DNS, NXDOMAIN.
    DnsNxdomain,
    /// DNS, REFUSED.
    DnsRefused,
    /// DNS, another response code than these and NOERROR.
    DnsOther,
    /// DNS, truncated.
    DnsTruncated,
}

impl FailedStatus {
    /// All of them, each with its name in reports and its meaning for people, in their order.
    pub(super) const ROWS: [(FailedStatus, &str, &str); 9] = [
        (FailedStatus::Http4xx, "http_4xx", "status 400 to 499"),
        (FailedStatus::Http5xx, "http_5xx", "status 500 or more"),
        (FailedStatus::WebSocketClosed, "websocket_closed", "WebSocket closed by the target"),
        (FailedStatus::GrpcFailed, "grpc_failed", "a gRPC status other than OK"),
        (FailedStatus::DnsServfail, "dns_servfail", "SERVFAIL of DNS"),
        (FailedStatus::DnsNxdomain, "dns_nxdomain", "NXDOMAIN of DNS (no such name)"),
        (FailedStatus::DnsRefused, "dns_refused", "REFUSED of DNS"),
        (FailedStatus::DnsOther, "dns_other", "another response code of DNS"),
        (FailedStatus::DnsTruncated, "dns_truncated", "a truncated answer of DNS, even over TCP"),
    ];
}

/// The name of a status of gRPC (grpc/status.proto); `None` for another number.
pub fn grpc_status_name(code: u16) -> Option<&'static str> {
    const NAMES: [&str; 17] = [
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    ];
    NAMES.get(usize::from(code)).copied()
}

impl Status {
    /// The status as a number.
    #[inline]
    pub fn code(self) -> u16 {
        match self {
            Status::Http(code)
            | Status::WebSocketClose(code)
            | Status::Grpc(code)
            | Status::Dns(code) => code,
            Status::Message | Status::DnsTruncated => 0,
        }
    }

    /// How an operation with this status ended.
    #[inline]
    pub fn outcome(self) -> Outcome {
        match self {
            Status::Http(0..400) | Status::Message | Status::Grpc(0) | Status::Dns(0) => {
                Outcome::Ok
            }
            Status::Http(400..500) => Outcome::HTTP_4XX,
            Status::Http(_) => Outcome::HTTP_5XX,
            Status::Dns(2) => Outcome::Failed(FailedStatus::DnsServfail),
            Status::Dns(3) => Outcome::Failed(FailedStatus::DnsNxdomain),
            Status::Dns(5) => Outcome::Failed(FailedStatus::DnsRefused),
            Status::Dns(_) => Outcome::Failed(FailedStatus::DnsOther),
            Status::DnsTruncated => Outcome::Failed(FailedStatus::DnsTruncated),
            Status::WebSocketClose(_) => Outcome::Failed(FailedStatus::WebSocketClosed),
            Status::Grpc(_) => Outcome::Failed(FailedStatus::GrpcFailed),
        }
    }
}
