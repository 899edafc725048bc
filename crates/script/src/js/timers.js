const { setTimeout, clearTimeout, setInterval, clearInterval } = globalThis;
export { setTimeout, clearTimeout, setInterval, clearInterval };
export default { setTimeout, clearTimeout, setInterval, clearInterval };
