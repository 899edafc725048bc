//! Formats of lines as the configuration of nginx (`log_format`) and Apache (`LogFormat`) has them.

use super::line::{LineFields, address_of, end_of_quoted};
use super::moment::{duration_of, time_of, unit_of};

/// The parts of a line, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct LogPattern(Vec<Part>);

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    Field(Field),
}

/// What a variable of nginx or a directive of Apache stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Field {
    /// The time of the begin, in brackets or without.
    Begin,
    /// The time of the end.
    End,
    /// The fraction of the second of a time elsewhere in the line, in this unit in nanoseconds.
    Fraction(i64),
    /// How long it took, in this unit in seconds.
    Took(f64),
    RequestLine,
    Method,
    Path,
    /// The path, and the query or a `-`.
    PathAndArgs,
    Query,
    Name,
    Client,
    /// The client that a proxy names, which is none for requests without a proxy.
    Forwarded,
    Other,
}

impl LogPattern {
    /// Reads a format, also as the whole directive of the configuration.
    pub(super) fn parse(text: &str) -> Result<LogPattern, String> {
        let text = configured(text.trim());
        let parts = if text.contains('$') { of_nginx(&text) } else { of_apache(&text)? };
        let has = |wanted: &[Field]| {
            let is_wanted = |part: &Part| matches!(part, Part::Field(f) if wanted.contains(f));
            parts.iter().any(is_wanted)
        };
        if !has(&[Field::Begin, Field::End]) {
            return Err("the format has no time, such as $time_local or %t".to_owned());
        }
        if !has(&[Field::RequestLine, Field::Path, Field::PathAndArgs]) {
            return Err("the format has no request, such as $request or %r".to_owned());
        }
        Ok(LogPattern(parts))
    }

    /// Reads a line, which may begin with what syslog puts there.
    pub(super) fn read<'a>(&self, line: &'a str) -> Result<LineFields<'a>, String> {
        let begins = line.match_indices(": ").map(|(at, sign)| at + sign.len()).take(8);
        let mut lines = [0].into_iter().chain(begins).map(|begin| self.read_from(&line[begin..]));
        let first = lines.next().unwrap_or_else(|| Err(String::new()));
        first.or_else(|why| lines.find_map(Result::ok).ok_or(why))
    }

    fn read_from<'a>(&self, line: &'a str) -> Result<LineFields<'a>, String> {
        let mut fields = LineFields { escape: Some('\\'), ..LineFields::default() };
        let mut fraction_ns = None;
        let mut rest = line;
        for (number, part) in self.0.iter().enumerate() {
            match part {
                Part::Text(text) => {
                    rest = rest.strip_prefix(&**text).ok_or_else(|| {
                        let shown: String = rest.chars().take(20).collect();
                        format!("the format has '{text}' where the line has '{shown}'")
                    })?;
                }
                Part::Field(field) => {
                    let end = end_of_field(*field, rest, self.0.get(number + 1));
                    let (value, after) = rest.split_at(end.ok_or("the line ends too early")?);
                    if let Field::Fraction(unit_ns) = field {
                        fraction_ns = value.parse().ok().map(|units: i64| units * unit_ns);
                    }
                    field.put(value, &mut fields)?;
                    rest = after;
                }
            }
        }
        if let (Some(time), Some(ns)) = (&mut fields.time, fraction_ns)
            && time.is_of_second
        {
            (time.ns, time.is_of_second) = (time.ns + ns, false);
        }
        Ok(fields)
    }
}

/// The most parts of a time that stand apart: day, month, year, time and zone, and one between.
const TIME_PARTS_MAX: usize = 6;

/// Where a field ends: before the text that follows, or what a further field begins with.
fn end_of_field(field: Field, rest: &str, next: Option<&Part>) -> Option<usize> {
    match next {
        None => Some(rest.len()),
        Some(Part::Field(next)) => {
            let ends = match next {
                Field::Path | Field::PathAndArgs => '/',
                _ => ' ',
            };
            rest.find(ends).or(Some(rest.len()))
        }
        Some(Part::Text(text)) if text.starts_with('"') => {
            // A quote within the value is escaped.
            let mut from = 0;
            loop {
                let end = from + end_of_quoted(&rest[from..])?;
                if rest[end..].starts_with(&**text) {
                    return Some(end);
                }
                from = end + 1;
            }
        }
        Some(Part::Text(text)) => {
            let ends = || rest.match_indices(&**text).map(|(at, _)| at);
            let is_whole = |end: &usize| time_of(rest[..*end].trim_matches(['[', ']'])).is_ok();
            // The text may stand in a time, as a blank does.
            let of_time = ends().take(TIME_PARTS_MAX).filter(is_whole).last();
            // Addresses of several proxies and times of several servers are lists.
            let is_list = matches!(field, Field::Client | Field::Forwarded | Field::Other);
            let goes_on =
                |end: usize| rest[..end].ends_with([',', ':']) || rest[end..].starts_with(" : ");
            let is_end = |end: &usize| !(is_list && text.starts_with(' ') && goes_on(*end));
            of_time.filter(|_| field.is_time()).or_else(|| ends().find(is_end))
        }
    }
}

impl Field {
    fn is_time(self) -> bool {
        matches!(self, Field::Begin | Field::End)
    }

    fn put<'a>(self, value: &'a str, fields: &mut LineFields<'a>) -> Result<(), String> {
        let given = Some(value).filter(|value| !value.is_empty() && *value != "-");
        match self {
            Field::Begin | Field::End => {
                // Of several times that of the begin is meant, else the one that says more.
                let time = time_of(value.trim_matches(['[', ']']))?;
                let is_begin = self == Field::Begin;
                let known = fields.time.map(|known| (fields.is_begin, !known.is_of_second));
                if known.is_none_or(|known| (is_begin, !time.is_of_second) > known) {
                    (fields.time, fields.is_begin) = (Some(time), is_begin);
                }
            }
            Field::Took(unit) => {
                let read =
                    |value| duration_of(value, unit).ok_or(format!("'{value}' is no duration"));
                fields.took_s = fields.took_s.or(given.map(read).transpose()?);
            }
            Field::RequestLine => fields.line = Some(value),
            Field::Method => fields.method = Some(value),
            Field::Path => fields.path = Some(value),
            Field::PathAndArgs if value.contains('?') => fields.path = Some(value),
            Field::PathAndArgs => fields.path = value.strip_suffix('-'),
            Field::Query => fields.query = Some(value),
            Field::Name => fields.name = given.map(str::to_owned),
            Field::Client | Field::Forwarded
                if value.contains(' ') && address_of(value).is_none() =>
            {
                return Err(format!("'{value}' is no address"));
            }
            Field::Client => fields.client = fields.client.or(given),
            Field::Forwarded => fields.client = given.or(fields.client),
            Field::Fraction(_) | Field::Other => {}
        }
        Ok(())
    }
}

/// The format in a directive: `log_format NAME escape=json 'PART' 'PART';` or
/// `LogFormat "FORMAT" NAME`.
fn configured(text: &str) -> String {
    let Some(rest) = text.strip_prefix("log_format").or_else(|| text.strip_prefix("LogFormat"))
    else {
        return text.replace("\\\"", "\"").replace("\\t", "\t");
    };
    let mut format = String::new();
    let mut rest = rest;
    while let Some(begin) = rest.find(['\'', '"']) {
        let quote = char::from(rest.as_bytes()[begin]);
        rest = &rest[begin + 1..];
        let mut is_escaped = false;
        let end = rest.find(|c| {
            let is_end = c == quote && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            is_end
        });
        let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
        format.push_str(&part.replace(&format!("\\{quote}"), &quote.to_string()));
        rest = after.get(1..).unwrap_or_default();
    }
    format.replace("\\t", "\t")
}

fn push_text(parts: &mut Vec<Part>, text: &str) {
    match parts.last_mut() {
        Some(Part::Text(last)) => last.push_str(text),
        _ if text.is_empty() => {}
        _ => parts.push(Part::Text(text.to_owned())),
    }
}

/// Variables of nginx (`ngx_http_log_module`, `ngx_http_core_module`).
fn of_nginx(format: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = format;
    while let Some((before, after)) = rest.split_once('$') {
        push_text(&mut parts, before);
        let (name, after) = match after.strip_prefix('{').and_then(|name| name.split_once('}')) {
            Some(both) => both,
            None => {
                let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
                after.split_at(after.find(|c| !is_part(c)).unwrap_or(after.len()))
            }
        };
        rest = after;
        let field = match name {
            // The query has its '?'.
            "is_args" => continue,
            "args" | "query_string" if parts.last() == Some(&Part::Field(Field::Path)) => {
                parts.pop();
                Field::PathAndArgs
            }
            "time_local" | "time_iso8601" | "msec" => Field::End,
            "request_time" => Field::Took(1.0),
            "request" => Field::RequestLine,
            "request_method" => Field::Method,
            "request_uri" | "uri" | "document_uri" => Field::Path,
            "args" | "query_string" => Field::Query,
            "remote_user" => Field::Name,
            "remote_addr" => Field::Client,
            "http_x_forwarded_for" | "http_x_real_ip" | "proxy_protocol_addr" => Field::Forwarded,
            _ => Field::Other,
        };
        parts.push(Part::Field(field));
    }
    push_text(&mut parts, rest);
    // A query is a part of what was asked for already.
    if format.contains("$request_uri") {
        parts.iter_mut().filter(|part| **part == Part::Field(Field::Query)).for_each(|part| {
            *part = Part::Field(Field::Other);
        });
    }
    parts
}

/// Whether a time by this format of Apache is the rest of the one before it: the fraction of its
/// second, its time of day or its zone.
fn goes_on(parts: &[Part], whole: &str) -> bool {
    let (time, between) = match parts {
        [.., Part::Field(time), Part::Text(between)] => (time, &**between),
        [.., Part::Field(time)] => (time, ""),
        _ => return false,
    };
    let format = whole.split_once(':').filter(|(of, _)| matches!(*of, "begin" | "end"));
    let format = format.map_or(whole, |(_, format)| format);
    let of_day = |part: &str| part.starts_with(['H', 'M', 'S', 'T', 'R', 'z', 'Z']);
    let is_rest = format.contains('%') && format.split('%').skip(1).all(of_day);
    let is_fraction = format.ends_with("_frac") && between == ".";
    time.is_time() && (is_fraction || is_rest && matches!(between, "" | " " | ":" | "T"))
}

/// Directives of Apache (`mod_log_config`).
fn of_apache(format: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut rest = format;
    while let Some((before, after)) = rest.split_once('%') {
        push_text(&mut parts, before);
        let after = after.trim_start_matches(|c: char| c.is_ascii_digit() || "!,<>".contains(c));
        let (argument, after) = match after.strip_prefix('{').and_then(|arg| arg.split_once('}')) {
            Some(both) => both,
            None => ("", after),
        };
        let after = after.trim_start_matches(['<', '>']);
        let directive = after.chars().next().ok_or("the format ends with '%'")?;
        rest = &after[directive.len_utf8()..];
        let field = match directive {
            '%' => {
                push_text(&mut parts, "%");
                continue;
            }
            't' if goes_on(&parts, argument) => {
                if let Some(Part::Text(_)) = parts.last() {
                    parts.pop();
                }
                continue;
            }
            't' if argument.ends_with("msec_frac") => Field::Fraction(1_000_000),
            't' if argument.ends_with("usec_frac") => Field::Fraction(1_000),
            't' if argument.starts_with("end:") => Field::End,
            't' => Field::Begin,
            'D' => Field::Took(1e-6),
            'T' => Field::Took(unit_of(argument).unwrap_or(1.0)),
            'r' => Field::RequestLine,
            'm' => Field::Method,
            'U' => Field::Path,
            // It has its '?', or is empty.
            'q' if parts.last() == Some(&Part::Field(Field::Path)) => continue,
            'q' => Field::Query,
            'u' => Field::Name,
            'h' | 'a' => Field::Client,
            'i' if argument.eq_ignore_ascii_case("x-forwarded-for") => Field::Forwarded,
            c if c.is_ascii_alphabetic() || c == '^' => Field::Other,
            other => return Err(format!("'%{other}' is no directive of Apache")),
        };
        parts.push(Part::Field(field));
        if directive == '^' {
            // `%^FB` and its like have two letters more.
            rest = rest.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        }
    }
    push_text(&mut parts, rest);
    Ok(parts)
}
