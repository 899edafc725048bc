const K = globalThis.__knee;

export const sleep = (seconds) => K.sleep(Number(seconds) || 0);

export function check(value, checks, tags) {
  let all = true;
  for (const [name, test] of Object.entries(checks)) {
    let passes = false;
    try {
      passes = typeof test === 'function' ? test(value) : test;
      if (passes instanceof Promise) throw new Error(`check '${name}' is an async function: await before the check`);
    } finally {
      K.check(name, Boolean(passes), tags);
    }
    all = all && Boolean(passes);
  }
  return all;
}

export function group(name, call) {
  if (call.constructor.name === 'AsyncFunction') throw new Error(`group '${name}' is an async function, which k6 refuses too`);
  K.enter(String(name));
  try { return call(); } finally { K.leave(); }
}

export function fail(reason) { throw new Error(reason === undefined ? 'fail() was called' : String(reason)); }

export const randomSeed = (seed) => K.seed(Number(seed));

export default K.guard('k6', { sleep, check, group, fail, randomSeed });
