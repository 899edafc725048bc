const K = globalThis.__knee;

class Metric {
  #id;
  constructor(kind, name, isTime) {
    if (typeof name !== 'string' || !/^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(name)) throw new Error(`invalid metric name '${name}': expected letters, digits and _`);
    this.name = name;
    this.#id = K.metric(kind, name, Boolean(isTime));
  }
  add(value, tags) {
    const number = typeof value === 'boolean' ? Number(value) : Number(value ?? NaN);
    if (Number.isNaN(number)) {
      const why = `metric ${this.name}: '${value}' is no number`;
      if (K.throws()) throw new Error(why);
      K.log('error', why);
      return false;
    }
    K.add(this.#id, number, tags);
    return true;
  }
}
export class Counter extends Metric { constructor(n, t) { super('counter', n, t); } }
export class Gauge extends Metric { constructor(n, t) { super('gauge', n, t); } }
export class Rate extends Metric { constructor(n, t) { super('rate', n, t); } }
export class Trend extends Metric { constructor(n, t) { super('trend', n, t); } }
export default K.guard('k6/metrics', { Counter, Gauge, Rate, Trend });
