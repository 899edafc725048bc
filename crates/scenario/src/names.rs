//! Meaning of the names in templates.

use super::ScenarioInputs;
use super::fault::{nearest, unknown};
use knee_load::quantity::quoted;

/// What templates are read with.
pub(super) struct TemplateScope<'a> {
    pub(super) names: &'a Names,
    pub(super) inputs: &'a mut dyn ScenarioInputs,
}

/// What the names in a template mean.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// The variables of the session, those of later steps too, by their number, and whether each
    /// may have a value by now.
    pub(super) variables: Vec<(String, bool)>,
    /// The data sets of the session, by their number there, with their columns.
    pub(super) data: Vec<(String, Vec<String>)>,
    /// All data sets of the scenario.
    pub(super) all_data: Vec<String>,
    /// The variables of `setup`, by their numbers.
    pub(super) setup: Vec<String>,
    /// It is settled before any session begins.
    pub(super) is_static: bool,
}

impl Names {
    /// The error for a name that is no variable. It suggests the nearest variable, column of a
    /// record or function.
    pub(super) fn unknown_variable(&self, name: &str) -> String {
        let variables = self.variables.iter().map(|(name, _)| name.as_str());
        let own = variables.clone().map(|name| (name, name.to_owned()));
        let columns = self.data.iter().flat_map(|(set, columns)| {
            let shown = move |column: &String| format!("{set}.{column}");
            columns.iter().map(move |column| (column.as_str(), shown(column)))
        });
        let functions = FUNCTIONS.iter().map(|(name, shape)| (*name, (*shape).to_owned()));
        let all: Vec<(&str, String)> = own.chain(columns).chain(functions).collect();
        let near = nearest(name, all.iter().map(|(word, _)| *word));
        let meant = near.and_then(|near| all.iter().find(|(word, _)| *word == near));
        let shown = quoted(name);
        match meant {
            Some((_, meant)) => format!("unknown variable {shown}: did you mean '{meant}'?"),
            None if self.variables.is_empty() => format!(
                "unknown variable {shown}: 'extract' or 'gives' in an earlier step sets one"
            ),
            None => unknown("variable", name, variables),
        }
    }
}

/// The functions, and how each is written.
pub(super) const FUNCTIONS: [(&str, &str); 9] = [
    ("random", "random(1,50)"),
    ("uuid", "uuid()"),
    ("now", "now(unix_ms), now(unix_s) or now(rfc3339)"),
    ("seq", "seq()"),
    ("env", "env(NAME)"),
    ("base64", "base64(TEXT)"),
    ("hmac_sha256", "hmac_sha256(KEY, MESSAGE)"),
    ("urlencode", "urlencode(TEXT)"),
    ("raw", "raw(TEXT)"),
];

/// Whether a text can name a variable, a data set or a column in a template.
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(is_name_start) && text.chars().all(is_name_part)
}

pub(super) fn is_name_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

pub(super) fn is_name_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}
