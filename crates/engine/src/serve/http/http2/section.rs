//! The header section of a request, as far as it matters for its response.

use crate::exchange::decimal;
use crate::exchange::http2::fields::{Section, check_name, is_of_connection};

/// What of a request matters for its response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Http2RequestHead {
    /// It asks for the head of the response alone.
    pub(super) head_only: bool,
    /// How long its body is, where it says so.
    pub(super) length: Option<u64>,
    /// The client waits for 100 before it sends the body.
    pub(super) expects_continue: bool,
}

/// What the fields of a section say.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestSection {
    head: Http2RequestHead,
    methods: u32,
    is_connect: bool,
    schemes: u32,
    paths: u32,
    authorities: u32,
    has_regular: bool,
    is_malformed: bool,
}

impl Section for RequestSection {
    fn take(&mut self, name: &[u8], value: &[u8]) {
        let is_fine = match name {
            [b':', ..] => self.take_pseudo(name, value),
            _ => self.take_regular(name, value),
        };
        self.is_malformed |= !is_fine;
    }
}

impl RequestSection {
    /// The request; `None` where it is malformed (RFC 9113 §8.1.1).
    pub(super) fn request(&self) -> Option<Http2RequestHead> {
        let (schemes, paths) = (self.schemes, self.paths);
        let is_request = if self.is_connect {
            (self.methods, schemes, paths, self.authorities) == (1, 0, 0, 1)
        } else {
            (self.methods, schemes, paths) == (1, 1, 1) && self.authorities <= 1
        };
        (is_request && !self.is_malformed).then_some(self.head)
    }

    /// Whether it can be trailers.
    pub(super) fn is_trailers(&self) -> bool {
        self.methods + self.schemes + self.paths + self.authorities == 0 && !self.is_malformed
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
        let is_bad = |byte: &u8| matches!(byte, 0 | b'\r' | b'\n');
        if check_name(name).is_err() || value.iter().any(is_bad) {
            return false;
        }
        match name {
            b"content-length" => {
                let Some(length) = decimal(value) else {
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
            _ => !is_of_connection(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::http2::fields::SectionReader;
    use crate::exchange::http2::hpack::Encoder;

    const GET: [(&str, &str); 4] =
        [(":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "a")];

    fn read(fields: &[(&str, &str)]) -> RequestSection {
        let (mut encoder, mut block) = (Encoder::default(), Vec::new());
        for (name, value) in fields {
            encoder.encode(name.as_bytes(), value.as_bytes(), &mut block);
        }
        let mut sections = SectionReader::<RequestSection>::default();
        sections.read(&block).unwrap()
    }

    #[test]
    fn requests_are_understood() {
        assert_eq!(read(&GET).request(), Some(Http2RequestHead::default()));
        let mut head = GET;
        head[0].1 = "HEAD";
        let more = [("content-length", "7"), ("expect", "100-Continue"), ("te", "trailers")];
        let told = Http2RequestHead { head_only: true, length: Some(7), expects_continue: true };
        assert_eq!(read(&[&head[..], &more].concat()).request(), Some(told));
        let connect = [(":method", "CONNECT"), (":authority", "a:1")];
        assert!(read(&connect).request().is_some());
        assert!(read(&[("x-checksum", "1")]).is_trailers());
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
            &[&GET[..], &[("content-length", "1"), ("content-length", "2")]].concat(),
        ] {
            let section = read(fields);
            assert_eq!(section.request(), None, "{fields:?}");
            assert!(!section.is_trailers(), "{fields:?}");
        }
    }

    #[test]
    fn equal_bytes_mean_the_same_only_while_the_table_is_the_same() {
        let (mut encoder, mut sections) =
            (Encoder::default(), SectionReader::<RequestSection>::default());
        let mut block = |length: &str| {
            let mut block = Vec::new();
            for (name, value) in GET.iter().chain(&[("content-length", length)]) {
                encoder.encode(name.as_bytes(), value.as_bytes(), &mut block);
            }
            sections.read(&block).unwrap().request().unwrap().length
        };
        let lengths = ["7", "7", "7", "8", "7", "8"].map(&mut block);
        assert_eq!(lengths, [7, 7, 7, 8, 7, 8].map(Some));
    }
}
