//! What the built-in modules are made of: functions that hand requests out, record, and compute.

use crate::modules;
use crate::request::{Asked, RawResponse, place_of, send};
use crate::script::{MetricKind, MetricName};
use crate::shared::{Record, Shared, uncatchable};
use base64::Engine as _;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use hmac::{Hmac, Mac as _};
use knee_load::rng;
use knee_load::session::{Jar, select_elements};
use knee_load::time::Nanos;
use md5::Md5;
use rand_core::{RngCore as _, SeedableRng as _};
use rquickjs::{
    Array, ArrayBuffer, Ctx, Error, Exception, Function, IntoJs, Object, Result, TypedArray, Value,
};
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};
use std::io::Read as _;
use std::rc::Rc;

/// Most bytes of an inflated body.
const INFLATED_BYTES_MAX: u64 = 64 << 20;

/// Most jars that a user makes.
const JARS_MAX: usize = 100;

pub(crate) fn base64(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn throw(ctx: &Ctx<'_>, why: &str) -> Error {
    Exception::throw_message(ctx, why)
}

/// The bytes of a string (as UTF-8), of a buffer or of a typed array.
fn bytes_of(value: &Value<'_>) -> Option<Vec<u8>> {
    if let Some(text) = value.as_string() {
        return text.to_string().ok().map(String::into_bytes);
    }
    let object = value.as_object()?;
    if let Some(buffer) = object.as_array_buffer() {
        // SAFETY: nothing of JavaScript runs before the bytes are copied.
        return unsafe { buffer.as_bytes() }.map(<[u8]>::to_vec);
    }
    let array = TypedArray::<u8>::from_object(object.clone()).ok()?;
    // SAFETY: as above.
    unsafe { array.as_bytes() }.map(<[u8]>::to_vec)
}

/// Makes the object `__knee` that the built-in modules use.
pub(crate) fn install<'js>(ctx: &Ctx<'js>, shared: &Rc<Shared>) -> Result<()> {
    let knee = Object::new(ctx.clone())?;
    requests(ctx, shared, &knee)?;
    cookies(ctx, shared, &knee)?;
    records(ctx, shared, &knee)?;
    data(ctx, shared, &knee)?;
    digests(ctx, shared, &knee)?;
    state(ctx, shared, &knee)?;
    ctx.globals().set("__knee", knee)
}

macro_rules! native {
    ($ctx:expr, $knee:expr, $name:literal, $function:expr) => {
        $knee.set($name, Function::new($ctx.clone(), $function)?)?
    };
}

fn requests<'js>(ctx: &Ctx<'js>, shared: &Rc<Shared>, knee: &Object<'js>) -> Result<()> {
    let own = Rc::clone(shared);
    // Sends a request and waits for its response.
    native!(ctx, knee, "send", move |ctx: Ctx<'js>, spec: Object<'js>| {
        let number = start(&ctx, &own, &spec)?;
        await_response(&ctx, &own, number)
    });
    let own = Rc::clone(shared);
    // Sends a request. Its number.
    native!(ctx, knee, "start", move |ctx: Ctx<'js>, spec: Object<'js>| start(&ctx, &own, &spec));
    let own = Rc::clone(shared);
    // Waits for the response to a request of this number.
    native!(ctx, knee, "await", move |ctx: Ctx<'js>, number: u32| {
        await_response(&ctx, &own, number)
    });
    let own = Rc::clone(shared);
    // The response to a request of this number, if it has come.
    native!(ctx, knee, "take", move |ctx: Ctx<'js>, number: u32| -> Result<Value<'js>> {
        let arrived = own.arrived.borrow_mut().remove(&number);
        match arrived {
            Some(raw) => Ok(response(&ctx, raw)?.into_value()),
            None => Ok(Value::new_null(ctx)),
        }
    });
    let own = Rc::clone(shared);
    native!(ctx, knee, "sleep", move |ctx: Ctx<'js>, seconds: f64| -> Result<()> {
        if !own.is_running.get() {
            return Err(throw(&ctx, "sleep is not available in the init code"));
        }
        own.reset_computed();
        let until = own.now() + Nanos((seconds.max(0.0) * 1e9).min(1e18) as u64);
        while own.now() < until {
            own.wait(&ctx, until)?;
        }
        Ok(())
    });
    let own = Rc::clone(shared);
    // The user's time, in nanoseconds.
    native!(ctx, knee, "now", move || own.now().0 as f64);
    Ok(())
}

/// A list of texts, one after the other.
fn texts(spec: &Object<'_>, name: &str) -> Result<Vec<String>> {
    Ok(spec.get::<_, Option<Vec<String>>>(name)?.unwrap_or_default())
}

fn start<'js>(ctx: &Ctx<'js>, shared: &Shared, spec: &Object<'js>) -> Result<u32> {
    if !shared.is_running.get() {
        return Err(throw(ctx, "the init code sends no request: move it into a function"));
    }
    let headers = texts(spec, "headers")?;
    let cookies = texts(spec, "cookies")?;
    let body: Value<'js> = spec.get("body")?;
    let body = if body.is_null() || body.is_undefined() {
        Vec::new()
    } else {
        bytes_of(&body).ok_or_else(|| throw(ctx, "the body is no text and no bytes"))?
    };
    let expects: Option<Vec<u16>> = spec.get("expects")?;
    let timeout_ms: Option<f64> = spec.get("timeout")?;
    let asked = Asked {
        method: spec.get("method")?,
        url: spec.get("url")?,
        headers: headers.chunks_exact(2).map(|h| (h[0].clone(), h[1].clone())).collect(),
        body,
        cookies: cookies
            .chunks_exact(3)
            .map(|c| (c[0].clone(), c[1].clone(), !c[2].is_empty()))
            .collect(),
        name: spec.get("name")?,
        timeout: timeout_ms.map(|ms| Nanos((ms.clamp(0.0, 1e12) * 1e6) as u64)),
        redirects: spec.get("redirects")?,
        jar: spec.get::<_, u32>("jar")? as usize,
        expects: expects.map(|e| e.chunks_exact(2).map(|e| (e[0], e[1])).collect()),
        reads_body: spec.get("reads")?,
    };
    send(shared, asked).map_err(|why| throw(ctx, &why))
}

fn await_response<'js>(ctx: &Ctx<'js>, shared: &Shared, number: u32) -> Result<Object<'js>> {
    loop {
        let arrived = shared.arrived.borrow_mut().remove(&number);
        if let Some(raw) = arrived {
            return response(ctx, raw);
        }
        shared.wait(ctx, Nanos::MAX)?;
    }
}

/// A response as an object, for `Response` in `js/http.js`.
fn response<'js>(ctx: &Ctx<'js>, raw: RawResponse) -> Result<Object<'js>> {
    let RawResponse { response, url, sent } = raw;
    let made = Object::new(ctx.clone())?;
    made.set("status", response.status)?;
    made.set("url", url)?;
    made.set("head", String::from_utf8_lossy(&response.head).into_owned())?;
    let coding = crate::request::header(&response.head, "content-encoding");
    let mut error = response.error;
    let body = match inflated(coding, response.body) {
        Ok(body) => body,
        Err(why) => {
            error = error.or(Some((why, 1701)));
            Vec::new()
        }
    };
    made.set("bytes", ArrayBuffer::new(ctx.clone(), body)?)?;
    let (error, code) = error.unwrap_or_default();
    made.set("error", error)?;
    made.set("error_code", code)?;
    made.set("proto", response.version)?;
    let t = response.timings;
    let all = [t.blocked, t.connecting, t.tls_handshaking, t.sending, t.waiting, t.receiving];
    made.set("times", all.map(|time| time.0 as f64 / 1e6).to_vec())?;
    made.set("sent", sent.into_iter().flat_map(|(name, value)| [name, value]).collect::<Vec<_>>())?;
    Ok(made)
}

/// A body without its content coding.
fn inflated(coding: Option<&str>, body: Vec<u8>) -> std::result::Result<Vec<u8>, String> {
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

fn cookies<'js>(ctx: &Ctx<'js>, shared: &Rc<Shared>, knee: &Object<'js>) -> Result<()> {
    let own = Rc::clone(shared);
    native!(ctx, knee, "jar", move |ctx: Ctx<'js>| -> Result<u32> {
        let mut jars = own.jars.borrow_mut();
        if jars.len() >= JARS_MAX {
            return Err(throw(&ctx, "more than 100 cookie jars"));
        }
        jars.push(Jar::default());
        Ok(jars.len() as u32 - 1)
    });
    let own = Rc::clone(shared);
    native!(ctx, knee, "set_cookie", move |ctx: Ctx<'js>,
                                           jar: usize,
                                           url: String,
                                           line: String| {
        let (server, path) = place_of(&own, &url).map_err(|why| throw(&ctx, &why))?;
        if let Some(jar) = own.jars.borrow_mut().get_mut(jar) {
            let origins = own.origins.borrow();
            jar.take(line.as_bytes(), (server, &path), &origins, own.realtime_ns());
        }
        Result::Ok(())
    });
    let own = Rc::clone(shared);
    native!(ctx, knee, "cookies", move |ctx: Ctx<'js>, jar: usize, url: String| {
        let (server, path) = place_of(&own, &url).map_err(|why| throw(&ctx, &why))?;
        let jars = own.jars.borrow();
        let sent = jars.get(jar).map(|jar| jar.sent((server, &path), own.realtime_ns()));
        let texts = sent.into_iter().flatten().flat_map(|(name, value)| [name, value]);
        Result::Ok(texts.map(|t| String::from_utf8_lossy(t).into_owned()).collect::<Vec<_>>())
    });
    let own = Rc::clone(shared);
    // Without a name: all.
    native!(
        ctx,
        knee,
        "drop_cookies",
        move |ctx: Ctx<'js>, jar: usize, url: String, name: Option<String>| {
            let (server, _) = place_of(&own, &url).map_err(|why| throw(&ctx, &why))?;
            if let Some(jar) = own.jars.borrow_mut().get_mut(jar) {
                match name {
                    Some(name) => jar.remove(name.as_bytes(), server),
                    None => jar.remove_all(server),
                }
            }
            Result::Ok(())
        }
    );
    Ok(())
}

fn records<'js>(ctx: &Ctx<'js>, shared: &Rc<Shared>, knee: &Object<'js>) -> Result<()> {
    let own = Rc::clone(shared);
    native!(ctx, knee, "check", move |name: String, passes: bool| {
        let path = format!("{}::{name}", own.group_path());
        own.record(Record::Check(own.name(path.trim_start_matches(':')), passes));
    });
    let own = Rc::clone(shared);
    native!(ctx, knee, "enter", move |name: String| {
        let now = own.now();
        own.groups.borrow_mut().push((name, now));
    });
    let own = Rc::clone(shared);
    native!(ctx, knee, "leave", move || {
        let path = own.group_path();
        let left = own.groups.borrow_mut().pop();
        if let Some((_, since)) = left {
            let number = own.name(path.trim_start_matches(':'));
            own.record(Record::Group(number, own.now() - since));
        }
    });
    let own = Rc::clone(shared);
    native!(ctx, knee, "metric", move |ctx: Ctx<'js>, kind: String, name: String, time: bool| {
        let kind = match &*kind {
            "counter" => MetricKind::Counter,
            "gauge" => MetricKind::Gauge,
            "rate" => MetricKind::Rate,
            _ => MetricKind::Trend,
        };
        if own.is_running.get() {
            return Err(throw(&ctx, "metrics are made in the init code"));
        }
        let metric = MetricName { name, kind, is_time: time };
        own.setup.script.metric(metric).map_err(|why| throw(&ctx, &why))
    });
    let own = Rc::clone(shared);
    native!(ctx, knee, "add", move |metric: u32, value: f64| {
        own.record(Record::Metric(metric, value));
    });
    let own = Rc::clone(shared);
    native!(ctx, knee, "log", move |level: String, text: String| own.log(&level, &text));
    let own = Rc::clone(shared);
    native!(ctx, knee, "abort", move |ctx: Ctx<'js>, reason: String| -> Result<()> {
        *own.aborts.borrow_mut() = Some(reason);
        Err(uncatchable(&ctx, "the script ended the test"))
    });
    Ok(())
}

fn data<'js>(ctx: &Ctx<'js>, shared: &Rc<Shared>, knee: &Object<'js>) -> Result<()> {
    let own = Rc::clone(shared);
    native!(ctx, knee, "open", move |ctx: Ctx<'js>, path: String, binary: bool| {
        let fail = |why: String| throw(&ctx, &format!("open('{path}'): {why}"));
        if own.is_running.get() {
            return Err(fail("files are opened in the init code".to_owned()));
        }
        // Paths are those of the module that calls it.
        let callers = (1..8).filter_map(|level| ctx.script_or_module_name(level)?.to_string().ok());
        let mut callers = callers.filter(|name| !modules::is_built_in(name));
        let base = callers.next().unwrap_or_else(|| own.setup.script.plan().main.clone());
        let found = modules::below(&base, &path).map_err(fail)?;
        let bytes = own.file(&found).map_err(fail)?;
        if binary {
            return ArrayBuffer::new(ctx.clone(), bytes)?.into_js(&ctx);
        }
        String::from_utf8_lossy(&bytes).into_owned().into_js(&ctx)
    });
    let own = Rc::clone(shared);
    // The number of elements of a shared array, if it is there.
    native!(ctx, knee, "array", move |name: String| -> Option<u32> {
        own.setup.script.array(&name).map(|array| array.len() as u32)
    });
    let own = Rc::clone(shared);
    native!(ctx, knee, "set_array", move |name: String, elements: Vec<String>| {
        own.setup.script.set_array(name, elements);
    });
    let own = Rc::clone(shared);
    native!(ctx, knee, "element", move |ctx: Ctx<'js>, name: String, at: usize| {
        let array = own.setup.script.array(&name);
        match array.as_ref().and_then(|array| array.get(at)) {
            Some(json) => ctx.json_parse(json.as_str()),
            None => Ok(Value::new_undefined(ctx)),
        }
    });
    native!(ctx, knee, "select", move |ctx: Ctx<'js>, html: String, selector: String| {
        let elements = select_elements(html.as_bytes(), &selector);
        let elements = elements.map_err(|why| throw(&ctx, &why.to_string()))?;
        let all = Array::new(ctx.clone())?;
        for (at, element) in elements.into_iter().enumerate() {
            let made = Object::new(ctx.clone())?;
            made.set("name", element.name)?;
            made.set(
                "attributes",
                element.attributes.into_iter().flat_map(|(n, v)| [n, v]).collect::<Vec<_>>(),
            )?;
            made.set("text", element.text)?;
            made.set("inner", element.inner)?;
            made.set("outer", element.outer)?;
            all.set(at, made)?;
        }
        Result::Ok(all)
    });
    native!(ctx, knee, "text", move |ctx: Ctx<'js>, bytes: Value<'js>| {
        let bytes = bytes_of(&bytes).ok_or_else(|| throw(&ctx, "no bytes"))?;
        Result::Ok(String::from_utf8_lossy(&bytes).into_owned())
    });
    native!(ctx, knee, "bytes", move |ctx: Ctx<'js>, text: Value<'js>| {
        let bytes = bytes_of(&text).ok_or_else(|| throw(&ctx, "no text and no bytes"))?;
        ArrayBuffer::new(ctx, bytes)
    });
    native!(ctx, knee, "join", |base: String, to: String| crate::request::join(&base, &to));
    Ok(())
}

/// The digest of some data, with a key or without.
fn digest(name: &str, key: Option<&[u8]>, data: &[u8]) -> Option<Vec<u8>> {
    macro_rules! of {
        ($($text:literal => $hash:ty),*) => {
            match name {
                $($text => Some(match key {
                    None => <$hash>::digest(data).to_vec(),
                    Some(key) => {
                        let mut mac = Hmac::<$hash>::new_from_slice(key).ok()?;
                        mac.update(data);
                        mac.finalize().into_bytes().to_vec()
                    }
                }),)*
                _ => None,
            }
        };
    }
    of!("md5" => Md5, "sha1" => Sha1, "sha256" => Sha256, "sha384" => Sha384, "sha512" => Sha512,
        "sha512_224" => Sha512_224, "sha512_256" => Sha512_256)
}

fn digests<'js>(ctx: &Ctx<'js>, shared: &Rc<Shared>, knee: &Object<'js>) -> Result<()> {
    native!(ctx, knee, "digest", move |ctx: Ctx<'js>,
                                       name: String,
                                       key: Value<'js>,
                                       data: Value<'js>| {
        let data = bytes_of(&data).ok_or_else(|| throw(&ctx, "no text and no bytes"))?;
        let made = digest(&name, bytes_of(&key).as_deref(), &data);
        let made = made.ok_or_else(|| throw(&ctx, &format!("no hash of knee: '{name}'")))?;
        ArrayBuffer::new(ctx, made)
    });
    let own = Rc::clone(shared);
    native!(ctx, knee, "random_bytes", move |ctx: Ctx<'js>, count: usize| {
        if count > 1 << 20 {
            return Err(throw(&ctx, "more than 1 MiB of random bytes"));
        }
        let mut bytes = vec![0; count];
        own.rng.borrow_mut().fill_bytes(&mut bytes);
        ArrayBuffer::new(ctx, bytes)
    });
    let own = Rc::clone(shared);
    native!(ctx, knee, "random", move || rng::unit(&mut own.rng.borrow_mut()));
    let own = Rc::clone(shared);
    native!(ctx, knee, "seed", move |seed: f64| {
        *own.rng.borrow_mut() = rng::Rng::seed_from_u64(seed as i64 as u64);
    });
    use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
    let engine = |name: &str| match name {
        "url" => URL_SAFE,
        "rawurl" => URL_SAFE_NO_PAD,
        "rawstd" => STANDARD_NO_PAD,
        _ => STANDARD,
    };
    native!(ctx, knee, "b64encode", move |ctx: Ctx<'js>, data: Value<'js>, name: String| {
        let data = bytes_of(&data).ok_or_else(|| throw(&ctx, "no text and no bytes"))?;
        Result::Ok(engine(&name).encode(data))
    });
    native!(ctx, knee, "b64decode", move |ctx: Ctx<'js>, text: String, name: String| {
        let bytes = engine(&name).decode(text.as_bytes());
        let bytes = bytes.map_err(|why| throw(&ctx, &format!("no base64: {why}")))?;
        ArrayBuffer::new(ctx, bytes)
    });
    Ok(())
}

/// Facts of the user and its iteration.
fn state<'js>(ctx: &Ctx<'js>, shared: &Rc<Shared>, knee: &Object<'js>) -> Result<()> {
    let plan = shared.setup.script.plan();
    knee.set("options", plan.options.as_str())?;
    let env = Object::new(ctx.clone())?;
    for (name, value) in &plan.env {
        env.set(name.as_str(), value.as_str())?;
    }
    let globals = ctx.globals();
    globals.set("__ENV", env)?;
    globals.set("__VU", shared.setup.number)?;
    globals.set("__ITER", 0)?;
    let own = Rc::clone(shared);
    native!(ctx, knee, "iteration", move |ctx: Ctx<'js>| {
        let iteration = own.iteration.borrow();
        let made = Object::new(ctx)?;
        made.set("user", own.setup.number)?;
        made.set("number", iteration.number)?;
        made.set("in_test", iteration.in_test)?;
        made.set("scenario", iteration.scenario.0.as_str())?;
        made.set("executor", iteration.scenario.1.as_str())?;
        made.set("began_ms", iteration.realtime_origin_ns as f64 / 1e6)?;
        Result::Ok(made)
    });
    Ok(())
}
