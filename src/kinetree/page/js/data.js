// The data of a page: base64 of compressed JSON, followed by the arrays to which it refers by {"$": [type, place,
// count]}.

const TYPES = { f4: Float32Array, f8: Float64Array, u4: Uint32Array, u1: Uint8Array };

export async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const whole = await new Response(stream).arrayBuffer();
  const size = new DataView(whole).getUint32(0, true);
  const revive = (_, x) => {
    if (x === null || typeof x !== "object" || !Array.isArray(x.$)) return x;
    const [type, place, count] = x.$;
    return new TYPES[type](whole, 8 + size + place, count);
  };
  return JSON.parse(new TextDecoder().decode(new Uint8Array(whole, 8, size)), revive);
}
