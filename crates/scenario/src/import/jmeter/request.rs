//! HTTP requests, with the defaults and managers in whose scope they are.

use super::JmeterReader;
use super::element::{JmeterElement, JmeterScope};
use super::functions::unencoded;
use super::groups::RATES;
use crate::import::collect::SourceRequest;
use crate::import::{ImportedText, TextPart};
use crate::names::is_name;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use knee_load::time::Nanos;
use std::rc::Rc;

/// The most redirections that JMeter follows.
const REDIRECTS: u32 = 20;
/// The longest time limit that is taken over, in milliseconds.
const LIMIT_MAX_MS: u64 = 86_400_000;

/// A header of a request.
type Header = (String, ImportedText);

impl<'a> JmeterReader<'a> {
    /// Imports a request, with the pauses before it.
    pub(super) fn request(&mut self, sampler: JmeterElement<'a>, outer: &Rc<JmeterScope<'a>>) {
        let children = sampler.children();
        let scope = self.scope_of(&children, outer);
        for child in &children {
            match super::controllers::effect(child.kind()) {
                Some(effect) => self.leave_out(*child, effect),
                None if RATES.contains(&child.kind()) => self.no_rate(*child),
                None => {}
            }
        }
        self.settle(&children);
        if !self.all.has_room() {
            return;
        }
        let mut draft = SourceRequest {
            method: self.method(sampler, &scope),
            name: Some(sampler.name().to_owned()).filter(|name| !name.is_empty()),
            headers: self.headers(sampler, &scope),
            goes_on: self.goes_on,
            timeout: self.limit(sampler, &scope),
            ..SourceRequest::default()
        };
        draft.url = self.url(sampler, &scope);
        self.urls.push(draft.url.clone());
        self.body(sampler, &scope, &mut draft);
        self.authorize(sampler, &scope, &mut draft);
        let flag = |name: &str| scope.setting(sampler, name).trim() == "true";
        if flag("HTTPSampler.follow_redirects") || flag("HTTPSampler.auto_redirects") {
            draft.redirects = REDIRECTS;
        }
        self.others(sampler, &scope);
        draft.extract = self.extractors(&scope);
        draft.expect = self.assertions(&scope);
        self.set_what_is_needed();
        self.pauses(&scope);
        if self.all.request(draft) {
            self.requests += 1;
        }
    }

    /// Names a timer that holds the rate of a part of the steps.
    pub(super) fn no_rate(&mut self, timer: JmeterElement<'a>) {
        self.leave_out(timer, "it holds the rate of some steps: here they have that of sessions");
    }

    fn method(&mut self, sampler: JmeterElement<'a>, scope: &JmeterScope<'a>) -> String {
        let method = self.constant(scope.setting(sampler, "HTTPSampler.method"));
        method.filter(|method| !method.is_empty()).unwrap_or_else(|| "GET".to_owned())
    }

    /// The URL without the query that parameters make.
    fn url(&mut self, sampler: JmeterElement<'a>, scope: &JmeterScope<'a>) -> ImportedText {
        let path = scope.setting(sampler, "HTTPSampler.path").trim();
        let path = self.filled(path, sampler);
        let first = path.parts().first();
        if let Some(TextPart::Literal(text)) = first
            && (text.starts_with("http://") || text.starts_with("https://"))
        {
            return path;
        }
        let [protocol, domain, port] = ["protocol", "domain", "port"].map(|name| {
            let text = scope.setting(sampler, &format!("HTTPSampler.{name}")).trim();
            self.place(text, sampler)
        });
        let mut url = ImportedText::default();
        match protocol.literal() {
            None => {
                self.leave_out(sampler, "its protocol is known only when it is sent: http here");
                url.push("http");
            }
            Some("") => url.push("http"),
            Some(protocol) => url.push(&protocol.to_ascii_lowercase()),
        }
        url.push("://");
        url.append(&domain);
        if !matches!(port.literal(), Some("" | "0")) {
            url.push(":");
            url.append(&port);
        }
        let begins = matches!(first, Some(TextPart::Literal(text)) if text.starts_with('/'));
        // A value at the begin may have the slash in it.
        let is_value = matches!(first, Some(TextPart::Value(_)));
        if !begins && !is_value {
            url.push("/");
        }
        url.append(&unencoded(&path));
        url
    }

    /// A part of a server's name. What is not known is a variable of the environment.
    fn place(&mut self, text: &str, sampler: JmeterElement<'a>) -> ImportedText {
        let (value, unknown) = self.resolved(text);
        let name = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        match name.filter(|name| is_name(name) && !unknown.is_empty()) {
            Some(name) => {
                let variable = format!("env({})", name.replace('-', "_"));
                self.all.remark(format!("Nothing sets {name}, which is ${{{variable}}} here."));
                ImportedText::value(variable)
            }
            None if unknown.is_empty() => value,
            None => self.filled(text, sampler),
        }
    }

    /// The headers of all managers; those of the inner ones win.
    fn headers(&mut self, sampler: JmeterElement<'a>, scope: &JmeterScope<'a>) -> Vec<Header> {
        let mut headers: Vec<Header> = Vec::new();
        for manager in scope.all(&["HeaderManager"]) {
            let mut own = Vec::new();
            for header in manager.listed("HeaderManager.headers") {
                let name = self.filled(header.text("Header.name").trim(), manager);
                let Some(name) = name.literal().filter(|name| !name.is_empty()) else {
                    if !name.is_empty() {
                        self.leave_out(manager, "a header whose name is a value");
                    }
                    continue;
                };
                if !headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
                    let value = self.filled(header.text("Header.value"), manager);
                    own.push((name.to_owned(), value));
                }
            }
            headers.append(&mut own);
        }
        if scope.setting(sampler, "HTTPSampler.use_keepalive").trim() == "false" {
            headers.retain(|(name, _)| !name.eq_ignore_ascii_case("connection"));
            self.all.leave_out("requests without keep-alive: their connections stay open");
        }
        headers
    }

    /// The time limit of a response.
    fn limit(&mut self, sampler: JmeterElement<'a>, scope: &JmeterScope<'a>) -> Option<Nanos> {
        let of_sampler = scope.setting(sampler, "HTTPSampler.response_timeout");
        let timers = scope.all(&["SampleTimeout"]).into_iter();
        let of_timers = timers.map(|timer| timer.text("InterruptTimer.timeout"));
        let mut limits = Vec::new();
        for text in std::iter::once(of_sampler).chain(of_timers) {
            let ms = self.number::<u64>(text).filter(|ms| (1..=LIMIT_MAX_MS).contains(ms));
            limits.extend(ms.map(Nanos::from_millis));
        }
        if limits.is_empty() {
            self.all.remark("JMeter waits without a limit; requests here have that of knee, 10s.");
        }
        limits.into_iter().min()
    }

    /// Credentials that managers have for the URL.
    fn authorize(
        &mut self,
        sampler: JmeterElement<'a>,
        scope: &JmeterScope<'a>,
        draft: &mut SourceRequest,
    ) {
        let url = draft.url.template();
        for manager in scope.all(&["AuthManager"]) {
            for entry in manager.listed("AuthManager.auth_list") {
                let base = self.filled(entry.text("Authorization.url").trim(), manager).template();
                if !url.starts_with(&base) || draft.has_header("authorization") {
                    continue;
                }
                let mechanism = entry.text("Authorization.mechanism").trim();
                if !matches!(mechanism, "" | "BASIC" | "BASIC_DIGEST") {
                    self.leave_out(manager, &format!("{mechanism}: no credentials are sent"));
                    continue;
                }
                let mut both = self.filled(entry.text("Authorization.username"), sampler);
                both.push(":");
                both.append(&self.filled(entry.text("Authorization.password"), sampler));
                let encoded = match both.literal() {
                    Some(text) => Some(BASE64.encode(text).into()),
                    None => ImportedText::call("base64", &[&both]),
                };
                if let Some(encoded) = encoded {
                    let mut value = ImportedText::from("Basic ");
                    value.append(&encoded);
                    draft.header("Authorization", value);
                }
            }
        }
    }

    /// Names settings that a scenario does not have.
    fn others(&mut self, sampler: JmeterElement<'a>, scope: &JmeterScope<'a>) {
        let setting = |name: &str| scope.setting(sampler, &format!("HTTPSampler.{name}")).trim();
        if setting("image_parser") == "true" {
            self.all.leave_out("requests with embedded resources: these are not asked for");
        }
        if !setting("proxyHost").is_empty() {
            self.leave_out(sampler, "its proxy");
        }
        if !setting("ipSource").is_empty() {
            self.leave_out(sampler, "its source address");
        }
        let connect = setting("connect_timeout");
        if !connect.is_empty() && connect != "0" {
            let told = format!("Connections have {connect} ms: give --connect-timeout.");
            self.all.remark(told);
        }
        let encoding = setting("contentEncoding");
        if !matches!(encoding.to_ascii_lowercase().as_str(), "" | "utf-8" | "utf8") {
            self.leave_out(sampler, &format!("its texts are {encoding}: UTF-8 here"));
        }
        for manager in scope.all(&["CookieManager"]) {
            let cookies = manager.listed("CookieManager.cookies");
            if !cookies.is_empty() {
                let names: Vec<&str> = cookies.iter().map(|cookie| cookie.name()).collect();
                let names = names.join(", ");
                self.leave_out(manager, &format!("its own cookies are not sent: {names}"));
            }
            match (manager.flag("CookieManager.clearEachIteration"), self.is_thread) {
                (false, false) => self.all.remark(
                    "JMeter keeps cookies from one pass to the next; sessions begin without.",
                ),
                (true, true) => self.leave_out(manager, "cookies are kept from pass to pass"),
                _ => {}
            }
        }
    }
}
