//! The cookies of one session (RFC 6265), for the servers of the target.

use super::cookie_date::cookie_date_ns;
use super::origin::Origin;

/// The most cookies that a session keeps; a further one is not taken.
const COOKIES_MAX: usize = 50;

/// A cookie of more bytes in its name and value is not taken (RFC 6265bis §5.6).
const COOKIE_BYTES_MAX: usize = 4096;

/// The longest value of an attribute; a longer one is ignored (RFC 6265bis §5.6).
const ATTRIBUTE_BYTES_MAX: usize = 1024;

/// A session's cookies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Jar {
    cookies: Vec<Cookie>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Cookie {
    name: Vec<u8>,
    value: Vec<u8>,
    /// The domain, or the host that alone gets it.
    domain: Vec<u8>,
    is_of_host_alone: bool,
    path: Vec<u8>,
    /// Bit `n`: it is sent to server `n`.
    servers: u64,
    /// When it is over; `u64::MAX`: with the session.
    until_realtime_ns: u64,
}

impl Cookie {
    /// Whether it is sent to the server of this number.
    fn goes_to(&self, server: u16) -> bool {
        self.servers.checked_shr(server.into()).is_some_and(|bits| bits & 1 == 1)
    }
}

/// A `Set-Cookie` that was understood (RFC 6265 §5.2).
struct SetCookie<'a> {
    name: &'a [u8],
    value: &'a [u8],
    path: Option<&'a [u8]>,
    /// In lowercase, without the dot that it may begin with; never empty.
    domain: Option<Vec<u8>>,
    is_secure: bool,
    until_realtime_ns: u64,
}

impl Jar {
    /// Each cookie's name and value.
    pub fn values(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.cookies.iter().map(|cookie| (&cookie.name[..], &cookie.value[..]))
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.cookies.clear();
    }

    /// Whether it has no cookie.
    pub fn is_empty(&self) -> bool {
        self.cookies.is_empty()
    }

    /// Takes what a response to a request for a path of a server sets.
    pub fn take(
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
        if asked.is_secure && !origin.is_secure() || breaks_prefix(&asked) {
            return;
        }
        let host = origin.host();
        let is_of_host_alone = |domain: &[u8]| origin.is_address() || is_public_suffix(domain);
        let domain = asked.domain.filter(|domain| *domain != host || !is_of_host_alone(domain));
        // None is taken for somebody else, nor for all sites below a suffix such as co.uk.
        if let Some(domain) = &domain
            && (!origin.is_of_domain(domain) || is_public_suffix(domain))
        {
            return;
        }
        let path = match asked.path {
            Some(path) if path.starts_with(b"/") => path,
            _ => default_path(path),
        };
        let goes_to = |other: &Origin| {
            (other.is_secure() || !asked.is_secure)
                && match &domain {
                    Some(domain) => other.is_of_domain(domain),
                    None => other.host() == host,
                }
        };
        let bits = (0u32..).zip(origins).filter(|(_, other)| goes_to(other));
        let servers = bits.fold(0, |all, (bit, _)| all | 1u64.checked_shl(bit).unwrap_or(0));
        let cookie = Cookie {
            name: asked.name.to_vec(),
            value: asked.value.to_vec(),
            is_of_host_alone: domain.is_none(),
            domain: domain.unwrap_or_else(|| host.to_vec()),
            path: path.to_vec(),
            servers,
            until_realtime_ns: asked.until_realtime_ns,
        };
        // RFC 6265bis §5.7: these four say which cookie it is.
        let is_same = |other: &Cookie| {
            other.name == cookie.name
                && other.domain == cookie.domain
                && other.is_of_host_alone == cookie.is_of_host_alone
                && other.path == cookie.path
        };
        let at = self.cookies.iter().position(is_same);
        if asked.until_realtime_ns <= realtime_ns {
            if let Some(at) = at {
                self.cookies.remove(at);
            }
            return;
        }
        match at {
            Some(at) => self.cookies[at] = cookie,
            None if self.cookies.len() < COOKIES_MAX => self.cookies.push(cookie),
            None => {}
        }
    }

    /// Puts the cookies for a request for a path of a server: those of longer paths first (RFC 6265
    /// §5.4).
    pub(super) fn put(&self, to: (u16, &[u8]), realtime_ns: u64, out: &mut Vec<u8>) {
        for (at, (name, value)) in self.sent(to, realtime_ns).into_iter().enumerate() {
            if at > 0 {
                out.extend_from_slice(b"; ");
            }
            out.extend_from_slice(name);
            out.push(b'=');
            out.extend_from_slice(value);
        }
    }

    /// Names and values of the cookies for a request for a path of a server, in the order in which
    /// they are sent.
    pub fn sent(&self, (server, path): (u16, &[u8]), realtime_ns: u64) -> Vec<(&[u8], &[u8])> {
        let path = without_query(path);
        let is_sent = |c: &&Cookie| {
            c.until_realtime_ns > realtime_ns && c.goes_to(server) && matches_path(path, &c.path)
        };
        let mut sent: Vec<&Cookie> = self.cookies.iter().filter(is_sent).collect();
        sent.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        sent.into_iter().map(|cookie| (&cookie.name[..], &cookie.value[..])).collect()
    }

    /// Forgets the cookie of this name that a request for a path of a server would have.
    pub fn remove(&mut self, name: &[u8], server: u16) {
        self.cookies.retain(|c| c.name != name || !c.goes_to(server));
    }
}

/// The value of the cookie `name` that a `Set-Cookie` sets.
pub(super) fn value_of<'a>(set_cookie: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let asked = read(set_cookie, 0)?;
    (asked.name == name).then_some(asked.value)
}

fn read(set_cookie: &[u8], realtime_ns: u64) -> Option<SetCookie<'_>> {
    let is_text = |byte: &u8| !byte.is_ascii_control() || *byte == b'\t';
    if !set_cookie.iter().all(is_text) {
        return None;
    }
    let mut parts = set_cookie.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let (name, value) = pair(parts.next()?)?;
    if name.is_empty() || name.len() + value.len() > COOKIE_BYTES_MAX {
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
    let attributes = parts.map(|part| pair(part).unwrap_or((part, b"")));
    for (key, value) in attributes.filter(|(_, value)| value.len() <= ATTRIBUTE_BYTES_MAX) {
        if key.eq_ignore_ascii_case(b"secure") {
            asked.is_secure = true;
        } else if key.eq_ignore_ascii_case(b"path") {
            asked.path = Some(value);
        } else if key.eq_ignore_ascii_case(b"domain") {
            let domain = value.strip_prefix(b".").unwrap_or(value).to_ascii_lowercase();
            asked.domain = Some(domain).filter(|domain| !domain.is_empty());
        } else if key.eq_ignore_ascii_case(b"max-age") {
            let Some(seconds) = max_age(value) else {
                continue;
            };
            has_max_age = true;
            let later = realtime_ns.saturating_add(seconds.saturating_mul(1_000_000_000));
            asked.until_realtime_ns = if seconds == 0 { 0 } else { later };
        } else if key.eq_ignore_ascii_case(b"expires") && !has_max_age {
            asked.until_realtime_ns = cookie_date_ns(value).unwrap_or(asked.until_realtime_ns);
        }
    }
    Some(asked)
}

/// The seconds of a `Max-Age`, 0 where they are negative (RFC 6265 §5.2.2).
fn max_age(value: &[u8]) -> Option<u64> {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    if value.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let seconds = std::str::from_utf8(value).ok()?;
    Some(if value[0] == b'-' { 0 } else { seconds.parse().unwrap_or(u64::MAX) })
}

/// Whether this is a domain below which names belong to different owners: `com`, `co.uk`, and
/// any name without a dot.
fn is_public_suffix(domain: &[u8]) -> bool {
    psl::suffix(domain).is_some_and(|suffix| suffix.as_bytes() == domain)
}

/// Whether a name promises what its cookie does not have (RFC 6265bis §4.1.3).
fn breaks_prefix(asked: &SetCookie<'_>) -> bool {
    let is_of_host = asked.domain.is_none() && asked.path == Some(b"/");
    let of_host = has_prefix(asked.name, b"__Host-");
    of_host && !(asked.is_secure && is_of_host)
        || has_prefix(asked.name, b"__Secure-") && !asked.is_secure
}

fn has_prefix(name: &[u8], prefix: &[u8]) -> bool {
    name.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix))
}

fn pair(part: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = part.iter().position(|byte| *byte == b'=')?;
    Some((part[..at].trim_ascii(), part[at + 1..].trim_ascii()))
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
        let longest = format!("a={}", "x".repeat(COOKIE_BYTES_MAX - 1));
        let with_attributes = format!("{longest}; Path=/; HttpOnly; SameSite=Lax; Max-Age=10");
        let long_attribute = format!("a=1; Path=/{}", "x".repeat(ATTRIBUTE_BYTES_MAX));
        type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, u64, &'a str);
        let rows: [Row; 22] = [
            ("the longest", &[("/", &with_attributes)], "/", 0, &longest),
            ("a long attribute", &[("/", &long_attribute)], "/", 0, "a=1"),
            (
                "of the domain and of the host",
                &[
                    ("/", "a=1; Domain=shop.test"),
                    ("/", "a=2"),
                    ("/", "a=3; Domain=.www.shop.test"),
                ],
                "/",
                0,
                "a=1; a=2; a=3",
            ),
            (
                "of the host's own domain and of the host",
                &[("/", "a=1; Domain=www.shop.test"), ("/", "a=2"), ("/", "a=3")],
                "/",
                0,
                "a=1; a=3",
            ),
            (
                "taken back for the host alone",
                &[("/", "a=1; Domain=www.shop.test"), ("/", "a=2"), ("/", "a=; Max-Age=0")],
                "/",
                0,
                "a=1",
            ),
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
    fn lifetimes_are_read_as_curl_reads_them() {
        for (attributes, later_s, is_sent) in [
            ("Expires=Fri, 31 Dec 9999 23:59:59 GMT", 1 << 30, true),
            ("Expires=Sun Nov 22 11:59:59 2026", 0, false),
            ("Expires=Sun Nov 22 12:00:09 2026", 8, true),
            ("Expires=Sun Nov 22 12:00:09 2026", 9, false),
            ("Expires=Sun, 22 Nov 2026 11:59:59 UTC", 0, false),
            ("Expires=Sun, 22-Nov-26 11:59:59", 0, false),
            ("Expires=Sunday, 22-Nov-26 9:8:7 GMT", 0, false),
            ("Expires=01 Jan 68 00:00:00", 0, true),
            ("Expires=01 Jan 70 00:00:00", 0, false),
            ("Expires=tomorrow", 1 << 30, true),
            ("Expires=", 1 << 30, true),
            ("Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT", 9, true),
            ("Expires=Fri, 31 Dec 9999 23:59:59 GMT; Max-Age=10", 10, false),
            ("Max-Age=-1; Expires=Fri, 31 Dec 9999 23:59:59 GMT", 0, false),
            ("Max-Age=99999999999999999999", 1 << 30, true),
            ("Max-Age=1.5; Expires=Thu, 01 Jan 1970 00:00:00 GMT", 0, false),
            ("Max-Age=+5", 5, true),
            ("Max-Age=", 1 << 30, true),
            ("Max-Age=5; Max-Age=10", 9, true),
        ] {
            let cookie = format!("a=1; {attributes}");
            let want = if is_sent { "a=1" } else { "" };
            assert_eq!(sent(&[("/", "a=0"), ("/", &cookie)], "/", later_s), want, "{attributes}");
        }
    }

    #[test]
    fn domains_above_sites_and_addresses_get_no_cookies() {
        for (host, domain, is_taken, goes_below) in [
            ("shop.co.uk", "shop.co.uk", true, true),
            ("www.shop.co.uk", ".Shop.co.UK", true, true),
            ("www.shop.co.uk", "co.uk", false, false),
            ("www.shop.co.uk", "uk", false, false),
            ("shop.com", "com", false, false),
            ("shop.test", "test", false, false),
            ("me.github.io", "github.io", false, false),
            ("github.io", "github.io", true, false),
            ("api.cluster.local", "cluster.local", true, true),
            ("api.localhost", "localhost", false, false),
            ("localhost:81", "localhost", true, false),
            ("127.0.0.1:81", "127.0.0.1", true, false),
            ("127.0.0.1:81", "0.0.1", false, false),
            ("10.0.0.1", "1", false, false),
            ("[::1]:81", "[::1]", true, false),
            ("shop.test", "", true, false),
            ("shop.test", ".", true, false),
            ("shop.test", "a.shop.test", false, false),
            ("shop.test", "hop.test", false, false),
        ] {
            let origins = [host, &format!("below.{host}")].map(|host| Origin::new(false, host));
            let mut jar = Jar::default();
            jar.take(format!("a=1; Domain={domain}").as_bytes(), (0, b"/"), &origins, NOW);
            let has = |server| {
                let mut out = Vec::new();
                jar.put((server, b"/"), NOW, &mut out);
                out == b"a=1"
            };
            assert_eq!((has(0), has(1)), (is_taken, goes_below), "{host} {domain}");
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
            (&["__Host-a=1; Secure; Path=/"], "", "__Host-a=1"),
            (&["__Host-a=1; Secure"], "", ""),
            (&["__Host-a=1; Secure; Path=/; Domain=shop.test"], "", ""),
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
        // A cookie of a domain and one of its host are two, whatever they are sent to.
        let mut jar = Jar::default();
        for cookie in ["a=1; Domain=other.test", "b=1", "b=2; Secure", "c=1; Domain=.other.test"] {
            jar.take(cookie.as_bytes(), (3, b"/"), &servers, NOW);
        }
        jar.take(b"a=2", (0, b"/"), &servers, NOW);
        jar.take(b"a=3; Domain=shop.test", (0, b"/"), &servers, NOW);
        for (server, want) in [(0, "a=2; a=3"), (1, "a=3"), (3, "a=1; b=2; c=1")] {
            let mut out = Vec::new();
            jar.put((server, b"/"), NOW, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), want);
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
