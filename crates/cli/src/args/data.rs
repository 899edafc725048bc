//! Data for a body, in pieces of several kinds: their order counts.

use clap::{ArgMatches, Args, Command, FromArgMatches, Id};
use knee_scenario::import::data::{CurlData, DataKind};

/// The options. Their order among each other is not in them.
#[derive(Args, Clone, Debug)]
struct DataOptions {
    /// Data, or @FILE without its line ends, as in curl; repeated, joined with '&'. The content
    /// type is application/x-www-form-urlencoded unless -T or -H gives another
    #[arg(long, value_name = "DATA", alias = "data-ascii", hide_short_help = true)]
    data: Vec<String>,

    /// The same without a special meaning of @
    #[arg(long, value_name = "DATA", hide_short_help = true, allow_hyphen_values = true)]
    data_raw: Vec<String>,

    /// The same; a file's line ends stay
    #[arg(long, value_name = "DATA", hide_short_help = true, allow_hyphen_values = true)]
    data_binary: Vec<String>,

    /// The same, percent-encoded: TEXT, NAME=TEXT, @FILE or NAME@FILE
    #[arg(long, value_name = "DATA", hide_short_help = true, allow_hyphen_values = true)]
    data_urlencode: Vec<String>,

    /// Body of JSON, or @FILE, with the content type application/json
    #[arg(long, value_name = "JSON", hide_short_help = true)]
    json_body: Vec<String>,
}

/// Each option by its name, and what it gives.
const KINDS: [(&str, DataKind); 5] = [
    ("data", DataKind::Data),
    ("data_raw", DataKind::Raw),
    ("data_binary", DataKind::Binary),
    ("data_urlencode", DataKind::Urlencode),
    ("json_body", DataKind::Json),
];

/// What clap calls these options.
pub const IDS: [&str; 5] = ["data", "data_raw", "data_binary", "data_urlencode", "json_body"];

/// What the options give, in the order in which they were typed.
#[derive(Clone, Debug, Default)]
pub struct DataArgs(pub Vec<CurlData>);

impl DataArgs {
    /// Whether there is any.
    pub fn is_given(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether it is JSON.
    pub fn is_json(&self) -> bool {
        self.0.iter().any(|piece| piece.kind == DataKind::Json)
    }

    /// Each option without its dashes, with what it was given.
    pub fn by_option(&self) -> impl Iterator<Item = (String, Vec<String>)> {
        KINDS.into_iter().map(|(id, kind)| {
            let given = self.0.iter().filter(|piece| piece.kind == kind);
            (id.replace('_', "-"), given.map(|piece| piece.text.clone()).collect())
        })
    }
}

impl Args for DataArgs {
    fn group_id() -> Option<Id> {
        DataOptions::group_id()
    }

    fn augment_args(command: Command) -> Command {
        DataOptions::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        DataOptions::augment_args_for_update(command)
    }
}

impl FromArgMatches for DataArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<DataArgs, clap::Error> {
        let mut pieces = Vec::new();
        for (id, kind) in KINDS {
            let values = matches.get_many::<String>(id).into_iter().flatten();
            let places = matches.indices_of(id).into_iter().flatten();
            let piece = |text: &String| CurlData { kind, text: text.clone() };
            pieces.extend(places.zip(values.map(piece)));
        }
        pieces.sort_by_key(|(place, _)| *place);
        Ok(DataArgs(pieces.into_iter().map(|(_, piece)| piece).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = DataArgs::from_arg_matches(matches)?;
        Ok(())
    }
}
