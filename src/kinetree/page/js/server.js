// The studio behind the page: Python on the same machine, reached over one socket per tab.
//
//   const found = await server.call("open_library", { name: "stanford" }, { onProgress: (share) => ..., signal });
//
// `server` is null in a page that was opened from a file. A call that is refused or fails rejects with an Error whose
// message is a sentence for the reader; one that was cancelled by its signal has the name "AbortError". Results are
// tables of plain values; arrays of numbers are typed arrays.

import { unpacked } from "./data.js";

const GONE =
  "The studio has ended, or cannot be reached. Start it again with: kinetree studio; then reload this page, which " +
  "keeps your work.";

class Server {
  constructor(path) {
    this.socketAddress = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${path}`;
    this.calls = new Map(); // by number: { resolve, reject, onProgress }
    this.last = 0;
    this.opening = null;
    this.keepsToken = true;
    try {
      // for links and addresses without the token: the studio's entrance takes it from here
      localStorage.setItem("kinetree-studio", new URLSearchParams(path.split("?")[1]).get("token"));
    } catch {
      this.keepsToken = false; // without storage, links work with the token alone
    }
  }

  // The address of this tab for others: without the token.
  get address() {
    const query = new URLSearchParams(location.search);
    query.delete("token");
    return `${location.origin}/${query.size ? `?${query}` : ""}`;
  }

  // The address at which this tab opens a mechanism again; one without a source opens the first one. It has no token: a
  // studio that was started again at the same port has another one.
  addressOf(source) {
    const query = new URLSearchParams(location.search);
    if (this.keepsToken) query.delete("token");
    query.delete("open");
    if (source) query.set("open", source);
    return query.size ? `?${query}` : location.pathname;
  }

  /**
   * Call an action of the studio: a Promise of its result.
   * @param {string} name
   * @param {object} args
   * @param {{ onProgress?: (share: number) => void, signal?: AbortSignal }} [options]
   */
  async call(name, args = {}, { onProgress = () => {}, signal } = {}) {
    signal?.throwIfAborted();
    const socket = await this.socket();
    const id = ++this.last;
    return new Promise((resolve, reject) => {
      this.calls.set(id, { resolve, reject, onProgress });
      signal?.addEventListener("abort", () => {
        if (this.calls.has(id)) socket.send(JSON.stringify({ id, cancel: true }));
      });
      socket.send(JSON.stringify({ id, call: name, arguments: args }));
    });
  }

  // The open socket; one that was closed, such as by a sleeping machine, is opened again.
  socket() {
    this.opening ||= new Promise((resolve, reject) => {
      const socket = new WebSocket(this.socketAddress);
      socket.addEventListener("open", () => resolve(socket));
      socket.addEventListener("message", (event) => this.answer(JSON.parse(event.data)));
      socket.addEventListener("close", () => {
        this.opening = null;
        reject(new Error(GONE));
        for (const { reject: refuse } of this.calls.values()) refuse(new Error(GONE));
        this.calls.clear();
      });
    });
    return this.opening;
  }

  async answer({ id, progress, result, error, cancelled }) {
    const call = this.calls.get(id);
    if (!call) return;
    if (progress !== undefined) return call.onProgress(progress);
    this.calls.delete(id);
    if (cancelled) return call.reject(new DOMException("cancelled", "AbortError"));
    if (error !== undefined) return call.reject(new Error(error));
    unpacked(result).then(call.resolve, call.reject);
  }
}

const inDocument = typeof document === "undefined" ? null : document.querySelector('meta[name="kinetree-studio"]');
const path = inDocument?.getAttribute("content");
export const server = path ? new Server(path) : null;

// The suffixes of model files that Python reads (formats/__init__.py).
export const modelSuffixes = inDocument?.getAttribute("data-models")?.split(" ") ?? [];
