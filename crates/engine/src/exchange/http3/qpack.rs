//! QPACK without a dynamic table (RFC 9204 with a capacity of 0): fields to field sections and back.
//! Integers and strings are those of HPACK.

use super::Http3Violation;
use crate::exchange::http2::fields::{LIST_BYTES_MAX, Section};
use crate::exchange::http2::hpack::{
    self, ENTRY_OVERHEAD, put_string_behind, read_integer, string_behind, write_integer,
};

/// The static table (RFC 9204, Appendix A), whose first index is 0.
pub static STATIC: [(&str, &str); 99] = [
    (":authority", ""),
    (":path", "/"),
    ("age", "0"),
    ("content-disposition", ""),
    ("content-length", "0"),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("referer", ""),
    ("set-cookie", ""),
    (":method", "CONNECT"),
    (":method", "DELETE"),
    (":method", "GET"),
    (":method", "HEAD"),
    (":method", "OPTIONS"),
    (":method", "POST"),
    (":method", "PUT"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "103"),
    (":status", "200"),
    (":status", "304"),
    (":status", "404"),
    (":status", "503"),
    ("accept", "*/*"),
    ("accept", "application/dns-message"),
    ("accept-encoding", "gzip, deflate, br"),
    ("accept-ranges", "bytes"),
    ("access-control-allow-headers", "cache-control"),
    ("access-control-allow-headers", "content-type"),
    ("access-control-allow-origin", "*"),
    ("cache-control", "max-age=0"),
    ("cache-control", "max-age=2592000"),
    ("cache-control", "max-age=604800"),
    ("cache-control", "no-cache"),
    ("cache-control", "no-store"),
    ("cache-control", "public, max-age=31536000"),
    ("content-encoding", "br"),
    ("content-encoding", "gzip"),
    ("content-type", "application/dns-message"),
    ("content-type", "application/javascript"),
    ("content-type", "application/json"),
    ("content-type", "application/x-www-form-urlencoded"),
    ("content-type", "image/gif"),
    ("content-type", "image/jpeg"),
    ("content-type", "image/png"),
    ("content-type", "text/css"),
    ("content-type", "text/html; charset=utf-8"),
    ("content-type", "text/plain"),
    ("content-type", "text/plain;charset=utf-8"),
    ("range", "bytes=0-"),
    ("strict-transport-security", "max-age=31536000"),
    ("strict-transport-security", "max-age=31536000; includesubdomains"),
    ("strict-transport-security", "max-age=31536000; includesubdomains; preload"),
    ("vary", "accept-encoding"),
    ("vary", "origin"),
    ("x-content-type-options", "nosniff"),
    ("x-xss-protection", "1; mode=block"),
    (":status", "100"),
    (":status", "204"),
    (":status", "206"),
    (":status", "302"),
    (":status", "400"),
    (":status", "403"),
    (":status", "421"),
    (":status", "425"),
    (":status", "500"),
    ("accept-language", ""),
    ("access-control-allow-credentials", "FALSE"),
    ("access-control-allow-credentials", "TRUE"),
    ("access-control-allow-headers", "*"),
    ("access-control-allow-methods", "get"),
    ("access-control-allow-methods", "get, post, options"),
    ("access-control-allow-methods", "options"),
    ("access-control-expose-headers", "content-length"),
    ("access-control-request-headers", "content-type"),
    ("access-control-request-method", "get"),
    ("access-control-request-method", "post"),
    ("alt-svc", "clear"),
    ("authorization", ""),
    ("content-security-policy", "script-src 'none'; object-src 'none'; base-uri 'none'"),
    ("early-data", "1"),
    ("expect-ct", ""),
    ("forwarded", ""),
    ("if-range", ""),
    ("origin", ""),
    ("purpose", "prefetch"),
    ("server", ""),
    ("timing-allow-origin", "*"),
    ("upgrade-insecure-requests", "1"),
    ("user-agent", ""),
    ("x-forwarded-for", ""),
    ("x-frame-options", "deny"),
    ("x-frame-options", "sameorigin"),
];

/// What each field section begins with where nothing refers to a dynamic table (§4.5.1).
pub const PREFIX: [u8; 2] = [0, 0];

/// Appends a field in its shortest form.
pub fn put_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    let of_name = |entry: &(&str, &str)| entry.0.as_bytes() == name;
    let is_equal = |entry: &(&str, &str)| of_name(entry) && entry.1.as_bytes() == value;
    if let Some(index) = STATIC.iter().position(is_equal) {
        return write_integer(out, 0xC0, 6, index);
    }
    match STATIC.iter().position(of_name) {
        Some(index) => write_integer(out, 0x50, 4, index),
        None => put_string_behind(out, 0x20, 3, name),
    }
    put_string_behind(out, 0, 7, value);
}

/// What makes a field section unreadable (RFC 9204 §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QpackError {
    /// A string or an integer.
    Text(hpack::Error),
    /// It needs a dynamic table, whose capacity is 0.
    Dynamic,
    /// Its base is below 0.
    Base,
    /// An index that no entry has.
    Index,
    /// More fields than are taken.
    ListTooLarge,
}

impl From<hpack::Error> for QpackError {
    fn from(error: hpack::Error) -> QpackError {
        QpackError::Text(error)
    }
}

/// Sections whose meaning is remembered. Two, as a peer may send two in turn.
const REMEMBERED: usize = 2;

/// Longer sections are not remembered per connection.
const REMEMBERED_BYTES_MAX: usize = 1024;

/// The room for decoded strings that is kept between sections; more is given back.
const SCRATCH_KEPT_BYTES: usize = 4096;

/// Reads field sections. Equal bytes mean the same, so the last ones are remembered.
#[derive(Debug, Default)]
pub struct SectionDecoder<S> {
    name: Vec<u8>,
    value: Vec<u8>,
    remembered: [(Vec<u8>, S); REMEMBERED],
    oldest: usize,
}

impl<S: Section> SectionDecoder<S> {
    /// Reads a whole section.
    ///
    /// # Errors
    /// Those of QPACK, after which the connection cannot go on.
    #[inline]
    pub fn read(&mut self, block: &[u8]) -> Result<S, QpackError> {
        if let Some((_, section)) = self.remembered.iter().find(|(known, _)| known == block)
            && !block.is_empty()
        {
            return Ok(*section);
        }
        let section = self.read_into(block, &mut |_, _, _| {})?;
        if block.len() <= REMEMBERED_BYTES_MAX {
            let (known, meaning) = &mut self.remembered[self.oldest];
            known.clear();
            known.extend_from_slice(block);
            *meaning = section;
            self.oldest = (self.oldest + 1) % REMEMBERED;
        }
        Ok(section)
    }

    /// Reads a whole section, and hands each field to `tell` with the section so far.
    ///
    /// # Errors
    /// See [`SectionDecoder::read`].
    pub fn read_into(
        &mut self,
        block: &[u8],
        tell: &mut impl FnMut(&S, &[u8], &[u8]),
    ) -> Result<S, QpackError> {
        let mut section = S::default();
        let mut rest = after_prefix(block)?;
        let mut left = LIST_BYTES_MAX;
        while let Some(&first) = rest.first() {
            let (name, value): (&[u8], &[u8]);
            if first & 0x80 != 0 {
                let (entry, after) = static_entry(rest, first & 0x40 != 0, 6)?;
                (name, value, rest) = (entry.0.as_bytes(), entry.1.as_bytes(), after);
            } else {
                let after = if first & 0x40 != 0 {
                    let (entry, after) = static_entry(rest, first & 0x10 != 0, 4)?;
                    name = entry.0.as_bytes();
                    after
                } else if first & 0x20 != 0 {
                    let (text, after) = string_behind(rest, 3, &mut self.name)?;
                    name = text;
                    after
                } else {
                    return Err(QpackError::Dynamic);
                };
                (value, rest) = string_behind(after, 7, &mut self.value)?;
            }
            let size = name.len() + value.len() + ENTRY_OVERHEAD;
            left = left.checked_sub(size).ok_or(QpackError::ListTooLarge)?;
            section.take(name, value);
            tell(&section, name, value);
        }
        self.name.shrink_to(SCRATCH_KEPT_BYTES);
        self.value.shrink_to(SCRATCH_KEPT_BYTES);
        Ok(section)
    }
}

/// What follows the prefix of a section, which may refer to no dynamic table (§4.5.1).
fn after_prefix(block: &[u8]) -> Result<&[u8], QpackError> {
    let (insert_count, rest) = read_integer(block, 8)?;
    let is_negative = rest.first().is_some_and(|first| first & 0x80 != 0);
    let (_, rest) = read_integer(rest, 7)?;
    match (insert_count, is_negative) {
        (0, false) => Ok(rest),
        (0, true) => Err(QpackError::Base),
        _ => Err(QpackError::Dynamic),
    }
}

type StaticField = (&'static str, &'static str);

/// The entry that an index with `prefix` bits in its first byte names, and what follows it.
#[inline]
fn static_entry(
    bytes: &[u8],
    is_static: bool,
    prefix: u32,
) -> Result<(StaticField, &[u8]), QpackError> {
    if !is_static {
        return Err(QpackError::Dynamic);
    }
    let (index, rest) = read_integer(bytes, prefix)?;
    Ok((*STATIC.get(index).ok_or(QpackError::Index)?, rest))
}

/// What the encoder of a peer may say (§4.3).
///
/// # Errors
/// It fills the table, whose capacity is 0.
pub fn read_encoder(bytes: &[u8]) -> Result<(), Http3Violation> {
    // A capacity of 0 is the only instruction that such a table takes.
    if bytes.iter().all(|&byte| byte == 0x20) { Ok(()) } else { Err(Http3Violation::Encoder) }
}

/// Reads what the decoder of a peer says (§4.4). `is_within` is the state between two calls: whether
/// an integer goes on.
///
/// # Errors
/// It acknowledges what was never inserted.
pub fn read_decoder(bytes: &[u8], is_within: &mut bool) -> Result<(), Http3Violation> {
    for &byte in bytes {
        if *is_within {
            *is_within = byte & 0x80 != 0;
            continue;
        }
        // Cancellations of streams are the only instruction without a table.
        if byte & 0xC0 != 0x40 {
            return Err(Http3Violation::Decoder);
        }
        *is_within = byte & 0x3F == 0x3F;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct Nothing;

    impl Section for Nothing {
        fn take(&mut self, _: &[u8], _: &[u8]) {}
    }

    type Fields = Vec<(Vec<u8>, Vec<u8>)>;

    fn read(block: &[u8]) -> Result<Fields, QpackError> {
        let mut fields = Vec::new();
        SectionDecoder::<Nothing>::default()
            .read_into(block, &mut |_, name, value| fields.push((name.to_vec(), value.to_vec())))?;
        Ok(fields)
    }

    /// RFC 9204, B.1: a literal with the name of the static table.
    #[test]
    fn example_of_the_rfc() {
        let block = [&[0, 0, 0x51, 0x0b][..], b"/index.html"].concat();
        assert_eq!(read(&block).unwrap(), [(b":path".to_vec(), b"/index.html".to_vec())]);
    }

    #[test]
    fn unreadable_sections() {
        for (name, block, want) in [
            ("nothing", &[][..], QpackError::Text(hpack::Error::Cut)),
            ("half a prefix", &[0], QpackError::Text(hpack::Error::Cut)),
            ("insert count", &[2, 0, 0xC0], QpackError::Dynamic),
            ("negative base", &[0, 0x80], QpackError::Base),
            ("indexed, dynamic", &[0, 0, 0x80], QpackError::Dynamic),
            ("indexed behind the base", &[0, 0, 0x10], QpackError::Dynamic),
            ("name, dynamic", &[0, 0, 0x40, 0], QpackError::Dynamic),
            ("name behind the base", &[0, 0, 0x00, 0], QpackError::Dynamic),
            ("index 99", &[0, 0, 0xFF, 36], QpackError::Index),
            ("cut value", &[0, 0, 0x51, 5, b'/'], QpackError::Text(hpack::Error::Cut)),
            ("cut name", &[0, 0, 0x23, b'a'], QpackError::Text(hpack::Error::Cut)),
            ("padding", &[0, 0, 0x51, 0x81, 0], QpackError::Text(hpack::Error::HuffmanPadding)),
        ] {
            assert_eq!(read(block), Err(want), "{name}");
        }
        let large = vec![0xC0 | 17; LIST_BYTES_MAX / 42 + 1];
        let block = [&PREFIX[..], &large].concat();
        assert_eq!(read(&block), Err(QpackError::ListTooLarge));
        assert_eq!(read(&[0, 5, 0xC0 | 17]).unwrap().len(), 1, "any base without a table");
    }

    #[test]
    fn instructions_without_a_table() {
        assert_eq!(read_encoder(&[0x20, 0x20]), Ok(()));
        for instruction in [0x21, 0x3F, 0x80, 0xC0, 0x40, 0x00] {
            assert_eq!(read_encoder(&[instruction]), Err(Http3Violation::Encoder));
        }
        let mut is_within = false;
        for piece in [&[0x44][..], &[0x7F, 0x80], &[0x01, 0x40]] {
            assert_eq!(read_decoder(piece, &mut is_within), Ok(()));
        }
        assert_eq!(read_decoder(&[0x80], &mut is_within), Err(Http3Violation::Decoder));
        assert_eq!(read_decoder(&[0x01], &mut is_within), Err(Http3Violation::Decoder));
    }

    proptest! {
        #[test]
        fn fields_read_back(fields in prop::collection::vec(prop_oneof![
            prop::sample::select(&STATIC[..]).prop_map(|(n, v)| (n.to_owned(), v.to_owned())),
            ("[a-z-]{1,40}", "[ -~]{0,200}"),
            prop::sample::select(&STATIC[..]).prop_map(|(n, _)| (n.to_owned(), "x".to_owned())),
        ], 0..20)) {
            let mut block = PREFIX.to_vec();
            for (name, value) in &fields {
                put_field(&mut block, name.as_bytes(), value.as_bytes());
            }
            let sent: Vec<_> = fields.into_iter()
                .map(|(name, value)| (name.into_bytes(), value.into_bytes())).collect();
            prop_assert_eq!(read(&block).unwrap(), sent);
        }

        #[test]
        fn any_bytes_are_read_or_refused(block in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut decoder = SectionDecoder::<Nothing>::default();
            let first = decoder.read(&block).is_ok();
            prop_assert_eq!(decoder.read(&block).is_ok(), first);
        }
    }
}
