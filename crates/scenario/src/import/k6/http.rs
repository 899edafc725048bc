//! Calls of `http` and their parameters.

use super::super::collect::{SourceRequest, below};
use super::super::{ImportedBody, ImportedPart, ImportedText};
use super::calls::argument;
use super::interpreter::{K6Interpreter, K6Request, K6Step};
use super::options::duration;
use super::value::{JsValue, number_text};
use crate::flow::BRANCHES_MAX;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use knee_load::percent;
use knee_load::time::Nanos;
use std::rc::Rc;

/// The time limit of k6.
const TIMEOUT_S: u64 = 60;

impl<'a> K6Interpreter<'a, '_> {
    pub(super) fn http_call(&mut self, name: &str, arguments: &[JsValue<'a>]) -> JsValue<'a> {
        let at = |at: usize| argument(arguments, at);
        let (method, url, body, parameters) = match name {
            "get" | "head" => (name.to_ascii_uppercase(), at(0), JsValue::Undefined, at(1)),
            "post" | "put" | "patch" | "options" => {
                (name.to_ascii_uppercase(), at(0), at(1), at(2))
            }
            "del" | "delete" => ("DELETE".to_owned(), at(0), at(1), at(2)),
            "request" | "asyncRequest" => match at(0).literal() {
                Some(method) => (method.to_ascii_uppercase(), at(1), at(2), at(3)),
                None => return self.not_sent(name, "its method is known only at run time"),
            },
            "batch" => return self.batch(&at(0)),
            "file" => return self.form_file(arguments),
            "expectedStatuses" => return self.expected_statuses(arguments),
            "setResponseCallback" => {
                if let JsValue::Statuses(statuses) = at(0) {
                    self.statuses = (*statuses).clone();
                } else {
                    self.leave_out("http.setResponseCallback");
                }
                return JsValue::Undefined;
            }
            "cookieJar" => return JsValue::builtin("http.cookieJar"),
            other => {
                self.leave_out(format!("a call of http.{other}"));
                return JsValue::unknown(format!("what http.{other} gives"));
            }
        };
        match self.send(method, url, body, parameters) {
            Ok(response) => response,
            Err(why) => self.not_sent(name, &why),
        }
    }

    /// A request that is left out, and what it would give.
    fn not_sent(&mut self, name: &str, why: &str) -> JsValue<'a> {
        self.leave_out(format!("http.{name}: {why}"));
        JsValue::unknown("a response of a request that is left out")
    }

    fn send(
        &mut self,
        method: String,
        url: JsValue<'a>,
        body: JsValue<'a>,
        parameters: JsValue<'a>,
    ) -> Result<JsValue<'a>, String> {
        if self.has_thrown {
            return Ok(JsValue::Undefined);
        }
        let name = match &url {
            JsValue::Named(_, name) => Some(name.to_string()),
            _ => None,
        };
        let url = self.text_of(&url)?;
        // What is drawn, such as a number, has no sign to encode.
        if url.names().iter().any(|name| !self.drawn.contains_key(*name)) {
            self.remark(
                "Values in URLs are percent-encoded, where k6 sends them as they are: write \
                 ${raw(name)} for a value that is a piece of a URL.",
            );
        }
        let mut draft = SourceRequest {
            method,
            url,
            name,
            redirects: self.redirects,
            timeout: Some(Nanos::from_secs(TIMEOUT_S)),
            goes_on: true,
            ..SourceRequest::default()
        };
        draft.expect.status.clone_from(&self.statuses);
        if let Some(agent) = &self.user_agent {
            draft.header("User-Agent", agent.clone());
        }
        self.parameters(&parameters.certain(), &mut draft)?;
        let body = self.without_doubt(body);
        self.body(body, &mut draft)?;
        self.credentials(&mut draft);
        let (phase, under) = (self.phase, self.under.clone());
        let request = K6Request { draft, phase, under, stands_for: Vec::new() };
        self.requests.push(Rc::new(request));
        let number = self.requests.len() - 1;
        self.steps.push(K6Step::Request(number));
        Ok(self.whole(number))
    }

    /// `http://user:password@host`.
    fn credentials(&mut self, draft: &mut SourceRequest) {
        let url = draft.url.literal().and_then(|url| url.split_once("://"));
        let Some((scheme, rest)) = url else {
            return;
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let Some((user, _)) = authority.rsplit_once('@') else {
            return;
        };
        let url = format!("{scheme}://{}", &rest[user.len() + 1..]);
        let plain = percent::form_decoded(&user.replace('+', "%2B"));
        let user = STANDARD.encode(plain.unwrap_or_else(|| user.to_owned()));
        draft.url = url.into();
        if !draft.has_header("authorization") {
            draft.header("Authorization", format!("Basic {user}"));
        }
    }

    fn body(&mut self, body: JsValue<'a>, draft: &mut SourceRequest) -> Result<(), String> {
        match &body {
            JsValue::Undefined | JsValue::Null => {}
            JsValue::File(file) => {
                let own = below(file).ok_or("its body is a file without a name")?;
                self.remark(format!("Put {file} beside the scenario as {own}."));
                draft.content = ImportedBody::File(own);
            }
            JsValue::Heap(_) if self.heap.entries(&body).is_some() => {
                self.form(&body, draft)?;
            }
            other => {
                let text = self.text_of(other)?;
                match text.literal() {
                    Some(text) => draft.body = text.as_bytes().to_vec(),
                    None => self.text_body(text, draft),
                }
            }
        }
        Ok(())
    }

    /// A body with values of the session: JSON where the script made it so and says so.
    fn text_body(&mut self, text: ImportedText, draft: &mut SourceRequest) {
        let json = self.json_texts.get(&text.template()).cloned();
        let is_type = |header: &(String, ImportedText)| {
            header.0.eq_ignore_ascii_case("content-type")
                && header.1.literal().is_some_and(|value| {
                    let media = value.split(';').next().unwrap_or_default().trim();
                    media.eq_ignore_ascii_case("application/json")
                })
        };
        let place = draft.headers.iter().position(is_type);
        match (json, place) {
            (Some(json), Some(place)) => {
                let is_bare = draft.headers[place].1.literal() == Some("application/json");
                if is_bare {
                    draft.headers.remove(place);
                }
                draft.content = ImportedBody::JsonValue((*json).clone());
            }
            _ => draft.content = ImportedBody::Text(text),
        }
    }

    /// An object as a body: a form, in parts if a file is one of them.
    fn form(&mut self, body: &JsValue<'a>, draft: &mut SourceRequest) -> Result<(), String> {
        let entries = self.heap.entries(body).unwrap_or_default().to_vec();
        let mut pairs: Vec<(String, JsValue<'a>)> = Vec::new();
        for (name, value) in entries {
            match self.heap.items(&value).map(<[_]>::to_vec) {
                Some(items) => pairs.extend(items.into_iter().map(|v| (name.to_string(), v))),
                None => pairs.push((name.to_string(), value)),
            }
        }
        if pairs.iter().any(|(_, value)| matches!(value, JsValue::FormPart(_))) {
            let mut parts = Vec::new();
            for (name, value) in pairs {
                let part = match &value {
                    JsValue::FormPart(part) => (**part).clone(),
                    other => ImportedPart {
                        content: Ok(self.text_of(other)?),
                        media: None,
                        filename: None,
                    },
                };
                parts.push((name, part));
            }
            draft.content = ImportedBody::Multipart(parts);
            draft.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
            return Ok(());
        }
        // k6 sends them in the order of their names.
        pairs.sort_by(|a, b| a.0.cmp(&b.0));
        let mut form: Vec<(String, ImportedText)> = Vec::new();
        for (name, value) in pairs {
            form.push((name, self.text_of(&value)?));
        }
        let is_own = draft.headers.iter().any(|(name, value)| {
            let is_form = value.literal() == Some(super::super::collect::FORM);
            name.eq_ignore_ascii_case("content-type") && !is_form
        });
        let names: std::collections::HashSet<&str> =
            form.iter().map(|(name, _)| name.as_str()).collect();
        let is_literal = form.iter().all(|(_, value)| value.literal().is_some());
        if names.len() == form.len() && !is_own && names.iter().all(|name| !name.is_empty()) {
            draft.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
            draft.content = ImportedBody::Form(form);
        } else if is_literal {
            let pair = |(name, value): &(String, ImportedText)| {
                percent::pair(name, value.literal().unwrap_or_default())
            };
            draft.body = form.iter().map(pair).collect::<Vec<_>>().join("&").into_bytes();
            if !draft.has_header("content-type") {
                draft.header("Content-Type", super::super::collect::FORM);
            }
        } else {
            return Err("its form has a name twice or a content type of its own".to_owned());
        }
        Ok(())
    }

    /// `http.file(DATA, NAME, TYPE)`.
    fn form_file(&mut self, arguments: &[JsValue<'a>]) -> JsValue<'a> {
        let filename = argument(arguments, 1).literal().map(str::to_owned);
        let media = argument(arguments, 2).literal().map(str::to_owned);
        let media = media.or_else(|| Some("application/octet-stream".to_owned()));
        let (content, filename) = match argument(arguments, 0).certain() {
            JsValue::File(file) => {
                let Some(own) = below(&file) else {
                    return JsValue::unknown("a file that has no name");
                };
                self.remark(format!("Put {file} beside the scenario as {own}."));
                let last = own.rsplit('/').next().unwrap_or(&own).to_owned();
                if filename.is_none() {
                    self.remark("k6 names files without a name by the time of day.");
                }
                (Err(own), filename.or(Some(last)))
            }
            other => match self.text_of(&other) {
                Ok(text) => (Ok(text), filename.or_else(|| Some("file".to_owned()))),
                Err(what) => return JsValue::unknown(what),
            },
        };
        JsValue::FormPart(Rc::new(ImportedPart { content, media, filename }))
    }

    fn batch(&mut self, of: &JsValue<'a>) -> JsValue<'a> {
        let of = of.clone().certain();
        let from = self.steps.len();
        let responses = if let Some(items) = self.heap.items(&of).map(<[_]>::to_vec) {
            let responses = items.iter().map(|item| self.batched(item)).collect();
            self.heap.list(responses)
        } else if let Some(entries) = self.heap.entries(&of).map(<[_]>::to_vec) {
            let responses = entries.into_iter();
            let responses = responses.map(|(name, item)| (name, self.batched(&item))).collect();
            self.heap.object(responses)
        } else {
            self.leave_out("http.batch of requests that are known only at run time");
            return JsValue::unknown("responses of requests that are left out");
        };
        self.make_parallel(from);
        responses
    }

    /// The steps from this one on are done at the same time. What they need is set before.
    fn make_parallel(&mut self, from: usize) {
        let is_request = |step: &K6Step| matches!(step, K6Step::Request(_));
        let steps = self.steps.split_off(from.min(self.steps.len()));
        let (requests, others): (Vec<_>, Vec<_>) = steps.into_iter().partition(is_request);
        self.steps.extend(others);
        if requests.len() > BRANCHES_MAX {
            let line = format!("http.batch: more than {BRANCHES_MAX} are sent one after another");
            self.leave_out(line);
            self.steps.extend(requests);
        } else {
            self.steps.push(K6Step::Parallel(requests));
        }
    }

    fn batched(&mut self, item: &JsValue<'a>) -> JsValue<'a> {
        let names = if self.heap.items(item).is_some() {
            ["0", "1", "2", "3"]
        } else if self.heap.entries(item).is_some() {
            ["method", "url", "body", "params"]
        } else {
            return self.http_call("get", std::slice::from_ref(item));
        };
        let mut parts = names.map(|name| self.member(item, name));
        if let JsValue::Undefined = parts[0] {
            parts[0] = JsValue::text("GET");
        }
        self.http_call("request", &parts)
    }

    /// `http.expectedStatuses(200, {min: 300, max: 399})`.
    fn expected_statuses(&mut self, arguments: &[JsValue<'a>]) -> JsValue<'a> {
        let mut statuses = Vec::new();
        for value in arguments {
            let of = |name: &str| self.heap.entry(value, name).and_then(JsValue::number);
            match (value.number(), of("min"), of("max")) {
                (Some(status), ..) if (100.0..=599.0).contains(&status) => {
                    statuses.push(number_text(status));
                }
                (_, Some(min), Some(max)) if (100.0..=599.0).contains(&min) && min <= max => {
                    statuses.push(format!("{}-{}", number_text(min), number_text(max.min(599.0))));
                }
                _ => return JsValue::unknown("statuses that are not known"),
            }
        }
        JsValue::Statuses(Rc::new(statuses))
    }

    fn parameters(
        &mut self,
        parameters: &JsValue<'a>,
        draft: &mut SourceRequest,
    ) -> Result<(), String> {
        match parameters {
            JsValue::Undefined | JsValue::Null => return Ok(()),
            JsValue::Heap(_) => {}
            JsValue::Unknown(what) => return Err(format!("its parameters: {what}")),
            // They have no effect there.
            _ => {
                self.leave_out("parameters of a request that are no object");
                return Ok(());
            }
        }
        for (name, value) in self.heap.entries(parameters).unwrap_or_default().to_vec() {
            self.parameter(&name, value.certain(), draft)?;
        }
        Ok(())
    }

    fn parameter(
        &mut self,
        name: &str,
        value: JsValue<'a>,
        draft: &mut SourceRequest,
    ) -> Result<(), String> {
        let plain = value.literal().map(str::to_owned);
        match (name, &value) {
            (_, JsValue::Undefined | JsValue::Null) => {}
            ("headers", _) => self.put_headers(&value, draft)?,
            ("cookies", _) => self.put_cookies(&value, draft)?,
            ("redirects", JsValue::Number(count)) if (0.0..=1e9).contains(count) => {
                draft.redirects = (*count as u32).min(50);
                if *count > 50.0 {
                    self.leave_out(format!("{count} redirections: at most 50 are followed"));
                }
            }
            ("timeout", _) => match duration(&value) {
                Some(time) => draft.timeout = Some(time),
                None => self.leave_out("a time limit that is not known"),
            },
            ("tags", _) => {
                for (tag, value) in self.heap.entries(&value).unwrap_or_default().to_vec() {
                    let text = self.text_of(&value).map(|text| text.template());
                    match (&*tag, text) {
                        ("name", Ok(text)) => draft.name = Some(text),
                        _ => self.leave_out(format!("tag '{tag}' of a request")),
                    }
                }
            }
            ("responseCallback", JsValue::Statuses(statuses)) => {
                draft.expect.status = (**statuses).clone();
            }
            ("auth", _) if plain.as_deref() == Some("basic") => {}
            // What k6 keeps of a response changes nothing that it sends.
            ("responseType", _) => {}
            (other, _) => self.leave_out(format!("parameter '{other}' of a request")),
        }
        Ok(())
    }

    fn put_headers(
        &mut self,
        headers: &JsValue<'a>,
        draft: &mut SourceRequest,
    ) -> Result<(), String> {
        let Some(entries) = self.heap.entries(headers).map(<[_]>::to_vec) else {
            return Err("its headers are known only at run time".to_owned());
        };
        for (name, value) in entries {
            let value = self.text_of(&value.certain());
            let value = value.map_err(|what| format!("its header {name}: {what}"))?;
            draft.headers.retain(|header| !header.0.eq_ignore_ascii_case(&name));
            draft.headers.push((name.to_string(), value));
        }
        Ok(())
    }

    fn put_cookies(
        &mut self,
        cookies: &JsValue<'a>,
        draft: &mut SourceRequest,
    ) -> Result<(), String> {
        let entries = self.heap.entries(cookies).unwrap_or_default().to_vec();
        let mut text = ImportedText::default();
        for (name, value) in entries {
            let value = match self.heap.entry(&value, "value") {
                Some(inner) => inner.clone(),
                None => value,
            };
            text.push(if text.is_empty() { "" } else { "; " });
            text.push(&format!("{name}="));
            text.append(&self.text_of(&value)?);
        }
        if !text.is_empty() {
            self.leave_out("cookies of a request: those of the session are not sent with them");
            draft.header("Cookie", text);
        }
        Ok(())
    }
}
