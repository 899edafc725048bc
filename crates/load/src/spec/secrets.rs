//! The secrets of a target: what its requests and sessions send.

use super::{Cut, HttpRequest, Part, Target};
use crate::secrets::{SecretNames, Secrets};
use crate::session::{
    Expectation, Fill, Function, HiddenValues, Instruction, SessionKind, SessionPlan, Source,
    Template, TemplatePiece,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Only this much of a body is searched, in bytes.
const BODY_MAX: usize = 1 << 20;

/// What stands around the place of a column in a text that is searched: no request has them.
const COLUMN: [char; 2] = ['\u{f8fe}', '\u{f8ff}'];

/// A request with what its holes are filled with.
#[derive(Clone, Copy)]
struct FilledRequest<'a> {
    request: &'a HttpRequest,
    fills: &'a [Fill],
    plan: Option<&'a SessionPlan>,
    kind: u16,
}

impl Target {
    /// Leaves the headers that are secrets by their names out of what follows redirections to
    /// another server than that of the step. Cookies of the session know their servers.
    pub fn keep_credentials_at_origin(&mut self, names: &SecretNames) {
        let Some(shared) = self.sessions.clone().filter(|_| !self.further.is_empty()) else {
            return;
        };
        let plan = &*shared;
        let mut changed = plan.clone();
        for step in &plan.requests {
            let first = step.redirected.into_iter().flat_map(|to| to.all());
            let others = (0..=self.further.len() as u16).filter(|server| *server != step.server);
            let others: Vec<u16> = others.collect();
            let of_server = |first| others.iter().filter_map(move |&n| plan.on_server(first, n));
            for number in first.flat_map(of_server) {
                let fills = &mut changed.requests[number as usize].fills;
                let request = &mut self.requests[number as usize];
                let of_session = request.holes.iter().zip(&*fills);
                let of_session: Vec<Part> = of_session
                    .filter(|(_, fill)| fill.is_of_cookies())
                    .map(|(hole, _)| hole.part)
                    .collect();
                request.leave_out_headers(fills, |number, name| {
                    names.is_secret(name) && !of_session.contains(&Part::Header(number))
                });
            }
        }
        self.sessions = Some(Arc::new(changed));
    }
}

impl Secrets {
    /// Learns the secrets of a target, and marks what its sessions may not show of responses.
    pub fn learn_target(&mut self, target: &mut Target) {
        if !self.hides() {
            return;
        }
        for user in target.proxies().into_iter().filter_map(|proxy| proxy.user.as_ref()) {
            self.learn_user(user);
        }
        let shared = target.sessions.clone();
        let plan = shared.as_deref();
        let mut last_body = std::ptr::null();
        for (number, request) in target.requests.iter().enumerate() {
            let step = plan.and_then(|plan| plan.requests.get(number));
            let filled = FilledRequest {
                request,
                fills: step.map_or(&[], |step| &step.fills),
                plan,
                kind: step.map_or(0, |step| step.kind),
            };
            self.learn_request(filled);
            // Targets may share a body.
            if request.body.len() <= BODY_MAX && request.body.as_ptr() != last_body {
                let body = filled.text(Part::Body);
                self.learn_all(self.secrets_of_body(&body), filled);
            }
            last_body = request.body.as_ptr();
        }
        if let Some(plan) = plan {
            self.learn_environment(plan);
            self.learn_columns(plan);
            let unshown = self.unshown(plan);
            let plan = plan.clone();
            target.sessions = Some(Arc::new(SessionPlan { unshown, ..plan }));
        }
    }

    fn learn_request(&mut self, filled: FilledRequest) {
        for (number, (name, _)) in (0u16..).zip(&filled.request.headers) {
            let part = Part::Header(number);
            let value = filled.text(part);
            if self.names().is_secret(name) {
                self.learn_all(vec![(name.clone(), value)], filled);
                self.learn_encoded(filled, part);
            } else {
                self.learn_text(&value);
            }
        }
        let path = filled.text(Part::Path);
        self.learn_all(self.secrets_of_url(&path), filled);
        let pieces = filled.fills.iter().flat_map(|fill| &fill.value.0);
        pieces.for_each(|piece| self.learn_keys(piece));
    }

    /// Learns values by their names, and the columns that are put into them.
    fn learn_all(&mut self, secrets: Vec<(String, String)>, filled: FilledRequest) {
        for (name, value) in secrets {
            for part in value.split(COLUMN[0]) {
                let (column, text) = part.split_once(COLUMN[1]).unwrap_or(("", part));
                self.learn_found(&name, text);
                for value in filled.column(column).into_iter().flatten() {
                    self.learn_found(&name, value);
                }
            }
        }
    }

    /// Learns the texts that calls encode for a secret: `${base64('user:password')}`.
    fn learn_encoded(&mut self, filled: FilledRequest, part: Part) {
        let holes = filled.request.holes.iter().zip(filled.fills);
        let holes = holes.filter(|(hole, _)| hole.part == part);
        for piece in holes.flat_map(|(_, fill)| &fill.value.0) {
            if let TemplatePiece::Call(function) = piece
                && let Function::Base64(of) | Function::UrlEncode(of) = &**function
            {
                for text in texts(of) {
                    self.learn_user(text);
                    self.learn(text.rsplit(':').next().unwrap_or_default());
                }
            }
        }
    }

    /// Learns the key that something is signed with.
    fn learn_keys(&mut self, piece: &TemplatePiece) {
        let TemplatePiece::Call(function) = piece else {
            return;
        };
        match &**function {
            Function::HmacSha256 { key, message } => {
                texts(key).for_each(|text| self.learn(text));
                message.0.iter().for_each(|piece| self.learn_keys(piece));
            }
            Function::Base64(of) | Function::UrlEncode(of) | Function::Raw(of) => {
                of.0.iter().for_each(|piece| self.learn_keys(piece));
            }
            Function::Random { .. } | Function::Uuid | Function::Now(_) | Function::Seq => {}
        }
    }

    /// Learns the variables of the environment that are called as secrets are.
    fn learn_environment(&mut self, plan: &SessionPlan) {
        let script = plan.script.iter();
        let of_script = script.flat_map(|script| script.envs.iter().chain([&script.env])).flatten();
        let of_file = plan.environment.iter().map(|(name, value)| (name, value));
        for (name, value) in of_script.chain(of_file) {
            if self.names().is_secret(name) {
                self.learn_found(name, value);
            }
        }
    }

    /// Learns the columns of data that are called as secrets are.
    fn learn_columns(&mut self, plan: &SessionPlan) {
        for set in &plan.data {
            for (number, name) in set.columns.iter().enumerate() {
                if self.names().is_secret(name) {
                    let values = set.rows.iter().filter_map(|row| row.get(number));
                    values.for_each(|value| self.learn_found(name, value));
                }
            }
        }
    }

    /// The variables and expectations that are secrets by their names.
    fn unshown(&self, plan: &SessionPlan) -> HiddenValues {
        let mut unshown = HiddenValues { hides: true, ..HiddenValues::default() };
        for (number, kind) in (0u16..).zip(&plan.kinds) {
            let named = (0u16..).zip(&kind.variables);
            let secret = named.filter(|(_, name)| self.names().is_secret(name));
            unshown.variables.extend(secret.map(|(variable, _)| (number, variable)));
        }
        for (request, step) in (0u32..).zip(&plan.requests) {
            let extracted = step.extract.iter().filter(|e| self.is_secret_source(&e.source));
            unshown.variables.extend(extracted.map(|e| (step.kind, e.variable)));
            for (number, expectation) in (0u16..).zip(&step.expect) {
                if let Expectation::Value { source, .. } = expectation
                    && self.is_secret_source(source)
                {
                    unshown.expectations.insert((request, number));
                }
            }
        }
        for (number, kind) in (0u16..).zip(&plan.kinds) {
            spread_secrets(&mut unshown.variables, (number, plan.setup), kind);
        }
        unshown
    }

    fn is_secret_source(&self, source: &Source) -> bool {
        let is_secret = |name: &str| self.names().is_secret(name);
        match source {
            Source::Json(pointer) => pointer.rsplit('/').next().is_some_and(is_secret),
            Source::Header(name) => is_secret(name),
            Source::Cookie(_) => true,
            Source::Between { before, .. } => words(before).any(is_secret),
            Source::Regex { pattern, .. } => words(&pattern.to_string()).any(is_secret),
            Source::Css { selector, attribute } => {
                let attribute = attribute.as_deref().unwrap_or_default();
                words(&selector.to_string()).any(is_secret) || is_secret(attribute)
            }
            Source::Body | Source::Status => false,
        }
    }
}

/// The words of a text, in which names may stand.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || "-_".contains(c)))
}

/// A variable that is set from a secret one is a secret too.
fn spread_secrets(
    secret: &mut BTreeSet<(u16, u16)>,
    (number, setup): (u16, Option<u16>),
    kind: &SessionKind,
) {
    loop {
        let before = secret.len();
        for instruction in &kind.program {
            if let Instruction::Set { variable, value } = instruction
                && TemplatePiece::any(&value.0, &|piece| match piece {
                    TemplatePiece::Variable(of) => secret.contains(&(number, *of)),
                    TemplatePiece::Setup(of) => setup.is_some_and(|s| secret.contains(&(s, *of))),
                    _ => false,
                })
            {
                secret.insert((number, *variable));
            }
        }
        if secret.len() == before {
            return;
        }
    }
}

impl<'a> FilledRequest<'a> {
    /// A part of the request as text, with signs where columns are put in.
    fn text(&self, part: Part) -> String {
        let mut text = String::new();
        for cut in self.request.cut(part) {
            let number = match cut {
                Cut::Text(bytes) => {
                    text.push_str(&String::from_utf8_lossy(&bytes));
                    continue;
                }
                Cut::Hole(number) => number,
            };
            for piece in self.fills.get(number).map_or(&[][..], |fill| &fill.value.0) {
                match piece {
                    TemplatePiece::Text(piece) => text.push_str(piece),
                    TemplatePiece::Column { data, column } => {
                        let [before, after] = COLUMN;
                        text.push_str(&format!("{before}{data},{column}{after}"));
                    }
                    TemplatePiece::Variable(_)
                    | TemplatePiece::Setup(_)
                    | TemplatePiece::Sent(_)
                    | TemplatePiece::Cookies
                    | TemplatePiece::Call(_) => {}
                }
            }
        }
        text
    }

    /// All values of a column, which [`text`](FilledRequest::text) wrote so.
    fn column(&self, place: &str) -> Option<impl Iterator<Item = &'a String> + use<'a>> {
        let (data, column) = place.split_once(',')?;
        let (data, column): (usize, usize) = (data.parse().ok()?, column.parse().ok()?);
        let plan = self.plan?;
        let set = plan.kinds.get(usize::from(self.kind))?.data.get(data)?;
        let rows = &plan.data.get(usize::from(*set))?.rows;
        Some(rows.iter().filter_map(move |row| row.get(column)))
    }
}

fn texts(template: &Template) -> impl Iterator<Item = &str> {
    template.0.iter().filter_map(|piece| match piece {
        TemplatePiece::Text(text) => Some(text.as_str()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{DataSet, Deal, Escape, Extraction, RequestStep, SessionKind};
    use crate::spec::{Hole, Pick, Url};

    /// A target of one step that sends the column `card` in a field that is called `pin`.
    fn target() -> Target {
        let url = Url::parse("http://h/?api_key=in-the-query").unwrap();
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let headers = vec![header("X-Auth-Token", "in-a-header"), header("Accept", "in-the-clear")];
        let body = b"pin=&user=me".to_vec();
        let mut request = HttpRequest::new("POST", &url, headers, body, 1).unwrap();
        request.holes = vec![Hole { part: Part::Body, at: 4 }];
        let step = RequestStep {
            fills: vec![Fill {
                value: Template(vec![TemplatePiece::Column { data: 0, column: 1 }]),
                escape: Escape::Form,
            }],
            extract: vec![Extraction {
                name: "session".to_owned(),
                variable: 2,
                source: Source::Body,
                otherwise: None,
            }],
            expect: vec![Expectation::Value {
                source: Source::Cookie("sid".to_owned()),
                is: crate::session::Match::Exists,
            }],
            ..RequestStep::default()
        };
        let words = |words: [&str; 3]| words.map(str::to_owned).to_vec();
        let plan = SessionPlan {
            kinds: vec![SessionKind {
                name: "one".to_owned(),
                weight: 1,
                data: vec![0],
                program: vec![Instruction::Set {
                    variable: 0,
                    value: Template(vec![TemplatePiece::Variable(2)]),
                }],
                variables: words(["of-a-secret", "b", "session"]),
                repetitions: Vec::new(),
                new_connection: false,
            }],
            environment: [("SHOP_TOKEN", "in-a-variable"), ("SHOP", "in-the-clear")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            requests: vec![step],
            data: vec![DataSet {
                name: "users".to_owned(),
                columns: words(["name", "card", "password"]),
                rows: vec![words(["ada-lovelace", "in-a-column", "in-a-password"])],
                deal: Deal::InOrder,
            }],
            ..SessionPlan::default()
        };
        let endpoint = url.endpoint().clone();
        let target = Target::new(endpoint, vec![request], Pick::InOrder, true).unwrap();
        Target { sessions: Some(Arc::new(plan)), ..target }
    }

    #[test]
    fn all_that_a_target_sends_under_a_secret_name_is_known() {
        let mut secrets = Secrets::default();
        secrets.learn_target(&mut target());
        let values =
            ["in-the-query", "in-a-header", "in-a-column", "in-a-password", "in-a-variable"];
        for secret in values {
            assert_eq!(secrets.hide(secret), "***", "{secret}");
        }
        for plain in ["in-the-clear", "ada-lovelace", "me"] {
            assert_eq!(secrets.hide(plain), plain);
        }
    }

    #[test]
    fn secrets_of_responses_are_marked_and_requests_stay() {
        let (before, mut after) = (target(), target());
        Secrets::default().learn_target(&mut after);
        assert_eq!(after.requests, before.requests);
        let unshown = &after.sessions.as_ref().unwrap().unshown;
        assert_eq!(unshown.variables, [(0, 0), (0, 2)].into());
        assert_eq!(unshown.expectations, [(0, 0)].into());
        Secrets::default().shown().learn_target(&mut before.clone());
        assert!(!before.sessions.unwrap().unshown.hides);
    }
}
