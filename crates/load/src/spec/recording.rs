//! Recorded requests, which are sent again at times of their own: a file with a line of JSON for
//! each.
//!
//! The first line has the server, and each further one a request:
//!
//! ```text
//! {"recording":1,"target":"http://127.0.0.1:8080"}
//! {"at":0,"method":"GET","path":"/","user":"192.0.2.1"}
//! {"at":0.25,"method":"POST","path":"/cart","body":"{}","headers":{"a":"b"}}
//! ```

use super::{Scheme, Url};
use crate::quantity::ParseError;
use crate::shown::shown;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordingHead {
    /// The version of the form: [`RecordingHead::VERSION`].
    pub recording: u32,
    /// The server: `http://HOST:PORT` or `https://HOST:PORT`.
    pub target: String,
}

impl RecordingHead {
    /// The version that is read and written.
    pub const VERSION: u32 = 1;

    /// Reads the first line.
    ///
    /// # Errors
    /// It is another.
    pub fn parse(line: &str) -> Result<RecordingHead, ParseError> {
        let head: RecordingHead = serde_json::from_str(line).map_err(|e| {
            let form = r#"{"recording":1,"target":"http://HOST:PORT"}"#;
            ParseError(format!("line 1: {}: expected {form}", shown(&e.to_string())))
        })?;
        if head.recording != RecordingHead::VERSION {
            let version = head.recording;
            return Err(ParseError(format!("line 1: version {version} is unknown: expected 1")));
        }
        Ok(head)
    }

    /// The server that `target` names.
    ///
    /// # Errors
    /// Another scheme, or a path.
    pub fn server(target: &str) -> Result<Url, ParseError> {
        let server = Url::parse(target)?;
        if !matches!(server.scheme(), Scheme::Http | Scheme::Https) || server.path() != "/" {
            let wrong = format!("'{target}': expected http://HOST or https://HOST");
            return Err(ParseError(wrong));
        }
        Ok(server)
    }
}

/// A line with a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedRequest<'a> {
    /// Seconds from the first request on.
    pub at: f64,
    /// The method; `None`: GET.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Cow<'a, str>>,
    /// Path and query.
    #[serde(borrow)]
    pub path: Cow<'a, str>,
    /// Who sent it; `None`: nobody known.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Cow<'a, str>>,
    /// Its headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Its body.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Cow<'a, str>>,
}

impl RecordedRequest<'_> {
    /// Reads a line.
    ///
    /// # Errors
    /// It is no request, or its time or path is none.
    pub fn parse(line: &str) -> Result<RecordedRequest<'_>, ParseError> {
        let request: RecordedRequest = serde_json::from_str(line).map_err(|e| {
            ParseError(shown(&e.to_string()).replace(" at line 1 column", " at column"))
        })?;
        if !(0.0..=AT_MAX_S).contains(&request.at) {
            return Err(ParseError(format!("the time {} is none: expected seconds", request.at)));
        }
        if !is_recordable_path(&request.path) {
            let wrong = "the path has to begin with / and to have no blanks, # or other than ASCII";
            return Err(ParseError(wrong.to_owned()));
        }
        Ok(request)
    }

    /// Its time from the first request on.
    pub fn time(&self) -> Nanos {
        Nanos((self.at * 1e9).round() as u64)
    }

    /// A number for its user; `None` where it has none.
    pub fn user_number(&self) -> Option<u64> {
        let user = self.user.as_ref()?;
        let mut hasher = DefaultHasher::new();
        user.hash(&mut hasher);
        Some(hasher.finish())
    }

    /// What it has beside its path: requests with the same are of one kind.
    pub fn kind(&self) -> RequestKind {
        RequestKind {
            method: self.method.as_deref().unwrap_or("GET").to_owned(),
            headers: self.headers.clone().into_iter().collect(),
            body: self.body.as_deref().unwrap_or("").to_owned(),
        }
    }
}

/// Whether a path with its query can stand in a request as it is.
pub fn is_recordable_path(path: &str) -> bool {
    path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#')
}

/// The latest time of a recording, in seconds. [`Nanos`] end at nearly twice that.
const AT_MAX_S: f64 = 1e10;

/// What requests of one kind have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestKind {
    /// The method.
    pub method: String,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

/// The part of a recording that is sent again, without its requests: a worker reads them as it
/// needs them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The file.
    pub file: String,
    /// Where its first request begins in the file, in bytes.
    pub offset: u64,
    /// Requests.
    pub count: u64,
    /// The number of each kind among the target's requests.
    pub kinds: HashMap<RequestKind, u32>,
    /// Whether requests have users, each of whom waits for an answer before the next request.
    pub has_users: bool,
}

impl Recording {
    /// Most kinds of requests.
    pub const KINDS_MAX: usize = 1_000;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_what_its_line_says() {
        let line = r#"{"at":0.25,"path":"/a?b=c","user":"x"}"#;
        let request = RecordedRequest::parse(line).unwrap();
        assert_eq!(request.time(), Nanos::from_millis(250));
        assert_eq!(request.kind().method, "GET");
        assert!(request.user_number().is_some());
        assert_eq!(serde_json::to_string(&request).unwrap(), line);
        let other = RecordedRequest::parse(r#"{"at":1,"path":"/","method":"PUT"}"#).unwrap();
        assert_ne!(other.kind(), request.kind());
        assert_eq!(other.user_number(), None);
    }

    #[test]
    fn what_is_no_request_is_said() {
        for (line, want) in [
            ("{", "EOF while parsing"),
            (r#"{"path":"/"}"#, "missing field `at`"),
            (r#"{"at":-1,"path":"/"}"#, "the time -1 is none"),
            (r#"{"at":0,"path":"a"}"#, "begin with /"),
            (r#"{"at":0,"path":"/a b"}"#, "no blanks"),
            (r#"{"at":0,"path":"/","pth":"x"}"#, "unknown field `pth`"),
        ] {
            let text = RecordedRequest::parse(line).unwrap_err().0;
            assert!(text.contains(want) && !text.contains('\n'), "{line}: {text}");
        }
        for (line, want) in [
            ("{}", "expected {\"recording\":1"),
            (r#"{"recording":2,"target":"http://h"}"#, "version 2 is unknown"),
        ] {
            assert!(RecordingHead::parse(line).unwrap_err().0.contains(want), "{line}");
        }
    }
}
