//! Expressions.

use super::super::{ImportedRelation, ImportedText};
use super::interpreter::{K6Flow, K6Interpreter, TEXT_MAX};
use super::value::{FunctionCode, JsValue, K6Test};
use oxc_ast::ast::*;
use oxc_span::GetSpan;
use std::rc::Rc;

/// Whether `left && right`, or `left || right`, is the value of a side and not just a truth value.
fn is_one_of_two(left: &JsValue<'_>, right: &JsValue<'_>, is_and: bool) -> bool {
    match right {
        JsValue::Bool(_) | JsValue::Test(_) => false,
        JsValue::Text(_)
        | JsValue::Number(_)
        | JsValue::SessionNumber(..)
        | JsValue::Session(_)
            if is_and =>
        {
            true
        }
        _ => !is_and && matches!(left, JsValue::Maybe(_)),
    }
}

impl<'a> K6Interpreter<'a, '_> {
    /// The value of an expression, with all that it does.
    pub(super) fn evaluate(&mut self, of: &'a Expression<'a>, scope: usize) -> JsValue<'a> {
        if self.has_thrown {
            return JsValue::Undefined;
        }
        let unknown = JsValue::unknown("what is too deep to follow it");
        self.deeper(unknown, |own| own.expression(of, scope))
    }

    fn expression(&mut self, of: &'a Expression<'a>, scope: usize) -> JsValue<'a> {
        match of.get_inner_expression() {
            Expression::BooleanLiteral(of) => JsValue::Bool(of.value),
            Expression::NullLiteral(_) => JsValue::Null,
            Expression::NumericLiteral(of) => JsValue::Number(of.value),
            Expression::StringLiteral(of) => JsValue::text(of.value.as_str()),
            Expression::TemplateLiteral(of) => self.template(of, scope),
            Expression::RegExpLiteral(of) => {
                let (text, flags) = (of.regex.pattern.text.as_str(), of.regex.flags);
                JsValue::Regex(Rc::from(regex(text, flags)))
            }
            Expression::Identifier(id) => self.identifier(id.name.as_str(), scope),
            Expression::ArrayExpression(of) => self.array(of, scope),
            Expression::ObjectExpression(of) => self.object(of, scope),
            Expression::ArrowFunctionExpression(of) => {
                self.closure(FunctionCode::Arrow(of), scope, None)
            }
            Expression::FunctionExpression(of) => {
                self.closure(FunctionCode::Function(of), scope, None)
            }
            Expression::ClassExpression(class) => JsValue::Class(class, scope),
            Expression::AwaitExpression(of) => self.evaluate(&of.argument, scope),
            Expression::SequenceExpression(of) => {
                let values = of.expressions.iter().map(|one| self.evaluate(one, scope));
                values.last().unwrap_or(JsValue::Undefined)
            }
            Expression::ThisExpression(_) => self.identifier("this", scope),
            Expression::UnaryExpression(of) => self.unary(of, scope),
            Expression::UpdateExpression(of) => self.update(of, scope),
            Expression::BinaryExpression(of) => {
                let left = self.evaluate(&of.left, scope);
                let right = self.evaluate(&of.right, scope);
                self.binary(left, of.operator, right)
            }
            Expression::LogicalExpression(of) => self.logical(of, scope, false),
            Expression::ConditionalExpression(of) => {
                let test = self.test(&of.test, scope);
                self.either(
                    test,
                    |own| own.evaluate(&of.consequent, scope),
                    |own| own.evaluate(&of.alternate, scope),
                )
            }
            Expression::AssignmentExpression(of) => self.assignment(of, scope),
            Expression::CallExpression(of) => self.call_expression(of, scope),
            Expression::NewExpression(of) => self.new_expression(of, scope),
            Expression::ChainExpression(of) => match &of.expression {
                ChainElement::CallExpression(of) => self.call_expression(of, scope),
                ChainElement::TSNonNullExpression(of) => self.evaluate(&of.expression, scope),
                other => match other.as_member_expression() {
                    Some(member) => self.member_expression(member, scope),
                    None => JsValue::Undefined,
                },
            },
            Expression::TaggedTemplateExpression(of) => self.tagged(of, scope),
            other => match other.as_member_expression() {
                Some(member) => self.member_expression(member, scope),
                None => {
                    self.at = other.span().start;
                    JsValue::unknown("an expression of a kind that is not followed")
                }
            },
        }
    }

    /// One of two values.
    fn either(
        &mut self,
        test: K6Test<'a>,
        yes: impl Fn(&mut Self) -> JsValue<'a>,
        no: impl Fn(&mut Self) -> JsValue<'a>,
    ) -> JsValue<'a> {
        // A value that a branch returns comes together with that of the other.
        let mut then = |own: &mut Self| K6Flow::Return(yes(own));
        let mut otherwise = |own: &mut Self| K6Flow::Return(no(own));
        match self.branch(test, &mut then, &mut otherwise) {
            K6Flow::Return(value) => value,
            _ => JsValue::unknown("a value that depends on a condition"),
        }
    }

    pub(super) fn member_expression(
        &mut self,
        of: &'a MemberExpression<'a>,
        scope: usize,
    ) -> JsValue<'a> {
        match of {
            MemberExpression::StaticMemberExpression(of) => {
                let object = self.evaluate(&of.object, scope);
                self.member(&object, of.property.name.as_str())
            }
            MemberExpression::ComputedMemberExpression(of) => {
                let object = self.evaluate(&of.object, scope);
                let key = self.evaluate(&of.expression, scope);
                self.at = of.span.start;
                self.indexed(&object, &key)
            }
            MemberExpression::PrivateFieldExpression(of) => {
                let object = self.evaluate(&of.object, scope);
                self.member(&object, &format!("#{}", of.field.name))
            }
        }
    }

    /// The object of a property, and the name of that if it is known.
    pub(super) fn object_and_name(
        &mut self,
        of: &'a MemberExpression<'a>,
        scope: usize,
    ) -> (JsValue<'a>, Option<Rc<str>>) {
        let object = self.evaluate(of.object(), scope);
        let name = match of {
            MemberExpression::StaticMemberExpression(of) => Some(of.property.name.as_str().into()),
            MemberExpression::PrivateFieldExpression(of) => {
                Some(format!("#{}", of.field.name).into())
            }
            MemberExpression::ComputedMemberExpression(of) => {
                let key = self.evaluate(&of.expression, scope);
                self.known_text(&key)
            }
        };
        (object, name)
    }

    /// A value as a text, if that is known.
    pub(super) fn known_text(&mut self, value: &JsValue<'a>) -> Option<Rc<str>> {
        self.text_of(value).ok()?.literal().map(Rc::from)
    }

    /// Adds the items of a list that stands behind `...`.
    pub(super) fn spread(
        &mut self,
        of: &'a SpreadElement<'a>,
        scope: usize,
        into: &mut Vec<JsValue<'a>>,
    ) {
        let list = self.evaluate(&of.argument, scope);
        match self.heap.items(&list) {
            Some(items) => into.extend_from_slice(items),
            None => into.push(JsValue::unknown("a list that is not known")),
        }
    }

    pub(super) fn identifier(&mut self, name: &str, scope: usize) -> JsValue<'a> {
        if let Some(value) = self.heap.variable(scope, name) {
            return value.clone();
        }
        match name {
            "undefined" => JsValue::Undefined,
            "NaN" => JsValue::Number(f64::NAN),
            "Infinity" => JsValue::Number(f64::INFINITY),
            "globalThis" | "global" => JsValue::builtin("globalThis"),
            "__VU" | "__ITER" => self.iteration_number(name),
            other => JsValue::builtin(other),
        }
    }

    fn template(&mut self, of: &'a TemplateLiteral<'a>, scope: usize) -> JsValue<'a> {
        let mut text = ImportedText::default();
        let mut values = of.expressions.iter();
        for quasi in &of.quasis {
            let cooked = quasi.value.cooked.as_ref().map_or("", |cooked| cooked.as_str());
            text.push(cooked);
            let Some(value) = values.next() else {
                continue;
            };
            let value = self.evaluate(value, scope);
            match self.text_of(&value) {
                Ok(part) => text.append(&part),
                Err(what) => return JsValue::unknown(what),
            }
        }
        self.bounded(text)
    }

    /// A text, or what it is made of that is not known.
    pub(super) fn text_value(&mut self, text: Result<ImportedText, String>) -> JsValue<'a> {
        text.map_or_else(JsValue::unknown, |text| self.bounded(text))
    }

    /// A text, unless it is too long.
    pub(super) fn bounded(&mut self, text: ImportedText) -> JsValue<'a> {
        let length = text.template().len();
        self.burn(length / 64);
        if length > TEXT_MAX {
            return JsValue::unknown("a text of more than 1 MiB");
        }
        JsValue::text(text)
    }

    /// `http.url`, which names requests by the text around its values.
    fn tagged(&mut self, of: &'a TaggedTemplateExpression<'a>, scope: usize) -> JsValue<'a> {
        let tag = self.evaluate(&of.tag, scope);
        let value = self.template(&of.quasi, scope);
        match (tag, value) {
            (JsValue::Builtin(path), JsValue::Text(text)) if &*path == "http.url" => {
                let quasis = of.quasi.quasis.iter().map(|quasi| quasi.value.raw.as_str());
                let name: Vec<&str> = quasis.collect();
                JsValue::Named(text, Rc::from(name.join("${}")))
            }
            (JsValue::Builtin(path), value) if &*path == "String.raw" => value,
            _ => JsValue::unknown("a tagged template"),
        }
    }

    fn array(&mut self, of: &'a ArrayExpression<'a>, scope: usize) -> JsValue<'a> {
        let mut items = Vec::new();
        for element in &of.elements {
            match element {
                ArrayExpressionElement::SpreadElement(of) => self.spread(of, scope, &mut items),
                ArrayExpressionElement::Elision(_) => items.push(JsValue::Undefined),
                other => {
                    if let Some(expression) = other.as_expression() {
                        items.push(self.evaluate(expression, scope));
                    }
                }
            }
        }
        self.burn(items.len());
        self.heap.list(items)
    }

    fn object(&mut self, of: &'a ObjectExpression<'a>, scope: usize) -> JsValue<'a> {
        let mut put: Vec<(Rc<str>, JsValue<'a>)> = Vec::new();
        for property in &of.properties {
            match property {
                ObjectPropertyKind::ObjectProperty(of) => {
                    let name = self.key(&of.key, of.computed, scope);
                    let value = match of.kind {
                        PropertyKind::Init => self.evaluate(&of.value, scope),
                        _ => JsValue::unknown("a property that is computed"),
                    };
                    self.hint(&value, &name);
                    put.push((name, value));
                }
                ObjectPropertyKind::SpreadProperty(of) => {
                    let other = self.evaluate(&of.argument, scope);
                    put.extend(self.spread_entries(&other));
                }
            }
        }
        self.burn(put.len());
        self.heap.object(put)
    }

    /// The entries that an object gets from another value. One that is not known stands for all of
    /// a value that is none of the script.
    pub(super) fn spread_entries(&self, of: &JsValue<'a>) -> Vec<(Rc<str>, JsValue<'a>)> {
        let of = of.clone().certain();
        match (self.heap.entries(&of), &of) {
            (Some(entries), _) => entries.to_vec(),
            (None, JsValue::Undefined | JsValue::Null | JsValue::Bool(_)) => Vec::new(),
            (None, _) => vec![(Rc::from("..."), JsValue::unknown("what is spread here"))],
        }
    }

    /// The name of a property.
    pub(super) fn key(
        &mut self,
        key: &'a PropertyKey<'a>,
        is_computed: bool,
        scope: usize,
    ) -> Rc<str> {
        match key {
            PropertyKey::StaticIdentifier(id) => Rc::from(id.name.as_str()),
            PropertyKey::PrivateIdentifier(id) => Rc::from(format!("#{}", id.name)),
            other => {
                let value = other.as_expression().map(|key| self.evaluate(key, scope));
                self.known_text(&value.unwrap_or(JsValue::Undefined)).unwrap_or_else(|| {
                    if is_computed {
                        self.leave_out("a property whose name is known only at run time");
                    }
                    Rc::from("?")
                })
            }
        }
    }

    fn unary(&mut self, of: &'a UnaryExpression<'a>, scope: usize) -> JsValue<'a> {
        match of.operator {
            UnaryOperator::LogicalNot => JsValue::test(self.test(&of.argument, scope).not()),
            UnaryOperator::Void => {
                self.evaluate(&of.argument, scope);
                JsValue::Undefined
            }
            UnaryOperator::UnaryPlus => {
                let value = self.evaluate(&of.argument, scope);
                self.as_number(value)
            }
            UnaryOperator::UnaryNegation => match self.evaluate(&of.argument, scope) {
                JsValue::Number(number) => JsValue::Number(-number),
                _ => JsValue::unknown("a number that is computed"),
            },
            UnaryOperator::Typeof => {
                let value = self.evaluate(&of.argument, scope);
                self.type_of(&value)
            }
            UnaryOperator::Delete => {
                self.leave_out("'delete'");
                JsValue::Bool(true)
            }
            UnaryOperator::BitwiseNot => JsValue::unknown("a number that is computed"),
        }
    }

    /// `A && B`, `A || B`, `A ?? B`: the value of one side, or what holds if only that counts.
    fn logical(
        &mut self,
        of: &'a LogicalExpression<'a>,
        scope: usize,
        is_test: bool,
    ) -> JsValue<'a> {
        let left = self.side(&of.left, scope, is_test);
        if of.operator == LogicalOperator::Coalesce {
            return match &left {
                JsValue::Undefined | JsValue::Null => self.evaluate(&of.right, scope),
                _ => match self.environment_default(&left, &of.right, scope) {
                    Some(value) => value,
                    None => self.with_default(left, &of.right, scope),
                },
            };
        }
        let is_and = of.operator == LogicalOperator::And;
        if let Some(is) = left.truth() {
            return if is == is_and { self.evaluate(&of.right, scope) } else { left };
        }
        if !is_and {
            if let Some(value) = self.environment_default(&left, &of.right, scope) {
                return value;
            }
            if !matches!(left, JsValue::Test(_) | JsValue::Maybe(_)) {
                return self.with_default(left, &of.right, scope);
            }
        }
        let test = self.truthy(left.clone());
        let before = self.snapshot();
        let value = self.side(&of.right, scope, is_test);
        let has_changed = self.heap.has_changed(before.heap);
        if self.steps_since(&before) == 0 && !has_changed && !self.has_thrown {
            if is_test || !is_one_of_two(&left, &value, is_and) {
                let right = self.truthy(value.clone());
                let joined = K6Test::joined(vec![test, right], is_and);
                return if is_and && !is_test {
                    held(joined, value)
                } else {
                    JsValue::test(joined)
                };
            }
            self.restore(&before);
            let right = |own: &mut Self| own.evaluate(&of.right, scope);
            return if is_and {
                self.either(test, right, |_| left.clone())
            } else {
                self.either(test, |_| left.clone(), right)
            };
        }
        self.restore(&before);
        let other = if is_and { test.clone() } else { test.clone().not() };
        let mut right = None;
        let mut then = |own: &mut Self| {
            right = Some(own.evaluate(&of.right, scope));
            K6Flow::Normal
        };
        // What the right side sends is sent only where the left one holds.
        self.branch(other, &mut then, &mut |_| K6Flow::Normal);
        let value = right.unwrap_or(JsValue::Undefined);
        let right = self.truthy(value.clone());
        let joined = K6Test::joined(vec![test, right], is_and);
        if is_and { held(joined, value) } else { JsValue::test(joined) }
    }

    /// A side of a logical expression.
    fn side(&mut self, of: &'a Expression<'a>, scope: usize, is_test: bool) -> JsValue<'a> {
        match of.without_parentheses() {
            Expression::LogicalExpression(of) if is_test => {
                let unknown = JsValue::unknown("an expression that is nested too deeply");
                self.deeper(unknown, |own| own.logical(of, scope, true))
            }
            _ => self.evaluate(of, scope),
        }
    }

    /// `VALUE || OTHER` of a value of the session.
    pub(super) fn with_default(
        &mut self,
        left: JsValue<'a>,
        right: &'a Expression<'a>,
        scope: usize,
    ) -> JsValue<'a> {
        let test = self.truthy(left.clone());
        self.either(test, |_| left.clone(), |own| own.evaluate(right, scope))
    }

    /// `__ENV.NAME || OTHER`: the variable is taken as not set.
    fn environment_default(
        &mut self,
        left: &JsValue<'a>,
        right: &'a Expression<'a>,
        scope: usize,
    ) -> Option<JsValue<'a>> {
        let name = environment_name(left)?;
        let value = self.evaluate(right, scope);
        let text = self.text_of(&value).map(|text| text.template()).unwrap_or_default();
        self.remark(format!("__ENV.{name} is taken as not set: '{text}' in its place."));
        Some(value)
    }

    /// What holds of an expression.
    pub(super) fn test(&mut self, of: &'a Expression<'a>, scope: usize) -> K6Test<'a> {
        let value = self.side(of, scope, true);
        self.truthy(value)
    }

    /// Whether a value is true.
    pub(super) fn truthy(&mut self, value: JsValue<'a>) -> K6Test<'a> {
        if let Some(is) = value.truth() {
            return K6Test::Known(is);
        }
        if let Some(name) = environment_name(&value) {
            self.remark(format!("__ENV.{name} is taken as not set."));
            return K6Test::Known(false);
        }
        match value {
            JsValue::Test(test) => (*test).clone(),
            JsValue::Maybe(maybe) => maybe.0.clone(),
            JsValue::Unknown(what) => K6Test::Unknown(what),
            number @ JsValue::SessionNumber(..) => {
                K6Test::Compare(number, ImportedRelation::NotEqual, JsValue::Number(0.0))
            }
            JsValue::Uniform { .. } => K6Test::Known(true),
            other => K6Test::Truthy(other),
        }
    }
}

/// What `A && B` gives if both hold by this test: the value of `B`, or the truth alone.
fn held<'a>(test: K6Test<'a>, value: JsValue<'a>) -> JsValue<'a> {
    let is_thing = matches!(
        value,
        JsValue::Part(_) | JsValue::Heap(_) | JsValue::Function(_) | JsValue::Record(_)
    );
    match test {
        K6Test::Known(_) | K6Test::Unknown(_) => JsValue::test(test),
        test if is_thing => JsValue::Maybe(Rc::new((test, value))),
        test => JsValue::test(test),
    }
}

/// The name of a variable of the environment, if that is all of a value.
pub(super) fn environment_name(value: &JsValue) -> Option<String> {
    let of = match value {
        JsValue::Text(text) => text.only_value()?,
        JsValue::SessionNumber(of, plus) if *plus == 0.0 => of,
        _ => return None,
    };
    of.strip_prefix("env(")?.strip_suffix(')').map(str::to_owned)
}

/// A regular expression as a scenario has it.
fn regex(text: &str, flags: RegExpFlags) -> String {
    let own = [(RegExpFlags::I, "i"), (RegExpFlags::M, "m"), (RegExpFlags::S, "s")];
    let own = own.map(|(flag, letter)| if flags.contains(flag) { letter } else { "" }).concat();
    let text = text.replace("\\/", "/");
    if own.is_empty() { text } else { format!("(?{own}){text}") }
}
