//! HTTP requests of a plan.

use super::scope::PlanScope;
use super::{PlanWalk, below_named, items, property};
use crate::import::collect::{FORM, SourceRequest, below};
use crate::import::{ImportedBody, ImportedPart, ImportedText};
use knee_load::percent::component;
use knee_load::time::Nanos;
use roxmltree::Node;

/// The most redirections that JMeter follows.
const REDIRECTS: u32 = 20;

impl PlanWalk {
    /// One request. The variables that it sets are known from now on.
    pub(super) fn sample(&mut self, sampler: Node, tree: Option<Node>, scope: &PlanScope) {
        let mut own = scope.clone();
        let (settings, disabled) = tree.map(items).unwrap_or_default();
        self.disabled += disabled;
        for (element, _) in settings {
            let name = element.tag_name().name();
            if PlanScope::takes(name) {
                own.take(element, &mut self.all);
            } else {
                self.leave_out(element, "there is nothing of its kind; it is not done");
            }
        }
        let checks = std::mem::take(&mut own.checks);
        let mut unknown = Vec::new();
        let mut draft = draft(sampler, &own, &mut unknown);
        let name = draft.name.clone().unwrap_or_default();
        self.content(sampler, &own, &mut draft, &mut unknown);
        if property(sampler, "HTTPSampler.image_parser").as_deref() == Some("true") {
            self.leave_out(sampler, "the resources of its page are not loaded");
        }
        for check in checks {
            self.check(check, &own, &mut draft);
        }
        unknown.dedup();
        if !unknown.is_empty() {
            let values = unknown.join(", ");
            self.all.leave_out(format!("the value of {values} in '{name}': it is text here"));
        }
        let extracted: Vec<_> = draft.extract.iter().map(|extract| extract.name.clone()).collect();
        own.pauses.iter().for_each(|law| self.all.think_law(law));
        if self.all.request(draft) {
            scope.extracted.borrow_mut().extend(extracted);
        }
    }

    /// The body or the query of a request.
    fn content(
        &mut self,
        sampler: Node,
        scope: &PlanScope,
        draft: &mut SourceRequest,
        unknown: &mut Vec<String>,
    ) {
        let value = |name: &str| scope.property(sampler, name, &mut Vec::new());
        let is_true = |name: &str| value(name).literal() == Some("true");
        let is_raw = is_true("HTTPSampler.postBodyRaw");
        let has_body = matches!(draft.method.as_str(), "POST" | "PUT" | "PATCH");
        let files: Vec<Node> = below_named(sampler, "HTTPFileArg").collect();
        let file =
            |node: Node, name: &str| scope.constant(&property(node, name).unwrap_or_default());
        if let [one] = &files[..]
            && file(*one, "File.paramname").is_empty()
            && has_body
        {
            let path = file(*one, "File.path");
            match below(&path) {
                Some(path) => draft.content = ImportedBody::File(path),
                None => self.leave_out(sampler, &format!("its body, the file '{path}'")),
            }
            return;
        }
        if has_body && (!files.is_empty() || is_true("HTTPSampler.DO_MULTIPART_POST")) {
            let mut parts: Vec<(String, ImportedPart)> = Vec::new();
            for argument in below_named(sampler, "HTTPArgument") {
                let text = |name| property(argument, name).unwrap_or_default();
                let content = Ok(scope.text(&text("Argument.value"), unknown));
                let part = ImportedPart { content, media: None, filename: None };
                parts.push((scope.constant(&text("Argument.name")), part));
            }
            for node in files {
                let path = file(node, "File.path");
                let media = Some(file(node, "File.mimetype")).filter(|media| !media.is_empty());
                match below(&path) {
                    Some(path) => {
                        let part = ImportedPart { content: Err(path), media, filename: None };
                        parts.push((file(node, "File.paramname"), part));
                    }
                    None => self.leave_out(sampler, &format!("the file '{path}'")),
                }
            }
            draft.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
            draft.content = ImportedBody::Multipart(parts);
            return;
        }
        let arguments = arguments(sampler, is_raw, scope, unknown);
        if arguments.is_empty() {
            return;
        }
        if !is_raw && !has_body {
            let has_query = draft.url.template().contains('?');
            draft.url.push(if has_query { "&" } else { "?" });
            draft.url.append(&arguments);
            return;
        }
        if !is_raw && !draft.has_header("content-type") {
            draft.header("Content-Type", FORM);
        }
        match arguments.literal() {
            Some(text) => draft.body = text.as_bytes().to_vec(),
            None => draft.content = ImportedBody::Text(arguments),
        }
    }
}

impl PlanScope<'_, '_> {
    /// A property of a sampler, or of the defaults.
    fn property(&self, sampler: Node, name: &str, unknown: &mut Vec<String>) -> ImportedText {
        let own = property(sampler, name).filter(|text| !text.is_empty());
        let text = own.or_else(|| self.defaults.get(name).cloned());
        self.text(&text.unwrap_or_default(), unknown)
    }
}

/// A request without its body.
fn draft(sampler: Node, scope: &PlanScope, unknown: &mut Vec<String>) -> SourceRequest {
    let mut text = |name: &str| scope.property(sampler, name, unknown);
    let path = text("HTTPSampler.path");
    let lettered = path.with_letters();
    let is_whole = lettered.starts_with("http://") || lettered.starts_with("https://");
    let mut url = ImportedText::default();
    if !is_whole {
        let protocol = text("HTTPSampler.protocol");
        let (domain, port) = (text("HTTPSampler.domain"), text("HTTPSampler.port"));
        if protocol.is_empty() {
            url.push("http");
        }
        url.append(&protocol);
        url.push("://");
        url.append(&domain);
        url.push(if port.is_empty() { "" } else { ":" });
        url.append(&port);
        url.push(if lettered.starts_with('/') { "" } else { "/" });
    }
    url.append(&path);
    let method = text("HTTPSampler.method");
    let method = method.literal().filter(|method| !method.is_empty()).unwrap_or("GET").to_owned();
    let timeout = text("HTTPSampler.response_timeout");
    let timeout = timeout.literal().and_then(|ms| ms.trim().parse().ok());
    let mut is_true = |name: &str| text(name).literal() == Some("true");
    let follows = is_true("HTTPSampler.follow_redirects") || is_true("HTTPSampler.auto_redirects");
    SourceRequest {
        method,
        url,
        name: Some(sampler.attribute("testname").unwrap_or_default().to_owned()),
        headers: scope.headers.clone(),
        redirects: if follows { REDIRECTS } else { 0 },
        timeout: timeout.map(Nanos::from_millis),
        goes_on: scope.goes_on,
        ..SourceRequest::default()
    }
}

/// Body or query of a request.
fn arguments(
    sampler: Node,
    is_raw: bool,
    scope: &PlanScope,
    unknown: &mut Vec<String>,
) -> ImportedText {
    let mut all = ImportedText::default();
    for (number, argument) in below_named(sampler, "HTTPArgument").enumerate() {
        let value = property(argument, "Argument.value").unwrap_or_default();
        let value = scope.text(&value, unknown);
        if is_raw {
            all.append(&value);
            continue;
        }
        let name = scope.text(&property(argument, "Argument.name").unwrap_or_default(), unknown);
        let is_encoded =
            property(argument, "HTTPArgument.always_encode").as_deref() == Some("true");
        all.push(if number > 0 { "&" } else { "" });
        all.append(&name);
        all.push("=");
        // Values of variables are encoded where they are put in.
        let value = if is_encoded {
            value.map(|text| component(text.as_bytes()).to_string())
        } else {
            value
        };
        all.append(&value);
    }
    all
}
