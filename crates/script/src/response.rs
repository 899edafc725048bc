//! Responses, as scripts have them: their parts are made when they are read.

use crate::natives::throw;
use crate::request::{RawResponse, Reads, all_of, header};
use crate::shared::Shared;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use rquickjs::Result as Made;
use rquickjs::class::{JsClass, Readable, Trace, Tracer};
use rquickjs::function::{Constructor, Opt};
use rquickjs::{ArrayBuffer, Class, Ctx, Function, IntoJs, JsLifetime, Object, Value};
use serde::Deserializer;
use serde::de::{Deserialize as _, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::fmt;
use std::io::Read as _;
use std::rc::Rc;
use std::result::Result;

/// Most bytes of an inflated body.
const INFLATED_BYTES_MAX: u64 = 64 << 20;

/// A response. The parts that scripts read are properties of its prototype, see `js/http.js`.
pub(crate) struct Response {
    raw: RawResponse,
    /// Bytes that it holds, of those that the user may.
    held: usize,
    shared: Rc<Shared>,
}

impl Response {
    /// The body, without its content coding.
    pub(crate) fn body(&self) -> &[u8] {
        &self.raw.response.body
    }

    fn has_body(&self) -> bool {
        self.raw.reads != Reads::Nothing
            && (self.raw.response.status != 0 || !self.body().is_empty())
    }
}

impl Drop for Response {
    fn drop(&mut self) {
        self.shared.held.set(self.shared.held.get() - self.held);
    }
}

impl<'js> Trace<'js> for Response {
    fn trace<'a>(&self, _: Tracer<'a, 'js>) {}
}

// SAFETY: it holds nothing of a runtime.
unsafe impl<'js> JsLifetime<'js> for Response {
    type Changed<'to> = Response;
}

impl<'js> JsClass<'js> for Response {
    const NAME: &'static str = "Response";
    type Mutable = Readable;

    fn constructor(_: &Ctx<'js>) -> Made<Option<Constructor<'js>>> {
        Ok(None)
    }
}

/// A response for the script.
///
/// # Errors
/// There is none, and `options.throw` says so; or what the user holds is too much.
pub(crate) fn new<'js>(
    ctx: &Ctx<'js>,
    shared: &Rc<Shared>,
    mut raw: RawResponse,
) -> Made<Class<'js, Response>> {
    let response = &mut raw.response;
    let coding = header(&response.head, "content-encoding");
    match inflated(coding, std::mem::take(&mut response.body)) {
        Ok(body) => response.body = body,
        Err(why) => drop(response.error.get_or_insert((why, 1701))),
    }
    let status = response.status;
    if let Some((error, _)) = &response.error
        && status == 0
        && shared.setup.script.settings().throws
    {
        return Err(throw(ctx, error));
    }
    let held = response.body.len() + response.head.len();
    let all = shared.held.get() + held;
    if all as u64 > shared.setup.memory_max {
        return Err(throw(ctx, "out of memory"));
    }
    shared.held.set(all);
    let made = Class::instance(ctx.clone(), Response { raw, held, shared: Rc::clone(shared) })?;
    made.set("status", status)?;
    Ok(made)
}

/// A body without its content coding.
fn inflated(coding: Option<&str>, body: Vec<u8>) -> Result<Vec<u8>, String> {
    let Some(coding) = coding.filter(|_| !body.is_empty()) else { return Ok(body) };
    let mut plain = Vec::new();
    let read = match &*coding.to_ascii_lowercase() {
        "gzip" | "x-gzip" => {
            MultiGzDecoder::new(&body[..]).take(INFLATED_BYTES_MAX).read_to_end(&mut plain)
        }
        "deflate" => ZlibDecoder::new(&body[..]).take(INFLATED_BYTES_MAX).read_to_end(&mut plain),
        "identity" | "" => return Ok(body),
        other => return Err(format!("the body is compressed with {other}, which is not read")),
    };
    read.map_err(|e| format!("the body cannot be inflated: {e}"))?;
    Ok(plain)
}

/// A header's name as Go writes it.
fn canonical(name: &str) -> String {
    let mut is_first = true;
    let cased = name.chars().map(|c| {
        let cased = if is_first { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
        is_first = c == '-';
        cased
    });
    cased.collect()
}

/// Follows a path in JSON, and makes nothing of what lies beside it.
struct Seek<'a>(&'a [&'a str]);

impl<'de> DeserializeSeed<'de> for Seek<'_> {
    type Value = Option<Json>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Option<Json>, D::Error> {
        if self.0.is_empty() {
            Json::deserialize(from).map(Some)
        } else {
            from.deserialize_any(self)
        }
    }
}

impl<'de> Visitor<'de> for Seek<'_> {
    type Value = Option<Json>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Option<Json>, A::Error> {
        let mut found = None;
        while let Some(name) = all.next_key::<Cow<'de, str>>()? {
            if found.is_none() && name == self.0[0] {
                found = all.next_value_seed(Seek(&self.0[1..]))?;
            } else {
                all.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Option<Json>, A::Error> {
        let wanted: Option<usize> = self.0[0].parse().ok();
        let (mut found, mut at) = (None, 0);
        loop {
            if wanted == Some(at) {
                found = match all.next_element_seed(Seek(&self.0[1..]))? {
                    Some(value) => value,
                    None => return Ok(found),
                };
            } else if all.next_element::<IgnoredAny>()?.is_none() {
                return Ok(found);
            }
            at += 1;
        }
    }

    fn visit_str<E>(self, _: &str) -> Result<Option<Json>, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Option<Json>, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Option<Json>, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Option<Json>, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Option<Json>, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Option<Json>, E> {
        Ok(None)
    }
}

/// The functions that give parts of responses.
pub(crate) fn install<'js>(ctx: &Ctx<'js>, knee: &Object<'js>) -> Made<()> {
    type This<'js> = Class<'js, Response>;
    knee.set("response", This::prototype(ctx)?)?;
    let body = |ctx: Ctx<'js>, of: This<'js>| -> Made<Value<'js>> {
        let of = of.borrow();
        match of.raw.reads {
            _ if !of.has_body() => Ok(Value::new_null(ctx)),
            Reads::Bytes => ArrayBuffer::new_copy(ctx.clone(), of.body())?.into_js(&ctx),
            _ => (&*String::from_utf8_lossy(of.body())).into_js(&ctx),
        }
    };
    knee.set("body", Function::new(ctx.clone(), body)?)?;
    let json = |ctx: Ctx<'js>, of: This<'js>| {
        let of = of.borrow();
        if !of.has_body() {
            let why = of.raw.response.error.as_ref().map_or("it was not read", |(why, _)| why);
            return Err(throw(&ctx, &format!("the body is null: it is no JSON ({why})")));
        }
        ctx.json_parse(of.body())
    };
    knee.set("json", Function::new(ctx.clone(), json)?)?;
    // The value at a path of names and numbers; what is not that simple is another's.
    let seek = |ctx: Ctx<'js>, of: This<'js>, path: String, search: Function<'js>| {
        let has_body = of.borrow().has_body();
        let is_simple = path.bytes().all(|b| b.is_ascii_alphanumeric() || b"._- ".contains(&b));
        let names: Vec<&str> = path.split('.').collect();
        let found = of.borrow();
        let mut json = serde_json::Deserializer::from_slice(found.body());
        match Seek(&names).deserialize(&mut json) {
            Ok(found) if has_body && is_simple && json.end().is_ok() => match found {
                None => Ok(Value::new_undefined(ctx)),
                Some(Json::String(text)) => text.into_js(&ctx),
                Some(value) => ctx.json_parse(value.to_string()),
            },
            _ => search.call((of.clone(), path)),
        }
    };
    knee.set("seek", Function::new(ctx.clone(), seek)?)?;
    // Headers by their names, or all of one name.
    let headers = |ctx: Ctx<'js>, of: This<'js>, name: Opt<String>| -> Made<Value<'js>> {
        let head = &of.borrow().raw.response.head;
        if let Some(name) = &*name {
            return all_of(head, name).collect::<Vec<_>>().into_js(&ctx);
        }
        let made = Object::new(ctx.clone())?;
        for line in String::from_utf8_lossy(head).lines() {
            let Some((name, value)) = line.split_once(':') else { continue };
            let (name, value) = (canonical(name), value.trim());
            let before: Option<String> = made.get(&*name)?;
            match before {
                Some(before) => made.set(name, format!("{before}, {value}"))?,
                None => made.set(name, value)?,
            }
        }
        Ok(made.into_value())
    };
    knee.set("headers", Function::new(ctx.clone(), headers)?)?;
    let facts = |ctx: Ctx<'js>, of: This<'js>| {
        let raw = &of.borrow().raw;
        let made = Object::new(ctx.clone())?;
        made.set("url", &*raw.url)?;
        let (error, code) = raw.response.error.as_ref().map_or(("", 0), |(e, code)| (e, *code));
        let status = raw.response.status;
        made.set("error", error)?;
        made.set("error_code", if code == 0 && status >= 400 { 1000 + status } else { code })?;
        made.set("proto", raw.response.version)?;
        let t = raw.response.timings;
        let all = [t.blocked, t.connecting, t.tls_handshaking, t.sending, t.waiting, t.receiving];
        made.set("times", all.map(|time| time.0 as f64 / 1e6).to_vec())?;
        made.set("method", &*raw.sent.method)?;
        made.set("asked", &*raw.asked)?;
        made.set("sent", &*String::from_utf8_lossy(&raw.sent.body))?;
        let headers = Object::new(ctx)?;
        for (name, value) in &raw.sent.headers {
            let name = canonical(name);
            let mut values: Vec<String> = headers.get::<_, Option<_>>(&*name)?.unwrap_or_default();
            values.push(value.clone());
            headers.set(name, values)?;
        }
        made.set("headers", headers)?;
        Made::Ok(made)
    };
    knee.set("facts", Function::new(ctx.clone(), facts)?)
}
