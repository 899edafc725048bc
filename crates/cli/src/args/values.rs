//! Small values of the command line that core does not parse: seeds, counts, lists of levels,
//! addresses, and words that each stand for something.

use crate::resolved_options::Typed;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use knee_load::spec::{ParseError, Rate, parse_duration, parse_list, parse_rates};
use knee_load::time::Nanos;
use serde::Serialize;
use serde_json::Value;
use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv6Addr, SocketAddr};

/// `--seed`.
#[derive(Args, Clone, Debug, Serialize)]
pub struct SeedArgs {
    /// Seed of all random choices, for repeatable runs [default: random; always printed]
    #[arg(long, value_name = "N", value_parser = parse_whole, hide_short_help = true)]
    pub seed: Option<u64>,
}

impl SeedArgs {
    /// The seed given, or a random one short enough to be typed.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(random_seed)
    }
}

/// A seed that differs from run to run: the standard library's hash keys come from the system.
fn random_seed() -> u64 {
    RandomState::new().hash_one(0) & 0xffff_ffff
}

/// The levels of a sweep: chosen as it goes, or given.
#[derive(Clone, Debug, PartialEq)]
pub enum Levels<T> {
    /// Chosen from what the earlier levels showed.
    Auto,
    /// Just these.
    List(Vec<T>),
}

impl<T: Typed> Typed for Levels<T> {
    fn typed(&self) -> Value {
        let Levels::List(levels) = self else {
            return "auto".into();
        };
        let words = levels.iter().map(|level| match level.typed() {
            Value::String(text) => text,
            number => number.to_string(),
        });
        words.collect::<Vec<_>>().join(",").into()
    }
}

impl Typed for u32 {
    fn typed(&self) -> Value {
        (*self).into()
    }
}

/// A whole number from 1 to 4,294,967,295.
pub fn parse_count(text: &str) -> Result<u32, ParseError> {
    u32::try_from(parse_number(text)?)
        .map_err(|_| ParseError(format!("'{text}' is too many: at most {}", u32::MAX)))
}

/// A whole number from 1 on.
pub fn parse_number(text: &str) -> Result<u64, ParseError> {
    match parse_whole(text)? {
        0 => Err(ParseError(format!("'{text}' is too few: at least 1"))),
        n => Ok(n),
    }
}

/// A parser of whole numbers from `least` to `most`.
pub fn within<T: TryFrom<u64> + 'static>(
    least: u64,
    most: u64,
) -> impl Fn(&str) -> Result<T, ParseError> + Clone + Send + Sync + 'static {
    move |text| {
        let number = Some(parse_whole(text)?).filter(|number| (least..=most).contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
            ParseError(format!("'{text}' is not a whole number from {least} to {most}"))
        })
    }
}

/// A whole number from 0 on; digits may be grouped by `_`.
pub fn parse_whole(text: &str) -> Result<u64, ParseError> {
    let digits = text.trim().replace('_', "");
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(ParseError(format!("'{text}' is not a whole number such as 100")));
    }
    digits.parse().map_err(|_| ParseError(format!("'{text}' is too large: at most {}", u64::MAX)))
}

/// A duration that is not zero.
pub fn parse_positive(text: &str) -> Result<Nanos, ParseError> {
    match parse_duration(text)? {
        Nanos::ZERO => Err(ParseError(format!(
            "'{text}' is no time at all: it takes more than 0, such as 500ms"
        ))),
        t => Ok(t),
    }
}

/// `auto`, or numbers of users separated by commas.
pub fn vuser_levels(text: &str) -> Result<Levels<u32>, ParseError> {
    if text == "auto" {
        return Ok(Levels::Auto);
    }
    let parts: Result<Vec<u32>, ParseError> = parse_list(text)?.map(parse_count).collect();
    parts.map(Levels::List).map_err(|ParseError(wrong)| {
        ParseError(format!("{wrong}; levels are 'auto' or a list such as 1,10,50"))
    })
}

/// `auto`, or rates separated by commas.
pub fn rate_levels(text: &str) -> Result<Levels<Rate>, ParseError> {
    match text {
        "auto" => Ok(Levels::Auto),
        list => parse_rates(list).map(Levels::List),
    }
}

/// An address to listen at, such as `example` in the words of an error.
pub fn listen_address(text: &str, example: &str) -> Result<SocketAddr, ParseError> {
    text.parse().map_err(|_| {
        ParseError(format!("'{text}' is no address to listen at: give ADDR:PORT such as {example}"))
    })
}

/// The address of a service of knee's, always `HOST:PORT` afterwards: `port` where none is given.
pub fn service_address(text: &str, service: &str, port: u16) -> Result<String, ParseError> {
    let wrong = |what: &str| {
        ParseError(format!(
            "'{text}' {what}: give HOST or HOST:PORT of a '{service}', such as 192.0.2.7, \
             192.0.2.7:{port} or [::1]:{port}"
        ))
    };
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Ok(format!("[{address}]:{port}"));
    }
    let (host, given) = match text.rsplit_once(':') {
        // The last colon of an address in brackets is not of a port.
        Some((host, given)) if !text.ends_with(']') => (host, Some(given)),
        _ => (text, None),
    };
    let bracketed = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    let is_v6 = bracketed.is_some_and(|h| h.parse::<Ipv6Addr>().is_ok());
    let is_named = !host.is_empty() && !host.contains([':', '[', ']']);
    if !(is_v6 || is_named) || text.contains(['/', ' ', '@']) {
        return Err(wrong("is no service"));
    }
    match given.map(str::parse::<u16>) {
        None => Ok(format!("{host}:{port}")),
        Some(Ok(0)) => Err(wrong("has the port 0")),
        Some(Ok(given)) => Ok(format!("{host}:{given}")),
        Some(Err(_)) => Err(wrong("has no port from 1 to 65535")),
    }
}

/// Words and their values.
pub type Choices<T> = &'static [(&'static str, T)];

/// Parses one of these words.
pub fn one_of<T: Copy + Send + Sync + 'static>(
    choices: Choices<T>,
) -> impl TypedValueParser<Value = T> {
    let words = choices.iter().map(|(word, _)| *word);
    // The parser rejects any other word.
    PossibleValuesParser::new(words)
        .map(|typed| choices.iter().find(|(word, _)| *word == typed).unwrap_or(&choices[0]).1)
}

/// The word of a value; each value has one.
pub fn word_of<T: PartialEq>(choices: Choices<T>, value: T) -> &'static str {
    choices.iter().find(|(_, known)| *known == value).map_or("", |(word, _)| word)
}

/// `user:password`; its password is never shown.
#[derive(Clone)]
pub struct User(pub String);

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.0.split(':').next().unwrap_or_default();
        write!(f, "{name}:***")
    }
}

impl Typed for User {
    fn typed(&self) -> Value {
        self.0.as_str().into()
    }
}

pub fn parse_user(text: &str) -> Result<User, ParseError> {
    if text.contains("://") {
        Err(ParseError("expected USER:PASSWORD, not a URL, which needs no option".to_owned()))
    } else if text.contains(':') {
        Ok(User(text.to_owned()))
    } else {
        Err(ParseError("expected USER:PASSWORD; the password may be empty".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_have_a_host_and_perhaps_a_port() {
        for (text, service) in [
            ("192.0.2.7", "192.0.2.7:7008"),
            ("192.0.2.7:80", "192.0.2.7:80"),
            ("host.example", "host.example:7008"),
            ("::1", "[::1]:7008"),
            ("[::1]", "[::1]:7008"),
            ("[2001:db8::7]:9", "[2001:db8::7]:9"),
        ] {
            let read = service_address(text, "knee serve latency", 7008);
            assert_eq!(read.as_deref(), Ok(service), "{text}");
        }
        for text in [
            "",
            ":9",
            "h:0",
            "h:65536",
            "h:x",
            "http://h",
            "http://h:80/",
            "1:2:3",
            "[::1",
            "[h]:9",
            "[::1]:",
            "a b",
        ] {
            let wrong = service_address(text, "knee serve latency", 7008).unwrap_err().0;
            assert!(wrong.starts_with(&format!("'{text}' ")), "{wrong}");
        }
    }

    #[test]
    fn counts() {
        for (text, expected) in [
            ("1", Ok(1)),
            ("10_000", Ok(10_000)),
            ("0", Err("'0' is too few: at least 1")),
            ("", Err("'' is not a whole number such as 100")),
            ("-5", Err("'-5' is not a whole number such as 100")),
            ("1.5", Err("'1.5' is not a whole number such as 100")),
            ("ten", Err("'ten' is not a whole number such as 100")),
            ("4294967296", Err("'4294967296' is too many: at most 4294967295")),
            (
                "99999999999999999999",
                Err("'99999999999999999999' is too large: at most 18446744073709551615"),
            ),
        ] {
            let expected = expected.map_err(|e: &str| ParseError(e.to_string()));
            assert_eq!(parse_count(text), expected, "{text}");
        }
    }

    #[test]
    fn levels_of_users() {
        assert_eq!(vuser_levels("auto"), Ok(Levels::Auto));
        assert_eq!(vuser_levels("1, 10,50"), Ok(Levels::List(vec![1, 10, 50])));
        let listed = |n: usize| vec!["7"; n].join(",");
        assert!(vuser_levels(&listed(1_000)).is_ok());
        let wrong = vuser_levels(&listed(200_000)).unwrap_err().0;
        assert_eq!(wrong, "200000 levels are too many: give at most 1000");
        assert_eq!(rate_levels(&listed(1_001)).unwrap_err().0.len(), wrong.len() - 2);
        let wrong = vuser_levels("1,,3").unwrap_err().0;
        assert!(wrong.ends_with("levels are 'auto' or a list such as 1,10,50"), "{wrong}");
    }
}
