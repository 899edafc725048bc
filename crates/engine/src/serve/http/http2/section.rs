//! What a header section of a request says, of what matters here.

use super::super::asked::Asked;
use crate::exchange::http2::hpack::{Decoder, Error};

/// The most that the fields of a section may be, each with 32 bytes more (RFC 9113 10.5.1).
const LIST_BYTES_MAX: usize = 64 << 10;

/// A longer block is not worth remembering.
const REMEMBERED_BYTES_MAX: usize = 1024;

/// What a section says, as a request and as trailers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Section {
    /// The request; `None` where it is malformed as one (RFC 9113 8.1.1).
    pub(super) request: Option<Head>,
    /// It can be trailers.
    pub(super) is_trailers: bool,
}

/// What of a request matters for its response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// It asks for the head of the response alone.
    pub(super) head_only: bool,
    /// How long its body is, where it says so.
    pub(super) length: Option<u64>,
    /// The client waits for 100 before it sends the body.
    pub(super) expects_continue: bool,
}

/// Reads all header blocks of a connection. Load generators send the same block again and again:
/// where the table is as it was for the last one, equal bytes say the same.
#[derive(Debug, Default)]
pub(super) struct Sections {
    decoder: Decoder,
    last: Vec<u8>,
    /// How often the table had changed by then, and what the last block said.
    said: Option<(u32, Section)>,
    /// An application wants all of each request: every block is read anew.
    is_keeping: bool,
    /// The last one.
    asked: Option<Box<Asked>>,
}

impl Sections {
    /// Those of a connection whose requests are kept, or are not.
    pub(super) fn new(is_keeping: bool) -> Sections {
        Sections {
            is_keeping,
            ..Sections::default()
        }
    }

    /// All of the last section, where that is kept.
    pub(super) fn take_asked(&mut self) -> Option<Box<Asked>> {
        self.asked.take()
    }

    /// What a whole block says.
    ///
    /// # Errors
    /// Those of HPACK, after which the connection cannot go on.
    #[inline]
    pub(super) fn read(&mut self, block: &[u8]) -> Result<Section, Error> {
        match self.said {
            Some((changes, section)) if changes == self.decoder.changes() && self.last == block => {
                Ok(section)
            }
            _ => self.decode(block),
        }
    }

    fn decode(&mut self, block: &[u8]) -> Result<Section, Error> {
        let before = self.decoder.changes();
        let mut fields = Fields::default();
        let mut asked = self.is_keeping.then(Box::<Asked>::default);
        let mut each = |name: &[u8], value: &[u8]| {
            fields.take(name, value);
            if let (Some(asked), Ok(name)) = (&mut asked, std::str::from_utf8(name)) {
                asked.take(name, value);
            }
        };
        self.decoder.decode(block, LIST_BYTES_MAX, &mut each)?;
        let section = fields.section();
        self.asked = asked;
        if !self.is_keeping
            && self.decoder.changes() == before
            && block.len() <= REMEMBERED_BYTES_MAX
        {
            self.last.clear();
            self.last.extend_from_slice(block);
            self.said = Some((before, section));
        }
        Ok(section)
    }
}

/// What the fields said so far.
#[derive(Debug, Default)]
struct Fields {
    head: Head,
    methods: u32,
    is_connect: bool,
    schemes: u32,
    paths: u32,
    authorities: u32,
    has_regular: bool,
    is_malformed: bool,
}

impl Fields {
    fn take(&mut self, name: &[u8], value: &[u8]) {
        let is_fine = match name {
            [b':', ..] => self.take_pseudo(name, value),
            _ => self.take_regular(name, value),
        };
        self.is_malformed |= !is_fine;
    }

    /// RFC 9113 8.3.1.
    fn take_pseudo(&mut self, name: &[u8], value: &[u8]) -> bool {
        match name {
            b":method" => {
                self.methods += 1;
                self.head.head_only = value == b"HEAD";
                self.is_connect = value == b"CONNECT";
            }
            b":scheme" => self.schemes += 1,
            b":path" => {
                self.paths += 1;
                return !value.is_empty() && !self.has_regular;
            }
            b":authority" => self.authorities += 1,
            _ => return false,
        }
        !self.has_regular
    }

    /// RFC 9113 8.2.
    fn take_regular(&mut self, name: &[u8], value: &[u8]) -> bool {
        self.has_regular = true;
        let is_bad = |byte: &u8| matches!(byte, 0..=b' ' | b'A'..=b'Z' | b':' | 0x7f..);
        if name.is_empty() || name.iter().any(is_bad) {
            return false;
        }
        if value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
            return false;
        }
        match name {
            b"content-length" => {
                let is_decimal = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
                let text = std::str::from_utf8(value).ok().filter(|_| is_decimal);
                let Some(length) = text.and_then(|text| text.parse().ok()) else {
                    return false;
                };
                let is_same = self.head.length.is_none_or(|other| other == length);
                self.head.length = Some(length);
                is_same
            }
            b"expect" => {
                self.head.expects_continue = value.eq_ignore_ascii_case(b"100-continue");
                true
            }
            b"te" => value.eq_ignore_ascii_case(b"trailers"),
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
            | b"upgrade" => false,
            _ => true,
        }
    }

    fn section(&self) -> Section {
        let (schemes, paths) = (self.schemes, self.paths);
        let is_request = match self.is_connect {
            true => (self.methods, schemes, paths, self.authorities) == (1, 0, 0, 1),
            false => (self.methods, schemes, paths) == (1, 1, 1) && self.authorities <= 1,
        };
        let pseudo = self.methods + schemes + paths + self.authorities;
        Section {
            request: (is_request && !self.is_malformed).then_some(self.head),
            is_trailers: pseudo == 0 && !self.is_malformed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::http2::hpack::Encoder;

    const GET: [(&str, &str); 4] = [
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/"),
        (":authority", "a"),
    ];

    fn read(fields: &[(&str, &str)]) -> Section {
        let (mut encoder, mut block) = (Encoder::default(), Vec::new());
        for (name, value) in fields {
            encoder.encode(name.as_bytes(), value.as_bytes(), &mut block);
        }
        let mut sections = Sections::default();
        sections.read(&block).unwrap()
    }

    #[test]
    fn requests_are_understood() {
        assert_eq!(read(&GET).request, Some(Head::default()));
        let mut head = GET;
        head[0].1 = "HEAD";
        let more = [
            ("content-length", "7"),
            ("expect", "100-Continue"),
            ("te", "trailers"),
        ];
        let told = Head {
            head_only: true,
            length: Some(7),
            expects_continue: true,
        };
        assert_eq!(read(&[&head[..], &more].concat()).request, Some(told));
        let connect = [(":method", "CONNECT"), (":authority", "a:1")];
        assert!(read(&connect).request.is_some());
        assert!(read(&[("x-checksum", "1")]).is_trailers);
    }

    #[test]
    fn malformed_ones_are_told() {
        for fields in [
            &GET[1..],
            &GET[..2],
            &[&GET[..], &[(":path", "/")]].concat(),
            &[&GET[..], &[(":status", "200")]].concat(),
            &[&[("x", "y")], &GET[..]].concat(),
            &[&GET[..], &[("Host", "a")]].concat(),
            &[&GET[..], &[("connection", "close")]].concat(),
            &[&GET[..], &[("te", "gzip")]].concat(),
            &[&GET[..], &[("x", "a\nb")]].concat(),
            &[&GET[..], &[("content-length", "+1")]].concat(),
            &[
                &GET[..],
                &[("content-length", "1"), ("content-length", "2")],
            ]
            .concat(),
        ] {
            let section = read(fields);
            assert_eq!(section.request, None, "{fields:?}");
            assert!(!section.is_trailers, "{fields:?}");
        }
    }

    #[test]
    fn equal_bytes_mean_the_same_only_while_the_table_is_the_same() {
        let (mut encoder, mut sections) = (Encoder::default(), Sections::default());
        let mut block = |length: &str| {
            let mut block = Vec::new();
            for (name, value) in GET.iter().chain(&[("content-length", length)]) {
                encoder.encode(name.as_bytes(), value.as_bytes(), &mut block);
            }
            sections.read(&block).unwrap().request.unwrap().length
        };
        let lengths = ["7", "7", "7", "8", "7", "8"].map(&mut block);
        assert_eq!(lengths, [7, 7, 7, 8, 7, 8].map(Some));
    }
}
