//! What is done with a script: its statements are followed as far as they are known, and what they
//! send becomes steps.

use super::super::collect::SourceRequest;
use super::super::data::ReadFile;
use super::super::{ImportedCondition, ImportedJson, ImportedStep, ImportedText};
use super::heap::{Heap, HeapMark};
use super::modules::K6Module;
use super::value::{JsValue, K6Test, ResponsePart};
use oxc_allocator::Allocator;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// How many nodes of the tree are looked at, those that are looked at again among them.
const FUEL: usize = 1_500_000;
/// The most that expressions, statements and calls lie in one another.
const DEPTH_MAX: usize = 200;
/// The redirections that k6 follows.
const REDIRECTS: u32 = 10;
/// The longest text.
pub(super) const TEXT_MAX: usize = 1 << 20;
/// The most lines about what was left out. Beyond, the collector counts.
const NOTES_MAX: usize = 2_000;

/// When something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum K6Phase {
    /// Before all, where the script is read.
    Module,
    Setup,
    Session,
    Teardown,
}

/// A request that a step sends.
#[derive(Clone, Debug)]
pub(super) struct K6Request {
    pub(super) draft: SourceRequest,
    pub(super) phase: K6Phase,
    /// The conditions under which it is sent.
    pub(super) under: Vec<usize>,
    /// Responses that this one stands for: it is any of them.
    pub(super) stands_for: Vec<usize>,
}

/// A step whose request has a number, as it may still change.
pub(super) type K6Step = ImportedStep<usize>;

/// All texts of steps, and of the steps in them.
pub(super) fn texts_in<'t>(
    steps: impl Iterator<Item = &'t K6Step>,
    requests: &'t [Rc<K6Request>],
) -> Vec<&'t ImportedText> {
    let of_request = move |number: &usize, into: &mut Vec<&'t ImportedText>| {
        if let Some(request) = requests.get(*number) {
            request.texts(into);
        }
    };
    let mut texts = Vec::new();
    steps.for_each(|step| step.texts_by(of_request, &mut texts));
    texts
}

/// How a list of statements ended.
#[derive(Clone, Debug)]
pub(super) enum K6Flow<'a> {
    Normal,
    Return(JsValue<'a>),
    Break,
    Continue,
    /// The iteration ends.
    Throw,
}

/// A branch that left its function or loop: what follows lies in the other one.
#[derive(Clone, Debug)]
pub(super) struct PendingBranch<'a> {
    pub(super) test: K6Test<'a>,
    pub(super) condition: ImportedCondition,
    pub(super) steps: Vec<K6Step>,
    pub(super) flow: K6Flow<'a>,
}

/// A line about the scenario.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum K6Note {
    LeftOut(String),
    Remark(String),
    /// One that is about a variable, if that is used at all.
    OfVariable(String, String),
}

pub(super) struct K6Interpreter<'a, 'r> {
    pub(super) allocator: &'a Allocator,
    pub(super) read: ReadFile<'r>,
    pub(super) modules: Vec<K6Module<'a>>,
    /// The module whose code is looked at, and where.
    pub(super) module: usize,
    pub(super) at: u32,
    pub(super) heap: Heap<'a>,
    pub(super) globals: usize,
    pub(super) phase: K6Phase,
    pub(super) requests: Vec<Rc<K6Request>>,
    pub(super) steps: Vec<K6Step>,
    pub(super) outer: Vec<Vec<K6Step>>,
    pub(super) pending: Vec<PendingBranch<'a>>,
    /// The conditions around what is followed, by their numbers.
    pub(super) under: Vec<usize>,
    pub(super) conditions: usize,
    /// The iteration has ended.
    pub(super) has_thrown: bool,
    pub(super) notes: Vec<K6Note>,
    /// The variables that have parts of responses, and all names of variables.
    pub(super) names: HashMap<ResponsePart, String>,
    pub(super) hints: HashMap<ResponsePart, String>,
    pub(super) taken: HashSet<String>,
    /// The variables that have random draws.
    pub(super) draws: Vec<Option<String>>,
    /// Variables with values that are drawn once, and how.
    pub(super) drawn: HashMap<String, String>,
    /// Those of them that the script names, and those that stand for random characters.
    pub(super) named: HashSet<String>,
    pub(super) characters: HashSet<String>,
    /// The names that steps use.
    pub(super) used: HashSet<String>,
    /// The variables for numbers of iterations, and under which conditions they are set.
    pub(super) numbers: HashMap<String, (Rc<str>, Vec<usize>)>,
    /// What is drawn where the script is read, before any session.
    pub(super) prologue: Vec<K6Step>,
    pub(super) prologue_taken: HashSet<String>,
    /// Texts that JSON was made into, by their templates.
    pub(super) json_texts: HashMap<String, Rc<ImportedJson>>,
    /// The sets of records with their files.
    pub(super) records: Vec<(String, String, bool)>,
    /// What `http.setResponseCallback` says of all statuses.
    pub(super) statuses: Vec<String>,
    /// What the options say of all requests.
    pub(super) redirects: u32,
    pub(super) user_agent: Option<ImportedText>,
    pub(super) fuel: usize,
    pub(super) depth: usize,
}

/// A point that can be gone back to.
pub(super) struct K6Snapshot {
    pub(super) heap: HeapMark,
    requests: Vec<Rc<K6Request>>,
    steps: usize,
    notes: usize,
    names: HashMap<ResponsePart, String>,
    taken: HashSet<String>,
    draws: Vec<Option<String>>,
    numbers: HashMap<String, (Rc<str>, Vec<usize>)>,
}

impl<'a, 'r> K6Interpreter<'a, 'r> {
    pub(super) fn new(allocator: &'a Allocator, read: ReadFile<'r>) -> Self {
        let mut heap = Heap::default();
        let globals = heap.scope(None);
        K6Interpreter {
            allocator,
            read,
            modules: Vec::new(),
            module: 0,
            at: 0,
            heap,
            globals,
            phase: K6Phase::Module,
            requests: Vec::new(),
            steps: Vec::new(),
            outer: Vec::new(),
            pending: Vec::new(),
            under: Vec::new(),
            conditions: 0,
            has_thrown: false,
            notes: Vec::new(),
            names: HashMap::new(),
            hints: HashMap::new(),
            taken: HashSet::new(),
            draws: Vec::new(),
            drawn: HashMap::new(),
            named: HashSet::new(),
            characters: HashSet::new(),
            used: HashSet::new(),
            numbers: HashMap::new(),
            prologue: Vec::new(),
            prologue_taken: HashSet::new(),
            json_texts: HashMap::new(),
            records: Vec::new(),
            statuses: Vec::new(),
            redirects: REDIRECTS,
            user_agent: None,
            fuel: FUEL,
            depth: 0,
        }
    }

    /// Whether there is fuel for this much work.
    pub(super) fn burn(&mut self, amount: usize) -> bool {
        if self.fuel == 0 {
            return false;
        }
        self.fuel = self.fuel.saturating_sub(amount.max(1));
        if self.fuel == 0 {
            self.leave_out("what follows: the script does too much to follow it");
        }
        self.fuel > 0
    }

    /// Does something one level deeper, if there is fuel and room.
    pub(super) fn deeper<T>(&mut self, or: T, work: impl FnOnce(&mut Self) -> T) -> T {
        if !self.burn(1) {
            return or;
        }
        if self.depth >= DEPTH_MAX {
            self.leave_out("what is nested too deeply to follow it");
            return or;
        }
        self.depth += 1;
        let value = work(self);
        self.depth -= 1;
        value
    }

    /// Names something that is left out, with its line.
    pub(super) fn leave_out(&mut self, what: impl AsRef<str>) {
        let place = self.place();
        self.note(K6Note::LeftOut(format!("{place}: {}", what.as_ref())));
    }

    /// Names something that another value stands for.
    pub(super) fn replaced(&mut self, variable: &str, what: impl AsRef<str>) {
        let line = format!("{}: {}", self.place(), what.as_ref());
        self.note(K6Note::OfVariable(variable.to_owned(), line));
    }

    pub(super) fn remark(&mut self, what: impl Into<String>) {
        self.note(K6Note::Remark(what.into()));
    }

    fn note(&mut self, note: K6Note) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push(note);
        }
    }

    /// `line 7`, with the file for one that is imported.
    pub(super) fn place(&self) -> String {
        match self.modules.get(self.module) {
            Some(module) if self.module == 0 => format!("line {}", module.line(self.at)),
            Some(module) => format!("{} line {}", module.path, module.line(self.at)),
            None => "the script".to_owned(),
        }
    }

    /// The steps from here on are apart, up to `close`.
    pub(super) fn open(&mut self) {
        self.outer.push(std::mem::take(&mut self.steps));
    }

    pub(super) fn close(&mut self) -> Vec<K6Step> {
        let outer = self.outer.pop().unwrap_or_default();
        std::mem::replace(&mut self.steps, outer)
    }

    pub(super) fn snapshot(&mut self) -> K6Snapshot {
        self.burn(self.requests.len() + self.names.len());
        K6Snapshot {
            heap: self.heap.mark(),
            requests: self.requests.clone(),
            steps: self.steps.len(),
            notes: self.notes.len(),
            names: self.names.clone(),
            taken: self.taken.clone(),
            draws: self.draws.clone(),
            numbers: self.numbers.clone(),
        }
    }

    /// Whether a request was added since a point.
    pub(super) fn sent_since(&self, point: &K6Snapshot) -> bool {
        self.requests.len() > point.requests.len()
    }

    /// Goes back; steps have to be as far open as then.
    pub(super) fn restore(&mut self, to: &K6Snapshot) {
        self.heap.undo(to.heap);
        self.requests.clone_from(&to.requests);
        self.steps.truncate(to.steps);
        self.notes.truncate(to.notes);
        self.names.clone_from(&to.names);
        self.taken.clone_from(&to.taken);
        self.draws.clone_from(&to.draws);
        self.numbers.clone_from(&to.numbers);
        self.has_thrown = false;
    }

    /// How many different lines were added since a point.
    pub(super) fn lost_since(&self, point: &K6Snapshot) -> usize {
        let lost: HashSet<&K6Note> = self.left_out_since(point).collect();
        lost.len()
    }

    /// The lines about what was left out since a point.
    pub(super) fn left_out_since(&self, point: &K6Snapshot) -> impl Iterator<Item = &K6Note> {
        let notes = self.notes.iter().skip(point.notes);
        notes.filter(|note| matches!(note, K6Note::LeftOut(_)))
    }

    pub(super) fn steps_since(&self, point: &K6Snapshot) -> usize {
        self.steps.len().saturating_sub(point.steps)
    }

    /// A name for a variable of the scenario that no other has.
    pub(super) fn fresh(&mut self, wanted: &str) -> String {
        let base = super::super::collect::Collector::variable(wanted);
        let base = if base == "setup" { "setup_value".to_owned() } else { base };
        let mut name = base.clone();
        let mut number = 2;
        while !self.taken.insert(name.clone()) {
            name = format!("{base}_{number}");
            number += 1;
        }
        // What had this name was undone.
        self.drawn.remove(&name);
        self.named.remove(&name);
        self.characters.remove(&name);
        name
    }

    /// A value that is drawn here once, such as `random(1,5)`: the variable that has it.
    pub(super) fn draw_once(&mut self, expression: &str, wanted: &str) -> Rc<str> {
        let name = self.set_variable(wanted, ImportedText::value(expression));
        self.drawn.insert(name.to_string(), expression.to_owned());
        name
    }

    /// How a variable's value is drawn, if it is.
    pub(super) fn draw_of(&self, variable: &str) -> &str {
        self.drawn.get(variable).map_or("", String::as_str)
    }

    /// Gives a value that was drawn just now the name that it has in the script.
    pub(super) fn called(&mut self, value: JsValue<'a>, name: &str) -> JsValue<'a> {
        self.hint(&value, name);
        let variable = match &value {
            JsValue::SessionNumber(of, plus) if *plus == 0.0 => of.to_string(),
            JsValue::Text(text) => text.only_value().unwrap_or_default().to_owned(),
            _ => return value,
        };
        let Some(expression) = self.drawn.get(&variable).cloned() else {
            return value;
        };
        let is_last = match self.steps.last() {
            Some(K6Step::Set(set)) => set.len() == 1 && set[0].0 == variable,
            _ => false,
        };
        // What holds it already would go on to ask for it by its old name.
        self.burn(self.heap.size() / 64);
        if !is_last || self.heap.holds(&variable) {
            self.named.insert(variable);
            return value;
        }
        self.steps.pop();
        self.taken.remove(&variable);
        let is_character = self.characters.remove(&variable);
        let own = self.draw_once(&expression, name);
        for note in &mut self.notes {
            if let K6Note::OfVariable(of, _) = note
                && *of == variable
            {
                *of = own.to_string();
            }
        }
        self.named.insert(own.to_string());
        if is_character {
            self.characters.insert(own.to_string());
        }
        match value {
            JsValue::Text(_) => JsValue::text(ImportedText::value(&*own)),
            _ => JsValue::SessionNumber(own, 0.0),
        }
    }

    /// Sets a variable of the session to a text; its name.
    pub(super) fn set_variable(&mut self, wanted: &str, text: ImportedText) -> Rc<str> {
        let name = self.fresh(wanted);
        self.steps.push(K6Step::Set(vec![(name.clone(), text)]));
        Rc::from(name)
    }
}
