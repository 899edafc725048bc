//! The secrets of a command line, found before it is parsed, as its errors must not show them.

use super::Secrets;

/// Options whose value is a secret, or has one after a `:`.
const OPTIONS: [&str; 9] = [
    "-u",
    "--user",
    "--proxy-user",
    "-U",
    "--token",
    "--oauth2-bearer",
    "--cookie",
    "-b",
    "--pass",
];

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
            return Secrets::shown();
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
            let next = words.get(at + 1).map_or("", String::as_str);
            if OPTIONS.contains(&word.as_str()) {
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
        match option {
            "-b" | "--cookie" => {
                for cookie in value.split(';') {
                    self.learn(cookie.split_once('=').map_or("", |(_, value)| value));
                }
            }
            "--token" | "--oauth2-bearer" | "--pass" => self.learn(value),
            _ => {
                self.learn_user(value);
                if !value.contains(':') {
                    self.learn(value);
                }
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
    let all = OPTIONS.iter().chain(&HEADERS);
    let of = |option: &&'static str| {
        let value = word.strip_prefix(option)?;
        let value = if option.starts_with("--") { value.strip_prefix('=')? } else { value };
        (!value.is_empty()).then_some((*option, value))
    };
    all.filter_map(of).next()
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
            (&["--secret", "tenant", "http://h/?tenant=canary-1"], "canary-1"),
            (&["--secret=tenant", "{\"tenant\": \"canary-1\"}"], "canary-1"),
            (&["curl", "curl -u me:canary-1 -H 'a: b'"], "option canary-1"),
        ] {
            let hidden = hidden(line, told);
            assert!(hidden.contains("***"), "{line:?}: {hidden}");
            assert!(!hidden.contains("canary-1"), "{line:?}: {hidden}");
        }
    }

    #[test]
    fn ordinary_values_are_told() {
        let line = ["run", "http://h/?page=2", "-H", "Accept: text/plain", "-d", "10s"];
        for told in ["'text/plain' is wrong", "http://h/?page=2", "10s", "me"] {
            assert_eq!(hidden(&line, told), told);
        }
        let shown = ["-u", "me:canary-1", "--show-secrets"];
        assert_eq!(hidden(&shown, "me:canary-1"), "me:canary-1");
    }
}
