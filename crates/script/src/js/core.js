// What every script has without importing it. The value is the function that settles what has
// arrived; it returns when the next timer is due: -1 for none, 0 where something was done.
export default (() => {
  const K = globalThis.__knee;
  Math.random = K.random;
  const text = (v) => (typeof v === 'string' ? v : typeof v === 'object' && v !== null && !(v instanceof Error) ? JSON.stringify(v) : String(v));
  const log = (level) => (...all) => K.log(level, all.map(text).join(' '));
  globalThis.console = { log: log('info'), info: log('info'), debug: log('debug'), warn: log('warn'), error: log('error'), trace: log('debug') };
  globalThis.open = (path, mode) => K.open(String(path), mode === 'b');
  globalThis.require = (name) => {
    throw new Error(`require('${name}') is not supported: write import … from '${name}'`);
  };
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
  return () => {
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
