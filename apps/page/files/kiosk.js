// The page on a wall: large, without controls, from one screenful to the next and from app to app; Esc leaves.

import { el } from "./dom.js";
import { beside, remember, view } from "./address.js";

const HINT_SECONDS = 6;

let hint = null;

/**
 * Begin, if the address says so, to turn when the page was `drawn` (a promise). `paths` are those of all apps, `at` is
 * which is shown; `left` is called when it ends.
 */
export function kiosk(paths, at, drawn, left) {
  if (view.kiosk === null) return;
  const root = document.documentElement;
  let timer = null;
  const later = () => {
    if (view.kiosk !== null) timer = setTimeout(turn, view.kiosk * 1000);
  };
  // What went wrong is said by who draws.
  drawn.then(later, () => {});
  if (hint) return;
  hint = el("p", { class: "hint", role: "status" }, "Esc leaves the kiosk");
  document.body.append(hint);
  setTimeout(() => hint.remove(), HINT_SECONDS * 1000);

  async function turn() {
    const bottom = root.scrollHeight - innerHeight;
    if (scrollY < bottom - 8) scrollTo({ top: Math.min(bottom, scrollY + innerHeight * 0.9) });
    else if (!(await next())) scrollTo({ top: 0 });
    later();
  }

  /** Go to the next app, if there is another one and the server answers. */
  async function next() {
    const path = paths[(at + 1) % paths.length];
    if (paths.length < 2 || !(await fetch(path).then((one) => one.ok, () => false))) return false;
    if (view.kiosk !== null) location.replace(beside(path));
    return true;
  }

  addEventListener("keydown", function leave(event) {
    if (event.key !== "Escape") return;
    removeEventListener("keydown", leave);
    clearTimeout(timer);
    view.kiosk = null;
    delete root.dataset.kiosk;
    hint.remove();
    remember();
    left();
  });
}
