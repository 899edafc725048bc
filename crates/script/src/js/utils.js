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
  return repeat ? (found.length > 0 ? found : null) : found[0] ?? null;
}
export function normalDistributionStages(maxVus, durationSeconds, numberOfStages = 10) {
  const density = (x) => Math.exp((-1 / 2) * x ** 2) / Math.sqrt(2 * Math.PI);
  const curve = Array.from({ length: numberOfStages + 2 }, (_, i) => (i > numberOfStages ? 0 : density(-2 + (4 * i) / numberOfStages)));
  const peak = Math.max(...curve);
  return curve.map((y, i) => ({
    duration: `${i === 0 || i > numberOfStages ? Math.ceil(durationSeconds / 6) : Math.ceil((4 * durationSeconds) / (6 * numberOfStages))}s`,
    target: Math.round((y * maxVus) / peak),
  }));
}
export function parseDuration(text) {
  if (typeof text === 'number') return text;
  const units = { d: 86400000, h: 3600000, m: 60000, s: 1000, ms: 1, us: 0.001, 'µs': 0.001, ns: 0.000001 };
  let sum = 0, any = false;
  for (const [, n, unit] of String(text).matchAll(/([\d.]+)(ms|us|µs|ns|[dhms])/g)) { sum += Number(n) * units[unit]; any = true; }
  if (!any) throw new Error(`invalid duration '${text}'`);
  return sum;
}
// Stages of the load, by the time since its begin.
const stagesNow = () => {
  const all = JSON.parse(K.options), { scenario, began_ms: began } = K.iteration();
  const stages = (all.scenarios?.[scenario] ?? all).stages;
  if (!stages || stages.length === 0) throw new Error('only ramping-vus and ramping-arrival-rate have stages');
  return [stages, Date.now() - began];
};
export function getCurrentStageIndex() {
  const [stages, since] = stagesNow();
  let sum = 0;
  const at = stages.findIndex((stage) => since < (sum += parseDuration(stage.duration)));
  return at < 0 ? stages.length - 1 : at;
}
export function tagWithCurrentStageIndex() { K.tags.stage = getCurrentStageIndex(); }
export function tagWithCurrentStageProfile() {
  const at = getCurrentStageIndex(), [stages] = stagesNow();
  const [now, before] = [stages[at], stages[at - 1]].map((stage) => stage?.target);
  K.tags.stage_profile = at < 1 || now > before ? 'ramp-up' : now === before ? 'steady' : 'ramp-down';
}
export default K.guard('k6-utils', { randomIntBetween, randomItem, randomString, uuidv4, findBetween, normalDistributionStages, parseDuration, getCurrentStageIndex, tagWithCurrentStageIndex, tagWithCurrentStageProfile });
