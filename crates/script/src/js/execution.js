const K = globalThis.__knee;
let options;
const vu = K.guard('exec.vu', {
  get idInTest() { return K.iteration().user; },
  get idInInstance() { return K.iteration().user; },
  get iterationInInstance() { return K.iteration().number; },
  get iterationInScenario() { return K.iteration().number; },
  tags: K.tags,
  metrics: { tags: K.tags, metadata: {} },
});
const scenario = K.guard('exec.scenario', {
  get name() { return K.iteration().scenario; },
  get executor() { return K.iteration().executor; },
  get iterationInTest() { return K.iteration().in_test; },
  get iterationInInstance() { return K.iteration().in_test; },
  get startTime() { return K.iteration().began_ms; },
});
const instance = K.guard('exec.instance', {
  get currentTestRunDuration() { return K.now() / 1e6; },
});
const test = K.guard('exec.test', {
  abort(reason) { K.abort(reason === undefined ? 'exec.test.abort() was called' : String(reason)); },
  fail(reason) { throw new Error(reason === undefined ? 'exec.test.fail() was called' : String(reason)); },
  get options() { return (options ??= JSON.parse(K.options || '{}')); },
});
export { vu, scenario, instance, test };
export default K.guard('k6/execution', { vu, scenario, instance, test });
