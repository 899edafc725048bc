//! `check`: what its predicates ask of a response is what the scenario expects of it.

use super::super::grammar::{is_token, status_ranges};
use super::super::{ImportedExpect, ImportedMatch, ImportedRelation};
use super::calls::argument;
use super::interpreter::K6Interpreter;
use super::value::{JsValue, K6Test, PartPlace, ResponsePart};
use crate::response::status;
use knee_load::time::Nanos;
use std::rc::Rc;

/// The least and the greatest status.
const STATUSES: std::ops::RangeInclusive<u16> = 100..=599;

/// Matches a text without characters and a list without elements.
pub(super) const EMPTY: &str = "^(\\[\\s*\\])?$";

/// What one test asks of a response.
enum CheckExpectation {
    Status(Vec<u16>),
    Time(Nanos),
    Header(String, ImportedMatch),
    Body(Option<String>, ImportedMatch),
}

impl<'a> K6Interpreter<'a, '_> {
    /// `check(RESPONSE, {NAME: PREDICATE})`: whether all hold.
    pub(super) fn check(&mut self, arguments: &[JsValue<'a>]) -> JsValue<'a> {
        let value = argument(arguments, 0);
        let sets = argument(arguments, 1).certain();
        let Some(predicates) = self.heap.entries(&sets).map(<[_]>::to_vec) else {
            self.leave_out("check: its predicates are not known");
            return JsValue::unknown("the result of a check that is left out");
        };
        if self.has_thrown {
            return JsValue::Bool(false);
        }
        let at = self.at;
        let mut tests = Vec::new();
        for (name, predicate) in predicates {
            let test = match &predicate {
                JsValue::Function(_) => self.asked(&predicate, value.clone()),
                other => self.truthy(other.clone()),
            };
            self.at = at;
            if let Err(why) = self.expect(&test) {
                self.leave_out(format!("check '{name}': {why}"));
            }
            tests.push(test);
        }
        self.remark("A check that fails counts as a failed request.");
        JsValue::test(K6Test::joined(tests, true))
    }

    /// Has the scenario expect what a test asks.
    fn expect(&mut self, test: &K6Test<'a>) -> Result<(), String> {
        if let K6Test::Known(true) = test {
            return Ok(());
        }
        let asked = self.expectations(test, false)?;
        if !asked.iter().all(|(request, _)| self.is_on_way(*request)) {
            return Err("it is done under a condition".to_owned());
        }
        let before = self.requests.clone();
        for (request, expectation) in asked {
            if let Err(why) = self.put_expectation(request, &expectation) {
                self.requests = before;
                return Err(why);
            }
        }
        Ok(())
    }

    fn put_expectation(
        &mut self,
        response: usize,
        expectation: &CheckExpectation,
    ) -> Result<(), String> {
        for request in self.requests_of(response) {
            let expect = &mut Rc::make_mut(&mut self.requests[request]).draft.expect;
            match expectation {
                CheckExpectation::Status(statuses) => restrict(expect, statuses)?,
                CheckExpectation::Time(time) => {
                    expect.time = Some(expect.time.map_or(*time, |other| other.min(*time)));
                }
                CheckExpectation::Header(name, is) => {
                    let mut headers = expect.headers.iter();
                    match headers.find(|(other, _)| other.eq_ignore_ascii_case(name)) {
                        Some((_, other)) if other == is => {}
                        Some(_) => return Err(format!("a second one of the header {name}")),
                        None => expect.headers.push((name.clone(), is.clone())),
                    }
                }
                CheckExpectation::Body(pointer, is) => {
                    let one = (pointer.clone(), is.clone());
                    if !expect.body.contains(&one) {
                        expect.body.push(one);
                    }
                }
            }
        }
        Ok(())
    }

    fn expectations(
        &mut self,
        test: &K6Test<'a>,
        is_not: bool,
    ) -> Result<Vec<(usize, CheckExpectation)>, String> {
        if let Some((request, statuses)) = status_set(test) {
            let chosen = |status: &u16| statuses.contains(status) != is_not;
            let statuses = STATUSES.filter(chosen).collect();
            return Ok(vec![(request, CheckExpectation::Status(statuses))]);
        }
        match test {
            // All of them, or none.
            K6Test::All(many) | K6Test::Any(many) if is_not == matches!(test, K6Test::Any(_)) => {
                let mut all = Vec::new();
                for one in many {
                    all.append(&mut self.expectations(one, is_not)?);
                }
                Ok(all)
            }
            K6Test::Not(other) => self.expectations(other, !is_not),
            K6Test::Truthy(JsValue::Part(part)) => {
                let is = truthy_match(&part.place)?;
                if let PartPlace::Json(_) | PartPlace::Header(_) = part.place {
                    self.remark("A check for a value that is true asks only whether it is there.");
                }
                Ok(vec![placed(part, if is_not { negated(is) } else { is })?])
            }
            K6Test::Compare(left, relation, right) => {
                let (part, relation, other) = part_first(left, *relation, right)?;
                self.compared(part, relation, other, is_not)
            }
            K6Test::Known(false) => Err("it never holds".to_owned()),
            K6Test::Known(true) => Ok(Vec::new()),
            K6Test::Unknown(what) => Err(what.to_string()),
            K6Test::Any(_) | K6Test::All(_) => {
                Err("one thing or another, which is no status".to_owned())
            }
            _ => Err("it asks nothing of a response".to_owned()),
        }
    }

    fn compared(
        &mut self,
        part: &ResponsePart,
        relation: ImportedRelation,
        other: &JsValue<'a>,
        is_not: bool,
    ) -> Result<Vec<(usize, CheckExpectation)>, String> {
        use ImportedRelation as Relation;
        let not = |is: ImportedMatch| if is_not { negated(is) } else { is };
        match (&part.place, other) {
            (PartPlace::Duration, JsValue::Number(ms))
                if matches!(relation, Relation::Less | Relation::AtMost) && !is_not =>
            {
                if !(0.001..=86_400_000.0).contains(ms) {
                    return Err("a time that cannot be".to_owned());
                }
                self.remark(
                    "timings.duration is the response time here, which counts from the intended \
                     time of the request.",
                );
                let time = CheckExpectation::Time(Nanos((ms * 1e6) as u64));
                Ok(vec![(part.request, time)])
            }
            (PartPlace::Length(of), JsValue::Number(length)) => {
                let matches = length_matches(of, relation, *length)?;
                if is_not && matches.len() > 1 {
                    return Err("a length that is not this one".to_owned());
                }
                let matches = matches.into_iter().map(|(place, is)| {
                    placed(&ResponsePart { request: part.request, place }, not(is))
                });
                matches.collect()
            }
            (_, JsValue::Undefined | JsValue::Null) => {
                let is = ImportedMatch::Exists(relation == Relation::NotEqual);
                Ok(vec![placed(part, not(is))?])
            }
            (_, JsValue::Part(_)) => Err("a comparison of two parts of responses".to_owned()),
            _ => {
                let text = self.text_of(other)?;
                let is = match relation {
                    Relation::Equal => ImportedMatch::Equals(text),
                    Relation::NotEqual => negated(ImportedMatch::Equals(text)),
                    Relation::Less => ImportedMatch::Below(text),
                    Relation::Greater => ImportedMatch::Above(text),
                    Relation::AtMost => ImportedMatch::AtMost(text),
                    Relation::AtLeast => ImportedMatch::AtLeast(text),
                    Relation::Contains => ImportedMatch::Contains(text),
                    Relation::Matches => match text.literal() {
                        Some(pattern) => ImportedMatch::Matches(pattern.to_owned()),
                        None => return Err("an expression that is not known".to_owned()),
                    },
                };
                Ok(vec![placed(part, not(is))?])
            }
        }
    }
}

/// The expectation of a part.
fn placed(part: &ResponsePart, is: ImportedMatch) -> Result<(usize, CheckExpectation), String> {
    let expectation = match &part.place {
        PartPlace::Body => CheckExpectation::Body(None, is),
        PartPlace::Json(pointer) => CheckExpectation::Body(Some(pointer.clone()), is),
        PartPlace::Header(name) if is_token(name) => CheckExpectation::Header(name.clone(), is),
        PartPlace::Cookie(_) => return Err("a cookie".to_owned()),
        PartPlace::Css(..) | PartPlace::Html(_) => return Err("elements of HTML".to_owned()),
        PartPlace::Other(what) => return Err(what.clone()),
        PartPlace::Duration => return Err("a response time that is not below a limit".to_owned()),
        _ => return Err("a part of a response that a scenario does not ask about".to_owned()),
    };
    Ok((part.request, expectation))
}

fn negated(is: ImportedMatch) -> ImportedMatch {
    match is {
        ImportedMatch::Not(other) => *other,
        ImportedMatch::Exists(is) => ImportedMatch::Exists(!is),
        ImportedMatch::Above(text) => ImportedMatch::AtMost(text),
        ImportedMatch::Below(text) => ImportedMatch::AtLeast(text),
        ImportedMatch::AtLeast(text) => ImportedMatch::Below(text),
        ImportedMatch::AtMost(text) => ImportedMatch::Above(text),
        other => ImportedMatch::Not(Box::new(other)),
    }
}

/// The match of a part that is true.
fn truthy_match(place: &PartPlace) -> Result<ImportedMatch, String> {
    match place {
        PartPlace::Json(_) | PartPlace::Header(_) => Ok(ImportedMatch::Exists(true)),
        PartPlace::Body => Ok(ImportedMatch::Matches("(?s).".to_owned())),
        PartPlace::Length(of) => match length_matches(of, ImportedRelation::Greater, 0.0)?.pop() {
            Some((_, is)) => Ok(is),
            None => Err("a length".to_owned()),
        },
        PartPlace::Cookie(_) => Err("a cookie".to_owned()),
        PartPlace::Other(what) => Err(what.clone()),
        _ => Err("a part of a response that a scenario does not ask about".to_owned()),
    }
}

/// What a length of a body or of a list at the root says.
pub(super) fn length_matches(
    of: &PartPlace,
    relation: ImportedRelation,
    length: f64,
) -> Result<Vec<(PartPlace, ImportedMatch)>, String> {
    use ImportedRelation as Relation;
    if !(0.0..=1e6).contains(&length) || length.fract() != 0.0 {
        return Err("a length that cannot be".to_owned());
    }
    let length = length as u64;
    // The least length, and the greatest.
    let (least, most) = match relation {
        Relation::Equal => (length, Some(length)),
        Relation::Greater => (length + 1, None),
        Relation::AtLeast => (length, None),
        Relation::Less if length > 0 => (0, Some(length - 1)),
        Relation::AtMost => (0, Some(length)),
        Relation::NotEqual if length == 0 => (1, None),
        _ => return Err("a length that is not this one".to_owned()),
    };
    match of {
        PartPlace::Body if least <= 1 && most.is_none() => {
            Ok(vec![(PartPlace::Body, ImportedMatch::Matches("(?s).".to_owned()))])
        }
        PartPlace::Body => Err("the length of a body".to_owned()),
        PartPlace::Json(pointer) if !pointer.is_empty() => {
            // A text, or a list, which is compared as the JSON that it is.
            let empty = ImportedMatch::Matches(EMPTY.to_owned());
            let is = match (least, most) {
                (1, None) => negated(empty),
                (_, Some(0)) => empty,
                _ => return Err("the length of a text or of a list in JSON".to_owned()),
            };
            Ok(vec![(PartPlace::Json(pointer.clone()), is)])
        }
        PartPlace::Json(_) => {
            let at = |at: u64| PartPlace::Json(format!("/{at}"));
            let mut matches = Vec::new();
            if least > 0 {
                matches.push((at(least - 1), ImportedMatch::Exists(true)));
            }
            if let Some(most) = most {
                matches.push((at(most), ImportedMatch::Exists(false)));
            }
            Ok(matches)
        }
        _ => Err("a length".to_owned()),
    }
}

/// A comparison with a part of a response on its left side.
fn part_first<'t, 'a>(
    left: &'t JsValue<'a>,
    relation: ImportedRelation,
    right: &'t JsValue<'a>,
) -> Result<(&'t ResponsePart, ImportedRelation, &'t JsValue<'a>), String> {
    match (left, right) {
        (JsValue::Part(part), other) => Ok((part, relation, other)),
        (other, JsValue::Part(part)) => {
            let turned = relation.turned().ok_or("a part of a response in a text")?;
            Ok((part, turned, other))
        }
        _ => Err("it asks nothing of a response".to_owned()),
    }
}

/// The statuses for which a test holds, if it asks for these alone, and the request.
fn status_set(test: &K6Test) -> Option<(usize, Vec<u16>)> {
    let joined = |all: &[K6Test], is_all: bool| {
        let sets: Option<Vec<(usize, Vec<u16>)>> = all.iter().map(status_set).collect();
        let sets = sets?;
        let request = sets.first()?.0;
        let has = |status: &u16| {
            let mut sets = sets.iter().map(|(_, set)| set.contains(status));
            if is_all { sets.all(|is| is) } else { sets.any(|is| is) }
        };
        let is_one = sets.iter().all(|(other, _)| *other == request);
        is_one.then(|| (request, STATUSES.filter(has).collect()))
    };
    match test {
        K6Test::All(all) => joined(all, true),
        K6Test::Any(any) => joined(any, false),
        K6Test::Not(other) => {
            let (request, set) = status_set(other)?;
            Some((request, STATUSES.filter(|status| !set.contains(status)).collect()))
        }
        K6Test::Compare(left, relation, right) => {
            let (part, relation, other) = part_first(left, *relation, right).ok()?;
            let number = other.number().or_else(|| other.literal()?.parse().ok())?;
            if part.place != PartPlace::Status {
                return None;
            }
            let holds = |status: &u16| {
                let order = f64::from(*status).partial_cmp(&number);
                order.map_or(relation == ImportedRelation::NotEqual, |order| relation.holds(order))
            };
            Some((part.request, STATUSES.filter(holds).collect()))
        }
        _ => None,
    }
}

/// Permits only those of these statuses that were permitted before.
fn restrict(expect: &mut ImportedExpect, statuses: &[u16]) -> Result<(), String> {
    let before: Vec<(u16, u16)> = expect.status.iter().filter_map(|s| status(s).ok()).collect();
    let was = |status: u16| before.iter().any(|(low, high)| (*low..=*high).contains(&status));
    let is_new = before.is_empty();
    let left: Vec<u16> = statuses.iter().copied().filter(|s| is_new || was(*s)).collect();
    if left.is_empty() {
        return Err("no status is as all checks want it".to_owned());
    }
    expect.status = status_ranges(left.into_iter())
        .into_iter()
        .map(|(low, high)| match (low, high) {
            (low, high) if low == high => low.to_string(),
            (low, high) if low % 100 == 0 && high == low + 99 => format!("{}xx", low / 100),
            (low, high) => format!("{low}-{high}"),
        })
        .collect();
    Ok(())
}
