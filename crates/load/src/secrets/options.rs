//! Secrets of a command line. They are found before it is parsed, as its errors must not show them.
//! In options each is replaced by a variable of the shell, so that the command can be repeated
//! where the variables are set.

use super::text::{self, FoundSecret};
use super::{MASK, Secrets, VARIABLE_PREFIX, is_hidden};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;

/// Options that name files or take no text of others: nothing in them is looked for.
const PLAIN: [&str; 9] =
    ["agents", "cacert", "cert", "file", "key", "seed", "targets", "threads", "unix-socket"];

/// Where the variables of a command are in a text: `$KNEE_SECRET_TOKEN`.
pub fn variables_of(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices('$') {
        let name = &text[at + 1..];
        let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let length = name.find(|c| !is_part(c)).unwrap_or(name.len());
        if length > VARIABLE_PREFIX.len() && name.starts_with(VARIABLE_PREFIX) {
            found.push(at..at + 1 + length);
        }
    }
    found
}

/// The variables that stand for the secrets of one command.
#[derive(Default)]
struct Variables {
    /// Each name with the value that it stands for.
    values: BTreeMap<String, String>,
}

impl Variables {
    /// The variable for a value that is called so: another one for each value.
    fn of(&mut self, name: &str, value: &str) -> String {
        let capital = |c: char| {
            if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }
        };
        let name: String = name.trim_matches(['-', '_', '.']).chars().map(capital).collect();
        let first = format!("{VARIABLE_PREFIX}{name}");
        let mut variable = first.clone();
        for number in 2.. {
            let known = self.values.entry(variable.clone());
            if known.or_insert_with(|| value.to_owned()) == value {
                break;
            }
            variable = format!("{first}_{number}");
        }
        format!("${variable}")
    }

    /// The text with a variable in the place of each of these secrets.
    fn put(&mut self, text: &str, found: Vec<FoundSecret>) -> String {
        let mut out = String::new();
        let mut from = 0;
        for one in found.into_iter().filter(|one| !is_hidden(&text[one.at.clone()])) {
            out.push_str(&text[from..one.at.start]);
            out.push_str(&self.of(&one.name, &text[one.at.clone()]));
            from = one.at.end;
        }
        out.push_str(&text[from..]);
        out
    }
}

impl Secrets {
    /// Replaces the secrets of these options, by their long names, and learns their values.
    pub fn hide_options(&mut self, options: &mut BTreeMap<String, Value>) {
        if self.is_shown {
            return;
        }
        let mut variables = Variables::default();
        for (option, value) in &mut *options {
            self.hide_option(option, value, &mut variables);
        }
        for (name, value) in &variables.values {
            self.learn_found(&name[VARIABLE_PREFIX.len()..], value);
        }
        // What was found under one name may be repeated under another.
        let hidden = options.iter_mut();
        for (_, value) in hidden.filter(|(option, _)| !PLAIN.contains(&option.as_str())) {
            each_text(value, &mut |text| self.with_variables(text, &mut variables));
        }
    }

    /// The text with a variable in the place of each value that is known.
    fn with_variables(&self, text: &str, variables: &mut Variables) -> String {
        let name =
            |at: Range<usize>| FoundSecret { name: variables.name_of(&text[at.clone()]), at };
        let found = self.values.find(text).into_iter().map(name).collect();
        variables.put(text, found)
    }

    fn hide_option(&mut self, option: &str, value: &mut Value, variables: &mut Variables) {
        let option = option.replace('_', "-");
        if PLAIN.contains(&option.as_str()) {
            return;
        }
        each_text(value, &mut |text| {
            if let Some(user) = text.strip_suffix(MASK).filter(|_| option == "user") {
                // Of before there were variables.
                return format!("{user}${VARIABLE_PREFIX}PASSWORD");
            }
            let found = self.secrets_of_option(&option, text);
            for one in &found {
                self.learn_option(&option, text, one);
            }
            variables.put(text, found)
        });
    }

    /// Learns a secret in the form that goes with its option.
    fn learn_option(&mut self, option: &str, text: &str, found: &FoundSecret) {
        match option {
            "user" | "proxy-user" => self.learn_user(text),
            "cookie" => self.learn_cookies(text),
            "header" => self.learn_header(&found.name, &text[found.at.clone()]),
            _ => {}
        }
    }

    /// The secrets in what was given to an option.
    fn secrets_of_option(&self, option: &str, text: &str) -> Vec<FoundSecret> {
        let all_from =
            |begin: usize, name: &str| Vec::from_iter(FoundSecret::new(begin..text.len(), name));
        let names = &self.names;
        let is_file = text.starts_with('@') && option != "data-raw";
        match option {
            "body" | "data" | "data-binary" | "json-body" | "data-urlencode" if is_file => {
                Vec::new()
            }
            "cookie" => all_from(0, "cookie"),
            "user" | "proxy-user" => {
                text.find(':').map_or_else(Vec::new, |at| all_from(at + 1, "password"))
            }
            "header" => match text.split_once(':') {
                Some((name, value)) if names.is_secret(name) => {
                    let blanks = value.len() - value.trim_start().len();
                    all_from(name.len() + 1 + blanks, name)
                }
                _ => text::secrets_of(names, text),
            },
            "url" | "referer" | "proxy" => {
                let mut found = text::secrets_of_url(names, text);
                if let Some(user) = text::user_of_address(text) {
                    found.retain(|one| one.at.start > user.at.end);
                    found.insert(0, user);
                }
                found
            }
            "data-urlencode" => match text.split_once('=') {
                Some((name, _)) if names.is_secret(name) => all_from(name.len() + 1, name),
                _ => Vec::new(),
            },
            "form" => self.secrets_of_part(text),
            _ => match text::user_of_address(text) {
                Some(user) => vec![user],
                None if text::is_form(text) => text::secrets_of_form(names, text),
                None => text::secrets_of(names, text),
            },
        }
    }

    /// The secret in a part of a form: `NAME=TEXT;type=TYPE`.
    fn secrets_of_part(&self, text: &str) -> Vec<FoundSecret> {
        let Some((name, value)) = text.split_once('=') else {
            return Vec::new();
        };
        if value.starts_with(['@', '<']) || !self.names.is_secret(name) {
            return Vec::new();
        }
        let end = [";type=", ";filename="].into_iter().filter_map(|end| value.find(end)).min();
        let begin = name.len() + 1;
        let at = begin..begin + end.unwrap_or(value.len());
        Vec::from_iter(FoundSecret::new(at, name))
    }
}

impl Variables {
    /// The name of the variable for a value, without what all begin with.
    fn name_of(&self, value: &str) -> String {
        let mut known = self.values.iter();
        let known = known.find(|(_, known)| *known == value);
        known.map_or("VALUE", |(name, _)| &name[VARIABLE_PREFIX.len()..]).to_owned()
    }
}

/// Replaces each text of a value.
fn each_text(value: &mut Value, replace: &mut impl FnMut(&str) -> String) {
    match value {
        Value::String(text) => *text = replace(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, replace)),
        _ => {}
    }
}

/// Options whose value is a secret, or has one after a `:`. So has each whose long name ends in one
/// of `SECRET_WORDS`.
const OPTIONS: [&str; 4] = ["-u", "-U", "-b", "-E"];

/// Words of the names of options that take a secret.
const SECRET_WORDS: &str = "user pass password passwd tlspassword token bearer cookie cert";

/// Whether an option takes a secret.
fn takes_secret(option: &str) -> bool {
    let last = option.strip_prefix("--").and_then(|name| name.rsplit('-').next());
    OPTIONS.contains(&option)
        || last.is_some_and(|last| SECRET_WORDS.split(' ').any(|word| word == last))
}

/// Options whose value is a header.
const HEADERS: [&str; 2] = ["-H", "--header"];

/// Words after a header without quotes that may be its value.
const LOOSE_WORDS: usize = 2;

impl Secrets {
    /// The rule that these words ask for with `--secret NAME` and `--show-secrets`, with all
    /// secrets that the words themselves have.
    pub fn of_command_line(words: &[String]) -> Secrets {
        let options = || words.iter().take_while(|word| *word != "--");
        if options().any(|word| word == "--show-secrets") {
            return Secrets::default().shown();
        }
        let values = options().zip(words.iter().skip(1));
        let apart =
            values.filter(|(option, _)| *option == "--secret").map(|(_, name)| name.as_str());
        let joined = options().filter_map(|word| word.strip_prefix("--secret="));
        let mut secrets = Secrets::with(apart.chain(joined).map(str::to_owned));
        secrets.learn_words(words);
        secrets
    }

    /// Learns the secrets of these words, which may be those of curl.
    pub fn learn_words(&mut self, words: &[String]) {
        for (at, word) in words.iter().enumerate() {
            self.learn_text(word);
            let value = word.split_once('=').filter(|(option, _)| option.starts_with('-'));
            self.learn_address(value.map_or(word, |(_, value)| value));
            let next = words.get(at + 1).map_or("", String::as_str);
            if takes_secret(word) {
                self.learn_value(word, next);
            } else if HEADERS.contains(&word.as_str()) {
                self.learn_loose_header(next);
            } else if let Some((option, value)) = attached(word) {
                if HEADERS.contains(&option) {
                    self.learn_loose_header(value);
                } else {
                    self.learn_value(option, value);
                }
            }
            let is_header = word.strip_suffix(':').is_some_and(|name| self.names.is_secret(name));
            for loose in words.iter().skip(at + 1).take(LOOSE_WORDS).filter(|_| is_header) {
                self.learn(loose);
            }
            // A whole line in one word, as 'knee import curl' takes it.
            let line: Vec<String> = if word.contains(char::is_whitespace) {
                word.split_whitespace().map(without_quotes).collect()
            } else {
                Vec::new()
            };
            if line.first().is_some_and(|first| first == "curl") {
                self.learn_words(&line);
            }
        }
    }

    /// Learns the secrets of lines such as `Name: value`, as files of targets and scenarios have
    /// them, also where a line is wrong.
    pub fn learn_lines(&mut self, file: &str) {
        for line in file.lines() {
            self.learn_text(line);
            for part in line.split(['{', ',']) {
                let part = part.trim_matches([' ', '\t', '-', '}', '"', '\'']);
                let end = part.find([':', ' ', '"', '\'']).unwrap_or(part.len());
                let (name, value) = part.split_at(end);
                if self.names.is_secret(name) {
                    let value = value.trim_start_matches([':', ' ', '"', '\'']);
                    self.learn_found(name, value);
                }
            }
        }
    }

    fn learn_value(&mut self, option: &str, value: &str) {
        if option == "-b" || option.contains("cookie") {
            for cookie in value.split(';') {
                self.learn(cookie.split_once('=').map_or("", |(_, value)| value));
            }
        } else {
            // Behind a user, and behind the file of a certificate.
            self.learn_user(value);
            let is_file = option == "-E" || option.ends_with("cert");
            let is_user = option.eq_ignore_ascii_case("-u") || option.ends_with("user");
            let is_named = is_file || is_user && value.contains(':');
            if !is_named {
                self.learn(value);
            }
        }
    }

    /// Learns the user information of a word that is an address or was to be one. A short password
    /// is found with the user before it.
    fn learn_address(&mut self, word: &str) {
        let short = word.get(2..).filter(|_| word.starts_with('-') && !word.starts_with("--"));
        for word in [Some(word), short].into_iter().flatten() {
            if let Some(user) = text::user_of_address(word) {
                let user = &word[user.at];
                self.learn_found(text::USER_INFORMATION, user);
                // What is wrong may be said of a part.
                let (_, password) = user.split_once(':').unwrap_or_default();
                password.split(['/', '?', '#', '@', ':']).for_each(|part| self.learn(part));
            }
        }
    }

    /// Learns the value of a header, also where the `:` is missing.
    fn learn_loose_header(&mut self, text: &str) {
        let end = text.find([':', ' ', ';', '=']).unwrap_or(text.len());
        let (name, value) = text.split_at(end);
        self.learn_header(name.trim(), value.trim_start_matches([':', ' ', ';', '=']));
    }
}

/// `--user=value` and `-uvalue`.
fn attached(word: &str) -> Option<(&str, &str)> {
    let takes = |option: &str| takes_secret(option) || HEADERS.contains(&option);
    let (option, value) = match word.strip_prefix("--") {
        Some(_) => word.split_once('=')?,
        None => word.split_at_checked(2)?,
    };
    (takes(option) && !value.is_empty()).then_some((option, value))
}

fn without_quotes(word: &str) -> String {
    word.trim_matches(['\'', '"']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(line: &[&str], told: &str) -> String {
        let words: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
        Secrets::of_command_line(&words).hide(told).into_owned()
    }

    #[test]
    fn what_is_told_of_a_wrong_line_has_no_secret() {
        for (line, told) in [
            (
                &["-H", "Authorization Bearer canary-1"][..],
                "'Authorization Bearer canary-1' is none",
            ),
            (&["-H", "Authorization:", "Bearer", "canary-1"], "'canary-1': one too many"),
            (&["-b", "a=canary-1"], "'a=canary-1' can be a cookie"),
            (&["--cookie=x=canary-1"], "canary-1"),
            (&["-u", "me:canary-1"], "me:canary-1"),
            (&["-ucanary-1"], "canary-1: expected USER:PASSWORD"),
            (&["--token", "canary-1"], "canary-1"),
            (&["-x", "user:canary-1@h:1"], "proxy 'user:canary-1@h:1'"),
            (&["-xuser:canary-1@h:1"], "user:canary-1@h:1"),
            (&["--proxy=user:canary-1@h:1"], "canary-1"),
            (&["-x", "me:canary-1@[::1]:3128"], "me:canary-1@[::1]:3128"),
            (&["--proxy-pass", "canary-1"], "unexpected canary-1"),
            (&["--proxy-pass=me:canary-1"], "me:canary-1"),
            (&["--socks5", "user:canary-1@h"], "user:canary-1@h"),
            (&["--socks5-hostname=user:canary-1@h"], "user:canary-1@h"),
            (&["--otlp", "user:canary-1@h"], "--otlp: user:canary-1@h: expected a URL"),
            (&["--otlp", "http://canary-1@h:4318"], "http://canary-1@h:4318"),
            (&["-x", "me:pw@h:1"], "me:pw@h:1 canary is ***"),
            (&["--proxy-user", "me:canary-1"], "canary-1"),
            (&["-E", "file.pem:canary-1"], "file.pem:canary-1"),
            (&["http://u:canary-1#x@h/"], "http://u:canary-1#x@h/"),
            (&["http://u:canary-1/x@h/"], "'canary-1' is no port"),
            (&["http:/u:canary-1@h/"], "canary-1"),
            (&["http//u:canary-1@h/"], "canary-1"),
            (&["htp://u:canary-1@h/"], "htp://u:canary-1@h/"),
            (&["//u:canary-1@h/"], "'//u:canary-1@h/' has no host"),
            (&["http://u:canary 1@h/"], "'http://u:canary 1@h/' has a blank"),
            (&["http://u:c%61nary-1@h/"], "user c%61nary-1"),
            (&["u:canary-1@h/a"], "u:canary-1@h/a"),
            (&["--url=u:canary-1@h"], "u:canary-1@h"),
            (&["curl", "curl -x u:canary-1@h:1 http://h"], "option --proxy u:canary-1@h:1"),
            (&["--secret", "tenant", "http://h/?tenant=canary-1"], "canary-1"),
            (&["--secret=tenant", "{\"tenant\": \"canary-1\"}"], "canary-1"),
            (&["curl", "curl -u me:canary-1 -H 'a: b'"], "option canary-1"),
        ] {
            let hidden = hidden(line, told);
            assert!(hidden.contains("***"), "{line:?}: {hidden}");
            assert!(!hidden.contains("canary-1"), "{line:?}: {hidden}");
            assert!(!hidden.contains("canary 1") && !hidden.contains(":pw@"), "{line:?}: {hidden}");
        }
    }

    #[test]
    fn ordinary_values_are_told() {
        let line = ["run", "http://h/?page=2", "-H", "Accept: text/plain", "-d", "10s"];
        for told in ["'text/plain' is wrong", "http://h/?page=2", "10s", "me"] {
            assert_eq!(hidden(&line, told), told);
        }
        for (line, told) in [
            (&["http://h:80/a?mail=joe@h.test"][..], "http://h:80/a?mail=joe@h.test"),
            (&["http://h/@scope/name:1"], "/@scope/name:1"),
            (&["-d", "{\"at\": \"12:30\", \"mail\": \"joe@h.test\"}"], "12:30 joe@h.test"),
            (&["-d", "mail=joe@h.test"], "mail=joe@h.test"),
            (&["-d", "@file:name"], "@file:name"),
            (&["--body", "@/tmp/a:b"], "/tmp/a:b"),
            (&["joe@h.test"], "joe@h.test"),
            (&["127.0.0.1:8080"], "127.0.0.1:8080"),
            (&["-H", "From: joe@h.test"], "From: joe@h.test"),
            (&["--cert", "file.pem"], "file.pem"),
            (&["--token-file", "/etc/knee/secret-file"], "/etc/knee/secret-file"),
        ] {
            assert_eq!(hidden(line, told), told);
        }
        let shown = ["-u", "me:canary-1", "--show-secrets"];
        assert_eq!(hidden(&shown, "me:canary-1"), "me:canary-1");
    }
}
