//! Branches: both are followed, and what they set comes together.

use super::super::{ImportedCondition, ImportedRelation, ImportedText};
use super::heap::{HeapMark, HeapObject, Slot, SlotValue};
use super::interpreter::{K6Flow, K6Interpreter, K6Phase, K6Step, PendingBranch};
use super::value::{JsValue, K6Test};
use std::rc::Rc;

/// What a branch does.
pub(super) type BranchBody<'b, 'a, 'r> =
    &'b mut dyn FnMut(&mut K6Interpreter<'a, 'r>) -> K6Flow<'a>;

/// Branches that left from inside others, by the variables that say so.
pub(super) type LeftByFlag<'a> = Vec<(String, K6Flow<'a>)>;

/// One branch, when it was followed.
pub(super) struct FollowedBranch<'a> {
    flow: K6Flow<'a>,
    pub(super) steps: Vec<K6Step>,
    left: LeftByFlag<'a>,
    pub(super) held: Vec<(Slot, SlotValue<'a>)>,
}

impl<'a, 'r> K6Interpreter<'a, 'r> {
    /// Follows the branch that is taken, or both.
    pub(super) fn branch(
        &mut self,
        test: K6Test<'a>,
        then: BranchBody<'_, 'a, 'r>,
        otherwise: BranchBody<'_, 'a, 'r>,
    ) -> K6Flow<'a> {
        let at = self.at;
        let condition = match &test {
            K6Test::Known(true) => return then(self),
            K6Test::Known(false) => return otherwise(self),
            K6Test::Chance(_) => None,
            test => {
                let before = self.snapshot();
                match self.condition(test) {
                    Ok(condition) => Some(condition),
                    Err(what) => {
                        self.restore(&before);
                        return self.left_out_branches(&what, then, otherwise);
                    }
                }
            }
        };
        let mark = self.heap.mark();
        let mut yes = self.followed(then);
        yes.held = self.heap.undo(mark);
        let mut no = self.followed(otherwise);
        no.held = self.heap.undo(mark);
        self.at = at;
        self.reapply(&yes.held, |slot| !mark.has(slot));
        self.reapply(&no.held, |slot| !mark.has(slot));
        let stays = |branch: &FollowedBranch| matches!(branch.flow, K6Flow::Normal);
        if let (K6Test::Chance(chance), true, true) = (&test, stays(&yes), stays(&no))
            && yes.left.is_empty()
            && no.left.is_empty()
            && !yes.steps.is_empty()
            && !no.steps.is_empty()
        {
            self.merge_slots(&test, &mut yes, &mut no, mark);
            let (a, b) = weights(*chance);
            self.put_choice(vec![(a, yes.steps), (b, no.steps)]);
            return K6Flow::Normal;
        }
        let (test, condition) = match condition {
            Some(condition) => (test, condition),
            None => self.drawn(&test),
        };
        self.joined(test, condition, yes, no, mark)
    }

    /// Puts both branches together. One of them may have left.
    fn joined(
        &mut self,
        test: K6Test<'a>,
        condition: ImportedCondition,
        mut yes: FollowedBranch<'a>,
        mut no: FollowedBranch<'a>,
        mark: HeapMark,
    ) -> K6Flow<'a> {
        self.put_flags(yes.left.iter().chain(&no.left).map(|(flag, _)| flag));
        match (&yes.flow, &no.flow) {
            (K6Flow::Normal, K6Flow::Normal) => {
                self.merge_slots(&test, &mut yes, &mut no, mark);
                self.put_when(condition, yes.steps, no.steps);
                self.leave_by_flags(yes.left);
                self.leave_by_flags(no.left);
                K6Flow::Normal
            }
            (_, K6Flow::Normal) => {
                let left = std::mem::take(&mut no.left);
                self.go_on(test, condition, yes, no, mark);
                self.leave_by_flags(left);
                K6Flow::Normal
            }
            (K6Flow::Normal, _) => {
                let left = std::mem::take(&mut yes.left);
                self.go_on(test.not(), condition.opposite(), no, yes, mark);
                self.leave_by_flags(left);
                K6Flow::Normal
            }
            (K6Flow::Return(a), K6Flow::Return(b)) => {
                let (a, b) = (a.clone(), b.clone());
                let value = self.merged(&test, a, b, &mut yes.steps, &mut no.steps, "result");
                self.put_when(condition, yes.steps, no.steps);
                K6Flow::Return(value)
            }
            (K6Flow::Throw, _) => {
                let flow = no.flow.clone();
                self.go_on(test, condition, yes, no, mark);
                flow
            }
            _ => {
                let flow = yes.flow.clone();
                self.go_on(test.not(), condition.opposite(), no, yes, mark);
                flow
            }
        }
    }

    /// One branch leaves; what follows is done after the steps of the other.
    fn go_on(
        &mut self,
        test: K6Test<'a>,
        condition: ImportedCondition,
        leaving: FollowedBranch<'a>,
        other: FollowedBranch<'a>,
        mark: HeapMark,
    ) {
        self.reapply(&other.held, |slot| mark.has(slot));
        self.leave(test, condition, leaving.steps, leaving.flow);
        self.steps.extend(other.steps);
    }

    fn followed(&mut self, body: BranchBody<'_, 'a, 'r>) -> FollowedBranch<'a> {
        self.open();
        let pending = self.pending.len();
        self.conditions += 1;
        self.under.push(self.conditions);
        let flow = body(self);
        // `fail()` in an expression ends the branch too.
        let flow = if std::mem::take(&mut self.has_thrown) { K6Flow::Throw } else { flow };
        let (flow, left) = self.ended(pending, flow);
        self.under.pop();
        FollowedBranch { flow, steps: self.close(), left, held: Vec::new() }
    }

    /// Ends the branches that left since a point, inside one that ended by `flow`. Where they
    /// leave in another way than it does, it sets a variable as they do, and goes on.
    fn ended(&mut self, from: usize, flow: K6Flow<'a>) -> (K6Flow<'a>, LeftByFlag<'a>) {
        let way = std::mem::discriminant(&flow);
        let mut inner = self.pending.iter().skip(from);
        let is_alone = inner.all(|branch| std::mem::discriminant(&branch.flow) == way);
        match flow {
            K6Flow::Return(value) if is_alone => {
                let (value, left) = self.returned(from, value);
                (K6Flow::Return(value), left)
            }
            flow if is_alone || matches!(flow, K6Flow::Normal) => (flow, self.flagged(from)),
            flow => {
                let flag = self.fresh("left");
                self.steps.push(set_flag(&flag));
                let mut left = self.flagged(from);
                left.push((flag, flow));
                (K6Flow::Normal, left)
            }
        }
    }

    /// What follows is done only where a branch did not leave.
    fn leave(
        &mut self,
        test: K6Test<'a>,
        condition: ImportedCondition,
        steps: Vec<K6Step>,
        flow: K6Flow<'a>,
    ) {
        if matches!(flow, K6Flow::Throw) && self.phase == K6Phase::Setup {
            self.leave_out("an error in 'setup' under a condition, which ends the test in k6");
        }
        self.pending.push(PendingBranch { test, condition, steps, flow });
        self.conditions += 1;
        self.under.push(self.conditions);
        self.open();
    }

    /// Leaves the loop where a test does not hold. An error says why that cannot be written.
    pub(super) fn leave_unless(&mut self, test: &K6Test<'a>) -> Result<(), String> {
        match test {
            K6Test::Known(true) => Ok(()),
            K6Test::Known(false) => Err("its condition never holds".to_owned()),
            K6Test::Chance(_) => Err("its condition is random".to_owned()),
            test => {
                let test = test.clone().not();
                let condition = self.condition(&test)?;
                self.leave(test, condition, Vec::new(), K6Flow::Break);
                Ok(())
            }
        }
    }

    pub(super) fn leave_by_flags(&mut self, left: LeftByFlag<'a>) {
        for (flag, flow) in left {
            let variable = JsValue::Session(Rc::from(flag.as_str()));
            let one = JsValue::text("1");
            let test = K6Test::Compare(variable, ImportedRelation::Equal, one);
            self.leave(test, is_set(flag), Vec::new(), flow);
        }
    }

    /// Ends the branches that left since a point; each sets a variable, as it leaves more than
    /// what ends here.
    pub(super) fn flagged(&mut self, from: usize) -> LeftByFlag<'a> {
        let mut left = Vec::new();
        while let Some((mut branch, rest)) = self.end_last(from) {
            left.push((self.flag(&mut branch), branch.flow));
            self.put_when(branch.condition, branch.steps, rest);
        }
        left.reverse();
        left
    }

    /// Ends the last branch that left since a point; also the steps of the other one.
    fn end_last(&mut self, from: usize) -> Option<(PendingBranch<'a>, Vec<K6Step>)> {
        if self.pending.len() <= from {
            return None;
        }
        let branch = self.pending.pop()?;
        self.under.pop();
        Some((branch, self.close()))
    }

    /// Has a branch set a variable that says it left.
    fn flag(&mut self, branch: &mut PendingBranch<'a>) -> String {
        let flag = self.fresh("left");
        branch.steps.push(set_flag(&flag));
        flag
    }

    /// Empties the variables by which branches leave.
    pub(super) fn put_flags<'f>(&mut self, flags: impl Iterator<Item = &'f String>) {
        let empty = |flag: &String| K6Step::Set(vec![(flag.clone(), ImportedText::default())]);
        self.steps.extend(flags.map(empty));
    }

    /// Ends the branches since a point that leave what ends here; the others stay open, or set
    /// variables if they lie in these. Whether there were others.
    pub(super) fn end_branches(&mut self, from: usize, ends: fn(&K6Flow) -> bool) -> bool {
        let mut own = self.pending.iter().skip(from);
        let Some(first) = own.position(|branch| ends(&branch.flow)) else {
            return false;
        };
        let mut left = Vec::new();
        while let Some((mut branch, rest)) = self.end_last(from + first) {
            if !ends(&branch.flow) {
                let flag = self.flag(&mut branch);
                self.put_flags(std::iter::once(&flag));
                left.push((flag, branch.flow));
            }
            self.put_when(branch.condition, branch.steps, rest);
        }
        left.reverse();
        self.leave_by_flags(left);
        true
    }

    /// Ends the branches of a function that returned, and brings their values together with the
    /// last one. All others set variables.
    pub(super) fn returned(
        &mut self,
        from: usize,
        value: JsValue<'a>,
    ) -> (JsValue<'a>, LeftByFlag<'a>) {
        let (mut value, mut left) = (value, Vec::new());
        while let Some((mut branch, mut rest)) = self.end_last(from) {
            if let K6Flow::Return(other) = branch.flow {
                let test = &branch.test;
                value = self.merged(test, other, value, &mut branch.steps, &mut rest, "result");
            } else {
                let flag = self.flag(&mut branch);
                self.put_flags(std::iter::once(&flag));
                left.push((flag, branch.flow));
            }
            self.put_when(branch.condition, branch.steps, rest);
        }
        left.reverse();
        (value, left)
    }

    fn put_when(
        &mut self,
        condition: ImportedCondition,
        steps: Vec<K6Step>,
        otherwise: Vec<K6Step>,
    ) {
        if !(steps.is_empty() && otherwise.is_empty()) {
            self.steps.push(K6Step::When { condition, steps, otherwise });
        }
    }

    pub(super) fn put_choice(&mut self, choices: Vec<(u32, Vec<K6Step>)>) {
        if choices.iter().any(|(_, steps)| !steps.is_empty()) {
            self.steps.push(K6Step::Choose(choices));
        }
    }

    /// A chance as a variable that is compared.
    fn drawn(&mut self, test: &K6Test<'a>) -> (K6Test<'a>, ImportedCondition) {
        let chance = if let K6Test::Chance(chance) = test { *chance } else { 0.5 };
        let most = (chance * 1000.0).round();
        let variable = self.set_variable("chance", ImportedText::value("random(1,1000)"));
        let (variable, most) = (JsValue::Session(variable), JsValue::Number(most));
        let test = K6Test::Compare(variable, ImportedRelation::AtMost, most);
        let condition = self.condition(&test).unwrap_or(ImportedCondition::All(Vec::new()));
        (test, condition)
    }

    /// Branches whose condition cannot be written: what they do is left out.
    fn left_out_branches(
        &mut self,
        what: &str,
        then: BranchBody<'_, 'a, 'r>,
        otherwise: BranchBody<'_, 'a, 'r>,
    ) -> K6Flow<'a> {
        let at = self.at;
        let before = self.snapshot();
        let mark = self.heap.mark();
        let yes = self.followed(then);
        let mut held = self.heap.undo(mark);
        let no = self.followed(otherwise);
        held.extend(self.heap.undo(mark));
        let has_sent = self.sent_since(&before) || self.lost_since(&before) > 0;
        self.restore(&before);
        self.at = at;
        for (slot, _) in held.into_iter().filter(|(slot, _)| mark.has(slot)) {
            self.forget(slot, what);
        }
        let stays = matches!((&yes.flow, &no.flow), (K6Flow::Normal, K6Flow::Normal));
        let returns = matches!((&yes.flow, &no.flow), (K6Flow::Return(_), K6Flow::Return(_)));
        if has_sent || !yes.steps.is_empty() || !no.steps.is_empty() {
            self.leave_out(format!("a condition on {what}: the steps of its branches"));
        }
        if returns {
            return K6Flow::Return(JsValue::unknown(what));
        }
        if !stays || !yes.left.is_empty() || !no.left.is_empty() {
            self.leave_out(format!(
                "a condition on {what}, after which less may be done: what follows is always done"
            ));
        }
        K6Flow::Normal
    }

    /// A slot that may have been changed has a value that is not known.
    pub(super) fn forget(&mut self, slot: Slot, what: &str) {
        let unknown = JsValue::unknown(what);
        let value = match self.heap.value(&slot) {
            Some(SlotValue::Object(HeapObject::List(_))) => {
                SlotValue::Object(HeapObject::List(vec![unknown]))
            }
            Some(SlotValue::Object(HeapObject::Object(entries))) => {
                let entries = entries.into_iter().map(|(name, _)| (name, unknown.clone()));
                SlotValue::Object(HeapObject::Object(entries.collect()))
            }
            _ => SlotValue::Variable(Some(unknown)),
        };
        self.heap.set(slot, value);
    }
}

/// Sets the variable of a branch that leaves.
fn set_flag(flag: &str) -> K6Step {
    K6Step::Set(vec![(flag.to_owned(), "1".into())])
}

/// Whether a branch left, by its variable.
pub(super) fn is_set(flag: String) -> ImportedCondition {
    let flag = ImportedText::value(flag);
    ImportedCondition::Compare(flag, ImportedRelation::Equal, "1".into())
}

/// Two whole weights for a chance.
fn weights(chance: f64) -> (u32, u32) {
    let yes = ((chance.clamp(0.0, 1.0) * 1000.0).round() as u32).clamp(1, 999);
    let (mut a, mut b) = (yes, 1000 - yes);
    for divisor in [100, 50, 25, 20, 10, 5, 2] {
        if a % divisor == 0 && b % divisor == 0 {
            (a, b) = (a / divisor, b / divisor);
        }
    }
    (a, b)
}
