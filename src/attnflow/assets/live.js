// The live page: a form around the viewer. What is asked stands in the address, behind the #.

import { Drop } from "./drop.js";
import { element, field, options } from "./element.js";
import { mount } from "./viewer.js";
import { capturePart, DEFAULTS, fromHash, toHash, toRequest } from "./question.js";
import { bottleneck, explain } from "./stream.js";

const EXAMPLES = ["The key to the cabinets", "The authors that the critic admires", "The farmer near the clerks who the guards know"];
const SAID = {
  raw: "Attention of one level, as it is. Above the second level its keys are already mixtures of many tokens.",
  rollout: "All levels at once, attention as proportions: the product of the levels, along every path down to the tokens.",
  flow: "All levels at once, attention as capacities: the most that could flow from the query down to a token. Ask for a pair to see its bottleneck.",
  relevance: "Attention weighted by gradients and accumulated, level by level.",
};
const RESIDUALS = { own: "the rule’s own", measured: "measured", w_res: "measured on weights (w_res)" };
const LINKED = 100_000; // letters of an image that a link may still hold
const PATIENCE = 350; // milliseconds after a choice until it is asked about

class Live {
  constructor(root, choices) {
    this.root = root;
    this.choices = choices;
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.theme = localStorage.getItem("attnflow-theme") ?? "auto";
    this.build();
    this.dark.addEventListener("change", () => this.paintTheme());
    window.addEventListener("popstate", () => this.open());
    this.paintTheme();
    this.open();
  }

  // -- the page, built once

  build() {
    const { choices } = this;
    const changed = () => this.soon();
    this.text = element("textarea", { id: "text", rows: 2, maxLength: 40 * choices.limits.tokens, spellcheck: false, placeholder: "Type or paste a text", dir: "auto", onkeydown: (event) => this.typed(event) });
    this.model = element("select", { onchange: () => this.modelChanged() });
    options(this.model, choices.models.map(({ name }) => [name, name]));
    this.methods = choices.methods.map((name) => element("input", { type: "checkbox", value: name, onchange: () => this.methodPicked(name) }));
    this.modelSaid = element("span");
    this.edges = element("select", { onchange: changed });
    options(this.edges, choices.edges.map(({ name, needs_gradients: needs }) => [name, needs ? `${name} (gradients)` : name]));
    this.residual = element("select", { "aria-label": "Residual", onchange: () => { this.paintResidual(); this.soon(); } });
    options(this.residual, [["share", "a share"], ...choices.residuals.map((name) => [name, RESIDUALS[name] ?? name])]);
    this.slider = element("input", { type: "range", min: 0, max: 1, step: 0.05, "aria-label": "Residual share", oninput: () => this.paintResidual(), onchange: changed });
    this.drop = new Drop(() => this.imageCame());
    this.share = element("output", { className: "share" });
    this.pair = element("span", { className: "pair" }, this.slider, this.share);
    this.query = element("input", { type: "text", placeholder: "where the output is read", autocomplete: "off", spellcheck: false, onchange: changed });
    this.heads = element("select", { onchange: changed });
    this.rows = element("select", { onchange: changed });
    options(this.rows, [["auto", "all, if there are few"], ["all", "all"], ["query", "of the query"]]);
    this.second = element("input", { type: "text", autocomplete: "off", onchange: changed });
    this.target = element("input", { type: "text", placeholder: "the predicted one", autocomplete: "off", onchange: changed });
    this.difference = element("input", { type: "checkbox", onchange: changed });
    this.go = element("button", { type: "submit", className: "go" }, "Explain");
    this.stop = element("button", { type: "button", className: "stop", hidden: true, onclick: () => this.halt() }, "Stop");
    this.link = element("button", { type: "button", className: "quiet", onclick: () => this.copyLink() }, "Copy link");
    this.bar = element("progress", { hidden: true, "aria-label": "Progress" });
    this.said = element("p", { className: "status", role: "status" });
    this.wrong = element("p", { className: "wrong", role: "alert", hidden: true });
    this.result = element("div", { className: "viewer" });
    this.examples = element("p", { className: "examples" }, ...EXAMPLES.map((text) => element("button", { type: "button", className: "quiet", onclick: () => this.example(text) }, text)));
    this.hello = element("section", { className: "hello" },
      element("h2", {}, "How much of what a position says came from each input token?"),
      element("p", {}, choices.models.some((one) => one.reads !== "text") ? "Type a text or drop an image, and press Explain." : "Type a text and press Explain, or start with one of these:"),
      this.examples,
      element("dl", {}, ...choices.methods.flatMap((name) => SAID[name] ? [element("dt", {}, name), element("dd", {}, SAID[name])] : [])),);
    this.themeButton = element("button", { type: "button", className: "theme", onclick: () => this.nextTheme() });
    this.root.replaceChildren(
      element("header", { className: "row top-row" }, element("h1", { className: "title" }, element("img", { src: "/assets/icon.svg", alt: "", width: 26, height: 26 }), "attnflow"), element("nav", {}, element("a", { href: "/docs" }, "API")), this.themeButton),
      element("main", {}, this.form(), this.hello, this.result),
    );
    this.modelChanged(false);
  }

  form() {
    this.textField = field("Text", this.text);
    const chips = this.methods.map((box) => element("label", { className: "chip", title: SAID[box.value] ?? "" }, box, element("span", {}, box.value)));
    const more = element("details", { className: "more" }, element("summary", {}, "More choices"),
      element("div", { className: "grid" },
        field("Query: a token or position", this.query), field("Heads", this.heads), field("Rows of a flow", this.rows),
        field("Second text", this.second, "of a pair, or what an encoder–decoder writes"), field("Target of gradients", this.target, "a class or token"),
        element("label", { className: "check" }, this.difference, element("span", {}, "Difference of two methods"))));
    this.more = more;
    return element("form", { className: "ask", "aria-label": "The question", onsubmit: (event) => this.submitted(event) },
      this.textField, this.drop.zone,
      element("div", { className: "grid" },
        field("Model", this.model, this.modelSaid), element("fieldset", { className: "field" }, element("legend", {}, "Methods"), ...chips),
        field("Edges", this.edges), element("div", { className: "field" }, field("Residual", this.residual), this.pair)),
      more,
      element("div", { className: "row actions" }, this.go, this.stop, this.link, this.bar, this.said),
      this.wrong);
  }

  // -- from the address to the form and back

  open() {
    const asked = fromHash(location.hash);
    this.answered = null; // what was chosen in the viewer belonged to another address
    this.fill({ ...DEFAULTS, ...asked });
    if (asked.text || asked.image) this.run(false);
  }

  fill(question) {
    const names = this.choices.models.map((one) => one.name);
    this.model.value = names.includes(question.model) ? question.model : names[0];
    this.modelChanged(false);
    for (const box of this.methods) box.checked = question.methods.includes(box.value);
    if (!this.methods.some((box) => box.checked)) this.methods.find((box) => box.value === "rollout").checked = true;
    for (const name of ["text", "second", "query", "target"]) this[name].value = question[name];
    this.level = question.level;
    for (const name of ["edges", "heads", "rows"]) this.choose(this[name], question[name]);
    const rules = this.choices.residuals.includes(question.residual);
    this.residual.value = rules ? question.residual : "share";
    this.slider.value = rules ? 0.5 : Number(question.residual) || 0;
    this.drop.show(question.image);
    this.difference.checked = question.difference;
    this.more.open = this.more.open || ["second", "query", "target", "heads", "rows", "difference"].some((name) => question[name] !== DEFAULTS[name]);
    this.paintResidual();
    this.grow();
  }

  /** A value that the list does not hold is added, so that the server can say what is wrong with it. */
  choose(select, value) {
    if (![...select.options].some((option) => option.value === value)) select.append(element("option", { value }, value));
    select.value = value;
  }

  get question() {
    const value = (name) => this[name].value.trim();
    const { text, image } = this.given;
    return {
      text, image, second: value("second"), model: this.model.value, methods: this.methods.filter((box) => box.checked).map((box) => box.value), edges: this.edges.value, heads: this.heads.value,
      residual: this.residual.value === "share" ? this.slider.value : this.residual.value, query: this.seen.query ?? value("query"), level: this.seen.level ?? this.level, rows: this.rows.value, target: value("target"), difference: this.difference.checked,
    };
  }

  /** What was chosen in the viewer since the answer came: the pinned token, which belongs to its text, and the level. */
  get seen() {
    const { viewer, answered, asked } = this;
    if (!answered) return {};
    const { pinned, level } = viewer.state;
    const sameText = asked.text === this.given.text && asked.image === this.given.image && asked.model === this.model.value;
    return {
      query: sameText && pinned !== answered.query ? String(pinned) : null,
      level: asked.model !== this.model.value || level === viewer.text.levels.length - 1 ? "-1" : String(level),
    };
  }

  // -- choices

  modelChanged(ask = true) {
    const { heads: count, kind, layers } = this.choices.models.find((one) => one.name === this.model.value);
    this.modelSaid.textContent = `${kind.replace(/([a-z])([A-Z])/g, "$1\u200b$2")}${layers ? `, ${layers} layers` : ""}`;
    const heads = this.heads.value || "mean";
    options(this.heads, [["mean", "averaged"], ["max", "largest"], ["min", "smallest"], ...Array.from({ length: count ?? 0 }, (_, i) => [String(i), `head ${i}`])]);
    this.heads.value = heads;
    if (this.heads.selectedIndex < 0) this.heads.value = "mean";
    const reads = this.reads(this.model.value);
    this.textField.hidden = reads === "image";
    this.drop.zone.hidden = reads === "text";
    this.examples.hidden = reads !== "text";
    if (ask && this.answered && this.reads(this.asked.model) === reads) this.soon(); // another kind of input comes first
  }

  /** What a model is asked about: "text", "image" or "both". */
  reads(name) {
    return this.choices.models.find((one) => one.name === name).reads;
  }

  /** The text and the image that this model would be given. */
  get given() {
    const reads = this.reads(this.model.value);
    return { text: reads === "image" ? "" : this.text.value, image: reads === "text" ? "" : this.drop.content };
  }

  /** An image is asked about at once, by a model that sees. */
  imageCame() {
    const seeing = this.choices.models.find((one) => one.reads !== "text");
    if (!seeing) return this.fail("None of these models reads images. Start the server with one that does.");
    if (this.reads(this.model.value) === "text") this.model.value = seeing.name;
    this.modelChanged(false);
    return this.run();
  }

  methodPicked(name) {
    if (!this.methods.some((box) => box.checked)) this.methods.find((box) => box.value === name).checked = true; // at least one stays
    this.soon();
  }

  typed(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.submitted(event);
    requestAnimationFrame(() => this.grow());
  }

  grow() {
    this.text.style.height = "auto";
    this.text.style.height = `${Math.min(this.text.scrollHeight + 2, 320)}px`;
  }

  example(text) {
    this.text.value = text;
    for (const box of this.methods) box.checked = ["raw", "rollout", "flow"].includes(box.value);
    this.run();
  }

  // -- asking

  submitted(event) {
    event.preventDefault();
    this.run();
  }

  /** After a choice, once there is something to see, without a press of the button. */
  soon() {
    clearTimeout(this.timer);
    if (this.answered) this.timer = setTimeout(() => this.run(), PATIENCE);
  }

  async run(remember = true) {
    clearTimeout(this.timer);
    this.stopped?.abort();
    const asked = this.question;
    if (!asked.image && !asked.text.trim()) return this.reads(asked.model) === "image" ? this.fail("There is no image yet. Drop one, or choose a file.", this.drop.input) : this.fail("There is no text yet. Type one.", this.text);
    if (remember && this.hashOf(asked) !== location.hash) history.pushState(null, "", this.hashOf(asked));
    const stopped = (this.stopped = new AbortController());
    this.busy(true);
    try {
      const answer = await explain(toRequest(asked), (event, data) => stopped === this.stopped && this.tell(event, data), stopped.signal);
      if (stopped === this.stopped) this.show(answer, asked);
    } catch (error) {
      if (stopped !== this.stopped) return undefined;
      if (error.name === "AbortError") this.said.textContent = "Stopped.";
      else this.fail(error.message);
    } finally {
      if (stopped === this.stopped) this.busy(false);
    }
    return undefined;
  }

  halt() {
    this.stopped?.abort();
    this.go.focus();
  }

  busy(yes) {
    this.stop.hidden = !yes;
    this.root.ariaBusy = String(yes);
    this.root.dataset.state = yes ? "busy" : "ready";
    if (yes) {
      this.wrong.hidden = true;
      this.said.textContent = "Asking …";
    }
    this.bar.hidden = true;
  }

  tell(event, { what, done, total, before_you: before }) {
    if (event === "waiting") this.said.textContent = before ? `Waiting: ${before} before you.` : "Waiting for a turn.";
    if (event !== "progress") return;
    const far = total > 1 ? `: ${done.toLocaleString("en")} of ${total.toLocaleString("en")}` : "";
    this.said.textContent = `${what}${far}`;
    this.bar.hidden = total < 2;
    Object.assign(this.bar, { max: total, value: done });
  }

  fail(message, focus = null) {
    this.said.textContent = "";
    this.wrong.textContent = message;
    this.wrong.hidden = false;
    this.root.dataset.state = "ready";
    focus?.focus();
  }

  show(answer, asked) {
    this.answered = answer;
    this.asked = asked;
    this.hello.hidden = true;
    const plain = { ...answer.document, theme: this.theme };
    if (this.viewer) this.viewer.load(plain);
    else this.viewer = mount(this.result, plain, { ask: (...pair) => this.flowOf(...pair), onquery: (query) => this.pinned(query) });
    const seconds = answer.seconds.all < 0.1 ? "less than 0.1 s" : `${answer.seconds.all.toFixed(1)} s`;
    this.said.textContent = [`${answer.tokens} tokens, ${seconds}.`, answer.query_is && `Opened at position ${answer.query}, ${answer.query_is}.`, ...answer.notes].filter(Boolean).join(" ");
  }

  async flowOf(_, query, input, level) {
    const flow = await bottleneck({ ...capturePart(this.asked), query, input, level });
    return { ...flow, caption: this.answered.document.texts[0].views[0].caption };
  }

  /** A row that was left out, as it is dear, is asked for when its token is chosen. */
  pinned(query) {
    const missing = this.viewer.shown.filter((view) => !view.rowOf.has(query)).map((view) => view.method);
    if (!missing.length) return;
    const label = this.viewer.text.labels[query];
    this.said.replaceChildren(`There is no row of “${label}” for ${missing.join(" and ")} yet. `,
      element("button", { type: "button", className: "quiet", onclick: () => { this.query.value = String(query); this.more.open = true; this.run(); } }, "Ask for it"));
  }

  hashOf(question) {
    return toHash(question.image.length > LINKED ? { ...question, image: "" } : question);
  }

  async copyLink() {
    const link = new URL(this.hashOf(this.question), location.href).href;
    const holds = this.question.image.length > LINKED ? "everything but the image" : `the question, ${this.question.image ? "image" : "text"} included`;
    history.replaceState(null, "", link);
    try {
      await navigator.clipboard.writeText(link);
      this.said.textContent = `The link is copied. It holds ${holds}.`;
    } catch {
      this.said.textContent = `The link is in the address bar. It holds ${holds}.`;
    }
  }

  // -- colours

  nextTheme() {
    const names = ["auto", "light", "dark"];
    this.theme = names[(names.indexOf(this.theme) + 1) % names.length];
    localStorage.setItem("attnflow-theme", this.theme);
    this.paintTheme();
    this.viewer?.change({ theme: this.theme });
  }

  paintTheme() {
    const [sign, words] = { auto: ["◐", "as the system"], light: ["☀", "light"], dark: ["☾", "dark"] }[this.theme];
    this.root.dataset.scheme = this.theme === "auto" ? (this.dark.matches ? "dark" : "light") : this.theme;
    this.themeButton.textContent = sign;
    this.themeButton.title = `Colours: ${words}`;
    this.themeButton.setAttribute("aria-label", `Colours: ${words}. Change`);
  }

  paintResidual() {
    this.pair.hidden = this.residual.value !== "share";
    this.share.textContent = Number(this.slider.value) ? Number(this.slider.value).toFixed(2) : "none";
  }
}

const root = document.getElementById("live");
const answer = await fetch("/api/choices");
new Live(root, await answer.json());
root.dataset.state ??= "ready";
