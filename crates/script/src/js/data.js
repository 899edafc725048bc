const K = globalThis.__knee;

// An array that exists once per process, as JSON. Elements are read on demand.
export class SharedArray {
  constructor(name, make) {
    if (typeof name !== 'string' || name === '') throw new Error('new SharedArray: expected a name');
    let length = K.array(name) ?? -1;
    if (length < 0) {
      if (typeof make !== 'function') throw new Error(`new SharedArray('${name}'): expected a function`);
      const all = make();
      if (!Array.isArray(all)) throw new Error(`new SharedArray('${name}'): the function returns no array`);
      K.set_array(name, all.map((e) => JSON.stringify(e) ?? 'null'));
      length = all.length;
    }
    const refuse = () => { throw new TypeError(`SharedArray '${name}' is read-only`); };
    const index = (p) => (typeof p === 'string' && /^\d+$/.test(p) ? Number(p) : -1);
    return new Proxy([], {
      get(target, p) {
        if (p === 'length') return length;
        const i = index(p);
        if (i >= 0) return i < length ? K.element(name, i) : undefined;
        return target[p];
      },
      has: (target, p) => (index(p) >= 0 ? index(p) < length : p in target),
      set: refuse, defineProperty: refuse, deleteProperty: refuse,
    });
  }
}

export default K.guard('k6/data', { SharedArray });
