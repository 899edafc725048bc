//! DNS: its settings and its questions.

use crate::quantity::{ParseError, quoted};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};

/// Settings of DNS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DnsSettings {
    /// Whether queries go over TCP, each behind its length (RFC 1035 §4.2.2), and not over UDP.
    pub over_tcp: bool,
    /// Most queries under way on a connection, which over UDP is a source port: 1 to
    /// [`DnsSettings::QUERIES_MAX`].
    pub queries_max: u32,
    /// Largest answer over UDP that each query permits by EDNS (RFC 6891 §6.2.3), in bytes; `None`:
    /// queries have no EDNS, which permits 512.
    #[serde(default)]
    pub edns_bytes: Option<u16>,
    /// Whether queries ask for the records of DNSSEC (RFC 3225). They have EDNS then.
    #[serde(default)]
    pub dnssec: bool,
    /// Whether queries ask for no recursion (RFC 1035 §4.1.1, RD).
    #[serde(default)]
    pub no_recursion: bool,
    /// Lines of the file of questions that are none.
    #[serde(default)]
    pub skipped: SkippedLines,
}

/// Lines of a file that were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedLines {
    /// Their number.
    pub count: u32,
    /// The first of them, from 1; 0: none.
    pub first: u32,
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

/// Types of records by name, as IANA has them (registry "DNS Parameters" of 2025): the number of the
/// first of a row, whose numbers follow each other. Others are written `TYPE65534` (RFC 3597 §5).
const TYPES: &[(u16, &str)] = &[
    (
        1,
        "A NS MD MF CNAME SOA MB MG MR NULL WKS PTR HINFO MINFO MX TXT RP AFSDB X25 ISDN RT NSAP \
         NSAP-PTR SIG KEY PX GPOS AAAA LOC NXT EID NIMLOC SRV ATMA NAPTR KX CERT A6 DNAME SINK OPT \
         APL DS SSHFP IPSECKEY RRSIG NSEC DNSKEY DHCID NSEC3 NSEC3PARAM TLSA SMIMEA",
    ),
    (55, "HIP NINFO RKEY TALINK CDS CDNSKEY OPENPGPKEY CSYNC ZONEMD SVCB HTTPS DSYNC HHIT BRID"),
    (99, "SPF UINFO UID GID UNSPEC NID L32 L64 LP EUI48 EUI64"),
    (128, "NXNAME"),
    (249, "TKEY TSIG IXFR AXFR MAILB MAILA ANY URI CAA AVC DOA AMTRELAY RESINFO WALLET CLA IPN"),
    (32_768, "TA DLV"),
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
    pub fn parse(name: &[u8], kind: &str) -> Result<DnsQuestion, ParseError> {
        let shown = || String::from_utf8_lossy(name).into_owned();
        let wrong = |what: &str| ParseError(format!("the name {} {what}", quoted(&shown())));
        let kind = type_of(kind)?;
        if name == b"." {
            return Ok(DnsQuestion { name: vec![0], kind });
        }
        let mut wire = vec![0];
        let mut begin = 0;
        let mut rest = name.iter().copied();
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

    /// The question of a URL's path and query, `/NAME?type=A` (RFC 4501 §3): A unless given. The
    /// name's characters may be percent-encoded.
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
        DnsQuestion::parse(&Vec::from_iter(percent_decode_str(name)), kind)
    }
}

/// The byte that an escape stands for, after its backslash.
fn escaped(rest: &mut impl Iterator<Item = u8>) -> Option<u8> {
    let first = rest.next()?;
    if !first.is_ascii_digit() {
        return Some(first);
    }
    let digits = [first, rest.next()?, rest.next()?];
    std::str::from_utf8(&digits).ok()?.parse().ok()
}

fn type_of(text: &str) -> Result<u16, ParseError> {
    let upper = match text {
        "*" => "ANY".to_owned(),
        text => text.to_ascii_uppercase(),
    };
    let mut known = TYPES.iter().flat_map(|(first, row)| (*first..).zip(row.split(' ')));
    if let Some((number, _)) = known.find(|(_, name)| *name == upper) {
        return Ok(number);
    }
    let digits = upper.strip_prefix("TYPE").filter(|digits| !digits.starts_with('+'));
    digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| {
        let text = quoted(text);
        ParseError(format!("{text} is no type: give a name, such as AAAA, or TYPE65534 by number"))
    })
}

/// The questions of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsNames {
    /// The path of each, as in a URL; at least one.
    pub paths: Vec<String>,
    /// What was no question.
    pub skipped: SkippedLines,
}

/// Reads a file as dnsperf does: `NAME TYPE` on each line, whatever follows. Empty lines and those
/// that begin with `;` are no questions, nor are those with `#` that are not a name and a type alone.
/// Others are skipped.
///
/// # Errors
/// No question, with what is wrong with the first line that was skipped.
pub fn parse_names(file: &[u8]) -> Result<DnsNames, ParseError> {
    let (mut paths, mut skipped) = (Vec::new(), SkippedLines::default());
    let mut wrong = None;
    for (number, line) in (1..).zip(file.split(|byte| *byte == b'\n')) {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b";") {
            continue;
        }
        // A name may begin with '#', and so does what is meant as a comment.
        let may_be_comment = line.starts_with(b"#");
        let is_bare = words(line).count() == 2 && words(line).next() != Some(b"#");
        match path_of(line) {
            Ok(path) if is_bare || !may_be_comment => paths.push(path),
            Err(error) if !may_be_comment => {
                if skipped.count == 0 {
                    skipped.first = number;
                    wrong = Some(ParseError(format!("line {number}: {error}")));
                }
                skipped.count += 1;
            }
            _ => {}
        }
    }
    if paths.is_empty() {
        let what = "no question in the file: write lines such as 'www.example.com A'";
        return Err(wrong.unwrap_or_else(|| ParseError(what.to_owned())));
    }
    Ok(DnsNames { paths, skipped })
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// The path of the question in a line.
fn path_of(line: &[u8]) -> Result<String, ParseError> {
    let mut words = words(line);
    let (Some(name), Some(kind)) = (words.next(), words.next()) else {
        let line = String::from_utf8_lossy(line);
        return Err(ParseError(format!("{} is no question: write 'NAME TYPE'", quoted(&line))));
    };
    // What a path cannot hold is written by number.
    let (mut text, mut at) = (String::new(), 0);
    while let Some(&byte) = name.get(at) {
        let is_escape = byte == b'\\' && at + 1 < name.len();
        let meant = if is_escape { name[at + 1] } else { byte };
        if !meant.is_ascii_graphic() || b"?#%".contains(&meant) {
            text.push_str(&format!("\\{meant:03}"));
        } else {
            text.extend(is_escape.then_some('\\'));
            text.push(char::from(meant));
        }
        at += 1 + usize::from(is_escape);
    }
    let kind = String::from_utf8_lossy(kind);
    DnsQuestion::parse(text.as_bytes(), &kind)?;
    Ok(format!("/{text}?type={kind}"))
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
            ("/b%C3%BCcher.example", b"\x07b\xc3\xbccher\x07example\0", 1),
            (
                "/world%20wide%20web.example%5c.domain?type=TXT",
                b"\x0eworld wide web\x0eexample.domain\0",
                16,
            ),
            ("/a%2Eb%3fc", b"\x01a\x03b?c\0", 1),
            ("/a%2", b"\x03a%2\0", 1),
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
        for (line, path, wire) in [
            (
                &b"www.example.com A"[..],
                "/www.example.com?type=A",
                &b"\x03www\x07example\x03com\0"[..],
            ),
            (b" example.com\tmx ", "/example.com?type=mx", b"\x07example\x03com\0"),
            (b"a A\r", "/a?type=A", b"\x01a\0"),
            (b"a. A IN 300", "/a.?type=A", b"\x01a\0"),
            (b". NS", "/.?type=NS", b"\0"),
            (
                b"0/25.2.0.192.in-addr.arpa PTR",
                "/0/25.2.0.192.in-addr.arpa?type=PTR",
                b"\x040/25\x012\x010\x03192\x07in-addr\x04arpa\0",
            ),
            (b"a?b.c#d A", "/a\\063b.c\\035d?type=A", b"\x03a?b\x03c#d\0"),
            (b"#a.b A", "/\\035a.b?type=A", b"\x02#a\x01b\0"),
            (b"a\\.b.c SOA", "/a\\.b.c?type=SOA", b"\x03a.b\x01c\0"),
            (b"a\\000\\255 TXT", "/a\\000\\255?type=TXT", b"\x03a\0\xff\0"),
            (b"a\\?b\\\\ A", "/a\\063b\\\\?type=A", b"\x04a?b\\\0"),
            (b"\xc3\xa4\xff A", "/\\195\\164\\255?type=A", b"\x03\xc3\xa4\xff\0"),
            (
                b"_sip._tcp.a%20@ SRV",
                "/_sip._tcp.a\\03720@?type=SRV",
                b"\x04_sip\x04_tcp\x05a%20@\0",
            ),
        ] {
            let shown = line.escape_ascii();
            let read = parse_names(line).unwrap();
            assert_eq!(read.paths, [path], "{shown}");
            assert_eq!(DnsQuestion::of_path(path).unwrap().name, wire, "{shown}");
        }
        for line in [&b"; comment A"[..], b";", b"# a comment", b"#a b A", b"#", b"#a b", b""] {
            let text = [line, b"\na A\n"].concat();
            let read = parse_names(&text).unwrap();
            assert_eq!(
                read,
                DnsNames { paths: vec!["/a?type=A".to_owned()], skipped: SkippedLines::default() }
            );
        }
    }

    #[test]
    fn a_line_that_is_no_question_is_skipped_and_counted() {
        for (line, want) in [
            (&b"b"[..], "line 2: 'b' is no question"),
            (b"b..c A", "line 2: the name 'b..c' has an empty label"),
            (b".b A", "line 2: the name '.b' has an empty label"),
            (b"b\\ A", "line 2: the name 'b\\\\' ends in half an escape"),
            (b"b\\256 A", "half an escape"),
            (b"b XX", "line 2: 'XX' is no type"),
            (b"b TYPE65536", "no type"),
            (&[&b"b".repeat(64)[..], b" A"].concat(), "more than 63 bytes"),
            (&[&b"b.".repeat(128)[..], b" A"].concat(), "more than 255 bytes"),
        ] {
            let alone = [&b";\n"[..], line, b"\n"].concat();
            let error = parse_names(&alone).expect_err("an error").to_string();
            assert!(error.contains(want), "{}: {error}", line.escape_ascii());
            let among = [&b"a A\n"[..], line, b"\n", line, b"\nc A"].concat();
            let read = parse_names(&among).unwrap();
            assert_eq!(read.paths, ["/a?type=A", "/c?type=A"]);
            assert_eq!(read.skipped, SkippedLines { count: 2, first: 2 });
        }
        let nothing = parse_names(b"; nothing\n# nothing").expect_err("an error").to_string();
        assert!(nothing.contains("no question in the file"), "{nothing}");
    }

    #[test]
    fn all_types_of_iana_have_their_numbers() {
        for (name, number) in [
            ("A", 1),
            ("TXT", 16),
            ("NSAP-PTR", 23),
            ("AAAA", 28),
            ("OPT", 41),
            ("TLSA", 52),
            ("SMIMEA", 53),
            ("HIP", 55),
            ("HTTPS", 65),
            ("BRID", 68),
            ("SPF", 99),
            ("EUI64", 109),
            ("NXNAME", 128),
            ("TKEY", 249),
            ("AXFR", 252),
            ("ANY", 255),
            ("*", 255),
            ("URI", 256),
            ("caa", 257),
            ("AMTRELAY", 260),
            ("IPN", 264),
            ("TA", 32_768),
            ("dlv", 32_769),
            ("TYPE0", 0),
            ("type123", 123),
            ("TYPE65535", 65_535),
        ] {
            assert_eq!(type_of(name), Ok(number), "{name}");
        }
        let names: Vec<&str> = TYPES.iter().flat_map(|(_, row)| row.split(' ')).collect();
        assert_eq!(names.len(), 53 + 14 + 11 + 1 + 16 + 2);
        for none in ["", "B", "A ", "TYPE", "TYPE+1", "TYPE65536", "AA"] {
            assert!(type_of(none).is_err(), "{none}");
        }
    }

    proptest! {
        #[test]
        fn any_line_gives_a_path_that_asks_for_its_name(line in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(DnsNames { paths, .. }) = parse_names(&line) {
                for path in paths {
                    prop_assert!(path.bytes().all(|b| b.is_ascii_graphic()), "{path}");
                    prop_assert!(DnsQuestion::of_path(&path).is_ok(), "{path}");
                    let url = crate::spec::Url::parse(&format!("dns://h{path}")).unwrap();
                    prop_assert_eq!(url.path(), path);
                }
            }
        }

        #[test]
        fn any_text_gives_a_name_that_fits(text in "[a-c.\\\\0-9]{0,80}|\\PC{0,30}") {
            if let Ok(DnsQuestion { name, .. }) = DnsQuestion::parse(text.as_bytes(), "A") {
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
