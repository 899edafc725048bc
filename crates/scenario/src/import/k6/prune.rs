//! Variables that nothing uses are not set: scripts have many for their logs alone.

use super::super::{ImportedExtract, ImportedText};
use super::interpreter::{K6Interpreter, K6Phase, K6Request, K6Step, texts_in};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// How often what is left is looked at again.
const ROUNDS_MAX: usize = 20;

impl K6Interpreter<'_, '_> {
    /// Takes out of all lists of steps what sets variables that nothing uses.
    pub(super) fn prune(&mut self, lists: &mut [Vec<K6Step>]) {
        for _ in 0..ROUNDS_MAX {
            let used: HashSet<String> =
                names(lists, &self.requests).into_iter().map(str::to_owned).collect();
            let mut is_done = true;
            for (number, list) in lists.iter_mut().enumerate() {
                // Variables of the setup, which is first, are used by their long name.
                let before = if number == 0 { "setup." } else { "" };
                is_done &= !unset(list, &used, before);
            }
            for request in &mut self.requests {
                let of_setup = request.phase == K6Phase::Setup;
                let is_used = |extract: &ImportedExtract| {
                    let name = &extract.name;
                    used.contains(name) || (of_setup && used.contains(&format!("setup.{name}")))
                };
                if !request.draft.extract.iter().all(is_used) {
                    Rc::make_mut(request).draft.extract.retain(is_used);
                    is_done = false;
                }
            }
            if is_done {
                break;
            }
        }
        let mut counts: HashMap<String, usize> = HashMap::new();
        for name in names(lists, &self.requests) {
            self.used.insert(name.trim_start_matches("setup.").to_owned());
            *counts.entry(name.to_owned()).or_default() += 1;
        }
        let once = |name: &str| counts.get(name) == Some(&1);
        lists.iter_mut().for_each(|list| inline(list, &mut self.requests, &once));
    }
}

/// Writes what is drawn for one request alone into that request.
fn inline(
    steps: &mut Vec<K6Step>,
    requests: &mut [Rc<K6Request>],
    is_used_once: &dyn Fn(&str) -> bool,
) {
    let mut at = 0;
    while at < steps.len() {
        let drawn = match &steps[at] {
            K6Step::Set(set) if set.len() == 1 && is_used_once(&set[0].0) => {
                let (name, text) = &set[0];
                let drawn = text.only_value().filter(|drawn| drawn.contains('('));
                drawn.map(|drawn| (name.clone(), drawn.to_owned()))
            }
            _ => None,
        };
        let is_inlined = drawn.is_some_and(|(name, drawn)| {
            steps.iter().skip(at).any(|step| match step {
                K6Step::Request(number) => requests
                    .get_mut(*number)
                    .is_some_and(|request| Rc::make_mut(request).replace_value(&name, &drawn)),
                _ => false,
            })
        });
        if is_inlined {
            steps.remove(at);
            continue;
        }
        for inner in steps[at].inner_mut() {
            inline(inner, requests, is_used_once);
        }
        at += 1;
    }
}

/// The names that steps use, each as often as they do.
fn names<'s>(lists: &'s [Vec<K6Step>], requests: &'s [Rc<K6Request>]) -> Vec<&'s str> {
    let texts = texts_in(lists.iter().flatten(), requests);
    texts.into_iter().flat_map(ImportedText::names).collect()
}

/// Takes out what sets variables that are not used, and what then does nothing; whether there was
/// such.
fn unset(steps: &mut Vec<K6Step>, used: &HashSet<String>, before: &str) -> bool {
    let mut has_changed = false;
    steps.retain_mut(|step| {
        for inner in step.inner_mut() {
            has_changed |= unset(inner, used, before);
        }
        let is_kept = match step {
            K6Step::Request(_) | K6Step::Think(_) => true,
            K6Step::Set(variables) => {
                let length = variables.len();
                variables.retain(|(name, _)| {
                    used.contains(name) || used.contains(&format!("{before}{name}"))
                });
                has_changed |= variables.len() < length;
                !variables.is_empty()
            }
            other => other.inner().into_iter().any(|steps| !steps.is_empty()),
        };
        has_changed |= !is_kept;
        is_kept
    });
    has_changed
}

impl K6Request {
    /// Puts an expression in the place of a variable; whether it was there.
    fn replace_value(&mut self, variable: &str, by: &str) -> bool {
        let draft = &mut self.draft;
        let mut texts = vec![&mut draft.url];
        texts.extend(draft.headers.iter_mut().map(|(_, value)| value));
        draft.content.texts_mut(&mut texts);
        let mut is_there = false;
        for text in texts {
            is_there |= text.replace_value(variable, by);
        }
        is_there
    }

    /// Puts all texts of it.
    pub(super) fn texts<'t>(&'t self, into: &mut Vec<&'t ImportedText>) {
        into.push(&self.draft.url);
        into.extend(self.draft.headers.iter().map(|(_, value)| value));
        self.draft.content.texts(into);
        self.draft.expect.texts(into);
    }
}
