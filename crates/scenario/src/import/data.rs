//! Bodies as curl puts them together: data in pieces, forms in parts.

use crate::body::form_name;
use knee_load::percent;
use memchr::memmem;
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
pub struct CurlData {
    /// How.
    pub kind: DataKind,
    /// What.
    pub text: String,
}

/// Characters that stand for bytes of a shell's word that are no text: this one and a byte. They are
/// of no text, as they are for private use.
const BYTES: u32 = 0x10_ff00;

/// The character that stands for a byte that is no text.
pub(super) fn char_of_byte(byte: u8) -> char {
    char::from_u32(BYTES + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Whether a word has bytes that are no text.
pub(super) fn has_bytes(word: &str) -> bool {
    word.chars().any(|c| u32::from(c) >= BYTES)
}

/// The bytes of a word.
pub(super) fn bytes_of(word: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(word.len());
    for c in word.chars() {
        match u32::from(c).checked_sub(BYTES) {
            Some(byte) => bytes.push(byte as u8),
            None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

/// Reads a file that data names, or says in one line why that cannot be.
pub type ReadFile<'a> = &'a mut dyn FnMut(&str) -> Result<Vec<u8>, String>;

/// All pieces in their order, `&` between them.
///
/// # Errors
/// One line: a file that cannot be read.
pub fn join(pieces: &[CurlData], read: ReadFile) -> Result<Vec<u8>, String> {
    let mut all = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        if at > 0 && piece.kind != DataKind::Json {
            all.push(b'&');
        }
        all.append(&mut content(piece, read)?);
    }
    Ok(all)
}

fn content(piece: &CurlData, read: ReadFile) -> Result<Vec<u8>, String> {
    let text = piece.text.as_str();
    let file = text.strip_prefix('@');
    match (piece.kind, file) {
        (DataKind::Urlencode, _) => url_encoded(text, read).map(String::into_bytes),
        (DataKind::Raw, _) | (_, None) => Ok(bytes_of(text)),
        (DataKind::Data, Some(file)) => {
            let mut bytes = read(file)?;
            bytes.retain(|b| !matches!(b, b'\r' | b'\n' | 0));
            Ok(bytes)
        }
        (_, Some(file)) => read(file),
    }
}

/// Data of `--data-urlencode`: percent-encoded but for a name before `=` or `@`.
///
/// # Errors
/// One line: a file that cannot be read.
pub(super) fn url_encoded(text: &str, read: ReadFile) -> Result<String, String> {
    let encode = |bytes: &[u8]| percent::component(bytes).replace("%20", "+");
    let Some(at) = text.find(['=', '@']) else {
        return Ok(encode(&bytes_of(text)));
    };
    let (name, rest) = (&text[..at], &text[at + 1..]);
    let value = match text.as_bytes()[at] {
        b'@' => encode(&read(rest)?),
        _ => encode(&bytes_of(rest)),
    };
    Ok(match name {
        "" => value,
        name => format!("{name}={value}"),
    })
}

/// A body of `multipart/form-data` (RFC 7578).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multipart {
    /// The content type, with the boundary.
    pub content_type: String,
    /// The body.
    pub body: Vec<u8>,
}

/// The body that `--form` options make: each `NAME=TEXT`, `NAME=@FILE` or `NAME=<FILE`.
/// `;type=TYPE` and `;filename=NAME` may follow. Texts and names of files may be in double quotes.
/// The same parts have the same boundary, which is in none of them.
///
/// # Errors
/// One line: no `=`, a file that cannot be read, a name that a header cannot hold, a parameter that
/// is not supported.
pub fn multipart(parts: &[String], read: ReadFile) -> Result<Multipart, String> {
    let mut read_part = |part: &String| FormPart::parse(part)?.head_and_content(read);
    let parts: Vec<(String, Vec<u8>)> =
        parts.iter().map(&mut read_part).collect::<Result<_, _>>()?;
    let boundary = boundary(&parts);
    let mut body = Vec::new();
    for (head, content) in &parts {
        body.extend_from_slice(format!("--{boundary}\r\n{head}\r\n").as_bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok(Multipart { content_type: format!("multipart/form-data; boundary={boundary}"), body })
}

/// A part of a form, by the grammar of curl.
struct FormPart<'a> {
    name: &'a str,
    /// `@`: the file is sent as a file; `<`: its content is sent as text.
    file_sign: Option<char>,
    /// The text, or the name of the file.
    value: String,
    content_type: Option<String>,
    filename: Option<String>,
}

impl<'a> FormPart<'a> {
    fn parse(part: &'a str) -> Result<FormPart<'a>, String> {
        let unsupported = |what: &str| Err(format!("'{part}': {what}: knee does not support that"));
        let Some((name, rest)) = part.split_once('=') else {
            return Err(format!("'{part}' is no part of a form: write NAME=VALUE"));
        };
        let file_sign = rest.chars().next().filter(|c| matches!(c, '@' | '<'));
        if rest.starts_with(['(', ')']) && (name.is_empty() || rest.starts_with('(')) {
            return unsupported("parts of a part");
        }
        let rest = &rest[file_sign.map_or(0, char::len_utf8)..];
        let (value, mut rest) = word(rest);
        if file_sign == Some('@') && value.contains(',') && !value.contains('"') {
            let is_quoted = part[name.len() + 2..].trim_start().starts_with('"');
            if !is_quoted {
                return unsupported("several files in one part");
            }
        }
        let mut form_part = FormPart { name, file_sign, value, content_type: None, filename: None };
        while let Some(parameter) = rest.strip_prefix(';').map(str::trim_start) {
            let (word, after) = word(parameter.strip_prefix("filename=").unwrap_or(parameter));
            if parameter.starts_with("filename=") {
                form_part.filename = Some(word);
            } else if parameter.starts_with("headers=") || parameter.starts_with("encoder=") {
                return unsupported("headers and encoders of a part");
            } else if let Some(given) = word.strip_prefix("type=") {
                form_part.content_type = Some(given.to_owned());
            } else if let Some(content_type) = &mut form_part.content_type {
                // `; charset=utf-8` belongs to the type.
                *content_type =
                    format!("{content_type}{}{word}", &rest[..rest.len() - parameter.len()]);
            }
            rest = after;
        }
        Ok(form_part)
    }

    fn head_and_content(self, read: ReadFile) -> Result<(String, Vec<u8>), String> {
        let (mut content_type, mut filename) = (self.content_type, self.filename);
        let content = match self.file_sign {
            None => bytes_of(&self.value),
            Some(sign) => {
                let file = self.value.as_str();
                if sign == '@' {
                    let last = file.rsplit('/').next().unwrap_or(file);
                    filename.get_or_insert_with(|| last.to_owned());
                    content_type.get_or_insert_with(|| type_of(file).to_owned());
                }
                read(file)?
            }
        };
        let mut head = "Content-Disposition: form-data".to_owned();
        if !self.name.is_empty() {
            let _ = write!(head, "; name=\"{}\"", form_name(self.name));
        }
        if let Some(filename) = &filename {
            let _ = write!(head, "; filename=\"{}\"", form_name(filename));
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
}

/// The word that a value or a parameter begins with, and what follows, from the `;` on. The word
/// ends at `;` or is in double quotes, in which `\\` escapes quotes and itself.
fn word(text: &str) -> (String, &str) {
    let text = text.trim_start();
    if let Some(inside) = text.strip_prefix('"') {
        let mut word = String::new();
        let mut chars = inside.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    let rest = &inside[at + 1..];
                    return (word, &rest[rest.find(';').unwrap_or(rest.len())..]);
                }
                '\\' => match chars.next_if(|(_, next)| matches!(next, '"' | '\\')) {
                    Some((_, escaped)) => word.push(escaped),
                    None => word.push(c),
                },
                c => word.push(c),
            }
        }
        // Without an end the quote is text.
    }
    let (word, rest) = text.split_at(text.find(';').unwrap_or(text.len()));
    (word.trim_end().to_owned(), rest)
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
        let is_in = |part: &[u8]| memmem::find(part, boundary.as_bytes()).is_some();
        let mut taken = parts.iter().map(|(head, body)| is_in(head.as_bytes()) || is_in(body));
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
        let piece = |&(kind, text): &(DataKind, &str)| CurlData { kind, text: text.to_owned() };
        let pieces: Vec<CurlData> = pieces.iter().map(piece).collect();
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
            (&[(Urlencode, "a b&ü")], "a+b%26%C3%BC"),
            (&[(Urlencode, "=a=b"), (Urlencode, "n=a b")], "a%3Db&n=a+b"),
            (&[(Urlencode, "n@f"), (Urlencode, "@f")], "n=a+b%0D%0Ac%0A&a+b%0D%0Ac%0A"),
        ] {
            assert_eq!(joined(pieces).as_deref(), Ok(expected), "{pieces:?}");
        }
        for kind in [DataKind::Data, Binary, Urlencode, Json] {
            assert_eq!(joined(&[(kind, "@g")]), Err("g: is missing".to_owned()));
        }
    }

    #[test]
    fn a_form_has_a_part_for_each() {
        let parts = ["a=1", "b=@dir/f.png", "c=<f;type=text/csv", "d=x;filename=\"y\""];
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
            ("a=x;type=a\nb", "a name, a type or a file's name holds a line end"),
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
