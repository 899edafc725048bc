//! Assignments.

use super::builtins::random_ends;
use super::interpreter::K6Interpreter;
use super::value::JsValue;
use oxc_ast::ast::*;
use std::rc::Rc;

impl<'a> K6Interpreter<'a, '_> {
    pub(super) fn update(&mut self, of: &'a UpdateExpression<'a>, scope: usize) -> JsValue<'a> {
        let old = match &of.argument {
            SimpleAssignmentTarget::AssignmentTargetIdentifier(id) => {
                self.identifier(id.name.as_str(), scope)
            }
            other => match other.as_member_expression() {
                Some(member) => self.member_expression(member, scope),
                None => JsValue::Undefined,
            },
        };
        let by = if of.operator == UpdateOperator::Increment { 1.0 } else { -1.0 };
        let new = self.plus(&old, by);
        self.assign_simple(&of.argument, new.clone(), scope);
        if of.prefix { new } else { old }
    }

    pub(super) fn assignment(
        &mut self,
        of: &'a AssignmentExpression<'a>,
        scope: usize,
    ) -> JsValue<'a> {
        let right = |own: &mut Self| own.evaluate(&of.right, scope);
        let old = |own: &mut Self| match &of.left {
            AssignmentTarget::AssignmentTargetIdentifier(id) => {
                own.identifier(id.name.as_str(), scope)
            }
            other => match other.as_member_expression() {
                Some(member) => own.member_expression(member, scope),
                None => JsValue::Undefined,
            },
        };
        let value = match of.operator {
            AssignmentOperator::Assign => right(self),
            AssignmentOperator::Addition => {
                let (old, more) = (old(self), right(self));
                self.binary(old, BinaryOperator::Addition, more)
            }
            AssignmentOperator::Subtraction => {
                let (old, less) = (old(self), right(self));
                self.binary(old, BinaryOperator::Subtraction, less)
            }
            AssignmentOperator::Multiplication => {
                let (old, by) = (old(self), right(self));
                self.binary(old, BinaryOperator::Multiplication, by)
            }
            AssignmentOperator::LogicalOr | AssignmentOperator::LogicalNullish => {
                let old = old(self);
                match old.truth() {
                    Some(true) => old,
                    Some(false) => right(self),
                    None => self.with_default(old, &of.right, scope),
                }
            }
            _ => {
                right(self);
                JsValue::unknown("a value that is computed")
            }
        };
        self.at = of.span.start;
        self.assign(&of.left, value.clone(), scope);
        value
    }

    pub(super) fn assign(
        &mut self,
        target: &'a AssignmentTarget<'a>,
        value: JsValue<'a>,
        scope: usize,
    ) {
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
    }

    pub(super) fn assign_simple(
        &mut self,
        target: &'a SimpleAssignmentTarget<'a>,
        value: JsValue<'a>,
        scope: usize,
    ) {
        if let SimpleAssignmentTarget::AssignmentTargetIdentifier(id) = target {
            let name = id.name.as_str();
            let value = self.called(value, name);
            let owner = self.heap.scope_of(scope, name).unwrap_or(self.globals);
            return self.heap.declare(owner, name, value);
        }
        let Some(member) = target.as_member_expression() else {
            return self.leave_out("an assignment");
        };
        let (object, name) = match member {
            MemberExpression::StaticMemberExpression(of) => {
                (self.evaluate(&of.object, scope), of.property.name.to_string())
            }
            MemberExpression::ComputedMemberExpression(of) => {
                let object = self.evaluate(&of.object, scope);
                let key = self.evaluate(&of.expression, scope);
                let text = self.text_of(&key).ok();
                let text = text.and_then(|text| text.literal().map(str::to_owned));
                let Some(text) = text else {
                    return self.leave_out("an assignment to a place known only at run time");
                };
                (object, text)
            }
            MemberExpression::PrivateFieldExpression(of) => {
                (self.evaluate(&of.object, scope), format!("#{}", of.field.name))
            }
        };
        match object.certain() {
            JsValue::Heap(at) => {
                self.burn(8);
                self.heap.set_entry(at, &name, value);
            }
            // Exports of older scripts, and properties of what k6 has.
            JsValue::Builtin(path) if &*path == "module" || &*path == "exports" => {}
            _ => self.leave_out(format!("an assignment to '{name}'")),
        }
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
