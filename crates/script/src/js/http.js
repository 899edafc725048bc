const K = globalThis.__knee;
import { parseHTML } from 'k6/html';

let options;
const settings = () => (options ??= JSON.parse(K.options || '{}'));
const bytesLike = (v) => v instanceof ArrayBuffer || ArrayBuffer.isView(v);

// --- Bodies ---

class FileData { constructor(data, filename, type) { this.data = data; this.filename = filename; this.content_type = type; } }
const file = (data, filename, type) => new FileData(data, filename ?? String(Date.now()), type ?? 'application/octet-stream');

// As Go's url.QueryEscape.
const escape = (v) => encodeURIComponent(v).replace(/[!'()*]/g, (c) => '%' + c.charCodeAt(0).toString(16).toUpperCase()).replace(/%20/g, '+');

function form(body) {
  return Object.keys(body).sort().flatMap((name) => {
    const value = body[name];
    return (Array.isArray(value) ? value : [value]).map((v) => `${escape(name)}=${escape(v === null || v === undefined ? '<nil>' : String(v))}`);
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

let callback = null;
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
  callback = to === null ? new Expected([0, 65535]) : to;
}

const UNITS = { d: 86400000, h: 3600000, m: 60000, s: 1000, ms: 1, us: 0.001, 'µs': 0.001, ns: 0.000001 };
function milliseconds(value) {
  if (typeof value === 'number') return value;
  let sum = 0, rest = String(value);
  while (rest !== '') {
    const found = /^([\d.]+)(ms|us|µs|ns|[dhms])?/.exec(rest);
    if (!found) throw new Error(`invalid timeout '${value}': expected one such as '30s'`);
    sum += Number(found[1]) * UNITS[found[2] ?? 'ms'];
    rest = rest.slice(found[0].length);
  }
  return sum;
}

function url(strings, ...values) {
  let name = strings[0], text = strings[0];
  values.forEach((v, i) => { name += '${}' + strings[i + 1]; text += String(v) + strings[i + 1]; });
  return { url: text, name };
}

const REFUSED = { compression: 1, digest: 1 };

function spec(method, to, body, params) {
  const p = params ?? {};
  let name = p.tags?.name;
  if (to !== null && typeof to === 'object' && 'name' in to && 'url' in to) { name ??= to.name; to = to.url; }
  if (to === undefined || to === null) throw new Error('a request needs a URL');
  for (const key in p) if (key in REFUSED && p[key]) throw new Error(`the parameter '${key}' of a request is not supported by knee`);
  const headers = [];
  const lower = new Set();
  const given = p.headers;
  if (given) for (const key of Object.keys(given)) { headers.push(key, String(given[key])); lower.add(key.toLowerCase()); }
  if (p.auth !== undefined && p.auth !== 'basic') throw new Error(`auth: '${p.auth}' is not supported by knee: use 'basic' with a URL such as http://user:password@host/`);
  let data = body ?? null, type;
  if (data !== null && typeof data === 'object' && !bytesLike(data)) {
    if (Object.values(data).some((v) => v instanceof FileData)) [data, type] = multipart(data);
    else [data, type] = [form(data), 'application/x-www-form-urlencoded'];
  } else if (data !== null && !bytesLike(data)) data = String(data);
  if (type && !lower.has('content-type')) headers.push('Content-Type', type);
  const agent = settings().userAgent;
  if (agent && !lower.has('user-agent')) headers.push('User-Agent', agent);
  const cookies = [];
  if (p.cookies) for (const [key, v] of Object.entries(p.cookies)) {
    if (v !== null && typeof v === 'object') cookies.push(key, String(v.value), v.replace ? '1' : '');
    else cookies.push(key, String(v), '');
  }
  const reads = p.responseType ?? (settings().discardResponseBodies ? 'none' : 'text');
  const expects = p.responseCallback === undefined ? callback : p.responseCallback === null ? new Expected([0, 65535]) : p.responseCallback;
  return {
    method, url: String(to), headers, body: data, cookies,
    name: name === undefined ? undefined : String(name),
    timeout: p.timeout === undefined ? undefined : milliseconds(p.timeout),
    redirects: p.redirects ?? settings().maxRedirects ?? 10,
    jar: p.jar === undefined || p.jar === null ? 0 : p.jar.id,
    expects: expects?.all, reads: reads !== 'none', type: reads,
  };
}

const TEXTS = { 200: 'OK', 201: 'Created', 202: 'Accepted', 204: 'No Content', 301: 'Moved Permanently', 302: 'Found', 303: 'See Other', 304: 'Not Modified', 307: 'Temporary Redirect', 308: 'Permanent Redirect', 400: 'Bad Request', 401: 'Unauthorized', 403: 'Forbidden', 404: 'Not Found', 405: 'Method Not Allowed', 409: 'Conflict', 422: 'Unprocessable Entity', 429: 'Too Many Requests', 500: 'Internal Server Error', 502: 'Bad Gateway', 503: 'Service Unavailable', 504: 'Gateway Timeout' };
const canonical = (name) => name.toLowerCase().replace(/(^|-)([a-z])/g, (_, dash, c) => dash + c.toUpperCase());
const lines = (head) => head.split('\r\n').filter((l) => l !== '').map((l) => {
  const at = l.indexOf(':');
  return [canonical(l.slice(0, at)), l.slice(at + 1).trim()];
});

export class Response {
  #head; #bytes; #spec; #sent; #body; #json; #headers; #cookies;
  constructor(raw, of) {
    this.status = raw.status;
    this.url = raw.url;
    this.error = raw.error;
    this.error_code = raw.error_code === 0 && raw.status >= 400 ? 1000 + raw.status : raw.error_code;
    this.proto = raw.proto;
    const [blocked, connecting, tls_handshaking, sending, waiting, receiving] = raw.times;
    this.timings = { duration: sending + waiting + receiving, blocked, looking_up: 0, connecting, tls_handshaking, sending, waiting, receiving };
    this.#head = raw.head;
    this.#bytes = raw.bytes;
    this.#spec = of;
    this.#sent = raw.sent;
  }
  get status_text() { return this.status === 0 ? '' : `${this.status} ${TEXTS[this.status] ?? ''}`.trim(); }
  get remote_ip() { return ''; }
  get remote_port() { return 0; }
  get body() {
    if (this.#body === undefined) {
      this.#body = this.#spec.type === 'none' || (this.status === 0 && this.#bytes.byteLength === 0) ? null
        : this.#spec.type === 'binary' ? this.#bytes : K.text(this.#bytes);
    }
    return this.#body;
  }
  set body(to) { this.#body = to; }
  get headers() {
    if (this.#headers === undefined) {
      this.#headers = {};
      for (const [name, value] of lines(this.#head)) this.#headers[name] = name in this.#headers ? `${this.#headers[name]}, ${value}` : value;
    }
    return this.#headers;
  }
  get cookies() {
    if (this.#cookies === undefined) {
      this.#cookies = {};
      for (const [name, value] of lines(this.#head)) {
        if (name !== 'Set-Cookie') continue;
        const [first, ...rest] = value.split(';').map((t) => t.trim());
        const at = first.indexOf('=');
        if (at <= 0) continue;
        const cookie = { name: first.slice(0, at), value: first.slice(at + 1), domain: '', path: '', httpOnly: false, secure: false, maxAge: 0, expires: 0 };
        for (const r of rest) {
          const eq = r.indexOf('=');
          const key = (eq < 0 ? r : r.slice(0, eq)).toLowerCase(), v = eq < 0 ? '' : r.slice(eq + 1);
          if (key === 'httponly') cookie.httpOnly = true;
          else if (key === 'secure') cookie.secure = true;
          else if (key === 'domain') cookie.domain = v;
          else if (key === 'path') cookie.path = v;
          else if (key === 'max-age') cookie.maxAge = Number(v) || 0;
          else if (key === 'expires') cookie.expires = Date.parse(v) || 0;
        }
        (this.#cookies[cookie.name] ??= []).push(cookie);
      }
    }
    return this.#cookies;
  }
  get request() {
    const headers = {};
    for (let i = 0; i < this.#sent.length; i += 2) (headers[canonical(this.#sent[i])] ??= []).push(this.#sent[i + 1]);
    const { method, body } = this.#spec;
    return { method, url: this.#spec.url, body: body === null ? '' : body, headers, cookies: {} };
  }
  json(path) {
    if (this.#json === undefined) {
      if (this.body === null) throw new Error(`the body is null: it is no JSON (${this.error || 'it was not read'})`);
      this.#json = JSON.parse(K.text(this.#bytes));
    }
    return path === undefined ? this.#json : at(this.#json, String(path));
  }
  html(selector) {
    const page = parseHTML(K.text(this.#bytes));
    return selector === undefined ? page : page.find(selector);
  }
  submitForm({ formSelector = 'form', fields = {}, submitSelector = '[type="submit"]', params = {} } = {}) {
    const found = this.html(formSelector).first();
    if (found.size() === 0) throw new Error(`no form found for '${formSelector}' in the response`);
    const values = found.serializeObject();
    const button = found.find(submitSelector).first();
    if (button.attr('name') !== undefined) values[button.attr('name')] = button.attr('value') ?? '';
    Object.assign(values, fields);
    const method = (found.attr('method') ?? 'get').toUpperCase();
    const to = K.join(this.url, found.attr('action') ?? '');
    if (method === 'GET') {
      const query = form(values);
      return request('GET', query === '' ? to : `${to.split('?')[0]}?${query}`, null, params);
    }
    return request(method, to, values, params);
  }
  clickLink({ selector = 'a[href]', params = {} } = {}) {
    const link = this.html(selector).first();
    if (link.size() === 0) throw new Error(`no element found for '${selector}' in the response`);
    const to = link.attr('href');
    if (to === undefined) throw new Error(`the element '${selector}' has no href`);
    return get(K.join(this.url, to), params);
  }
  toJSON() {
    const { status, status_text, url, error, error_code, proto, timings, body, headers, cookies, request, remote_ip, remote_port } = this;
    return { remote_ip, remote_port, url, status, status_text, proto, headers, cookies, body, timings, error, error_code, request };
  }
}
K.guard('response', Response.prototype);

// A path of GJSON, as far as it has keys, indices, # and queries of one comparison.
function at(value, path) {
  let now = value;
  const keys = path.match(/(\\.|#\(.*?\)#?|[^.\\])+/g) ?? [];
  for (let i = 0; i < keys.length; i++) {
    if (now === null || typeof now !== 'object') return undefined;
    const key = keys[i].replace(/\\(.)/g, '$1');
    if (key === '#' && Array.isArray(now)) {
      if (i === keys.length - 1) return now.length;
      const rest = keys.slice(i + 1).join('.');
      return now.map((e) => at(e, rest)).filter((e) => e !== undefined);
    }
    const query = /^#\(([^=!<>%]*)(==|!=|<=|>=|<|>)(.*)\)(#?)$/.exec(keys[i]);
    if (query && Array.isArray(now)) {
      const [, name, op, right, all] = query;
      let want; try { want = JSON.parse(right); } catch { want = right; }
      const has = (e) => {
        const v = name === '' ? e : at(e, name);
        return op === '==' ? v === want : op === '!=' ? v !== want : op === '<' ? v < want : op === '>' ? v > want : op === '<=' ? v <= want : v >= want;
      };
      if (all === '') { now = now.find(has); continue; }
      const found = now.filter(has);
      const rest = keys.slice(i + 1);
      return rest.length === 0 ? found : at(found, (rest[0] === '#' ? rest : ['#', ...rest]).join('.'));
    }
    if (/[*?@|]|^#\(/.test(keys[i]) && !(key in now)) throw new Error(`json('${path}'): '${key}' is not supported by knee: expected names, numbers, # and #(name==value)`);
    now = Object.hasOwn(now, key) ? now[key] : undefined;
  }
  return now;
}

// --- Calls ---

function checked(s, raw) {
  if (raw.error !== '' && raw.status === 0 && settings().throw) throw new Error(raw.error);
  return new Response(raw, s);
}
function request(method, to, body, params) {
  const s = spec(String(method), to, body, params);
  return checked(s, K.send(s));
}
const get = (to, params) => request('GET', to, null, params);
const head = (to, params) => request('HEAD', to, null, params);
const post = (to, body, params) => request('POST', to, body, params);
const put = (to, body, params) => request('PUT', to, body, params);
const patch = (to, body, params) => request('PATCH', to, body, params);
const del = (to, body, params) => request('DELETE', to, body, params);
const optionsRequest = (to, body, params) => request('OPTIONS', to, body, params);
function asyncRequest(method, to, body, params) {
  try {
    const s = spec(String(method), to, body, params);
    return K.promised(s, (raw) => checked(s, raw));
  } catch (e) { return Promise.reject(e); }
}
function batch(requests) {
  const one = (r) => {
    if (typeof r === 'string' || (r && typeof r === 'object' && 'name' in r && 'url' in r && !('method' in r))) return spec('GET', r, null, {});
    if (Array.isArray(r)) return spec(String(r[0]), r[1], r[2], r[3]);
    if (r && typeof r === 'object') return spec(String(r.method ?? 'GET'), r.url, r.body, r.params);
    throw new Error(`invalid request in batch: '${r}'`);
  };
  const keys = Object.keys(requests);
  const specs = keys.map((key) => one(requests[key]));
  const began = specs.map((s) => K.start(s));
  const made = began.map((id, i) => checked(specs[i], K.await(id)));
  if (Array.isArray(requests)) return made;
  return Object.fromEntries(keys.map((key, i) => [key, made[i]]));
}

export class CookieJar {
  constructor(id) { this.id = id ?? K.jar(); }
  set(to, name, value, opts = {}) {
    let line = `${name}=${value}`;
    if (opts.domain) line += `; Domain=${opts.domain}`;
    line += `; Path=${opts.path ?? '/'}`;
    if (opts.expires) line += `; Expires=${opts.expires}`;
    if (opts.max_age) line += `; Max-Age=${opts.max_age}`;
    if (opts.secure) line += '; Secure';
    if (opts.http_only) line += '; HttpOnly';
    K.set_cookie(this.id, to, line);
    return true;
  }
  cookiesForURL(to) {
    const flat = K.cookies(this.id, to), found = {};
    for (let i = 0; i < flat.length; i += 2) (found[flat[i]] ??= []).push(flat[i + 1]);
    return found;
  }
  clear(to) { K.drop_cookies(this.id, to, undefined); }
  delete(to, name) { K.drop_cookies(this.id, to, name); }
}
const own = new CookieJar(0);
const cookieJar = () => own;

export { get, head, post, put, patch, del, optionsRequest as options, request, asyncRequest, batch, file, url, cookieJar, expectedStatuses, setResponseCallback, FileData };
export default K.guard('http', { get, head, post, put, patch, del, options: optionsRequest, request, asyncRequest, batch, file, url, cookieJar, CookieJar, expectedStatuses, setResponseCallback, Response, FileData });
