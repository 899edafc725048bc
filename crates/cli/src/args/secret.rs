//! Which further names belong to secrets, and whether secrets are shown.

use clap::Args;
use knee_load::secrets::Secrets;

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Secrets")]
pub struct SecretArgs {
    /// Name of a further secret, repeatable: a header, query parameter, form or JSON field, cookie,
    /// or variable or data column of a scenario
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
        if self.show_secrets {
            Secrets::shown()
        } else {
            Secrets::with(self.secret.iter().cloned())
        }
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
