//! How to get at a NATS: options, and the environment variables that the `nats` tool reads.

use super::values::parse_whole;
use crate::failure::Failure;
use crate::input;
use clap::Args;
use knee_fleet::NatsAccess;
use std::path::PathBuf;

/// No password is longer, in bytes.
const SECRET_MAX: usize = 4_096;

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "NATS")]
pub struct NatsArgs {
    /// Context of the 'nats' tool that says where NATS is and how to log in
    /// [default: the environment variable NATS_CONTEXT]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    nats_context: Option<String>,

    /// User of NATS [default: NATS_USER; the password of NATS_PASSWORD]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    nats_user: Option<String>,

    /// File that contains the password
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    nats_password_file: Option<String>,

    /// File that contains a token, in place of a user [default: the token of NATS_TOKEN]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    nats_token_file: Option<String>,

    /// File of a user's credentials [default: NATS_CREDS]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    nats_creds: Option<PathBuf>,

    /// File of a user's nkey seed [default: NATS_NKEY]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    nats_nkey: Option<PathBuf>,

    /// PEM file of the certificates to trust beside the system's [default: NATS_CA]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    nats_ca: Option<PathBuf>,

    /// PEM file of the certificate to show to NATS [default: NATS_CERT]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    nats_cert: Option<PathBuf>,

    /// PEM file of its private key [default: NATS_KEY]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    nats_key: Option<PathBuf>,
}

impl NatsArgs {
    /// Where NATS is, `url` where that is given as `option`.
    pub fn access(&self, option: &str, url: Option<&str>) -> Result<NatsAccess, Failure> {
        if url.is_some_and(|url| url.contains('@')) {
            let wrong = "a password in a URL is visible to other users in 'ps': give it with \
                         NATS_USER and NATS_PASSWORD, or use --nats-creds";
            return Err(Failure::argument(option, wrong));
        }
        let of = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let file = |given: &Option<PathBuf>, name: &str| {
            given.clone().or_else(|| of(name).map(PathBuf::from))
        };
        let secret = |given: &Option<String>, option: &str, name: &str| match given {
            Some(path) => read_secret(option, path).map(Some),
            None => Ok(of(name)),
        };
        let access = NatsAccess {
            url: url.map(str::to_owned).or_else(|| of("NATS_URL")).unwrap_or_default(),
            user: self.nats_user.clone().or_else(|| of("NATS_USER")),
            password: secret(&self.nats_password_file, "--nats-password-file", "NATS_PASSWORD")?,
            token: secret(&self.nats_token_file, "--nats-token-file", "NATS_TOKEN")?,
            creds: file(&self.nats_creds, "NATS_CREDS"),
            nkey: file(&self.nats_nkey, "NATS_NKEY"),
            ca: file(&self.nats_ca, "NATS_CA"),
            cert: file(&self.nats_cert, "NATS_CERT"),
            key: file(&self.nats_key, "NATS_KEY"),
        };
        let access = match self.nats_context.clone().or_else(|| of("NATS_CONTEXT")) {
            Some(context) => access
                .or_context(&context, &contexts())
                .map_err(|e| Failure::input(e.to_string()))?,
            None => access,
        };
        if access.url.is_empty() {
            let wrong = "is missing: give where NATS is, such as nats://127.0.0.1:4222, or set \
                             NATS_URL";
            Err(Failure::argument(option, wrong))
        } else {
            Ok(access)
        }
    }
}

/// Where the `nats` tool keeps its contexts.
fn contexts() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".config");
    let config = std::env::var_os("XDG_CONFIG_HOME").filter(|path| !path.is_empty());
    config.map_or_else(home, PathBuf::from).join("nats/context")
}

fn read_secret(option: &str, path: &str) -> Result<String, Failure> {
    let text = input::read_text(path)?;
    let text = text.trim_end_matches(['\r', '\n']);
    match text.len() {
        1..=SECRET_MAX if !text.contains('\n') => Ok(text.to_owned()),
        _ => {
            let wrong = format!("'{path}' is to hold one line of up to {SECRET_MAX} bytes");
            Err(Failure::argument(option, wrong))
        }
    }
}

/// A rate in operations per second, at least 1.
pub fn parse_rate_max(text: &str) -> Result<f64, knee_load::spec::ParseError> {
    match parse_whole(text)? {
        0 => Err(knee_load::spec::ParseError(format!(
            "'{text}' is too few: expected at least 1 operation per second"
        ))),
        n => Ok(n as f64),
    }
}
