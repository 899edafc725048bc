//! Requests from any source come together here: bounded, each fit for a scenario.

use super::body::{Content, Header, of_type};
use super::text::ImportedText;
use super::url::{ServerUrl, split};
use super::yaml::{YamlMap, YamlValue};
use super::{ImportedScenario, error};
use crate::target::TARGETS_MAX;
use knee_load::quantity::{ParseError, parse_law};
use knee_load::shown::shown;
use knee_load::spec::{HttpRequest, Scheme, Url, is_token};
use knee_load::time::Nanos;

/// The most steps of all sessions together, and how deep they lie in one another.
const STEPS_MAX: usize = 1_000;
const DEPTH_MAX: usize = 8;
/// The largest body, in bytes.
const BODY_MAX: usize = 1 << 20;
/// The largest sum of all bodies.
const BODIES_MAX: usize = 8 << 20;
/// The most lines about what was left out.
const LEFT_OUT_MAX: usize = 200;
/// No line about it is longer, in characters.
const LINE_MAX: usize = 300;
/// The methods that are keys of a step.
const METHODS: [&str; 7] = ["get", "post", "put", "patch", "delete", "head", "options"];

/// A request as its source has it.
#[derive(Clone, Debug, Default)]
pub(super) struct StepRequest {
    pub(super) method: String,
    /// A whole URL, or a path: of this server, or of the target where there is none.
    pub(super) url: ImportedText,
    pub(super) server: ImportedText,
    pub(super) name: Option<String>,
    pub(super) headers: Vec<Header>,
    /// The body as it is sent, which becomes `json` or `form` if its type says so.
    pub(super) body: Vec<u8>,
    /// The body where there are no such bytes.
    pub(super) content: Option<Content>,
    /// Sessions keep cookies themselves: those of a recording are left out.
    pub(super) drops_cookies: bool,
    pub(super) redirects: u32,
    pub(super) goes_on: bool,
    pub(super) timeout: Option<Nanos>,
    /// What the response has to be, and the variables that it sets, as they are written.
    pub(super) expect: YamlMap,
    pub(super) extract: YamlMap,
}

impl StepRequest {
    /// Adds a header.
    pub(super) fn header(&mut self, name: &str, value: impl Into<ImportedText>) {
        self.headers.push((name.to_owned(), value.into()));
    }

    pub(super) fn has_header(&self, name: &str) -> bool {
        let mut headers = self.headers.iter();
        headers.any(|(other, _)| other.eq_ignore_ascii_case(name))
    }

    /// Expects one of these statuses: `200`, `2xx`.
    pub(super) fn expect_status(&mut self, statuses: Vec<String>) {
        let mut statuses: Vec<YamlValue> = statuses.into_iter().map(YamlValue::Plain).collect();
        let is_one = statuses.len() < 2;
        let status = if is_one { statuses.pop() } else { Some(YamlValue::Row(statuses)) };
        self.expect.extend(status.map(|status| ("status".to_owned(), status)));
    }
}

/// What was read of a source so far.
#[derive(Debug, Default)]
pub(super) struct ScenarioBuilder {
    /// The servers that requests go to. Paths alone are of the first.
    targets: Vec<ServerUrl>,
    /// The steps that are collected now, and those around them that are not at their end.
    steps: Vec<YamlValue>,
    outer: Vec<Vec<YamlValue>>,
    step_count: usize,
    body_bytes: usize,
    /// Sets of records, and kinds of sessions, by their names.
    data: YamlMap,
    setup: Vec<YamlValue>,
    sessions: YamlMap,
    teardown: Vec<YamlValue>,
    pub(super) load: YamlMap,
    remarks: Vec<String>,
    /// With how often each was said.
    left_out: Vec<(String, usize)>,
    /// How many more there was no room for.
    left_out_more: usize,
}

impl ScenarioBuilder {
    /// Names something that has no place in the scenario.
    pub(super) fn leave_out(&mut self, what: impl Into<String>) {
        let line = shown(&what.into()).replace(['\n', '\r'], " ");
        let line: String = line.chars().take(LINE_MAX).collect();
        let has_room = self.left_out.len() < LEFT_OUT_MAX;
        match self.left_out.iter_mut().find(|(other, _)| *other == line) {
            Some((_, times)) => *times += 1,
            None if has_room => self.left_out.push((line, 1)),
            None => self.left_out_more += 1,
        }
    }

    /// Says something about the scenario, once.
    pub(super) fn remark(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.remarks.contains(&what) && self.remarks.len() < LEFT_OUT_MAX {
            self.remarks.push(what);
        }
    }

    /// Settles the first target before any request names one.
    pub(super) fn set_target(&mut self, url: Url) {
        self.targets.push(ServerUrl::Literal(url));
    }

    /// Settles the first target to the one that most of these are.
    pub(super) fn set_target_of<'a>(&mut self, servers: impl Iterator<Item = &'a ImportedText>) {
        let mut counts: Vec<(ServerUrl, usize)> = Vec::new();
        for target in servers.filter_map(|server| split(server, &"/".into()).ok()?.0) {
            match counts.iter_mut().find(|(other, _)| !other.differs(&target)) {
                Some((_, count)) => *count += 1,
                None => counts.push((target, 1)),
            }
        }
        // Of several the first.
        let most = counts.into_iter().rev().max_by_key(|(_, count)| *count);
        self.targets.extend(most.map(|(target, _)| target));
    }

    /// The user waits.
    pub(super) fn think(&mut self, time: Nanos) {
        if time > Nanos::ZERO {
            self.push(vec![("think".to_owned(), YamlValue::plain(time.exactly()))]);
        }
    }

    /// The user waits by a law such as `uniform(1s,3s)`.
    pub(super) fn think_law(&mut self, law: &str) {
        match parse_law(law) {
            Ok(_) => self.push(vec![("think".to_owned(), YamlValue::plain(law))]),
            Err(wrong) => self.leave_out(format!("a pause of {law}: {wrong}")),
        }
    }

    /// Whether there may be one step more.
    pub(super) fn has_room(&mut self) -> bool {
        let has_room = self.step_count < STEPS_MAX && self.outer.len() <= DEPTH_MAX;
        if self.step_count >= STEPS_MAX {
            self.leave_out(format!("what follows the first {STEPS_MAX} steps"));
        } else if !has_room {
            self.leave_out(format!("steps more than {DEPTH_MAX} levels deep"));
        }
        has_room
    }

    /// What follows lies in a step, up to `close`.
    pub(super) fn open(&mut self) {
        self.outer.push(std::mem::take(&mut self.steps));
    }

    /// The steps since `open`.
    pub(super) fn close(&mut self) -> Vec<YamlValue> {
        let outer = self.outer.pop().unwrap_or_default();
        std::mem::replace(&mut self.steps, outer)
    }

    /// Adds a step.
    pub(super) fn push(&mut self, step: YamlMap) {
        if self.has_room() {
            self.step_count += 1;
            self.steps.push(YamlValue::Map(step));
        }
    }

    /// Adds a step with others in it, `key: value` and `steps`, unless there are none.
    pub(super) fn push_around(&mut self, key: &str, value: YamlValue, steps: Vec<YamlValue>) {
        if !steps.is_empty() {
            let steps = ("steps".to_owned(), YamlValue::List(steps));
            self.push(vec![(key.to_owned(), value), steps]);
        }
    }

    /// Adds steps that are done at the same time.
    pub(super) fn push_parallel(&mut self, mut steps: Vec<YamlValue>) {
        if steps.len() > 1 {
            self.push(vec![("parallel".to_owned(), YamlValue::List(steps))]);
        } else if let Some(YamlValue::Map(step)) = steps.pop() {
            self.push(step);
        }
    }

    /// The steps so far are a kind of session with records of these sets; its name, which no other
    /// has. `None` where they send nothing.
    pub(super) fn end_session(&mut self, name: &str, data: Vec<String>) -> Option<String> {
        let steps = self.end_steps();
        if steps.is_empty() {
            return None;
        }
        let name = step_name(name).unwrap_or_else(|| "imported".to_owned());
        let numbered = (2..).map(|number| format!("{name} ({number})"));
        let is_free = |name: &String| self.sessions.iter().all(|(other, _)| other != name);
        let name = std::iter::once(name.clone()).chain(numbered).find(is_free)?;
        let data = data.iter().map(|name| YamlValue::word(name));
        let data = Some(data.collect()).filter(|data: &Vec<_>| !data.is_empty());
        let session = present([("data", data.map(YamlValue::Row)), ("steps", listed(steps))]);
        self.sessions.push((name.clone(), YamlValue::Map(session)));
        Some(name)
    }

    /// Changes the share of a kind of session among all, relative to the others.
    pub(super) fn weigh(&mut self, session: &str, weight: u32) {
        let own = self.sessions.iter_mut().find(|(other, _)| other == session);
        if let Some((_, YamlValue::Map(own))) = own.filter(|_| weight > 1) {
            own.insert(0, ("weight".to_owned(), YamlValue::plain(weight)));
        }
    }

    /// The steps so far are what is done once before the load.
    pub(super) fn end_setup(&mut self) {
        self.setup = self.end_steps();
    }

    /// The steps so far are what is done once after the load.
    pub(super) fn end_teardown(&mut self) {
        self.teardown = self.end_steps();
    }

    /// The steps so far; none where they send nothing.
    fn end_steps(&mut self) -> Vec<YamlValue> {
        while !self.outer.is_empty() {
            let mut inner = self.close();
            self.steps.append(&mut inner);
        }
        let mut steps = std::mem::take(&mut self.steps);
        let mut sends = false;
        let mut see = |map: &mut YamlMap| sends |= is_request(map);
        steps.iter_mut().for_each(|step| step.each_map(&mut see));
        if sends { steps } else { Vec::new() }
    }

    /// Adds a set of records, of which each session has one, or one of its own. Returns its name,
    /// with a number where another set has it, and its file below the folder of the scenario.
    pub(super) fn data(
        &mut self,
        name: &str,
        file: &str,
        is_unique: bool,
    ) -> Option<(String, String)> {
        let file = below(file)?;
        let order = is_unique.then(|| YamlValue::plain("unique"));
        let set = present([("file", Some(YamlValue::Quoted(file.clone()))), ("order", order)]);
        let set = YamlValue::Line(set);
        if let Some((name, _)) = self.data.iter().find(|(_, other)| *other == set) {
            return Some((name.clone(), file));
        }
        let numbered = (2..).map(|number| format!("{name}{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        let name = names.find(|name| self.data.iter().all(|(other, _)| other != name))?;
        self.data.push((name.clone(), set));
        Some((name, file))
    }

    /// The user sends a request, unless a scenario cannot have it; whether it is a step.
    pub(super) fn request(&mut self, request: StepRequest) -> bool {
        self.request_after(Nanos::ZERO, request)
    }

    /// The same after a pause, which goes with the request.
    pub(super) fn request_after(&mut self, pause: Nanos, request: StepRequest) -> bool {
        if !self.has_room() {
            return false;
        }
        let [server, path] = [&request.server, &request.url].map(|text| text.template());
        let line = format!("{} {server}{path}", request.method);
        match self.step(request) {
            Ok(step) => {
                self.think(pause);
                self.step_count += 1;
                self.steps.push(YamlValue::Map(step));
                true
            }
            Err(why) => {
                self.leave_out(format!("{}: {why}", shorter(&line)));
                false
            }
        }
    }

    /// A request as a step, checked whether a scenario can have it.
    fn step(&mut self, request: StepRequest) -> Result<YamlMap, String> {
        let (origin, path) = split(&request.server, &request.url)?;
        let Some(target) = origin.as_ref().or(self.targets.first()) else {
            return Err("its URL has no host".to_owned());
        };
        let known = self.targets.iter().position(|other| !other.differs(target));
        let server = known.unwrap_or(self.targets.len());
        if server >= TARGETS_MAX {
            return Err(format!("a scenario has at most {TARGETS_MAX} targets"));
        }
        let (host, url) = (target.host(), target.url_of(&path)?);
        if matches!(url.scheme(), Scheme::Ws | Scheme::Wss) {
            return Err("WebSockets are not imported".to_owned());
        }
        let path = if server > 0 { target.whole_url(&path)? } else { path };
        if request.body.len() > BODY_MAX {
            return Err(format!("its body has {} bytes", request.body.len()));
        }
        self.body_bytes += request.body.len();
        if self.body_bytes > BODIES_MAX {
            return Err("all bodies together have more than 8 MiB".to_owned());
        }
        let body =
            String::from_utf8(request.body).map_err(|_| "its body is not text".to_owned())?;
        let mut headers = self.headers(request.headers, request.drops_cookies, &host);
        let lettered = headers.iter().map(|(name, value)| (name.clone(), value.with_letters()));
        HttpRequest::new(&request.method, &url, lettered.collect(), Vec::new(), 1)
            .map_err(|e| e.0)?;
        let content = request.content.or_else(|| of_type(&mut headers, body));
        self.targets.extend(origin.filter(|_| known.is_none()));

        let method = request.method.to_ascii_lowercase();
        let is_key = METHODS.contains(&&*method) && method.to_ascii_uppercase() == request.method;
        let begin = if is_key {
            let path = match path.literal() {
                Some(_) => YamlValue::word(&path.template()),
                None => YamlValue::Template(path),
            };
            (method, path)
        } else {
            let method = YamlValue::word(&request.method);
            let line =
                present([("method", Some(method)), ("url", Some(YamlValue::Template(path)))]);
            ("request".to_owned(), YamlValue::Line(line))
        };
        let name = request.name.as_deref().and_then(step_name);
        let timeout = request.timeout.filter(|time| *time > Nanos::ZERO);
        let headers = headers.into_iter().map(|(name, value)| (name, YamlValue::Template(value)));
        let mut step = vec![begin];
        step.extend(present([("name", name.map(|name| YamlValue::word(&name)))]));
        step.extend(content.map(|(key, value)| (key.to_owned(), value)));
        step.extend(present([
            ("expect", filled(request.expect)),
            ("extract", filled(request.extract)),
            ("redirects", (request.redirects > 0).then(|| YamlValue::plain(request.redirects))),
            ("timeout", timeout.map(|time| YamlValue::plain(time.exactly()))),
            ("headers", filled(headers.collect())),
            ("on_failure", request.goes_on.then(|| YamlValue::plain("continue"))),
        ]));
        Ok(step)
    }

    /// The headers that a scenario can have, each name once.
    fn headers(&mut self, given: Vec<Header>, drops_cookies: bool, own_host: &str) -> Vec<Header> {
        let mut headers: Vec<Header> = Vec::new();
        for (name, value) in given {
            let lower = name.to_ascii_lowercase();
            let is_own_host = value.literal().is_some_and(|v| v.eq_ignore_ascii_case(own_host));
            let is_other_host = lower == "host" && !is_own_host;
            match unfit(&lower, value.literal().unwrap_or_default()) {
                None => {}
                Some(_) if is_other_host => {}
                Some("") => continue,
                Some(why) => {
                    self.leave_out(format!("header {name}: {why}"));
                    continue;
                }
            }
            if !is_token(&name) {
                self.leave_out(format!("header '{name}': that is no name of a header"));
                continue;
            }
            if drops_cookies && lower == "cookie" {
                self.leave_out("header Cookie: sessions keep the cookies that the server sets");
                continue;
            }
            let value = match value.literal() {
                Some(text) => ImportedText::from(text.trim()),
                None => value,
            };
            if value.with_letters().chars().any(|c| c.is_ascii_control() && c != '\t') {
                self.leave_out(format!("header {name}: it holds a control character"));
                continue;
            }
            let sign = if lower == "cookie" { "; " } else { ", " };
            match headers.iter_mut().find(|h| h.0.eq_ignore_ascii_case(&name)) {
                Some((_, before)) => {
                    before.push(sign);
                    before.append(&value);
                }
                None => headers.push((name, value)),
            }
        }
        headers
    }

    /// All that came together.
    ///
    /// # Errors
    /// No request.
    pub(super) fn finish(mut self, nothing: &str) -> Result<ImportedScenario, ParseError> {
        self.end_session("imported", Vec::new());
        if self.targets.is_empty() || self.sessions.is_empty() {
            // The first of a request says more than that of an option.
            let sent = self.left_out.iter().find(|(line, _)| line.contains("http"));
            let first = sent.or(self.left_out.first());
            let why = first.map_or(String::new(), |(line, _)| format!(": left out: {line}"));
            return error(format!("{nothing}{why}"));
        }
        let times = |(line, times): (String, usize)| match times {
            1 => line,
            times => format!("{line} ({times} times)"),
        };
        let mut left_out: Vec<String> = self.left_out.into_iter().map(times).collect();
        if self.left_out_more > 0 {
            left_out.push(format!("{} more, which are not named here", self.left_out_more));
        }
        let mut file = present([
            ("data", filled(self.data)),
            ("setup", listed(self.setup)),
            ("sessions", filled(self.sessions)),
            ("teardown", listed(self.teardown)),
            ("load", filled(self.load)),
        ]);
        if let Some(defaults) = filled(gathered_defaults(&mut file)) {
            file.insert(0, ("defaults".to_owned(), defaults));
        }
        Ok(ImportedScenario {
            targets: self.targets.iter().map(ServerUrl::target).collect(),
            remarks: self.remarks,
            left_out,
            file,
        })
    }
}

/// Why a scenario has no place for a header; empty where it follows from the request, or says what
/// is so in any case.
fn unfit(name: &str, value: &str) -> Option<&'static str> {
    let has = |option: &str| value.split(',').any(|own| own.trim().eq_ignore_ascii_case(option));
    match name {
        "connection" if has("close") => None,
        "connection" if has("upgrade") => Some("a connection keeps its protocol"),
        "upgrade" => Some("a connection keeps its protocol"),
        "te" if !has("trailers") => Some("codings of the transfer are not undone"),
        "transfer-encoding" => Some("a body is sent whole, with its Content-Length"),
        "connection" | "content-length" | "host" | "keep-alive" | "proxy-connection" => Some(""),
        name => name.starts_with(':').then_some(""),
    }
}

/// The keys whose values there are.
pub(super) fn present<const N: usize>(parts: [(&str, Option<YamlValue>); N]) -> YamlMap {
    let parts = parts.into_iter();
    parts.filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// A map that has something in it.
fn filled(map: YamlMap) -> Option<YamlValue> {
    (!map.is_empty()).then_some(YamlValue::Map(map))
}

/// A list that has something in it.
fn listed(list: Vec<YamlValue>) -> Option<YamlValue> {
    (!list.is_empty()).then_some(YamlValue::List(list))
}

/// Whether a map is a step that sends a request.
fn is_request(map: &YamlMap) -> bool {
    map.first().is_some_and(|(key, _)| key == "request" || METHODS.contains(&&**key))
}

/// Calls `see` for each request of a file.
fn each_request(file: &mut YamlMap, mut see: impl FnMut(&mut YamlMap)) {
    let mut see_request = |map: &mut YamlMap| {
        if is_request(map) {
            see(map);
        }
    };
    file.iter_mut().for_each(|(_, value)| value.each_map(&mut see_request));
}

/// Takes out what all of several requests have, so that it is written once.
fn gathered_defaults(file: &mut YamlMap) -> YamlMap {
    const SETTINGS: [&str; 2] = ["redirects", "timeout"];
    let mut common: Option<(YamlMap, YamlMap)> = None;
    let mut count = 0;
    each_request(file, |step| {
        let is_setting = |(key, _): &&(String, YamlValue)| SETTINGS.contains(&&**key);
        let settings: YamlMap = step.iter().filter(is_setting).cloned().collect();
        let headers = headers_of(step).cloned().unwrap_or_default();
        let (own_settings, own_headers) = common.get_or_insert((settings.clone(), headers.clone()));
        own_settings.retain(|own| settings.contains(own));
        own_headers.retain(|own| headers.contains(own));
        count += 1;
    });
    let (mut settings, headers) = common.filter(|_| count > 1).unwrap_or_default();
    each_request(file, |step| {
        step.retain(|own| !settings.contains(own));
        if let Some(own) = headers_of(step) {
            own.retain(|own| !headers.contains(own));
        }
        step.retain(|(_, value)| *value != YamlValue::Map(Vec::new()));
    });
    settings.extend(present([("headers", filled(headers))]));
    settings
}

/// The headers of a step or of the defaults.
pub(super) fn headers_of(map: &mut YamlMap) -> Option<&mut YamlMap> {
    map.iter_mut().find_map(|(key, value)| match value {
        YamlValue::Map(headers) if key == "headers" => Some(headers),
        _ => None,
    })
}

/// The name of a file below the folder of the scenario, for one that may lie elsewhere.
pub(super) fn below(file: &str) -> Option<String> {
    let parts = file.split(['/', '\\']).filter(|part| !matches!(*part, "" | "." | ".."));
    let name = parts.collect::<Vec<_>>().join("/");
    let is_plain = !name.is_empty() && !name.chars().any(char::is_control);
    is_plain.then_some(name)
}

/// A name of a step: one line of 1 to 200 characters.
pub(super) fn step_name(text: &str) -> Option<String> {
    let blank = |c: char| if c.is_control() { ' ' } else { c };
    let line: String = text.chars().map(blank).take(190).collect();
    Some(line.trim().to_owned()).filter(|line| !line.is_empty())
}

fn shorter(text: &str) -> String {
    if text.chars().count() > 120 {
        text.chars().take(119).chain(['…']).collect()
    } else {
        text.to_owned()
    }
}
