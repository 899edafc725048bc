//! One request with its holes, and what they are filled with.

use super::body;
use super::fault::{Position, Read, bail, fault};
use super::fields::{Fields, named};
use super::holed::TextWithHoles;
use super::names::TemplateScope;
use super::target::{RequestPlace, TargetOrigins};
use super::template;
use super::tree::{Entry, Node};
use knee_load::quantity::quoted;
use knee_load::session::TemplatePiece;
use knee_load::session::{Escape, Fill, Template};
use knee_load::spec::{Body, Hole, HttpRequest, Part, Url};

/// The most headers of a request.
const HEADERS_MAX: usize = 100;

/// A request as the session sends it.
#[derive(Clone)]
pub(super) struct CompiledRequest {
    pub(super) request: HttpRequest,
    pub(super) fills: Vec<Fill>,
    /// The number of its target.
    pub(super) server: u16,
    /// A value of the run says to which target it goes.
    pub(super) leads: bool,
}

/// What a request is made of.
pub(super) struct RequestDraft<'a> {
    /// Where its step stands.
    pub(super) at: Position,
    pub(super) method: (&'a str, Position),
    pub(super) url: &'a Node,
    pub(super) fields: &'a Fields<'a>,
    /// Headers that hold for all requests.
    pub(super) common: &'a [Entry],
}

/// A header that is not yet in the request.
struct HeaderDraft<'a> {
    name: &'a str,
    at: Position,
    value: TextWithHoles,
}

impl RequestDraft<'_> {
    pub(super) fn compile(
        &self,
        origins: &TargetOrigins,
        scope: &mut TemplateScope<'_>,
    ) -> Read<CompiledRequest> {
        let RequestPlace { server, url, path, leads } = origins.place(self.url, scope)?;
        let body = body::read(self.fields, scope)?;
        let headers = self.headers(body.content_type, scope)?;
        let has_length = |header: &&HeaderDraft| header.name.eq_ignore_ascii_case("content-length");
        if let Some(length) = headers.iter().find(has_length).filter(|_| !body.holes.is_empty()) {
            bail!(
                length.at,
                "the length of a body with templates is known when it is sent: leave \
                    Content-Length out"
            );
        }
        let (method, method_at) = self.method;
        let mut request = checked(method, method_at, &url, &headers, body.bytes)?;
        // That of the URL begins with '/', where this may begin with a hole.
        request.path = path.text;
        let path_holes = path.holes.into_iter().map(|hole| (Part::Path, hole));
        let numbered = (0u16..).zip(headers);
        let header_holes = numbered.flat_map(|(number, header)| {
            header.value.holes.into_iter().map(move |hole| (Part::Header(number), hole))
        });
        let body_holes = body.holes.into_iter().map(|hole| (Part::Body, hole));
        let holes = path_holes.chain(header_holes).chain(body_holes);
        let fills = put_holes(&mut request, self.at, holes)?;
        Ok(CompiledRequest { request, fills, server, leads })
    }

    /// Its own headers, then those that all requests have, then that of the cookies.
    fn headers(
        &self,
        content_type: Option<String>,
        scope: &mut TemplateScope<'_>,
    ) -> Read<Vec<HeaderDraft<'_>>> {
        let read = |node| named(node, "headers: {Name: value}");
        let own = self.fields.read_key("headers", read)?.unwrap_or_default();
        let mut headers: Vec<HeaderDraft<'_>> = Vec::new();
        for entry in own {
            if let Some(other) = find(&headers, &entry.key) {
                let (name, other) = (quoted(&entry.key), quoted(other.name));
                bail!(
                    entry.at,
                    "{name} is {other} once more, as names have no case: leave one out"
                );
            }
            headers.push(header(entry, scope)?);
        }
        if let Some(value) = content_type.filter(|_| find(&headers, "Content-Type").is_none()) {
            let value = Template(vec![TemplatePiece::Text(value)]);
            headers.push(HeaderDraft {
                name: "Content-Type",
                at: self.at,
                value: TextWithHoles::of(&value, Escape::Header),
            });
        }
        for entry in self.common {
            if find(&headers, &entry.key).is_none() {
                headers.push(header(entry, scope)?);
            }
        }
        if find(&headers, "Cookie").is_none() {
            headers.push(HeaderDraft {
                name: "Cookie",
                at: self.at,
                value: TextWithHoles::hole(Template(vec![TemplatePiece::Cookies]), Escape::Header),
            });
        }
        if headers.len() > HEADERS_MAX {
            bail!(self.at, "this request has too many headers: expected at most {HEADERS_MAX}");
        }
        Ok(headers)
    }
}

fn find<'a, 'b>(headers: &'b [HeaderDraft<'a>], name: &str) -> Option<&'b HeaderDraft<'a>> {
    headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))
}

fn header<'a>(entry: &'a Entry, scope: &mut TemplateScope<'_>) -> Read<HeaderDraft<'a>> {
    let expected = "the value of a header ('' for an empty one)";
    let template = template::read_text(&entry.value, expected, scope)?;
    let is_part = template.0.len() > 1;
    let escape = if is_part && entry.key.eq_ignore_ascii_case("cookie") {
        Escape::Cookie
    } else {
        Escape::Header
    };
    Ok(HeaderDraft { name: &entry.key, at: entry.at, value: TextWithHoles::of(&template, escape) })
}

/// A request that cannot break its connection's framing, whatever its holes are filled with.
fn checked(
    method: &str,
    method_at: Position,
    url: &Url,
    headers: &[HeaderDraft<'_>],
    body: Body,
) -> Read<HttpRequest> {
    let request = HttpRequest::new(method, url, Vec::new(), body, 1);
    let mut request = request.or_else(|wrong| fault(method_at, wrong.0))?;
    for header in headers {
        // A value that begins or ends with a hole does not begin or end with a blank.
        let whole = [(header.name.to_owned(), header.value.with_letters())];
        request = request.with_common_headers(&whole).or_else(|wrong| fault(header.at, wrong.0))?;
    }
    for (own, header) in request.headers.iter_mut().zip(headers) {
        own.1.clone_from(&header.value.text);
    }
    Ok(request)
}

/// Puts holes into a request. Their fills come back in the same order.
fn put_holes(
    request: &mut HttpRequest,
    at: Position,
    holes: impl Iterator<Item = (Part, (usize, Fill))>,
) -> Read<Vec<Fill>> {
    let mut fills = Vec::new();
    for (part, (at_byte, fill)) in holes {
        let Ok(before) = u32::try_from(at_byte) else {
            bail!(at, "this request is too large: expected less than 4 GiB");
        };
        request.holes.push(Hole { part, at: before });
        fills.push(fill);
    }
    Ok(fills)
}

impl CompiledRequest {
    /// The same request to another target.
    pub(super) fn at(&self, (server, host): (u16, &str)) -> CompiledRequest {
        let request = HttpRequest { host: host.to_owned(), ..self.request.clone() };
        CompiledRequest { request, server, ..self.clone() }
    }

    /// Whether a redirection to a GET changes it.
    pub(super) fn changes_to_get(&self) -> bool {
        let is_read = matches!(&*self.request.method, "GET" | "HEAD");
        let has_body = self.request.holes.iter().any(|hole| hole.part == Part::Body);
        !is_read || has_body || !self.request.body.is_empty()
    }
}

/// What follows a redirection of a request to a target: the same again, or `as_get` a GET without a
/// body (a HEAD after one). Its first hole is its whole path, and the others have what those of the
/// request had, apart from its cookies. To another server it has no Host of its own.
pub(super) fn redirected(
    of: &CompiledRequest,
    as_get: bool,
    (server, host): (u16, &str),
) -> CompiledRequest {
    let mut request = HttpRequest { host: host.to_owned(), ..of.request.clone() };
    request.path.clear();
    request.holes.clear();
    if as_get {
        request.method = if request.method == "HEAD" { "HEAD" } else { "GET" }.to_owned();
        request.body = Body::default();
    }
    let mut fills = Vec::new();
    let mut put = |part, at, value, escape| {
        request.holes.push(Hole { part, at });
        fills.push(Fill { value, escape });
    };
    put(Part::Path, 0, Template::default(), Escape::UrlPiece);
    for (number, (hole, fill)) in (0u16..).zip(of.request.holes.iter().zip(&of.fills)) {
        if hole.part == Part::Path || hole.part == Part::Body && as_get {
            continue;
        }
        if fill.is_of_cookies() {
            put(hole.part, hole.at, fill.value.clone(), fill.escape);
        } else {
            let sent = Template(vec![TemplatePiece::Sent(number)]);
            put(hole.part, hole.at, sent, Escape::None);
        }
    }
    request.leave_out_headers(&mut fills, |_, name| {
        let name = name.to_ascii_lowercase();
        as_get && (name.starts_with("content-") || name == "expect")
            || server != of.server && name == "host"
    });
    CompiledRequest { request, fills, server, leads: false }
}
