//! The URL of a target.

use super::{Endpoint, ParseError, Scheme, ascii_host, without_zone};
use crate::quantity::quoted;
use crate::secrets::MASK;
use core::net::{Ipv4Addr, Ipv6Addr};

/// An absolute URL of one of the schemes (RFC 3986, RFC 9110 §4.2), taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    scheme: Scheme,
    endpoint: Endpoint,
    path: String,
    host: String,
}

impl Url {
    /// `scheme://host:port/path?query`. `http://` may be left out, the port is the scheme's unless
    /// given, a fragment is dropped (it is never sent). An IPv6 address stands in brackets, its zone
    /// behind `%25` (RFC 6874) or `%`, as in curl. A name in other letters becomes its punycode.
    ///
    /// # Errors
    /// Another scheme, user information, no host, a port out of range, or characters that a URL
    /// cannot hold unescaped.
    pub fn parse(text: &str) -> Result<Url, ParseError> {
        let wrong = |what: &str| ParseError(format!("{} {what}", quoted(&without_user(text))));
        let is_refused = |c: &char| !c.is_ascii_graphic();
        if let Some(refused) = text.chars().filter(char::is_ascii).find(is_refused) {
            return Err(wrong(&unescaped(refused)));
        }
        let (scheme, rest) = without_scheme(text).map_err(|what| wrong(&what))?;
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        // A host may have other letters.
        if let Some(refused) = path.chars().find(is_refused) {
            return Err(wrong(&unescaped(refused)));
        }
        let path = path.split_once('#').map_or(path, |(before, _)| before);
        if authority.contains('@') {
            return Err(wrong(
                "holds a user name: leave it out and give -H 'Authorization: …' instead",
            ));
        }
        let (name, port) = split_port(authority).map_err(|what| wrong(&what))?;
        let port = port.unwrap_or(scheme.port());
        let name = ascii_host(name)?;
        let bare = check_host(&name).map_err(|what| wrong(&what))?;
        let mut host = name;
        if host.contains('%') {
            host = format!("[{}]", without_zone(&bare));
        }
        if port != scheme.port() {
            host = format!("{host}:{port}");
        }
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Url {
            scheme,
            endpoint: Endpoint::Tcp { host: bare, port },
            path: format!("{slash}{path}"),
            host,
        })
    }

    /// Its scheme.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Whether connections are to be secured.
    pub fn is_secure(&self) -> bool {
        self.scheme.is_secure()
    }

    /// Whether another URL is of the same server: scheme, host and port. The case of a host's
    /// letters does not count.
    pub fn has_server_of(&self, other: &Url) -> bool {
        let is_same = match (&self.endpoint, &other.endpoint) {
            (Endpoint::Tcp { host, port }, Endpoint::Tcp { host: other, port: other_port }) => {
                host.eq_ignore_ascii_case(other) && port == other_port
            }
            (own, other) => own == other,
        };
        is_same && self.scheme == other.scheme
    }

    /// Where to connect.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Path and query, as the request line has them; begins with `/`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The Host header's value: the port is in it unless it is the scheme's own.
    pub fn host(&self) -> &str {
        &self.host
    }
}

/// The text with a mask in the place of user information, with or without a scheme before it.
pub(super) fn without_user(text: &str) -> String {
    let begin = text.find("://").map_or(0, |at| at + "://".len());
    let end = text[begin..].find(['/', '?', '#']);
    let end = end.map_or(text.len(), |end| begin + end);
    match text[begin..end].rfind('@') {
        Some(at) => format!("{}{MASK}{}", &text[..begin], &text[begin + at..]),
        None => text.to_owned(),
    }
}

fn unescaped(refused: char) -> String {
    let name = match refused {
        ' ' => "a space".to_owned(),
        c if c.is_ascii() => "a control character".to_owned(),
        c => format!("'{}'", c.escape_debug()),
    };
    let mut bytes = [0; 4];
    let escapes = refused.encode_utf8(&mut bytes).bytes().map(|b| format!("%{b:02X}"));
    format!("holds {name}: write {} in a path", escapes.collect::<String>())
}

/// The scheme, and what follows it.
fn without_scheme(text: &str) -> Result<(Scheme, &str), String> {
    // In "localhost/?from=http://b" the scheme is not at the beginning, so there is none.
    let Some((scheme, rest)) = text.split_once("://") else {
        return Ok((Scheme::Http, text));
    };
    if scheme.contains(['/', '?', '#']) {
        return Ok((Scheme::Http, text));
    }
    match Scheme::named(scheme) {
        Some(known) => Ok((known, rest)),
        None => Err(format!("has the scheme {}: use {}", quoted(scheme), Scheme::list(false))),
    }
}

/// The host, an IPv6 address with its brackets, and the port where it is given.
pub(super) fn split_port(authority: &str) -> Result<(&str, Option<u16>), String> {
    let after_host = match authority.find(']') {
        Some(bracket) => bracket + 1,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at(after_host);
    let Some(digits) = port.strip_prefix(':') else {
        return match port {
            "" => Ok((host, None)),
            _ => Err("has something other than a port after ']': write [::1]:8080".to_owned()),
        };
    };
    if digits.contains(':') {
        return Err("has more than one ':': an IPv6 address goes in brackets, as [::1]:8080".into());
    }
    let port = digits.parse().ok().filter(|&port| port > 0 && !digits.starts_with('+'));
    port.map(|port| (host, Some(port)))
        .ok_or_else(|| format!("has the port {}: a port is 1 to 65535", quoted(digits)))
}

/// The host without brackets, with the zone of an IPv6 address behind `%`.
pub(super) fn check_host(name: &str) -> Result<String, String> {
    if name.is_empty() {
        return Err("has no host: write http://HOST:PORT/PATH".to_owned());
    }
    let is_host_char = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
    if let Some(inner) = name.strip_prefix('[') {
        let inner = inner.strip_suffix(']').ok_or("lacks ']' after its IPv6 address")?;
        let (address, zone) = match inner.split_once('%') {
            Some((address, zone)) => {
                let escaped = zone.strip_prefix("25").filter(|zone| !zone.is_empty());
                (address, Some(escaped.unwrap_or(zone)))
            }
            None => (inner, None),
        };
        if address.parse::<Ipv6Addr>().is_err() {
            return Err(format!("has {} in brackets, which is no IPv6 address", quoted(inner)));
        }
        return match zone {
            None => Ok(address.to_owned()),
            Some(zone) if !zone.is_empty() && zone.chars().all(is_host_char) => {
                Ok(format!("{address}%{zone}"))
            }
            Some(_) => Err("has no zone behind '%': write [fe80::1%25eth0]".to_owned()),
        };
    }
    if let Some(refused) = name.chars().find(|&c| !is_host_char(c)) {
        return Err(format!(
            "has {refused:?} in its host: letters, digits, '-' and '.' make a host"
        ));
    }
    // No top-level domain is a number, so such a name is meant as an address.
    let last = name.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    let numeric = !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit());
    if numeric && name.parse::<Ipv4Addr>().is_err() {
        return Err(format!("has the host {}, which is no IPv4 address", quoted(name)));
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts(text: &str) -> Result<(String, String, String), String> {
        let url = Url::parse(text).map_err(|e| e.to_string())?;
        Ok((url.endpoint.to_string(), url.path, url.host))
    }

    #[test]
    fn accepted() {
        let rows = [
            ("all parts", "http://h:81/a?b=c", "h:81", "/a?b=c", "h:81"),
            ("the default port is not in Host", "http://h/a", "h:80", "/a", "h"),
            ("nor is it when given", "http://h:80/a", "h:80", "/a", "h"),
            ("TLS has a port of its own", "HTTPS://h/a", "h:443", "/a", "h"),
            ("WebSocket", "ws://h/a", "h:80", "/a", "h"),
            ("WebSocket over TLS", "wss://h/a", "h:443", "/a", "h"),
            ("gRPC", "grpc://h/a.B/C", "h:50051", "/a.B/C", "h"),
            ("and none else is it", "https://h:80/a", "h:80", "/a", "h:80"),
            ("no path means the root", "http://h:81", "h:81", "/", "h:81"),
            ("a query without a path", "http://h?x", "h:80", "/?x", "h"),
            (
                "a scheme may be missing",
                "127.0.0.1:8080/x",
                "127.0.0.1:8080",
                "/x",
                "127.0.0.1:8080",
            ),
            ("a name alone", "localhost", "localhost:80", "/", "localhost"),
            ("schemes have no case", "HTTP://h/", "h:80", "/", "h"),
            (
                "a URL inside a query is no scheme",
                "h/?u=http://b:9/",
                "h:80",
                "/?u=http://b:9/",
                "h",
            ),
            ("an IPv6 address with a port", "http://[::1]:8080/", "[::1]:8080", "/", "[::1]:8080"),
            ("an IPv6 address without one", "[fe80::2]/x", "[fe80::2]:80", "/x", "[fe80::2]"),
            (
                "a zone is of this host alone",
                "[fe80::1%25eth0]:81/",
                "[fe80::1%eth0]:81",
                "/",
                "[fe80::1]:81",
            ),
            (
                "a zone as curl takes it",
                "http://[fe80::1%eth0.5]/",
                "[fe80::1%eth0.5]:80",
                "/",
                "[fe80::1]",
            ),
            ("a zone by number", "[fe80::1%253]:81", "[fe80::1%3]:81", "/", "[fe80::1]:81"),
            (
                "a zone that begins as an escape",
                "[fe80::1%25]:81",
                "[fe80::1%25]:81",
                "/",
                "[fe80::1]:81",
            ),
            (
                "an international name",
                "http://bücher.example:81/a",
                "xn--bcher-kva.example:81",
                "/a",
                "xn--bcher-kva.example:81",
            ),
            (
                "capitals of other letters",
                "https://BÜCHER.example/",
                "xn--bcher-kva.example:443",
                "/",
                "xn--bcher-kva.example",
            ),
            (
                "a name without a scheme",
                "münchen.example",
                "xn--mnchen-3ya.example:80",
                "/",
                "xn--mnchen-3ya.example",
            ),
            (
                "the dot of another script",
                "例え。テスト/",
                "xn--r8jz45g.xn--zckzah:80",
                "/",
                "xn--r8jz45g.xn--zckzah",
            ),
            (
                "sharp s as browsers have it",
                "http://faß.example/",
                "xn--fa-hia.example:80",
                "/",
                "xn--fa-hia.example",
            ),
            (
                "punycode stays",
                "http://xn--bcher-kva.example/",
                "xn--bcher-kva.example:80",
                "/",
                "xn--bcher-kva.example",
            ),
            (
                "a name of ASCII keeps its case",
                "http://H.example/",
                "H.example:80",
                "/",
                "H.example",
            ),
            ("a fragment is not sent", "http://h/a?b#c?d", "h:80", "/a?b", "h"),
            ("a fragment after the host", "http://h#c/d", "h:80", "/", "h"),
            ("'@' in a path is no user", "http://h/@a:b", "h:80", "/@a:b", "h"),
            ("':' in a path is no port", "h/a:b", "h:80", "/a:b", "h"),
            ("the highest port", "h:65535", "h:65535", "/", "h:65535"),
            ("an underscore, as in container names", "a_b:1", "a_b:1", "/", "a_b:1"),
        ];
        for (name, text, endpoint, path, host) in rows {
            let want = (endpoint.to_owned(), path.to_owned(), host.to_owned());
            assert_eq!(parts(text), Ok(want), "{name}");
        }
    }

    #[test]
    fn the_brackets_of_an_address_are_not_part_of_it() {
        let url = Url::parse("http://[::1]:8080/").unwrap();
        assert_eq!(url.endpoint(), &Endpoint::Tcp { host: "::1".to_owned(), port: 8080 });
    }

    #[test]
    fn refused() {
        let rows = [
            ("another scheme", "ftp://h/", "scheme 'ftp': use http://, https://, "),
            ("an empty scheme", "://h/", "scheme ''"),
            ("nothing", "", "no host"),
            ("a port alone", ":80", "no host"),
            ("a path alone", "/a", "no host"),
            ("no port after ':'", "h:", "port '': a port is 1 to 65535"),
            ("port 0", "h:0/", "port '0'"),
            ("a port too large", "h:65536/", "port '65536'"),
            ("a port with a sign", "h:+80", "port '+80'"),
            ("a port of letters", "h:http/", "port 'http'"),
            ("a user", "http://u:p@h/", "-H 'Authorization"),
            ("a space", "http://h/a b", "a space: write %20"),
            ("a line end", "http://h/\r\nX: y", "a control character: write %0D"),
            ("a letter beyond ASCII", "http://h/ä", "'ä': write %C3%A4"),
            (
                "a letter beyond ASCII behind an international name",
                "http://ü.example/ä",
                "'ä': write",
            ),
            ("a host of nothing but a soft hyphen", "http://\u{ad}/", "has no host"),
            ("a zone without a name", "[fe80::1%]", "no zone behind '%'"),
            ("a zone that no interface has", "[fe80::1%25a/b]", "more than one ':'"),
            ("an IPv6 address without brackets", "::1:8080", "more than one ':'"),
            ("brackets never closed", "[::1", "more than one ':'"),
            ("a name in brackets", "[h]:1", "no IPv6 address"),
            ("text after brackets", "[::1]8080", "after ']'"),
            ("an address with a part too large", "127.0.0.256:1", "no IPv4 address"),
            ("an address with a part missing", "10.0.1/", "no IPv4 address"),
            ("a character that no host has", "a*b/", "'*' in its host"),
        ];
        for (name, text, want) in rows {
            let error = parts(text).expect_err(name);
            assert!(error.contains(want), "{name}: {error}");
            assert!(!error.contains('\n'), "{name}: one line");
        }
    }

    proptest! {
        #[test]
        fn any_text_gives_a_request_that_cannot_be_split(
            text in "\\PC{0,40}|[a-h:/?#@\\[\\]. \\r\\n0-9]{0,20}",
        ) {
            // A zone is not in Host.
            if let Ok(url) = Url::parse(&text).map_err(drop).and_then(|url| match &url.endpoint {
                Endpoint::Tcp { host, .. } if host.contains('%') => Err(()),
                _ => Ok(url),
            }) {
                prop_assert!(url.path().starts_with('/'));
                prop_assert!(url.path().bytes().all(|b| b.is_ascii_graphic()));
                prop_assert!(url.host().bytes().all(|b| b.is_ascii_graphic()));
                let again = Url::parse(&format!("http://{}{}", url.host(), url.path()));
                prop_assert_eq!(again, Ok(url));
            }
        }
    }
}
