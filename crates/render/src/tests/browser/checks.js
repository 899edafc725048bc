// What must hold of any page in any state; an array of sentences on what does not.
(() => {
  const troubles = [];
  const say = (text) => { if (!troubles.includes(text)) troubles.push(text); };
  const root = document.documentElement;
  if (root.scrollWidth > innerWidth) {
    const wide = [...document.body.querySelectorAll('*')].filter((e) =>
      e.getBoundingClientRect().right > innerWidth + 0.5);
    const names = wide.slice(0, 5).map((e) => e.tagName + '.' + (e.getAttribute('class') || ''));
    say(`${root.scrollWidth} pixels wide in a window of ${innerWidth}: ${names}`);
  }
  for (const entry of performance.getEntriesByType('resource')) say(`fetched: ${entry.name}`);
  if (!root.lang) say('no language');
  if (!document.title) say('no title');
  if (document.querySelectorAll('h1').length !== 1) say('not exactly one h1');
  const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) say(`id ${id} twice`);
  for (const svg of document.querySelectorAll('svg')) {
    if (svg.getBoundingClientRect().width === 0) continue;
    const shown = (svg.closest('figure') || svg).getBoundingClientRect();
    for (const text of svg.querySelectorAll('text')) {
      const at = text.getBoundingClientRect();
      if (at.width === 0 || getComputedStyle(text).visibility === 'hidden') continue;
      const out = Math.max(shown.left - at.left, at.right - shown.right, shown.top - at.top,
        at.bottom - shown.bottom);
      if (out > 1.5) say(`"${text.textContent}" is ${out.toFixed(1)} pixels outside of its figure`);
    }
    for (const shape of svg.querySelectorAll('path, line, circle, rect, polyline, polygon')) {
      for (const name of shape.getAttributeNames()) {
        if (/NaN|inf|undefined/.test(shape.getAttribute(name))) say(`${name} is no number`);
      }
    }
  }
  // Words of a figure: none over another, and none of those within the plot on a line that the data
  // are compared with. The boxes of letters are taller than what is seen of them.
  const isShown = (e) => e.getClientRects().length > 0 && getComputedStyle(e).visibility !== 'hidden';
  for (const frame of document.querySelectorAll('.frame')) {
    const title = frame.getAttribute('aria-label');
    const words = [...frame.querySelectorAll('text, button')].filter(isShown).map((e) => {
      const at = e.getBoundingClientRect();
      return { text: e.textContent, within: e.classList.contains('on'), left: at.left,
        right: at.right, top: at.top + 2, bottom: at.bottom - 2 };
    });
    const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.5 &&
      Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.5;
    words.forEach((a, i) => words.slice(i + 1).filter((b) => meet(a, b)).forEach((b) =>
      say(`"${a.text}" and "${b.text}" overlap in "${title}"`)));
    for (const line of frame.querySelectorAll('.ref .l')) {
      const { left, right, top, bottom } = line.getBoundingClientRect();
      const [across, down] = [(left + right) / 2, (top + bottom) / 2];
      const thin = right - left < bottom - top
        ? { left: across - 1, right: across + 1, top, bottom }
        : { left, right, top: down - 1, bottom: down + 1 };
      words.filter((word) => word.within && meet(word, thin)).forEach((word) =>
        say(`"${word.text}" stands on a line in "${title}"`));
    }
  }
  // What is wider than its box scrolls, is seen to, and can be by keys.
  if (!matchMedia('print').matches) {
    for (const box of document.querySelectorAll('.wide')) {
      if (box.scrollWidth <= box.clientWidth) continue;
      const style = getComputedStyle(box);
      const name = box.getAttribute('aria-label');
      if (style.overflowX !== 'auto') say(`"${name}" is cut`);
      if (box.offsetHeight - box.clientHeight < 8) say(`"${name}" scrolls without a bar`);
      if (!/gradient.*gradient/.test(style.backgroundImage)) say(`"${name}" scrolls without a shadow`);
      if (box.tabIndex !== 0 || !name) say('a box that scrolls is out of reach of the keys');
    }
  }
  for (const group of document.querySelectorAll('[role=group], [role=region]')) {
    if (!group.getAttribute('aria-label')) say('nameless group');
  }
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const parsed = new Map();
  const rgba = (color) => {
    if (!parsed.has(color)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = color;
      canvas.fillRect(0, 0, 1, 1);
      parsed.set(color, [...canvas.getImageData(0, 0, 1, 1).data]);
    }
    return parsed.get(color);
  };
  const over = (top, below) => {
    const a = top[3] / 255;
    return [0, 1, 2].map((i) => top[i] * a + below[i] * (1 - a)).concat(255);
  };
  // Relative luminance and contrast as in WCAG 2.
  const luminance = (c) => {
    const [r, g, b] = c.slice(0, 3).map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(rgba(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 255]);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || /^(SCRIPT|STYLE|title|desc)$/i.test(element.tagName)) continue;
    if (!element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    const style = getComputedStyle(element);
    const inside = element.closest('svg');
    const back = behind(inside || element);
    let opacity = 1;
    for (let e = element; e; e = e.parentElement) opacity *= getComputedStyle(e).opacity;
    const ink = [...rgba(inside ? style.fill : style.color)];
    ink[3] *= opacity;
    const [a, b] = [luminance(over(ink, back)), luminance(back)].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (contrast < (large ? 3 : 4.5)) {
      say(`contrast ${contrast.toFixed(2)} of "${node.data.trim().slice(0, 30)}"`);
    }
    if (size < 9.5) say(`${size} pixels tall: "${node.data.trim().slice(0, 30)}"`);
  }
  return troubles;
})()
