//! How the lines of a log are written, and who reads them.

use super::json::{JsonLine, LogKeys};
use super::line::LoggedRequest;
use super::pattern::LogPattern;
use super::text::read_text;
use super::w3c::LogColumns;

/// How the lines of a log are written.
#[derive(Clone, Debug, PartialEq)]
pub enum LogFormat {
    /// Text with a time and a request, as of nginx, Apache, HAProxy and the load balancers of AWS.
    Text,
    /// A JSON object.
    Json(LogKeys),
    /// As the configuration of nginx or Apache says.
    Pattern(LogPattern),
    /// In columns that a line of the log names.
    Columns(LogColumns),
}

impl LogFormat {
    /// A format as the configuration of nginx or Apache has it: with variables such as
    /// `$request`, or directives such as `%r`.
    ///
    /// # Errors
    /// Why it is none.
    pub fn of_configuration(text: &str) -> Result<LogFormat, String> {
        LogPattern::parse(text).map(LogFormat::Pattern)
    }

    /// The format of this line.
    pub(super) fn of_line(line: &str) -> LogFormat {
        let json = LogFormat::Json(LogKeys::default());
        if line.starts_with('{') || json.read(line).is_ok() { json } else { LogFormat::Text }
    }

    /// Reads a line.
    ///
    /// # Errors
    /// It is no request that can be sent again; why, in words.
    pub(super) fn read(&self, line: &str) -> Result<LoggedRequest, String> {
        match self {
            LogFormat::Text => read_text(line)?.request(),
            LogFormat::Json(keys) => match keys.read(line)? {
                JsonLine::Request(request) => Ok(request),
                JsonLine::Inner(inner) => LogFormat::of_line(&inner).read(&inner),
            },
            LogFormat::Pattern(pattern) => pattern.read(line)?.request(),
            LogFormat::Columns(columns) => columns.read(line)?.request(),
        }
    }
}
