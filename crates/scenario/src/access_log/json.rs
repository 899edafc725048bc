//! Lines of JSON.

use super::line::{LineFields, LoggedRequest};
use super::moment::{LoggedTime, TOOK, duration_of, time_of, time_of_number, unit_of, unit_of_key};
use super::text::time_within;
use serde_json::Value;

/// Where a JSON object has what is looked for. A dot leads into an object. `None`: at the first of
/// the keys that servers use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogKeys {
    /// The time.
    pub time: Option<String>,
    /// The method.
    pub method: Option<String>,
    /// Path and query, or a whole URL.
    pub path: Option<String>,
    /// Who asked.
    pub user: Option<String>,
    /// How long it took: then the time is that of its end. Its unit is that of its name or of what
    /// follows a `:`, else seconds.
    pub took: Option<String>,
}

/// Keys of the time at which a request began. Traefik and Envoy have it beside others.
const BEGINS: &str = "StartUTC start_time startTime started_at requestTime EdgeStartTimestamp";
const TIMES: &str = "time ts timestamp @timestamp time_iso8601 msec time_local";
const METHODS: &str = "method request_method request.method RequestMethod verb req.method \
                       http.request.method httpRequest.requestMethod httpMethod \
                       ClientRequestMethod";
const PATHS: &str = "request_uri uri request.uri path url RequestPath target url.original \
                     url.path httpRequest.requestUrl req.url ClientRequestURI";
/// Keys of a query that the path does not have.
const QUERIES: &str = "args query_string url.query";
/// Keys of the client that a proxy names.
const FORWARDED: &str = "http_x_forwarded_for x_forwarded_for";
/// Caddy has the client of a trusted proxy beside the address of that proxy.
const USERS: &str = "remote_addr client_ip request.client_ip remote_ip request.remote_ip clientip \
                     ClientHost downstream_remote_address source.ip client.ip \
                     httpRequest.remoteIp req.remoteAddress ClientIP ip";
/// Keys of the name that a server checked.
const NAMES: &str = "remote_user ClientUsername user.name user_id";
/// Keys of a whole line, as Docker, journald and Google Cloud keep it.
const LINES: &str = "log MESSAGE message textPayload";

/// What a line has.
pub(super) enum JsonLine {
    Request(LoggedRequest),
    /// The line of another log, as Docker and journald keep it.
    Inner(String),
}

impl LogKeys {
    /// Reads the object that a line has, with what may stand before it, as of syslog.
    pub(super) fn read(&self, line: &str) -> Result<JsonLine, String> {
        let (before, object) = line.split_at(line.find('{').unwrap_or(0));
        let object: Value = serde_json::from_str(object).map_err(|e| format!("no JSON: {e}"))?;
        let find = |asked: &Option<String>, known: &str| match asked {
            Some(key) => at(&object, key),
            // Where there is an object, a longer key leads into it.
            None => {
                let mut values = known.split(' ').filter_map(|key| at(&object, key));
                values.find(|value| !value.is_object())
            }
        };
        let request = at(&object, "request").filter(|_| self.path.is_none());
        let request = request.and_then(Value::as_str);
        let is_of_request = request.is_some() || find(&self.path, PATHS).is_some();
        let inner = find(&None, LINES).and_then(Value::as_str).map(str::trim);
        if let Some(inner) = inner.filter(|_| !is_of_request && self.path.is_none()) {
            return Ok(JsonLine::Inner(inner.to_owned()));
        }
        let begin = find(&None, BEGINS).filter(|_| self.time.is_none());
        let time = begin.or_else(|| find(&self.time, TIMES)).map(time_of_value).transpose()?;
        // Caddy writes it before the object on a console.
        let time = time.or_else(|| time_within(before));
        let path = find(&self.path, PATHS).and_then(Value::as_str);
        let query = find(&None, QUERIES).and_then(Value::as_str);
        let is_filled =
            |value: &&Value| value.as_str().is_some_and(|text| !matches!(text, "" | "-"));
        let forwarded = find(&self.user, FORWARDED).filter(is_filled);
        let user = forwarded.or_else(|| find(&self.user, USERS));
        let is_named = self.user.is_some();
        let name = if is_named { user } else { find(&None, NAMES) };
        let fields = LineFields {
            time,
            is_begin: begin.is_some(),
            took_s: self.took_s(&object),
            line: request,
            method: find(&self.method, METHODS).and_then(Value::as_str),
            path,
            query: query.filter(|_| path.is_some_and(|path| !path.contains('?'))),
            name: name.map(|name| name.as_str().map_or_else(|| name.to_string(), str::to_owned)),
            client: user.and_then(Value::as_str),
            ..LineFields::default()
        };
        fields.request().map(JsonLine::Request)
    }

    fn took_s(&self, object: &Value) -> Option<f64> {
        let (key, unit) = match &self.took {
            // A key may itself have a colon.
            Some(asked) => match asked.rsplit_once(':').map(|(key, unit)| (key, unit_of(unit))) {
                Some((key, Some(unit))) if at(object, asked).is_none() => (key, Some(unit)),
                _ => (&**asked, None),
            },
            None => (TOOK.split(' ').find(|key| at(object, key).is_some())?, None),
        };
        // Rails (lograge) has milliseconds.
        let is_of_rails = || ["controller", "action"].iter().all(|key| at(object, key).is_some());
        let usual = if key == "duration" && is_of_rails() { 1e-3 } else { 1.0 };
        let unit = unit.or_else(|| unit_of_key(key)).unwrap_or(usual);
        match at(object, key)? {
            Value::String(text) => duration_of(text, unit),
            number => duration_of(&number.to_string(), unit),
        }
    }
}

fn time_of_value(time: &Value) -> Result<LoggedTime, String> {
    match time {
        Value::Number(number) => {
            time_of_number(number.as_f64().unwrap_or(f64::NAN), number.is_f64())
        }
        Value::String(text) => time_of(text),
        _ => Err("no time".to_owned()),
    }
}

/// The value at a key: of that name, or on the way that its dots give.
fn at<'a>(object: &'a Value, key: &str) -> Option<&'a Value> {
    let direct = object.get(key);
    let on_way = || key.split('.').try_fold(object, |value, name| value.get(name));
    direct.or_else(|| key.contains('.').then(on_way).flatten())
}
