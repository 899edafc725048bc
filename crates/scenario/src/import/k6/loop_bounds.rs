//! How often a loop is done, in the words of a scenario.

use super::super::{ImportedCondition, ImportedRelation, ImportedRepeat, ImportedText};
use super::interpreter::K6Interpreter;
use super::value::{JsValue, K6Test, number_text};

/// The most numbers that are written out.
const NUMBERS_MAX: u32 = 1_000;
/// The most passes of a loop whose number is not known.
const ENDLESS: u32 = 1_000;

impl<'a> K6Interpreter<'a, '_> {
    /// How often a loop is done at most, and what else has to hold.
    pub(super) fn bound(
        &mut self,
        test: K6Test<'a>,
        pass: &str,
        base: f64,
        is_do: bool,
    ) -> Result<(Option<LoopBound>, Option<K6Test<'a>>), String> {
        let parts = match test {
            K6Test::All(parts) => parts,
            K6Test::Known(true) => Vec::new(),
            other => vec![other],
        };
        let (mut bound, mut rest) = (None, Vec::new());
        for part in parts {
            match self.times(&part, pass, base, is_do) {
                Some(times) if bound.is_none() => bound = Some(times),
                _ => rest.push(part),
            }
        }
        let rest = (!rest.is_empty()).then(|| K6Test::joined(rest, true));
        match &rest {
            Some(K6Test::Known(false)) => Err("its condition never holds".to_owned()),
            Some(K6Test::Chance(_)) => Err("its condition is random".to_owned()),
            _ => Ok((bound, rest)),
        }
    }

    /// The number of passes that a comparison of the counter permits. One after the pass comes
    /// to one pass more.
    fn times(
        &mut self,
        test: &K6Test<'a>,
        pass: &str,
        base: f64,
        is_do: bool,
    ) -> Option<LoopBound> {
        use ImportedRelation::{AtMost, Less, NotEqual};
        let K6Test::Compare(left, relation, right) = test else {
            return None;
        };
        let (counter, relation, end) = match (left, right) {
            (JsValue::SessionNumber(of, from), end) if &**of == pass => (*from, *relation, end),
            (end, JsValue::SessionNumber(of, from)) if &**of == pass => {
                (*from, relation.turned()?, end)
            }
            _ => return None,
        };
        let more = match relation {
            Less | NotEqual => 0.0,
            AtMost => 1.0,
            _ => return None,
        };
        match end {
            JsValue::Number(end) => {
                let counter = base + counter;
                let times = (end - counter + more).ceil();
                let times = if is_do { times + 1.0 } else { times };
                (1.0..=1e9).contains(&times).then_some(LoopBound::Number(times as u32))
            }
            end if !is_do && base + counter - more == 0.0 => {
                self.text_of(end).ok().map(LoopBound::Text)
            }
            _ => None,
        }
    }

    /// The words of a scenario for a loop, and what has to hold for it to begin.
    pub(super) fn repetition(
        &mut self,
        each: Option<ImportedRepeat>,
        bound: Option<LoopBound>,
        rest: Option<K6Test<'a>>,
        breaks: Vec<ImportedCondition>,
        is_do: bool,
    ) -> Result<(ImportedRepeat, Option<ImportedCondition>), String> {
        if let Some(each) = each {
            let is_free = breaks.is_empty() && rest.is_none();
            return if is_free { Ok((each, None)) } else { Err("it may end early".to_owned()) };
        }
        let most = match &bound {
            None => ENDLESS,
            Some(LoopBound::Number(times)) => *times,
            Some(LoopBound::Text(_)) if rest.is_none() && breaks.is_empty() => ENDLESS,
            Some(LoopBound::Text(_)) => return Err("its end is a value of the session".to_owned()),
        };
        let rest = rest.map(|rest| self.condition(&rest)).transpose()?;
        if bound.is_none() && (rest.is_some() || !breaks.is_empty()) {
            self.remark(format!("A loop without a bound is done at most {ENDLESS} times."));
        }
        Ok(match (rest, breaks.is_empty(), bound) {
            (None, true, Some(LoopBound::Text(text))) => (ImportedRepeat::Times(text), None),
            (None, true, Some(LoopBound::Number(times))) => {
                (ImportedRepeat::Times(times.to_string().into()), None)
            }
            (None, true, None) => return Err("it has no end".to_owned()),
            (Some(rest), true, _) if !is_do => (ImportedRepeat::While(rest, most), None),
            (rest, _, _) => {
                let mut ends = breaks;
                ends.extend(rest.clone().map(ImportedCondition::opposite));
                let until =
                    if ends.len() == 1 { ends.remove(0) } else { ImportedCondition::Any(ends) };
                let begins = if is_do { None } else { rest };
                (ImportedRepeat::Until(until, most), begins)
            }
        })
    }
}

/// A repetition whose variable counts from another number than 0.
pub(super) fn numbered(times: ImportedRepeat, base: f64) -> Result<ImportedRepeat, String> {
    match times {
        ImportedRepeat::Each(_) | ImportedRepeat::Elements(_) => Ok(times),
        times if base == 0.0 => Ok(times),
        ImportedRepeat::Times(text) => match text.literal().map(str::parse::<u32>) {
            Some(Ok(count)) if count <= NUMBERS_MAX => {
                let number = |at: u32| number_text(base + f64::from(at)).into();
                Ok(ImportedRepeat::Each((0..count).map(number).collect()))
            }
            _ => Err("its counter does not begin with 0".to_owned()),
        },
        _ => Err("its counter does not begin with 0".to_owned()),
    }
}

/// How often a loop is done.
#[derive(Clone, Debug)]
pub(super) enum LoopBound {
    Number(u32),
    Text(ImportedText),
}
