//! What is read of a response beside its end: the same however it is cut, and with a warm cache.

use super::*;

#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    fields: Vec<(String, String)>,
    body: String,
}

impl ResponseSink for Seen {
    const READS: bool = true;

    fn field(&mut self, name: &[u8], value: &[u8]) {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        self.fields.push((text(name), text(value)));
    }

    fn body(&mut self, bytes: &[u8]) {
        self.body.push_str(std::str::from_utf8(bytes).unwrap());
    }
}

fn seen(pieces: &[&[u8]], cache: &mut HeadCache) -> Seen {
    let mut parser = ResponseParser::default();
    parser.begin(false);
    let mut seen = Seen::default();
    for piece in pieces {
        let progress = parser.feed_into(piece, cache, &mut seen);
        assert!(!matches!(progress, Progress::Malformed(_)), "{progress:?}");
        if let Progress::Done { .. } = progress {
            break;
        }
    }
    seen
}

#[test]
fn fields_and_body_of_the_final_response_however_it_is_cut() {
    let rows = [
        (
            "a length, and bytes beyond it",
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX-A:  b c \r\n\r\nbody!",
            &[("Content-Length", "4"), ("X-A", "b c")][..],
            "body",
        ),
        (
            "chunks, an extension and a trailer",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
             3;x=y\r\nbod\r\n1\r\ny\r\n0\r\nT: u\r\n\r\n",
            &[("Transfer-Encoding", "chunked")],
            "body",
        ),
        ("until the end of the stream", "HTTP/1.1 200 OK\r\n\r\nbody", &[], "body"),
        (
            "what comes before says nothing",
            "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n\
             HTTP/1.1 200 OK\nA: 1\nContent-Length: 0\n\n",
            &[("A", "1"), ("Content-Length", "0")],
            "",
        ),
        (
            "a folded line without its fold",
            "HTTP/1.1 200 OK\r\nA: b\r\n c: d\r\nContent-Length: 1\r\n\r\nx",
            &[("A", "b"), ("Content-Length", "1")],
            "x",
        ),
    ];
    for (name, bytes, fields, body) in rows {
        let fields = fields.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
        let want = Seen { fields: fields.collect(), body: body.to_owned() };
        let bytes = bytes.as_bytes();
        let mut warm = HeadCache::default();
        for cut in 0..=bytes.len() {
            let (first, second) = bytes.split_at(cut);
            let mut cold = HeadCache::default();
            assert_eq!(seen(&[first, second], &mut cold), want, "{name}: {cut}");
            assert_eq!(seen(&[first, second], &mut warm), want, "{name}: {cut}, warm");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(seen(&single, &mut HeadCache::default()), want, "{name}");
    }
}
