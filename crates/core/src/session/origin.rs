//! The one origin that all requests of a session go to (RFC 6454).

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
        Origin {
            is_secure,
            authority: normal(is_secure, host.as_bytes()),
        }
    }

    /// What a `Location` says beside scheme and authority, where those are this origin's or left
    /// out; `None` where it leads elsewhere.
    pub(super) fn within<'a>(&self, location: &'a [u8]) -> Option<&'a [u8]> {
        let (scheme, rest) = match location
            .iter()
            .position(|b| matches!(b, b':' | b'/' | b'?'))
        {
            Some(at) if location[at] == b':' => (Some(&location[..at]), &location[at + 1..]),
            _ => (None, location),
        };
        let is_secure = match scheme {
            None => self.is_secure,
            Some(scheme) if scheme.eq_ignore_ascii_case(b"https") => true,
            Some(scheme) if scheme.eq_ignore_ascii_case(b"http") => false,
            Some(_) => return None,
        };
        let Some(after) = rest.strip_prefix(b"//") else {
            return scheme.is_none().then_some(location);
        };
        let end = after.iter().position(|b| matches!(b, b'/' | b'?' | b'#'));
        let (authority, rest) = after.split_at(end.unwrap_or(after.len()));
        let is_this = is_secure == self.is_secure && normal(is_secure, authority) == self.authority;
        is_this.then_some(match rest.first() {
            None | Some(b'#') => b"/",
            _ => rest,
        })
    }

    /// Whether it may set cookies for this domain (RFC 6265 §5.1.3).
    pub(super) fn is_of_domain(&self, domain: &[u8]) -> bool {
        let domain = domain
            .strip_prefix(b".")
            .unwrap_or(domain)
            .to_ascii_lowercase();
        let host = host(&self.authority);
        match host.strip_suffix(&domain[..]) {
            Some(before) => before.is_empty() || before.ends_with(b"."),
            None => false,
        }
    }
}

fn normal(is_secure: bool, authority: &[u8]) -> Vec<u8> {
    let port: &[u8] = if is_secure { b":443" } else { b":80" };
    let authority = authority.to_ascii_lowercase();
    match authority.strip_suffix(port) {
        Some(host) => host.to_vec(),
        None => authority,
    }
}

fn host(authority: &[u8]) -> &[u8] {
    match authority.iter().rposition(|b| matches!(b, b':' | b']')) {
        Some(at) if authority[at] == b':' => &authority[..at],
        _ => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_within_and_elsewhere() {
        let origin = Origin::new(false, "Shop.test:80");
        for (location, want) in [
            ("/a", Some("/a")),
            ("a?u=http://other/", Some("a?u=http://other/")),
            ("?q", Some("?q")),
            ("", Some("")),
            ("http://shop.test/a?b", Some("/a?b")),
            ("HTTP://SHOP.TEST:80", Some("/")),
            ("http://shop.test?q", Some("?q")),
            ("http://shop.test#x", Some("/")),
            ("//shop.test/a", Some("/a")),
            ("//other/a", None),
            ("http://other/a", None),
            ("https://shop.test/a", None),
            ("http://shop.test:81/a", None),
            ("mailto:a@b", None),
        ] {
            let got = origin.within(location.as_bytes());
            assert_eq!(got, want.map(str::as_bytes), "{location}");
        }
    }

    #[test]
    fn domains_of_cookies() {
        let origin = Origin::new(true, "www.shop.test:444");
        for (domain, is) in [
            ("shop.test", true),
            (".SHOP.test", true),
            ("www.shop.test", true),
            ("other.test", false),
            ("op.test", false),
            ("a.www.shop.test", false),
        ] {
            assert_eq!(origin.is_of_domain(domain.as_bytes()), is, "{domain}");
        }
        assert!(Origin::new(false, "[::1]:80").is_of_domain(b"[::1]"));
    }
}
