//! Conditions of If and While controllers: the comparisons that their scripts consist of.

use super::JmeterReader;
use super::expression::{JmeterPart, parts, written};
use crate::import::ImportedRelation::{
    AtLeast, AtMost, Contains, Equal, Greater, Less, Matches, NotEqual,
};
use crate::import::{ImportedCondition, ImportedRelation, ImportedText};

/// The deepest nesting.
const DEPTH_MAX: usize = 10;

/// What a condition comes to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum JmeterDecision {
    /// It is the same in each session.
    Known(bool),
    /// It is asked when its step is reached.
    Asked(ImportedCondition),
}

impl JmeterDecision {
    fn opposite(self) -> JmeterDecision {
        match self {
            JmeterDecision::Known(is) => JmeterDecision::Known(!is),
            JmeterDecision::Asked(condition) => JmeterDecision::Asked(condition.opposite()),
        }
    }

    /// Whether both hold, or with `any` at least one of them.
    fn joined(self, other: JmeterDecision, any: bool) -> JmeterDecision {
        use ImportedCondition::{All, Any};
        match (self, other) {
            (JmeterDecision::Known(is), other) | (other, JmeterDecision::Known(is)) => {
                if is == any { JmeterDecision::Known(any) } else { other }
            }
            (JmeterDecision::Asked(a), JmeterDecision::Asked(b)) => {
                let mut all = Vec::new();
                for one in [a, b] {
                    match (one, any) {
                        (All(own), false) | (Any(own), true) => all.extend(own),
                        (one, _) => all.push(one),
                    }
                }
                JmeterDecision::Asked(if any { Any(all) } else { All(all) })
            }
        }
    }
}

impl JmeterReader<'_> {
    /// What a condition says: a script, or a text that has to be `true`.
    ///
    /// # Errors
    /// What of it a scenario cannot ask.
    pub(super) fn decision(
        &mut self,
        text: &str,
        is_script: bool,
    ) -> Result<JmeterDecision, String> {
        const SCRIPTS: [&str; 5] = ["__jexl3", "__jexl2", "__jexl", "__groovy", "__javaScript"];
        let parts = parts(text.trim());
        match &parts[..] {
            [JmeterPart::Call(name, arguments)] if SCRIPTS.contains(&name.as_str()) => {
                let script = arguments.first().map(Vec::as_slice).unwrap_or_default();
                self.script(script)
            }
            [JmeterPart::Text(plain)] => match plain.trim() {
                "true" => Ok(JmeterDecision::Known(true)),
                "false" => Ok(JmeterDecision::Known(false)),
                _ if is_script => self.script(&parts),
                _ => Ok(JmeterDecision::Known(false)),
            },
            _ if is_script => self.script(&parts),
            _ => Ok(compared(self.known(&parts)?, Equal, "true".into())),
        }
    }

    /// The value of parts that are all known.
    pub(super) fn known(&mut self, parts: &[JmeterPart]) -> Result<ImportedText, String> {
        let (value, unknown) = self.resolved_parts(parts);
        match unknown.first() {
            Some(what) => Err(format!("nothing here sets {what}")),
            None => Ok(value),
        }
    }

    fn script(&mut self, parts: &[JmeterPart]) -> Result<JmeterDecision, String> {
        let mut units = Vec::new();
        for part in parts {
            match part {
                JmeterPart::Text(text) => units.extend(text.chars().map(ScriptUnit::Char)),
                other => units.push(ScriptUnit::Part(other.clone())),
            }
        }
        let mut script = JmeterScript { reader: self, units, at: 0, depth: 0 };
        let decision = script.any()?;
        script.blanks();
        if script.at < script.units.len() { script.not_understood() } else { Ok(decision) }
    }
}

/// A comparison, which is settled at once if both sides are.
fn compared(left: ImportedText, relation: ImportedRelation, right: ImportedText) -> JmeterDecision {
    if let (Some(a), Some(b)) = (left.literal(), right.literal()) {
        let numbers = a.trim().parse::<f64>().ok().zip(b.trim().parse::<f64>().ok());
        let order = numbers.and_then(|(a, b)| a.partial_cmp(&b)).unwrap_or_else(|| a.cmp(b));
        match relation {
            Matches => {}
            Contains => return JmeterDecision::Known(a.contains(b)),
            _ => return JmeterDecision::Known(relation.holds(order)),
        }
    }
    // A variable that is not set is its own name in JMeter, and empty here.
    let is_own_name = |value: &ImportedText, text: &ImportedText| {
        let names = value.names();
        let plain = text.literal().and_then(|text| text.strip_prefix("${"));
        plain.is_some_and(|name| names.contains(&name.trim_end_matches('}')))
    };
    let right = if is_own_name(&left, &right) { ImportedText::default() } else { right };
    JmeterDecision::Asked(ImportedCondition::Compare(left, relation, right))
}

/// A character of a script, or a value in it.
#[derive(Clone, Debug)]
enum ScriptUnit {
    Char(char),
    Part(JmeterPart),
}

struct JmeterScript<'r, 'a> {
    reader: &'r mut JmeterReader<'a>,
    units: Vec<ScriptUnit>,
    at: usize,
    depth: usize,
}

/// A side of a comparison, or one that is decided by itself.
enum ScriptSide {
    Value(ImportedText),
    Decided(JmeterDecision),
}

impl JmeterScript<'_, '_> {
    fn peek(&self) -> Option<char> {
        self.char_at(self.at)
    }

    fn char_at(&self, at: usize) -> Option<char> {
        match self.units.get(at) {
            Some(ScriptUnit::Char(c)) => Some(*c),
            _ => None,
        }
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(|c| c.is_whitespace() || c == ';') {
            self.at += 1;
        }
    }

    fn rest(&self) -> String {
        let unit = |unit: &ScriptUnit| match unit {
            ScriptUnit::Char(c) => c.to_string(),
            ScriptUnit::Part(part) => written(std::slice::from_ref(part)),
        };
        self.units.iter().skip(self.at).map(unit).collect()
    }

    fn not_understood<T>(&self) -> Result<T, String> {
        Err(format!("'{}' is not understood", self.rest()))
    }

    /// Takes a sign or a word that stands here.
    fn take(&mut self, sign: &str) -> bool {
        self.blanks();
        let mut at = self.at;
        for expected in sign.chars() {
            if self.char_at(at) != Some(expected) {
                return false;
            }
            at += 1;
        }
        let is_letter = |c: char| c.is_alphanumeric() || c == '_';
        if sign.ends_with(is_letter) && self.char_at(at).is_some_and(is_letter) {
            return false;
        }
        self.at = at;
        true
    }

    fn take_any(&mut self, signs: &[&str]) -> bool {
        signs.iter().any(|sign| self.take(sign))
    }

    fn any(&mut self) -> Result<JmeterDecision, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("it is nested too deeply".to_owned());
        }
        let mut decision = self.every()?;
        while self.take_any(&["||", "or"]) {
            decision = decision.joined(self.every()?, true);
        }
        self.depth -= 1;
        Ok(decision)
    }

    fn every(&mut self) -> Result<JmeterDecision, String> {
        let mut decision = self.one()?;
        while self.take_any(&["&&", "and"]) {
            decision = decision.joined(self.one()?, false);
        }
        Ok(decision)
    }

    fn one(&mut self) -> Result<JmeterDecision, String> {
        let mut is_not = false;
        self.blanks();
        loop {
            let is_unequal = self.char_at(self.at + 1) == Some('=');
            let is_sign = !is_unequal && self.take("!");
            if !is_sign && !self.take("not") {
                break;
            }
            is_not = !is_not;
        }
        let decision = if self.take("(") {
            let inner = self.any()?;
            if !self.take(")") {
                return self.not_understood();
            }
            inner
        } else {
            self.comparison()?
        };
        Ok(if is_not { decision.opposite() } else { decision })
    }

    fn comparison(&mut self) -> Result<JmeterDecision, String> {
        const SIGNS: [(&[&str], ImportedRelation); 7] = [
            (&["===", "==", "eq"], Equal),
            (&["!==", "!=", "ne"], NotEqual),
            (&["<=", "le"], AtMost),
            (&[">=", "ge"], AtLeast),
            (&["<", "lt"], Less),
            (&[">", "gt"], Greater),
            (&["=~"], Matches),
        ];
        let left = match self.side()? {
            ScriptSide::Decided(decision) => return Ok(decision),
            ScriptSide::Value(left) => left,
        };
        for (signs, relation) in SIGNS {
            if self.take_any(signs) {
                let ScriptSide::Value(right) = self.side()? else {
                    return Err("it compares what is decided".to_owned());
                };
                return if relation == Matches {
                    whole(left, &right)
                } else {
                    Ok(compared(left, relation, right))
                };
            }
        }
        Ok(compared(left, Equal, "true".into()))
    }

    fn side(&mut self) -> Result<ScriptSide, String> {
        self.blanks();
        let mut value = self.value()?;
        while self.take(".") {
            match self.method(&value)? {
                ScriptSide::Value(changed) => value = changed,
                decided @ ScriptSide::Decided(_) => return Ok(decided),
            }
        }
        self.blanks();
        if self.peek().is_some_and(|c| "+-*/%?".contains(c)) {
            return Err(format!("it computes: '{}'", self.rest()));
        }
        Ok(ScriptSide::Value(value))
    }

    /// A text in quotes, a number, a value, or a variable by its name.
    fn value(&mut self) -> Result<ImportedText, String> {
        if let Some(quote) = self.peek().filter(|c| matches!(c, '"' | '\'')) {
            self.at += 1;
            return self.until(|c| c == quote, true);
        }
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
        let is_number = self.peek().is_none_or(|c| c.is_ascii_digit() || c == '-');
        if is_number {
            return match self.until(|c| !is_part(c), false)? {
                value if value.is_empty() => self.not_understood(),
                value => Ok(value),
            };
        }
        for (call, prefix) in [("vars.get", ""), ("props.get", "__P"), ("vars", "")] {
            if self.take(call) {
                return self.looked_up(prefix);
            }
        }
        for call in ["Integer.parseInt", "Integer.valueOf", "parseInt", "Number"] {
            if self.take(call) {
                let is_call = self.take("(");
                let value = self.value()?;
                let is_closed = self.take(")");
                return if is_call && is_closed { Ok(value) } else { Err("a call".to_owned()) };
            }
        }
        for (word, text) in [("true", "true"), ("false", "false"), ("null", "")] {
            if self.take(word) {
                return Ok(text.into());
            }
        }
        self.not_understood()
    }

    /// `("name")` or `["name"]` behind `vars` or `props`.
    fn looked_up(&mut self, function: &str) -> Result<ImportedText, String> {
        let is_open = self.take_any(&["(", "["]);
        let name = if is_open { self.value()? } else { ImportedText::default() };
        if !is_open || !self.take_any(&[")", "]"]) {
            return self.not_understood();
        }
        let name = vec![JmeterPart::Text(name.literal().unwrap_or_default().to_owned())];
        let part = match function {
            "" => JmeterPart::Variable(name),
            call => JmeterPart::Call(call.to_owned(), vec![name]),
        };
        self.reader.known(&[part])
    }

    /// What stands here up to a character, which is then taken if it is a quote.
    fn until(
        &mut self,
        is_end: impl Fn(char) -> bool,
        is_quoted: bool,
    ) -> Result<ImportedText, String> {
        let mut inside = Vec::new();
        loop {
            match self.units.get(self.at).cloned() {
                Some(ScriptUnit::Char(c)) if is_end(c) => break,
                Some(ScriptUnit::Char(c)) => match inside.last_mut() {
                    Some(JmeterPart::Text(text)) => text.push(c),
                    _ => inside.push(JmeterPart::Text(c.to_string())),
                },
                Some(ScriptUnit::Part(part)) => inside.push(part),
                None if is_quoted => return Err("a text without its end".to_owned()),
                None => break,
            }
            self.at += 1;
        }
        if is_quoted {
            self.at += 1;
        }
        self.reader.known(&inside)
    }

    /// A method of a text.
    fn method(&mut self, of: &ImportedText) -> Result<ScriptSide, String> {
        const SAME: [&str; 6] = ["toString", "trim", "toInteger", "toLong", "toDouble", "intValue"];
        const ASKS: [(&str, ImportedRelation); 5] = [
            ("equals", Equal),
            ("contains", Contains),
            ("includes", Contains),
            ("matches", Matches),
            ("startsWith", Matches),
        ];
        for name in SAME {
            if self.take(name) {
                let is_call = self.take("(") && self.take(")");
                return is_call
                    .then(|| ScriptSide::Value(of.clone()))
                    .ok_or_else(|| format!("{name} with arguments"));
            }
        }
        if self.take("isEmpty") && self.take("(") && self.take(")") {
            let empty = ImportedText::default();
            return Ok(ScriptSide::Decided(compared(of.clone(), Equal, empty)));
        }
        for (name, relation) in ASKS {
            if self.take(name) {
                let is_open = self.take("(");
                let other = self.value()?;
                if !is_open || !self.take(")") {
                    return self.not_understood();
                }
                let decision = match name {
                    "matches" => whole(of.clone(), &other)?,
                    "startsWith" => {
                        let text = other.literal().ok_or("startsWith of a variable")?;
                        matching(of.clone(), format!("^{}", regex_syntax::escape(text)))
                    }
                    _ => compared(of.clone(), relation, other),
                };
                return Ok(ScriptSide::Decided(decision));
            }
        }
        Err(format!("'.{}' is not understood", self.rest()))
    }
}

/// Whether an expression matches the whole of a text.
fn whole(of: ImportedText, pattern: &ImportedText) -> Result<JmeterDecision, String> {
    let pattern = pattern.literal().ok_or("an expression with a variable")?;
    Ok(matching(of, format!("^(?:{pattern})$")))
}

fn matching(of: ImportedText, pattern: String) -> JmeterDecision {
    JmeterDecision::Asked(ImportedCondition::Compare(of, Matches, pattern.into()))
}
