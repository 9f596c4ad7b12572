// The question: what stands in the form, in the address behind the # (which browsers never send), and in a request.

const FIELDS = ["text", "image", "second", "model", "methods", "edges", "heads", "residual", "query", "level", "rows", "target", "difference"];
export const DEFAULTS = { text: "", image: "", second: "", methods: ["rollout"], edges: "attention", heads: "mean", residual: "own", query: "", level: "-1", rows: "auto", target: "", difference: false };

/** From the address. Unknown things in it are left out. */
export function fromHash(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const found = {};
  for (const name of FIELDS) {
    if (!given.has(name)) continue;
    const value = given.get(name);
    found[name] = name === "methods" ? value.split(",") : name === "difference" ? value === "true" : value;
  }
  return found;
}

/** For the address: what differs from the defaults. */
export function toHash(question) {
  const kept = new URLSearchParams();
  for (const name of FIELDS) {
    const value = String(question[name] ?? "");
    if (value !== "" && value !== String(DEFAULTS[name] ?? "")) kept.set(name, value);
  }
  return `#${kept}`;
}

const isWhole = (text) => /^-?\d+$/.test(text.trim());
const position = (text) => (text === "" ? null : isWhole(text) ? Number(text) : text);

/** What decides about the graph, as the server takes it. What was not chosen is left out: some methods stand on something else. */
export function capturePart({ model, text, image, second, edges, heads, residual, target }) {
  const chosen = { edges, heads: isWhole(heads) ? Number(heads) : heads, residual: Number.isFinite(Number(residual)) ? Number(residual) : residual };
  for (const name of Object.keys(chosen)) if (chosen[name] === DEFAULTS[name]) delete chosen[name];
  return { model, ...chosen, ...(image ? { image } : {}), ...(text.trim() || !image ? { text } : {}), ...(second && !image ? { second } : {}), ...(target ? { target: position(target) } : {}) };
}

/** The whole question, as the server takes it. */
export function toRequest(question) {
  const { methods, query, level, rows, difference } = question;
  return { ...capturePart(question), methods, query: position(query), level: Number(level), rows, difference: difference && methods.length === 2 };
}
