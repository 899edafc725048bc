const K = globalThis.__knee;
const b64encode = (data, encoding) => K.b64encode(data, encoding ?? 'std');
const b64decode = (text, encoding, format) => {
  const bytes = K.b64decode(text, encoding ?? 'std');
  return format === 's' ? K.text(bytes) : bytes;
};
export { b64encode, b64decode };
export default K.guard('k6/encoding', { b64encode, b64decode });
