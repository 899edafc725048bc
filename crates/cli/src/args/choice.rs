//! Options whose value is one of a few words, each with what it stands for.

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Words and their values.
pub type Choices<T> = &'static [(&'static str, T)];

/// Parses one of these words.
pub fn one_of<T: Copy + Send + Sync + 'static>(
    choices: Choices<T>,
) -> impl TypedValueParser<Value = T> {
    let words = choices.iter().map(|(word, _)| *word);
    // The parser rejects any other word.
    PossibleValuesParser::new(words)
        .map(|typed| choices.iter().find(|(word, _)| *word == typed).unwrap_or(&choices[0]).1)
}

/// The word of a value; each value has one.
pub fn word_of<T: PartialEq>(choices: Choices<T>, value: T) -> &'static str {
    choices.iter().find(|(_, known)| *known == value).map_or("", |(word, _)| word)
}
