//! Parameters and bodies of requests.

use super::JmeterReader;
use super::element::JmeterElement;
use super::expression::unencoded;
use crate::import::ImportedText;
use crate::import::builder::StepRequest;
use crate::import::yaml::YamlValue;
use knee_load::percent;

/// A parameter of a request.
struct JmeterArgument {
    name: ImportedText,
    value: ImportedText,
    /// Whether JMeter encodes it.
    is_encoded: bool,
}

impl<'a> JmeterReader<'a> {
    /// Adds what a request sends: in its query, or as its body.
    pub(super) fn body(&mut self, sampler: JmeterElement<'a>, draft: &mut StepRequest) {
        let files = sampler.inner("HTTPsampler.Files");
        let has_files = files.is_some_and(|of| !of.listed("HTTPFileArgs.files").is_empty());
        if has_files || sampler.flag("HTTPSampler.DO_MULTIPART_POST") {
            self.leave_out(sampler, "its files or parts are not sent: write multipart");
        }
        let mut arguments = self.arguments(sampler);
        let is_nameless = !arguments.is_empty() && arguments.iter().all(|a| a.name.is_empty());
        if sampler.flag("HTTPSampler.postBodyRaw") || is_nameless {
            return raw(&arguments, draft);
        }
        arguments.retain(|argument| !argument.name.is_empty());
        match draft.method.as_str() {
            "GET" | "DELETE" | "OPTIONS" => query(&arguments, draft),
            "HEAD" | "TRACE" => {}
            _ if arguments.is_empty() => {}
            _ => self.form(sampler, &arguments, draft),
        }
    }

    /// The parameters of a request, behind those of its defaults.
    fn arguments(&mut self, sampler: JmeterElement<'a>) -> Vec<JmeterArgument> {
        const NAME: &str = "HTTPsampler.Arguments";
        let defaults = self.settings(&["ConfigTestElement"]).into_iter();
        let mut arguments: Vec<JmeterArgument> = Vec::new();
        for (at, of) in std::iter::once(sampler).chain(defaults).enumerate() {
            let list = of.inner(NAME).map_or_else(Vec::new, |of| of.listed("Arguments.arguments"));
            for argument in list {
                let name = self.filled(argument.text("Argument.name"), sampler);
                let is_given = arguments.iter().any(|other| other.name == name);
                let is_disabled = argument.text("HTTPArgument.enabled").trim() == "false";
                if is_disabled || at > 0 && (is_given || name.is_empty()) {
                    continue;
                }
                let value = self.filled(argument.text("Argument.value"), sampler);
                let is_encoded = argument.flag("HTTPArgument.always_encode");
                arguments.push(JmeterArgument { name, value, is_encoded });
            }
        }
        arguments
    }

    /// A form, whose names stand there once.
    fn form(
        &mut self,
        sampler: JmeterElement<'a>,
        arguments: &[JmeterArgument],
        draft: &mut StepRequest,
    ) {
        let decoded = |text: &str| percent::form_decoded(text).unwrap_or_else(|| text.to_owned());
        let mut pairs: Vec<(String, YamlValue)> = Vec::new();
        for JmeterArgument { name, value, is_encoded } in arguments {
            let [name, value] = [name, value]
                .map(|text| if *is_encoded { text.clone() } else { text.map(decoded) });
            let is_fit = |name: &&str| {
                !name.contains(char::is_control) && !pairs.iter().any(|(other, _)| other == name)
            };
            match name.literal().filter(is_fit) {
                Some(name) => pairs.push((name.to_owned(), YamlValue::Template(value))),
                None => {
                    let name = name.template();
                    self.leave_out(sampler, &format!("its parameter '{name}', a value or twice"));
                }
            }
        }
        draft.content = Some(("form", YamlValue::Line(pairs)));
    }
}

fn query(arguments: &[JmeterArgument], draft: &mut StepRequest) {
    let mut sign = if draft.url.with_letters().contains('?') { "&" } else { "?" };
    for JmeterArgument { name, value, is_encoded } in arguments {
        for (sign, text) in [(sign, name), ("=", value)] {
            draft.url.push(sign);
            let encoded = if *is_encoded { text.map(percent::form) } else { unencoded(text) };
            draft.url.append(&encoded);
        }
        sign = "&";
    }
}

fn raw(arguments: &[JmeterArgument], draft: &mut StepRequest) {
    let mut text = ImportedText::default();
    arguments.iter().for_each(|argument| text.append(&argument.value));
    if text.is_empty() {
        return;
    }
    if !draft.has_header("content-type") {
        draft.header("Content-Type", "text/plain; charset=UTF-8");
    }
    match text.literal() {
        Some(plain) => draft.body = plain.as_bytes().to_vec(),
        None => draft.content = Some(("body", YamlValue::Template(text))),
    }
}
