// An image for a model that sees: dropped anywhere on the page, pasted, or chosen. Held as the base64 of its file.

import { element } from "./element.js";

const LONGEST = 1600; // pixels of a side; what is larger is made smaller before it is sent

export class Drop {
  constructor(onimage) {
    this.onimage = onimage;
    this.content = "";
    this.input = element("input", { type: "file", accept: "image/*", "aria-label": "Image", onchange: () => this.input.files[0] && this.take(this.input.files[0]) });
    this.seen = element("img", { alt: "The image asked about", hidden: true });
    this.said = element("span", {}, "Drop an image here, paste one, or choose a file");
    this.zone = element("label", { className: "drop" }, this.seen, this.said, this.input);
    window.addEventListener("dragover", (event) => this.over(event, true));
    window.addEventListener("dragleave", (event) => event.relatedTarget === null && this.over(event, false));
    window.addEventListener("drop", (event) => this.dropped(event, event.dataTransfer.files));
    window.addEventListener("paste", (event) => this.dropped(event, event.clipboardData.files));
  }

  over(event, yes) {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    document.documentElement.classList.toggle("dropping", yes);
  }

  dropped(event, files) {
    document.documentElement.classList.remove("dropping");
    const file = [...files].find((one) => one.type.startsWith("image/"));
    if (!file) return;
    event.preventDefault();
    this.take(file);
  }

  async take(file) {
    const small = await smaller(file);
    const url = await new Promise((done) => Object.assign(new FileReader(), { onload: (event) => done(event.target.result) }).readAsDataURL(small));
    this.show(url.slice(url.indexOf(",") + 1));
    this.onimage();
  }

  /** The base64 of an image file, or nothing. */
  show(content) {
    this.content = content;
    this.seen.hidden = !content;
    if (content) this.seen.src = `data:${kindOf(content)};base64,${content}`;
    this.said.textContent = content ? "Drop or choose another one" : "Drop an image here, paste one, or choose a file";
  }
}

/** A browser shows an image by its bytes, so that the kind need only be roughly right. */
const kindOf = (content) => ({ "/": "image/jpeg", R: "image/gif", U: "image/webp", Q: "image/bmp" })[content[0]] ?? "image/png";

/** The file itself, unless it is larger than any model looks; upright, as cameras leave turning to whoever shows it. */
async function smaller(file) {
  let picture;
  try {
    picture = await createImageBitmap(file, { imageOrientation: "from-image" });
  } catch {
    return file; // the server says what is wrong with it
  }
  const scale = LONGEST / Math.max(picture.width, picture.height);
  if (scale >= 1 && /png|jpeg|webp|gif|bmp/.test(file.type)) return file;
  const canvas = element("canvas", { width: Math.round(picture.width * Math.min(scale, 1)), height: Math.round(picture.height * Math.min(scale, 1)) });
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/jpeg", 0.92));
}
