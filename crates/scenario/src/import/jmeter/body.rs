//! Parameters and bodies of requests.

use super::JmeterReader;
use super::element::{JmeterElement, JmeterScope};
use super::functions::unencoded;
use crate::import::collect::{FORM, SourceRequest, below};
use crate::import::{ImportedBody, ImportedPart, ImportedText, TextPart};
use knee_load::percent;
use std::collections::HashSet;

/// A parameter of a request.
struct JmeterArgument {
    name: ImportedText,
    value: ImportedText,
    /// `=` between both, or nothing.
    sign: String,
    /// Whether JMeter encodes it.
    is_encoded: bool,
    media: String,
}

impl<'a> JmeterReader<'a> {
    /// Adds what a request sends: in its query, or as its body.
    pub(super) fn body(
        &mut self,
        sampler: JmeterElement<'a>,
        scope: &JmeterScope<'a>,
        draft: &mut SourceRequest,
    ) {
        let arguments = self.arguments(sampler, scope);
        let files = self.files(sampler);
        let is_nameless = !arguments.is_empty() && arguments.iter().all(|a| a.name.is_empty());
        let is_raw = sampler.flag("HTTPSampler.postBodyRaw") || is_nameless;
        let has_query = matches!(draft.method.as_str(), "GET" | "DELETE" | "OPTIONS");
        if has_query && !is_raw {
            if !files.is_empty() && draft.method == "GET" {
                self.leave_out(sampler, "its files: a GET sends none");
            }
            query(&arguments, draft);
            // JMeter sends those of a DELETE twice.
            if draft.method == "DELETE" && !arguments.is_empty() {
                form(&arguments, draft);
            }
            return;
        }
        if matches!(draft.method.as_str(), "HEAD" | "TRACE") {
            return;
        }
        let is_file = files.len() == 1 && files.iter().all(|(name, _)| name.is_empty());
        let is_one_file = is_file && arguments.is_empty();
        let is_multipart =
            sampler.flag("HTTPSampler.DO_MULTIPART_POST") || !(files.is_empty() || is_one_file);
        if is_multipart {
            self.multipart(sampler, &arguments, files, draft);
        } else if let Some((_, part)) = files.into_iter().next() {
            if let Err(file) = part.content {
                draft.content = ImportedBody::File(file);
            }
            if let Some(media) = part.media.filter(|_| !draft.has_header("content-type")) {
                draft.header("Content-Type", media);
            }
        } else if is_raw {
            raw(&arguments, draft);
            self.file_as_body(sampler, draft);
        } else if !arguments.is_empty() {
            form(&arguments, draft);
        }
    }

    /// The parameters of a request, behind those of its defaults.
    fn arguments(
        &mut self,
        sampler: JmeterElement<'a>,
        scope: &JmeterScope<'a>,
    ) -> Vec<JmeterArgument> {
        const NAME: &str = "HTTPsampler.Arguments";
        let defaults = scope.all(&["ConfigTestElement"]).into_iter();
        let defaults = defaults.filter_map(|of| of.inner(NAME));
        let own = sampler.inner(NAME);
        let lists: Vec<JmeterElement<'a>> = own.into_iter().chain(defaults).collect();
        let mut arguments: Vec<JmeterArgument> = Vec::new();
        for list in lists {
            for argument in list.listed("Arguments.arguments") {
                if argument.text("HTTPArgument.enabled").trim() == "false" {
                    continue;
                }
                let name = self.filled(argument.text("Argument.name"), sampler);
                let has_one = |other: &JmeterArgument| other.name == name;
                let is_own = Some(list.place()) == own.map(JmeterElement::place);
                if !is_own && (arguments.iter().any(has_one) || name.is_empty()) {
                    continue;
                }
                arguments.push(JmeterArgument {
                    name,
                    value: self.filled(argument.text("Argument.value"), sampler),
                    sign: argument.given("Argument.metadata").unwrap_or("=").to_owned(),
                    is_encoded: argument.flag("HTTPArgument.always_encode"),
                    media: argument.text("HTTPArgument.content_type").trim().to_owned(),
                });
            }
        }
        arguments
    }

    /// The names of parts and the files in them.
    fn files(&mut self, sampler: JmeterElement<'a>) -> Vec<(String, ImportedPart)> {
        let list = sampler.inner("HTTPsampler.Files");
        let files = list.map_or_else(Vec::new, |list| list.listed("HTTPFileArgs.files"));
        let of_old_plans = [sampler].into_iter().filter(|_| files.is_empty());
        let mut parts = Vec::new();
        for file in files.iter().copied().chain(of_old_plans) {
            let is_old = file.place() == sampler.place();
            let text =
                |new: &str, old: &str| if is_old { sampler.text(old) } else { file.text(new) };
            let path = text("File.path", "HTTPSampler.FILE_NAME").trim();
            if path.is_empty() {
                continue;
            }
            let taken = self.constant(path).and_then(|path| below(&path));
            let Some(taken) = taken else {
                self.leave_out(sampler, &format!("its file '{path}' is not known: none is sent"));
                continue;
            };
            self.all.remark(format!("The file {taken} has to be beside this one."));
            let name = self.filled(text("File.paramname", "HTTPSampler.FILE_FIELD"), sampler);
            let media = text("File.mimetype", "HTTPSampler.mimetype").trim().to_owned();
            let filename = taken.rsplit('/').next().unwrap_or_default().to_owned();
            let part = ImportedPart {
                content: Err(taken),
                media: Some(media).filter(|media| !media.is_empty()),
                filename: Some(filename),
            };
            parts.push((name.literal().unwrap_or_default().to_owned(), part));
        }
        parts
    }

    fn multipart(
        &mut self,
        sampler: JmeterElement<'a>,
        arguments: &[JmeterArgument],
        files: Vec<(String, ImportedPart)>,
        draft: &mut SourceRequest,
    ) {
        draft.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
        let mut parts = Vec::new();
        for argument in arguments.iter().filter(|argument| !argument.name.is_empty()) {
            let Some(name) = argument.name.literal() else {
                let name = argument.name.template();
                self.leave_out(
                    sampler,
                    &format!("a part of its body whose name has values: {name}"),
                );
                continue;
            };
            let media = Some(argument.media.clone());
            let part = ImportedPart {
                content: Ok(argument.value.clone()),
                media: media.filter(|media| !matches!(media.as_str(), "" | "text/plain")),
                filename: None,
            };
            parts.push((name.to_owned(), part));
        }
        parts.extend(files);
        if !parts.is_empty() {
            draft.content = ImportedBody::Multipart(parts);
        }
    }

    /// `${__FileToString(file)}` as the whole body.
    fn file_as_body(&mut self, sampler: JmeterElement<'a>, draft: &mut SourceRequest) {
        let ImportedBody::Text(text) = &draft.content else {
            return;
        };
        let call =
            text.literal().map(str::trim).and_then(|text| text.strip_prefix("${__FileToString("));
        let file = call.and_then(|rest| rest.split([',', ')']).next()).and_then(below);
        if let Some(file) = file {
            self.leave_out(sampler, &format!("its body is {file} as it is, beside this file"));
            draft.content = ImportedBody::File(file);
        }
    }
}

/// The text of a name or a value, encoded.
fn encoded(text: &ImportedText, is_encoded: bool) -> ImportedText {
    if is_encoded { text.map(percent::form) } else { unencoded(text) }
}

fn query(arguments: &[JmeterArgument], draft: &mut SourceRequest) {
    let is_query = |part: &TextPart| matches!(part, TextPart::Literal(text) if text.contains('?'));
    let mut sign = if draft.url.parts().iter().any(is_query) { "&" } else { "?" };
    for argument in arguments.iter().filter(|argument| !argument.name.is_empty()) {
        draft.url.push(sign);
        draft.url.append(&encoded(&argument.name, argument.is_encoded));
        draft.url.push(&argument.sign);
        draft.url.append(&encoded(&argument.value, argument.is_encoded));
        sign = "&";
    }
}

fn raw(arguments: &[JmeterArgument], draft: &mut SourceRequest) {
    let mut text = ImportedText::default();
    arguments.iter().for_each(|argument| text.append(&argument.value));
    if text.is_empty() {
        return;
    }
    if !draft.has_header("content-type") {
        draft.header("Content-Type", "text/plain; charset=UTF-8");
    }
    match text.literal() {
        Some(plain) if !plain.contains("${__FileToString(") => {
            draft.body = plain.as_bytes().to_vec();
        }
        _ => draft.content = ImportedBody::Text(text),
    }
}

/// A form: where no name stands twice, by names and values.
fn form(arguments: &[JmeterArgument], draft: &mut SourceRequest) {
    let decoded = |text: &str| percent::form_decoded(text).unwrap_or_else(|| text.to_owned());
    let plain = |text: &ImportedText, is_encoded: bool| {
        if is_encoded { text.clone() } else { text.map(decoded) }
    };
    let mut names = HashSet::new();
    let mut pairs = Vec::new();
    for argument in arguments.iter().filter(|argument| !argument.name.is_empty()) {
        let name = plain(&argument.name, argument.is_encoded);
        let value = plain(&argument.value, argument.is_encoded);
        pairs.push((name, value));
    }
    let is_fit = |name: &str| !name.is_empty() && !name.chars().any(char::is_control);
    let is_map = pairs.iter().all(|(name, _)| {
        name.literal().is_some_and(|name| is_fit(name) && names.insert(name.to_owned()))
    });
    let own_type = draft.has_header("content-type");
    if is_map {
        let pair = |(name, value): (ImportedText, ImportedText)| {
            (name.literal().unwrap_or_default().to_owned(), value)
        };
        draft.content = ImportedBody::Form(pairs.into_iter().map(pair).collect());
        return;
    }
    let mut text = ImportedText::default();
    let mut sign = "";
    for (name, value) in &pairs {
        text.push(sign);
        for (side, between) in [(name, "="), (value, "")] {
            let encoded = side.map(percent::form);
            text.append(&encoded.map_values(|value| format!("urlencode({value})")));
            text.push(between);
        }
        sign = "&";
    }
    draft.content = ImportedBody::Text(text);
    if !own_type {
        draft.header("Content-Type", FORM);
    }
}
