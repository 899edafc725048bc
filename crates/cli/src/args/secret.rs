//! Secrets: the token that a client and a service share, and which further names belong to secrets.

use crate::failure::Failure;
use crate::input;
use clap::Args;
use knee_load::secrets::Secrets;

/// The environment variable that holds the token where no option does.
const VARIABLE: &str = "KNEE_TOKEN";

/// No token is longer, in bytes.
const TOKEN_MAX: usize = 1_024;

#[derive(Args, Clone, Debug, Default)]
pub struct TokenArgs {
    /// Secret shared by client and service; visible to other users in 'ps'
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,

    /// File that contains the token, up to 1,024 bytes
    /// [default: the environment variable KNEE_TOKEN]
    #[arg(long, value_name = "FILE", conflicts_with = "token", hide_short_help = true)]
    token_file: Option<String>,
}

impl TokenArgs {
    /// The option that gives one.
    pub fn option(&self) -> Option<&'static str> {
        match (&self.token, &self.token_file) {
            (Some(_), _) => Some("--token"),
            (None, Some(_)) => Some("--token-file"),
            (None, None) => None,
        }
    }

    /// The token, empty where there is none.
    pub fn resolve(&self) -> Result<String, Failure> {
        let names = ("--token", "--token-file");
        token(self.token.as_deref(), self.token_file.as_deref(), names)
    }

    /// The same at a service that listens at `listen`, which needs one where others reach it.
    /// `client` is the command that needs the same.
    pub fn resolve_for(
        &self,
        listen: std::net::SocketAddr,
        client: &str,
    ) -> Result<String, Failure> {
        let token = self.resolve()?;
        if token.is_empty() && !listen.ip().to_canonical().is_loopback() {
            let wrong = format!(
                "is needed at {listen}, which others can reach: give the same secret here and to \
                 {client} with --token-file FILE or {VARIABLE}, or listen at 127.0.0.1"
            );
            return Err(Failure::argument("--token", wrong));
        }
        Ok(token)
    }
}

/// The token that is given, in a file, or in the environment; empty where there is none.
pub(super) fn token(
    given: Option<&str>,
    file: Option<&str>,
    (option, file_option): (&str, &str),
) -> Result<String, Failure> {
    match (given, file) {
        (Some(token), _) => checked(token).map_err(|wrong| Failure::argument(option, wrong)),
        (None, Some(file)) => {
            let read = from_file(file);
            read.map_err(|wrong| Failure::argument(file_option, format!("{file}: {wrong}")))
        }
        (None, None) => match std::env::var(VARIABLE) {
            Ok(token) if token.is_empty() => Ok(token),
            Ok(token) => checked(&token).map_err(|wrong| Failure::argument(VARIABLE, wrong)),
            Err(std::env::VarError::NotPresent) => Ok(String::new()),
            Err(_) => Err(Failure::argument(VARIABLE, "is not UTF-8 text")),
        },
    }
}

/// A file's one line; an editor's line end is no part of it.
fn from_file(file: &str) -> Result<String, String> {
    let bytes = input::read_file(file, 2 * TOKEN_MAX as u64)?;
    let text = String::from_utf8(bytes).map_err(|_| "is not UTF-8 text".to_owned())?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    checked(line.strip_suffix('\r').unwrap_or(line))
}

fn checked(token: &str) -> Result<String, String> {
    match token {
        "" => Err("is empty: give a token of at least one character".to_owned()),
        text if text.contains(['\n', '\r']) => {
            Err("has several lines: give the token on one".to_owned())
        }
        text if text.len() > TOKEN_MAX => {
            Err(format!("has {} bytes: give a token of at most {TOKEN_MAX}", text.len()))
        }
        text => Ok(text.to_owned()),
    }
}

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Secrets")]
pub struct SecretArgs {
    /// Name of a further secret, repeatable: a header, query parameter, form or JSON field, cookie,
    /// variable or data column of a scenario, or variable of the environment that it reads
    ///
    /// Hidden without it, in all that is shown and written: Authorization, cookies and user
    /// information in URLs. Names with words such as token, password, secret or api-key are hidden
    /// too.
    #[arg(long, value_name = "NAME", value_parser = parse_name, hide_short_help = true)]
    secret: Vec<String>,

    /// Show secrets in the report, its files and the history
    #[arg(long, hide_short_help = true)]
    show_secrets: bool,
}

impl SecretArgs {
    /// What decides what is a secret.
    pub fn secrets(&self) -> Secrets {
        let secrets = Secrets::with(self.secret.iter().cloned());
        if self.show_secrets { secrets.shown() } else { secrets }
    }
}

fn parse_name(text: &str) -> Result<String, String> {
    if text.contains(char::is_alphanumeric) {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "invalid name '{text}': expected the name of a header, parameter, field or cookie"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_line_that_is_not_empty() {
        let longest = "x".repeat(TOKEN_MAX);
        for good in ["secret", "a secret", " ", "ü", &longest] {
            assert_eq!(checked(good).as_deref(), Ok(good));
        }
        for (bad, why) in [
            ("", "is empty"),
            ("a\nb", "has several lines"),
            (&format!("{longest}x"), "has 1025 bytes"),
        ] {
            let wrong = checked(bad).unwrap_err();
            assert!(wrong.starts_with(why), "{wrong}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_without_what_is_in_it() {
        for (file, why) in [
            ("/nonexistent", "cannot be read: "),
            ("/dev/zero", "is a device"),
            ("/tmp", "cannot be read: "),
            ("/proc/self/cmdline", ""),
        ] {
            if let Err(failure) = token(None, Some(file), ("--token", "--token-file")) {
                let line = failure.line;
                assert!(line.starts_with(&format!("--token-file: {file}: {why}")), "{line}");
            }
        }
    }
}
