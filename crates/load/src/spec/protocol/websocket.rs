//! What a user may say in the opening handshake of a WebSocket.

use crate::quantity::{ParseError, quoted};
use crate::spec::HttpRequest;

/// Headers that the client of a WebSocket makes itself (RFC 6455 §4.1). Those of a request are left
/// out.
pub const WEBSOCKET_HEADERS: [&str; 4] =
    ["Upgrade", "Connection", "Sec-WebSocket-Key", "Sec-WebSocket-Version"];

const EXTENSIONS: &str = "Sec-WebSocket-Extensions";

/// An offer to compress messages (RFC 7692).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeflateOffer {
    /// The value of the header `Sec-WebSocket-Extensions` as it is sent.
    pub sent: String,
    /// `client_max_window_bits` was left out of it: messages are compressed with the largest window
    /// alone.
    pub leaves_out_window: bool,
}

impl DeflateOffer {
    /// The offer in the headers of a request, if there is one.
    ///
    /// # Errors
    /// Another extension, or a parameter that `permessage-deflate` does not have.
    pub fn of(request: &HttpRequest) -> Result<Option<DeflateOffer>, ParseError> {
        let given =
            request.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(EXTENSIONS));
        let lists: Vec<&str> = given.map(|(_, list)| list.as_str()).collect();
        if lists.is_empty() {
            return Ok(None);
        }
        let mut offer = DeflateOffer { sent: String::new(), leaves_out_window: false };
        for item in lists.iter().flat_map(|list| list.split(',')) {
            let mut parts = item.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            if !name.eq_ignore_ascii_case("permessage-deflate") {
                return Err(ParseError(format!(
                    "the extension {} is not supported: permessage-deflate is",
                    quoted(name)
                )));
            }
            let separator = if offer.sent.is_empty() { "" } else { ", " };
            offer.sent.push_str(separator);
            offer.sent.push_str("permessage-deflate");
            for parameter in parts {
                match DeflateParameter::parse(parameter) {
                    Some(DeflateParameter::ClientWindow(_)) => offer.leaves_out_window = true,
                    Some(_) => offer.sent.push_str(&format!("; {parameter}")),
                    None => {
                        let parameter = quoted(parameter);
                        return Err(ParseError(format!(
                            "permessage-deflate has no parameter {parameter} (RFC 7692 §7.1)"
                        )));
                    }
                }
            }
        }
        Ok(Some(offer))
    }

    /// Whether a header is the one that offers extensions.
    pub fn is_header(name: &str) -> bool {
        name.eq_ignore_ascii_case(EXTENSIONS)
    }
}

/// A parameter of `permessage-deflate` (RFC 7692 §7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeflateParameter {
    /// The server begins each message without the text of those before.
    ServerResets,
    /// The client does.
    ClientResets,
    /// The most bits of the server's window: 8 to 15.
    ServerWindow(u8),
    /// The most bits of the client's window: 8 to 15; `None`: the server may set a limit.
    ClientWindow(Option<u8>),
}

impl DeflateParameter {
    /// Reads `name` or `name=value`, the value in quotes or not.
    pub fn parse(text: &str) -> Option<DeflateParameter> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim().trim_matches('"'))),
            None => (text.trim(), None),
        };
        let bits = |value: &str| {
            let bits = value.parse().ok().filter(|bits| (8..=15).contains(bits));
            bits.filter(|_| !value.starts_with(['0', '+']))
        };
        match (name.to_ascii_lowercase().as_str(), value) {
            ("server_no_context_takeover", None) => Some(DeflateParameter::ServerResets),
            ("client_no_context_takeover", None) => Some(DeflateParameter::ClientResets),
            ("server_max_window_bits", Some(value)) => {
                bits(value).map(DeflateParameter::ServerWindow)
            }
            ("client_max_window_bits", None) => Some(DeflateParameter::ClientWindow(None)),
            ("client_max_window_bits", Some(value)) => {
                bits(value).map(|bits| DeflateParameter::ClientWindow(Some(bits)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Url;

    fn offer(lists: &[&str]) -> Result<Option<DeflateOffer>, ParseError> {
        let url = Url::parse("ws://h/").unwrap();
        let headers = lists.iter().map(|list| (EXTENSIONS.to_lowercase(), (*list).to_owned()));
        DeflateOffer::of(&HttpRequest::new("GET", &url, headers.collect(), Vec::new(), 1).unwrap())
    }

    #[test]
    fn an_offer_is_sent_as_far_as_it_is_meant() {
        for (list, sent, leaves_out_window) in [
            ("permessage-deflate", "permessage-deflate", false),
            // As browsers offer it.
            ("permessage-deflate; client_max_window_bits", "permessage-deflate", true),
            ("permessage-deflate; client_max_window_bits=10", "permessage-deflate", true),
            (
                "Permessage-Deflate;server_max_window_bits=9",
                "permessage-deflate; server_max_window_bits=9",
                false,
            ),
            (
                "permessage-deflate; server_max_window_bits=\"15\"",
                "permessage-deflate; server_max_window_bits=\"15\"",
                false,
            ),
            (
                "permessage-deflate; client_no_context_takeover; server_no_context_takeover",
                "permessage-deflate; client_no_context_takeover; server_no_context_takeover",
                false,
            ),
            (
                "permessage-deflate; server_max_window_bits=10, permessage-deflate",
                "permessage-deflate; server_max_window_bits=10, permessage-deflate",
                false,
            ),
        ] {
            let want = DeflateOffer { sent: sent.to_owned(), leaves_out_window };
            assert_eq!(offer(&[list]), Ok(Some(want)), "{list}");
        }
        assert_eq!(offer(&[]), Ok(None));
    }

    #[test]
    fn what_is_not_spoken_is_refused() {
        for (lists, want) in [
            (&["x-webkit-deflate-frame"][..], "'x-webkit-deflate-frame' is not supported"),
            (&["permessage-deflate, permessage-bzip2"], "'permessage-bzip2' is not supported"),
            (&["permessage-deflate", "foo"], "'foo' is not supported"),
            (&[""], "'' is not supported"),
            (&["permessage-deflate; level=9"], "no parameter 'level=9'"),
            (&["permessage-deflate; server_max_window_bits"], "no parameter"),
            (&["permessage-deflate; server_max_window_bits=7"], "no parameter"),
            (&["permessage-deflate; server_max_window_bits=16"], "no parameter"),
            (&["permessage-deflate; server_max_window_bits=010"], "no parameter"),
            (&["permessage-deflate; client_no_context_takeover=1"], "no parameter"),
        ] {
            let error = offer(lists).expect_err("an error").to_string();
            assert!(error.contains(want), "{lists:?}: {error}");
        }
    }
}
