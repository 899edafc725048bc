// Pages and forms, over a list of elements per selection.
const K = globalThis.__knee;
const pairs = (flat) => { const o = {}; for (let i = 0; i < flat.length; i += 2) o[flat[i]] = flat[i + 1]; return o; };

export class Selection {
  #all;
  constructor(all) { this.#all = all; }
  get length() { return this.#all.length; }
  #of(e) { return e ? new Selection([e]) : new Selection([]); }
  find(selector) { return new Selection(this.#all.flatMap((e) => K.select(e.inner, selector))); }
  first() { return this.#of(this.#all[0]); }
  last() { return this.#of(this.#all[this.#all.length - 1]); }
  eq(i) { return this.#of(this.#all[i < 0 ? this.#all.length + i : i]); }
  size() { return this.#all.length; }
  text() { return this.#all.map((e) => e.text).join(''); }
  html() { return this.#all[0]?.inner; }
  attr(name, otherwise) { const e = this.#all[0]; return (e && pairs(e.attributes)[name]) ?? otherwise; }
  val() {
    const e = this.#all[0];
    if (!e) return undefined;
    if (e.name === 'textarea') return e.text;
    if (e.name === 'select') return new Selection(K.select(e.inner, 'option[selected]')).first().attr('value');
    return pairs(e.attributes).value;
  }
  each(call) { this.#all.forEach((e, i) => call(i, new Selection([e]))); return this; }
  map(call) { return this.#all.map((e, i) => call(i, new Selection([e]))); }
  toArray() { return this.#all.map((e) => new Selection([e])); }
  get(i) { return i === undefined ? this.toArray() : this.toArray()[i]; }
  is(selector) { return this.#all.some((e) => K.select(e.outer, selector).some((f) => f.outer === e.outer)); }
  filter(selector) {
    return new Selection(this.#all.filter((e, i) => typeof selector === 'function' ? selector(i, new Selection([e])) : new Selection([e]).is(selector)));
  }
  children(selector) { return new Selection(this.#all.flatMap((e) => K.select(e.inner, selector ? `body > ${selector}` : 'body > *'))); }
  serializeObject() {
    const fields = {};
    for (const f of this.#all.flatMap((e) => K.select(e.inner, 'input[name], textarea[name], select[name]'))) {
      const of = pairs(f.attributes);
      if (/^(submit|button|reset|image|file)$/i.test(of.type ?? '')) continue;
      if (/^(checkbox|radio)$/i.test(of.type ?? '') && of.checked === undefined) continue;
      fields[of.name] = new Selection([f]).val() ?? (/^checkbox$/i.test(of.type ?? '') ? 'on' : '');
    }
    return fields;
  }
}
K.guard('selection', Selection.prototype);

export const parseHTML = K.parseHTML = (html) => new Selection([{ name: 'html', attributes: [], text: K.select(html, 'html')[0]?.text ?? '', inner: html, outer: html }]);
export default K.guard('k6/html', { parseHTML, Selection });
