//! Which names belong to secrets.

use std::collections::BTreeSet;

/// A name with one of these words belongs to a secret: `X-Auth-Token`, `clientSecret`.
const WORDS: &str = "apikey authorization cookie credential credentials csrf jsessionid jwt \
                     passcode passphrase passwd password phpsessid pwd secret sessionid signature \
                     token xsrf";

/// So does a name with two of these words in this order.
const PAIRS: &str = "access-key account-key api-key auth-code auth-key connect-sid functions-key \
                     private-key secret-key session-id session-key signing-key subscription-key";

/// These names belong to secrets where they are the whole name.
const WHOLE: &str = "otp pin pw sid sig";

/// So do these, which other things are called too: a short number under one is no secret.
const WEAK: &str = "auth code key pass session";

/// A name that ends in one of these words is about a secret and holds none: `token_type`.
const ABOUT: &str = "at count expiration expires expiry field file hint in length limit max min \
                     name policy ttl type uri url";

/// Whether a word is in a list above.
fn is_in(list: &str, word: &str) -> bool {
    list.split(' ').any(|listed| listed == word)
}

/// How surely a name belongs to a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameClass {
    /// It is a common word as well: `code`, `key`.
    Weak,
    /// It names nothing else.
    Strong,
}

/// The names that belong to secrets. They have no case, and `-`, `_` and `.` are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretNames {
    further: BTreeSet<String>,
}

impl SecretNames {
    /// The known names and these.
    pub fn with(further: impl IntoIterator<Item = String>) -> SecretNames {
        let plain = |name: String| plain(&name);
        SecretNames { further: further.into_iter().map(plain).collect() }
    }

    /// How surely the name of a header, query parameter, field, cookie or variable belongs to a
    /// secret; `None`: it does not.
    pub fn class(&self, name: &str) -> Option<NameClass> {
        if self.further.contains(&plain(name)) {
            return Some(NameClass::Strong);
        }
        let words = words(name);
        let words = match words.split_first() {
            Some((first, rest)) if first == "x" => rest,
            _ => &words,
        };
        let last = words.last()?.as_str();
        if is_in(ABOUT, last) {
            return None;
        }
        let is_pair = |pair: &[String]| is_in(PAIRS, &pair.join("-"));
        let is_word = |word: &String| is_in(WORDS, word);
        if words.iter().any(is_word) || words.windows(2).any(is_pair) {
            return Some(NameClass::Strong);
        }
        match words {
            [word] if is_in(WHOLE, word) => Some(NameClass::Strong),
            [word] if is_in(WEAK, word) => Some(NameClass::Weak),
            _ => None,
        }
    }

    /// Whether the name belongs to a secret.
    pub fn is_secret(&self, name: &str) -> bool {
        self.class(name).is_some()
    }
}

/// The name without case and signs.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// The words of a name in lower case: signs divide them, and capitals after small letters do.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_small) {
            words.push(String::new());
        }
        was_small = c.is_lowercase() || c.is_ascii_digit();
        if let (true, Some(word)) = (c.is_alphanumeric(), words.last_mut()) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known() {
        let names = SecretNames::default();
        for name in [
            "Authorization",
            "proxy-authorization",
            "COOKIE",
            "Set-Cookie",
            "X-Api-Key",
            "api-key",
            "apikey",
            "x-auth-token",
            "X-CSRF-Token",
            "X-Amz-Security-Token",
            "Ocp-Apim-Subscription-Key",
            "token",
            "access_token",
            "accessToken",
            "client_secret",
            "refresh_token",
            "id_token",
            "jwt",
            "password",
            "user[password]",
            "new-password",
            "passwd",
            "pwd",
            "sig",
            "X-Amz-Signature",
            "sessionId",
            "PHPSESSID",
            "connect.sid",
            "x-auth-key",
        ] {
            assert_eq!(names.class(name), Some(NameClass::Strong), "{name}");
        }
        for name in ["code", "key", "Session", "auth", "X-Auth", "pass"] {
            assert_eq!(names.class(name), Some(NameClass::Weak), "{name}");
        }
    }

    #[test]
    fn ordinary_names_are_no_secrets() {
        let names = SecretNames::default();
        for name in [
            "",
            "Accept",
            "User-Agent",
            "X-Request-Id",
            "Idempotency-Key",
            "Sec-WebSocket-Key",
            "page",
            "sort_key",
            "status_code",
            "max_tokens",
            "token_type",
            "token_expires_in",
            "author",
            "keyboard",
            "passenger",
            "design",
            "x",
        ] {
            assert_eq!(names.class(name), None, "{name}");
        }
    }

    #[test]
    fn further_names_have_no_case_and_no_signs() {
        let names = SecretNames::with(["X-Tenant".to_owned(), "pinCode".to_owned()]);
        for name in ["x-tenant", "X_TENANT", "PIN_CODE", "pincode", "token"] {
            assert_eq!(names.class(name), Some(NameClass::Strong), "{name}");
        }
        assert_eq!(names.class("tenant"), None);
    }
}
