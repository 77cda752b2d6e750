// Elements, made without a parser: whatever text comes in stays text.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes, listeners (on…) and children; strings among them become text. */
export function el(name, given = {}, ...children) {
  return filled(document.createElement(name), given, children);
}

/** The same of SVG. */
export function svg(name, given = {}, ...children) {
  return filled(document.createElementNS(SVG, name), given, children);
}

function filled(node, given, children) {
  for (const [key, value] of Object.entries(given)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "css") for (const [name, part] of Object.entries(value)) node.style.setProperty(name, part);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value != null) node.setAttribute(key, value);
  }
  node.append(...children.flat().filter((child) => child != null && child !== false));
  return node;
}

/** Put these in place of what a node has. */
export function put(node, ...children) {
  node.replaceChildren(...children.flat().filter((child) => child != null && child !== false));
  return node;
}

/** What a panel says in place of a picture: what is so, and what to do. */
export function empty(said, todo = "") {
  return el("div", { class: "empty" }, el("p", {}, said), todo && el("p", { class: "todo" }, todo));
}
