//! Lines of text, read by what their parts are and not by their places.

use super::line::{LineFields, address_of, end_of_quoted, of_request_line};
use super::moment::{LoggedTime, duration_of, time_of, took_of_key};
use core::net::{IpAddr, SocketAddr};

/// A part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Token<'a> {
    kind: TokenKind,
    /// What is before a `=`.
    key: &'a str,
    /// What it has, without quotes or brackets.
    text: &'a str,
    /// Where it begins and ends in the line.
    at: (usize, usize),
}

impl Token<'_> {
    /// Where the text of a word begins.
    fn begin(&self) -> usize {
        self.at.1 - self.text.len()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenKind {
    Word,
    Quoted,
    /// In brackets or braces.
    Bracketed,
}

/// The kinds of connections with which lines of the load balancers of AWS begin.
const AWS_TYPES: [&str; 6] = ["http", "https", "h2", "grpcs", "ws", "wss"];

/// Reads a line that has a time and a request somewhere, and who asked.
pub(super) fn read_text(line: &str) -> Result<LineFields<'_>, String> {
    let tokens = tokens(line);
    let (time_at, mut time) = find_time(line, &tokens).ok_or("no time")?;
    let is_aws = AWS_TYPES.contains(&tokens[0].text) && time_at == 1;
    let request = find_request(&tokens, is_aws);
    let mut fields = LineFields { escape: Some('\\'), ..LineFields::default() };
    let request_at = match request {
        Some((at, true)) => {
            (fields.method, fields.path) = (Some(tokens[at].text), Some(tokens[at + 1].text));
            at
        }
        Some((at, false)) => {
            fields.line = Some(tokens[at].text);
            at
        }
        None => {
            // The first text in quotes after the time says why there is none.
            let after = tokens[time_at..].iter();
            let quoted = after.copied().find(|token| token.kind == TokenKind::Quoted);
            fields.line = Some(quoted.ok_or("no request in quotes")?.text);
            tokens.len()
        }
    };
    let is_in_brackets = tokens[time_at].kind == TokenKind::Bracketed;
    if is_aws {
        // The line is written at the end; the begin stands behind the request.
        let later = tokens.get(request_at..).unwrap_or_default();
        let begin = later.iter().rev().filter_map(|token| date_of(token.text));
        let begin = begin.into_iter().find(|begin| begin.ns <= time.ns);
        (time, fields.is_begin) = (begin.unwrap_or(time), begin.is_some());
    }
    let of_request = &tokens[..request_at.max(time_at)];
    if is_in_brackets && !time.has_zone && !time.is_of_second {
        // HAProxy: the address and its port stand before, also where they look like one address.
        let before = tokens[..time_at].last().map_or("", |token| token.text);
        fields.client = before.rsplit_once(':').map(|(address, _)| address);
        fields.escape = Some('#');
    } else if is_in_brackets {
        let (client, name) = client_of(line, &tokens[..time_at]);
        (fields.client, fields.name) = (client, name.map(str::to_owned));
    }
    let mut others = of_request.iter().map(|token| token.text);
    let host = tokens[..time_at].get(time_at.saturating_sub(3)).filter(|_| is_in_brackets);
    fields.client = fields.client.or_else(|| others.find(|text| address_of(text).is_some()));
    fields.client = fields.client.or(host.map(|token| token.text));
    // The format "main" of nginx ends in the client that a proxy names. Envoy's begins with the time
    // and has that client before the user agent.
    let is_forwarded = |token: &&Token<'_>| {
        let is_address = |part: &str| part.trim().parse::<IpAddr>().is_ok();
        token.kind == TokenKind::Quoted && token.text.split(',').all(is_address)
    };
    let behind = tokens.get(request_at + 1..).unwrap_or_default();
    let is_of_envoy = time_at == 0 && is_in_brackets;
    let forwarded = if is_of_envoy {
        behind.iter().find(is_forwarded)
    } else {
        behind.last().filter(is_forwarded)
    };
    fields.client = forwarded.map(|token| token.text).or(fields.client);
    fields.took_s = tokens.iter().find_map(|token| took_of_key(token.key, token.text));
    if time_at == 0 && is_of_squid(&tokens) {
        // The time is that of the end (https://wiki.squid-cache.org/Features/LogFormat).
        fields.took_s = duration_of(tokens[1].text, 1e-3);
    }
    fields.time = Some(time);
    Ok(fields)
}

/// Whether a line is of Squid's own format: time, milliseconds, client, `TCP_MISS/200`.
fn is_of_squid(tokens: &[Token<'_>]) -> bool {
    let [time, took, _, result, ..] = tokens else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_epoch = time.text.split_once('.').is_some_and(|(s, ms)| is_number(s) && is_number(ms));
    let is_result = result.text.split_once('/').is_some_and(|(name, status)| {
        name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_') && is_number(status)
    });
    is_epoch && is_number(took.text) && is_result
}

fn tokens(line: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        let rest = line[at..].trim_start();
        let begin = line.len() - rest.len();
        let closing = match rest.as_bytes().first() {
            None => return tokens,
            Some(b'"') => end_of_quoted(&rest[1..]).map(|end| (TokenKind::Quoted, end)),
            Some(b'[') => rest[1..].find(']').map(|end| (TokenKind::Bracketed, end)),
            Some(b'{') => rest[1..].find('}').map(|end| (TokenKind::Bracketed, end)),
            Some(_) => None,
        };
        // An address in brackets has its port behind them.
        let closing = closing.filter(|(kind, end)| {
            let after = rest[end + 2..].chars().next();
            *kind == TokenKind::Quoted || after.is_none_or(|c| c.is_whitespace() || c == '"')
        });
        let (kind, text, length) = match closing {
            Some((kind, end)) => (kind, &rest[1..=end], end + 2),
            None => {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                (TokenKind::Word, &rest[..end], end)
            }
        };
        at = begin + length;
        let mut token = Token { kind, key: "", text, at: (begin, at) };
        if let Some((key, value)) = text.split_once('=').filter(|(key, _)| is_key(key))
            && kind == TokenKind::Word
        {
            (token.key, token.text) = (key, value);
            let quoted = begin + key.len() + 2;
            if value.starts_with('"')
                && let Some(end) = end_of_quoted(&line[quoted..])
            {
                at = quoted + end + 1;
                (token.kind, token.text) = (TokenKind::Quoted, &line[quoted..at - 1]);
                token.at.1 = at;
            }
        }
        tokens.push(token);
    }
}

fn is_key(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(is_part)
}

/// The first time in brackets, or among the words, where it may take up to three, or in quotes.
fn find_time(line: &str, tokens: &[Token<'_>]) -> Option<(usize, LoggedTime)> {
    let alone = |wanted: TokenKind| {
        let such = tokens.iter().enumerate().filter(move |(_, token)| token.kind == wanted);
        such.filter_map(|(at, token)| Some((at, date_of(token.text)?))).next()
    };
    let words = || {
        (0..tokens.len()).find_map(|first| {
            let is_word = |token: &Token<'_>| token.kind == TokenKind::Word;
            let count = tokens[first..].iter().take(3).take_while(|token| is_word(token)).count();
            (1..=count).rev().find_map(|count| {
                let (begin, end) = (tokens[first].begin(), tokens[first + count - 1].at.1);
                Some((first, date_of(&line[begin..end])?))
            })
        })
    };
    alone(TokenKind::Bracketed).or_else(words).or_else(|| alone(TokenKind::Quoted))
}

/// The first time in a text, if it has one.
pub(super) fn time_within(text: &str) -> Option<LoggedTime> {
    find_time(text, &tokens(text)).map(|(_, time)| time)
}

/// A time that is no other number: seconds since 1970 have a fraction here.
fn date_of(text: &str) -> Option<LoggedTime> {
    let is_date = |number: f64| text.contains('.') && (1e9..4e9).contains(&number);
    text.parse().map_or(true, is_date).then(|| time_of(text).ok()).flatten()
}

/// Where the request is, and whether it is a method and a path in two parts. The one before a
/// status is meant, whatever browsers write into further parts.
fn find_request(tokens: &[Token<'_>], is_aws: bool) -> Option<(usize, bool)> {
    let quoted = |token: &Token<'_>| token.kind == TokenKind::Quoted;
    let is_status = |token: &Token<'_>| {
        token.text.len() == 3 && token.text.parse::<u16>().is_ok_and(|n| (100..600).contains(&n))
    };
    let first = tokens.iter().find(|token| quoted(token));
    let has_status = |pair: &[Token<'_>]| {
        // Behind the request a `-` stands for what a browser did not send.
        let is_other = pair[0].text == "-" && first != Some(&pair[0]);
        quoted(&pair[0]) && !is_other && !quoted(&pair[1]) && is_status(&pair[1])
    };
    let before_status = tokens.windows(2).position(|pair| !is_aws && has_status(pair));
    if let Some(at) = before_status.filter(|at| !is_part(tokens[*at].text)) {
        return Some((at, false));
    }
    let whole = |token: &Token<'_>| {
        let read = of_request_line(token.text);
        quoted(token) && read.is_ok_and(|(method, path)| is_method(method) && is_path(path))
    };
    let whole = tokens.iter().position(whole).map(|at| (at, false));
    let is_pair = |pair: &[Token<'_>]| is_method(pair[0].text) && is_path(pair[1].text);
    whole.or_else(|| Some((tokens.windows(2).position(is_pair)?, true)))
}

fn is_method(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase())
}

fn is_path(text: &str) -> bool {
    text.starts_with(['/', '*']) || text.contains("://")
}

/// Whether a text is a path alone, whose method is another part.
fn is_part(text: &str) -> bool {
    is_path(text) && !text.contains(' ')
}

/// Who asked, of the words before a time in brackets: the address and the name that the server
/// checked. `HOST IDENT USER` stand right before the time, whatever stands before them.
fn client_of<'a>(line: &'a str, before: &[Token<'_>]) -> (Option<&'a str>, Option<&'a str>) {
    let mut words: Vec<(usize, usize)> = Vec::new();
    for token in before.iter().filter(|token| token.kind == TokenKind::Word) {
        // Addresses of several proxies are one list.
        match words.last_mut() {
            Some(last) if line[last.0..last.1].ends_with(',') => last.1 = token.at.1,
            _ => words.push(token.at),
        }
    }
    let word = |at: usize| &line[words[at].0..words[at].1];
    let count = words.len();
    let is_ident = |at: usize| word(at) == "-";
    let is_address = |at: usize| word(at).split(',').all(|part| address_of(part).is_some());
    let host = if count >= 3 && is_ident(count - 2) {
        Some(count - 3)
    } else {
        // The server's own address has its port.
        let mut addresses = (0..count).rev().filter(|at| is_address(*at));
        let last = addresses.clone().next();
        addresses.find(|at| word(*at).parse::<SocketAddr>().is_err()).or(last)
    };
    let Some(host) = host else {
        return (None, None);
    };
    // A name may have blanks.
    let name = match count - host {
        1 => None,
        2 => Some(word(host + 1)).filter(|name| !name.contains("://") && !is_address(host + 1)),
        _ => Some(&line[words[host + 2].0..words[count - 1].1]),
    };
    (Some(word(host)), name)
}
