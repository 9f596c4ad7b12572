// What the live page is made of.

/** An element with properties (or attributes, or listeners as onclick=) and children; null children are left out. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** A control with its name above, and perhaps a hint below. */
export const field = (label, control, hint = null) => element("label", { className: "field" }, element("span", {}, label), control, hint && element("small", {}, hint));

/** The options of a select: pairs of value and words. */
export const options = (select, pairs) => select.replaceChildren(...pairs.map(([value, words]) => element("option", { value }, words)));
