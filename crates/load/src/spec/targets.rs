//! The targets file: several requests, as vegeta's users write them.

use super::{Body, Endpoint, HttpRequest, ParseError, Scheme, Url, parse_header};
use crate::quantity::quoted;
use std::collections::HashMap;

/// The content of a targets file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Targets {
    /// The endpoint that all requests share.
    pub endpoint: Endpoint,
    /// The scheme that all requests share.
    pub scheme: Scheme,
    /// The requests in the order of the file, at least one.
    pub requests: Vec<HttpRequest>,
}

/// Parses a targets file. A target is a line `METHOD URL`, or a URL alone, which means GET.
/// `HTTP/1.1` may follow, as in a request, and `weight=N`: its share where requests are picked at random, 1 unless given. Then come
/// lines `Name: value` and at most one line `@FILE`, whose content `read_file` gives and which
/// becomes the body. An empty line ends a target, and so does the next target. A line that begins
/// with `#` is a comment.
///
/// ```text
/// GET http://127.0.0.1:8080/ weight=9
///
/// POST http://127.0.0.1:8080/orders
/// Content-Type: application/json
/// @order.json
/// ```
///
/// # Errors
/// In one line that begins with the number of the line it is about.
pub fn parse_targets(
    text: &str,
    read_file: &mut dyn FnMut(&str) -> Result<Vec<u8>, String>,
) -> Result<Targets, ParseError> {
    let mut targets: Vec<(Url, usize, HttpRequest)> = Vec::new();
    // A file that several targets name is held once.
    let mut files: HashMap<String, Body> = HashMap::new();
    let read_file = &mut |file: &str| match files.get(file) {
        Some(body) => Ok(body.clone()),
        None => read_file(file).map(|bytes| {
            let body = Body::from(bytes);
            files.insert(file.to_owned(), body.clone());
            body
        }),
    };
    let mut block: Option<TargetBlock> = None;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (at, line) in text.lines().enumerate() {
        let (number, line) = (at + 1, line.trim());
        if line.starts_with('#') {
            continue;
        }
        let ends_block = line.is_empty() || begins_target(line);
        if let Some(ended) = block.take_if(|_| ends_block) {
            targets.push(ended.finish()?);
        }
        if line.is_empty() {
            continue;
        }
        match &mut block {
            Some(block) => block.line(number, line, read_file)?,
            None => block = Some(TargetBlock::begin(number, line)?),
        }
    }
    if let Some(ended) = block {
        targets.push(ended.finish()?);
    }
    share_endpoint(targets)
}

/// One target, as far as it has been read.
struct TargetBlock {
    number: usize,
    method: String,
    url: Url,
    weight: u32,
    headers: Vec<(String, String)>,
    body: Option<Body>,
}

impl TargetBlock {
    fn begin(number: usize, line: &str) -> Result<TargetBlock, ParseError> {
        if !begins_target(line) {
            let what = if line.contains([':', '@']) {
                "belongs to no target: write 'METHOD URL' first"
            } else {
                "is no target: write 'METHOD URL', or a URL alone"
            };
            return at(number, &format!("{} {what}", quoted(line)));
        }
        let mut words = line.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        let (method, url) =
            if is_url(first) { ("GET", first) } else { (first, words.next().unwrap_or_default()) };
        let mut words = words.skip_while(|word| is_version(word));
        let weight = match words.next() {
            Some(word) => parse_weight(word).or_else(|what| at(number, &what))?,
            None => 1,
        };
        if let Some(word) = words.next() {
            return at(
                number,
                &format!("{} after the target: put it on its own line", quoted(word)),
            );
        }
        let url = Url::parse(url).or_else(|e| at(number, &e.0))?;
        let method = method.to_owned();
        Ok(TargetBlock { number, method, url, weight, headers: Vec::new(), body: None })
    }

    fn line(
        &mut self,
        number: usize,
        line: &str,
        read_file: &mut dyn FnMut(&str) -> Result<Body, String>,
    ) -> Result<(), ParseError> {
        let Some(file) = line.strip_prefix('@') else {
            self.headers.push(parse_header(line).or_else(|e| at(number, &e.0))?);
            return Ok(());
        };
        if self.body.is_some() {
            return at(number, "a second body: a target has one '@FILE'");
        }
        let file = file.trim();
        if file.is_empty() {
            return at(number, "no file after '@': write '@FILE'");
        }
        let cannot = |why| at(number, &format!("cannot read {}: {why}", quoted(file)));
        self.body = Some(read_file(file).or_else(cannot)?);
        Ok(())
    }

    fn finish(self) -> Result<(Url, usize, HttpRequest), ParseError> {
        let body = self.body.unwrap_or_default();
        let request = HttpRequest::new(&self.method, &self.url, self.headers, body, self.weight);
        let request = request.or_else(|e| at(self.number, &e.0))?;
        Ok((self.url, self.number, request))
    }
}

/// Whether a line that is no comment begins a target. Its first word is a URL. Or another word
/// follows, and the first is neither a header's name (a method holds no `:`) nor a file's.
fn begins_target(line: &str) -> bool {
    let first = line.split_ascii_whitespace().next().unwrap_or_default();
    is_url(first) || (!first.contains(':') && !first.starts_with('@') && line.len() > first.len())
}

/// Whether a word is a URL, which no method, header name or `@FILE` can be taken for.
fn is_url(word: &str) -> bool {
    let has_scheme = ["http://", "https://"]
        .iter()
        .any(|scheme| word.get(..scheme.len()).is_some_and(|s| s.eq_ignore_ascii_case(scheme)));
    has_scheme || (word.contains('/') && !word.contains(':') && !word.starts_with('@'))
}

/// Whether a word is what ends the request line of HTTP.
fn is_version(word: &str) -> bool {
    let number = word.strip_prefix("HTTP/");
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
}

fn parse_weight(word: &str) -> Result<u32, String> {
    let number = word.strip_prefix("weight=");
    let number = number.ok_or_else(|| format!("{} after the URL: write weight=N", quoted(word)))?;
    let weight = number.parse().ok().filter(|&weight| weight > 0);
    weight.ok_or_else(|| {
        format!("{}: a weight is a whole number from 1 to {}", quoted(word), u32::MAX)
    })
}

fn share_endpoint(targets: Vec<(Url, usize, HttpRequest)>) -> Result<Targets, ParseError> {
    let Some((first, first_number, _)) = targets.first() else {
        return Err(ParseError(
            "no target in the file: write lines such as 'GET http://127.0.0.1:8080/'".to_owned(),
        ));
    };
    let (endpoint, scheme) = (first.endpoint().clone(), first.scheme());
    for (url, number, _) in &targets {
        if url.scheme() != scheme {
            return at(
                *number,
                &format!(
                    "all targets share one scheme, and line {first_number} has another: use one \
                     file for each"
                ),
            );
        }
        if *url.endpoint() != endpoint {
            let other = url.endpoint();
            return at(
                *number,
                &format!(
                    "all targets share one endpoint, but this is {other} and line {first_number} \
                     has {endpoint}: use one file for each"
                ),
            );
        }
    }
    let requests = targets.into_iter().map(|(_, _, request)| request).collect();
    Ok(Targets { endpoint, scheme, requests })
}

fn at<T>(number: usize, what: &str) -> Result<T, ParseError> {
    Err(ParseError(format!("line {number}: {what}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Targets, String> {
        let mut read = |name: &str| match name {
            "missing" => Err("no such file".to_owned()),
            _ => Ok(format!("<{name}>").into_bytes()),
        };
        parse_targets(text, &mut read).map_err(|e| e.0)
    }

    /// Each request in one line: method, path, weight, headers, body.
    fn told(text: &str) -> Vec<String> {
        let requests = parse(text).unwrap().requests;
        let told = requests.iter().map(|r| {
            let headers = r.headers.iter().map(|(n, v)| format!(" {n}={v}")).collect::<String>();
            let body = String::from_utf8_lossy(&r.body);
            format!("{} {} {}{headers} {body}", r.method, r.path, r.weight)
        });
        told.collect()
    }

    #[test]
    fn accepted() {
        let rows: [(&str, &str, &[&str]); 17] = [
            ("one line", "GET http://h/a", &["GET /a 1 "]),
            ("a line of a request", "GET http://h/a HTTP/1.1\nA: b", &["GET /a 1 A=b "]),
            ("of any version", "GET h/a HTTP/2\nPOST h/b HTTP/1.0", &["GET /a 1 ", "POST /b 1 "]),
            ("a URL and a version", "http://h/a HTTP/1.1", &["GET /a 1 "]),
            ("a version and a weight", "GET h/a HTTP/1.1 weight=9", &["GET /a 9 "]),
            ("a path like one", "GET h/HTTP/1.1 HTTP/1.1", &["GET /HTTP/1.1 1 "]),
            (
                "URLs alone",
                "http://h/a\nHTTP://h/b weight=2\nh/c\n",
                &["GET /a 1 ", "GET /b 2 ", "GET /c 1 "],
            ),
            (
                "a URL alone with headers",
                "http://h/a\nA: b\n@f\nPOST h/b",
                &["GET /a 1 A=b <f>", "POST /b 1 "],
            ),
            (
                "a header that holds a URL",
                "http://h/a\nReferer: http://h/b",
                &["GET /a 1 Referer=http://h/b "],
            ),
            ("one under the other", "GET h/a\nHEAD h/b\n", &["GET /a 1 ", "HEAD /b 1 "]),
            ("apart", "\n\nGET h/a\n\n\nGET h/b\n\n", &["GET /a 1 ", "GET /b 1 "]),
            ("headers", "GET h/a\nA: b\nC:d\n\nGET h/b", &["GET /a 1 A=b C=d ", "GET /b 1 "]),
            (
                "a body",
                "POST h/a\nA: b\n@f.json\nGET h/b",
                &["POST /a 1 A=b <f.json>", "GET /b 1 "],
            ),
            ("a body before a header", "POST h/a\n@ my file\nA: b", &["POST /a 1 A=b <my file>"]),
            ("a weight", "GET h/a weight=9\nGET h/b", &["GET /a 9 ", "GET /b 1 "]),
            ("comments anywhere", "# x\nGET h/a\n# y: z\nA: b\n #", &["GET /a 1 A=b "]),
            ("lines of Windows and blanks", "\u{feff}  GET\th/a \r\nA: b\r\n", &["GET /a 1 A=b "]),
        ];
        for (name, text, want) in rows {
            assert_eq!(told(text), want, "{name}");
        }
        let targets = parse("GET [::1]:81/a\nGET http://[::1]:81/b").unwrap();
        assert_eq!(targets.endpoint, Endpoint::Tcp { host: "::1".to_owned(), port: 81 });
    }

    #[test]
    fn a_file_that_several_targets_name_is_held_once() {
        let mut read = |_: &str| Ok(vec![b'x'; 100]);
        let text = "POST h/a\n@f\nPOST h/b\n@f\nPOST h/c\n@g";
        let requests = parse_targets(text, &mut read).unwrap().requests;
        assert_eq!(requests[0].body.as_ptr(), requests[1].body.as_ptr());
        assert_ne!(requests[0].body.as_ptr(), requests[2].body.as_ptr());
    }

    #[test]
    fn refused() {
        let rows = [
            ("nothing", "", "no target in the file"),
            ("comments only", "# GET h/", "no target in the file"),
            (
                "a method alone",
                "GET h/\n\nGET",
                "line 3: 'GET' is no target: write 'METHOD URL', or a URL alone",
            ),
            ("a header first", "A: b\nGET h/", "line 1: 'A: b' belongs to no target"),
            (
                "a header after an empty line",
                "GET h/\n\nA: b",
                "line 3: 'A: b' belongs to no target",
            ),
            ("a body first", "@f x", "line 1: '@f x' belongs to no target"),
            ("two bodies", "POST h/\n@a\n@b", "line 3: a second body"),
            ("a body without a name", "POST h/\n@", "line 2: no file after '@'"),
            (
                "a file not there",
                "POST h/\n@missing",
                "line 2: cannot read 'missing': no such file",
            ),
            ("a bad URL", "GET h/\nGET ftp://h/", "line 2: 'ftp://h/' has the scheme 'ftp'"),
            ("a bad method", "GET h/\n\n(x) h/\nA: b", "line 3: '(x)' is no method"),
            ("a bad header", "GET h/\nA b:", "line 2: 'b:' has the port ''"),
            ("a bad name", "GET h/\nA/B: b", "line 2: 'A/B' is no header name"),
            ("a weight of 0", "GET h/ weight=0", "line 1: 'weight=0': a weight is"),
            ("a weight below 0", "GET h/ weight=-1", "line 1: 'weight=-1': a weight is"),
            ("another word", "GET h/ fast", "line 1: 'fast' after the URL: write weight=N"),
            ("one word more", "GET h/ weight=1 x", "line 1: 'x' after the target"),
            (
                "two ports",
                "GET h/\n\nGET h:81/",
                "line 3: all targets share one endpoint, but this \
             is h:81 and line 1 has h:80: use one file for each",
            ),
            ("a wrong length", "POST h/\nContent-Length: 9\n@f", "line 1: Content-Length '9'"),
            ("no version", "GET h/ HTTP", "line 1: 'HTTP' after the URL: write weight=N"),
            ("a version before", "GET HTTP/1.1 h/", "line 1: "),
            ("a weight before", "GET h/ weight=2 HTTP/1.1", "line 1: 'HTTP/1.1' after the target"),
        ];
        for (name, text, want) in rows {
            let error = parse(text).expect_err(name);
            assert!(error.contains(want), "{name}: {error}");
            assert!(!error.contains('\n'), "{name}: one line");
        }
    }
}
