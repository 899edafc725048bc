//! HTTP requests, with the defaults and managers in whose scope they are.

use super::expression::unencoded;
use super::{JmeterElement, JmeterReader};
use crate::import::body::Header;
use crate::import::builder::StepRequest;
use crate::import::{ImportedText, TextPart};
use knee_load::time::Nanos;

/// The most redirections that JMeter follows.
const REDIRECTS: u32 = 20;
/// The longest time limit that is taken over, in milliseconds.
const LIMIT_MAX_MS: u64 = 86_400_000;

impl<'a> JmeterReader<'a> {
    /// Imports a request, with the pauses before it.
    pub(super) fn request(&mut self, sampler: JmeterElement<'a>) {
        for child in self.enter(sampler) {
            self.note(child);
        }
        if self.all.has_room() {
            self.request_in_scope(sampler);
        }
        self.scopes.pop();
    }

    fn request_in_scope(&mut self, sampler: JmeterElement<'a>) {
        let setting = |name: &str| self.setting(sampler, name);
        let is_on = |name: &str| setting(name) == "true";
        let follows = is_on("follow_redirects") || is_on("auto_redirects");
        let (method, limit) = (setting("method"), setting("response_timeout"));
        let limit = self.number::<u64>(limit).filter(|ms| (1..=LIMIT_MAX_MS).contains(ms));
        if limit.is_none() {
            self.all.remark("JMeter waits without a limit; requests here have that of knee, 10s.");
        }
        let mut draft = StepRequest {
            method: self
                .constant(method)
                .filter(|m| !m.is_empty())
                .unwrap_or_else(|| "GET".to_owned()),
            name: Some(sampler.name().to_owned()).filter(|name| !name.is_empty()),
            headers: self.headers(),
            redirects: if follows { REDIRECTS } else { 0 },
            goes_on: self.goes_on,
            timeout: limit.map(Nanos::from_millis),
            ..StepRequest::default()
        };
        (draft.server, draft.url) = self.url(sampler);
        self.servers.push(draft.server.clone());
        self.body(sampler, &mut draft);
        self.others(sampler);
        draft.extract = self.extractors();
        self.assertions(&mut draft);
        self.pauses();
        let names: Vec<String> = draft.extract.iter().map(|(name, _)| name.clone()).collect();
        if self.all.request(draft) {
            self.known.extend(names);
        }
    }

    /// A property of a request: its own, or that of the innermost defaults that have it.
    fn setting(&self, sampler: JmeterElement<'a>, name: &str) -> &'a str {
        let name = format!("HTTPSampler.{name}");
        let defaults = self.settings(&["ConfigTestElement"]);
        let mut all = std::iter::once(sampler).chain(defaults).map(|of| of.text(&name).trim());
        all.find(|text| !text.is_empty()).unwrap_or_default()
    }

    /// The server and the path without the query that parameters make.
    fn url(&mut self, sampler: JmeterElement<'a>) -> (ImportedText, ImportedText) {
        let path = self.filled(self.setting(sampler, "path"), sampler);
        let letters = path.with_letters();
        let host = ["http://", "https://"].iter().find_map(|scheme| letters.strip_prefix(scheme));
        let (server, path) = match host {
            Some(host) => {
                let length = host.find(['/', '?']).unwrap_or(host.len());
                path.divided(letters.len() - host.len() + length)
            }
            None => (self.server(sampler), path),
        };
        // A value at the begin may have the slash in it.
        let is_value = matches!(path.parts().first(), Some(TextPart::Value(_)));
        let has_slash = is_value || path.with_letters().starts_with('/');
        let mut url = ImportedText::from(if has_slash { "" } else { "/" });
        url.append(&unencoded(&path));
        (server, url)
    }

    fn server(&mut self, sampler: JmeterElement<'a>) -> ImportedText {
        let [protocol, domain, port] = ["protocol", "domain", "port"]
            .map(|name| self.part_of_server(self.setting(sampler, name), sampler));
        if protocol.literal().is_none() {
            self.leave_out(sampler, "its protocol is known only when it is sent: http here");
        }
        let protocol = protocol.literal().filter(|protocol| !protocol.is_empty());
        let protocol = protocol.unwrap_or("http").to_ascii_lowercase();
        let mut server = ImportedText::from(format!("{protocol}://"));
        server.append(&domain);
        if !matches!(port.literal(), Some("" | "0")) {
            server.push(":");
            server.append(&port);
        }
        server
    }

    /// The headers of all managers; those of the inner ones win.
    fn headers(&mut self) -> Vec<Header> {
        let mut headers: Vec<Header> = Vec::new();
        for manager in self.settings(&["HeaderManager"]) {
            let mut own = Vec::new();
            for header in manager.listed("HeaderManager.headers") {
                let name = self.filled(header.text("Header.name").trim(), manager);
                let Some(name) = name.literal() else {
                    self.leave_out(manager, "a header whose name is a value");
                    continue;
                };
                let is_given = |(other, _): &Header| other.eq_ignore_ascii_case(name);
                if !name.is_empty() && !headers.iter().any(is_given) {
                    let value = self.filled(header.text("Header.value"), manager);
                    own.push((name.to_owned(), value));
                }
            }
            headers.append(&mut own);
        }
        headers
    }

    /// Names settings that a scenario does not have.
    fn others(&mut self, sampler: JmeterElement<'a>) {
        const NAMED: [(&str, &str); 5] = [
            ("connect_timeout", "its time limit of connections: give --connect-timeout"),
            ("contentEncoding", "the encoding of its texts: UTF-8 here"),
            ("image_parser", "its embedded resources: they are not asked for"),
            ("ipSource", "its source address"),
            ("proxyHost", "its proxy"),
        ];
        for (name, what) in NAMED {
            let own = self.setting(sampler, name).to_ascii_lowercase();
            let is_usual = matches!(own.as_str(), "" | "0" | "false" | "utf-8" | "utf8");
            self.leave_out_where(sampler, &[(!is_usual, what)]);
        }
        let is_closed = self.setting(sampler, "use_keepalive") == "false";
        self.leave_out_where(sampler, &[(is_closed, "its connection stays open")]);
        for manager in self.settings(&["CookieManager"]) {
            let cookies = manager.listed("CookieManager.cookies");
            if !cookies.is_empty() {
                let names: Vec<&str> = cookies.iter().map(|cookie| cookie.name()).collect();
                let names = names.join(", ");
                self.leave_out(manager, &format!("its own cookies are not sent: {names}"));
            }
        }
    }
}
