//! What is a secret, and how it is hidden wherever something is shown or written.
//!
//! Two rules find secrets. The first goes by names: of headers, query parameters, fields of forms
//! and JSON, cookies, and by user information in URLs. The second goes by values: what was found
//! under a name is a secret wherever it is repeated.

mod document;
mod names;
mod options;
mod text;
mod values;

pub use names::SecretNames;
pub use options::variables_of;

use crate::percent;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use text::FoundSecret;
use values::SecretValues;

/// What stands in the place of a secret.
pub const MASK: &str = "***";

/// What the names of variables begin with that stand for secrets in a command.
pub const VARIABLE_PREFIX: &str = "KNEE_SECRET_";

/// Decides what is a secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secrets {
    names: SecretNames,
    values: Arc<SecretValues>,
    is_shown: bool,
}

impl Secrets {
    /// Hides what the known names and these belong to.
    pub fn with(further: impl IntoIterator<Item = String>) -> Secrets {
        Secrets { names: SecretNames::with(further), ..Secrets::default() }
    }

    /// The same, but hides nothing.
    pub fn shown(self) -> Secrets {
        Secrets { is_shown: true, ..self }
    }

    /// Whether it hides anything.
    pub fn hides(&self) -> bool {
        !self.is_shown
    }

    /// The names that belong to secrets.
    pub fn names(&self) -> &SecretNames {
        &self.names
    }

    /// The text with its secrets replaced.
    pub fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.is_shown {
            return Cow::Borrowed(text);
        }
        let places = |found: Vec<FoundSecret>| found.into_iter().map(|one| one.at).collect();
        let named = masked(text, places(text::secrets_of(&self.names, text)));
        match masked(&named, self.values.find(&named)) {
            Cow::Borrowed(_) => named,
            Cow::Owned(hidden) => Cow::Owned(hidden),
        }
    }

    /// The secrets of a URL or a path with its query: names and values.
    pub fn secrets_of_url(&self, url: &str) -> Vec<(String, String)> {
        named(url, text::secrets_of_url(&self.names, url))
    }

    /// The secrets of a body: names and values.
    pub fn secrets_of_body(&self, body: &str) -> Vec<(String, String)> {
        let found = if text::is_form(body) {
            text::secrets_of_form(&self.names, body)
        } else {
            text::secrets_of(&self.names, body)
        };
        named(body, found)
    }

    /// Learns a value, so that it is found without its name, as it is and as encodings write it.
    pub fn learn(&mut self, value: &str) {
        let value = value.trim();
        if self.is_shown || is_hidden(value) || self.values.has(value) {
            return;
        }
        let values = Arc::make_mut(&mut self.values);
        values.learn(value);
        values.learn(&percent::form_decoded(value).unwrap_or_default());
        values.learn(&percent::component(value.as_bytes()));
        let escaped = serde_json::to_string(value).unwrap_or_default();
        values.learn(escaped.trim_matches('"'));
        if let Ok(text) = serde_json::from_str::<String>(&format!("\"{value}\"")) {
            values.learn(&text);
        }
    }

    /// Learns the secrets in a header, whatever their form.
    pub fn learn_header(&mut self, name: &str, value: &str) {
        if self.names.is_secret(name) {
            self.learn_found(name, value);
        } else {
            self.learn_text(value);
        }
    }

    /// Learns the values of these cookies.
    pub fn learn_cookies(&mut self, text: &str) {
        for one in text::cookies(text) {
            let value = &text[one.at];
            // Under an ordinary name a word is a setting: `theme=dark`.
            if self.names.is_secret(&one.name) || value.len() >= COOKIE_MIN {
                self.learn(value);
            }
        }
    }

    /// Learns the password of `user:password`, and what Basic authentication makes of both.
    pub fn learn_user(&mut self, user: &str) {
        if let Some((_, password)) = user.split_once(':') {
            self.learn(password);
            self.learn(&BASE64.encode(user));
        }
    }

    /// Learns the secrets that this text has by their names.
    pub fn learn_text(&mut self, text: &str) {
        for one in text::secrets_of(&self.names, text) {
            self.learn_found(&one.name, &text[one.at]);
        }
    }

    /// Learns the value of a secret of this name, unless it looks like a word and the name is of
    /// other things as well.
    pub fn learn_found(&mut self, name: &str, value: &str) {
        let lower = name.to_ascii_lowercase();
        if lower == text::USER_INFORMATION {
            self.learn(value);
            self.learn_user(value);
        } else if lower.ends_with("cookie") {
            self.learn_cookies(value);
        } else if lower.ends_with("authorization") {
            self.learn_authorization(value.trim());
        } else {
            let is_word = value.bytes().all(|b| b.is_ascii_lowercase()) && value.len() < WORD_MAX;
            let is_weak = self.names.class(name) == Some(names::NameClass::Weak);
            if !is_weak || !is_word {
                self.learn(value);
            }
        }
    }

    /// Learns credentials without the scheme before them.
    fn learn_authorization(&mut self, value: &str) {
        let Some((scheme, credentials)) = value.split_once(' ') else {
            return self.learn(value);
        };
        self.learn(credentials);
        if scheme.eq_ignore_ascii_case("basic") {
            self.learn_basic(credentials.trim());
        }
    }

    fn learn_basic(&mut self, encoded: &str) {
        let decoded = BASE64.decode(encoded).ok();
        if let Some(user) = decoded.and_then(|bytes| String::from_utf8(bytes).ok()) {
            self.learn(&user);
            self.learn_user(&user);
        }
    }
}

fn named(text: &str, found: Vec<FoundSecret>) -> Vec<(String, String)> {
    let both = |one: FoundSecret| (one.name, text[one.at].to_owned());
    found.into_iter().map(both).collect()
}

/// Cookies of ordinary names are looked for from this length on.
const COOKIE_MIN: usize = 8;

/// A word of fewer letters may be found by chance.
const WORD_MAX: usize = 12;

/// The text with a mask in these places, which are in ascending order.
fn masked(text: &str, places: Vec<Range<usize>>) -> Cow<'_, str> {
    let mut out = String::new();
    let mut from = 0;
    for at in places {
        if !is_hidden(&text[at.clone()]) {
            out.push_str(&text[from..at.start]);
            out.push_str(MASK);
            from = at.end;
        }
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[from..]);
    Cow::Owned(out)
}

/// Whether this stands in the place of a secret already.
fn is_hidden(value: &str) -> bool {
    value == MASK || variables_of(value).first() == Some(&(0..value.len()))
}

#[cfg(test)]
mod tests;
