//! Loops: as a repetition if one pass says what each does, pass by pass otherwise.

use super::super::{ImportedCondition, ImportedRelation, ImportedRepeat, ImportedText};
use super::branches::{LeftByFlag, is_set};
use super::heap::{Slot, SlotValue};
use super::interpreter::{K6Flow, K6Interpreter, K6Snapshot, K6Step};
use super::loop_bounds::{LoopBound, numbered};
use super::responses::uses;
use super::value::{JsValue, K6Test, PartPlace};
use std::rc::Rc;

/// The most passes that are written one after another, and the most steps of them.
const PASSES_MAX: usize = 50;
const STEPS_MAX: usize = 200;

/// What a loop goes through.
pub(super) enum LoopElements<'a> {
    None,
    /// Known values, and the name of the variable.
    List(Vec<JsValue<'a>>, String),
    /// A list of the session, as a template.
    Session(ImportedText, String),
    /// What is not known, or too long.
    Unknown(String),
}

type LoopTest<'b, 'a, 'r> = &'b mut dyn FnMut(&mut K6Interpreter<'a, 'r>) -> K6Test<'a>;
type LoopBody<'b, 'a, 'r> =
    &'b mut dyn FnMut(&mut K6Interpreter<'a, 'r>, JsValue<'a>) -> K6Flow<'a>;

impl<'a> LoopElements<'a> {
    /// The name of the variable that has an element.
    fn name(&self) -> Option<&str> {
        match self {
            LoopElements::List(_, name) | LoopElements::Session(_, name) => Some(name),
            LoopElements::None | LoopElements::Unknown(_) => None,
        }
    }

    /// What stands for an element in a pass of any number: a variable with this name.
    fn element(&self, variable: &str) -> JsValue<'a> {
        self.name().map_or(JsValue::Undefined, |_| JsValue::Session(Rc::from(variable)))
    }
}

/// The test of a loop that goes on up to its last element.
pub(super) fn always<'a>(_: &mut K6Interpreter<'a, '_>) -> K6Test<'a> {
    K6Test::Known(true)
}

/// How a variable changes from pass to pass.
enum LoopVariable {
    /// It grows by 1 from this number, and is the number of the pass plus another.
    Counter(f64, f64),
    /// A variable of the session, and whether it is true or false.
    Set(Rc<str>, bool),
    /// A response, which is any of several.
    Response(usize),
    /// Anything else.
    Other,
}

/// How one pass was followed.
struct FollowedPass<'a> {
    test: K6Test<'a>,
    breaks: Vec<ImportedCondition>,
    left: LeftByFlag<'a>,
    flow: K6Flow<'a>,
    steps: Vec<K6Step>,
    /// The test changes a variable, once more after the last pass.
    has_test_set: bool,
}

impl<'a, 'r> K6Interpreter<'a, 'r> {
    /// Follows a loop.
    pub(super) fn repeat(
        &mut self,
        test: LoopTest<'_, 'a, 'r>,
        elements: LoopElements<'a>,
        body: LoopBody<'_, 'a, 'r>,
        is_do: bool,
    ) -> K6Flow<'a> {
        match &elements {
            LoopElements::Unknown(what) => {
                self.leave_out(format!("a loop over {what}"));
                return K6Flow::Normal;
            }
            LoopElements::List(list, _) if list.is_empty() => return K6Flow::Normal,
            LoopElements::List(list, _) if list.len() == 1 => {
                let pending = self.pending.len();
                let flow = body(self, list[0].clone());
                self.end_branches(pending, |f| matches!(f, K6Flow::Break | K6Flow::Continue));
                return ended(flow);
            }
            _ => {}
        }
        let before = self.snapshot();
        if !is_do {
            if matches!(test(self), K6Test::Known(false)) {
                return K6Flow::Normal;
            }
            // What the test sets belongs to the first pass.
            self.restore(&before);
        }
        let changed = self.changes(test, &elements, body);
        self.restore(&before);
        let mut is_lossless = self.as_repetition(test, &elements, body, is_do, &changed, 0.0);
        let mut lost = self.lost_since(&before);
        if is_lossless.is_err() || lost > 0 {
            // `page=${i + 1}`: the variable may be the number that is used.
            self.restore(&before);
            let shifted = self.as_repetition(test, &elements, body, is_do, &changed, 1.0);
            if shifted.is_ok() && self.lost_since(&before) == 0 {
                (is_lossless, lost) = (shifted, 0);
            }
        }
        if let Ok(flow) = &is_lossless
            && lost == 0
        {
            return flow.clone();
        }
        self.restore(&before);
        if let Some(flow) = self.pass_by_pass(test, &elements, body, is_do, &before)
            && (is_lossless.is_err() || self.lost_since(&before) < lost)
        {
            return flow;
        }
        self.restore(&before);
        match self.as_repetition(test, &elements, body, is_do, &changed, 0.0) {
            Ok(flow) => flow,
            Err(what) => {
                self.restore(&before);
                self.leave_out(format!("a loop, as {what}: its steps"));
                changed.into_iter().for_each(|slot| self.forget(slot, "what a loop sets"));
                K6Flow::Normal
            }
        }
    }

    /// The slots that a pass changes.
    fn changes(
        &mut self,
        test: LoopTest<'_, 'a, 'r>,
        elements: &LoopElements<'a>,
        body: LoopBody<'_, 'a, 'r>,
    ) -> Vec<Slot> {
        let mark = self.heap.mark();
        self.open();
        let pending = self.pending.len();
        test(self);
        body(self, elements.element(elements.name().unwrap_or_default()));
        self.flagged(pending);
        self.close();
        let mut changed = self.heap.changed(mark);
        changed.retain(|slot| mark.has(slot));
        changed
    }

    /// A repetition whose one pass says what each does, or why there is none.
    fn as_repetition(
        &mut self,
        test: LoopTest<'_, 'a, 'r>,
        elements: &LoopElements<'a>,
        body: LoopBody<'_, 'a, 'r>,
        is_do: bool,
        changed: &[Slot],
        shift: f64,
    ) -> Result<K6Flow<'a>, String> {
        let each = self.each_of(elements)?;
        let counter = changed.iter().find_map(|slot| self.counter(slot));
        let base = counter.as_ref().map_or(0.0, |(_, from)| from + shift);
        let counter = counter.as_ref().map_or("pass", |(name, _)| name.as_str());
        let pass = self.fresh(elements.name().unwrap_or(counter));
        let variables = self.loop_variables(changed, &pass, base, each.is_some());
        let followed = self.follow_pass(test, body, elements.element(&pass), is_do)?;
        let FollowedPass { test: asked, mut breaks, left, flow, steps, has_test_set } = followed;
        let counts_from = variables.iter().find_map(|(_, variable)| match variable {
            LoopVariable::Counter(from, _) => Some(*from),
            _ => None,
        });
        self.open();
        self.steps = steps;
        let is_same_in_all = self.end_variables(variables, &pass);
        let steps = self.close();
        is_same_in_all?;
        if matches!(flow, K6Flow::Break | K6Flow::Return(_) | K6Flow::Throw) {
            if steps.is_empty() && left.is_empty() {
                return Ok(ended(flow));
            }
            return Err("it ends in its first pass".to_owned());
        }
        let (bound, rest) = self.bound(asked, &pass, base, is_do)?;
        self.put_flags(left.iter().map(|(flag, _)| flag));
        breaks.extend(left.iter().map(|(flag, _)| is_set(flag.clone())));
        let step = self.repetition(each, bound.clone(), rest, breaks, is_do)?;
        let is_counted = matches!(step, (ImportedRepeat::Times(_), None)) && !has_test_set;
        let bound = bound.filter(|_| is_counted);
        if !steps.is_empty() {
            self.put_repetition(step, steps, &pass, base)?;
        }
        self.end_counters(changed, &pass, bound.as_ref(), counts_from);
        self.leave_by_flags(left);
        Ok(K6Flow::Normal)
    }

    /// The repetition by elements, if it is one.
    fn each_of(&mut self, elements: &LoopElements<'a>) -> Result<Option<ImportedRepeat>, String> {
        Ok(match elements {
            LoopElements::List(list, _) => {
                let texts = list.iter().map(|item| match item {
                    JsValue::Text(_) | JsValue::Number(_) => self.text_of(item),
                    _ => Err("its elements are no texts".to_owned()),
                });
                Some(ImportedRepeat::Each(texts.collect::<Result<_, _>>()?))
            }
            LoopElements::Session(list, _) => Some(ImportedRepeat::Elements(list.clone())),
            _ => None,
        })
    }

    fn put_repetition(
        &mut self,
        (times, condition): (ImportedRepeat, Option<ImportedCondition>),
        steps: Vec<K6Step>,
        pass: &str,
        base: f64,
    ) -> Result<(), String> {
        let mut texts = Vec::new();
        times.texts(&mut texts);
        let by_elements = matches!(times, ImportedRepeat::Each(_) | ImportedRepeat::Elements(_));
        let in_times = texts.iter().any(|text| text.names().contains(&pass));
        let by_condition = matches!(times, ImportedRepeat::While(..) | ImportedRepeat::Until(..));
        if in_times && by_condition {
            return Err("its end depends on its counter".to_owned());
        }
        let is_named = by_elements || in_times || uses(&steps, &self.requests, pass);
        let variable = is_named.then(|| pass.to_owned());
        let times = if is_named { numbered(times, base)? } else { times };
        let repeat = K6Step::Repeat { times, variable, steps };
        self.steps.push(match condition {
            Some(condition) => {
                K6Step::When { condition, steps: vec![repeat], otherwise: Vec::new() }
            }
            None => repeat,
        });
        Ok(())
    }

    /// The name of a counter, and where it begins.
    fn counter(&self, slot: &Slot) -> Option<(String, f64)> {
        match (slot, self.heap.value(slot)) {
            (Slot::Variable(_, name), Some(SlotValue::Variable(Some(JsValue::Number(from))))) => {
                Some((name.to_string(), from))
            }
            _ => None,
        }
    }

    /// Gives each variable that changes a value that holds in all passes.
    fn loop_variables(
        &mut self,
        changed: &[Slot],
        pass: &str,
        base: f64,
        has_elements: bool,
    ) -> Vec<(Slot, LoopVariable)> {
        let mut variables = Vec::new();
        for slot in changed {
            let (Slot::Variable(_, name), Some(SlotValue::Variable(Some(value)))) =
                (slot, self.heap.value(slot))
            else {
                variables.push((slot.clone(), LoopVariable::Other));
                continue;
            };
            let (value, variable) = match value {
                JsValue::Number(from) if !has_elements => {
                    let counter = JsValue::SessionNumber(Rc::from(pass), from - base);
                    (counter, LoopVariable::Counter(from, from - base))
                }
                JsValue::Part(part) if part.place == PartPlace::Whole => {
                    let response = self.response_of(vec![part.request]);
                    (self.whole(response), LoopVariable::Response(response))
                }
                JsValue::Bool(_)
                | JsValue::Test(_)
                | JsValue::Text(_)
                | JsValue::Session(_)
                | JsValue::Part(_) => {
                    let is_flag = matches!(value, JsValue::Bool(_) | JsValue::Test(_));
                    match self.text_of(&value) {
                        Ok(text) => {
                            let set = self.set_variable(name, text);
                            (session_value(&set, is_flag), LoopVariable::Set(set, is_flag))
                        }
                        Err(_) => changed_by_loop(name),
                    }
                }
                _ => changed_by_loop(name),
            };
            self.heap.set(slot.clone(), SlotValue::Variable(Some(value)));
            variables.push((slot.clone(), variable));
        }
        variables
    }

    fn follow_pass(
        &mut self,
        test: LoopTest<'_, 'a, 'r>,
        body: LoopBody<'_, 'a, 'r>,
        element: JsValue<'a>,
        is_do: bool,
    ) -> Result<FollowedPass<'a>, String> {
        let mark = self.heap.mark();
        self.open();
        let pending = self.pending.len();
        let mut asked = if is_do { K6Test::Known(true) } else { test(self) };
        let has_test_set = self.heap.has_changed(mark);
        if !self.steps.is_empty() {
            // `while (http.get(URL).status !== 200)`: the pass begins with the test.
            if let Err(what) = self.leave_unless(&asked) {
                self.close();
                return Err(what);
            }
            asked = K6Test::Known(true);
        }
        let flow = body(self, element);
        self.has_thrown = false;
        if is_do {
            asked = test(self);
        }
        let breaks = self.pending.iter().skip(pending);
        let breaks = breaks.filter(|branch| matches!(branch.flow, K6Flow::Break));
        let breaks = breaks.map(|branch| branch.condition.clone()).collect();
        let ends = |flow: &K6Flow| matches!(flow, K6Flow::Break | K6Flow::Continue);
        self.end_branches(pending, ends);
        let left = self.flagged(pending);
        let steps = self.close();
        Ok(FollowedPass { test: asked, breaks, left, flow, steps, has_test_set })
    }

    /// Puts what a pass leaves in its variables to where the next pass has it.
    fn end_variables(
        &mut self,
        variables: Vec<(Slot, LoopVariable)>,
        pass: &str,
    ) -> Result<(), String> {
        for (slot, variable) in variables {
            let now = match self.heap.value(&slot) {
                Some(SlotValue::Variable(Some(value))) => value,
                _ => JsValue::Undefined,
            };
            let name = match &slot {
                Slot::Variable(_, name) => name.to_string(),
                Slot::Object(_) => "a list or an object".to_owned(),
            };
            match variable {
                LoopVariable::Counter(_, plus) => match now {
                    JsValue::SessionNumber(of, now) if &*of == pass && now == plus + 1.0 => {}
                    _ => return Err(format!("'{name}' changes by more than 1")),
                },
                LoopVariable::Set(variable, is_flag) => {
                    let text = if is_flag { self.flag_of(&now) } else { self.text_of(&now) };
                    let text = text.map_err(|_| format!("'{name}' changes"))?;
                    if text != ImportedText::value(&*variable) {
                        self.steps.push(K6Step::Set(vec![(variable.to_string(), text)]));
                    }
                    let value = session_value(&variable, is_flag);
                    self.heap.set(slot, SlotValue::Variable(Some(value)));
                }
                LoopVariable::Response(response) => match now {
                    JsValue::Part(part) if part.place == PartPlace::Whole => {
                        self.also_stands_for(response, part.request);
                        let whole = self.whole(response);
                        self.heap.set(slot, SlotValue::Variable(Some(whole)));
                    }
                    _ => return Err(format!("'{name}' changes")),
                },
                LoopVariable::Other if matches!(slot, Slot::Object(_)) => {
                    return Err(format!("{name} changes"));
                }
                LoopVariable::Other => {}
            }
        }
        Ok(())
    }

    /// After the loop a counter has its end. Without a bound that is not known.
    fn end_counters(
        &mut self,
        changed: &[Slot],
        pass: &str,
        bound: Option<&LoopBound>,
        from: Option<f64>,
    ) {
        for slot in changed {
            if let Some(SlotValue::Variable(Some(JsValue::SessionNumber(of, _)))) =
                self.heap.value(slot)
                && &*of == pass
            {
                let value = match (bound, from) {
                    (Some(LoopBound::Number(times)), Some(from)) => {
                        JsValue::Number(from + f64::from(*times))
                    }
                    _ => JsValue::unknown("a counter after its loop"),
                };
                self.heap.set(slot.clone(), SlotValue::Variable(Some(value)));
            }
        }
    }

    /// All passes one after another, if they are few and it is known how many.
    fn pass_by_pass(
        &mut self,
        test: LoopTest<'_, 'a, 'r>,
        elements: &LoopElements<'a>,
        body: LoopBody<'_, 'a, 'r>,
        is_do: bool,
        before: &K6Snapshot,
    ) -> Option<K6Flow<'a>> {
        let list = match elements {
            LoopElements::List(list, _) => Some(list),
            LoopElements::None => None,
            _ => return None,
        };
        let pending = self.pending.len();
        for pass in 0..=PASSES_MAX {
            let element = match list {
                Some(list) => match list.get(pass) {
                    Some(element) => element.clone(),
                    None => return Some(K6Flow::Normal),
                },
                None => JsValue::Undefined,
            };
            if !is_do || pass > 0 {
                match test(self) {
                    K6Test::Known(true) => {}
                    K6Test::Known(false) => return Some(K6Flow::Normal),
                    _ => return None,
                }
            }
            let flow = body(self, element);
            if self.pending.iter().skip(pending).any(|b| matches!(b.flow, K6Flow::Break)) {
                // All passes that follow would lie in one another.
                self.flagged(pending);
                return None;
            }
            self.end_branches(pending, |flow| matches!(flow, K6Flow::Continue));
            if self.pending.len() > pending {
                self.flagged(pending);
                return None;
            }
            match flow {
                K6Flow::Normal | K6Flow::Continue => {}
                other => return Some(ended(other)),
            }
            if self.steps_since(before) > STEPS_MAX {
                return None;
            }
        }
        None
    }
}

/// How what follows the loop goes on.
fn ended(flow: K6Flow) -> K6Flow {
    match flow {
        K6Flow::Break | K6Flow::Continue => K6Flow::Normal,
        other => other,
    }
}

/// A variable that no text stands for.
fn changed_by_loop<'a>(name: &str) -> (JsValue<'a>, LoopVariable) {
    (JsValue::unknown(format!("'{name}', which a loop changes")), LoopVariable::Other)
}

/// A variable of the session as a text, or as what is true or false.
fn session_value<'a>(variable: &Rc<str>, is_flag: bool) -> JsValue<'a> {
    let value = JsValue::Session(Rc::clone(variable));
    if is_flag {
        let yes = JsValue::text("true");
        JsValue::compared(value, ImportedRelation::Equal, yes)
    } else {
        value
    }
}
