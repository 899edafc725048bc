//! Bars made of parts, one bar below the other: what a whole consists of.

use crate::plot::Tone;

/// Bars under a title.
#[derive(Clone, Debug)]
pub(crate) struct Stacks {
    /// What they show.
    pub title: String,
    /// What a bar is.
    pub note: String,
    /// The names of the parts that occur, each with its tone.
    pub parts: Vec<(&'static str, Tone)>,
    /// The bars.
    pub rows: Vec<Stack>,
}

/// One bar.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    /// What it is of.
    pub name: String,
    /// Its length, in words.
    pub value: String,
    /// The time that the whole width stands for.
    pub whole_ns: u64,
    /// Its parts from the left: name, tone, length.
    pub parts: Vec<(&'static str, Tone, u64)>,
}
