//! Branches: both are followed, and what they set comes together.

use super::super::{ImportedCondition, ImportedRelation, ImportedText};
use super::heap::{HeapObject, Slot, SlotValue};
use super::interpreter::{K6Flow, K6Interpreter, K6Phase, K6Step, PendingBranch};
use super::merging::is_new;
use super::value::{JsValue, K6Test};
use std::rc::Rc;

/// What a branch does.
pub(super) type BranchBody<'b, 'a, 'r> =
    &'b mut dyn FnMut(&mut K6Interpreter<'a, 'r>) -> K6Flow<'a>;

/// Branches that left from inside others, by the variables that say so.
type LeftByFlag<'a> = Vec<(String, K6Flow<'a>)>;

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
        let (extent, mark) = (self.heap.extent(), self.heap.mark());
        let mut yes = self.followed(then);
        yes.held = self.heap.undo(mark);
        let mut no = self.followed(otherwise);
        no.held = self.heap.undo(mark);
        self.at = at;
        self.reapply(&yes.held, |slot| is_new(slot, extent));
        self.reapply(&no.held, |slot| is_new(slot, extent));
        let stays = |branch: &FollowedBranch| matches!(branch.flow, K6Flow::Normal);
        if let (K6Test::Chance(chance), true, true) = (&test, stays(&yes), stays(&no))
            && yes.left.is_empty()
            && no.left.is_empty()
            && !yes.steps.is_empty()
            && !no.steps.is_empty()
        {
            self.merge_slots(&test, &mut yes, &mut no, extent);
            let (a, b) = weights(*chance);
            self.put_choice(vec![(a, yes.steps), (b, no.steps)]);
            return K6Flow::Normal;
        }
        let (test, condition) = match condition {
            Some(condition) => (test, condition),
            None => self.drawn(&test),
        };
        self.joined(test, condition, yes, no, extent)
    }

    /// Puts both branches together. One of them may have left.
    fn joined(
        &mut self,
        test: K6Test<'a>,
        condition: ImportedCondition,
        mut yes: FollowedBranch<'a>,
        mut no: FollowedBranch<'a>,
        extent: (usize, usize),
    ) -> K6Flow<'a> {
        for (flag, _) in yes.left.iter().chain(&no.left) {
            self.steps.push(K6Step::Set(vec![(flag.clone(), ImportedText::default())]));
        }
        match (&yes.flow, &no.flow) {
            (K6Flow::Normal, K6Flow::Normal) => {
                self.merge_slots(&test, &mut yes, &mut no, extent);
                self.put_when(condition, yes.steps, no.steps);
                self.leave_by_flags(yes.left);
                self.leave_by_flags(no.left);
                K6Flow::Normal
            }
            (_, K6Flow::Normal) => {
                self.reapply(&no.held, |slot| !is_new(slot, extent));
                self.leave(test, condition, yes.steps, yes.flow);
                self.steps.append(&mut no.steps);
                self.leave_by_flags(no.left);
                K6Flow::Normal
            }
            (K6Flow::Normal, _) => {
                self.reapply(&yes.held, |slot| !is_new(slot, extent));
                self.leave(test.not(), condition.opposite(), no.steps, no.flow);
                self.steps.append(&mut yes.steps);
                self.leave_by_flags(yes.left);
                K6Flow::Normal
            }
            (K6Flow::Return(a), K6Flow::Return(b)) => {
                let (a, b) = (a.clone(), b.clone());
                let value = self.merged(&test, a, b, &mut yes.steps, &mut no.steps, "result");
                self.put_when(condition, yes.steps, no.steps);
                K6Flow::Return(value)
            }
            _ => {
                self.reapply(&yes.held, |slot| !is_new(slot, extent));
                self.leave(test.not(), condition.opposite(), no.steps, no.flow);
                self.steps.append(&mut yes.steps);
                yes.flow
            }
        }
    }

    fn followed(&mut self, body: BranchBody<'_, 'a, 'r>) -> FollowedBranch<'a> {
        self.open();
        let pending = self.pending.len();
        self.conditions += 1;
        self.under.push(self.conditions);
        let mut flow = body(self);
        self.has_thrown = false;
        let left = match flow {
            K6Flow::Return(value) => {
                let (value, left) = self.returned(pending, value);
                flow = K6Flow::Return(value);
                left
            }
            _ => self.flagged(pending),
        };
        self.under.pop();
        FollowedBranch { flow, steps: self.close(), left, held: Vec::new() }
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

    pub(super) fn leave_by_flags(&mut self, left: LeftByFlag<'a>) {
        for (flag, flow) in left {
            let variable = JsValue::Session(Rc::from(flag.as_str()));
            let one = JsValue::text("1");
            let test = K6Test::Compare(variable, ImportedRelation::Equal, one);
            let condition = ImportedCondition::Compare(
                ImportedText::value(flag),
                ImportedRelation::Equal,
                "1".into(),
            );
            self.leave(test, condition, Vec::new(), flow);
        }
    }

    /// Ends the branches that left since a point; each sets a variable, as it leaves more than
    /// what ends here.
    pub(super) fn flagged(&mut self, from: usize) -> LeftByFlag<'a> {
        let mut left = Vec::new();
        while self.pending.len() > from {
            let rest = self.close();
            self.under.pop();
            if let Some(mut branch) = self.pending.pop() {
                let flag = self.fresh("left");
                branch.steps.push(K6Step::Set(vec![(flag.clone(), "1".into())]));
                self.put_when(branch.condition, branch.steps, rest);
                left.push((flag, branch.flow));
            }
        }
        left.reverse();
        left
    }

    /// Ends the branches since a point that leave what ends here; the others stay open, or set
    /// variables if they lie in these. Whether there were others.
    pub(super) fn end_branches(&mut self, from: usize, ends: fn(&K6Flow) -> bool) -> bool {
        let own = self.pending.iter().skip(from);
        let Some(first) = own.clone().position(|branch| ends(&branch.flow)) else {
            return false;
        };
        let first = from + first;
        let mut left = Vec::new();
        while self.pending.len() > first {
            let rest = self.close();
            self.under.pop();
            let Some(mut branch) = self.pending.pop() else {
                break;
            };
            if !ends(&branch.flow) {
                let flag = self.fresh("left");
                branch.steps.push(K6Step::Set(vec![(flag.clone(), "1".into())]));
                self.steps.push(K6Step::Set(vec![(flag.clone(), ImportedText::default())]));
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
        while self.pending.len() > from {
            let mut rest = self.close();
            self.under.pop();
            let Some(mut branch) = self.pending.pop() else {
                break;
            };
            match branch.flow {
                K6Flow::Return(other) => {
                    let test = &branch.test;
                    value = self.merged(test, other, value, &mut branch.steps, &mut rest, "result");
                }
                flow => {
                    let flag = self.fresh("left");
                    branch.steps.push(K6Step::Set(vec![(flag.clone(), "1".into())]));
                    self.steps.push(K6Step::Set(vec![(flag.clone(), ImportedText::default())]));
                    left.push((flag, flow));
                }
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
        let test = K6Test::Compare(variable, ImportedRelation::AtMost, JsValue::Number(most));
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
        let (extent, mark) = (self.heap.extent(), self.heap.mark());
        let yes = self.followed(then);
        let mut held = self.heap.undo(mark);
        let no = self.followed(otherwise);
        held.extend(self.heap.undo(mark));
        let has_sent = self.sent_since(&before);
        self.restore(&before);
        self.at = at;
        for (slot, _) in held.into_iter().filter(|(slot, _)| !is_new(slot, extent)) {
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
