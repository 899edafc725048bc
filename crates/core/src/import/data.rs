//! Bodies as curl puts them together: data in pieces, forms in parts.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};

/// How a piece of data is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataKind {
    /// `--data`: text, or `@FILE` without its line ends.
    Data,
    /// `--data-raw`: text, whatever it begins with.
    Raw,
    /// `--data-binary`: text, or `@FILE` as it is.
    Binary,
    /// `--data-urlencode`: `TEXT`, `=TEXT`, `NAME=TEXT`, `@FILE` or `NAME@FILE`, percent-encoded.
    Urlencode,
    /// `--json`: text, or `@FILE` as it is; pieces are put together without anything between.
    Json,
}

/// One piece of data, as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    /// How.
    pub kind: DataKind,
    /// What.
    pub text: String,
}

/// Reads a file that data names, or says in one line why that cannot be.
pub type ReadFile<'a> = &'a mut dyn FnMut(&str) -> Result<Vec<u8>, String>;

/// All pieces in their order, `&` between them.
///
/// # Errors
/// One line: a file that cannot be read.
pub fn join(pieces: &[Data], read: ReadFile) -> Result<Vec<u8>, String> {
    let mut all = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        if at > 0 && piece.kind != DataKind::Json {
            all.push(b'&');
        }
        all.append(&mut content(piece, read)?);
    }
    Ok(all)
}

fn content(piece: &Data, read: ReadFile) -> Result<Vec<u8>, String> {
    let text = piece.text.as_str();
    let file = text.strip_prefix('@');
    match (piece.kind, file) {
        (DataKind::Urlencode, _) => encoded(text, read).map(String::into_bytes),
        (DataKind::Raw, _) | (_, None) => Ok(text.as_bytes().to_vec()),
        (DataKind::Data, Some(file)) => {
            let mut bytes = read(file)?;
            bytes.retain(|b| !matches!(b, b'\r' | b'\n' | 0));
            Ok(bytes)
        }
        (_, Some(file)) => read(file),
    }
}

fn encoded(text: &str, read: ReadFile) -> Result<String, String> {
    let Some(at) = text.find(['=', '@']) else {
        return Ok(percent_encoded(text.as_bytes()));
    };
    let (name, rest) = (&text[..at], &text[at + 1..]);
    let value = match text.as_bytes()[at] {
        b'@' => percent_encoded(&read(rest)?),
        _ => percent_encoded(rest.as_bytes()),
    };
    Ok(match name {
        "" => value,
        name => format!("{name}={value}"),
    })
}

/// All but unreserved characters as `%XX` (RFC 3986 §2.3).
pub fn percent_encoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'-' | b'.' | b'_' | b'~' => text.push(byte as char),
            byte if byte.is_ascii_alphanumeric() => text.push(byte as char),
            // Writing to a string cannot fail.
            byte => drop(write!(text, "%{byte:02X}")),
        }
    }
    text
}

/// A body of `multipart/form-data` (RFC 7578).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multipart {
    /// The content type, with the boundary.
    pub content_type: String,
    /// The body.
    pub body: Vec<u8>,
}

/// The body that `--form` options make: each `NAME=TEXT`, `NAME=@FILE` or `NAME=<FILE`, which
/// `;type=TYPE` and `;filename=NAME` may follow. The same parts have the same boundary, which is in
/// none of them.
///
/// # Errors
/// One line: no `=`, a file that cannot be read, a name that a header cannot hold.
pub fn multipart(parts: &[String], read: ReadFile) -> Result<Multipart, String> {
    let parts: Vec<(String, Vec<u8>)> = parts
        .iter()
        .map(|part| form_part(part, read))
        .collect::<Result<_, _>>()?;
    let boundary = boundary(&parts);
    let mut body = Vec::new();
    for (head, content) in &parts {
        body.extend_from_slice(format!("--{boundary}\r\n{head}\r\n").as_bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok(Multipart {
        content_type: format!("multipart/form-data; boundary={boundary}"),
        body,
    })
}

/// Its head and its content.
fn form_part(part: &str, read: ReadFile) -> Result<(String, Vec<u8>), String> {
    let Some((name, value)) = part.split_once('=') else {
        return Err(format!("'{part}' is no part of a form: write NAME=VALUE"));
    };
    let (mut content_type, mut filename) = (None, None);
    let mut value = value;
    while let Some((before, parameter)) = value.rsplit_once(';') {
        let parameter = parameter.trim();
        if let Some(given) = parameter.strip_prefix("type=") {
            content_type = Some(given.to_owned());
        } else if let Some(given) = parameter.strip_prefix("filename=") {
            filename = Some(given.trim_matches('"').to_owned());
        } else {
            break;
        }
        value = before;
    }
    let content = match (value.strip_prefix('@'), value.strip_prefix('<')) {
        (Some(file), _) => {
            let last = file.rsplit('/').next().unwrap_or(file);
            filename.get_or_insert_with(|| last.to_owned());
            content_type.get_or_insert_with(|| type_of(file).to_owned());
            read(file)?
        }
        (None, Some(file)) => read(file)?,
        (None, None) => value.as_bytes().to_vec(),
    };
    let mut head = format!(
        "Content-Disposition: form-data; name=\"{}\"",
        quotable(name)
    );
    if let Some(filename) = &filename {
        let _ = write!(head, "; filename=\"{}\"", quotable(filename));
    }
    head.push_str("\r\n");
    if let Some(content_type) = &content_type {
        let _ = write!(head, "Content-Type: {content_type}\r\n");
    }
    let lines = head.matches("\r\n").count();
    if head.matches(['\r', '\n']).count() != 2 * lines || lines > 2 {
        return Err("a name, a type or a file's name holds a line end".to_owned());
    }
    Ok((head, content))
}

/// As browsers write names in quotes.
fn quotable(name: &str) -> String {
    name.replace('"', "%22")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn type_of(file: &str) -> &'static str {
    let ending = file.rsplit('.').next().unwrap_or_default();
    match ending.to_ascii_lowercase().as_str() {
        "gif" => "image/gif",
        "jpg" | "jpeg" => "image/jpeg",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "txt" => "text/plain",
        "htm" | "html" => "text/html",
        "pdf" => "application/pdf",
        "xml" => "application/xml",
        _ => "application/octet-stream",
    }
}

/// Words that are in none of the parts.
fn boundary(parts: &[(String, Vec<u8>)]) -> String {
    let mut attempt: u64 = 0;
    loop {
        let mut hasher = DefaultHasher::new();
        (attempt, parts).hash(&mut hasher);
        let boundary = format!("----knee{:016x}", hasher.finish());
        let is_in = |part: &[u8]| {
            part.windows(boundary.len())
                .any(|w| w == boundary.as_bytes())
        };
        let mut taken = parts
            .iter()
            .map(|(head, body)| is_in(head.as_bytes()) || is_in(body));
        if !taken.any(|taken| taken) {
            return boundary;
        }
        attempt += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> Result<Vec<u8>, String> {
        match name {
            "f" | "dir/f.png" => Ok(b"a b\r\nc\n".to_vec()),
            other => Err(format!("{other}: is missing")),
        }
    }

    fn joined(pieces: &[(DataKind, &str)]) -> Result<String, String> {
        let piece = |&(kind, text): &(DataKind, &str)| Data {
            kind,
            text: text.to_owned(),
        };
        let pieces: Vec<Data> = pieces.iter().map(piece).collect();
        join(&pieces, &mut file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    #[test]
    fn data_is_joined_as_by_curl() {
        use DataKind::{Binary, Json, Raw, Urlencode};
        for (pieces, expected) in [
            (&[][..], ""),
            (&[(DataKind::Data, "a=1"), (Raw, "@b")], "a=1&@b"),
            (&[(DataKind::Data, "@f"), (Binary, "@f")], "a bc&a b\r\nc\n"),
            (&[(Json, "{\"a\":1"), (Json, "}")], "{\"a\":1}"),
            (&[(Urlencode, "a b&ü")], "a%20b%26%C3%BC"),
            (
                &[(Urlencode, "=a=b"), (Urlencode, "n=a b")],
                "a%3Db&n=a%20b",
            ),
            (
                &[(Urlencode, "n@f"), (Urlencode, "@f")],
                "n=a%20b%0D%0Ac%0A&a%20b%0D%0Ac%0A",
            ),
        ] {
            assert_eq!(joined(pieces).as_deref(), Ok(expected), "{pieces:?}");
        }
        for kind in [DataKind::Data, Binary, Urlencode, Json] {
            assert_eq!(joined(&[(kind, "@g")]), Err("g: is missing".to_owned()));
        }
    }

    #[test]
    fn a_form_has_a_part_for_each() {
        let parts = [
            "a=1",
            "b=@dir/f.png",
            "c=<f;type=text/csv",
            "d=x;filename=\"y\"",
        ];
        let form = multipart(&parts.map(str::to_owned), &mut file).unwrap();
        let boundary = form.content_type.split_once("boundary=").unwrap().1;
        let file = "a b\r\nc\n";
        let expected = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n\
             --{boundary}\r\nContent-Disposition: form-data; name=\"b\"; filename=\"f.png\"\r\n\
             Content-Type: image/png\r\n\r\n{file}\r\n\
             --{boundary}\r\nContent-Disposition: form-data; name=\"c\"\r\n\
             Content-Type: text/csv\r\n\r\n{file}\r\n\
             --{boundary}\r\nContent-Disposition: form-data; name=\"d\"; filename=\"y\"\r\n\r\n\
             x\r\n--{boundary}--\r\n"
        );
        assert_eq!(String::from_utf8_lossy(&form.body), expected);
    }

    #[test]
    fn parts_that_make_no_form_are_refused() {
        for (part, wrong) in [
            ("a", "'a' is no part of a form: write NAME=VALUE"),
            ("a=@g", "g: is missing"),
            (
                "a=x;type=a\nb",
                "a name, a type or a file's name holds a line end",
            ),
        ] {
            let refused = multipart(&[part.to_owned()], &mut file);
            assert_eq!(refused, Err(wrong.to_owned()));
        }
        let named = multipart(&["a\"\n=1".to_owned()], &mut file).unwrap();
        assert!(String::from_utf8_lossy(&named.body).contains("name=\"a%22%0A\"\r\n"));
    }

    #[test]
    fn a_boundary_is_in_no_part() {
        let form = |part: &str| multipart(&[part.to_owned()], &mut file).unwrap();
        let first = form("a=1");
        assert_eq!(first, form("a=1"));
        let parts = [("head".to_owned(), b"body".to_vec())];
        let taken = boundary(&parts);
        assert!(taken.len() <= 70, "RFC 2046");
        assert!(!form(&format!("a={taken}")).content_type.contains(&taken));
    }
}
