//! What the built-in modules are made of: functions that hand requests out, record, and compute.

use crate::built_in::is_built_in;
use crate::failure::throw;
use crate::message::{Reads, Statuses};
use crate::metric::{MetricKind, MetricName};
use crate::modules;
use crate::page;
use crate::request::{Asked, cookie_value, place_of, send, taken};
use crate::response::{self, Response};
use crate::shared::{Record, Shared, uncatchable};
use base64::Engine as _;
use flate2::Compression;
use flate2::read::{GzEncoder, ZlibEncoder};
use hmac::{Hmac, Mac as _};
use knee_load::rng;
use knee_load::session::Jar;
use knee_load::time::Nanos;
use md5::Md5;
use rand_core::{RngCore as _, SeedableRng as _};
use rquickjs::context::EvalOptions;
use rquickjs::{
    ArrayBuffer, Atom, Class, Coerced, Ctx, Function, IntoJs, Module, Object, Result, TypedArray,
    Value, qjs,
};
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

/// Most jars that a user makes.
const JARS_MAX: usize = 100;

/// Elements of an array that the engine walks over within about a second, and bytes of one.
const ELEMENTS_MAX: u64 = 1 << 24;
const ELEMENT_BYTES: u64 = 16;

/// Memory that a shared array may take while it is made, by that of a user.
const SHARED_FACTOR: u64 = 32;

/// The bytes of a string (as UTF-8), of a buffer or of a typed array.
fn bytes_of(value: &Value<'_>) -> Option<Vec<u8>> {
    if let Some(text) = value.as_string() {
        return text.to_string().ok().map(String::into_bytes);
    }
    let object = value.as_object()?;
    if let Some(response) = Class::<Response>::from_object(object) {
        return Some(response.borrow().body().to_vec());
    }
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
    response::install(ctx, &knee)?;
    page::install(ctx, shared, &knee)?;
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
    // Sends a request. Its number.
    let start = move |ctx: &Ctx<'js>, call: Call<'js>| -> Result<u32> {
        if !own.is_running.get() {
            return Err(throw(ctx, "the init code sends no request: move it into a function"));
        }
        send(&own, request_of(ctx, &own, call)?).map_err(|why| throw(ctx, &why))
    };
    let (own, begin) = (Rc::clone(shared), start.clone());
    native!(ctx, knee, "send", move |ctx: Ctx<'js>,
                                     method: String,
                                     to: Value<'js>,
                                     body: Value<'js>,
                                     params: Value<'js>,
                                     coding: Value<'js>| {
        await_response(&ctx, &own, begin(&ctx, (method, to, body, params, coding))?)
    });
    native!(ctx, knee, "start", move |ctx: Ctx<'js>,
                                      method: String,
                                      to: Value<'js>,
                                      body: Value<'js>,
                                      params: Value<'js>,
                                      coding: Value<'js>| {
        start(&ctx, (method, to, body, params, coding))
    });
    let own = Rc::clone(shared);
    // Waits for the response to a request of this number.
    native!(ctx, knee, "await", move |ctx: Ctx<'js>, number: u32| {
        await_response(&ctx, &own, number)
    });
    let own = Rc::clone(shared);
    // The response to a request of this number, if it has come.
    native!(ctx, knee, "take", move |ctx: Ctx<'js>, number: u32| {
        taken(&own.arrived, number).map(|raw| response::new(&ctx, &own, raw)).transpose()
    });
    let own = Rc::clone(shared);
    // Statuses that are no failures, by pairs of both ends; without any: those below 400.
    native!(ctx, knee, "expect", move |flat: Option<Vec<u16>>| {
        *own.expects.borrow_mut() = flat.map(|flat| ranges(&flat));
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
    // Whether what k6 warns of is thrown.
    native!(ctx, knee, "throws", move || own.setup.script.settings().throws);
    let own = Rc::clone(shared);
    // The user's time, in nanoseconds.
    native!(ctx, knee, "now", move || own.now().0 as f64);
    Ok(())
}

/// Why a request with such a body is not sent.
fn not_sent(body: &Value<'_>) -> String {
    format!("its body is a value of type {}: expected text, bytes or an object", body.type_name())
}

/// Headers that say where a request ends, which no script gives.
const LENGTHS: [&str; 3] = ["content-length", "transfer-encoding", "trailer"];

/// What a script gives for a request: method, URL, body, parameters, and the type of the body
/// where it was made of an object.
type Call<'js> = (String, Value<'js>, Value<'js>, Value<'js>, Value<'js>);

fn is_none(value: &Value<'_>) -> bool {
    value.is_null() || value.is_undefined()
}

/// A value as text, as `String(value)` makes it.
fn text_of(value: &Value<'_>) -> Result<String> {
    match value.as_string() {
        Some(text) => text.to_string(),
        None => value.get::<Coerced<String>>().map(|text| text.0),
    }
}

fn ranges(flat: &[u16]) -> Statuses {
    flat.chunks_exact(2).map(|ends| (ends[0], ends[1])).collect()
}

/// The tags that a script gives to a value, and those of its user; none where no threshold asks for
/// any.
fn tags_of<'js>(
    ctx: &Ctx<'js>,
    shared: &Shared,
    own: &Value<'js>,
) -> Result<BTreeMap<String, String>> {
    let mut tags = BTreeMap::new();
    if !shared.setup.script.has_tagged() {
        return Ok(tags);
    }
    let knee: Object<'js> = ctx.globals().get("__knee")?;
    let of_user: Object<'js> = knee.get("tags")?;
    for object in [Some(&of_user), own.as_object()].into_iter().flatten() {
        for tag in object.props::<String, Coerced<String>>() {
            let (name, value) = tag?;
            tags.insert(name, value.0);
        }
    }
    Ok(tags)
}

/// The request that a script asks for.
fn request_of<'js>(
    ctx: &Ctx<'js>,
    shared: &Shared,
    (method, to, body, params, coding): Call<'js>,
) -> Result<Asked> {
    let settings = shared.setup.script.settings();
    let refuse = |what: &str| throw(ctx, &format!("{what} of a request is not supported by knee"));
    let mut asked = Asked {
        method: if method.is_empty() { "GET".to_owned() } else { method },
        redirects: settings.max_redirects.unwrap_or(10),
        reads: if settings.discard_response_bodies { Reads::Nothing } else { Reads::Text },
        expects: shared.expects.borrow().clone(),
        ..Asked::default()
    };
    // What http.url`…` makes.
    let parts = to.as_object().filter(|_| !to.is_string());
    let url: Option<Value<'js>> = parts.map(|parts| parts.get("url")).transpose()?;
    match url.filter(|url| !is_none(url)) {
        Some(url) => {
            asked.url = text_of(&url)?;
            asked.name = parts.map(|parts| parts.get("name")).transpose()?.flatten();
        }
        None => asked.url = text_of(&to)?,
    }
    if !is_none(&body) {
        match bytes_of(&body) {
            Some(bytes) => asked.body = bytes,
            None => asked.refused = Some(not_sent(&body)),
        }
    }
    let params = params.into_object();
    let mut compression = String::new();
    if shared.setup.script.has_tagged() {
        let tags = params.as_ref().map(|params| params.get("tags")).transpose()?;
        let tags = tags.unwrap_or_else(|| Value::new_undefined(ctx.clone()));
        asked.tags = tags_of(ctx, shared, &tags)?;
    }
    for prop in params.iter().flat_map(Object::props::<Atom<'js>, Value<'js>>) {
        let (name, value) = prop?;
        let name = name.to_js_string()?.to_cstring()?;
        match (name.as_str(), value.as_object()) {
            (name, _) if is_none(&value) && name != "responseCallback" => {}
            ("headers", Some(headers)) => {
                for header in headers.props::<String, Value<'js>>() {
                    let (name, value) = header?;
                    let value = text_of(&value)?;
                    if LENGTHS.iter().any(|own| name.eq_ignore_ascii_case(own)) {
                        shared.warn(&format!("the header {name} is not sent: it is knee's own"));
                        continue;
                    }
                    asked.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(&name));
                    asked.headers.push((name, value));
                }
            }
            ("cookies", Some(cookies)) => {
                for cookie in cookies.props::<String, Value<'js>>() {
                    let (name, value) = cookie?;
                    let (text, replaces) = match value.as_object() {
                        Some(both) => {
                            (both.get::<_, Coerced<String>>("value")?.0, both.get("replace")?)
                        }
                        None => (text_of(&value)?, None::<bool>),
                    };
                    asked.cookies.push((name, text, replaces.unwrap_or_default()));
                }
            }
            ("tags", Some(tags)) => {
                let name: Option<Coerced<String>> = tags.get("name")?;
                asked.name = name.map(|name| name.0).or(asked.name);
            }
            ("timeout", _) => {
                let time = crate::options::time(&text_of(&value)?);
                asked.timeout = Some(time.map_err(|why| throw(ctx, &format!("timeout: {why}")))?);
            }
            ("redirects", _) => asked.redirects = value.get::<Coerced<f64>>()?.0.max(0.0) as u32,
            ("responseType", _) => {
                asked.reads = match &*text_of(&value)? {
                    "none" => Reads::Nothing,
                    "binary" => Reads::Bytes,
                    "text" => Reads::Text,
                    other => return Err(refuse(&format!("the responseType '{other}'"))),
                }
            }
            ("responseCallback", Some(expected)) => {
                asked.expects = Some(ranges(&expected.get::<_, Vec<u16>>("all")?));
            }
            ("responseCallback", None) if value.is_null() => {
                asked.expects = Some(Rc::new([(0, u16::MAX)]));
            }
            ("jar", Some(jar)) => asked.jar = jar.get::<_, u32>("id")? as usize,
            ("auth", _) if text_of(&value)? != "basic" => {
                let how = "use 'basic', with user and password in the URL";
                return Err(throw(ctx, &format!("auth: '{}': {how}", text_of(&value)?)));
            }
            ("compression", _) => compression = text_of(&value)?,
            _ => {}
        }
    }
    let mut otherwise = |name: &str, value: Option<&str>| {
        if let Some(value) = value
            && !asked.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name))
        {
            asked.headers.push((name.to_owned(), value.to_owned()));
        }
    };
    if !compression.is_empty() {
        otherwise("Content-Encoding", Some(&*compression));
        for coding in compression.split(',').map(str::trim) {
            match compressed(coding, &asked.body) {
                Some(body) => asked.body = body,
                None => {
                    asked.refused = Some(format!("the compression '{coding}' is not supported"))
                }
            }
        }
    }
    otherwise("Content-Type", coding.get::<Option<String>>()?.as_deref());
    otherwise("User-Agent", settings.user_agent.as_deref());
    Ok(asked)
}

/// A body in a content coding.
fn compressed(coding: &str, body: &[u8]) -> Option<Vec<u8>> {
    let (level, mut made) = (Compression::default(), Vec::new());
    match coding {
        "gzip" => GzEncoder::new(body, level).read_to_end(&mut made).ok()?,
        "deflate" => ZlibEncoder::new(body, level).read_to_end(&mut made).ok()?,
        _ => return None,
    };
    Some(made)
}

fn await_response<'js>(
    ctx: &Ctx<'js>,
    shared: &Rc<Shared>,
    number: u32,
) -> Result<Class<'js, Response>> {
    loop {
        if let Some(raw) = taken(&shared.arrived, number) {
            return response::new(ctx, shared, raw);
        }
        shared.wait(ctx, Nanos::MAX)?;
    }
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
    native!(
        ctx,
        knee,
        "set_cookie",
        move |ctx: Ctx<'js>,
              jar: usize,
              url: String,
              name: String,
              value: String,
              attributes: String| {
            let (server, path) = place_of(&own, &url).map_err(|why| throw(&ctx, &why))?;
            let line = format!("{name}={}{attributes}", cookie_value(&value));
            if let Some(jar) = own.jars.borrow_mut().get_mut(jar) {
                let origins = own.origins.borrow();
                jar.take(line.as_bytes(), (server, &path), &origins, own.realtime_ns());
            }
            Result::Ok(())
        }
    );
    let own = Rc::clone(shared);
    native!(ctx, knee, "cookies", move |ctx: Ctx<'js>, jar: usize, url: String| {
        let (server, path) = place_of(&own, &url).map_err(|why| throw(&ctx, &why))?;
        let jars = own.jars.borrow();
        let sent = jars.get(jar).map(|jar| jar.sent((server, &path), own.realtime_ns()));
        let texts = sent.into_iter().flatten().flat_map(|(name, value)| [name, value]);
        Result::Ok(texts.map(|t| String::from_utf8_lossy(t).into_owned()).collect::<Vec<_>>())
    });
    let own = Rc::clone(shared);
    native!(ctx, knee, "drop_cookie", move |ctx: Ctx<'js>,
                                            jar: usize,
                                            url: String,
                                            name: String| {
        let (server, _) = place_of(&own, &url).map_err(|why| throw(&ctx, &why))?;
        if let Some(jar) = own.jars.borrow_mut().get_mut(jar) {
            jar.remove(name.as_bytes(), server);
        }
        Result::Ok(())
    });
    Ok(())
}

fn records<'js>(ctx: &Ctx<'js>, shared: &Rc<Shared>, knee: &Object<'js>) -> Result<()> {
    let own = Rc::clone(shared);
    native!(ctx, knee, "check", move |ctx: Ctx<'js>,
                                      name: String,
                                      passes: bool,
                                      tags: Value<'js>| {
        let path = format!("{}::{name}", own.group_path());
        own.record(Record::Check(own.name(path.trim_start_matches(':')), passes));
        if own.setup.script.has_tagged() {
            let mut tags = own.tags(tags_of(&ctx, &own, &tags)?);
            tags.insert("check".to_owned(), name);
            let value = f64::from(passes);
            own.record_tagged(&tags, |metric| (metric == "checks").then_some(value));
        }
        Result::Ok(())
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
            let time = own.now() - since;
            own.record(Record::Group(number, time));
            own.record_own(Some(path), &[("group_duration", time.0 as f64 / 1e6)]);
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
    native!(ctx, knee, "add", move |ctx: Ctx<'js>, metric: u32, value: f64, tags: Value<'js>| {
        own.record(Record::Metric(metric, value));
        if own.setup.script.has_tagged() {
            let tags = own.tags(tags_of(&ctx, &own, &tags)?);
            let all = own.setup.script.metrics();
            let name = all.get(metric as usize).map(|metric| &metric.name);
            own.record_tagged(&tags, |of| (name.is_some_and(|name| name == of)).then_some(value));
        }
        Result::Ok(())
    });
    let own = Rc::clone(shared);
    native!(ctx, knee, "log", move |level: String, text: String| own.log(&level, &text));
    let own = Rc::clone(shared);
    native!(ctx, knee, "abort", move |ctx: Ctx<'js>, reason: String| -> Result<()> {
        *own.aborts.borrow_mut() = Some(reason);
        Err(uncatchable(&ctx, "the script ended the test"))
    });
    let own = Rc::clone(shared);
    native!(ctx, knee, "mark", move |reason: String| {
        own.marks.borrow_mut().get_or_insert(reason);
    });
    Ok(())
}

/// The file of the module that calls a function: paths are from there.
fn caller(ctx: &Ctx<'_>, shared: &Shared) -> String {
    let callers = (1..8).filter_map(|level| ctx.script_or_module_name(level)?.to_string().ok());
    let mut callers = callers.filter(|name| !is_built_in(name));
    callers.next().unwrap_or_else(|| shared.setup.script.plan().main.clone())
}

fn data<'js>(ctx: &Ctx<'js>, shared: &Rc<Shared>, knee: &Object<'js>) -> Result<()> {
    let own = Rc::clone(shared);
    native!(ctx, knee, "open", move |ctx: Ctx<'js>, path: String, binary: bool| {
        let fail = |why: String| throw(&ctx, &format!("open('{path}'): {why}"));
        if own.is_running.get() {
            return Err(fail("files are opened in the init code".to_owned()));
        }
        let base = caller(&ctx, &own);
        let found = modules::below(&base, &path).map_err(fail)?;
        let bytes = own.file(&found).map_err(fail)?;
        if binary {
            return ArrayBuffer::new(ctx.clone(), bytes)?.into_js(&ctx);
        }
        String::from_utf8_lossy(&bytes).into_owned().into_js(&ctx)
    });
    let own = Rc::clone(shared);
    native!(ctx, knee, "require", move |ctx: Ctx<'js>, base: Option<String>, name: String| {
        let base = base.unwrap_or_else(|| caller(&ctx, &own));
        modules::require(&ctx, &own, &base, &name)
    });
    let own = Rc::clone(shared);
    // The function that a CommonJS module is.
    native!(ctx, knee, "wrap", move |ctx: Ctx<'js>, name: String| -> Result<Function<'js>> {
        let source = own.file(&name).map_err(|why| throw(&ctx, &why))?;
        let source = String::from_utf8_lossy(&source);
        let mut options = EvalOptions::default();
        options.strict = false;
        options.filename = Some(name);
        let wrapped = format!("(function (module, exports, require) {{{source}\n}})");
        ctx.eval_with_options(wrapped, options)
    });
    let own = Rc::clone(shared);
    // The number of elements of a shared array, if it is there.
    native!(ctx, knee, "array", move |name: String| -> Option<u32> {
        own.setup.script.array(&name).map(|array| array.len() as u32)
    });
    let own = Rc::clone(shared);
    // Makes a shared array of what a function returns. It exists once, so that it is not of the
    // memory of the user that comes first.
    native!(ctx, knee, "set_array", move |ctx: Ctx<'js>, name: String, make: Function<'js>| {
        if own.is_running.get() {
            return Err(throw(&ctx, "shared arrays are made in the init code"));
        }
        let limit = |bytes: u64| {
            // SAFETY: the runtime is that of this context, the only one there.
            unsafe {
                let runtime = qjs::JS_GetRuntime(ctx.as_raw().as_ptr());
                qjs::JS_SetMemoryLimit(runtime, bytes as qjs::size_t);
            }
        };
        let most = own.setup.memory_max;
        limit(most.saturating_mul(SHARED_FACTOR));
        let made = make.call::<_, Vec<String>>(());
        limit(most);
        let made = made?;
        let length = made.len();
        own.setup.script.set_array(name, made);
        Result::Ok(length)
    });
    let own = Rc::clone(shared);
    native!(ctx, knee, "element", move |ctx: Ctx<'js>, name: String, at: usize| {
        let array = own.setup.script.array(&name);
        match array.as_ref().and_then(|array| array.get(at)) {
            Some(json) => ctx.json_parse(json.as_str()),
            None => Ok(Value::new_undefined(ctx)),
        }
    });
    native!(ctx, knee, "text", move |ctx: Ctx<'js>, bytes: Value<'js>| {
        let bytes = bytes_of(&bytes).ok_or_else(|| throw(&ctx, "no bytes"))?;
        Result::Ok(String::from_utf8_lossy(&bytes).into_owned())
    });
    native!(ctx, knee, "bytes", move |ctx: Ctx<'js>, text: Value<'js>| {
        let bytes = bytes_of(&text).ok_or_else(|| throw(&ctx, "no text and no bytes"))?;
        ArrayBuffer::new(ctx, bytes)
    });
    // Loads a built-in module that is seldom needed.
    native!(ctx, knee, "load", |ctx: Ctx<'js>, name: String| {
        Module::import(&ctx, name).map(|_| ())
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
        // As in Go, line breaks count for nothing.
        let bytes = engine(&name).decode(text.replace(['\r', '\n'], ""));
        let bytes = bytes.map_err(|why| throw(&ctx, &format!("no base64: {why}")))?;
        ArrayBuffer::new(ctx, bytes)
    });
    Ok(())
}

/// Facts of the user and its iteration.
fn state<'js>(ctx: &Ctx<'js>, shared: &Rc<Shared>, knee: &Object<'js>) -> Result<()> {
    let plan = shared.setup.script.plan();
    knee.set("options", plan.options.as_str())?;
    knee.set("elements_max", ELEMENTS_MAX.max(shared.setup.memory_max / ELEMENT_BYTES) as f64)?;
    knee.set("tags", Object::new(ctx.clone())?)?;
    let env = Object::new(ctx.clone())?;
    for (name, value) in &plan.env {
        env.set(name.as_str(), value.as_str())?;
    }
    let globals = ctx.globals();
    globals.set("__ENV", env)?;
    globals.set("__VU", shared.setup.number)?;
    globals.set("__ITER", 0)?;
    native!(ctx, knee, "duration", |ctx: Ctx<'js>, text: String| {
        let time = crate::options::time(&text).map_err(|why| throw(&ctx, &why))?;
        Result::Ok(time.0 as f64 / 1e6)
    });
    let own = Rc::clone(shared);
    native!(ctx, knee, "iteration", move |ctx: Ctx<'js>| {
        let iteration = own.iteration.borrow();
        let made = Object::new(ctx)?;
        made.set("user", own.setup.number)?;
        made.set("number", iteration.number)?;
        made.set("in_instance", iteration.in_scenario[0])?;
        made.set("in_test", iteration.in_scenario[1])?;
        made.set("scenario", iteration.scenario.0.as_str())?;
        made.set("executor", iteration.scenario.1.as_str())?;
        made.set("began_ms", iteration.realtime_origin_ns as f64 / 1e6)?;
        Result::Ok(made)
    });
    let own = Rc::clone(shared);
    // Users that were made and that have an iteration, and iterations that ended and that failed.
    native!(ctx, knee, "counts", move || {
        let counts = &own.setup.script.counts;
        counts.each_ref().map(|count| count.load(Relaxed) as f64).to_vec()
    });
    Ok(())
}
