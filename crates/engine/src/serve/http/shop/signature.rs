//! Tokens that say whose they are: nothing has to be remembered of those that were given.

use std::hash::{DefaultHasher, Hash, Hasher};

/// Signs names. Good enough to tell a token that was given from one that was made up by mistake;
/// it is no protection against anybody who tries.
#[derive(Debug)]
pub(super) struct Signer {
    seed: u64,
}

impl Signer {
    /// Another seed signs otherwise.
    pub(super) fn new(seed: u64) -> Signer {
        Signer { seed }
    }

    /// 16 hexadecimal digits for this text as used for this purpose.
    pub(super) fn sign(&self, purpose: &str, text: &str) -> String {
        let mut hasher = DefaultHasher::new();
        (self.seed, purpose, text).hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }

    /// A token of this user: the name in hexadecimal digits, and its signature.
    pub(super) fn token(&self, purpose: &str, user: &str) -> String {
        let name: String = user.bytes().map(|b| format!("{b:02x}")).collect();
        format!("{name}.{}", self.sign(purpose, user))
    }

    /// Whose token this is; `None` where it was never given for this purpose.
    pub(super) fn user(&self, purpose: &str, token: &str) -> Option<String> {
        let (name, signature) = token.split_once('.')?;
        let digits = name.as_bytes().chunks(2);
        let bytes: Option<Vec<u8>> = digits
            .map(|pair| {
                let text = std::str::from_utf8(pair).ok().filter(|t| t.len() == 2)?;
                u8::from_str_radix(text, 16).ok()
            })
            .collect();
        let user = String::from_utf8(bytes?).ok()?;
        (self.sign(purpose, &user) == signature).then_some(user)
    }
}
