// What every script has without importing it. The value is the function that settles what has
// arrived; it returns when the next timer is due: -1 for none, 0 where something was done.
export default (() => {
  const K = globalThis.__knee;
  Math.random = K.random;
  globalThis.global = globalThis;
  // As k6 writes and compares them: 24 hours a day, letters before accents before case.
  const two = (n) => String(n).padStart(2, '0');
  Date.prototype.toLocaleTimeString = function () { return `${two(this.getHours())}:${two(this.getMinutes())}:${two(this.getSeconds())}`; };
  Date.prototype.toLocaleString = function () { return `${this.toLocaleDateString()}, ${this.toLocaleTimeString()}`; };
  String.prototype.localeCompare = function (that) {
    const keys = (text) => [text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase(), text.toLowerCase(), text.replace(/\p{L}/gu, (c) => (c === c.toLowerCase() ? 'a' : 'b'))];
    const [a, b] = [keys(String(this)), keys(String(that))], at = a.findIndex((key, i) => key !== b[i]);
    return at < 0 ? 0 : a[at] < b[at] ? -1 : 1;
  };
  // What walks over an array within the engine never looks at the time. With more elements than the
  // user has memory for, most are holes.
  const check = (all) => {
    if (Array.isArray(all) ? all.length > K.elements_max : all?.length > K.elements_max && typeof all !== 'string') {
      throw new RangeError(`the array has ${all.length} elements, more than ${K.elements_max}`);
    }
    return all;
  };
  for (const name of ['concat', 'copyWithin', 'fill', 'join', 'reverse', 'shift', 'slice', 'sort', 'splice', 'toReversed', 'toSorted', 'toSpliced', 'toLocaleString', 'unshift', 'with']) {
    const walk = Array.prototype[name], { apply } = Reflect;
    Array.prototype[name] = { [name](...args) { check(this); if (name === 'concat') args.forEach(check); return apply(walk, this, args); } }[name];
  }
  const flat = (into, all, depth) => {
    for (let i = 0; i < all.length; i += 1) {
      if (!(i in all)) continue;
      if (depth >= 1 && Array.isArray(all[i])) flat(into, all[i], depth - 1); else into.push(all[i]);
    }
    return into;
  };
  Array.prototype.flat = { flat(depth = 1) { return flat([], this, depth); } }.flat;
  Array.prototype.flatMap = { flatMap(call, own) { return flat([], this.map(call, own), 1); } }.flatMap;
  const text = (v) => (typeof v === 'string' ? v : typeof v === 'object' && v !== null && !(v instanceof Error) ? JSON.stringify(v) : String(v));
  const log = (level) => (...all) => K.log(level, all.map(text).join(' '));
  globalThis.console = { log: log('info'), info: log('info'), debug: log('debug'), warn: log('warn'), error: log('error'), trace: log('debug') };
  globalThis.open = (path, mode) => K.open(String(path), mode === 'b');
  // CommonJS modules, by their names.
  const common = new Map();
  K.common = (name) => {
    let module = common.get(name);
    if (module === undefined) {
      module = { exports: {} };
      common.set(name, module);
      K.wrap(name).call(module.exports, module, module.exports, (other) => K.require(name, String(other)));
    }
    return module.exports;
  };
  globalThis.require = (name) => K.require(null, String(name));
  // Requests of promises, by their numbers, and timers.
  const waiting = new Map();
  const timers = new Map();
  let last = 0;
  K.promised = (id) => new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  const timer = (repeats) => (call, ms = 0, ...args) => {
    const every = Math.max(0, Number(ms) || 0) * 1e6;
    timers.set(++last, { at: K.now() + every, call: () => call(...args), every: repeats ? every : -1 });
    return last;
  };
  globalThis.setTimeout = timer(false);
  globalThis.setInterval = timer(true);
  globalThis.clearTimeout = globalThis.clearInterval = (id) => { timers.delete(id); };
  // An object that throws where a name is used that it does not have.
  const plain = new Set(['then', 'toJSON', 'constructor', 'toString', 'valueOf', 'inspect', 'length', 'hasOwnProperty', 'isPrototypeOf', 'propertyIsEnumerable', 'toLocaleString', '__proto__']);
  K.guard = (what, object) => {
    const missing = new Proxy(Object.create(null), {
      get(_, name) {
        if (typeof name === 'symbol' || plain.has(name)) return Object.prototype[name];
        throw new Error(`${what}.${name} is not supported by knee`);
      },
      has: () => false,
    });
    return Object.setPrototypeOf(object, missing);
  };
  const hex = (bytes) => Array.from(new Uint8Array(bytes), (b) => b.toString(16).padStart(2, '0')).join('');
  globalThis.crypto = K.guard('crypto', {
    get subtle() { if (K.subtle === undefined) K.load('k6/experimental/webcrypto'); return K.subtle; },
    getRandomValues(array) { new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(new Uint8Array(K.random_bytes(array.byteLength))); return array; },
    randomUUID() {
      const bytes = new Uint8Array(K.random_bytes(16));
      bytes[6] = (bytes[6] & 15) | 64;
      bytes[8] = (bytes[8] & 63) | 128;
      return hex(bytes).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
    },
  });
  return () => {
    if (waiting.size === 0 && timers.size === 0) return -1;
    let done = false;
    for (const [id, { resolve, reject }] of waiting) {
      let response;
      try { response = K.take(id); } catch (e) { reject(e); response = null; }
      if (response === undefined) continue;
      waiting.delete(id);
      done = true;
      resolve(response);
    }
    if (timers.size === 0) return done ? 0 : -1;
    const now = K.now();
    let next = Infinity;
    for (const [id, t] of [...timers]) {
      if (t.at > now) { next = Math.min(next, t.at); continue; }
      if (t.every < 0) timers.delete(id); else t.at += Math.max(t.every, 1e6);
      done = true;
      t.call();
    }
    return done ? 0 : next;
  };
})();
