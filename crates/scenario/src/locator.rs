//! Templates in URLs: which part of the URL each value is.

use super::holed::TextWithHoles;
use super::template::TemplatePart;
use knee_load::percent::component;
use knee_load::session::TemplatePiece;
use knee_load::session::{Escape, Function};

/// A part of a template in a URL.
enum UrlPart {
    /// Text of the URL itself.
    Own(String),
    /// A value that is settled before the run: a name, a value or a segment.
    Settled(String),
    /// A value of the run, which is the same.
    Open(TemplatePiece),
    /// A value of the run that is a piece of the URL.
    Raw(TemplatePiece),
}

/// The text of a URL with its holes, up to its fragment, which is never sent.
pub(super) fn holed(written: Vec<TemplatePart>) -> TextWithHoles {
    let mut parts = Vec::new();
    for part in written {
        match part {
            TemplatePart::Text(text) => parts.push(UrlPart::Own(text)),
            TemplatePart::Value(piece) => open(piece, &mut parts),
        }
    }
    let mut holed = TextWithHoles::default();
    let mut is_path = true;
    for (number, segment) in segments(parts).into_iter().enumerate() {
        let is_host = number == 2 && is_scheme(&holed.text);
        let end = match segment.last() {
            Some(UrlPart::Own(text)) => text.clone(),
            _ => String::new(),
        };
        put(segment, is_path, is_host, &mut holed);
        match &*end {
            "#" => {
                holed.text.pop();
                break;
            }
            "?" => is_path = false,
            _ => {}
        }
    }
    holed
}

fn is_scheme(text: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| text.eq_ignore_ascii_case(scheme))
}

/// Takes a value apart: what `urlencode` encodes is encoded as any value is, once, and what `raw`
/// has is a piece of the URL.
fn open(piece: TemplatePiece, into: &mut Vec<UrlPart>) {
    match piece {
        TemplatePiece::Text(text) => into.push(UrlPart::Settled(text)),
        TemplatePiece::Call(function) => match *function {
            Function::UrlEncode(of) => of.0.into_iter().for_each(|piece| open(piece, into)),
            Function::Raw(of) => into.extend(of.0.into_iter().map(|piece| match piece {
                TemplatePiece::Text(text) => UrlPart::Own(text),
                piece => UrlPart::Raw(piece),
            })),
            other => into.push(UrlPart::Open(TemplatePiece::Call(Box::new(other)))),
        },
        piece => into.push(UrlPart::Open(piece)),
    }
}

/// The parts between `/`, `?` and `#`, each with the one that ends it as a text of its own.
fn segments(parts: Vec<UrlPart>) -> Vec<Vec<UrlPart>> {
    let (mut all, mut last) = (Vec::new(), Vec::new());
    for part in parts {
        let UrlPart::Own(text) = part else {
            last.push(part);
            continue;
        };
        for piece in text.split_inclusive(['/', '?', '#']) {
            let ends = piece.ends_with(['/', '?', '#']);
            let (own, end) = piece.split_at(piece.len() - usize::from(ends));
            last.extend([own, end].map(|text| UrlPart::Own(text.to_owned())));
            if ends {
                all.push(std::mem::take(&mut last));
            }
        }
    }
    all.push(last);
    all
}

/// Puts what lies between two of these. What a value makes of a segment is still that segment: if
/// no text but dots stands beside it, it could be `.` or `..`.
fn put(parts: Vec<UrlPart>, is_path: bool, is_host: bool, into: &mut TextWithHoles) {
    let is_value = |part: &UrlPart| matches!(part, UrlPart::Settled(_) | UrlPart::Open(_));
    let is_dots = |part: &UrlPart| match part {
        UrlPart::Own(text) | UrlPart::Settled(text) => text.bytes().all(|b| b == b'.'),
        UrlPart::Open(_) | UrlPart::Raw(_) => true,
    };
    let may_be_dots = is_path
        && !is_host
        && parts.iter().any(is_value)
        && parts.iter().filter(|part| !is_end(part)).all(is_dots);
    let escape = if may_be_dots { Escape::Segment } else { Escape::Component };
    let own = into.holes.len();
    for part in parts {
        match part {
            UrlPart::Own(text) if may_be_dots => into.push(&text.replace('.', "%2E")),
            UrlPart::Own(text) => into.push(&text),
            UrlPart::Settled(text) if is_host => into.push(&text),
            UrlPart::Settled(text) => {
                let text = component(text.as_bytes());
                into.push(&if may_be_dots { text.replace('.', "%2E") } else { text });
            }
            UrlPart::Open(piece) => into.put_piece(&piece, escape, own),
            UrlPart::Raw(piece) => {
                let is_begin = into.text.is_empty()
                    && into.holes.iter().all(|(_, fill)| fill.escape == Escape::Link);
                let escape = if is_begin { Escape::Link } else { Escape::UrlPiece };
                into.put_piece(&piece, escape, own);
            }
        }
    }
}

fn is_end(part: &UrlPart) -> bool {
    matches!(part, UrlPart::Own(text) if matches!(&**text, "/" | "?" | "#"))
}
