//! One request with its holes, and what they are filled with.

use super::Surroundings;
use super::body::{self, Content};
use super::fault::{At, Read, fault};
use super::fields::{Fields, named, text};
use super::holed::Holed;
use super::names::Names;
use super::target::Origin;
use super::template;
use super::tree::{Entry, Node};
use crate::quantity::parse::quoted;
use crate::session::{Escape, Fill, Piece, Template};
use crate::spec::{Body, Hole, HttpRequest, Part, Url};

/// The most headers of a request.
const HEADERS_MAX: usize = 100;

/// A request as the session sends it.
pub(super) struct Compiled {
    pub(super) request: HttpRequest,
    pub(super) fills: Vec<Fill>,
}

/// What a request is made of.
pub(super) struct Draft<'a> {
    /// Where its step stands.
    pub(super) at: At,
    pub(super) method: (&'a str, At),
    pub(super) url: &'a Node,
    pub(super) fields: &'a Fields<'a>,
    /// Headers that hold for all requests.
    pub(super) common: &'a [Entry],
}

/// A header that is not yet in the request.
struct Header<'a> {
    name: &'a str,
    at: At,
    value: Holed,
}

impl Draft<'_> {
    pub(super) fn compile(
        &self,
        origin: &Origin,
        names: &Names,
        around: &mut dyn Surroundings,
    ) -> Read<Compiled> {
        let (url, path) = origin.path(self.url, names, around)?;
        let (content, content_type) = body::read(self.fields, names, around)?;
        let headers = self.headers(content_type, names, around)?;
        let (body, holed) = match content {
            Content::File(body) => (body, Holed::default()),
            Content::Text(holed) => (Body::from(holed.text.clone().into_bytes()), holed),
        };
        let has_length = |header: &&Header| header.name.eq_ignore_ascii_case("content-length");
        if let Some(length) = headers
            .iter()
            .find(has_length)
            .filter(|_| !holed.holes.is_empty())
        {
            return fault(
                length.at,
                "the length of a body with templates is known when it is sent: leave \
                    Content-Length out",
            );
        }
        let (method, method_at) = self.method;
        let mut request = checked(method, method_at, &url, &headers, body)?;
        // That of the URL begins with '/', where this may begin with a hole.
        request.path = path.text;
        let path_holes = path.holes.into_iter().map(|hole| (Part::Path, hole));
        let numbered = (0u16..).zip(headers);
        let header_holes = numbered.flat_map(|(number, header)| {
            let holes = header.value.holes.into_iter();
            holes.map(move |hole| (Part::Header(number), hole))
        });
        let body_holes = holed.holes.into_iter().map(|hole| (Part::Body, hole));
        let holes = path_holes.chain(header_holes).chain(body_holes);
        finished(request, self.at, holes)
    }

    /// Its own headers, then those that all requests have, then that of the cookies.
    fn headers(
        &self,
        content_type: Option<&'static str>,
        names: &Names,
        around: &mut dyn Surroundings,
    ) -> Read<Vec<Header<'_>>> {
        let own = self
            .fields
            .get("headers")
            .map(|node| named(node, "headers: {Name: value}"));
        let own = own.transpose()?.unwrap_or_default();
        let mut headers: Vec<Header<'_>> = Vec::new();
        for entry in own {
            if let Some(other) = find(&headers, &entry.key) {
                let (name, other) = (quoted(&entry.key), quoted(other.name));
                return fault(
                    entry.at,
                    format!("{name} is {other} once more, as names have no case: leave one out"),
                );
            }
            headers.push(header(entry, names, around)?);
        }
        if let Some(value) = content_type.filter(|_| find(&headers, "Content-Type").is_none()) {
            let value = Template(vec![Piece::Text(value.to_owned())]);
            headers.push(Header {
                name: "Content-Type",
                at: self.at,
                value: Holed::of(&value, Escape::Header),
            });
        }
        for entry in self.common {
            if find(&headers, &entry.key).is_none() {
                headers.push(header(entry, names, around)?);
            }
        }
        if find(&headers, "Cookie").is_none() {
            headers.push(Header {
                name: "Cookie",
                at: self.at,
                value: Holed::hole(Template(vec![Piece::Cookies]), Escape::Header),
            });
        }
        if headers.len() > HEADERS_MAX {
            return fault(
                self.at,
                format!("this request has too many headers: expected at most {HEADERS_MAX}"),
            );
        }
        Ok(headers)
    }
}

fn find<'a, 'b>(headers: &'b [Header<'a>], name: &str) -> Option<&'b Header<'a>> {
    headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case(name))
}

fn header<'a>(entry: &'a Entry, names: &Names, around: &mut dyn Surroundings) -> Read<Header<'a>> {
    let scalar = text(&entry.value, "the value of a header ('' for an empty one)")?;
    let template = template::read(&entry.value, scalar, names, around)?;
    let is_part = template.0.len() > 1;
    let escape = if is_part && entry.key.eq_ignore_ascii_case("cookie") {
        Escape::Cookie
    } else {
        Escape::Header
    };
    Ok(Header {
        name: &entry.key,
        at: entry.at,
        value: Holed::of(&template, escape),
    })
}

/// A request that cannot break its connection's framing, whatever its holes are filled with.
fn checked(
    method: &str,
    method_at: At,
    url: &Url,
    headers: &[Header<'_>],
    body: Body,
) -> Read<HttpRequest> {
    let request = HttpRequest::new(method, url, Vec::new(), body, 1);
    let mut request = request.or_else(|wrong| fault(method_at, wrong.0))?;
    for header in headers {
        // A value that begins or ends with a hole does not begin or end with a blank.
        let whole = [(header.name.to_owned(), header.value.with_letters())];
        request = request
            .with_common_headers(&whole)
            .or_else(|wrong| fault(header.at, wrong.0))?;
    }
    for (own, header) in request.headers.iter_mut().zip(headers) {
        own.1.clone_from(&header.value.text);
    }
    Ok(request)
}

/// The request with its holes, and their fills in the same order.
fn finished(
    mut request: HttpRequest,
    at: At,
    holes: impl Iterator<Item = (Part, (usize, Fill))>,
) -> Read<Compiled> {
    let mut fills = Vec::new();
    for (part, (at_byte, fill)) in holes {
        let Ok(before) = u32::try_from(at_byte) else {
            return fault(at, "this request is too large: expected less than 4 GiB");
        };
        request.holes.push(Hole { part, at: before });
        fills.push(fill);
    }
    Ok(Compiled { request, fills })
}

/// What follows a redirection of a request: a GET, or a HEAD after one, with the same headers but
/// those of a body, whose first hole is its whole path.
pub(super) fn redirected(of: &Compiled) -> Compiled {
    let is_of_body = |name: &str| {
        let name = name.to_ascii_lowercase();
        name.starts_with("content-")
    };
    let method = match &*of.request.method {
        "HEAD" => "HEAD",
        _ => "GET",
    };
    let mut request = HttpRequest {
        method: method.to_owned(),
        path: String::new(),
        headers: Vec::new(),
        body: Body::default(),
        holes: vec![Hole {
            part: Part::Path,
            at: 0,
        }],
        ..of.request.clone()
    };
    let mut fills = vec![Fill {
        value: Template::default(),
        escape: Escape::UrlPiece,
    }];
    for (number, header) in (0u16..).zip(&of.request.headers) {
        if is_of_body(&header.0) {
            continue;
        }
        let part = Part::Header(request.headers.len() as u16);
        request.headers.push(header.clone());
        let holes = of.request.holes.iter().zip(&of.fills);
        for (hole, fill) in holes.filter(|(hole, _)| hole.part == Part::Header(number)) {
            request.holes.push(Hole { part, at: hole.at });
            fills.push(fill.clone());
        }
    }
    Compiled { request, fills }
}
