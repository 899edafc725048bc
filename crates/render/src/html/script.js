(() => {
'use strict';
const root = document.documentElement;
const SVG = document.querySelector('svg') ? document.querySelector('svg').namespaceURI : '';
const make = (tag, className, parent) => {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (parent) parent.append(e);
  return e;
};
const shape = (tag, parent) => parent.appendChild(document.createElementNS(SVG, tag));
const button = (text, label, parent, act) => {
  const b = make('button', '', parent);
  b.type = 'button';
  b.textContent = text;
  b.setAttribute('aria-label', label);
  b.addEventListener('click', act);
  return b;
};

// Light or dark, as the reader likes it; kept where the browser lets a file keep something.
const KEY = 'knee-theme';
const system = matchMedia('(prefers-color-scheme: dark)');
const isDark = () => (root.dataset.theme || (system.matches ? 'dark' : 'light')) === 'dark';
try {
  const kept = localStorage.getItem(KEY);
  if (kept === 'dark' || kept === 'light') root.dataset.theme = kept;
} catch { /* a browser may forbid it */ }
const theme = button('', '', document.body, () => {
  root.dataset.theme = isDark() ? 'light' : 'dark';
  try { localStorage.setItem(KEY, root.dataset.theme); } catch { /* only for now, then */ }
  nameTheme();
});
theme.className = 'theme';
function nameTheme() {
  theme.textContent = isDark() ? 'Light' : 'Dark';
  theme.setAttribute('aria-label', isDark() ? 'Light colours' : 'Dark colours');
}
nameTheme();
system.addEventListener('change', nameTheme);

// Whatever can be typed can be copied.
if (navigator.clipboard) {
  for (const code of document.querySelectorAll('.next code, pre code')) {
    const b = button('Copy', 'Copy ' + code.textContent, null, () => {
      navigator.clipboard.writeText(code.textContent).then(() => { b.textContent = 'Copied'; });
      setTimeout(() => { b.textContent = 'Copy'; }, 1500);
    });
    code.after(' ', b);
  }
}

// What folds is open on paper, except the data of the plots.
addEventListener('beforeprint', () => {
  for (const d of document.querySelectorAll('details.more')) d.open = true;
});

const SCALES = {
  lin: (v, lo, hi) => (v - lo) / (hi - lo),
  log: (v, lo, hi) => Math.log(v / lo) / Math.log(hi / lo),
  pct: (v, lo, hi) => Math.log(1 - Math.min(v, hi) / 100) / Math.log(1 - hi / 100),
};
const scaleOf = (text) => {
  const [kind, lo, hi] = text.split(' ');
  return (v) => SCALES[kind](v, +lo, +hi);
};
const clamp = (v, lo, hi) => Math.min(Math.max(v, lo), hi);

class Figure {
  constructor(frame) {
    this.frame = frame;
    this.svg = frame.querySelector('svg');
    this.area = frame.querySelector('.area');
    this.from = 0;
    this.to = 1;
    this.at = null;
    this.readPoints();
    this.hideNativeTip();
    this.hover = shape('g', this.svg);
    this.hover.setAttribute('class', 'hover');
    this.tip = make('div', 'tip', frame);
    this.tip.hidden = true;
    this.live = make('div', 'aside', frame);
    this.live.setAttribute('aria-live', 'polite');
    frame.addEventListener('pointermove', (e) => this.onMove(e));
    frame.addEventListener('pointerleave', () => this.brush || this.show(null));
    frame.addEventListener('keydown', (e) => this.onKey(e));
    frame.addEventListener('blur', () => this.show(null));
    if ('zoom' in frame.dataset) this.prepareZoom();
  }

  // The browser would show the title as a tip of its own over ours.
  hideNativeTip() {
    const [title, desc] = ['title', 'desc'].map((n) => this.svg.querySelector(n));
    this.svg.removeAttribute('aria-labelledby');
    this.svg.setAttribute('aria-label', title.textContent + '. ' + desc.textContent);
    title.remove();
  }

  // Points with their places, and the cells of the table that tell of them.
  readPoints() {
    const table = this.frame.parentElement.querySelector('details.data table');
    this.rows = table ? [...table.tBodies[0].rows].map((r) => [...r.cells]) : [];
    this.heads = table ? [...table.tHead.rows[0].cells].map((c) => c.textContent) : [];
    const x = scaleOf(this.frame.dataset.x);
    const y = scaleOf(this.frame.dataset.y);
    const down = 'down' in this.frame.dataset;
    this.points = [];
    let xs = [];
    for (const group of this.area.querySelectorAll('.s[data-y]')) {
      if ('x' in group.dataset) xs = group.dataset.x.split(' ');
      const rows = group.dataset.r;
      const list = rows[0] === ',' ? rows.slice(1).split(' ') : null;
      const step = 'step' in group.dataset;
      group.dataset.y.split(' ').forEach((value, i) => {
        const row = list ? +list[i] : +rows + i;
        const px = x(+xs[i]);
        const py = down ? y(+value) : 1 - y(+value);
        const end = step ? x(+xs[i + 1]) : px;
        if (!this.rows[row] || !isFinite(px + py + end)) return;
        const point = { x: (px + end) / 2, from: px, to: end, y: py, row, group };
        this.points.push(point);
      });
    }
  }

  box() { return this.svg.getBoundingClientRect(); }
  across(x) { return (x - this.from) / (this.to - this.from); }

  nearest(event) {
    const box = this.box();
    const mx = (event.clientX - box.left) / box.width;
    const my = (event.clientY - box.top) / box.height;
    if (mx < -0.05 || mx > 1.05 || my < -0.2 || my > 1.2) return null;
    let best = null;
    let least = Infinity;
    for (const p of this.points) {
      const [from, to] = [this.across(p.from), this.across(p.to)];
      if (to < -1e-9 || from > 1 + 1e-9) continue;
      const dx = Math.max(from - mx, mx - to, 0) * box.width;
      const dy = (p.y - my) * box.height;
      const flat = 'down' in this.frame.dataset ? [0.3, 1] : [1, 0.3];
      const distance = Math.hypot(dx * flat[0], dy * flat[1]);
      if (distance < least) [best, least] = [p, distance];
    }
    return best;
  }

  onMove(event) {
    if (this.brush) this.pull(event);
    else this.show(this.nearest(event));
  }

  // Shows a point: its mark, and the row of the table that it belongs to.
  show(point, aloud) {
    this.at = point;
    this.hover.replaceChildren();
    this.tip.hidden = !point;
    if (!point) return;
    const x = clamp(this.across(point.x), 0, 1);
    const line = shape('line', this.hover);
    const circle = shape('circle', this.hover);
    for (const [name, value] of [['x1', x], ['x2', x], ['y2', 1]]) {
      line.setAttribute(name, value * 100 + '%');
    }
    circle.setAttribute('cx', x * 100 + '%');
    circle.setAttribute('cy', clamp(point.y, 0, 1) * 100 + '%');
    circle.setAttribute('r', 5);
    this.fillTip(point);
    const box = this.box();
    const outer = this.frame.getBoundingClientRect();
    const left = box.left - outer.left + x * box.width;
    const over = left + 12 + this.tip.offsetWidth > outer.width;
    const side = over ? left - 12 - this.tip.offsetWidth : left + 12;
    const most = outer.width - this.tip.offsetWidth;
    this.tip.style.left = clamp(side, 0, Math.max(most, 0)) + 'px';
    const top = box.top - outer.top + point.y * box.height - this.tip.offsetHeight / 2;
    this.tip.style.top = clamp(top, 0, outer.height - this.tip.offsetHeight) + 'px';
    if (aloud) this.say(point);
  }

  say(point) {
    const cells = this.rows[point.row];
    const [first, count] = point.group.dataset.c.split(' ').map(Number);
    const said = this.heads.slice(first, first + count)
      .map((head, i) => `${head} ${cells[first + i].textContent}`);
    this.live.textContent = `${cells[0].textContent}: ${said.join(', ')}`;
  }

  fillTip(point) {
    const cells = this.rows[point.row];
    const title = make('b');
    title.textContent = cells[0].textContent;
    const table = make('table');
    const [first, count] = point.group.dataset.c.split(' ').map(Number);
    for (let i = 1; i < cells.length; i++) {
      if (!cells[i].textContent) continue;
      const row = table.insertRow();
      const name = make('th', '', row);
      name.textContent = this.heads[i];
      if (i >= first && i < first + count) row.className = 'strong';
      row.insertCell().textContent = cells[i].textContent;
    }
    this.tip.replaceChildren(title, table);
  }

  onKey(event) {
    const group = this.at ? this.at.group : this.points.length && this.points[0].group;
    const steps = { ArrowRight: 1, ArrowLeft: -1, Home: -1e9, End: 1e9 };
    const turns = { ArrowDown: 1, ArrowUp: -1 };
    const zooms = { '+': 0.5, '=': 0.5, '-': 2, '0': 1e9 };
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== this.frame) return;
    if (event.key in steps) {
      const mine = this.points.filter((p) => p.group === group);
      const next = (this.at ? mine.indexOf(this.at) : -1) + steps[event.key];
      this.show(mine[clamp(next, 0, mine.length - 1)] || null, true);
      this.follow();
    } else if (event.key in turns && this.at) {
      const groups = [...new Set(this.points.map((p) => p.group))];
      const other = groups[clamp(groups.indexOf(group) + turns[event.key], 0, groups.length - 1)];
      const theirs = this.points.filter((p) => p.group === other);
      const distance = (p) => Math.abs(p.x - this.at.x) + (p.row === this.at.row ? 0 : 1e-6);
      theirs.sort((a, b) => distance(a) - distance(b));
      this.show(theirs[0], true);
    } else if (event.key in zooms && this.zoomed) {
      this.zoomBy(zooms[event.key], this.at ? this.at.x : (this.from + this.to) / 2);
    } else if (event.key === 'Escape' && (this.at || this.from > 0 || this.to < 1)) {
      if (this.at) this.show(null);
      else this.zoom(0, 1);
    } else return;
    event.preventDefault();
  }

  // Moves the part shown so that the point is in it.
  follow() {
    if (!this.at || !this.zoomed || (this.at.x >= this.from && this.at.x <= this.to)) return;
    const half = (this.to - this.from) / 2;
    this.zoom(this.at.x - half, this.at.x + half);
    this.show(this.at);
  }

  prepareZoom() {
    this.zoomed = true;
    const [, lo, hi] = this.frame.dataset.x.split(' ');
    [this.lo, this.hi] = [+lo, +hi];
    this.ticks = this.svg.querySelector('.xs');
    this.asDrawn = [...this.ticks.querySelectorAll('.x')];
    const tools = make('div', 'tools', this.frame);
    const middle = () => (this.from + this.to) / 2;
    button('+', 'Zoom in', tools, () => this.zoomBy(0.5, middle()));
    button('−', 'Zoom out', tools, () => this.zoomBy(2, middle()));
    this.reset = button('Reset', 'Show all', tools, () => this.zoom(0, 1));
    this.reset.hidden = true;
    this.svg.addEventListener('pointerdown', (e) => this.grip(e));
    this.frame.addEventListener('pointerup', () => this.release());
    this.frame.addEventListener('pointercancel', () => this.release(true));
    this.frame.addEventListener('dblclick', () => this.zoom(0, 1));
  }

  grip(event) {
    if (event.button !== 0 || event.pointerType === 'touch') return;
    const box = this.box();
    this.brush = make('div', 'brush', this.frame);
    this.gripped = clamp((event.clientX - box.left) / box.width, 0, 1);
    this.pulled = this.gripped;
    this.frame.setPointerCapture(event.pointerId);
    this.show(null);
  }

  pull(event) {
    const box = this.box();
    const outer = this.frame.getBoundingClientRect();
    this.pulled = clamp((event.clientX - box.left) / box.width, 0, 1);
    const [from, to] = [this.gripped, this.pulled].sort((a, b) => a - b);
    Object.assign(this.brush.style, {
      left: box.left - outer.left + from * box.width + 'px',
      width: (to - from) * box.width + 'px',
      top: box.top - outer.top + 'px',
      height: box.height + 'px',
    });
  }

  release(cancelled) {
    if (!this.brush) return;
    this.brush.remove();
    this.brush = null;
    const [from, to] = [this.gripped, this.pulled].sort((a, b) => a - b);
    const width = this.to - this.from;
    if (!cancelled && to - from > 0.01) {
      this.zoom(this.from + from * width, this.from + to * width);
    }
  }

  zoomBy(factor, around) {
    const width = clamp((this.to - this.from) * factor, 0.005, 1);
    this.zoom(around - width / 2, around + width / 2);
  }

  zoom(from, to) {
    const width = Math.min(to - from, 1);
    this.from = clamp(from, 0, 1 - width);
    this.to = this.from + width;
    const [, , w, h] = this.area.getAttribute('viewBox').split(' ');
    const full = this.full = this.full || +w;
    this.area.setAttribute('viewBox', `${this.from * full} 0 ${width * full} ${h}`);
    this.reset.hidden = width === 1;
    this.drawTicks(width === 1);
    this.moveNames();
    this.show(this.at && this.at.x >= this.from && this.at.x <= this.to ? this.at : null);
  }

  // The names of lines stand at the ends of what is shown of them.
  moveNames() {
    const names = [...this.svg.querySelectorAll('.side')].map((text) => {
      const mine = (p) => this.heads[p.group.dataset.c.split(' ')[0]] === text.textContent;
      const last = this.points.filter((p) => mine(p) && p.from < this.to - 1e-9).pop();
      const y = last ? clamp(last.y, 0, 1) : parseFloat(text.getAttribute('y')) / 100;
      return { text, y };
    });
    names.sort((a, b) => a.y - b.y);
    const gap = 14 / this.box().height;
    names.forEach((name, i) => { if (i) name.y = Math.max(name.y, names[i - 1].y + gap); });
    let most = 1;
    for (const name of names.reverse()) {
      name.y = Math.min(name.y, most);
      most = name.y - gap;
      name.text.setAttribute('y', name.y * 100 + '%');
    }
  }

  // Round times on the part shown.
  drawTicks(all) {
    for (const tick of this.ticks.querySelectorAll('.x')) tick.remove();
    if (all) return this.ticks.prepend(...this.asDrawn);
    const value = (share) => this.lo + share * (this.hi - this.lo);
    const [from, to] = [value(this.from), value(this.to)];
    const decade = 10 ** Math.floor(Math.log10((to - from) / 5));
    const step = [1, 2, 5, 10].map((d) => d * decade).find((s) => (to - from) / s <= 6);
    for (let k = Math.ceil(from / step); k * step <= to; k++) {
      const tick = shape('g', this.ticks);
      tick.setAttribute('class', 'x');
      const text = shape('text', tick);
      text.setAttribute('x', ((k * step - from) / (to - from)) * 100 + '%');
      text.setAttribute('y', '100%');
      text.setAttribute('dy', 18);
      text.textContent = this.words(k * step, step);
    }
  }

  words(value, step) {
    if (this.frame.dataset.zoom !== 'ns') return String(+value.toPrecision(6));
    const units = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
    const [size, name] = units.find(([s]) => value >= s || s === 1);
    const digits = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
    return value ? (value / size).toFixed(digits) + ' ' + name : '0';
  }
}

for (const frame of document.querySelectorAll('.frame')) new Figure(frame);
})();
