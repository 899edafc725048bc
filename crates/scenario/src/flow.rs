//! Steps around other steps: repetitions, conditions, choices and groups, and variables that are
//! set.

use super::draft::{
    METHODS, OF_REQUESTS, PlanBuilder, SessionDraft, WEIGHT_MAX, check_name, foresee, variable_of,
};
use super::fault::{Read, bail};
use super::fields::{Fields, list, named, text, whole};
use super::response::check_variable;
use super::tree::{Entry, Node, Value};
use super::{condition, schema, template};
use knee_load::session::{Instruction, Passes, Repetition, StepGroup, Template, TemplatePiece};

/// The most repetitions of a session, and how often one is done at most.
const REPETITIONS_MAX: usize = 1_000;
const TIMES_MAX: u64 = 1_000_000_000;
/// The most passes of a repetition by a condition, unless the file says otherwise.
const PASSES_DEFAULT: u64 = 1_000;
/// The most groups of a scenario, choices of a step, and values that a step repeats over.
const GROUPS_MAX: usize = 1_000;
const CHOICES_MAX: usize = 1_000;
/// The most branches of a step. Each may have a connection; browsers have 6 per server.
pub(super) const BRANCHES_MAX: usize = 32;
const VALUES_MAX: usize = 10_000;

/// The steps that have other keys beside their own, and which.
const BESIDE: [(&str, &[&str]); 3] =
    [("repeat", &["steps"]), ("when", &["steps", "else"]), ("group", &["steps"])];

impl PlanBuilder<'_> {
    pub(super) fn when(
        &mut self,
        fields: &Fields<'_>,
        node: &Node,
        kind: &mut SessionDraft,
    ) -> Read<()> {
        let condition = condition::read(node, &mut self.scope(&kind.names))?;
        let at = kind.program.len();
        kind.program.push(Instruction::Unless { condition, to: 0 });
        self.steps(fields.need("steps")?, kind)?;
        let Some(otherwise) = fields.get("else") else {
            kind.goes_on_here(at);
            return Ok(());
        };
        let end = kind.program.len();
        kind.program.push(Instruction::Jump(0));
        kind.goes_on_here(at);
        self.steps(otherwise, kind)?;
        kind.goes_on_here(end);
        Ok(())
    }

    pub(super) fn choose(&mut self, node: &Node, kind: &mut SessionDraft) -> Read<()> {
        let Value::List(choices) = &node.value else {
            bail!(node.at, "'choose' is a list: write [{{weight: 3, steps: [{{get: /}}]}}]");
        };
        if choices.is_empty() || choices.len() > CHOICES_MAX {
            bail!(node.at, "no choice, or too many: expected 1 to {CHOICES_MAX}");
        }
        let at = kind.program.len();
        kind.program.push(Instruction::Choose(Vec::new()));
        let (mut sum, mut arms, mut ends) = (0, Vec::new(), Vec::new());
        for choice in choices {
            let fields = Fields::read(choice, schema::CHOICE)?;
            let weight = fields.read_key("weight", |node| whole(node, [1, WEIGHT_MAX]))?;
            sum += weight.unwrap_or(1);
            arms.push((sum, kind.program.len() as u32));
            self.steps(fields.need("steps")?, kind)?;
            ends.push(kind.program.len());
            kind.program.push(Instruction::Jump(0));
        }
        kind.program[at] = Instruction::Choose(arms);
        ends.into_iter().for_each(|end| kind.goes_on_here(end));
        Ok(())
    }

    pub(super) fn parallel(&mut self, node: &Node, kind: &mut SessionDraft) -> Read<()> {
        let Value::List(branches) = &node.value else {
            bail!(node.at, "'parallel' is a list of steps: write [{{get: /a}}, {{get: /b}}]");
        };
        if branches.is_empty() || branches.len() > BRANCHES_MAX {
            bail!(node.at, "no step, or too many at the same time: expected 1 to {BRANCHES_MAX}");
        }
        if std::mem::replace(&mut kind.is_branch, true) {
            bail!(node.at, "'parallel' within 'parallel': write all steps in one list");
        }
        let at = kind.program.len();
        kind.program.push(Instruction::Fork(Vec::new()));
        // No branch knows what another one learns.
        let before = kind.names.variables.clone();
        let (mut learnt, mut begins, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for branch in branches {
            for (at, (_, is_known)) in kind.names.variables.iter_mut().enumerate() {
                *is_known = before.get(at).is_some_and(|(_, was_known)| *was_known);
            }
            begins.push(kind.program.len() as u32);
            self.step(branch, kind)?;
            ends.push(kind.program.len());
            kind.program.push(Instruction::Join(0));
            let known = kind.names.variables.iter().zip(0..);
            learnt.extend(known.filter(|((_, is_known), _)| *is_known).map(|(_, at)| at));
        }
        learnt.into_iter().for_each(|at: usize| kind.names.variables[at].1 = true);
        kind.program[at] = Instruction::Fork(begins.split_off(1));
        ends.into_iter().for_each(|end| kind.goes_on_here(end));
        kind.is_branch = false;
        Ok(())
    }

    pub(super) fn set(&mut self, node: &Node, kind: &mut SessionDraft) -> Read<()> {
        let entries = named(node, "set: {name: value}")?;
        if entries.is_empty() {
            bail!(node.at, "'set' is empty: write set: {{name: value}}");
        }
        for Entry { key, at, value } in entries {
            check_variable(key, *at)?;
            let expected = "the value of a variable ('' for an empty one)";
            let value = template::read_text(value, expected, &mut self.scope(&kind.names))?;
            let variable = variable_of(key, *at, &mut kind.names, true)?;
            kind.program.push(Instruction::Set { variable, value });
        }
        Ok(())
    }

    pub(super) fn group(
        &mut self,
        fields: &Fields<'_>,
        node: &Node,
        kind: &mut SessionDraft,
    ) -> Read<()> {
        let name = &text(node, "the name of a group")?.text;
        check_name(name, node.at)?;
        let number = self.plan.groups.len();
        if number >= GROUPS_MAX {
            bail!(node.at, "too many groups: expected at most {GROUPS_MAX} in a scenario");
        }
        let name = kind.unique(name.to_string());
        self.plan.groups.push(StepGroup { name, kind: kind.number });
        kind.program.push(Instruction::Enter(number as u16));
        self.steps(fields.need("steps")?, kind)?;
        kind.program.push(Instruction::Leave(number as u16));
        Ok(())
    }

    pub(super) fn repeat(
        &mut self,
        fields: &Fields<'_>,
        node: &Node,
        kind: &mut SessionDraft,
    ) -> Read<()> {
        let number = kind.repetitions.len();
        if number >= REPETITIONS_MAX {
            bail!(
                fields.at,
                "too many repetitions: expected at most {REPETITIONS_MAX} in a session"
            );
        }
        let steps = fields.need("steps")?;
        // What a later step extracts, an earlier one has from the second time on.
        foresee(steps, &mut kind.names, true)?;
        let repetition = match &node.value {
            Value::Map(_) => self.repetition(node, kind)?,
            _ => Repetition { passes: self.times(node, kind)?, at_most: 0, variable: None },
        };
        kind.repetitions.push(repetition);
        kind.program.push(Instruction::Begin(number as u16));
        let pass = kind.program.len();
        kind.program.push(Instruction::Pass { repetition: number as u16, end: 0 });
        self.steps(steps, kind)?;
        kind.program.push(Instruction::Jump(pass as u32));
        kind.goes_on_here(pass);
        Ok(())
    }

    fn repetition(&mut self, node: &Node, kind: &mut SessionDraft) -> Read<Repetition> {
        let fields = Fields::read(node, schema::REPEAT)?;
        let one = fields.one()?;
        let by_condition = matches!(&*one.key, "while" | "until");
        if let Some(entry) = fields.entry("at_most").filter(|_| !by_condition) {
            bail!(entry.at, "'at_most' belongs to 'while' or 'until': leave it out");
        }
        let at_most = fields.read_key("at_most", |node| whole(node, [1, TIMES_MAX]))?;
        let passes = match &*one.key {
            "times" => self.times(&one.value, kind)?,
            "over" => self.over(&one.value, kind)?,
            key => {
                let condition = condition::read(&one.value, &mut self.scope(&kind.names))?;
                if key == "while" { Passes::While(condition) } else { Passes::Until(condition) }
            }
        };
        let variable = fields.read_key("as", |node| {
            let name = &text(node, "the name of a variable")?.text;
            check_variable(name, node.at)?;
            variable_of(name, node.at, &mut kind.names, true)
        })?;
        Ok(Repetition { passes, at_most: at_most.unwrap_or(PASSES_DEFAULT) as u32, variable })
    }

    /// How often: a number, or a template that gives one.
    fn times(&mut self, node: &Node, kind: &SessionDraft) -> Read<Passes> {
        let is_template = node.scalar().is_some_and(|scalar| scalar.text.contains("${"));
        let times = if is_template {
            template::read_text(node, "a number of times", &mut self.scope(&kind.names))?
        } else {
            let times = whole(node, [1, TIMES_MAX])?;
            Template(vec![TemplatePiece::Text(times.to_string())])
        };
        Ok(Passes::Times(times))
    }

    fn over(&mut self, node: &Node, kind: &SessionDraft) -> Read<Passes> {
        let scope = &mut self.scope(&kind.names);
        let Value::List(values) = &node.value else {
            let expected = "a list, or a template that gives a JSON array,";
            let array = template::read_text(node, expected, scope)?;
            if template::constant(&array).is_some() {
                bail!(node.at, "this is one value: write a list, or a template of a JSON array");
            }
            return Ok(Passes::Elements(array));
        };
        if values.is_empty() || values.len() > VALUES_MAX {
            bail!(node.at, "no value, or too many: expected 1 to {VALUES_MAX}");
        }
        let values = values.iter().map(|node| template::read_text(node, "a value", scope));
        Ok(Passes::List(values.collect::<Read<_>>()?))
    }
}

impl SessionDraft {
    /// The instruction at `at` leads to the one that comes next.
    fn goes_on_here(&mut self, at: usize) {
        let here = self.program.len() as u32;
        match self.program.get_mut(at) {
            Some(
                Instruction::Unless { to, .. }
                | Instruction::Jump(to)
                | Instruction::Join(to)
                | Instruction::Pass { end: to, .. },
            ) => *to = here,
            _ => debug_assert!(false, "{at} leads nowhere"),
        }
    }
}

/// Refuses keys that the step that is `one` does not have.
pub(super) fn refuse_other_keys(fields: &Fields<'_>, one: &Entry) -> Read<()> {
    let is_request = METHODS.contains(&&*one.key) || &*one.key == "request";
    let beside = BESIDE.iter().find(|(step, _)| *step == &*one.key).map_or(&[][..], |(_, of)| of);
    let fits = |key: &str| {
        key == &*one.key
            || (is_request && OF_REQUESTS.split(' ').any(|of_request| of_request == key))
            || beside.contains(&key)
    };
    let Some(other) = fields.entries.iter().find(|entry| !fits(&entry.key)) else {
        return Ok(());
    };
    let (key, other_key) = (&one.key, &*other.key);
    let steps = BESIDE.iter().filter(|(_, of)| of.contains(&other_key)).map(|(step, _)| *step);
    match &steps.collect::<Vec<_>>()[..] {
        [] => bail!(
            other.at,
            "'{other_key}' belongs to a request, and this step has '{key}': leave it out"
        ),
        steps => {
            bail!(other.at, "'{other_key}' belongs to {}: write one of them beside it", list(steps))
        }
    }
}
