// Pages and forms. A selection is a list of elements of one page, each by its number in the order
// of the page; -1 is the page itself.
const K = globalThis.__knee;

class Page {
  #page; #parents; #ends = []; #matching = new Map();
  constructor(html, url) {
    [this.html, this.url] = [html, url];
    this.#page = K.page(html);
    this.#parents = K.parents(this.#page);
    for (let e = this.#parents.length - 1; e >= 0; e--) {
      const end = (this.#ends[e] ??= e), parent = this.#parents[e];
      if (parent >= 0) this.#ends[parent] = Math.max(end, this.#ends[parent] ?? parent);
    }
  }
  // The last element in an element.
  end(e) { return e < 0 ? this.#parents.length - 1 : this.#ends[e]; }
  parent(e) { return e < 0 ? [] : [this.#parents[e]].filter((p) => p >= 0); }
  parents(e) { const all = []; for (let [p] = this.parent(e); p !== undefined; [p] = this.parent(p)) all.push(p); return all; }
  children(e) { const all = []; for (let c = e + 1; c <= this.end(e); c = this.#ends[c] + 1) all.push(c); return all; }
  siblings(e) { return e < 0 ? [] : this.children(this.#parents[e]).filter((s) => s !== e); }
  next(e) { return this.siblings(e).filter((s) => s > e); }
  prev(e) { return this.siblings(e).filter((s) => s < e).reverse(); }
  // What a selector matches. One may end with :contains(text), as no selector of CSS does.
  matching(selector) {
    let all = this.#matching.get(selector);
    if (all === undefined) {
      const [, rest, , text] = /^(.*?):contains\((["']?)(.*)\2\)$/s.exec(selector) ?? [];
      all = K.matching(this.#page, rest === undefined ? selector : rest.replace(/(^|[\s>+~])$/, '$1*'));
      if (text !== undefined) all = all.filter((e) => this.part(e, 'text').includes(text));
      this.#matching.set(selector, (all = new Set(all)));
    }
    return all;
  }
  part(e, part) { return e >= 0 ? K.part(this.#page, e, part) : part === 'inner' ? this.html : (K.part(this.#page, 0, part) ?? ''); }
  attributes(e) { return Object.setPrototypeOf(e < 0 ? {} : K.attributes(this.#page, e), null); }
}

export class Selection {
  #page; #all;
  constructor(page, all) { this.#page = page; this.#all = [...new Set(all)]; }
  get length() { return this.#all.length; }
  #one(e) { return new Selection(this.#page, e === undefined ? [] : [e]); }
  // Whether an element is what a selector, a selection or a function says.
  #test(wanted) {
    if (wanted === undefined) return () => true;
    if (typeof wanted === 'function') return (e, i) => wanted(i, this.#one(e));
    const all = wanted instanceof Selection ? new Set(wanted.#all) : this.#page.matching(String(wanted));
    return (e) => all.has(e);
  }
  #each(walk, wanted) { return new Selection(this.#page, this.#all.flatMap((e) => walk(e)).filter(this.#test(wanted))); }
  #until(walk, last, wanted) {
    const ends = last === undefined ? () => false : this.#test(last);
    return this.#each((e) => { const all = walk(e), at = all.findIndex(ends); return at < 0 ? all : all.slice(0, at); }, wanted);
  }
  find(selector) {
    const all = [...this.#page.matching(String(selector))];
    return this.#each((e) => all.filter((m) => m > e && m <= this.#page.end(e)));
  }
  first() { return this.#one(this.#all[0]); }
  last() { return this.#one(this.#all.at(-1)); }
  eq(i) { return this.#one(this.#all.at(i)); }
  size() { return this.#all.length; }
  text() { return this.#all.map((e) => this.#page.part(e, 'text')).join(''); }
  html() { return this.#all.length === 0 ? '' : this.#page.part(this.#all[0], 'inner'); }
  attr(name, otherwise) { return this.#all.length === 0 ? otherwise : (this.#page.attributes(this.#all[0])[name] ?? otherwise); }
  val() {
    const [e] = this.#all;
    if (e === undefined) return undefined;
    const name = this.#page.part(e, 'name');
    if (name === 'textarea') return this.first().text();
    if (name !== 'select') return this.attr('value');
    const chosen = this.first().find('option[selected]').map((_, o) => o.attr('value') ?? o.text());
    return this.attr('multiple') === undefined ? chosen[0] : chosen;
  }
  children(wanted) { return this.#each((e) => this.#page.children(e), wanted); }
  parent(wanted) { return this.#each((e) => this.#page.parent(e), wanted); }
  parents(wanted) { return this.#each((e) => this.#page.parents(e), wanted); }
  parentsUntil(last, wanted) { return this.#until((e) => this.#page.parents(e), last, wanted); }
  closest(wanted) { const test = this.#test(wanted); return this.#each((e) => [e, ...this.#page.parents(e)].filter(test).slice(0, 1)); }
  siblings(wanted) { return this.#each((e) => this.#page.siblings(e), wanted); }
  next(wanted) { return this.#each((e) => this.#page.next(e).slice(0, 1), wanted); }
  nextAll(wanted) { return this.#each((e) => this.#page.next(e), wanted); }
  nextUntil(last, wanted) { return this.#until((e) => this.#page.next(e), last, wanted); }
  prev(wanted) { return this.#each((e) => this.#page.prev(e).slice(0, 1), wanted); }
  prevAll(wanted) { return this.#each((e) => this.#page.prev(e), wanted); }
  prevUntil(last, wanted) { return this.#until((e) => this.#page.prev(e), last, wanted); }
  each(call) { this.get().forEach((e, i) => call(i, e)); return this; }
  map(call) { return this.toArray().map((e, i) => call(i, e)); }
  toArray() { return this.#all.map((e) => this.#one(e)); }
  get(i) { return i === undefined ? this.#all.map((e) => new Element(this.#page, e)) : this.get().at(i); }
  is(wanted) { return this.#all.some(this.#test(wanted)); }
  filter(wanted) { return new Selection(this.#page, this.#all.filter(this.#test(wanted))); }
  not(wanted) { const test = this.#test(wanted); return new Selection(this.#page, this.#all.filter((e, i) => !test(e, i))); }
  has(wanted) { return this.filter((_, e) => (typeof wanted === 'string' ? e.find(wanted).size() > 0 : wanted.parents().#all.includes(e.#all[0]))); }
  slice(from, to) { return new Selection(this.#page, this.#all.slice(from, to)); }
  add(other) { return new Selection(this.#page, [...this.#all, ...(typeof other === 'string' ? this.#page.matching(other) : other.#all)]); }
  data(name) {
    const all = {}, camel = (text) => text.replace(/-(.)/g, (_, c) => c.toUpperCase());
    for (const [key, v] of Object.entries(this.#all.length === 0 ? {} : this.#page.attributes(this.#all[0]))) {
      if (!key.startsWith('data-')) continue;
      try { all[camel(key.slice(5))] = JSON.parse(v); } catch { all[camel(key.slice(5))] = v; }
    }
    return name === undefined ? all : all[camel(String(name))];
  }
  serializeArray() { return Object.entries(this.serializeObject()).map(([name, value]) => ({ name, value })); }
  serialize() {
    const pair = (name, v) => `${encodeURIComponent(name)}=${encodeURIComponent(v).replace(/%20/g, '+')}`;
    const all = Object.entries(this.serializeObject()).sort(([a], [b]) => (a < b ? -1 : 1));
    return all.flatMap(([name, v]) => (Array.isArray(v) ? v : [v]).map((one) => pair(name, one))).join('&');
  }
  serializeObject() {
    const fields = {};
    for (const f of this.find('input[name], textarea[name], select[name]').toArray()) {
      // As in k6, which knows checked="checked" and disabled="disabled" alone.
      const type = f.attr('type');
      if (['submit', 'button', 'reset', 'image', 'file'].includes(type) || f.attr('disabled') === 'disabled') continue;
      if (['checkbox', 'radio'].includes(type) && f.attr('checked') !== 'checked') continue;
      fields[f.attr('name')] = f.val() ?? '';
    }
    return fields;
  }
}
K.guard('selection', Selection.prototype);

// An element, with what selections of one have as well.
class Element extends Selection {
  #page; #e;
  constructor(page, e) { super(page, [e]); [this.#page, this.#e] = [page, e]; }
  #make(e) { return e === undefined || e < 0 ? undefined : new Element(this.#page, e); }
  getAttribute(name) { return this.attr(name); }
  hasAttribute(name) { return this.attr(name) !== undefined; }
  hasAttributes() { return Object.keys(this.#page.attributes(this.#e)).length > 0; }
  attributes() { return Object.fromEntries(Object.entries(this.#page.attributes(this.#e)).map(([name, value]) => [name, { name, value }])); }
  nodeName() { return this.#page.part(this.#e, 'name'); }
  nodeType() { return 1; }
  id() { return this.attr('id', ''); }
  className() { return this.attr('class', ''); }
  classList() { return this.className().split(/\s+/).filter(Boolean); }
  textContent() { return this.text(); }
  innerHTML() { return this.html(); }
  matches(selector) { return this.is(selector); }
  isSameNode(other) { return other.#e === this.#e; }
  children() { return super.children().get(); }
  childElementCount() { return this.children().length; }
  firstElementChild() { return this.children()[0]; }
  lastElementChild() { return this.children().at(-1); }
  parentElement() { return this.#make(this.#page.parent(this.#e)[0]); }
  parentNode() { return this.parentElement(); }
  nextElementSibling() { return this.#make(this.#page.next(this.#e)[0]); }
  previousElementSibling() { return this.#make(this.#page.prev(this.#e)[0]); }
  querySelector(selector) { return this.querySelectorAll(selector)[0]; }
  querySelectorAll(selector) { return this.find(selector).get(); }
  selection() { return super.first(); }
  url(name) { const to = this.attr(name, ''); return this.#page.url === undefined ? to : K.join(this.#page.url, to); }
}
// Attributes that elements have as functions; URLs are whole where that of the page is known.
for (const name of ['name', 'type', 'value', 'method', 'alt', 'rel', 'content', 'title']) Element.prototype[name] = function () { return this.attr(name, ''); };
for (const name of ['href', 'src', 'action']) Element.prototype[name] = function () { return this.url(name); };

K.parseHTML = (html, url) => new Selection(new Page(String(html), url), [-1]);
export const parseHTML = (html) => K.parseHTML(html);
export default K.guard('k6/html', { parseHTML, Selection });
