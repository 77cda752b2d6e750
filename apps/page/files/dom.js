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

/** Put these in place of what a node has. Who was at one of its buttons, or down a list, stays there. */
export function put(node, ...children) {
  const kept = place(node);
  node.replaceChildren(...children.flat().filter((child) => child != null && child !== false));
  kept();
  return node;
}

/** Where the focus is within a node and how far its lists are scrolled; gives what goes there again. */
function place(node) {
  const active = document.activeElement;
  const inside = active && active !== node && node.contains(active) ? active : null;
  const before = inside && alike(node, inside, named);
  const nth = before?.indexOf(inside);
  const looser = inside && alike(node, inside, kind).indexOf(inside);
  const scrolled = [...node.querySelectorAll(".scroll")].map((one) => [one.scrollLeft, one.scrollTop]);
  return () => {
    node.querySelectorAll(".scroll").forEach((one, at) => scrolled[at] && one.scrollTo(...scrolled[at]));
    if (!inside) return;
    const again = node.contains(inside) ? inside : (alike(node, inside, named)[nth] ?? alike(node, inside, named)[0] ?? alike(node, inside, kind)[looser]);
    again?.focus({ preventScroll: true });
  };
}

const kind = (node) => node.tagName + (node.dataset.path ?? "");
const named = (node) => `${kind(node)} ${node.getAttribute("aria-label") ?? node.textContent}`;

function alike(node, one, by) {
  const wanted = by(one);
  return [...node.querySelectorAll(one.tagName)].filter((each) => by(each) === wanted);
}

const drawn = new WeakMap();

/** Whether a node shows just this already; if not, it is taken to from now on. */
export function shows(node, ...what) {
  const sign = JSON.stringify(what);
  if (drawn.get(node) === sign) return true;
  drawn.set(node, sign);
  return false;
}

const LONGEST = 60;

/** A name as there is room for it. */
export function clipped(name) {
  return name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name;
}

/** The table behind a picture, made once it is opened; `make` gives its heads and its rows, all of them texts. */
export function behind(title, make) {
  const box = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${title}, as a table` });
  const node = el("details", { class: "behind", ontoggle: () => renew() }, el("summary", {}, "as a table"), box);
  function renew() {
    if (!node.open) return;
    const [heads, rows] = make();
    const head = heads.map((one) => el("th", { scope: "col", title: one }, clipped(one)));
    const body = rows.map((row) => el("tr", {}, row.map((one) => el("td", {}, one))));
    put(box, el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)));
  }
  return { node, renew };
}

/** What a panel says in place of a picture: what is so, and what to do. */
export function empty(message, todo = "") {
  return el("div", { class: "empty" }, el("p", {}, message), todo && el("p", { class: "todo" }, todo));
}
