//! The parts of what was imported: requests and texts, wherever they lie.

use super::model::*;
use super::text::ImportedText;
use knee_load::session::{CssSelector, Pattern, parse_pointer};
use std::cmp::Ordering;
use std::collections::HashSet;

/// The deepest nesting of a condition.
const CONDITION_DEPTH_MAX: usize = 12;

impl<R> ImportedStep<R> {
    /// Whether a request is in it.
    pub(super) fn sends(&self) -> bool {
        match self {
            ImportedStep::Request(_) => true,
            other => other.inner().into_iter().flatten().any(ImportedStep::sends),
        }
    }

    /// The lists of steps in it.
    pub(super) fn inner(&self) -> Vec<&[ImportedStep<R>]> {
        match self {
            ImportedStep::Repeat { steps, .. }
            | ImportedStep::Group { steps, .. }
            | ImportedStep::Parallel(steps) => vec![steps],
            ImportedStep::When { steps, otherwise, .. } => vec![steps, otherwise],
            ImportedStep::Choose(choices) => choices.iter().map(|(_, steps)| &**steps).collect(),
            ImportedStep::Request(_) | ImportedStep::Think(_) | ImportedStep::Set(_) => Vec::new(),
        }
    }

    /// The same, to be changed.
    pub(super) fn inner_mut(&mut self) -> Vec<&mut Vec<ImportedStep<R>>> {
        match self {
            ImportedStep::Repeat { steps, .. }
            | ImportedStep::Group { steps, .. }
            | ImportedStep::Parallel(steps) => vec![steps],
            ImportedStep::When { steps, otherwise, .. } => vec![steps, otherwise],
            ImportedStep::Choose(choices) => choices.iter_mut().map(|(_, steps)| steps).collect(),
            ImportedStep::Request(_) | ImportedStep::Think(_) | ImportedStep::Set(_) => Vec::new(),
        }
    }

    /// Puts all texts of the step and of the steps in it; `request` puts those of a request.
    pub(super) fn texts_by<'a>(
        &'a self,
        request: impl Fn(&'a R, &mut Vec<&'a ImportedText>) + Copy,
        into: &mut Vec<&'a ImportedText>,
    ) {
        match self {
            ImportedStep::Request(own) => request(own, into),
            ImportedStep::Set(variables) => into.extend(variables.iter().map(|(_, text)| text)),
            ImportedStep::When { condition, .. } => condition.texts(into),
            ImportedStep::Repeat { times, .. } => times.texts(into),
            ImportedStep::Think(_)
            | ImportedStep::Choose(_)
            | ImportedStep::Parallel(_)
            | ImportedStep::Group { .. } => {}
        }
        self.inner().into_iter().flatten().for_each(|step| step.texts_by(request, into));
    }
}

impl ImportedStep {
    /// Puts the names of the groups in it.
    pub(super) fn groups(&self, into: &mut HashSet<String>) {
        if let ImportedStep::Group { name, .. } = self {
            into.insert(name.clone());
        }
        self.inner().into_iter().flatten().for_each(|step| step.groups(into));
    }

    /// What a scenario file cannot have in this step, those in it apart.
    pub(super) fn mistake(&self) -> Option<String> {
        match self {
            ImportedStep::When { condition, .. } => condition.mistake(0),
            ImportedStep::Repeat { times, .. } => match times {
                ImportedRepeat::While(is, _) | ImportedRepeat::Until(is, _) => is.mistake(0),
                ImportedRepeat::Times(text) => match text.literal().map(str::parse::<u32>) {
                    Some(Ok(1..=1_000_000_000)) | None => None,
                    Some(_) => Some("it is done no whole number of times".to_owned()),
                },
                ImportedRepeat::Each(_) | ImportedRepeat::Elements(_) => None,
            },
            _ => None,
        }
    }

    /// Whether it may be done at the same time as others.
    pub(super) fn is_branch(&self) -> bool {
        match self {
            ImportedStep::Request(_) => true,
            ImportedStep::Parallel(_) | ImportedStep::Think(_) | ImportedStep::Set(_) => false,
            other => !other.has_branches(),
        }
    }

    fn has_branches(&self) -> bool {
        let is_parallel = matches!(self, ImportedStep::Parallel(_));
        is_parallel || self.inner().into_iter().flatten().any(ImportedStep::has_branches)
    }

    /// Puts the requests in it.
    pub(super) fn requests<'a>(&'a mut self, into: &mut Vec<&'a mut ImportedRequest>) {
        match self {
            ImportedStep::Request(request) => into.push(request),
            other => other.inner_mut().into_iter().flatten().for_each(|step| step.requests(into)),
        }
    }

    /// Puts all texts of the step and of the steps in it.
    pub(super) fn texts<'a>(&'a self, into: &mut Vec<&'a ImportedText>) {
        self.texts_by(|request, into| request.texts(into), into);
    }

    /// What it is, for a line about it.
    pub(super) fn what(&self) -> &'static str {
        match self {
            ImportedStep::Request(_) => "a request",
            ImportedStep::Think(_) => "a pause",
            ImportedStep::Repeat { .. } => "a repetition",
            ImportedStep::When { .. } => "a condition with its steps",
            ImportedStep::Choose(_) => "a choice",
            ImportedStep::Parallel(_) => "steps at the same time",
            ImportedStep::Set(_) => "a variable",
            ImportedStep::Group { .. } => "a group",
        }
    }
}

impl ImportedCondition {
    /// The condition that holds where this one does not.
    pub fn opposite(self) -> ImportedCondition {
        use ImportedRelation::*;
        match self {
            ImportedCondition::Not(other) => *other,
            ImportedCondition::Compare(left, relation, right) => {
                let other = match relation {
                    Equal => NotEqual,
                    NotEqual => Equal,
                    Less => AtLeast,
                    AtLeast => Less,
                    Greater => AtMost,
                    AtMost => Greater,
                    Contains | Matches => {
                        let same = ImportedCondition::Compare(left, relation, right);
                        return ImportedCondition::Not(Box::new(same));
                    }
                };
                ImportedCondition::Compare(left, other, right)
            }
            other => ImportedCondition::Not(Box::new(other)),
        }
    }

    /// What a scenario file cannot have of it.
    pub(super) fn mistake(&self, depth: usize) -> Option<String> {
        if depth > CONDITION_DEPTH_MAX {
            return Some("a condition that is nested too deeply".to_owned());
        }
        match self {
            ImportedCondition::All(all) | ImportedCondition::Any(all) => {
                all.iter().find_map(|one| one.mistake(depth + 1))
            }
            ImportedCondition::Not(other) => other.mistake(depth + 2),
            ImportedCondition::Compare(left, relation, right) => {
                let has_both = |text: &ImportedText| {
                    let template = text.template();
                    template.contains('"') && template.contains('\'')
                };
                if has_both(left) || has_both(right) {
                    return Some("a text with both kinds of quotes".to_owned());
                }
                let is_pattern = *relation == ImportedRelation::Matches;
                is_pattern
                    .then(|| right.literal().map(pattern_mistake))?
                    .unwrap_or_else(|| Some("an expression that is not known".to_owned()))
            }
        }
    }

    /// Puts all texts in it.
    pub(super) fn texts<'a>(&'a self, into: &mut Vec<&'a ImportedText>) {
        match self {
            ImportedCondition::Compare(left, _, right) => into.extend([left, right]),
            ImportedCondition::All(all) | ImportedCondition::Any(all) => {
                all.iter().for_each(|one| one.texts(into));
            }
            ImportedCondition::Not(other) => other.texts(into),
        }
    }
}

impl ImportedRelation {
    /// Whether it holds of two values in this order.
    pub(super) fn holds(self, order: Ordering) -> bool {
        match self {
            ImportedRelation::Equal => order.is_eq(),
            ImportedRelation::NotEqual => order.is_ne(),
            ImportedRelation::Less => order.is_lt(),
            ImportedRelation::Greater => order.is_gt(),
            ImportedRelation::AtMost => order.is_le(),
            ImportedRelation::AtLeast => order.is_ge(),
            ImportedRelation::Contains | ImportedRelation::Matches => false,
        }
    }
}

/// What is wrong with a regular expression, in one line.
fn pattern_mistake(pattern: &str) -> Option<String> {
    crate::condition::pattern(pattern).err().map(|wrong| wrong.0)
}

impl ImportedRequest {
    /// Takes out patterns and selectors that a scenario cannot have, and says which.
    pub(super) fn drop_mistakes(&mut self) -> Vec<String> {
        let mut mistakes = Vec::new();
        self.extract.retain(|extract| {
            let mistake = match &extract.source {
                ImportedSource::Regex { pattern, group, .. } => match Pattern::parse(pattern) {
                    Ok(of) if group.is_none_or(|g| g as usize <= of.groups()) => None,
                    Ok(_) => Some("its expression has no such group".to_owned()),
                    Err(wrong) => Some(wrong.0),
                },
                ImportedSource::Css { selector, .. } => {
                    CssSelector::parse(selector).err().map(|wrong| wrong.0)
                }
                ImportedSource::Json(pointer) => parse_pointer(pointer).err().map(|wrong| wrong.0),
                _ => None,
            };
            mistakes.extend(mistake.iter().map(|what| format!("'{}': {what}", extract.name)));
            mistake.is_none()
        });
        let mut is_fit = |is: &ImportedMatch| {
            let mistake = is.pattern().and_then(pattern_mistake);
            mistakes.extend(mistake.iter().map(|what| format!("what is expected: {what}")));
            mistake.is_none()
        };
        self.expect.headers.retain(|(_, is)| is_fit(is));
        self.expect.body.retain(|(_, is)| is_fit(is));
        mistakes
    }

    /// Puts all texts of it.
    pub(super) fn texts<'a>(&'a self, into: &mut Vec<&'a ImportedText>) {
        into.push(&self.path);
        into.extend(self.headers.iter().map(|(_, value)| value));
        self.content.texts(into);
        self.expect.texts(into);
    }
}

impl ImportedRepeat {
    /// Puts all texts of it.
    pub(super) fn texts<'a>(&'a self, into: &mut Vec<&'a ImportedText>) {
        match self {
            ImportedRepeat::Times(text) | ImportedRepeat::Elements(text) => into.push(text),
            ImportedRepeat::Each(texts) => into.extend(texts),
            ImportedRepeat::While(is, _) | ImportedRepeat::Until(is, _) => is.texts(into),
        }
    }
}

impl ImportedBody {
    /// Puts all texts of it.
    pub(super) fn texts<'a>(&'a self, into: &mut Vec<&'a ImportedText>) {
        match self {
            ImportedBody::Text(text) => into.push(text),
            ImportedBody::Form(pairs) => into.extend(pairs.iter().map(|(_, value)| value)),
            ImportedBody::JsonValue(json) => json.texts(into),
            ImportedBody::Multipart(parts) => {
                into.extend(parts.iter().filter_map(|(_, part)| part.content.as_ref().ok()));
            }
            ImportedBody::None | ImportedBody::Json(_) | ImportedBody::File(_) => {}
        }
    }
}

impl ImportedExpect {
    /// Puts all texts of it.
    pub(super) fn texts<'a>(&'a self, into: &mut Vec<&'a ImportedText>) {
        let matches = self.headers.iter().map(|(_, is)| is);
        let matches = matches.chain(self.body.iter().map(|(_, is)| is));
        into.extend(matches.filter_map(ImportedMatch::text));
    }
}

impl ImportedJson {
    fn texts<'a>(&'a self, into: &mut Vec<&'a ImportedText>) {
        match self {
            ImportedJson::Text(text) | ImportedJson::Value(text) => into.push(text),
            ImportedJson::List(list) => list.iter().for_each(|json| json.texts(into)),
            ImportedJson::Object(pairs) => pairs.iter().for_each(|(_, json)| json.texts(into)),
            ImportedJson::Plain(_) => {}
        }
    }
}

impl ImportedMatch {
    fn pattern(&self) -> Option<&str> {
        match self {
            ImportedMatch::Matches(pattern) => Some(pattern),
            ImportedMatch::Not(other) => other.pattern(),
            _ => None,
        }
    }

    fn text(&self) -> Option<&ImportedText> {
        match self {
            ImportedMatch::Equals(text)
            | ImportedMatch::Contains(text)
            | ImportedMatch::Above(text)
            | ImportedMatch::Below(text)
            | ImportedMatch::AtLeast(text)
            | ImportedMatch::AtMost(text) => Some(text),
            ImportedMatch::Not(other) => other.text(),
            ImportedMatch::Matches(_) | ImportedMatch::Exists(_) => None,
        }
    }
}
