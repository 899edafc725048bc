//! Scripts of k6. A script is not run: its functions are followed from the exported ones on. What
//! they send becomes steps, and what depends on responses becomes `extract`, `when` and `repeat`.
//!
//! `modules` makes trees of scripts. `interpreter` has what is known so far; `statements`, `loops`
//! and `branches` follow what is done, `expressions` and `operators` what has values, and `calls`
//! functions. `http`, `checks` and `responses` are what k6 gives, `options` and `thresholds` what
//! it is asked for.

mod assignments;
mod branches;
mod builtins;
mod calls;
mod checks;
mod comparisons;
mod expressions;
mod heap;
mod http;
mod interpreter;
mod library;
mod list_methods;
mod loop_bounds;
mod loops;
mod members;
mod merging;
mod methods;
mod modules;
mod operators;
mod options;
mod prune;
mod responses;
mod statements;
mod texts;
mod thresholds;
mod value;

use super::collect::Collector;
use super::data::ReadFile;
use super::{Imported, ImportedStep, ImportedText, as_text};
use heap::Slot;
use interpreter::{K6Interpreter, K6Note, K6Phase, K6Request, K6Step};
use knee_load::quantity::ParseError;
use knee_load::session::Deal;
use oxc_allocator::Allocator;
use std::rc::Rc;
use value::JsValue;

pub use modules::K6_STACK;

/// Imports a script of k6. Modules and settings beside it are read by their paths from its folder.
/// The stack of the caller has to have [`K6_STACK`] bytes, as the parser calls itself for what lies
/// in brackets.
///
/// # Errors
/// One line: no text, no JavaScript or TypeScript, no call that a scenario can have.
pub fn k6(bytes: &[u8], read: ReadFile) -> Result<Imported, ParseError> {
    let text = as_text(bytes, "the script")?;
    let allocator = Allocator::default();
    let mut script = K6Interpreter::new(&allocator, read);
    script.load("", text)?;
    if script.steps.iter().any(K6Step::sends) {
        script.leave_out("requests outside of the functions that k6 calls");
        script.steps.retain(|step| !step.sends());
    }
    script.prologue = std::mem::take(&mut script.steps);
    script.prologue_taken = script.taken.clone();
    let options = script.exported(0, "options").unwrap_or(JsValue::Undefined).certain();
    script.go_to_export("options");
    let scenarios = script.scenarios(&options);
    let thresholds = script.thresholds(&options);
    script.common_settings(&options);
    let (data, setup) = script.follow_export("setup", K6Phase::Setup, JsValue::Undefined);
    let (mut sessions, mut sending) = (Vec::new(), Vec::new());
    for scenario in scenarios {
        let steps = script.follow_export(&scenario.exec, K6Phase::Session, data.clone()).1;
        if steps.iter().any(K6Step::sends) {
            sessions.push(steps);
            sending.push(scenario);
        } else {
            let (name, exec) = (&scenario.name, &scenario.exec);
            script.go_to_export(exec);
            script.leave_out(if script.exported(0, exec).is_some() {
                format!("scenario '{name}': its function '{exec}' sends nothing here")
            } else {
                format!("scenario '{name}': the script exports no '{exec}'")
            });
        }
    }
    let teardown = script.follow_export("teardown", K6Phase::Teardown, data).1;
    if script.exported(0, "handleSummary").is_some() {
        script.go_to_export("handleSummary");
        script.leave_out("function handleSummary");
    }
    let mut lists = vec![setup, teardown];
    lists.append(&mut sessions);
    script.prune(&mut lists);
    let mut lists = lists.into_iter();
    let (setup, teardown) = (lists.next().unwrap_or_default(), lists.next().unwrap_or_default());
    let mut all = Collector::default();
    script.put_notes(&mut all);
    let urls = script.requests.iter().filter(|request| request.phase == K6Phase::Session);
    all.set_target_of(urls.map(|request| &request.draft.url));
    all.begin_once();
    put(setup, &script.requests, &mut all);
    all.end_setup();
    let weights = options::settle(&sending, &mut all);
    for ((scenario, steps), weight) in sending.iter().zip(lists).zip(weights) {
        put(steps, &script.requests, &mut all);
        all.end_session(&scenario.name, weight);
    }
    all.begin_once();
    put(teardown, &script.requests, &mut all);
    all.end_teardown();
    let names: Vec<String> = sending.iter().map(|scenario| scenario.name.clone()).collect();
    thresholds::put(&thresholds, &names, &mut all);
    all.finish("the script has no request that a scenario can have")
}

/// A variable of the setup, as sessions name it.
fn of_setup(variable: &str) -> Rc<str> {
    Rc::from(format!("setup.{variable}"))
}

impl<'a> K6Interpreter<'a, '_> {
    /// Follows a function that k6 calls: what it gives, and its steps.
    fn follow_export(
        &mut self,
        name: &str,
        phase: K6Phase,
        data: JsValue<'a>,
    ) -> (JsValue<'a>, Vec<K6Step>) {
        let Some(function) = self.exported(0, name) else {
            return (JsValue::Undefined, Vec::new());
        };
        let mark = self.heap.mark();
        self.phase = phase;
        self.steps.clone_from(&self.prologue);
        self.taken.clone_from(&self.prologue_taken);
        self.numbers.clear();
        let value = self.call(&function, vec![data]);
        self.end_branches(0, |_| true);
        self.has_thrown = false;
        if phase == K6Phase::Setup {
            let given = self.copied(&value, "data", Self::given);
            return (given, std::mem::take(&mut self.steps));
        }
        if phase == K6Phase::Session {
            self.go_to_export(name);
            for slot in self.heap.changed(mark).into_iter().filter(|slot| mark.has(slot)) {
                let what = match slot {
                    Slot::Variable(_, name) => format!("variable '{name}'"),
                    Slot::Object(_) => "list or object".to_owned(),
                };
                self.leave_out(format!(
                    "a {what} that k6 keeps from one iteration to the next: each session begins \
                     anew"
                ));
            }
            self.heap.undo(mark);
        }
        (value, std::mem::take(&mut self.steps))
    }

    /// A value that `setup` returned as the other functions have it, with the names that sessions
    /// use. `key`: its name in the script.
    fn given(&mut self, value: &JsValue<'a>, key: &str) -> JsValue<'a> {
        match value {
            JsValue::Session(of) => JsValue::Session(of_setup(of)),
            JsValue::SessionNumber(of, plus) if self.taken.contains(&**of) => {
                JsValue::SessionNumber(of_setup(of), *plus)
            }
            JsValue::SessionNumber(..) => match self.text_of(value) {
                Ok(text) => JsValue::SessionNumber(self.given_text(&text, key), 0.0),
                Err(why) => JsValue::unknown(&why),
            },
            JsValue::Text(text) if text.literal().is_none() => {
                JsValue::text(ImportedText::value(&*self.given_text(text, key)))
            }
            JsValue::Named(text, name) if text.literal().is_none() => {
                let text = ImportedText::value(&*self.given_text(text, key));
                JsValue::Named(Rc::new(text), Rc::clone(name))
            }
            JsValue::Maybe(held) => {
                let (test, value) = &**held;
                JsValue::Maybe(Rc::new((test.clone(), self.copied(value, key, Self::given))))
            }
            other => other.clone(),
        }
    }

    /// The name that sessions have for a text of the setup, which becomes a variable unless it is
    /// one.
    fn given_text(&mut self, text: &ImportedText, key: &str) -> Rc<str> {
        match text.only_value() {
            Some(variable) if self.taken.contains(variable) => of_setup(variable),
            _ => of_setup(&self.set_variable(key, text.clone())),
        }
    }

    /// What the options say of all requests.
    fn common_settings(&mut self, options: &JsValue<'a>) {
        let most = self.heap.entry(options, "maxRedirects").and_then(JsValue::number);
        if let Some(most) = most.filter(|most| (0.0..=50.0).contains(most)) {
            self.redirects = most as u32;
        }
        let agent = self.heap.entry(options, "userAgent").cloned();
        self.user_agent = agent.and_then(|agent| self.text_of(&agent).ok());
    }

    fn put_notes(&mut self, all: &mut Collector) {
        for note in std::mem::take(&mut self.notes) {
            match note {
                K6Note::LeftOut(line) => all.leave_out(line),
                K6Note::Remark(line) => all.remark(line),
                K6Note::OfVariable(name, line) if self.used.contains(&name) => all.leave_out(line),
                K6Note::OfVariable(..) => {}
            }
        }
        for (name, file, is_random) in std::mem::take(&mut self.records) {
            let order = if is_random { Deal::Random } else { Deal::InOrder };
            if all.data(&name, &file, order).is_none() {
                all.leave_out(format!("data '{name}' of the file {file}"));
            }
        }
    }
}

/// Gives the collector steps, with their requests.
fn put(steps: Vec<K6Step>, requests: &[Rc<K6Request>], all: &mut Collector) {
    let inner = |steps: Vec<K6Step>, all: &mut Collector| {
        all.open();
        put(steps, requests, all);
        all.close()
    };
    for step in steps {
        let step = match step {
            K6Step::Request(number) => {
                if let Some(request) = requests.get(number) {
                    all.request(request.draft.clone());
                }
                continue;
            }
            K6Step::Think(law) => {
                all.think_law(&law);
                continue;
            }
            K6Step::Set(variables) => ImportedStep::Set(variables),
            K6Step::Repeat { times, variable, steps } => {
                variable.iter().for_each(|name| all.know(name));
                ImportedStep::Repeat { times, variable, steps: inner(steps, all) }
            }
            K6Step::When { condition, steps, otherwise } => {
                let (steps, otherwise) = (inner(steps, all), inner(otherwise, all));
                ImportedStep::When { condition, steps, otherwise }
            }
            K6Step::Choose(choices) => {
                let choices =
                    choices.into_iter().map(|(weight, steps)| (weight, inner(steps, all)));
                ImportedStep::Choose(choices.collect())
            }
            K6Step::Group { name, steps } => ImportedStep::Group { name, steps: inner(steps, all) },
            K6Step::Parallel(steps) => ImportedStep::Parallel(inner(steps, all)),
        };
        all.push(step);
    }
}
