const K = globalThis.__knee;
const bytesLike = (v) => v instanceof ArrayBuffer || ArrayBuffer.isView(v);

// --- Bodies ---

class FileData { constructor(data, filename, type) { this.data = data; this.filename = filename; this.content_type = type; } }
function file(data, filename, type) {
  if (typeof data !== 'string' && !bytesLike(data)) throw new TypeError('file: expected text or bytes');
  return new FileData(data, filename ?? String(Date.now()), type ?? 'application/octet-stream');
}

// As Go's url.QueryEscape.
const escape = (v) => encodeURIComponent(v).replace(/[!'()*]/g, (c) => '%' + c.charCodeAt(0).toString(16).toUpperCase()).replace(/%20/g, '+');

// A value of a form as k6 writes it: with Go's default format.
function value(v) {
  if (v === null || v === undefined) return '<nil>';
  if (v instanceof Date) return v.toISOString().replace('T', ' ').replace(/\.?0*Z$/, ' +0000 UTC');
  if (Array.isArray(v)) return `[${v.map(value).join(' ')}]`;
  if (typeof v === 'object') return `map[${Object.keys(v).sort().map((k) => `${k}:${value(v[k])}`).join(' ')}]`;
  return String(v);
}

function form(body) {
  return Object.keys(body).sort().flatMap((name) => {
    const all = Array.isArray(body[name]) ? body[name] : [body[name]];
    return all.map((v) => `${escape(name)}=${escape(value(v))}`);
  }).join('&');
}

function multipart(body) {
  const boundary = Array.from(new Uint8Array(K.random_bytes(30)), (b) => b.toString(16).padStart(2, '0')).join('');
  const quote = (t) => String(t).replace(/\\/g, '\\\\').replace(/"/g, '\\"');
  const parts = [];
  for (const [name, value] of Object.entries(body)) {
    for (const v of Array.isArray(value) ? value : [value]) {
      const head = v instanceof FileData
        ? `; filename="${quote(v.filename)}"\r\nContent-Type: ${v.content_type}` : '';
      parts.push(K.bytes(`--${boundary}\r\nContent-Disposition: form-data; name="${quote(name)}"${head}\r\n\r\n`));
      const data = v instanceof FileData ? v.data : String(v);
      parts.push(K.bytes(Array.isArray(data) ? new Uint8Array(data) : data), K.bytes('\r\n'));
    }
  }
  parts.push(K.bytes(`--${boundary}--\r\n`));
  const all = new Uint8Array(parts.reduce((n, p) => n + p.byteLength, 0));
  parts.reduce((at, p) => { all.set(new Uint8Array(p), at); return at + p.byteLength; }, 0);
  return [all.buffer, `multipart/form-data; boundary=${boundary}`];
}

// --- Requests ---

class Expected { constructor(all) { this.all = all; } }
function expectedStatuses(...all) {
  if (all.length === 0) throw new Error('expectedStatuses: expected at least one status');
  return new Expected(all.flatMap((s) => {
    if (typeof s === 'number') return [s, s];
    if (s && typeof s.min === 'number' && typeof s.max === 'number') return [s.min, s.max];
    throw new Error('expectedStatuses: expected numbers and {min, max}');
  }));
}
function setResponseCallback(to) {
  if (to !== null && !(to instanceof Expected)) throw new Error('setResponseCallback: expected http.expectedStatuses(…) or null');
  K.expect(to === null ? [0, 65535] : to.all);
}

function url(strings, ...values) {
  let name = strings[0], text = strings[0];
  values.forEach((v, i) => { name += '${}' + strings[i + 1]; text += String(v) + strings[i + 1]; });
  return { url: text, name };
}

const TEXTS = { 200: 'OK', 201: 'Created', 202: 'Accepted', 204: 'No Content', 301: 'Moved Permanently', 302: 'Found', 303: 'See Other', 304: 'Not Modified', 307: 'Temporary Redirect', 308: 'Permanent Redirect', 400: 'Bad Request', 401: 'Unauthorized', 403: 'Forbidden', 404: 'Not Found', 405: 'Method Not Allowed', 409: 'Conflict', 422: 'Unprocessable Entity', 429: 'Too Many Requests', 500: 'Internal Server Error', 502: 'Bad Gateway', 503: 'Service Unavailable', 504: 'Gateway Timeout' };
const parseHTML = (text, url) => {
  if (K.parseHTML === undefined) K.load('k6/html');
  return K.parseHTML(text, url);
};

// Scheme, address or name, and port of the URL that a response came from.
const place = (r) => /^(https?):\/\/(?:\[([^\]]*)\]|([^:/?#]*))(?::(\d+))?/.exec(K.facts(r).url) ?? [];

// Parts of responses beside the status. Each is made when it is first read, and is then a property
// of its response.
const PARTS = {
  remote_ip(r) {
    const [, , six, host = ''] = place(r);
    return six ?? (/^[\d.]+$/.test(host) ? host : '');
  },
  remote_port: (r) => (r.status === 0 ? 0 : Number(place(r)[4] ?? (place(r)[1] === 'https' ? 443 : 80))),
  url: (r) => K.facts(r).url,
  status_text: (r) => (r.status === 0 ? '' : `${r.status} ${TEXTS[r.status] ?? ''}`.trim()),
  proto: (r) => K.facts(r).proto,
  headers: (r) => K.headers(r),
  cookies,
  body: (r) => K.body(r),
  timings(r) {
    const [blocked, connecting, tls_handshaking, sending, waiting, receiving] = K.facts(r).times;
    return { duration: sending + waiting + receiving, blocked, looking_up: 0, connecting, tls_handshaking, sending, waiting, receiving };
  },
  error: (r) => K.facts(r).error,
  error_code: (r) => K.facts(r).error_code,
  request(r) {
    const { method, asked: url, sent: body, headers } = K.facts(r);
    return { method, url, body, headers, cookies: {} };
  },
};
const define = (r, name, value) => {
  Object.defineProperty(r, name, { value, writable: true, enumerable: true, configurable: true });
  return value;
};
for (const [name, make] of Object.entries(PARTS)) {
  Object.defineProperty(K.response, name, {
    get() { return define(this, name, make(this)); },
    set(value) { define(this, name, value); },
  });
}

function cookies(r) {
  const found = {};
  for (const line of K.headers(r, 'set-cookie')) {
    const [first, ...rest] = line.split(';').map((t) => t.trim());
    const at = first.indexOf('=');
    if (at <= 0) continue;
    const cookie = { name: first.slice(0, at), value: first.slice(at + 1).replace(/^"(.*)"$/, '$1'), domain: '', path: '', http_only: false, secure: false, max_age: 0, expires: 0 };
    for (const r of rest) {
      const eq = r.indexOf('=');
      const key = (eq < 0 ? r : r.slice(0, eq)).toLowerCase(), v = eq < 0 ? '' : r.slice(eq + 1);
      if (key === 'httponly') cookie.http_only = true;
      else if (key === 'secure') cookie.secure = true;
      else if (key === 'domain') cookie.domain = v;
      else if (key === 'path') cookie.path = v;
      else if (key === 'max-age') cookie.max_age = Number(v) || 0;
      else if (key === 'expires') cookie.expires = Date.parse(v) || 0;
    }
    (found[cookie.name] ??= []).push(cookie);
  }
  return found;
}

const whole = Symbol('json');
Object.assign(K.response, {
  json(path) { return path === undefined ? (this[whole] ??= K.json(this)) : K.seek(this, String(path)); },
  html(selector) {
    const page = parseHTML(K.text(this), this.url);
    return selector === undefined ? page : page.find(selector);
  },
  submitForm({ formSelector = 'form', fields = {}, submitSelector = '[type="submit"]', params = {} } = {}) {
    const found = this.html(formSelector);
    if (found.size() === 0) throw new Error(`no form found for '${formSelector}' in the response`);
    const values = found.serializeObject();
    for (const [name, v] of Object.entries(values)) if (Array.isArray(v)) values[name] = value(v);
    const button = found.find(submitSelector).first();
    if (button.attr('name') !== undefined) values[button.attr('name')] = button.attr('value') ?? '';
    Object.assign(values, fields);
    const method = (found.attr('method') ?? 'get').toUpperCase();
    const to = K.join(this.url, found.attr('action') ?? '');
    if (method === 'GET') {
      const query = form(values);
      return get(query === '' ? to : `${to.split('?')[0]}?${query}`, params);
    }
    return request(method, to, values, params);
  },
  clickLink({ selector = 'a[href]', params = {} } = {}) {
    const link = this.html(selector).first();
    if (link.size() === 0) throw new Error(`no element found for '${selector}' in the response`);
    const to = link.attr('href');
    if (to === undefined) throw new Error(`the element '${selector}' has no href`);
    return get(K.join(this.url, to), params);
  },
  toJSON() { return Object.fromEntries(['status', ...Object.keys(PARTS)].map((name) => [name, this[name]])); },
});
K.guard('response', K.response);
export function Response() { throw new TypeError('responses are made by requests'); }
Response.prototype = K.response;

// --- Calls ---

// Sends a request by `send`; a body that is an object is encoded.
function by(send, method, to, body, params) {
  let type;
  if (body !== null && typeof body === 'object' && !bytesLike(body) && !Array.isArray(body)) {
    if (Object.values(body).some((v) => v instanceof FileData)) [body, type] = multipart(body);
    else [body, type] = [form(body), 'application/x-www-form-urlencoded'];
  }
  return send(method, to, body, params, type);
}
const request = (method, to, body, params) => by(K.send, method, to, body, params);
const get = (to, params) => K.send('GET', to, null, params, undefined);
const head = (to, params) => K.send('HEAD', to, null, params, undefined);
const post = (to, body, params) => by(K.send, 'POST', to, body, params);
const put = (to, body, params) => by(K.send, 'PUT', to, body, params);
const patch = (to, body, params) => by(K.send, 'PATCH', to, body, params);
const del = (to, body, params) => by(K.send, 'DELETE', to, body, params);
const optionsRequest = (to, body, params) => by(K.send, 'OPTIONS', to, body, params);
async function asyncRequest(method, to, body, params) { return K.promised(by(K.start, method, to, body, params)); }
function batch(requests) {
  const one = (r) => {
    if (typeof r === 'string' || (r && typeof r === 'object' && 'name' in r && 'url' in r && !('method' in r))) return ['GET', r, null, {}];
    if (Array.isArray(r)) return r;
    if (r && typeof r === 'object') return [String(r.method ?? 'GET'), r.url, r.body, r.params];
    throw new Error(`invalid request in batch: '${r}'`);
  };
  if (requests === null || typeof requests !== 'object') throw new TypeError('batch: expected an array or an object of requests');
  const keys = Object.keys(requests);
  const began = keys.map((key) => by(K.start, ...one(requests[key])));
  const made = began.map((id) => K.await(id));
  if (Array.isArray(requests)) return made;
  return Object.fromEntries(keys.map((key, i) => [key, made[i]]));
}

export class CookieJar {
  constructor(id) { this.id = id ?? K.jar(); }
  set(to, name, value, opts = {}) {
    let line = '';
    if (opts.domain) line += `; Domain=${opts.domain}`;
    line += `; Path=${opts.path ?? '/'}`;
    if (opts.expires && Number.isNaN(Date.parse(opts.expires))) throw new Error(`cookie ${name}: invalid expires '${opts.expires}'`);
    if (opts.expires) line += `; Expires=${opts.expires}`;
    if (opts.max_age) line += `; Max-Age=${opts.max_age}`;
    if (opts.secure) line += '; Secure';
    if (opts.http_only) line += '; HttpOnly';
    K.set_cookie(this.id, to, String(name), String(value), line);
    return true;
  }
  cookiesForURL(to) {
    const flat = K.cookies(this.id, to), found = {};
    for (let i = 0; i < flat.length; i += 2) (found[flat[i]] ??= []).push(flat[i + 1]);
    return found;
  }
  clear(to) { for (const name of Object.keys(this.cookiesForURL(to))) this.delete(to, name); }
  delete(to, name) { K.drop_cookie(this.id, to, String(name)); }
}
const CONSTANTS = { TLS_1_0: 'tls1.0', TLS_1_1: 'tls1.1', TLS_1_2: 'tls1.2', TLS_1_3: 'tls1.3', OCSP_STATUS_GOOD: 'good', OCSP_STATUS_REVOKED: 'revoked', OCSP_STATUS_SERVER_FAILED: 'server_failed', OCSP_STATUS_UNKNOWN: 'unknown' };
const own = new CookieJar(0);
const cookieJar = () => own;

export { get, head, post, put, patch, del, optionsRequest as options, request, asyncRequest, batch, file, url, cookieJar, expectedStatuses, setResponseCallback, FileData };
export default K.guard('http', { get, head, post, put, patch, del, options: optionsRequest, request, asyncRequest, batch, file, url, cookieJar, CookieJar, expectedStatuses, setResponseCallback, Response, FileData, ...CONSTANTS });
