//! Responses, as scripts have them: their parts are made when they are read.

use crate::failure::throw;
use crate::message::{RawResponse, Reads};
use crate::request::{all_of, header, text, url_of};
use crate::shared::{Held, Shared};
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use knee_load::session::MadeRequest;
use rquickjs::Result as Made;
use rquickjs::class::{JsClass, Readable, Trace, Tracer};
use rquickjs::function::{Constructor, Opt};
use rquickjs::object::Property;
use rquickjs::{ArrayBuffer, Class, Ctx, Error, Function, IntoJs, JsLifetime, Object, Value};
use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::io::Read as _;
use std::rc::Rc;
use std::result::Result;

/// Longest path of JSON, in bytes. Bounds the recursion.
const PATH_BYTES_MAX: usize = 256;

/// Most bytes of an inflated body.
const INFLATED_BYTES_MAX: u64 = 64 << 20;

/// A response. The parts that scripts read are properties of its prototype, see `js/http.js`.
pub(crate) struct Response {
    raw: RawResponse,
    _held: Held,
}

impl Response {
    /// The body, without its content coding.
    pub(crate) fn body(&self) -> &[u8] {
        &self.raw.response.body
    }

    fn has_body(&self) -> bool {
        self.raw.reads != Reads::Nothing
            && (![0, 204, 304].contains(&self.raw.response.status) || !self.body().is_empty())
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
    match inflated(coding.as_deref(), std::mem::take(&mut response.body)) {
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
    let held = Held::new(ctx, shared, response.body.len() + response.head.len())?;
    let made = Class::instance(ctx.clone(), Response { raw, _held: held })?;
    // Defined, as to set it would ask the prototype for a setter.
    let status = Property::from(status).writable().enumerable().configurable();
    made.prop("status", status)?;
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

fn no_json(ctx: &Ctx<'_>, response: &Response) -> Error {
    let why = response.raw.response.error.as_ref().map_or("it was not read", |(why, _)| why);
    throw(ctx, &format!("the body is null: it is no JSON ({why})"))
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
            _ => (&*text(of.body())).into_js(&ctx),
        }
    };
    knee.set("body", Function::new(ctx.clone(), body)?)?;
    let json = |ctx: Ctx<'js>, of: This<'js>| {
        let of = of.borrow();
        if !of.has_body() {
            return Err(no_json(&ctx, &of));
        }
        ctx.json_parse(of.body())
    };
    knee.set("json", Function::new(ctx.clone(), json)?)?;
    // The value at a path of GJSON; undefined where there is none, or no JSON.
    let seek = |ctx: Ctx<'js>, of: This<'js>, path: String| {
        let of = of.borrow();
        if !of.has_body() {
            return Err(no_json(&ctx, &of));
        }
        if path.len() > PATH_BYTES_MAX {
            return Err(throw(&ctx, "json: the path is too long"));
        }
        let text = text(of.body());
        let is_json = serde_json::from_str::<IgnoredAny>(&text).is_ok();
        let value = is_json.then(|| gjson::get(&text, &path));
        match value.filter(gjson::Value::exists) {
            Some(value) => ctx.json_parse(value.json()),
            None => Ok(Value::new_undefined(ctx)),
        }
    };
    knee.set("seek", Function::new(ctx.clone(), seek)?)?;
    // Headers by their names, or all of one name.
    let headers = |ctx: Ctx<'js>, of: This<'js>, name: Opt<String>| -> Made<Value<'js>> {
        let head = &of.borrow().raw.response.head;
        if let Some(name) = &*name {
            return all_of(head, name).map(Cow::into_owned).collect::<Vec<_>>().into_js(&ctx);
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
        let nothing = MadeRequest::default();
        let sent = raw.sent.as_deref().unwrap_or(&nothing);
        made.set("url", raw.sent.as_deref().map_or(raw.asked.clone(), url_of))?;
        let (error, code) = raw.response.error.as_ref().map_or(("", 0), |(e, code)| (e, *code));
        let status = raw.response.status;
        made.set("error", error)?;
        made.set("error_code", if code == 0 && status >= 400 { 1000 + status } else { code })?;
        made.set("proto", if status == 0 { "" } else { raw.response.version })?;
        let t = raw.response.timings;
        let all = [t.blocked, t.connecting, t.tls_handshaking, t.sending, t.waiting, t.receiving];
        made.set("times", all.map(|time| time.0 as f64 / 1e6).to_vec())?;
        made.set("method", &*sent.method)?;
        made.set("asked", &*raw.asked)?;
        made.set("sent", &*String::from_utf8_lossy(&sent.body))?;
        let headers = Object::new(ctx)?;
        for (name, value) in &sent.headers {
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
