// The functions of https://jslib.k6.io/k6-utils.
const K = globalThis.__knee;
export const randomIntBetween = (min, max) => Math.floor(Math.random() * (max - min + 1) + min);
export const randomItem = (all) => all[Math.floor(Math.random() * all.length)];
export function randomString(length, charset = 'abcdefghijklmnopqrstuvwxyz') {
  let text = '';
  while (length--) text += charset[Math.floor(Math.random() * charset.length)];
  return text;
}
export function uuidv4() {
  return 'xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx'.replace(/[xy]/g, (c) => {
    const r = Math.floor(Math.random() * 16);
    return (c === 'x' ? r : (r & 3) | 8).toString(16);
  });
}
export function findBetween(content, left, right, repeat = false) {
  const found = [];
  let at = 0;
  do {
    const begin = content.indexOf(left, at);
    if (begin < 0) break;
    const end = content.indexOf(right, begin + left.length);
    if (end < 0) break;
    found.push(content.substring(begin + left.length, end));
    at = end + right.length;
  } while (repeat);
  return repeat ? found : found[0] ?? null;
}
export function normalDistributionStages(maxVus, durationSeconds, numberOfStages = 10) {
  const normal = (mean, deviation, x) => Math.exp(-0.5 * Math.log(2 * Math.PI) - Math.log(deviation) - (x - mean) ** 2 / (2 * deviation * deviation));
  const curve = Array.from({ length: numberOfStages + 2 }, (_, i) => normal(0, 1, -2 + (4 * i) / (numberOfStages + 1)));
  const peak = Math.max(...curve);
  const durations = Array.from({ length: numberOfStages + 2 }, () => Math.ceil(durationSeconds / 6));
  const stages = [];
  for (let i = 0; i <= numberOfStages; i++) {
    const target = Math.round(maxVus * (curve[i] / peak));
    stages.push({ duration: `${durations[i]}s`, target });
  }
  stages.push({ duration: `${durations[numberOfStages + 1]}s`, target: 0 });
  return stages;
}
export function parseDuration(text) {
  if (typeof text === 'number') return text;
  const units = { d: 86400000, h: 3600000, m: 60000, s: 1000, ms: 1, us: 0.001, 'µs': 0.001, ns: 0.000001 };
  let sum = 0, any = false;
  for (const [, n, unit] of String(text).matchAll(/([\d.]+)(ms|us|µs|ns|[dhms])/g)) { sum += Number(n) * units[unit]; any = true; }
  if (!any) throw new Error(`invalid duration '${text}'`);
  return sum;
}
