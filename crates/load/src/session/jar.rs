//! The cookies of one session (RFC 6265), for the servers of the target.

use super::origin::Origin;
use crate::time::rfc2822_ns;

/// The most cookies that a session keeps; a further one is not taken.
const COOKIES_MAX: usize = 50;

/// A cookie of more bytes is not taken (RFC 6265 §6.1).
const COOKIE_BYTES_MAX: usize = 4096;

/// A session's cookies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Jar {
    cookies: Vec<Cookie>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Cookie {
    name: Vec<u8>,
    value: Vec<u8>,
    path: Vec<u8>,
    /// Bit `n`: it is sent to server `n`.
    servers: u64,
    /// When it is over; `u64::MAX`: with the session.
    until_realtime_ns: u64,
}

/// A `Set-Cookie` that was understood (RFC 6265 §5.2).
struct SetCookie<'a> {
    name: &'a [u8],
    value: &'a [u8],
    path: Option<&'a [u8]>,
    domain: Option<&'a [u8]>,
    is_secure: bool,
    until_realtime_ns: u64,
}

impl Jar {
    /// Each cookie's name and value.
    pub(super) fn values(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.cookies.iter().map(|cookie| (&cookie.name[..], &cookie.value[..]))
    }

    pub(super) fn clear(&mut self) {
        self.cookies.clear();
    }

    /// Takes what a response to a request for a path of a server sets.
    pub(super) fn take(
        &mut self,
        set_cookie: &[u8],
        (server, path): (u16, &[u8]),
        origins: &[Origin],
        realtime_ns: u64,
    ) {
        let (Some(asked), Some(origin)) =
            (read(set_cookie, realtime_ns), origins.get(usize::from(server)))
        else {
            return;
        };
        // What only https may carry is taken over https or never (RFC 6265bis §5.7).
        if (asked.is_secure || has_secure_name(asked.name)) && !origin.is_secure()
            || has_secure_name(asked.name) && !asked.is_secure
        {
            return;
        }
        // None is taken for somebody else.
        if asked.domain.is_some_and(|domain| !origin.is_of_domain(domain)) {
            return;
        }
        let path = match asked.path {
            Some(path) if path.starts_with(b"/") => path,
            _ => default_path(path),
        };
        let goes_to = |other: &Origin| {
            (other.is_secure() || !asked.is_secure)
                && match asked.domain {
                    Some(domain) => other.is_of_domain(domain),
                    None => other.host() == origin.host(),
                }
        };
        let bits = (0u32..).zip(origins).filter(|(_, other)| goes_to(other));
        let servers = bits.fold(0, |all, (bit, _)| all | 1u64.checked_shl(bit).unwrap_or(0));
        // Cookies for other servers stay beside it.
        let is_same = |c: &Cookie| c.name == asked.name && c.path == path && c.servers == servers;
        let at = self.cookies.iter().position(is_same);
        if asked.until_realtime_ns <= realtime_ns {
            if let Some(at) = at {
                self.cookies.remove(at);
            }
            return;
        }
        let cookie = Cookie {
            name: asked.name.to_vec(),
            value: asked.value.to_vec(),
            path: path.to_vec(),
            servers,
            until_realtime_ns: asked.until_realtime_ns,
        };
        match at {
            Some(at) => self.cookies[at] = cookie,
            None if self.cookies.len() < COOKIES_MAX => self.cookies.push(cookie),
            None => {}
        }
    }

    /// Puts the cookies for a request for a path of a server: those of longer paths first (RFC 6265
    /// §5.4).
    pub(super) fn put(&self, (server, path): (u16, &[u8]), realtime_ns: u64, out: &mut Vec<u8>) {
        if self.cookies.is_empty() {
            return;
        }
        let path = without_query(path);
        let is_sent = |c: &&Cookie| {
            c.until_realtime_ns > realtime_ns
                && c.servers >> server & 1 == 1
                && matches_path(path, &c.path)
        };
        let mut sent: Vec<&Cookie> = self.cookies.iter().filter(is_sent).collect();
        sent.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        for (at, cookie) in sent.iter().enumerate() {
            if at > 0 {
                out.extend_from_slice(b"; ");
            }
            out.extend_from_slice(&cookie.name);
            out.push(b'=');
            out.extend_from_slice(&cookie.value);
        }
    }
}

/// The value of the cookie `name` that a `Set-Cookie` sets.
pub(super) fn value_of<'a>(set_cookie: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let asked = read(set_cookie, 0)?;
    (asked.name == name).then_some(asked.value)
}

fn read(set_cookie: &[u8], realtime_ns: u64) -> Option<SetCookie<'_>> {
    let is_text = |byte: &u8| !byte.is_ascii_control() || *byte == b'\t';
    if set_cookie.len() > COOKIE_BYTES_MAX || !set_cookie.iter().all(is_text) {
        return None;
    }
    let mut parts = set_cookie.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let (name, value) = pair(parts.next()?)?;
    if name.is_empty() {
        return None;
    }
    let mut asked = SetCookie {
        name,
        value,
        path: None,
        domain: None,
        is_secure: false,
        until_realtime_ns: u64::MAX,
    };
    let mut has_max_age = false;
    for (key, value) in parts.map(|part| pair(part).unwrap_or((part, b""))) {
        if key.eq_ignore_ascii_case(b"secure") {
            asked.is_secure = true;
        } else if key.eq_ignore_ascii_case(b"path") {
            asked.path = Some(value);
        } else if key.eq_ignore_ascii_case(b"domain") {
            asked.domain = Some(value).filter(|domain| !domain.is_empty());
        } else if key.eq_ignore_ascii_case(b"max-age") {
            let Some(seconds) = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok()) else {
                continue;
            };
            has_max_age = true;
            asked.until_realtime_ns = match seconds {
                ..=0 => 0,
                seconds => {
                    realtime_ns.saturating_add((seconds as u64).saturating_mul(1_000_000_000))
                }
            };
        } else if key.eq_ignore_ascii_case(b"expires") && !has_max_age {
            asked.until_realtime_ns = date_ns(value).unwrap_or(asked.until_realtime_ns);
        }
    }
    Some(asked)
}

/// Whether a name promises that the cookie is of https (RFC 6265bis §4.1.3).
fn has_secure_name(name: &[u8]) -> bool {
    let begins = |prefix: &[u8]| {
        let begin = name.get(..prefix.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(prefix))
    };
    begins(b"__Secure-") || begins(b"__Host-")
}

fn pair(part: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = part.iter().position(|byte| *byte == b'=')?;
    Some((part[..at].trim_ascii(), part[at + 1..].trim_ascii()))
}

/// A date as cookies have it, in nanoseconds since 1970; 0 where it lies before. The old form has
/// hyphens: `Wed, 21-Oct-2015 07:28:00 GMT`.
fn date_ns(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?.replace('-', " ");
    let (_, date) = text.split_once(", ").unwrap_or(("", &text));
    rfc2822_ns(date)
}

fn without_query(path: &[u8]) -> &[u8] {
    let end = path.iter().position(|byte| *byte == b'?');
    &path[..end.unwrap_or(path.len())]
}

/// RFC 6265 §5.1.4
fn default_path(path: &[u8]) -> &[u8] {
    let path = without_query(path);
    match path.iter().rposition(|byte| *byte == b'/') {
        None | Some(0) => b"/",
        Some(at) => &path[..at],
    }
}

/// RFC 6265 §5.1.4
fn matches_path(path: &[u8], of_cookie: &[u8]) -> bool {
    path.strip_prefix(of_cookie)
        .is_some_and(|rest| rest.is_empty() || of_cookie.ends_with(b"/") || rest[0] == b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_795_348_800_000_000_000;

    fn sent(set: &[(&str, &str)], path: &str, later_s: u64) -> String {
        let mut jar = Jar::default();
        for (of, cookie) in set {
            let origin = Origin::new(false, "www.shop.test");
            jar.take(cookie.as_bytes(), (0, of.as_bytes()), std::slice::from_ref(&origin), NOW);
        }
        let mut out = Vec::new();
        jar.put((0, path.as_bytes()), NOW + later_s * 1_000_000_000, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn cookies_are_sent_where_and_while_they_are_valid() {
        let long = format!("a={}", "x".repeat(COOKIE_BYTES_MAX));
        type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, u64, &'a str);
        let rows: [Row; 17] = [
            ("one", &[("/", "a=1")], "/", 0, "a=1"),
            ("two", &[("/", "a=1"), ("/", "b=2")], "/x?y", 0, "a=1; b=2"),
            ("the same again", &[("/", "a=1"), ("/", "a=2; HttpOnly")], "/", 0, "a=2"),
            ("of a folder", &[("/a/b", "a=1")], "/c", 0, ""),
            ("in its folder", &[("/a/b", "a=1")], "/a/c", 0, "a=1"),
            ("not a name that begins so", &[("/a/b", "a=1")], "/ab", 0, ""),
            ("for a path", &[("/a/b", "a=1; Path=/")], "/c", 0, "a=1"),
            ("the longer path first", &[("/", "a=1"), ("/", "b=2; path=/x")], "/x", 0, "b=2; a=1"),
            ("until then", &[("/", "a=1; Max-Age=10")], "/", 9, "a=1"),
            ("no longer", &[("/", "a=1; Max-Age=10")], "/", 10, ""),
            ("taken back", &[("/", "a=1"), ("/", "a=; Max-Age=0")], "/", 0, ""),
            (
                "taken back by date",
                &[("/", "a=1"), ("/", "a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT")],
                "/",
                0,
                "",
            ),
            (
                "the old form of a date",
                &[("/", "a=1; expires=Wed, 21-Oct-2015 07:28:00 GMT")],
                "/",
                0,
                "",
            ),
            ("too long", &[("/", &long)], "/", 0, ""),
            ("for the domain above", &[("/", "a=1; Domain=.shop.test")], "/", 0, "a=1"),
            ("for somebody else", &[("/", "a=1; Domain=bank.test")], "/", 0, ""),
            ("no cookie", &[("/", "a"), ("/", "=b"), ("/", "")], "/", 0, ""),
        ];
        for (name, set, path, later_s, want) in rows {
            assert_eq!(sent(set, path, later_s), want, "{name}");
        }
    }

    #[test]
    fn secure_cookies_stay_on_https() {
        for (set, over_http, over_https) in [
            (&["a=1; Secure"][..], "", "a=1"),
            (&["a=1; path=/;SECURE ; HttpOnly"], "", "a=1"),
            (&["a=1; Secure=no"], "", "a=1"),
            (&["a=1", "a=2; Secure"], "a=1", "a=2"),
            (&["a=1; Secure", "a=2"], "a=2", "a=2"),
            (&["a=1", "a=; Secure; Max-Age=0"], "a=1", ""),
            (&["__Secure-a=1; Secure"], "", "__Secure-a=1"),
            (&["__host-a=1"], "", ""),
            (&["a=1; HttpOnly; SameSite=None"], "a=1", "a=1"),
            (&["secure=1; Path=/"], "secure=1", "secure=1"),
            (&["a=1; NotSecure"], "a=1", "a=1"),
        ] {
            for (is_secure, want) in [(false, over_http), (true, over_https)] {
                // Also where a browser would trust the host.
                for host in ["shop.test", "localhost:8080", "127.0.0.1:81"] {
                    let origin = Origin::new(is_secure, host);
                    let mut jar = Jar::default();
                    for cookie in set {
                        jar.take(cookie.as_bytes(), (0, b"/"), std::slice::from_ref(&origin), NOW);
                    }
                    let mut out = Vec::new();
                    jar.put((0, b"/"), NOW, &mut out);
                    let sent = String::from_utf8(out).unwrap();
                    assert_eq!(sent, want, "{set:?} of {host}, secure: {is_secure}");
                }
            }
        }
    }

    #[test]
    fn cookies_go_to_the_servers_that_they_are_for() {
        let servers = [
            Origin::new(true, "www.shop.test"),
            Origin::new(true, "api.shop.test:444"),
            Origin::new(false, "www.shop.test:81"),
            Origin::new(true, "other.test"),
        ];
        for (from, cookie, goes_to) in [
            (0, "a=1", &[0, 2][..]),
            (0, "a=1; Secure", &[0]),
            (0, "a=1; Domain=shop.test", &[0, 1, 2]),
            (0, "a=1; Domain=.shop.test; Secure", &[0, 1]),
            (1, "a=1", &[1]),
            (1, "a=1; Domain=www.shop.test", &[]),
            (2, "a=1; Secure", &[]),
            (3, "a=1; Domain=other.test", &[3]),
            (3, "a=1; Domain=shop.test", &[]),
        ] {
            let mut jar = Jar::default();
            jar.take(cookie.as_bytes(), (from, b"/"), &servers, NOW);
            let has = |server: &u16| {
                let mut out = Vec::new();
                jar.put((*server, b"/"), NOW, &mut out);
                out == b"a=1"
            };
            let got: Vec<u16> = (0..4).filter(has).collect();
            assert_eq!(got, goes_to, "{cookie} of {}", from);
        }
        // The same name of two servers is two cookies, unless one goes to where the other does.
        let mut jar = Jar::default();
        for (from, cookie) in [(0, "a=1"), (1, "a=2"), (0, "a=3")] {
            jar.take(cookie.as_bytes(), (from, b"/"), &servers, NOW);
        }
        for (server, want) in [(0, "a=3"), (1, "a=2"), (3, "")] {
            let mut out = Vec::new();
            jar.put((server, b"/"), NOW, &mut out);
            assert_eq!(out, want.as_bytes());
        }
    }

    #[test]
    fn only_so_many_are_kept() {
        let mut jar = Jar::default();
        for n in 0..1_000 {
            let cookie = format!("c{n}=1");
            jar.take(cookie.as_bytes(), (0, b"/"), &[Origin::default()], NOW);
        }
        assert_eq!(jar.cookies.len(), COOKIES_MAX);
    }

    #[test]
    fn values_by_name() {
        assert_eq!(value_of(b"a=1=2; Path=/", b"a"), Some(&b"1=2"[..]));
        assert_eq!(value_of(b"a=1; Path=/", b"Path"), None);
    }
}
