// The data of a page: base 85 of compressed JSON, followed by the arrays to which it refers by {"$": [type, place,
// count]}.

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%:()*+-;,=.?[^_]{|}~";
const TYPES = { f4: Float32Array, f8: Float64Array, u4: Uint32Array, u1: Uint8Array };

/** What page/file.py compressed: four bytes are five digits, of which the last ones may be missing. */
export function decompressed(text) {
  const values = new Uint8Array(128);
  for (let k = 0; k < DIGITS.length; k++) values[DIGITS.charCodeAt(k)] = k;
  const words = new DataView(new ArrayBuffer(4 * Math.ceil(text.length / 5)));
  for (let k = 0; k < text.length; k += 5) {
    let word = 0;
    for (let j = k; j < k + 5; j++) word = 85 * word + (j < text.length ? values[text.charCodeAt(j)] : 84);
    words.setUint32(0.8 * k, word);
  }
  const bytes = new Uint8Array(words.buffer, 0, Math.floor(0.8 * text.length));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
}

export async function unpacked(text) {
  const whole = await decompressed(text).arrayBuffer();
  const size = new DataView(whole).getUint32(0, true);
  const revive = (_, x) => {
    if (x === null || typeof x !== "object" || !Array.isArray(x.$)) return x;
    const [type, place, count] = x.$;
    return new TYPES[type](whole, 8 + size + place, count);
  };
  return JSON.parse(new TextDecoder().decode(new Uint8Array(whole, 8, size)), revive);
}
