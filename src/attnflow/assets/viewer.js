// The viewer of attnflow: one module, no dependencies. mount(root, document) draws what `render.document` wrote.
//
//   1 data      codes → values, positions → units (tokens or words)
//   2 colour    ramps of the document, ink that reads on them
//   3 pens      one drawing, two media: canvas and SVG
//   4 drawings  strip, map, flow, patches: (data, width) → { height, draw(pen) }
//   5 interface what the reader can choose, and what follows
//
// A query is the position asked about, an input the token credited; level 0 is the first block.

// ---- 1 data ------------------------------------------------------------------------------------------------------

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

async function inflated(base64) {
  const packed = new Blob([bytesOf(base64)]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(packed).arrayBuffer());
}

function floatsOf(base64) {
  const bytes = bytesOf(base64);
  return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
}

/** One method over one text. Levels are decoded when they are first drawn. */
class View {
  constructor(plain, text) {
    const every = text.labels.map((_, i) => i);
    Object.assign(this, { method: plain.method, caption: plain.caption, levels: plain.levels, signed: plain.signed, notes: plain.notes });
    this.cube = plain.cube;
    this.queries = plain.queries ?? every;
    this.inputs = plain.inputs ?? every;
    this.every = plain.inputs === null;
    this.rowOf = new Map(this.queries.map((q, i) => [q, i]));
    this.special = new Set(text.special);
    this.columns = this.inputs.map((p, i) => (this.special.has(p) ? i : -1)).filter((i) => i >= 0);
    this.columnOf = new Map(this.inputs.map((p, i) => [p, i]));
    this.decoded = new Map();
    this.apartStart = this.apartStarts();
  }

  /** The columns of a row that are stored as they are: special inputs and the query itself, in order. */
  apart(query) {
    const own = this.columnOf.get(query);
    if (own === undefined || this.special.has(query)) return this.columns;
    return [...this.columns, own].sort((a, b) => a - b);
  }

  apartStarts() {
    const starts = [0];
    for (const query of this.queries) {
      const own = this.columnOf.has(query) && !this.special.has(query) ? 1 : 0;
      starts.push(starts.at(-1) + this.columns.length + own);
    }
    return starts;
  }

  async ready(level) {
    if (!this.decoded.has(level)) this.decoded.set(level, this.decode(this.cube.levels[level]));
    const found = await this.decoded.get(level);
    this.decoded.set(level, found);
    return found;
  }

  async decode(plain) {
    const bytes = await inflated(plain.codes);
    const width = this.inputs.length;
    const wide = this.cube.bytes === 2;
    const count = bytes.length / this.cube.bytes;
    const codes = wide ? new Uint16Array(count) : bytes;
    if (wide) for (let i = 0; i < count; i++) codes[i] = bytes[i] | (bytes[i + count] << 8);
    if (plain.above) for (let i = width; i < count; i++) codes[i] += codes[i - width];
    return { codes, scale: floatsOf(plain.scale), apart: floatsOf(plain.apart) };
  }

  isReady(level) {
    const found = this.decoded.get(level);
    return found !== undefined && !(found instanceof Promise);
  }

  /** Values of every position for one query, NaN where an input was not asked for; null without such a query. */
  row(level, query) {
    const number = this.rowOf.get(query);
    if (number === undefined) return null;
    const { codes, scale, apart } = this.decoded.get(level);
    const width = this.inputs.length;
    const step = scale[number] / this.cube.steps;
    const plain = new Float32Array(width);
    for (let i = 0, from = number * width; i < width; i++) plain[i] = (codes[from + i] - this.cube.offset) * step;
    let next = this.apartStart[number];
    for (const column of this.apart(query)) plain[column] = apart[next++];
    if (this.every) return plain;
    const row = new Float32Array(this.count).fill(NaN);
    this.inputs.forEach((position, i) => (row[position] = plain[i]));
    return row;
  }

  /** At most this far from the true value of a regular input, in a row. */
  error(level, query) {
    const number = this.rowOf.get(query);
    return number === undefined ? 0 : this.decoded.get(level).scale[number] * this.cube.error;
  }
}

/** A text: its units (tokens, or words of several), its views and its flows. */
class Text {
  constructor(plain) {
    Object.assign(this, plain);
    this.isSpecial = new Set(plain.special);
    this.views = plain.views.map((view) => Object.assign(new View(view, plain), { count: plain.labels.length }));
    this.inGrid = new Set(plain.grids.flatMap((g) => Array.from({ length: g.rows * g.columns }, (_, i) => g.offset + i)));
    this.levels = [...new Set(this.views.flatMap((view) => view.levels))];
    this.lenses = new Map();
    this.name = this.labels.filter((_, i) => !this.isSpecial.has(i) && !this.inGrid.has(i)).slice(0, 9).join(" ") || `image ${this.grids[0]?.rows} × ${this.grids[0]?.columns}`;
  }

  /** Units of the text: each position, or each word with the positions outside words. */
  units(words) {
    if (this.lenses.has(words)) return this.lenses.get(words);
    const joined = new Set(this.joined);
    const starts = new Map(words ? this.words.map(([start, stop, label]) => [start, { stop, label }]) : []);
    const units = [];
    const unitOf = new Int32Array(this.labels.length);
    for (let position = 0; position < this.labels.length; ) {
      const word = starts.get(position);
      const stop = word?.stop ?? position + 1;
      const positions = Array.from({ length: stop - position }, (_, i) => position + i);
      for (const p of positions) unitOf[p] = units.length;
      units.push({
        index: units.length, positions, label: word?.label ?? this.labels[position], special: positions.every((p) => this.isSpecial.has(p)),
        joined: joined.has(position), patch: this.inGrid.has(position),
      });
      position = stop;
    }
    const found = { units, unitOf, words };
    this.lenses.set(words, found);
    return found;
  }
}

/** What a unit draws on, unit by unit: inputs of a word are added up, its queries averaged. */
function rowOf(view, level, unit, lens) {
  const rows = unit.positions.map((query) => view.row(level, query)).filter(Boolean);
  if (!rows.length) return null;
  if (!lens.words) return rows[0];
  const sums = new Float64Array(lens.units.length);
  for (const row of rows) for (let p = 0; p < row.length; p++) sums[lens.unitOf[p]] += row[p];
  return Float32Array.from(sums, (value) => value / rows.length);
}

/** Which units make the scale: special ones and the query itself do not, unless everything is shown or nothing is left. */
function counting(units, asked, special) {
  const counts = (unit) => special === "shown" || (!unit.special && unit.index !== asked);
  return units.some(counts) ? counts : () => true;
}

/** The end of a scale over rows; `asked` is the query of all of them, or a list with that of each. */
function endOf(rows, units, asked, special) {
  let end = 0;
  let whole = 0;
  rows.forEach((row, i) => {
    if (!row) return;
    const counts = counting(units, Array.isArray(asked) ? asked[i] : asked, special);
    for (const unit of units) {
      const size = Math.abs(row[unit.index]);
      if (size > whole) whole = size;
      if (size > end && counts(unit)) end = size;
    }
  });
  return end || whole || 1;
}

const numberOf = (value) => (Number.isNaN(value) ? "not computed" : value === 0 ? "0" : String(Number(value.toPrecision(3))));

// ---- 2 colour ----------------------------------------------------------------------------------------------------

const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
const css = ([r, g, b]) => `rgb(${r}, ${g}, ${b})`;

function inkOn([r, g, b]) {
  const [x, y, z] = [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * x + 0.7152 * y + 0.0722 * z > 0.179 ? "#000000" : "#ffffff";
}

/** The colours of a scheme: ramps as 257 triples, and the ink of everything else. */
class Palette {
  constructor(ramps, scheme) {
    this.scheme = scheme;
    this.tables = {};
    for (const kind of ["sequential", "diverging", "apart"]) {
      const given = ramps[scheme][kind].map(channels);
      this.tables[kind] = Array.from({ length: 257 }, (_, i) => {
        const at = (i / 256) * (given.length - 1);
        const low = Math.min(Math.floor(at), given.length - 2);
        return given[low].map((c, k) => Math.round(c + (given[low + 1][k] - c) * (at - low)));
      });
    }
    const dark = scheme === "dark";
    this.ground = dark ? "#16181d" : "#ffffff";
    this.ink = dark ? "#e9ebee" : "#1b1f24";
    this.soft = dark ? "#a4abb6" : "#5c6470";
    this.line = dark ? "#3a3f49" : "#d5d9df";
    this.flow = dark ? "#4f9be0" : "#4a86cc";
    this.cut = dark ? "#ff9a3c" : "#c4560a";
  }

  /** What stands outside the scale is grey: its size shows, and it takes the eye from nothing. */
  apart(share) {
    return this.tables.apart[Math.round(Math.min(1, Math.abs(share)) * 256)];
  }

  of(share, signed) {
    const clamped = Math.max(signed ? -1 : 0, Math.min(1, share));
    return this.tables[signed ? "diverging" : "sequential"][Math.round(signed ? (clamped + 1) * 128 : clamped * 256)];
  }

  gradient(signed) {
    const table = this.tables[signed ? "diverging" : "sequential"];
    return `linear-gradient(90deg, ${Array.from({ length: 17 }, (_, i) => css(table[i * 16])).join(", ")})`;
  }
}

// ---- 3 pens ------------------------------------------------------------------------------------------------------

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
const SVG = "http://www.w3.org/2000/svg";

const ruler = globalThis.document?.createElement("canvas").getContext("2d");
const widths = new Map();
function widthOf(text, size = 11, weight = 400) {
  const key = `${weight} ${size} ${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    ruler.font = `${weight} ${size}px ${FONT}`;
    width = ruler.measureText(text).width;
    widths.set(key, width);
  }
  return width;
}

function shortened(text, room, size = 11) {
  if (widthOf(text, size) <= room) return text;
  const letters = [...text];
  let keep = letters.length;
  while (keep > 1 && widthOf(letters.slice(0, keep).join("") + "…", size) > room) keep--;
  return letters.slice(0, keep).join("") + "…";
}

function cellCanvas(columns, rows, colourAt) {
  const canvas = globalThis.document.createElement("canvas");
  [canvas.width, canvas.height] = [columns, rows];
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  for (let r = 0, at = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++, at += 4) {
      const colour = colourAt(c, r);
      if (!colour) continue;
      image.data[at] = colour[0];
      image.data[at + 1] = colour[1];
      image.data[at + 2] = colour[2];
      image.data[at + 3] = colour[3] ?? 255;
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

class CanvasPen {
  constructor(canvas, width, height, scale) {
    canvas.width = Math.max(1, Math.round(width * scale));
    canvas.height = Math.max(1, Math.round(height * scale));
    this.context = canvas.getContext("2d");
    this.context.scale(scale, scale);
    this.scale = scale;
  }

  at(x, y, draw) {
    this.context.save();
    this.context.translate(x, y);
    draw(this);
    this.context.restore();
  }

  rect(x, y, width, height, { fill, stroke, radius = 0, line = 1, opacity = 1 }) {
    this.context.globalAlpha = opacity;
    this.context.beginPath();
    this.context.roundRect(x, y, width, height, radius);
    this.paint({ fill, stroke, line });
    this.context.globalAlpha = 1;
  }

  path(d, { fill, stroke, line = 1, dash, opacity = 1 }) {
    this.context.globalAlpha = opacity;
    if (dash) this.context.setLineDash(dash);
    this.paint({ fill, stroke, line }, new Path2D(d));
    this.context.setLineDash([]);
    this.context.globalAlpha = 1;
  }

  paint({ fill, stroke, line }, path) {
    const { context } = this;
    if (fill) {
      context.fillStyle = fill;
      path ? context.fill(path) : context.fill();
    }
    if (stroke) {
      context.strokeStyle = stroke;
      context.lineWidth = line;
      path ? context.stroke(path) : context.stroke();
    }
  }

  text(x, y, words, { size = 11, weight = 400, fill, anchor = "start", turn = 0 }) {
    const { context } = this;
    context.save();
    context.translate(x, y);
    context.rotate((turn * Math.PI) / 180);
    context.font = `${weight} ${size}px ${FONT}`;
    context.textAlign = { start: "left", middle: "center", end: "right" }[anchor];
    context.textBaseline = "middle";
    context.fillStyle = fill;
    context.fillText(words, 0, 0);
    context.restore();
  }

  /** Cells of colour. Where there are more cells than pixels, `pooled` says how to make fewer. */
  cells(x, y, width, height, columns, rows, colourAt, { smooth = false, opacity = 1 } = {}) {
    this.context.imageSmoothingEnabled = smooth;
    this.context.imageSmoothingQuality = "high";
    this.context.globalAlpha = opacity;
    this.context.drawImage(cellCanvas(columns, rows, colourAt), x, y, width, height);
    this.context.globalAlpha = 1;
    this.context.imageSmoothingEnabled = true;
  }

  image(x, y, width, height, picture, { grey = 0 } = {}) {
    if (!picture.complete || !picture.naturalWidth) return;
    this.context.filter = grey ? `grayscale(${grey})` : "none";
    this.context.drawImage(picture, x, y, width, height);
    this.context.filter = "none";
  }
}

class SvgPen {
  constructor(width, height, palette) {
    this.root = this.node("svg", { xmlns: SVG, width, height, viewBox: `0 0 ${width} ${height}`, "font-family": FONT });
    this.into = this.root;
    this.palette = palette;
  }

  node(name, attributes, parent = this.into) {
    const made = globalThis.document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value !== undefined && key !== "xmlns") made.setAttribute(key, typeof value === "number" ? +value.toFixed(2) : value);
    }
    parent?.append(made);
    return made;
  }

  at(x, y, draw) {
    const outer = this.into;
    this.into = this.node("g", { transform: `translate(${+x.toFixed(2)} ${+y.toFixed(2)})` });
    draw(this);
    this.into = outer;
  }

  rect(x, y, width, height, { fill, stroke, radius, line, opacity }) {
    return this.node("rect", { x, y, width, height, rx: radius, fill: fill ?? "none", stroke, "stroke-width": stroke && line, opacity });
  }

  path(d, { fill, stroke, line, dash, opacity, title }) {
    const made = this.node("path", { d, fill: fill ?? "none", stroke, "stroke-width": line, "stroke-dasharray": dash?.join(" "), opacity });
    if (title) this.node("title", {}, made).textContent = title;
    return made;
  }

  text(x, y, words, { size = 11, weight, fill, anchor, turn }) {
    const place = turn ? { transform: `translate(${+x.toFixed(2)} ${+y.toFixed(2)}) rotate(${turn})` } : { x, y };
    const made = this.node("text", { ...place, "font-size": size, "font-weight": weight, fill, "text-anchor": anchor, "dominant-baseline": "central" });
    made.textContent = words;
    return made;
  }

  cells(x, y, width, height, columns, rows, colourAt, { smooth = false, opacity } = {}) {
    if (smooth || columns * rows > 6000) {
      const href = cellCanvas(columns, rows, colourAt).toDataURL("image/png");
      const made = this.node("image", { x, y, width, height, href, opacity, preserveAspectRatio: "none" });
      if (!smooth) made.style.imageRendering = "pixelated";
      return;
    }
    const group = this.node("g", { "shape-rendering": "crispEdges", opacity });
    const [w, h] = [width / columns, height / rows];
    for (let r = 0; r < rows; r++) {
      for (let c = 0; c < columns; c++) {
        const colour = colourAt(c, r);
        if (!colour) continue;
        const alpha = colour[3] === undefined ? undefined : +(colour[3] / 255).toFixed(3);
        this.node("rect", { x: x + c * w, y: y + r * h, width: w, height: h, fill: css(colour), "fill-opacity": alpha }, group);
      }
    }
  }

  image(x, y, width, height, picture, { grey = 0 } = {}) {
    if (!this.root.querySelector("#grey")) {
      const filter = this.node("filter", { id: "grey", x: 0, y: 0, width: 1, height: 1, "color-interpolation-filters": "sRGB" });
      this.node("feColorMatrix", { type: "saturate", values: 1 - grey }, filter);
    }
    this.node("image", { x, y, width, height, href: picture.src, preserveAspectRatio: "none", filter: "url(#grey)" });
  }
}

// ---- 4 drawings --------------------------------------------------------------------------------------------------

/** A text on the colours of its values, for files; on the page it is made of buttons. */
function stripDrawing({ units, row, end, signed, asked, counts, palette }, width) {
  const [line, pad, gap, size] = [28, 5, 4, 14];
  const placed = [];
  let [x, y] = [0, 0];
  for (const unit of units) {
    const room = Math.max(widthOf(unit.label, size), 4) + 2 * pad;
    if (x > 0 && !unit.joined) x += gap;
    if (x > 0 && x + room > width) [x, y] = [0, y + line];
    placed.push({ unit, x, y, room });
    x += room;
  }
  return {
    height: y + line,
    draw(pen) {
      for (const { unit, x: left, y: top, room } of placed) {
        const value = row?.[unit.index] ?? NaN;
        const ground = Number.isNaN(value) ? null : counts(unit) ? palette.of(value / end, signed) : palette.apart(value / end);
        pen.rect(left, top, room - 1, line - 5, { fill: ground ? css(ground) : undefined, radius: 4, stroke: unit.index === asked ? palette.cut : undefined, line: 2 });
        pen.text(left + room / 2, top + (line - 5) / 2, unit.label, { size, anchor: "middle", fill: ground ? inkOn(ground) : palette.soft });
      }
    },
  };
}

/** The larger of two magnitudes, as long as it is a number. */
const larger = (best, value) => (Number.isNaN(value) || Math.abs(value) <= Math.abs(best) ? best : value);

const everyNth = (count, room, needed) => {
  for (let step = 1; ; step *= 10) for (const k of [1, 2, 5]) if ((room / count) * step * k >= needed || step * k >= count) return step * k;
};

/**
 * A map of values. `isApart(column, row)` is what stands outside the scale. `window` is the part shown: [first column,
 * columns, first row, rows].
 */
function mapDrawing({ columns, rows, valueAt, isApart, end, signed, palette, xTitle, yTitle, marked, square, cellMost = 30, window: part }, width) {
  const [c0, cn, r0, rn] = part ?? [0, columns.length, 0, rows.length];
  const left = Math.min(130, Math.max(24, ...rows.slice(r0, r0 + Math.min(rn, 200)).map((name) => Math.min(widthOf(name, 11, 700), 112)))) + 22;
  const room = Math.max(60, width - left - 4);
  const across = Math.min(room, cn * cellMost);
  const cell = across / cn;
  const least = cell < 6 ? across * 0.6 : 24; // a map of few rows and many columns is stretched
  const down = square ? Math.max(Math.min(cell * rn, 1400), Math.min(least, rn * 24)) : Math.max(rn * 14, Math.min(rn * 24, 420));
  const top = 7; // half a label
  const labels = columns.slice(c0, c0 + cn);
  const isFlat = cn <= 200 && labels.every((name) => widthOf(name, 11, 700) <= cell - 6); // labels fit under their columns as one reads them
  const stepX = isFlat ? 1 : everyNth(cn, across, 13);
  const stepY = everyNth(rn, down, 13);
  const bottom = isFlat ? 36 : Math.min(96, Math.max(10, ...labels.filter((_, i) => i % stepX === 0).slice(0, 400).map((name) => widthOf(name)))) + 24;
  const cellHeight = down / rn;
  return {
    width: left + across + 4, height: top + down + bottom + 2, left, across, down, cell, cellHeight, part: [c0, cn, r0, rn],
    /** The cell under a point, or null. */
    cellAt(x, y) {
      const [c, r] = [Math.floor((x - left) / cell), Math.floor((y - top) / cellHeight)];
      return c >= 0 && c < cn && r >= 0 && r < rn ? [c + c0, r + r0] : null;
    },
    boxOf([c, r]) {
      if (c < c0 || c >= c0 + cn || r < r0 || r >= r0 + rn) return null;
      return [left + (c - c0) * cell, top + (r - r0) * cellHeight, cell, cellHeight];
    },
    draw(pen) {
      const [pc, pr] = [Math.min(cn, Math.ceil(across * (pen.scale ?? 2))), Math.min(rn, Math.ceil(down * (pen.scale ?? 2)))];
      pen.cells(left, top, across, down, pc, pr, (c, r) => pooled(c, r, pc, pr));
      pen.rect(left - 0.5, top - 0.5, across + 1, down + 1, { stroke: palette.line });
      for (let i = 0; i < cn; i += stepX) {
        const chosen = marked?.column === i + c0;
        const style = { fill: chosen ? palette.cut : palette.ink, weight: chosen ? 700 : 400 };
        if (isFlat) pen.text(left + (i + 0.5) * cell, top + down + 11, labels[i], { ...style, anchor: "middle" });
        else pen.text(left + (i + 0.5) * cell, top + down + 6, shortened(labels[i], 90), { ...style, anchor: "end", turn: -90 });
      }
      for (let i = 0; i < rn; i += stepY) {
        const chosen = marked?.row === i + r0;
        pen.text(left - 6, top + (i + 0.5) * cellHeight, shortened(rows[i + r0], 108), { anchor: "end", fill: chosen ? palette.cut : palette.ink, weight: chosen ? 700 : 400 });
      }
      pen.text(left + across / 2, top + down + bottom - 8, xTitle, { anchor: "middle", fill: palette.soft });
      pen.text(8, top + down / 2, yTitle, { anchor: "middle", turn: -90, fill: palette.soft });
    },
  };

  /** The largest of the values that share a pixel, so that a single bright cell never disappears; those of the scale first. */
  function pooled(c, r, pc, pr) {
    let best = NaN;
    let apart = NaN;
    for (let j = Math.floor((r * rn) / pr); j < ((r + 1) * rn) / pr; j++) {
      for (let i = Math.floor((c * cn) / pc); i < ((c + 1) * cn) / pc; i++) {
        const value = valueAt(i + c0, j + r0);
        if (isApart(i + c0, j + r0)) apart = larger(apart, value);
        else best = larger(best, value);
      }
    }
    if (!Number.isNaN(best)) return palette.of(best / end, signed);
    return Number.isNaN(apart) ? null : palette.apart(apart / end);
  }
}

/** The edges of a flow among at most `most` positions: what passes through all others is added up in a column of its own. */
function gathered(flow, most) {
  const through = new Map();
  for (const [, query, key, amount] of flow.edges) for (const p of [query, key]) through.set(p, (through.get(p) ?? 0) + amount);
  const ends = [flow.query, flow.input];
  const ranked = [...through.keys()].filter((p) => !ends.includes(p)).sort((a, b) => through.get(b) - through.get(a));
  const kept = new Set([...ends, ...(ranked.length + 2 > most ? ranked.slice(0, Math.max(0, most - 3)) : ranked)]);
  const columns = [...kept].sort((a, b) => a - b);
  const others = ranked.length + new Set(ends).size - columns.length;
  if (others) columns.push(OTHERS);
  const sums = new Map();
  for (const [level, query, key, amount, capacity, cut] of flow.edges) {
    const ends = [query, key].map((p) => (kept.has(p) ? p : OTHERS));
    const name = [level, ...ends, cut].join();
    const edge = sums.get(name) ?? { level, query: ends[0], key: ends[1], amount: 0, capacity: 0, cut, count: 0 };
    edge.amount += amount;
    edge.capacity = capacity === null || edge.capacity === null ? null : edge.capacity + capacity;
    edge.count += 1;
    sums.set(name, edge);
  }
  return { columns, others, edges: [...sums.values()] };
}

const OTHERS = 1e9; // a position to the right of every other

/** The flow of a pair as ribbons: levels down from the query to the input, as wide as what passes. */
function flowDrawing({ flow, labels, palette }, width) {
  const names = ["input", ...flow.levels];
  const left = Math.min(120, Math.max(...names.map((name) => widthOf(name)))) + 16;
  const room = Math.max(width - left - 8, 40);
  const { columns, others, edges } = gathered(flow, Math.max(6, Math.floor(room / 22)));
  const labelOf = (position) => (position === OTHERS ? `${others} other${others > 1 ? "s" : ""}` : labels[position]);
  const cell = Math.min(110, room / columns.length);
  const isFlat = columns.every((p) => widthOf(labelOf(p), 11, 700) <= cell - 6);
  const high = isFlat ? 12 : Math.min(100, Math.max(...columns.map((p) => widthOf(labelOf(p), 11, 700))) + 4);
  const [gap, top] = [flow.levels.length > 8 ? 46 : 64, high + 12];
  const bottom = top + gap * flow.levels.length;
  const columnOf = new Map(columns.map((p, i) => [p, left + (i + 0.5) * cell]));
  const unit = Math.min(cell * 0.8, 56) / (flow.value || 1);
  const yOf = (row) => bottom - row * gap; // row 0 is the input
  return {
    width: Math.min(width, left + cell * columns.length + 8), height: bottom + high + 14,
    draw(pen) {
      names.forEach((name, row) => {
        pen.path(`M${left} ${yOf(row)}H${left + cell * columns.length}`, { stroke: palette.line, line: 1, dash: [1, 4] });
        pen.text(left - 8, yOf(row), shortened(name, left - 12), { anchor: "end", fill: palette.soft });
      });
      const drawn = ribbons().sort((a, b) => a.edge.cut - b.edge.cut);
      for (const { d, edge, wide } of drawn) pen.path(d, { stroke: edge.cut ? palette.cut : palette.flow, line: Math.max(wide, 0.5), opacity: edge.cut ? 0.85 : 0.5, title: inWords(edge) });
      for (const { edge, wide, across } of drawn) if (edge.cut && wide > 2) pen.path(across, { stroke: palette.ground, line: 3 }); // a gap, as scissors leave it
      for (const [key, amount] of throughput()) {
        const [row, position] = key.split(",").map(Number);
        const size = Math.max(amount * unit, 2);
        pen.rect(columnOf.get(position) - size / 2, yOf(row) - 2.5, size, 5, { fill: palette.ink, radius: 1.5 });
      }
      for (const position of columns) {
        name(pen, position, bottom + 10, position === flow.input, "end");
        name(pen, position, top - 10, position === flow.query, "start");
      }
    },
  };

  function name(pen, position, y, strong, anchor) {
    const style = { fill: strong ? palette.cut : position === OTHERS ? palette.soft : palette.ink, weight: strong ? 700 : 400 };
    if (isFlat) pen.text(columnOf.get(position), y, labelOf(position), { ...style, anchor: "middle" });
    else pen.text(columnOf.get(position), y, shortened(labelOf(position), 96), { ...style, anchor, turn: -90 });
  }

  function inWords({ level, query, key, amount, capacity, cut, count }) {
    const of = capacity === null ? "no limit" : numberOf(capacity);
    return `${flow.levels[level]}: ${numberOf(amount)} from “${labelOf(key)}” to “${labelOf(query)}”, of ${of}${count > 1 ? `, in ${count} edges` : ""}${cut ? "; in the minimum cut" : ""}`;
  }

  function throughput() {
    const sums = new Map();
    const add = (row, position, amount) => sums.set(`${row},${position}`, (sums.get(`${row},${position}`) ?? 0) + amount);
    for (const { level, query, key, amount } of edges) {
      add(level + 1, query, amount);
      if (level === 0) add(0, key, amount);
    }
    return sums;
  }

  /** Ribbons stacked side by side where they leave and where they arrive. */
  function ribbons() {
    const starts = stacked("query", "key");
    const stops = stacked("key", "query");
    return edges.map((edge) => {
      const wide = edge.amount * unit;
      const [a, b] = [starts.get(edge), stops.get(edge)];
      const [y0, y1] = [yOf(edge.level + 1) + 2.5, yOf(edge.level) - 2.5];
      const mid = (y0 + y1) / 2;
      const d = `M${a} ${y0}C${a} ${mid} ${b} ${mid} ${b} ${y1}`; // a stroke keeps its width however flat it runs
      const [dx, dy] = [2 * (b - a), y1 - y0]; // where the ribbon is heading halfway
      const k = (wide / 2 + 1) / Math.hypot(dx, dy);
      const [x, h, v] = [(a + b) / 2, dy * k, dx * k];
      return { d, edge, wide, across: `M${x - h} ${mid + v}L${x + h} ${mid - v}` };
    });
  }

  /** The middle of each edge's place at one of its ends, in the order of its other end. */
  function stacked(end, other) {
    const total = new Map();
    const slot = ({ level, [end]: position }) => `${level},${position}`;
    for (const edge of edges) total.set(slot(edge), (total.get(slot(edge)) ?? 0) + edge.amount);
    const next = new Map();
    const middles = new Map();
    for (const edge of [...edges].sort((a, b) => a[other] - b[other] || a.cut - b.cut)) {
      const from = next.get(slot(edge)) ?? columnOf.get(edge[end]) - (total.get(slot(edge)) * unit) / 2;
      next.set(slot(edge), from + edge.amount * unit);
      middles.set(edge, from + (edge.amount * unit) / 2);
    }
    return middles;
  }
}

const VEIL = 0.35;

/** A patch map over its image. */
function patchDrawing({ grid, picture, valueAt, end, signed, palette, smooth, asked, isApart }, width) {
  const [w, h] = grid.size ?? [grid.columns, grid.rows];
  const [l, t, r, b] = grid.box ?? [0, 0, w, h];
  const across = Math.min(width, 560, w < 64 ? grid.columns * 40 : Infinity);
  const k = across / w;
  const [left, top, wide, tall] = [l * k, t * k, (r - l) * k, (b - t) * k];
  const [cw, ch] = [wide / grid.columns, tall / grid.rows];
  return {
    width: across, height: h * k,
    cellAt(x, y) {
      const [c, row] = [Math.floor((x - left) / cw), Math.floor((y - top) / ch)];
      return c >= 0 && c < grid.columns && row >= 0 && row < grid.rows ? [c, row] : null;
    },
    boxOf: ([c, row]) => [left + c * cw, top + row * ch, cw, ch],
    draw(pen) {
      if (picture) {
        pen.image(0, 0, across, h * k, picture, { grey: 0.8 });
        pen.rect(0, 0, across, h * k, { fill: palette.ground, opacity: VEIL }); // paled, so that the only strong colour is the map's
      }
      const paint = (c, row) => {
        const share = valueAt(c, row) / end;
        if (Number.isNaN(share)) return null;
        const [red, green, blue] = isApart(c, row) ? palette.apart(share) : palette.of(share, signed);
        return [red, green, blue, picture ? Math.round(255 * Math.min(1, Math.abs(share)) ** 0.7 * 0.9) : 255];
      };
      pen.cells(left, top, wide, tall, grid.columns, grid.rows, paint, { smooth });
      if (asked) pen.rect(left + asked[0] * cw, top + asked[1] * ch, cw, ch, { stroke: palette.cut, line: 2 });
    },
  };
}

/** Drawings under one another, each with its title, on a ground: what a file holds. */
function sheetOf(parts, width, palette, foot) {
  const [edge, head] = [20, 46];
  const room = width - 2 * edge;
  const laid = parts.map((part) => ({ ...part, drawn: part.make(room) }));
  const height = laid.reduce((sum, { drawn }) => sum + drawn.height + head, 2 * edge + (foot ? 18 : 0));
  return {
    width, height,
    draw(pen) {
      pen.rect(0, 0, width, height, { fill: palette.ground });
      let y = edge;
      for (const { title, said, how, end, signed, drawn } of laid) {
        pen.text(edge, y + 8, shortened(title, room - (end ? 240 : 0), 15), { size: 15, weight: 700, fill: palette.ink });
        pen.text(edge, y + 27, shortened([said, how].filter(Boolean).join(" · "), room), { size: 11, fill: palette.soft });
        if (end) legend(pen, width - edge - 180, y + 4, end, signed, palette);
        pen.at(edge, y + head - 4, () => drawn.draw(pen));
        y += drawn.height + head;
      }
      if (foot) pen.text(edge, height - edge + 4, foot, { size: 10, fill: palette.soft });
    },
  };
}

function legend(pen, x, y, end, signed, palette) {
  for (let i = 0; i < 30; i++) pen.rect(x + 40 + i * 3, y, 3.3, 10, { fill: css(palette.of(signed ? i / 14.5 - 1 : i / 29, signed)) });
  pen.text(x + 36, y + 5, signed ? `−${numberOf(end)}` : "0", { anchor: "end", fill: palette.soft });
  pen.text(x + 136, y + 5, numberOf(end), { fill: palette.soft });
}

// ---- 5 interface -------------------------------------------------------------------------------------------------

function element(name, properties = {}, ...children) {
  const made = globalThis.document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key in made && !key.includes("-") && key !== "list") made[key] = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

let serial = 0;

function choice(label, options, value, onpick) {
  const select = element("select", { "aria-label": label, onchange: () => onpick(select.value) });
  for (const [key, words] of options) select.append(element("option", { value: key, selected: key === value }, words));
  return element("label", { className: "choice" }, element("span", {}, label), select);
}

const THEMES = { auto: ["◐", "as the system"], light: ["☀", "light"], dark: ["☾", "dark"] };

/** Whether the surroundings are dark: a notebook's own theme, else the system's. */
function isDark(media) {
  const { body } = globalThis.document;
  if (body.dataset.jpThemeLight) return body.dataset.jpThemeLight === "false";
  if (/\bvscode-(light|dark)\b/.test(body.className)) return body.classList.contains("vscode-dark");
  return media.matches;
}

class Viewer {
  constructor(root, plain, { page = false, ask = null, onquery = null } = {}) {
    this.root = root;
    this.id = `attnflow-${++serial}`;
    this.page = page;
    this.ask = ask;
    this.onquery = onquery;
    this.dark = globalThis.matchMedia("(prefers-color-scheme: dark)");
    this.schemeChanged = () => this.paintAll();
    this.dark.addEventListener("change", this.schemeChanged);
    this.rethemed = new MutationObserver(this.schemeChanged);
    this.rethemed.observe(globalThis.document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class"] });
    this.resized = new ResizeObserver(() => this.later());
    this.load(plain);
  }

  load(plain) {
    this.document = plain;
    this.texts = plain.texts.map((text) => new Text(text));
    const { words = false, smooth = true, tab = null } = this.state ?? {}; // what the reader chose stays
    this.state = { theme: plain.theme, special: plain.special, words, shared: plain.scale === "shared", smooth, tab, preview: null, cursor: null };
    this.build();
    this.openText(0);
  }

  destroy() {
    this.dark.removeEventListener("change", this.schemeChanged);
    this.resized.disconnect();
    this.rethemed.disconnect();
    this.root.replaceChildren();
  }

  // -- what is chosen

  get text() {
    return this.texts[this.state.text];
  }

  get shown() {
    return this.text.views.filter((_, i) => this.state.methods.has(i));
  }

  get lens() {
    return this.text.units(this.state.words);
  }

  get units() {
    const { units } = this.lens;
    const seen = this.state.special === "hidden" ? units.filter((unit) => !unit.special) : units;
    return seen.length ? seen : units;
  }

  get asked() {
    return this.lens.units[this.lens.unitOf[this.state.preview ?? this.state.pinned]];
  }

  /** Whether a unit belongs to the scale of the asked row. */
  get counts() {
    return counting(this.units, this.asked.index, this.state.special);
  }

  get levelName() {
    return this.text.levels[this.state.level];
  }

  get palette() {
    const scheme = this.state.theme === "auto" ? (isDark(this.dark) ? "dark" : "light") : this.state.theme;
    if (this.inks?.scheme !== scheme) this.inks = new Palette(this.document.ramps, scheme);
    return this.inks;
  }

  // -- building the page, once

  build() {
    const { document: plain } = this;
    this.root.classList.add("attnflow");
    this.live = element("p", { className: "hidden", "aria-live": "polite" });
    this.tip = element("div", { className: "tip", "aria-hidden": "true" });
    this.controls = element("div", { className: "controls", role: "group", "aria-label": "What to show" });
    this.heading = element("h2", { className: "question" });
    this.hint = element("p", { className: "hint" });
    this.how = element("p", { className: "caption" });
    this.panels = element("div", { className: "panels" });
    this.tabs = element("div", { className: "tabs", role: "tablist", "aria-label": "Pictures" });
    this.picture = element("div", { className: "picture", role: "tabpanel", id: `${this.id}-picture`, tabIndex: 0 });
    this.said = element("footer", { className: "said" });
    this.themeButton = element("button", { type: "button", className: "theme", onclick: () => this.nextTheme() });
    const texts = this.texts.length < 2 ? null : choice("Text", this.texts.map((text, i) => [String(i), `${i + 1}. ${text.name}`]), "0", (i) => this.openText(Number(i)));
    this.textSection = element("section", { "aria-label": "Text" }, element("div", { className: "row top" }, element("div", { className: "asking" }, this.heading, this.how, this.hint), this.files("text")), this.panels);
    this.pictureSection = element("section", { "aria-label": "Pictures" }, element("div", { className: "row" }, this.tabs, this.files("picture")), this.picture);
    this.root.replaceChildren(
      element("header", { className: "row masthead" }, element(this.page ? "h1" : "p", { className: "title" }, plain.title), texts, this.themeButton),
      this.controls, this.textSection, this.pictureSection, this.said, this.tip, this.live,
    );
    this.resized.observe(this.root);
    this.root.addEventListener("keydown", (event) => event.key === "Escape" && this.unpin());
  }

  files(what) {
    const button = (form, words) => element("button", { type: "button", onclick: () => this.save(what, form), "aria-label": `Download the ${what === "text" ? "coloured text" : "picture"} as ${words}` }, `↓ ${words}`);
    return element("div", { className: "files" }, button("svg", "SVG"), button("png", "PNG"), button("csv", "CSV"));
  }

  openText(number) {
    const text = this.texts[number];
    const level = this.document.level;
    const count = Math.max(text.levels.length, 1);
    Object.assign(this.state, {
      text: number, methods: new Set(text.views.map((_, i) => i).slice(0, 4)), pinned: text.query, preview: null, cursor: null, pair: 0,
      level: Math.min(Math.max(level < 0 ? count + level : level, 0), count - 1), words: this.state.words && text.words.length > 0, window: null,
    });
    this.pictures = text.grids.map((grid) => {
      if (!grid.image) return null;
      const picture = new Image();
      picture.onload = () => this.later();
      picture.src = grid.image;
      return picture;
    });
    const tabs = this.tabNames().map(([key]) => key);
    if (!tabs.includes(this.state.tab)) this.state.tab = tabs[0];
    this.buildControls();
    this.buildTabs();
    this.buildPanels();
    this.paintAll();
  }

  buildControls() {
    const { text, state } = this;
    const chips = text.views.map((view, i) => {
      const box = element("input", { type: "checkbox", checked: state.methods.has(i), onchange: () => this.pickMethod(i, box) });
      return element("label", { className: "chip" }, box, element("span", {}, view.method));
    });
    this.slider = element("input", {
      type: "range", min: 0, max: Math.max(text.levels.length - 1, 0), value: state.level, disabled: text.levels.length < 2, "aria-label": "Level",
      oninput: () => this.change({ level: Number(this.slider.value) }),
    });
    this.levelSaid = element("output", { className: "level" });
    const parts = [];
    if (chips.length > 1) parts.push(element("fieldset", { className: "methods" }, element("legend", {}, "Methods"), ...chips));
    if (text.levels.length) parts.push(element("label", { className: "choice wide" }, element("span", {}, "Level"), this.slider, this.levelSaid));
    if (text.special.length || text.views.length) {
      const policies = [["unscaled", "not in the scale"], ["shown", "in the scale"], ["hidden", "hidden"]];
      parts.push(choice("Special tokens and own entry", policies, state.special, (special) => this.change({ special }, true)));
    }
    if (text.words.some(([start, stop]) => stop - start > 1)) {
      parts.push(choice("Units", [["tokens", "tokens"], ["words", "words"]], state.words ? "words" : "tokens", (unit) => this.change({ words: unit === "words", window: null, cursor: null }, true)));
    }
    if (text.views.length > 1) {
      parts.push(choice("Scale", [["shared", "shared"], ["separate", "separate"]], state.shared ? "shared" : "separate", (scale) => this.change({ shared: scale === "shared" })));
    }
    this.controls.replaceChildren(...parts);
    this.controls.hidden = !text.views.length;
  }

  pickMethod(number, box) {
    const methods = new Set(this.state.methods);
    box.checked ? methods.add(number) : methods.delete(number);
    if (!methods.size) {
      box.checked = true; // at least one stays
      return;
    }
    this.change({ methods }, true);
  }

  tabNames() {
    const { text } = this;
    const names = [];
    if (text.grids.length && text.views.length) names.push(["image", "Image"]);
    if (text.views.length) names.push(["levels", "Levels × tokens"], ["matrix", "Queries × inputs"]);
    if (text.flows.length || this.ask) names.push(["flow", "Flow of a pair"]);
    return names;
  }

  buildTabs() {
    const names = this.tabNames();
    const pick = (key) => {
      this.state.cursor = this.state.window = null;
      this.change({ tab: key });
      for (const tab of this.tabs.children) this.markTab(tab);
    };
    this.tabs.replaceChildren(...names.map(([key, words], i) => {
      const tab = element("button", {
        type: "button", role: "tab", "data-tab": key, id: `${this.id}-tab-${key}`, "aria-controls": this.picture.id, onclick: () => pick(key),
        onkeydown: (event) => {
          const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
          if (!step) return;
          const next = this.tabs.children[(i + step + names.length) % names.length];
          next.click();
          next.focus();
        },
      }, words);
      this.markTab(tab);
      return tab;
    }));
    this.pictureSection.hidden = !names.length;
  }

  markTab(tab) {
    const chosen = tab.dataset.tab === this.state.tab;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    if (chosen) this.picture.setAttribute("aria-labelledby", tab.id);
  }

  buildPanels() {
    this.textSection.hidden = !this.text.views.length;
    this.made = this.shown.map((view) => this.panelOf(view));
    this.panels.replaceChildren(...this.made.map((made) => made.panel));
    this.panels.classList.toggle("alone", this.made.length === 1);
    this.root.classList.toggle("long", this.text.labels.length > 200); // colours change at once where there are many
  }

  /** A method's text: one button for each unit, one of them in the tab order; arrows go on from there. */
  panelOf(view) {
    const strip = element("div", { className: "strip", dir: "auto", role: "group", "aria-label": `The text, coloured by ${view.method}. Arrow keys move, Enter pins.` });
    const buttons = [];
    const seen = this.units.filter((unit) => !unit.patch);
    seen.forEach((unit, i) => {
      if (i && !unit.joined) strip.append(" ");
      const button = element("button", { type: "button", className: unit.joined ? "unit joined" : "unit", tabIndex: -1, "data-unit": unit.index }, unit.label);
      buttons.push(button);
      strip.append(button);
    });
    const unitOfEvent = (event) => {
      const button = event.target.closest?.(".unit");
      return button ? this.lens.units[Number(button.dataset.unit)] : null;
    };
    strip.addEventListener("pointerover", (event) => event.pointerType === "mouse" && this.preview(unitOfEvent(event), event));
    strip.addEventListener("pointermove", (event) => event.pointerType === "mouse" && this.moveTip(event));
    strip.addEventListener("pointerleave", () => this.preview(null));
    strip.addEventListener("click", (event) => unitOfEvent(event) && this.pin(unitOfEvent(event)));
    strip.addEventListener("focusin", (event) => this.focused(unitOfEvent(event), event.target));
    strip.addEventListener("focusout", () => this.preview(null));
    strip.addEventListener("keydown", (event) => this.walk(event, buttons));
    const parts = {
      view, strip, buttons, end: element("span"), start: element("span"), bar: element("i", { className: "ramp" }),
      top: element("tbody"), note: element("p", { className: "note" }), missing: element("p", { className: "missing" }), caption: element("p", { className: "caption" }),
    };
    parts.panel = element("article", { className: "panel", "aria-label": view.method },
      element("div", { className: "row" }, element("h3", {}, view.method), element("span", { className: "legend", "aria-hidden": "true" }, parts.start, parts.bar, parts.end)),
      parts.caption, parts.missing, buttons.length ? strip : null,
      element("table", { className: "top" }, element("caption", { className: "hidden" }, "The largest inputs"), parts.top), parts.note);
    return parts;
  }

  walk(event, buttons) {
    const here = buttons.indexOf(event.target);
    const rtl = getComputedStyle(event.currentTarget).direction === "rtl";
    const next = { ArrowRight: here + (rtl ? -1 : 1), ArrowLeft: here + (rtl ? 1 : -1), ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (next === undefined || here < 0) return;
    event.preventDefault();
    buttons[Math.max(0, Math.min(next, buttons.length - 1))].focus();
  }

  // -- what the reader does

  change(changes, rebuild = false) {
    Object.assign(this.state, changes);
    if (rebuild) this.buildPanels();
    this.paintAll();
  }

  pin(unit) {
    const same = this.lens.unitOf[this.state.pinned] === unit.index && unit.positions[0] !== this.text.query;
    this.state.pinned = same ? this.text.query : unit.positions.find((p) => p === this.state.pinned) ?? unit.positions[0];
    this.state.preview = null;
    this.onquery?.(this.state.pinned);
    this.announce(`${same ? "Back to" : "Pinned"} “${this.asked.label}”`);
    this.paintAll();
  }

  unpin() {
    this.state.pinned = this.text.query;
    this.state.preview = null;
    this.tip.classList.remove("on");
    this.onquery?.(this.state.pinned);
    this.paintAll();
  }

  preview(unit, event) {
    const position = unit ? unit.positions[0] : null;
    if (!unit) this.tip.classList.remove("on");
    if (position === this.state.preview) return;
    if (unit && event) this.showTip(this.valueOf(unit), event);
    this.state.preview = position;
    this.later(true);
  }

  focused(unit, button) {
    if (!unit) return;
    for (const { buttons } of this.made) if (buttons.includes(button)) for (const other of buttons) other.tabIndex = other === button ? 0 : -1;
    this.announce(this.valueOf(unit).join(". "));
    if (button.matches(":focus-visible")) this.preview(unit);
  }

  /** What the pinned query draws on this unit, method by method. */
  valueOf(unit) {
    const pinned = this.lens.units[this.lens.unitOf[this.state.pinned]];
    const lines = [`“${unit.label}”, position ${unit.positions[0]}${unit.special ? ", special" : ""}`];
    for (const view of this.shown) {
      const level = view.levels.indexOf(this.levelName);
      if (level < 0 || !view.isReady(level)) continue;
      const row = rowOf(view, level, pinned, this.lens);
      if (row) lines.push(`${view.method}: “${pinned.label}” draws ${numberOf(row[unit.index])}`);
    }
    return lines;
  }

  showTip(lines, event) {
    this.tip.replaceChildren(...lines.map((line, i) => element(i ? "span" : "b", {}, line)));
    this.tip.classList.add("on");
    this.moveTip(event);
  }

  moveTip(event) {
    const box = this.root.getBoundingClientRect();
    const x = Math.min(event.clientX - box.left + 14, box.width - this.tip.offsetWidth - 8);
    const below = event.clientY + 18 + this.tip.offsetHeight < globalThis.innerHeight;
    const y = event.clientY - box.top + (below ? 18 : -10 - this.tip.offsetHeight);
    this.tip.style.transform = `translate(${Math.max(4, x)}px, ${y}px)`;
  }

  announce(words) {
    this.live.textContent = words;
  }

  nextTheme() {
    const names = Object.keys(THEMES);
    this.change({ theme: names[(names.indexOf(this.state.theme) + 1) % names.length] });
  }

  // -- painting

  /** Once a frame, however often something changed; `light` leaves the pictures as they are. */
  later(light = false) {
    this.heavy = this.heavy || !light;
    this.root.dataset.painted = "";
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = null;
      const heavy = this.heavy;
      this.heavy = false;
      this.paint(heavy);
    });
  }

  paintAll() {
    this.later();
  }

  async paint(heavy) {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    this.paintFrame();
    await Promise.all(this.shown.map((view) => view.levels.indexOf(this.levelName)).map((level, i) => (level < 0 ? null : this.shown[i].ready(level))));
    if (turn !== this.turn) {
      this.heavy = this.heavy || heavy; // the newer turn paints this too
      return;
    }
    this.paintText();
    this.root.dataset.painted = "text";
    performance.mark("attnflow-text"); // what a benchmark of the first paint reads
    if (heavy || this.state.tab === "levels" || this.state.tab === "image") await this.paintPicture(turn);
    if (turn === this.turn) this.root.dataset.painted = "all";
  }

  paintFrame() {
    const { palette, state, text } = this;
    this.root.dataset.scheme = palette.scheme;
    const [sign, words] = THEMES[state.theme];
    this.themeButton.textContent = sign;
    this.themeButton.setAttribute("aria-label", `Colours: ${words}. Change`);
    this.themeButton.title = `Colours: ${words}`;
    this.levelSaid.textContent = this.levelName ?? "";
    this.slider.setAttribute("aria-valuetext", this.levelName ?? "");
    if (text.views.length) {
      const held = state.preview === null ? "" : " (hover)";
      this.heading.replaceChildren("What ", element("b", { dir: "auto" }, `“${this.asked.label}”`), ` draws on, at ${this.levelName}`, element("small", {}, held));
      const pinned = state.pinned !== text.query;
      this.how.textContent = this.common;
      const what = pinned ? "Pinned. Click it again, or press Escape, to go back." : "Hover or tap a token to see what it draws on; click to pin it.";
      this.hint.replaceChildren(what, ...this.greyKey());
    }
    this.said.textContent = this.precision();
  }

  /** How what is shown was made, where that is the same for all. */
  get common() {
    const captions = new Set(this.shown.map((view) => view.caption));
    return captions.size === 1 ? [...captions][0] : "";
  }

  /** What grey means, if something is. */
  greyKey() {
    const { asked, counts } = this;
    const special = this.units.some((unit) => unit.special && unit !== asked && !counts(unit));
    if (counts(asked)) return [];
    const names = [special ? "special tokens" : "", this.units.includes(asked) ? `“${asked.label}” itself` : ""].filter(Boolean).join(" and ");
    return names ? [element("span", { className: "key" }, element("i", { className: "swatch apart" }), `not in the scale: ${names}`)] : [];
  }

  /** What the reader must know of the numbers on this page. */
  precision() {
    const { text } = this;
    if (!text.views.length) return this.document.made_by;
    const worst = Math.max(...text.views.map((view) => view.cube.error));
    const rounded = worst < 1e-4 ? "Values are exact to four digits of each row’s scale." : `Values are rounded: off by at most ${numberOf(worst * 100)} % of each row’s largest regular value; special tokens and own entries are exact.`;
    const fewer = text.views.some((view) => view.queries.length < text.labels.length) ? ` Rows of ${Math.min(...text.views.map((view) => view.queries.length))} of ${text.labels.length} queries are in this page.` : "";
    return `${rounded}${fewer} ${this.document.made_by}.`;
  }

  /** Each shown view's row for the asked query, and the end of its scale. */
  rows() {
    const { units, lens, state } = this;
    const rows = this.shown.map((view) => {
      const level = view.levels.indexOf(this.levelName);
      return { view, level, row: level < 0 ? null : rowOf(view, level, this.asked, lens) };
    });
    const ends = rows.map(({ row }) => endOf([row], units, this.asked.index, state.special));
    return rows.map((found, i) => ({ ...found, end: this.sharedEnd(ends, i) }));
  }

  /** One scale for all methods, if wanted; a signed difference has its own. */
  sharedEnd(ends, i) {
    if (!this.state.shared || this.shown[i].signed) return ends[i];
    return Math.max(...ends.filter((_, j) => !this.shown[j].signed));
  }

  paintText() {
    const { palette, asked, state, counts } = this;
    const pinned = this.lens.unitOf[state.pinned];
    this.rows().forEach(({ view, level, row, end }, i) => {
      const { buttons, start, bar, end: stop, top, note, missing, caption } = this.made[i];
      caption.textContent = this.common ? "" : view.caption;
      start.textContent = view.signed ? `−${numberOf(end)}` : "0";
      stop.textContent = numberOf(end);
      bar.style.backgroundImage = palette.gradient(view.signed);
      missing.textContent = row ? "" : level < 0 ? `${view.method} was not computed at ${this.levelName}.` : `There is no row of “${asked.label}” for ${view.method} here.`;
      let tabbable = false;
      for (const button of buttons) {
        const index = Number(button.dataset.unit);
        const value = row ? row[index] : NaN;
        const share = Number.isNaN(value) ? 0 : value / end;
        const ground = Math.abs(share) < 0.004 ? null : counts(this.lens.units[index]) ? palette.of(share, view.signed) : palette.apart(share);
        button.style.backgroundColor = ground ? css(ground) : "";
        button.style.color = ground ? inkOn(ground) : "";
        button.classList.toggle("asked", index === asked.index);
        if (index === pinned) button.setAttribute("aria-pressed", "true");
        else if (button.hasAttribute("aria-pressed")) button.removeAttribute("aria-pressed");
        tabbable = tabbable || button.tabIndex === 0;
      }
      if (!tabbable && buttons.length) buttons[0].tabIndex = 0;
      this.paintTop(top, row, end, view);
      note.textContent = level < 0 ? "" : view.notes[level] || "";
    });
  }

  paintTop(body, row, end, view) {
    if (!row) return body.replaceChildren();
    const { counts, palette } = this;
    const counted = this.units.filter((unit) => !Number.isNaN(row[unit.index]) && counts(unit));
    const best = counted.sort((a, b) => Math.abs(row[b.index]) - Math.abs(row[a.index])).slice(0, 6);
    body.replaceChildren(...best.map((unit) => {
      const bar = element("i", { className: "length" });
      bar.style.width = `${Math.min(100, (100 * Math.abs(row[unit.index])) / end)}%`;
      bar.style.backgroundColor = row[unit.index] < 0 ? palette.cut : palette.flow;
      return element("tr", {}, element("th", { scope: "row", dir: "auto" }, unit.label), element("td", {}, numberOf(row[unit.index])), element("td", { "aria-hidden": "true" }, bar));
    }));
    return undefined;
  }

  async paintPicture(turn) {
    const { tab } = this.state;
    if (!tab) return;
    if (tab === "flow") {
      this.paintFlow();
      return;
    }
    const parts = await this.partsOf(tab);
    if (turn !== this.turn) return;
    const hosts = this.hostsFor(parts.length, tab);
    this.plates.style.setProperty("--least", `${this.leastWidth(tab)}px`);
    parts.forEach((part, i) => this.paintPart(part, hosts[i]));
  }

  /** The drawings of a tab, one for each shown view, with what the pointer finds in them. */
  async partsOf(tab) {
    if (tab === "levels") await Promise.all(this.shown.flatMap((view) => view.levels.map((_, level) => view.ready(level))));
    else await Promise.all(this.shown.map((view) => view.levels.indexOf(this.levelName)).map((level, i) => (level < 0 ? null : this.shown[i].ready(level))));
    return { levels: () => this.levelParts(), matrix: () => this.matrixParts(), image: () => this.imageParts() }[tab]();
  }

  levelParts() {
    const { units, lens, state, palette, asked, counts } = this;
    const found = this.shown.map((view) => view.levels.map((_, level) => rowOf(view, level, asked, lens)));
    const ends = found.map((rows) => endOf(rows, units, asked.index, state.special));
    return this.shown.map((view, i) => {
      const rows = found[i];
      const top = rows.length - 1; // the highest level is drawn first
      const make = (width) => mapDrawing({
        columns: units.map((unit) => unit.label), rows: [...view.levels].reverse(), valueAt: (c, r) => rows[top - r]?.[units[c].index] ?? NaN,
        isApart: (c) => !counts(units[c]), end: this.sharedEnd(ends, i), signed: view.signed, palette, xTitle: "input", yTitle: "level", cellMost: 72,
        marked: { row: top - view.levels.indexOf(this.levelName), column: units.findIndex((unit) => unit.index === asked.index) }, window: state.window,
      }, width);
      return {
        title: view.method, said: `query “${asked.label}” · every level`, how: view.caption, end: this.sharedEnd(ends, i), signed: view.signed, make,
        size: [units.length, rows.length],
        describe: ([c, r]) => [`“${units[c].label}” at ${view.levels[top - r]}`, `${view.method}: “${asked.label}” draws ${numberOf(rows[top - r]?.[units[c].index] ?? NaN)}`],
        pick: ([, r]) => this.setLevel(view.levels[top - r]),
      };
    });
  }

  matrixParts() {
    const { units, lens, state, palette } = this;
    const tables = this.shown.map((view) => {
      const level = view.levels.indexOf(this.levelName);
      const asked = level < 0 ? [] : units.filter((unit) => unit.positions.some((q) => view.rowOf.has(q)));
      return { asked, rows: asked.map((unit) => rowOf(view, level, unit, lens)) };
    });
    const ends = tables.map(({ asked, rows }) => endOf(rows, units, asked.map((unit) => unit.index), state.special));
    const pinned = lens.unitOf[state.pinned];
    const counts = counting(units, null, state.special);
    const leftOut = units.map((unit) => !counts(unit));
    const own = state.special !== "shown" && units.length > 1;
    return this.shown.map((view, i) => {
      const { asked, rows } = tables[i];
      const make = (width) => mapDrawing({
        columns: units.map((unit) => unit.label), rows: asked.map((unit) => unit.label), valueAt: (c, r) => rows[r][units[c].index],
        isApart: (c, r) => leftOut[c] || (own && units[c] === asked[r]), end: this.sharedEnd(ends, i), signed: view.signed, palette, xTitle: "input", yTitle: "query", square: true,
        marked: { row: asked.findIndex((unit) => unit.index === pinned), column: -1 }, window: state.window,
      }, width);
      return {
        title: view.method, said: `${asked.length ? "every query" : "not computed"} · ${this.levelName}`, how: view.caption, end: this.sharedEnd(ends, i), signed: view.signed,
        make: asked.length ? make : null, size: [units.length, asked.length],
        describe: ([c, r]) => [`“${asked[r].label}” draws on “${units[c].label}”`, `${view.method}: ${numberOf(rows[r][units[c].index])}`],
        pick: ([, r]) => this.pin(asked[r]),
      };
    });
  }

  imageParts() {
    const { state, palette, text, asked, lens } = this;
    const found = this.rows();
    const patchUnits = lens.units.filter((unit) => unit.patch);
    const ends = found.map(({ row }) => endOf([row], patchUnits, asked.index, state.special));
    const counts = counting(patchUnits, asked.index, state.special);
    return found.flatMap(({ view, row }, i) => text.grids.map((grid, g) => {
      const unitAt = ([c, r]) => lens.units[lens.unitOf[grid.offset + r * grid.columns + c]];
      const own = asked.positions[0] - grid.offset;
      const inside = own >= 0 && own < grid.rows * grid.columns;
      return {
        title: view.method, said: `query “${asked.label}” · ${this.levelName}`, how: view.caption, end: this.sharedEnd(ends, i), signed: view.signed,
        size: [grid.columns, grid.rows], hover: true, smoothable: true,
        make: (width) => patchDrawing({
          grid, picture: this.pictures[g], valueAt: (c, r) => row?.[unitAt([c, r]).index] ?? NaN, end: this.sharedEnd(ends, i), signed: view.signed, palette,
          isApart: (c, r) => !counts(unitAt([c, r])), smooth: state.smooth, asked: inside ? [own % grid.columns, Math.floor(own / grid.columns)] : null,
        }, width),
        unitAt,
        describe: (cell) => [`patch in row ${cell[1]}, column ${cell[0]}`, ...this.valueOf(unitAt(cell)).slice(1)],
        pick: (cell) => this.pin(unitAt(cell)),
      };
    }));
  }

  setLevel(name) {
    const level = this.text.levels.indexOf(name);
    this.slider.value = level;
    this.announce(name);
    this.change({ level });
  }

  /** From this width on a picture reads well; as many as there is room for stand side by side. */
  leastWidth(tab) {
    const each = { levels: 20, matrix: 9, image: 0 }[tab];
    return Math.max(300, Math.min(110 + each * this.units.length, tab === "matrix" ? 520 : 1e4));
  }

  /** A figure with a canvas for each part; made again only when their number changes, so that focus stays. */
  hostsFor(count, tab) {
    const key = `${tab} ${count}`;
    if (this.hosts?.key !== key) {
      this.hosts = Array.from({ length: count }, () => this.host());
      this.hosts.key = key;
      this.plates = element("div", { className: "plates" }, ...this.hosts.map((host) => host.figure));
      const smooth = element("input", { type: "checkbox", checked: this.state.smooth, onchange: () => this.change({ smooth: smooth.checked }) });
      this.zoomOut = element("button", { type: "button", className: "zoom", onclick: () => this.change({ window: null }) }, "Whole map");
      const keys = element("p", { className: "hint" }, tab === "image" ? "Hover a patch to see what it draws on; click to pin it. " : "Hover for values; click a row to choose it; drag to zoom. With the keyboard: arrows and Enter. ", this.zoomOut);
      this.picture.replaceChildren(...(tab === "image" ? [element("label", { className: "chip" }, smooth, element("span", {}, "smooth"))] : []), keys, this.plates);
    }
    this.zoomOut.hidden = !this.state.window;
    return this.hosts;
  }

  host() {
    const host = { canvas: element("canvas", { tabIndex: 0, role: "application", "aria-roledescription": "map" }) };
    const parts = { title: element("h3"), said: element("p", { className: "caption" }), start: element("span"), bar: element("i", { className: "ramp" }), end: element("span"), cursor: element("i", { className: "cursor", hidden: true }) };
    parts.caption = element("figcaption", {}, element("div", { className: "row" }, parts.title, element("span", { className: "legend", "aria-hidden": "true" }, parts.start, parts.bar, parts.end)), parts.said);
    host.figure = element("figure", { className: "plate" }, parts.caption, element("div", { className: "stage" }, host.canvas, parts.cursor));
    Object.assign(host, parts);
    const { canvas } = host;
    const cellOf = (event) => host.drawn?.cellAt(event.offsetX, event.offsetY);
    canvas.addEventListener("pointerdown", (event) => (host.drag = cellOf(event)));
    canvas.addEventListener("pointermove", (event) => this.hovered(host, cellOf(event), event));
    canvas.addEventListener("pointerleave", () => this.left());
    canvas.addEventListener("click", (event) => this.released(host, cellOf(event)));
    canvas.addEventListener("dblclick", () => this.change({ window: null }));
    canvas.addEventListener("keydown", (event) => this.steered(host, event));
    canvas.addEventListener("blur", () => this.left());
    return host;
  }

  hovered(host, cell, event) {
    if (!cell) return this.left();
    const same = this.state.cursor && cell[0] === this.state.cursor[0] && cell[1] === this.state.cursor[1];
    if (same) return this.moveTip(event);
    this.state.cursor = cell;
    this.showTip(host.part.describe(cell), event);
    if (host.part.hover && event.pointerType === "mouse") this.state.preview = host.part.unitAt(cell).positions[0];
    this.repaint(host.part.hover);
    return undefined;
  }

  left() {
    this.tip.classList.remove("on");
    if (!this.state.cursor) return;
    this.state.cursor = null;
    const image = this.state.preview !== null;
    this.state.preview = null;
    this.repaint(image);
  }

  /** The frame around the cell moves, in every part; where the query moves along, all is drawn again. */
  repaint(all) {
    for (const host of this.hosts ?? []) this.placeCursor(host);
    if (all) this.later();
  }

  placeCursor({ canvas, cursor, drawn }) {
    const box = this.state.cursor && drawn?.boxOf(this.state.cursor);
    canvas.dataset.cursor = this.state.cursor?.join(",") ?? "";
    cursor.hidden = !box;
    if (!box) return;
    const [x, y, width, height] = box;
    cursor.style.transform = `translate(${x - 2}px, ${y - 2}px)`;
    cursor.style.width = `${Math.max(width, 3) + 4}px`;
    cursor.style.height = `${Math.max(height, 3) + 4}px`;
  }

  released(host, cell) {
    const from = host.drag;
    host.drag = null;
    if (!cell || !from) return;
    const [w, h] = [Math.abs(cell[0] - from[0]) + 1, Math.abs(cell[1] - from[1]) + 1];
    const wide = host.drawn.cell * w > 12 && host.drawn.cellHeight * h > 8;
    if ((w > 2 || h > 2) && wide && host.drawn.part) this.change({ window: [Math.min(cell[0], from[0]), w, Math.min(cell[1], from[1]), h], cursor: null });
    else {
      this.state.preview = null;
      host.part.pick(cell);
    }
  }

  steered(host, event) {
    const [columns, rows] = host.part.size;
    const [c, r] = this.state.cursor ?? [0, 0];
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (this.state.cursor) host.part.pick(this.state.cursor);
      return;
    }
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const first = this.state.cursor === null;
    this.state.cursor = first ? [0, 0] : [Math.max(0, Math.min(columns - 1, c + step[0])), Math.max(0, Math.min(rows - 1, r + step[1]))];
    this.announce(host.part.describe(this.state.cursor).join(". "));
    this.repaint(false);
  }

  paintPart(part, host) {
    host.part = part;
    host.title.textContent = part.title;
    host.said.textContent = [part.said, this.common ? "" : part.how].filter(Boolean).join(" · ");
    host.start.textContent = part.signed ? `−${numberOf(part.end)}` : "0";
    host.end.textContent = numberOf(part.end);
    host.bar.style.backgroundImage = this.palette.gradient(part.signed);
    host.canvas.setAttribute("aria-label", `${part.title}: ${part.said}. Arrow keys read values, Enter chooses.`);
    const width = Math.max(host.figure.clientWidth, 200);
    if (!part.make) {
      host.canvas.hidden = true;
      return;
    }
    host.canvas.hidden = false;
    host.drawn = part.make(width);
    const { height } = host.drawn;
    host.canvas.style.width = `${host.drawn.width}px`;
    host.canvas.style.height = `${height}px`;
    host.caption.style.maxWidth = `${Math.max(host.drawn.width, 260)}px`;
    this.placeCursor(host);
    const pen = new CanvasPen(host.canvas, host.drawn.width, height, globalThis.devicePixelRatio || 1);
    host.drawn.draw(pen);
  }

  paintFlow() {
    this.hosts = null;
    const { text, state, palette } = this;
    const flow = text.flows[state.pair];
    const pairs = text.flows.map((one, i) => [String(i), `“${text.labels[one.query]}” ← “${text.labels[one.input]}”: ${numberOf(one.value)}${one.levels.length < Math.max(...text.flows.map((f) => f.levels.length)) ? ` (${one.levels.at(-1)})` : ""}`]);
    const parts = [];
    if (pairs.length > 1) parts.push(choice("Pair", pairs, String(state.pair), (i) => this.change({ pair: Number(i) })));
    if (this.ask) parts.push(this.asker());
    if (flow) {
      const drawing = flowDrawing({ flow, labels: text.labels, palette }, Math.max(this.picture.clientWidth - 8, 280));
      const pen = new SvgPen(drawing.width, drawing.height, palette);
      drawing.draw(pen);
      pen.root.setAttribute("role", "img");
      pen.root.setAttribute("aria-label", `${this.flowSentence(flow)} ${flow.limit}`);
      pen.root.classList.add("flow");
      parts.push(element("p", { className: "sentence" }, element("b", {}, this.flowSentence(flow)), ` ${flow.limit}`));
      if (flow.caption !== this.common) parts.push(element("p", { className: "caption" }, flow.caption));
      parts.push(element("p", { className: "hint" }, element("span", { className: "key" }, element("i", { className: "swatch" }), "what flows, as wide as it is much"), element("span", { className: "key" }, element("i", { className: "swatch cut" }), "the minimum cut: edges that carry all they can, and together limit the pair")));
      parts.push(element("div", { className: "scroll" }, pen.root), this.pathTable(flow));
    }
    this.picture.replaceChildren(...parts);
  }

  flowSentence(flow) {
    return `${numberOf(flow.value)} flows from “${this.text.labels[flow.input]}” up to “${this.text.labels[flow.query]}”.`;
  }

  pathTable(flow) {
    const { labels } = this.text;
    const small = (level) => String(level).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);
    const label = (p) => element("bdi", {}, labels[p]); // its direction ends with it
    const steps = (positions) => positions.flatMap((p, i) => (i === 0 ? [label(p)] : p === positions[i - 1] ? [] : [` →${small(positions.length - 1 - i)} `, label(p)]));
    const rows = flow.paths.slice(0, 12).map(([amount, positions]) => element("tr", {}, element("td", {}, numberOf(amount)), element("td", {}, ...steps(positions))));
    const cut = flow.edges.filter((edge) => edge[5]).sort((a, b) => b[3] - a[3]);
    const cutRows = cut.slice(0, 12).map((edge) => element("tr", {}, element("td", {}, numberOf(edge[3])), element("td", {}, `${flow.levels[edge[0]]}: `, label(edge[1]), " ← ", label(edge[2]))));
    const table = (words, body, more) => element("table", { className: "paths" }, element("caption", {}, words), element("tbody", {}, ...body), more > 0 ? element("tfoot", {}, element("tr", {}, element("td", { colSpan: 2 }, `${more} more`))) : null);
    return element("div", { className: "plates lists" }, table("The largest paths, from the query down (→₃ is a step at level 3)", rows, flow.paths.length - 12), table("The minimum cut", cutRows, cut.length - 12));
  }

  /** For a live page: any pair can be asked for. */
  asker() {
    const { text, state } = this;
    const options = text.labels.map((label, i) => [String(i), `${i} ${label}`]);
    const last = state.last?.pinned === state.pinned ? state.last : { query: state.pinned, input: 0 };
    const pair = { query: last.query, input: last.input };
    const ask = async () => {
      try {
        const view = this.shown[0];
        text.flows.unshift(await this.ask(state.text, pair.query, pair.input, view ? view.levels.indexOf(this.levelName) : -1));
        this.change({ pair: 0, last: { ...pair, pinned: state.pinned } });
      } catch (error) {
        this.announce(error.message);
        this.picture.prepend(element("p", { className: "note", role: "alert" }, error.message));
      }
    };
    return element("div", { className: "controls" },
      choice("Query", options, String(pair.query), (q) => (pair.query = Number(q))), choice("Input", options, String(pair.input), (i) => (pair.input = Number(i))),
      element("button", { type: "button", className: "zoom", onclick: ask }, "Show the flow"));
  }

  // -- files

  async sheet(what) {
    const { palette, text, state } = this;
    this.state.preview = null; // a file shows what is pinned
    const grey = what === "picture" && state.tab === "flow" ? "" : this.greyKey().map((key) => `Grey, ${key.textContent}.`).join("");
    const foot = `${this.precision()} ${grey}`.trim();
    let parts;
    if (what === "text") {
      await Promise.all(this.shown.map((view) => view.levels.indexOf(this.levelName)).map((level, i) => (level < 0 ? null : this.shown[i].ready(level))));
      parts = this.rows().map(({ view, row, end }) => ({
        title: view.method, said: `query “${this.asked.label}” · ${this.levelName}`, how: view.caption, end, signed: view.signed,
        make: (width) => stripDrawing({ units: this.units.filter((unit) => !unit.patch), row, end, signed: view.signed, asked: this.asked.index, counts: this.counts, palette }, width),
      }));
    } else if (this.state.tab === "flow") {
      const flow = text.flows[this.state.pair];
      parts = [{ title: this.flowSentence(flow), said: flow.limit, make: (width) => flowDrawing({ flow, labels: text.labels, palette }, width) }];
    } else parts = (await this.partsOf(this.state.tab)).filter((part) => part.make);
    const sheet = sheetOf(parts, 1000, palette, foot);
    return sheet;
  }

  async save(what, form) {
    const name = `attnflow-${what === "text" ? "text" : this.state.tab}-${this.levelName ?? "flow"}`.replace(/[^\w-]+/g, "-");
    if (form === "csv") return this.offer(new Blob([await this.table(what)], { type: "text/csv;charset=utf-8" }), `${name}.csv`);
    const sheet = await this.sheet(what);
    if (form === "svg") {
      const pen = new SvgPen(sheet.width, sheet.height, this.palette);
      sheet.draw(pen);
      return this.offer(new Blob([new XMLSerializer().serializeToString(pen.root)], { type: "image/svg+xml" }), `${name}.svg`);
    }
    const canvas = globalThis.document.createElement("canvas");
    sheet.draw(new CanvasPen(canvas, sheet.width, sheet.height, Math.min(2, 8000 / sheet.height)));
    return this.offer(await new Promise((done) => canvas.toBlob(done, "image/png")), `${name}.png`);
  }

  offer(blob, name) {
    const link = element("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    this.announce(`Saved ${name}`);
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  /** The numbers of a picture; each says how far it may be from the true value. */
  async table(what) {
    const { text, lens, units, state } = this;
    if (what !== "text" && state.tab === "flow") return this.flowTable(text.flows[state.pair]);
    const lines = [["method", "level", "query", "query_token", "input", "input_token", "value", "off_by_at_most"]];
    const all = what !== "text" && state.tab === "matrix";
    for (const view of this.shown) {
      const names = what !== "text" && state.tab === "levels" ? view.levels : view.levels.filter((name) => name === this.levelName);
      for (const name of names) {
        const level = view.levels.indexOf(name);
        await view.ready(level);
        for (const query of all ? units : [lens.units[lens.unitOf[state.pinned]]]) {
          const row = rowOf(view, level, query, lens);
          const error = view.error(level, query.positions[0]);
          if (!row) continue;
          for (const unit of units) {
            if (Number.isNaN(row[unit.index])) continue;
            const exact = unit.special || unit.index === query.index;
            lines.push([view.method, name, query.positions[0], query.label, unit.positions[0], unit.label, row[unit.index].toPrecision(7), exact ? "0" : (error * unit.positions.length).toPrecision(2)]);
          }
        }
      }
    }
    return csvOf(lines);
  }

  flowTable(flow) {
    const { labels } = this.text;
    const lines = [["level", "query", "query_token", "key", "key_token", "flow", "capacity", "in_minimum_cut"]];
    for (const [level, query, key, amount, capacity, cut] of flow.edges) lines.push([flow.levels[level], query, labels[query], key, labels[key], amount, capacity, cut]);
    return csvOf(lines);
  }
}

function csvOf(lines) {
  const cell = (value) => (/[",\n\r]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
  return `\ufeff${lines.map((line) => line.map(cell).join(",")).join("\r\n")}\r\n`;
}

/** Draw a document in an element. `ask(text, query, input, level)` may fetch the flow of a pair, where something is alive. */
export function mount(root, plain, options = {}) {
  return new Viewer(root, plain, options);
}

/** For notebooks (anywidget): the same viewer over the model's document. */
export default {
  render({ model, el }) {
    const root = globalThis.document.createElement("div");
    el.append(root);
    const viewer = mount(root, JSON.parse(model.get("document")), {
      onquery(query) {
        model.set("query", query);
        model.save_changes();
      },
    });
    const reload = () => viewer.load(JSON.parse(model.get("document")));
    model.on("change:document", reload);
    return () => {
      model.off("change:document", reload);
      viewer.destroy();
    };
  },
};
