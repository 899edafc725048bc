//! Comparisons.

use super::super::ImportedRelation;
use super::expressions::environment_name;
use super::interpreter::K6Interpreter;
use super::operators::numeric;
use super::value::{JsValue, K6Test, PartPlace};
use oxc_ast::ast::BinaryOperator;
use std::rc::Rc;

impl<'a> K6Interpreter<'a, '_> {
    pub(super) fn compare(
        &mut self,
        left: JsValue<'a>,
        operator: BinaryOperator,
        right: JsValue<'a>,
    ) -> K6Test<'a> {
        use ImportedRelation as Relation;
        let (relation, is_strict) = match operator {
            BinaryOperator::Equality => (Relation::Equal, false),
            BinaryOperator::StrictEquality => (Relation::Equal, true),
            BinaryOperator::Inequality => (Relation::NotEqual, false),
            BinaryOperator::StrictInequality => (Relation::NotEqual, true),
            BinaryOperator::LessThan => (Relation::Less, false),
            BinaryOperator::LessEqualThan => (Relation::AtMost, false),
            BinaryOperator::GreaterThan => (Relation::Greater, false),
            _ => (Relation::AtLeast, false),
        };
        let settled = self
            .with_nothing(&left, relation, &right, is_strict)
            .or_else(|| self.with_place(&left, relation, &right))
            .or_else(|| self.known_comparison(&left, relation, &right, is_strict))
            .or_else(|| self.with_chance(&left, relation, &right));
        if let Some(test) = settled {
            return test;
        }
        for value in [&left, &right] {
            if let JsValue::Unknown(what) = value {
                return K6Test::Unknown(Rc::clone(what));
            }
        }
        match (&left, &right) {
            // A comparison with true or false asks for that.
            (JsValue::Test(test), JsValue::Bool(is)) | (JsValue::Bool(is), JsValue::Test(test))
                if is_equality(relation) =>
            {
                let is_same = *is == (relation == Relation::Equal);
                if is_same { (**test).clone() } else { (**test).clone().not() }
            }
            _ => K6Test::Compare(left, relation, right),
        }
    }

    /// Whether there is a value at all. A variable of the environment is taken as not set.
    fn with_nothing(
        &mut self,
        left: &JsValue<'a>,
        relation: ImportedRelation,
        right: &JsValue<'a>,
        is_strict: bool,
    ) -> Option<K6Test<'a>> {
        let is_equal = relation == ImportedRelation::Equal;
        let as_asked = |is: bool| K6Test::Known(is == is_equal);
        for (one, other) in [(left, right), (right, left)] {
            let is_nothing = matches!(other, JsValue::Undefined | JsValue::Null);
            if let Some(name) = environment_name(one) {
                self.remark(format!("__ENV.{name} is taken as not set."));
                let is_asked = is_equality(relation);
                return Some(if is_asked { as_asked(is_nothing) } else { K6Test::Known(false) });
            }
            if !is_nothing || !is_equality(relation) {
                continue;
            }
            return Some(match one {
                JsValue::Undefined | JsValue::Null => as_asked(!is_strict || one.same(other)),
                JsValue::Maybe(maybe) if is_equal => maybe.0.clone().not(),
                JsValue::Maybe(maybe) => maybe.0.clone(),
                JsValue::Unknown(what) => K6Test::Unknown(Rc::clone(what)),
                JsValue::Part(part) if part.place == PartPlace::Error => as_asked(true),
                JsValue::Part(_) | JsValue::Session(_) => {
                    K6Test::Compare(one.clone(), relation, JsValue::Undefined)
                }
                _ => as_asked(false),
            });
        }
        None
    }

    /// `text.indexOf(OTHER) !== -1` and its kin.
    fn with_place(
        &self,
        left: &JsValue<'a>,
        relation: ImportedRelation,
        right: &JsValue<'a>,
    ) -> Option<K6Test<'a>> {
        use ImportedRelation as Relation;
        let (JsValue::Part(part), JsValue::Number(at)) = (left, right) else {
            return None;
        };
        let PartPlace::Index(place, text) = &part.place else {
            return None;
        };
        let whole = self.part(part.request, (**place).clone());
        let has = K6Test::Compare(whole, Relation::Contains, JsValue::text(text.as_str()));
        Some(match (relation, *at) {
            (Relation::NotEqual | Relation::Greater, -1.0) | (Relation::AtLeast, 0.0) => has,
            (Relation::Equal | Relation::AtMost, -1.0) | (Relation::Less, 0.0) => has.not(),
            _ => K6Test::Unknown(Rc::from("the place of a text")),
        })
    }

    /// `Math.random() < 0.3`, of a number that is used once.
    fn with_chance(
        &self,
        left: &JsValue<'a>,
        relation: ImportedRelation,
        right: &JsValue<'a>,
    ) -> Option<K6Test<'a>> {
        let (JsValue::Uniform { low, high, draw }, Some(end)) = (left, right.number()) else {
            return None;
        };
        if is_equality(relation) || !self.draws.get(*draw).is_some_and(Option::is_none) {
            return None;
        }
        let below = ((end - low) / (high - low)).clamp(0.0, 1.0);
        let is_below = matches!(relation, ImportedRelation::Less | ImportedRelation::AtMost);
        Some(match if is_below { below } else { 1.0 - below } {
            0.0 => K6Test::Known(false),
            1.0 => K6Test::Known(true),
            chance => K6Test::Chance(chance),
        })
    }

    fn known_comparison(
        &self,
        left: &JsValue<'a>,
        relation: ImportedRelation,
        right: &JsValue<'a>,
        is_strict: bool,
    ) -> Option<K6Test<'a>> {
        use ImportedRelation as Relation;
        let holds = if left.is_plain() && right.is_plain() {
            if let (Some(a), Some(b)) = (left.literal(), right.literal()) {
                relation.holds(a.cmp(b))
            } else {
                let same_kind = std::mem::discriminant(left) == std::mem::discriminant(right);
                let (a, b) = (numeric(left), numeric(right));
                match relation {
                    Relation::Equal => (same_kind || !is_strict) && a == b,
                    Relation::NotEqual => (!same_kind && is_strict) || a != b,
                    relation => a.partial_cmp(&b).is_some_and(|order| relation.holds(order)),
                }
            }
        } else {
            let is_object =
                |value: &JsValue| matches!(value, JsValue::Heap(_) | JsValue::Function(_));
            if !is_equality(relation) || !(is_object(left) || is_object(right)) {
                return None;
            }
            left.same(right) == (relation == Relation::Equal)
        };
        Some(K6Test::Known(holds))
    }
}

fn is_equality(relation: ImportedRelation) -> bool {
    matches!(relation, ImportedRelation::Equal | ImportedRelation::NotEqual)
}
