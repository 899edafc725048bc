// The summary of a run as text, and as a report of JUnit: `data` is what handleSummary gets.
const size = (bytes) => {
  const unit = ['B', 'kB', 'MB', 'GB', 'TB'];
  let n = bytes, at = 0;
  while (n >= 1000 && at < unit.length - 1) { n /= 1000; at++; }
  return `${at === 0 ? Math.round(n) : n.toFixed(n < 10 ? 2 : 1)} ${unit[at]}`;
};
const time = (ms, unit) => {
  if (unit === 's') return `${(ms / 1e3).toFixed(6)}s`;
  if (unit === 'ms') return `${ms.toFixed(2)}ms`;
  if (unit === 'us') return `${Math.round(ms * 1e3)}µs`;
  if (ms >= 60e3) return `${Math.floor(ms / 60e3)}m${Math.round((ms % 60e3) / 1e3)}s`;
  return ms >= 1e3 ? `${(ms / 1e3).toFixed(2)}s` : ms >= 1 ? `${ms.toFixed(2)}ms` : `${(ms * 1e3).toFixed(2)}µs`;
};
const plain = (n) => (Number.isInteger(n) ? String(n) : String(Number(n.toFixed(6))));

export function humanizeValue(value, metric, timeUnit) {
  if (metric.type === 'rate') return `${(Math.trunc(value * 1e4) / 100).toFixed(2)}%`;
  return metric.contains === 'time' ? time(value, timeUnit) : metric.contains === 'data' ? size(value) : plain(value);
}

const figures = (metric, options) => {
  const of = metric.values, show = (value) => humanizeValue(value, metric, options.summaryTimeUnit);
  const known = (text, value) => (value === undefined ? '' : text(value));
  switch (metric.type) {
    case 'counter': return show(of.count) + known((rate) => ` ${show(rate)}/s`, of.rate);
    case 'gauge': return show(of.value) + known((min) => ` min=${show(min)}`, of.min) + known((max) => ` max=${show(max)}`, of.max);
    case 'rate': return `${show(of.rate)} ${of.passes} out of ${of.passes + of.fails}`;
    default: return Object.entries(of).map(([name, value]) => `${name}=${name === 'count' ? plain(value) : show(value)}`).join(' ');
  }
};
const checksOf = (group, lines, indent, paint) => {
  for (const check of group.checks) {
    const all = check.passes + check.fails;
    if (check.fails === 0) { lines.push(paint(32, `${indent}✓ ${check.name}`)); continue; }
    lines.push(paint(31, `${indent}✗ ${check.name}`));
    lines.push(paint(31, `${indent} ↳  ${Math.floor((100 * check.passes) / all)}% — ✓ ${check.passes} / ✗ ${check.fails}`));
  }
  for (const inner of group.groups) {
    lines.push('', `${indent}█ ${inner.name}`, '');
    checksOf(inner, lines, `${indent}  `, paint);
  }
};

export function textSummary(data, given = {}) {
  const { indent = '', enableColors = false } = given, options = { ...data.options, ...given };
  const paint = (code, text) => (enableColors ? `\x1b[${code}m${text}\x1b[0m` : text);
  const lines = [];
  if (data.root_group !== undefined) {
    checksOf(data.root_group, lines, `${indent}  `, paint);
    if (lines.length > 0) lines.push('');
  }
  for (const name of Object.keys(data.metrics).sort()) {
    const metric = data.metrics[name], thresholds = Object.values(metric.thresholds ?? {});
    const mark = thresholds.length === 0 ? ' ' : thresholds.every((t) => t.ok) ? paint(32, '✓') : paint(31, '✗');
    lines.push(`${indent}${mark} ${`${name}`.padEnd(31, '.')}: ${figures(metric, options)}`);
  }
  return `${lines.join('\n')}\n`;
}

export function jUnit(data, { name = 'k6 thresholds', classname = 'Unnamed folder' } = {}) {
  const quoted = (text) => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
  const cases = [];
  let failed = 0;
  for (const [metric, of] of Object.entries(data.metrics)) {
    for (const [threshold, { ok }] of Object.entries(of.thresholds ?? {})) {
      if (!ok) failed++;
      const failure = ok ? '' : `<failure message="threshold exceeded" />`;
      cases.push(`<testcase name="${quoted(`${metric} - ${threshold}`)}" classname="${quoted(classname)}">${failure}</testcase>`);
    }
  }
  const counts = `tests="${cases.length}" failures="${failed}"`;
  return `<?xml version="1.0"?>\n<testsuites ${counts}>\n<testsuite name="${quoted(name)}" ${counts}>\n${cases.join('\n')}\n</testsuite>\n</testsuites>`;
}
