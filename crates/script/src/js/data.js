const K = globalThis.__knee;

// A value that nobody changes, as in k6.
function frozen(value) {
  if (value !== null && typeof value === 'object' && !Object.isFrozen(value)) Object.values(Object.freeze(value)).forEach(frozen);
  return value;
}

// An array that exists once per process, as JSON. Elements are read on demand.
export class SharedArray {
  constructor(name, make) {
    if (typeof name !== 'string' || name === '') throw new Error('new SharedArray: expected a name');
    let length = K.array(name) ?? -1;
    if (length < 0) {
      if (typeof make !== 'function') throw new Error(`new SharedArray('${name}'): expected a function`);
      length = K.set_array(name, () => {
        const all = make();
        if (!Array.isArray(all)) throw new Error(`new SharedArray('${name}'): the function returns no array`);
        return all.map((e) => JSON.stringify(e) ?? 'null');
      });
    }
    const refuse = () => { throw new TypeError(`SharedArray '${name}' is read-only`); };
    const index = (p) => (typeof p === 'string' && /^\d+$/.test(p) ? Number(p) : -1);
    return new Proxy([], {
      get(target, p) {
        if (p === 'length') return length;
        const i = index(p);
        if (i >= 0) return i < length ? frozen(K.element(name, i)) : undefined;
        return target[p];
      },
      has: (target, p) => (index(p) >= 0 ? index(p) < length : p in target),
      // The target has a length of its own, which is what engines check.
      ownKeys: () => [...Array(length).keys()].map(String).concat('length'),
      getOwnPropertyDescriptor: (target, p) => {
        if (p === 'length') return Reflect.getOwnPropertyDescriptor(target, p);
        const i = index(p);
        return i >= 0 && i < length ? { value: frozen(K.element(name, i)), writable: true, enumerable: true, configurable: true } : undefined;
      },
      set: refuse, defineProperty: refuse, deleteProperty: refuse,
    });
  }
}

export default K.guard('k6/data', { SharedArray });
