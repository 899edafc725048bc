const K = globalThis.__knee;
const output = (bytes, encoding) => {
  switch (encoding) {
    case undefined: case 'hex': return Array.from(new Uint8Array(bytes), (b) => b.toString(16).padStart(2, '0')).join('');
    case 'base64': return K.b64encode(bytes, 'std');
    case 'base64url': return K.b64encode(bytes, 'url');
    case 'base64rawurl': return K.b64encode(bytes, 'rawurl');
    case 'binary': return bytes;
    default: throw new Error(`invalid output encoding '${encoding}': expected hex, base64, base64url, base64rawurl or binary`);
  }
};
// Data is kept until the digest is asked for.
class Hasher {
  #name; #key; #parts = [];
  constructor(name, key) { this.#name = name; this.#key = key ?? null; K.digest(name, this.#key, ''); }
  update(data) { this.#parts.push(new Uint8Array(K.bytes(data))); }
  digest(encoding) {
    const all = new Uint8Array(this.#parts.reduce((n, p) => n + p.length, 0));
    this.#parts.reduce((at, p) => { all.set(p, at); return at + p.length; }, 0);
    return output(K.digest(this.#name, this.#key, all.buffer), encoding);
  }
}
const createHash = (name) => new Hasher(name);
const createHMAC = (name, key) => new Hasher(name, key);
const hmac = (name, key, data, encoding) => output(K.digest(name, key, data), encoding);
const hash = (name) => (data, encoding) => output(K.digest(name, null, data), encoding);
const md5 = hash('md5'), sha1 = hash('sha1'), sha256 = hash('sha256'), sha384 = hash('sha384'), sha512 = hash('sha512');
const sha512_224 = hash('sha512_224'), sha512_256 = hash('sha512_256');
const hexEncode = (data) => output(K.bytes(data), 'hex');
const randomBytes = (count) => K.random_bytes(count);
export { createHash, createHMAC, hmac, md5, sha1, sha256, sha384, sha512, sha512_224, sha512_256, randomBytes, hexEncode };
export default K.guard('k6/crypto', { createHash, createHMAC, hmac, md5, sha1, sha256, sha384, sha512, sha512_224, sha512_256, randomBytes, hexEncode });
