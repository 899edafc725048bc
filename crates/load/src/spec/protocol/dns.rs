//! DNS: its settings and its questions.

use crate::quantity::{ParseError, quoted};
use serde::{Deserialize, Serialize};

/// Settings of DNS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DnsSettings {
    /// Whether queries go over TCP, each behind its length (RFC 1035 §4.2.2), and not over UDP.
    pub over_tcp: bool,
    /// Most queries under way on a connection, which over UDP is a source port: 1 to
    /// [`DnsSettings::QUERIES_MAX`].
    pub queries_max: u32,
}

impl DnsSettings {
    /// Most queries under way on a connection: one for each id (RFC 1035 §4.1.1).
    pub const QUERIES_MAX: u32 = 1 << 16;

    /// Settings by which an operation goes on whose answer did not fit into its datagram
    /// (RFC 7766 §5); `None` over TCP, where each answer fits.
    pub fn after_truncation(self) -> Option<DnsSettings> {
        (!self.over_tcp).then_some(DnsSettings { over_tcp: true, ..self })
    }
}

/// Longest name in its wire form, with the length of each label (RFC 1035 §2.3.4).
const NAME_BYTES_MAX: usize = 255;

/// Longest label (RFC 1035 §2.3.4).
const LABEL_BYTES_MAX: usize = 63;

/// Types of records by name. Others are written `TYPE65534` (RFC 3597 §5).
const TYPES: &[(&str, u16)] = &[
    ("A", 1),
    ("NS", 2),
    ("CNAME", 5),
    ("SOA", 6),
    ("PTR", 12),
    ("MX", 15),
    ("TXT", 16),
    ("AAAA", 28),
    ("SRV", 33),
    ("NAPTR", 35),
    ("DS", 43),
    ("RRSIG", 46),
    ("NSEC", 47),
    ("DNSKEY", 48),
    ("TLSA", 52),
    ("SVCB", 64),
    ("HTTPS", 65),
    ("ANY", 255),
    ("CAA", 257),
];

/// A name and a type of records, of the class IN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsQuestion {
    /// The name in its wire form: labels behind their lengths, then a zero.
    pub name: Vec<u8>,
    /// The type's number.
    pub kind: u16,
}

impl DnsQuestion {
    /// A name as zone files have it, with or without the last dot, and a type in any case of
    /// letters. In a name `\.` is no end of a label, and `\065` a byte in decimal digits.
    ///
    /// # Errors
    /// An empty label, one of more than 63 bytes, a name of more than 255, an unknown type.
    pub fn parse(name: &str, kind: &str) -> Result<DnsQuestion, ParseError> {
        let wrong = |what: &str| ParseError(format!("the name {} {what}", quoted(name)));
        let kind = type_of(kind)?;
        if name == "." {
            return Ok(DnsQuestion { name: vec![0], kind });
        }
        let mut wire = vec![0];
        let mut begin = 0;
        let mut rest = name.bytes();
        while let Some(byte) = rest.next() {
            if byte == b'.' {
                if wire.len() == begin + 1 {
                    return Err(wrong("has an empty label: one dot stands between two labels"));
                }
                begin = wire.len();
                wire.push(0);
                continue;
            }
            let byte = match byte {
                b'\\' => escaped(&mut rest).ok_or_else(|| wrong("ends in half an escape"))?,
                byte => byte,
            };
            wire.push(byte);
            let length = wire.len() - begin - 1;
            if length > LABEL_BYTES_MAX {
                return Err(wrong("has a label of more than 63 bytes"));
            }
            wire[begin] = length as u8;
        }
        match wire.len() - begin {
            1 if begin == 0 => return Err(wrong("is empty: write . for the root")),
            // The last dot has begun the label that ends each name.
            1 => {}
            _ => wire.push(0),
        }
        if wire.len() > NAME_BYTES_MAX {
            return Err(wrong("has more than 255 bytes"));
        }
        Ok(DnsQuestion { name: wire, kind })
    }

    /// The question of a URL's path and query, `/NAME?type=A` (RFC 4501 §3): A unless given.
    ///
    /// # Errors
    /// As [`DnsQuestion::parse`]; no name, or a query of something else.
    pub fn of_path(path: &str) -> Result<DnsQuestion, ParseError> {
        let path = path.strip_prefix('/').unwrap_or(path);
        let (name, query) = path.split_once('?').unwrap_or((path, "type=A"));
        if name.is_empty() {
            return Err(ParseError(
                "asks for no name: write dns://HOST/NAME?type=A, or give --targets FILE".to_owned(),
            ));
        }
        let Some(kind) = query.strip_prefix("type=") else {
            return Err(ParseError(format!("asks {}: write ?type=A", quoted(query))));
        };
        DnsQuestion::parse(name, kind)
    }
}

/// The byte that an escape stands for, after its backslash.
fn escaped(rest: &mut std::str::Bytes<'_>) -> Option<u8> {
    let first = rest.next()?;
    if !first.is_ascii_digit() {
        return Some(first);
    }
    let digits = [first, rest.next()?, rest.next()?];
    std::str::from_utf8(&digits).ok()?.parse().ok()
}

fn type_of(text: &str) -> Result<u16, ParseError> {
    let upper = text.to_ascii_uppercase();
    if let Some((_, number)) = TYPES.iter().find(|(name, _)| *name == upper) {
        return Ok(*number);
    }
    let digits = upper.strip_prefix("TYPE").filter(|digits| !digits.starts_with('+'));
    digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| {
        let names: Vec<&str> = TYPES.iter().map(|(name, _)| *name).collect();
        let names = names.join(", ");
        ParseError(format!("{} is no type: give {names}, or TYPE65534 by number", quoted(text)))
    })
}

/// Paths of the questions in a file as dnsperf reads it: `NAME TYPE` on each line. Empty lines and
/// those that begin with `;` or `#` are left out.
///
/// # Errors
/// In one line that begins with the number of the line it is about; no question.
pub fn parse_names(text: &str) -> Result<Vec<String>, ParseError> {
    let mut paths = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with([';', '#']) {
            continue;
        }
        let told = |what: String| ParseError(format!("line {}: {what}", at + 1));
        let mut words = line.split_ascii_whitespace();
        let (Some(name), Some(kind), None) = (words.next(), words.next(), words.next()) else {
            return Err(told(format!("{} is no question: write 'NAME TYPE'", quoted(line))));
        };
        if let Some(refused) = name.chars().find(|&c| !c.is_ascii_graphic() || "?#/".contains(c)) {
            return Err(told(format!("{refused:?} in a name: write it as \\DDD, in decimal")));
        }
        DnsQuestion::parse(name, kind).map_err(|error| told(error.0))?;
        paths.push(format!("/{name}?type={kind}"));
    }
    if paths.is_empty() {
        let what = "no question in the file: write lines such as 'www.example.com A'";
        return Err(ParseError(what.to_owned()));
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_and_types_in_their_wire_form() {
        for (path, name, kind) in [
            ("/www.example.com?type=A", &b"\x03www\x07example\x03com\0"[..], 1),
            ("/www.example.com.", b"\x03www\x07example\x03com\0", 1),
            ("/.?type=ns", b"\0", 2),
            (r"/a\.b.c?type=TYPE65534", b"\x03a.b\x01c\0", 65534),
            (r"/\065.c?type=Caa", b"\x01A\x01c\0", 257),
        ] {
            let question = DnsQuestion::of_path(path).expect(path);
            assert_eq!((&question.name[..], question.kind), (name, kind), "{path}");
        }
    }

    #[test]
    fn what_is_no_question_is_told() {
        let long = format!("/{}?type=A", "a".repeat(64));
        let longer = format!("/{}?type=A", "abc.".repeat(64));
        for (path, want) in [
            ("/", "no name"),
            ("/a..b", "empty label"),
            ("/.a", "empty label"),
            ("/a?class=CH", "write ?type=A"),
            ("/a?type=AX", "'AX' is no type"),
            ("/a?type=TYPE65536", "no type"),
            (r"/a\", "half an escape"),
            (r"/a\25", "half an escape"),
            (r"/a\256", "half an escape"),
            (&long, "more than 63"),
            (&longer, "more than 255"),
        ] {
            let error = DnsQuestion::of_path(path).expect_err(path).to_string();
            assert!(error.contains(want), "{path}: {error}");
        }
    }

    #[test]
    fn a_names_file_is_read_as_dnsperf_reads_it() {
        let text = "; comment\n\nwww.example.com A\n example.com\tmx \n";
        let want = ["/www.example.com?type=A", "/example.com?type=mx"];
        assert_eq!(parse_names(text).unwrap(), want);
        for (text, want) in [
            ("a A\nb", "line 2: 'b' is no question"),
            ("a A B", "line 1: 'a A B' is no question"),
            ("a A\n\nb..c A", "line 3: the name 'b..c' has an empty label"),
            ("a?b A", "line 1: '?' in a name"),
            ("a XX", "line 1: 'XX' is no type"),
            ("; nothing", "no question in the file"),
        ] {
            let error = parse_names(text).expect_err(text).to_string();
            assert!(error.contains(want), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_gives_a_name_that_fits(text in "[a-c.\\\\0-9]{0,80}|\\PC{0,30}") {
            if let Ok(DnsQuestion { name, .. }) = DnsQuestion::parse(&text, "A") {
                prop_assert!(name.len() <= NAME_BYTES_MAX);
                let mut at = 0;
                while name[at] != 0 {
                    at += 1 + usize::from(name[at]);
                }
                prop_assert_eq!(at + 1, name.len());
            }
        }
    }
}
