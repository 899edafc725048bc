//! Credentials of requests, which a scenario takes from the environment.

use super::ImportedText;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use knee_load::secrets::SecretNames;
use std::collections::BTreeMap;

/// What a header with credentials becomes, with the variables and what they stand for. `None` where
/// it has none: cookies and tokens against forged requests are of a session.
pub(super) fn of_environment(
    names: &SecretNames,
    name: &str,
    value: &ImportedText,
    variables: &mut BTreeMap<String, String>,
) -> Option<ImportedText> {
    let lower = name.to_ascii_lowercase();
    let is_of_session = ["cookie", "csrf", "xsrf"].iter().any(|word| lower.contains(word));
    let value = value.literal().filter(|value| !value.is_empty())?;
    if is_of_session || !names.is_secret(name) {
        return None;
    }
    let Some((scheme, credentials)) = value.split_once(' ') else {
        return Some(variable(name, value, variables));
    };
    let mut text = ImportedText::from(format!("{scheme} "));
    let user = BASE64.decode(credentials).ok().and_then(|user| String::from_utf8(user).ok());
    let user = user.filter(|_| scheme.eq_ignore_ascii_case("basic"));
    let encoded =
        user.as_deref().and_then(|user| user.split_once(':')).and_then(|(user, password)| {
            let mut both = ImportedText::from(format!("{user}:"));
            both.append(&variable("password", password, variables));
            ImportedText::call("base64", &[&both])
        });
    text.append(&encoded.unwrap_or_else(|| variable(name, credentials, variables)));
    Some(text)
}

/// The variable for a value that is called so: another one for each value.
fn variable(name: &str, value: &str, variables: &mut BTreeMap<String, String>) -> ImportedText {
    let capital = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = name.chars().map(capital).collect();
    let first = name.trim_matches('_').trim_start_matches("X_").to_owned();
    let mut variable = first.clone();
    for number in 2.. {
        let known = variables.entry(variable.clone());
        if known.or_insert_with(|| value.to_owned()) == value {
            break;
        }
        variable = format!("{first}_{number}");
    }
    ImportedText::value(format!("env({variable})"))
}
