// Long lists: of any number of rows only those that are seen are in the document, and each is made once.

import { el } from "./dom.js";

const BEYOND = 8;
const FIRST_SEEN = 400;

/**
 * Rows of one height, so many rem, in a box that scrolls. `key` tells rows apart, `sign` is all that the element of a row, which
 * `make` gives, depends on: as long as that stays the same, so does the element. `number` is the attribute that says
 * which row it is, from `first` on. `wanted` is called near the end.
 */
export class VirtualRows {
  constructor({ box, list, rem, key, sign, make, number, first = 1, wanted = () => {}, filler = () => el("li", { class: "filler", role: "presentation" }) }) {
    Object.assign(this, { box, list, rem, key, sign, make, number, first, wanted });
    this.rows = [];
    this.made = new Map();
    [this.above, this.below] = [filler(), filler()];
    box.addEventListener("scroll", () => this.#draw(), { passive: true });
    this.resized = new ResizeObserver(() => this.#draw());
    this.resized.observe(box);
  }

  get height() {
    return this.rem * parseFloat(getComputedStyle(document.documentElement).fontSize);
  }

  /** Show these, the first of so many. */
  show(rows, size = rows.length) {
    this.rows = rows;
    this.size = size;
    this.#draw();
  }

  /** Bring a row into view, if it isn't. */
  reveal(at) {
    const { height } = this;
    const [top, end] = [at * height, (at + 1) * height];
    const { scrollTop, clientHeight } = this.box;
    if (top < scrollTop || end > scrollTop + clientHeight) this.box.scrollTop = Math.max(0, top - clientHeight / 3);
    this.#draw();
  }

  drop() {
    this.resized.disconnect();
  }

  #draw() {
    const { rows, height, box } = this;
    const seen = Math.ceil((box.clientHeight || FIRST_SEEN) / height);
    const top = Math.max(0, Math.min(rows.length - seen, Math.floor(box.scrollTop / height)));
    const [from, to] = [Math.max(0, top - BEYOND), Math.min(rows.length, top + seen + BEYOND)];
    const made = new Map();
    const active = document.activeElement;
    let focus = null;
    for (let at = from; at < to; at++) {
      let key = this.key(rows[at]);
      while (made.has(key)) key += "'";
      const sign = this.sign(rows[at]);
      const before = this.made.get(key);
      const node = before?.sign === sign ? before.node : this.make(rows[at]);
      if (before && before.node !== node && before.node.contains(active)) {
        const place = reached(before.node).indexOf(active);
        focus = () => (reached(node)[place] ?? node).focus({ preventScroll: true });
      }
      say(node, this.number, at + this.first);
      if (this.number === "aria-posinset") say(node, "aria-setsize", this.size);
      made.set(key, { sign, node });
    }
    // Who was at a row that has gone out of sight is at the list.
    if ([...this.made].some(([key, { node }]) => !made.has(key) && node.contains(active))) focus = () => box.focus({ preventScroll: true });
    this.made = made;
    space(this.above, from * height);
    space(this.below, (rows.length - to) * height);
    sync(this.list, [this.above, ...[...made.values()].map(({ node }) => node), this.below]);
    focus?.();
    if (rows.length && to >= rows.length - BEYOND) this.wanted();
  }
}

function reached(node) {
  return [node, ...node.querySelectorAll("button, a, summary, [tabindex]")];
}

function say(node, name, value) {
  if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

function space(node, height) {
  const text = `${height}px`;
  if (node.style.height !== text) node.style.setProperty("height", text);
  if (node.hidden !== (height === 0)) node.hidden = height === 0;
}

/** Make these the children of a node, and touch none that stays where it is. */
export function sync(node, wanted) {
  const kept = new Set(wanted);
  for (const child of [...node.childNodes]) if (!kept.has(child)) child.remove();
  let next = node.firstChild;
  for (const child of wanted) {
    if (child === next) next = next.nextSibling;
    else node.insertBefore(child, next);
  }
}
