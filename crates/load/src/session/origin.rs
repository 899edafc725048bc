//! The origins that the requests of a session go to (RFC 6454), and where references lead.

/// A scheme, a host and a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    is_secure: bool,
    /// In lowercase, without the port that goes without saying.
    authority: Vec<u8>,
}

impl Origin {
    /// Of a host with or without a port, as in a URL.
    pub fn new(is_secure: bool, host: &str) -> Origin {
        Origin { is_secure, authority: normal(is_secure, host.as_bytes()) }
    }

    /// Whether its requests are secured.
    pub(super) fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// What a reference says beside scheme and authority, and the origin that these name, if any;
    /// `None` where it is no reference of HTTP. `self` is the origin of the base.
    fn split<'a>(&self, reference: &'a [u8]) -> Option<(Option<Origin>, &'a [u8])> {
        let ends_scheme = |byte: &u8| matches!(byte, b':' | b'/' | b'?');
        let (scheme, rest) = match reference.iter().position(ends_scheme) {
            Some(at) if reference[at] == b':' => (Some(&reference[..at]), &reference[at + 1..]),
            _ => (None, reference),
        };
        let is_secure = match scheme {
            None => self.is_secure,
            Some(scheme) if scheme.eq_ignore_ascii_case(b"https") => true,
            Some(scheme) if scheme.eq_ignore_ascii_case(b"http") => false,
            Some(_) => return None,
        };
        let Some(after) = rest.strip_prefix(b"//") else {
            return scheme.is_none().then_some((None, reference));
        };
        let end = after.iter().position(|b| matches!(b, b'/' | b'?'));
        let (authority, rest) = after.split_at(end.unwrap_or(after.len()));
        Some((Some(Origin { is_secure, authority: normal(is_secure, authority) }), rest))
    }

    /// The host without a port, in lowercase.
    pub(super) fn host(&self) -> &[u8] {
        match self.authority.iter().rposition(|b| matches!(b, b':' | b']')) {
            Some(at) if self.authority[at] == b':' => &self.authority[..at],
            _ => &self.authority,
        }
    }

    /// Whether its host is this domain, in lowercase, or lies below it (RFC 6265 §5.1.3). An
    /// address lies below none.
    pub(super) fn is_of_domain(&self, domain: &[u8]) -> bool {
        match self.host().strip_suffix(domain) {
            Some(b"") => true,
            Some(before) => before.ends_with(b".") && !self.is_address(),
            None => false,
        }
    }

    /// Whether its host is an address.
    pub(super) fn is_address(&self) -> bool {
        let text = std::str::from_utf8(self.host()).unwrap_or_default();
        text.starts_with('[') || text.parse::<core::net::Ipv4Addr>().is_ok()
    }
}

/// Puts the path that a reference leads to from `path` on server `from` (RFC 3986 §5.2), without a
/// fragment. An empty `path` is the root. The number of the server that it leads to. `None` where
/// none of `servers` has this origin: then nothing is put.
pub(super) fn resolve(
    servers: &[Origin],
    (from, path): (u16, &[u8]),
    reference: &[u8],
    out: &mut Vec<u8>,
) -> Option<u16> {
    let end = reference.iter().position(|byte| *byte == b'#');
    let reference = &reference[..end.unwrap_or(reference.len())];
    let (named, reference) = servers.get(usize::from(from))?.split(reference)?;
    let server = match &named {
        None => from,
        Some(origin) => servers.iter().position(|server| server == origin)? as u16,
    };
    let begin = out.len();
    let path = if path.is_empty() || named.is_some() { b"/" } else { path };
    let query = path.iter().position(|byte| *byte == b'?');
    let plain = &path[..query.unwrap_or(path.len())];
    match reference.first() {
        None => out.extend_from_slice(path),
        Some(b'/') => {}
        Some(b'?') => out.extend_from_slice(plain),
        Some(_) => {
            let slash = plain.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
            out.extend_from_slice(&plain[..slash]);
            out.push(b'/');
        }
    }
    out.extend_from_slice(reference);
    remove_dot_segments(out, begin);
    Some(server)
}

/// Removes `.` and `..` from the path that lies in `out` from `from` on, with the segments that
/// they undo (RFC 3986 §5.2.4).
pub fn remove_dot_segments(out: &mut Vec<u8>, from: usize) {
    let query = out[from..].iter().position(|byte| *byte == b'?');
    let query = query.map_or(out.len(), |at| from + at);
    if !out[from..query].windows(2).any(|pair| pair == b"/.") {
        return;
    }
    let query = out.split_off(query);
    let path = out.split_off(from);
    let count = path.split(|byte| *byte == b'/').count();
    let mut kept: Vec<&[u8]> = Vec::with_capacity(count);
    let segments = path.split(|byte| *byte == b'/').enumerate();
    for (number, segment) in segments.skip(1) {
        let is_dots = matches!(segment, b"." | b"..");
        if segment == b".." {
            kept.pop();
        }
        if !is_dots {
            kept.push(segment);
        } else if number + 1 == count {
            kept.push(b"");
        }
    }
    for segment in kept {
        out.push(b'/');
        out.extend_from_slice(segment);
    }
    out.extend_from_slice(&query);
}

fn normal(is_secure: bool, authority: &[u8]) -> Vec<u8> {
    let port: &[u8] = if is_secure { b":443" } else { b":80" };
    let authority = authority.to_ascii_lowercase();
    match authority.strip_suffix(port) {
        Some(host) => host.to_vec(),
        None => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_lead_to_paths_of_the_origin() {
        let origins = [Origin::new(false, "Shop.test:80")];
        for (reference, path, want) in [
            ("/x", "/a/b", Some("/x")),
            ("x", "/a/b", Some("/a/x")),
            ("x", "/a/", Some("/a/x")),
            ("x", "", Some("/x")),
            ("?q", "", Some("/?q")),
            ("#x", "", Some("/")),
            ("?q", "/a/b?c", Some("/a/b?q")),
            ("", "/a/b?c", Some("/a/b?c")),
            ("#y", "/a/b?c", Some("/a/b?c")),
            ("x?u=http://h/", "/a", Some("/x?u=http://h/")),
            ("a?u=http://other/", "/", Some("/a?u=http://other/")),
            ("http://shop.test/a?b#c", "/x", Some("/a?b")),
            ("HTTP://SHOP.TEST:80", "/x", Some("/")),
            ("http://shop.test?q", "/x/y", Some("/?q")),
            ("http://shop.test#x", "/x/y", Some("/")),
            ("//shop.test/a", "/x", Some("/a")),
            ("../x", "/a/b/c?../d", Some("/a/x")),
            ("../../../x", "/a/b", Some("/x")),
            ("./..", "/a/b/c", Some("/a/")),
            (".", "/a/b", Some("/a/")),
            ("/a/../b/./c?d/../e", "/", Some("/b/c?d/../e")),
            ("/a/.b/..c/...", "/", Some("/a/.b/..c/...")),
            ("//other/a", "/", None),
            ("http://other/a", "/", None),
            ("https://shop.test/a", "/", None),
            ("http://shop.test:81/a", "/", None),
            ("mailto:a@b", "/", None),
        ] {
            let mut out = b"before".to_vec();
            let base = (0, path.as_bytes());
            let server = resolve(&origins, base, reference.as_bytes(), &mut out);
            let out = String::from_utf8(out.split_off(6)).unwrap();
            assert_eq!(server, want.map(|_| 0), "{reference}");
            assert_eq!(out, want.unwrap_or_default(), "{reference}");
        }
    }

    #[test]
    fn references_lead_to_other_servers() {
        let servers = [(false, "shop.test"), (true, "shop.test"), (true, "login.test:444")];
        let servers = servers.map(|(is_secure, host)| Origin::new(is_secure, host));
        for (from, reference, want) in [
            (0, "https://shop.test/x", Some((1, "/x"))),
            (1, "http://shop.test", Some((0, "/"))),
            (0, "HTTPS://Login.test:444?a#b", Some((2, "/?a"))),
            (2, "x", Some((2, "/a/x"))),
            (2, "/y", Some((2, "/y"))),
            (2, "//shop.test/z", Some((1, "/z"))),
            (0, "//shop.test/z", Some((0, "/z"))),
            (0, "//login.test:444/z", None),
            (0, "https://login.test/z", None),
        ] {
            let mut out = Vec::new();
            let server = resolve(&servers, (from, b"/a/b"), reference.as_bytes(), &mut out);
            let path = String::from_utf8(out).unwrap();
            assert_eq!(server.map(|server| (server, &*path)), want, "{reference}");
        }
    }

    #[test]
    fn domains_of_cookies() {
        let origin = Origin::new(true, "www.shop.test:444");
        for (domain, is) in [
            ("shop.test", true),
            ("www.shop.test", true),
            ("other.test", false),
            ("op.test", false),
            ("a.www.shop.test", false),
        ] {
            assert_eq!(origin.is_of_domain(domain.as_bytes()), is, "{domain}");
        }
        assert!(Origin::new(false, "[::1]:80").is_of_domain(b"[::1]"));
        let address = Origin::new(false, "127.0.0.1:81");
        assert!(address.is_of_domain(b"127.0.0.1") && !address.is_of_domain(b"0.0.1"));
    }
}
