// Hashes and HMAC of the Web Crypto API.
const K = globalThis.__knee;
const HASHES = { 'SHA-1': 'sha1', 'SHA-256': 'sha256', 'SHA-384': 'sha384', 'SHA-512': 'sha512' };
const nameOf = (algorithm) => String(algorithm?.name ?? algorithm).toUpperCase();
const hashOf = (algorithm) => {
  const hash = HASHES[nameOf(algorithm)];
  if (hash === undefined) throw new Error(`crypto.subtle: the hash '${nameOf(algorithm)}' is not supported by knee`);
  return hash;
};
const bytes = (data) => (ArrayBuffer.isView(data) ? data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength) : K.bytes(data));
const keyOf = (algorithm, data, extractable, usages) => {
  if (nameOf(algorithm) !== 'HMAC') throw new Error(`crypto.subtle: '${nameOf(algorithm)}' is not supported by knee: expected HMAC`);
  hashOf(algorithm.hash);
  return { type: 'secret', algorithm: { name: 'HMAC', hash: { name: nameOf(algorithm.hash) } }, extractable, usages, data };
};
const raw = (format) => { if (format !== 'raw') throw new Error(`crypto.subtle: the format '${format}' is not supported by knee: expected raw`); };
const sign = (key, data) => K.digest(hashOf(key.algorithm.hash), key.data, bytes(data));
K.subtle = K.guard('crypto.subtle', {
  async digest(algorithm, data) { return K.digest(hashOf(algorithm), null, bytes(data)); },
  async importKey(format, data, algorithm, extractable, usages) { raw(format); return keyOf(algorithm, bytes(data), extractable, usages); },
  async exportKey(format, key) { raw(format); return key.data; },
  async sign(_, key, data) { return sign(key, data); },
  async verify(_, key, signature, data) {
    const [a, b] = [sign(key, data), bytes(signature)].map((all) => new Uint8Array(all));
    return a.length === b.length && a.every((byte, i) => byte === b[i]);
  },
});
export const crypto = globalThis.crypto;
export default { crypto };
