//! Parameters of requests.

use super::super::ImportedText;
use super::super::collect::SourceRequest;
use super::interpreter::K6Interpreter;
use super::options::duration;
use super::value::JsValue;

impl<'a> K6Interpreter<'a, '_> {
    pub(super) fn parameters(
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

    pub(super) fn parameter(
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

    pub(super) fn put_headers(
        &mut self,
        headers: &JsValue<'a>,
        draft: &mut SourceRequest,
    ) -> Result<(), String> {
        let Some(entries) = self.heap.entries(headers).map(<[_]>::to_vec) else {
            return Err("its headers are known only at run time".to_owned());
        };
        for (name, value) in entries {
            let value = match self.text_of(&value.certain()) {
                Ok(value) => value,
                Err(what) => return Err(format!("its header {name}: {what}")),
            };
            draft.headers.retain(|header| !header.0.eq_ignore_ascii_case(&name));
            draft.headers.push((name.to_string(), value));
        }
        Ok(())
    }

    pub(super) fn put_cookies(
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
