//! Assignments.

use super::builtins::random_ends;
use super::interpreter::K6Interpreter;
use super::value::JsValue;
use oxc_ast::ast::*;
use std::rc::Rc;

impl<'a> K6Interpreter<'a, '_> {
    pub(super) fn update(&mut self, of: &'a UpdateExpression<'a>, scope: usize) -> JsValue<'a> {
        let old = self.target_value(&of.argument, scope);
        let by = if of.operator == UpdateOperator::Increment { 1.0 } else { -1.0 };
        let new = self.plus(&old, by);
        self.assign_simple(&of.argument, new.clone(), scope);
        if of.prefix { new } else { old }
    }

    /// What a target has so far.
    fn target_value(
        &mut self,
        target: &'a SimpleAssignmentTarget<'a>,
        scope: usize,
    ) -> JsValue<'a> {
        match target {
            SimpleAssignmentTarget::AssignmentTargetIdentifier(id) => {
                self.identifier(id.name.as_str(), scope)
            }
            other => match other.as_member_expression() {
                Some(member) => self.member_expression(member, scope),
                None => JsValue::Undefined,
            },
        }
    }

    pub(super) fn assignment(
        &mut self,
        of: &'a AssignmentExpression<'a>,
        scope: usize,
    ) -> JsValue<'a> {
        let right = |own: &mut Self| own.evaluate(&of.right, scope);
        let old = |own: &mut Self| match of.left.as_simple_assignment_target() {
            Some(target) => own.target_value(target, scope),
            None => JsValue::Undefined,
        };
        let value = match of.operator {
            AssignmentOperator::Assign => right(self),
            AssignmentOperator::LogicalOr | AssignmentOperator::LogicalNullish => {
                let old = old(self);
                match old.truth() {
                    Some(true) => old,
                    Some(false) => right(self),
                    None => self.with_default(old, &of.right, scope),
                }
            }
            operator => match operator.to_binary_operator() {
                Some(operator) => {
                    let (old, other) = (old(self), right(self));
                    self.binary(old, operator, other)
                }
                None => {
                    right(self);
                    JsValue::unknown("a value that is computed")
                }
            },
        };
        self.at = of.span.start;
        self.assign(&of.left, value, scope)
    }

    /// Gives a target a value. Returns the value, which may have a name by that.
    pub(super) fn assign(
        &mut self,
        target: &'a AssignmentTarget<'a>,
        value: JsValue<'a>,
        scope: usize,
    ) -> JsValue<'a> {
        if let Some(simple) = target.as_simple_assignment_target() {
            return self.assign_simple(simple, value, scope);
        }
        match target {
            AssignmentTarget::ArrayAssignmentTarget(of) => {
                for (at, element) in of.elements.iter().enumerate() {
                    let part = self.member(&value, &at.to_string());
                    if let Some(target) = element.as_ref().and_then(|e| e.as_assignment_target()) {
                        self.assign(target, part, scope);
                    }
                }
            }
            _ => self.leave_out("an assignment to the parts of an object"),
        }
        value
    }

    pub(super) fn assign_simple(
        &mut self,
        target: &'a SimpleAssignmentTarget<'a>,
        value: JsValue<'a>,
        scope: usize,
    ) -> JsValue<'a> {
        if let SimpleAssignmentTarget::AssignmentTargetIdentifier(id) = target {
            let name = id.name.as_str();
            let value = self.called(value, name);
            let owner = self.heap.scope_of(scope, name).unwrap_or(self.globals);
            self.heap.declare(owner, name, value.clone());
            return value;
        }
        let Some(member) = target.as_member_expression() else {
            self.leave_out("an assignment");
            return value;
        };
        let (object, Some(name)) = self.object_and_name(member, scope) else {
            self.leave_out("an assignment to a place known only at run time");
            return value;
        };
        let object = object.certain();
        if let Some(JsValue::Class(class, scope)) = self.heap.class(&object) {
            let (class, scope) = (*class, *scope);
            if let Some((_, setter)) = self.defined(class, scope, &name, &object, true) {
                self.call(&setter, vec![value.clone()]);
                return value;
            }
        }
        match object {
            JsValue::Heap(at) => {
                self.burn(8 + self.heap.length(at));
                self.heap.set_entries(at, vec![(name, value.clone())]);
            }
            // Exports of older scripts, and properties of what k6 has.
            JsValue::Builtin(path) if &*path == "module" || &*path == "exports" => {}
            _ => self.leave_out(format!("an assignment to '{name}'")),
        }
        value
    }

    /// A number plus another, as far as that can be said.
    pub(super) fn plus(&mut self, value: &JsValue<'a>, by: f64) -> JsValue<'a> {
        match value {
            JsValue::Number(number) => JsValue::Number(number + by),
            // Any number that no other call gives is one plus another.
            JsValue::SessionNumber(of, _) if self.draw_of(of).starts_with("seq(") => value.clone(),
            JsValue::SessionNumber(of, plus) if !self.named.contains(&**of) => {
                match random_ends(self.draw_of(of)) {
                    Some((low, high)) => self.random(low + by, high + by),
                    None => JsValue::SessionNumber(Rc::clone(of), plus + by),
                }
            }
            JsValue::SessionNumber(of, plus) => JsValue::SessionNumber(Rc::clone(of), plus + by),
            JsValue::Uniform { low, high, draw } => {
                JsValue::Uniform { low: low + by, high: high + by, draw: *draw }
            }
            _ => JsValue::unknown("a number that is computed"),
        }
    }
}
