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
  get iterationInInstance() { return K.iteration().in_instance; },
  get progress() {
    const { duration, stages } = { ...test.options, ...test.options.scenarios?.[this.name] };
    const all = stages ?? (duration === undefined ? [] : [{ duration }]);
    const length = all.reduce((sum, stage) => sum + K.duration(String(stage.duration)), 0);
    return length > 0 ? Math.min(1, (Date.now() - K.iteration().began_ms) / length) : 0;
  },
  get startTime() { return K.iteration().began_ms; },
});
const instance = K.guard('exec.instance', {
  get vusInitialized() { return K.counts()[0]; },
  get vusActive() { return K.counts()[1]; },
  get iterationsCompleted() { return K.counts()[2]; },
  get iterationsInterrupted() { return K.counts()[3]; },
  get currentTestRunDuration() { return K.now() / 1e6; },
});
const test = K.guard('exec.test', {
  abort(reason) { K.abort(reason === undefined ? 'exec.test.abort() was called' : String(reason)); },
  fail(reason) { K.mark(reason === undefined ? 'exec.test.fail() was called' : String(reason)); },
  get options() { return (options ??= JSON.parse(K.options || '{}')); },
});
export { vu, scenario, instance, test };
export default K.guard('k6/execution', { vu, scenario, instance, test });
