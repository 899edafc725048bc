//! Requests of scripts and what comes for them.

use knee_load::session::MadeRequest;
use knee_load::time::Nanos;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// Ranges of statuses, both ends included.
pub(crate) type Statuses = Rc<[(u16, u16)]>;

/// A request that goes out.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptRequest {
    /// The request.
    pub made: Arc<MadeRequest>,
    /// Its row in the report.
    pub row: u32,
    /// When the script called it, by the user's time; [`Nanos::MAX`] where it follows a redirection.
    pub called_at: Nanos,
    /// What the script took to make it, where its response time counts from the begin of the
    /// iteration.
    pub made_within: Nanos,
    /// Its time limit; `None`: that of the run.
    pub timeout: Option<Nanos>,
    /// Statuses that are no failure, both ends included; `None`: those below 400.
    pub expects: Option<Rc<[(u16, u16)]>>,
}

/// What came for a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptResponse {
    /// The status; 0 without a response.
    pub status: u16,
    /// The header lines, each with CR LF at its end.
    pub head: Vec<u8>,
    /// The body, transfer codings undone.
    pub body: Vec<u8>,
    /// Why there is no response, and k6's number for that.
    pub error: Option<(String, u16)>,
    /// Where the time went.
    pub timings: ScriptTimings,
    /// `HTTP/1.1` or `HTTP/2.0`.
    pub version: &'static str,
}

/// Where the time of a request went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScriptTimings {
    /// Until a connection was free for it.
    pub blocked: Nanos,
    /// Until that was established.
    pub connecting: Nanos,
    /// Until that was secured.
    pub tls_handshaking: Nanos,
    /// Until the kernel had the request.
    pub sending: Nanos,
    /// Until the first byte of the response.
    pub waiting: Nanos,
    /// Until the last one.
    pub receiving: Nanos,
}

/// What a script reads of a response's body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reads {
    Nothing,
    Bytes,
    #[default]
    Text,
}

/// Scheme and authority of a URL.
pub(crate) struct UrlOrigin {
    pub(crate) is_secure: bool,
    pub(crate) authority: Arc<str>,
    /// User and password, if given.
    pub(crate) user: Option<String>,
    /// The number of its server, if there is one.
    pub(crate) server: Option<u16>,
}

/// A request under way, with the redirections that it follows.
pub(crate) struct Operation {
    pub(crate) sent: ScriptRequest,
    /// The header that has cookies of the jar, and its value without these, if it had one.
    pub(crate) with_cookies: Option<(usize, Option<String>)>,
    pub(crate) cookies: Vec<(String, String, bool)>,
    pub(crate) redirects_left: u32,
    pub(crate) jar: usize,
    pub(crate) reads: Reads,
    pub(crate) asked: String,
    pub(crate) tags: BTreeMap<String, String>,
}

/// A response for the script.
pub(crate) struct RawResponse {
    pub(crate) response: ScriptResponse,
    /// The URL that was asked for.
    pub(crate) asked: String,
    /// The request that it answers; `None` where none was sent.
    pub(crate) sent: Option<Arc<MadeRequest>>,
    pub(crate) reads: Reads,
}
