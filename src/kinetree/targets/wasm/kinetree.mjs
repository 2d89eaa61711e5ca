// Functions of WebAssembly modules written by Kinetree, for browsers, Node and other hosts of JavaScript.
//
//     import { load } from "./kinetree.mjs";
//     const arm = await load("arm.wasm");
//     const qdd = arm.functions.forward_dynamics([0.1, 0.2], [0, 0], [0, 0]);   // a view of the module's memory
//
// Arrays are dense and row-major, in SI units. Repeated calls allocate nothing: inputs are copied into the memory of
// the module, and outputs are views of it, which the next call of the same function overwrites. To avoid the copies,
// write to `f.inputs.q`, call `f.run()` and read `f.outputs.qdd`.

const PAGE = 65536;
const ALIGNMENT = 16;

/** Load a module from a URL, a Response, bytes, or a compiled WebAssembly.Module. */
export async function load(source) {
  if (typeof source === "string" || source instanceof URL) source = await fetch(source);
  if (typeof Response !== "undefined" && source instanceof Response) {
    if (!source.ok) throw new Error(`${source.url}: status ${source.status}; expected a WebAssembly module`);
    source = await source.arrayBuffer();
  }
  const module = source instanceof WebAssembly.Module ? source : await WebAssembly.compile(source);
  return new Model(module, await WebAssembly.instantiate(module));
}

/** Return the description that Kinetree wrote into a WebAssembly.Module. */
export function metadata(module) {
  const [section] = WebAssembly.Module.customSections(module, "kinetree");
  if (!section) throw new Error("the module has no section 'kinetree'; it was not written by Kinetree");
  return JSON.parse(new TextDecoder().decode(section));
}

/** An instance of a module: `functions` by name, its `memory` and its `metadata`. */
export class Model {
  constructor(module, instance) {
    this.metadata = metadata(module);
    this.memory = instance.exports.memory;
    this.functions = {};
    this.end = instance.exports.heap.value;
    this.calls = [];
    for (const described of this.metadata.functions) {
      const call = new Call(this, described, instance.exports);
      this.calls.push(call);
      this.functions[described.name] = call.callable();
    }
    for (const call of this.calls) call.resize({});
  }

  /** Return the address of a new block of memory. */
  reserve(size) {
    const address = Math.ceil(this.end / ALIGNMENT) * ALIGNMENT;
    this.end = address + size;
    const missing = this.end - this.memory.buffer.byteLength;
    if (missing > 0) {
      this.memory.grow(Math.ceil(missing / PAGE)); // views of the memory are void from now on
      for (const call of this.calls) call.view();
    }
    return address;
  }

  /**
   * Run a self-test {function, samples: [{inputs, outputs, tolerances}]}, whose arrays are numbers by name, and return
   * [{sample, output, error, tolerance, passed}]. An error is the largest difference of an entry.
   */
  selfTest(test) {
    const f = this.functions[test.function];
    if (!f) throw new Error(`no function '${test.function}'; available: ${Object.keys(this.functions).join(", ")}`);
    const axis = f.metadata.inputs.find((a) => a.shape.includes("t"));
    const results = [];
    test.samples.forEach(({ inputs, outputs, tolerances }, sample) => {
      f.resize({ samples: 1, times: axis ? flat(inputs[axis.name]).length : 2 });
      f(...f.metadata.inputs.map((a) => inputs[a.name]));
      for (const output of Object.keys(outputs)) {
        const error = difference(f.outputs[output], flat(outputs[output]));
        results.push({ sample, output, error, tolerance: tolerances[output], passed: error <= tolerances[output] });
      }
    });
    return results;
  }
}

/** Return the largest difference of two arrays, infinite for different lengths, NaN if an entry is NaN. */
function difference(found, expected) {
  let largest = found.length === expected.length ? 0 : Infinity;
  for (let i = 0; i < expected.length; i++) {
    largest = Math.max(largest, Math.abs(found[i] - expected[i])); // NaN stays NaN
  }
  return largest;
}

/** The arrays of one function in the memory of its module. */
class Call {
  constructor(model, described, exported) {
    this.model = model;
    this.described = described;
    this.one = exported[described.name];
    this.many = exported[`${described.name}_batch`];
    this.samples = 1;
    this.times = 2;
    this.capacity = 0;
    this.inputs = {};
    this.outputs = {};
    this.hasTimes = [...described.inputs, ...described.outputs].some((a) => a.shape.includes("t"));
  }

  /** Return what users call, with `inputs`, `outputs`, `run`, `resize`, `metadata`, and the exported `entry`. */
  callable() {
    const { described, inputs, outputs } = this;
    const only = described.outputs.length === 1 ? described.outputs[0].name : null;
    /** @type {{ (...given: ArrayLike<number>[]): any, run?: () => void }} */
    const f = (...given) => {
      if (given.length !== described.inputs.length) {
        const names = described.inputs.map((a) => a.name).join(", ");
        throw new TypeError(
          `${described.name} takes ${described.inputs.length} arrays (${names}), not ${given.length}`,
        );
      }
      for (let k = 0; k < given.length; k++) put(inputs[described.inputs[k].name], given[k], described, k);
      f.run();
      return only === null ? outputs : outputs[only];
    };
    const properties = { inputs, outputs, metadata: described, entry: this.one, resize: (sizes) => this.resize(sizes) };
    this.function = Object.assign(f, properties);
    return f;
  }

  /** Set the number of samples, and of times for functions with an axis of times; all inputs must then be set again. */
  resize({ samples = this.samples, times = this.times }) {
    this.samples = samples;
    this.times = times;
    const bytes = this.model.metadata.dtype === "float32" ? 4 : 8;
    this.lengths = [...this.described.inputs, ...this.described.outputs].map((a) =>
      a.shape.reduce((n, d) => n * (d === "t" ? times : d), 1),
    );
    this.strides = this.lengths.map((n, k) => (this.described.inputs[k]?.shared ? 0 : n * bytes));
    const sizes = this.lengths.map(
      (n, k) => Math.ceil((n * bytes * (this.strides[k] ? samples : 1)) / ALIGNMENT) * ALIGNMENT,
    );
    const total = sizes.reduce((a, b) => a + b, 0);
    if (total > this.capacity) {
      this.capacity = Math.max(total, 2 * this.capacity);
      this.address = this.model.reserve(this.capacity);
    }
    let at = this.address;
    this.addresses = sizes.map((size) => (at += size) - size);
    this.view();
  }

  /** Make the views of the memory and the bound function that runs on them. */
  view() {
    if (!this.addresses) return;
    const Numbers = this.model.metadata.dtype === "float32" ? Float32Array : Float64Array;
    const { described, addresses, strides } = this;
    [...described.inputs, ...described.outputs].forEach((a, k) => {
      const length = this.lengths[k] * (strides[k] ? this.samples : 1);
      const group = k < described.inputs.length ? this.inputs : this.outputs;
      group[a.name] = new Numbers(this.model.memory.buffer, addresses[k], length);
    });
    const times = this.hasTimes ? [this.times] : [];
    this.function.run =
      this.samples === 1
        ? this.one.bind(null, ...addresses, ...times)
        : this.many.bind(null, this.samples, ...addresses.flatMap((p, k) => [p, strides[k]]), ...times);
  }
}

/** Copy a number, an array of numbers or nested arrays into a view. */
function put(view, given, described, k) {
  const numbers =
    typeof given === "number" ? null : Array.isArray(given) && Array.isArray(given[0]) ? flat(given) : given;
  const length = numbers ? numbers.length : 1;
  if (length !== view.length) {
    const { name } = described.inputs[k];
    throw new RangeError(`${described.name}: ${name} has ${length} numbers; expected ${view.length}`);
  }
  if (!numbers) view[0] = given;
  else if (length > 64) view.set(numbers);
  else for (let i = 0; i < length; i++) view[i] = numbers[i]; // quicker than `set` for short arrays
}

/** Return numbers in nested arrays as one array. */
function flat(numbers) {
  return typeof numbers === "number" ? [numbers] : Array.isArray(numbers) ? numbers.flat(Infinity) : numbers;
}
