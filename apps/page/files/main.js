// The page: its head, an app's panels in their order, and when they update.

import { KIOSK_SECONDS, address, beside, recall, remember, view } from "./address.js";
import { alerts } from "./alerts.js";
import { el, empty, put } from "./dom.js";
import { kiosk } from "./kiosk.js";
import { laid } from "./layout.js";
import { candles, lines, number, spread } from "./lines.js";
import { map } from "./map.js";
import { images, lightcurve, oneObject } from "./objects.js";
import { picture } from "./picture.js";
import { SPANS, length, same, usual } from "./questions.js";
import { Refused, follow, get, tokenBy } from "./server.js";
import { questions } from "./sql.js";
import { status } from "./status.js";
import { funnel, ranked, rows, samples } from "./tables.js";
import { text } from "./numbers.js";
import { sync } from "./virtual.js";
import * as zones from "./zone.js";

const KINDS = { lines, candles, spread, number, ranked, rows, lightcurve, object: oneObject, map, images, funnel, samples };
const SLOWLY = 2000;
const COPIED = 2000;
const SQL = "/page/sql";

const top = document.getElementById("top");
const main = document.getElementById("main");
const zonePicker = zones.picker(() => changed());
recall();
let apps = [];
let shown = null;

tokenBy(() => new Promise((given) => {
  const field = el("input", { type: "password", id: "token", autocomplete: "off", required: true });
  const send = (event) => {
    event.preventDefault();
    put(main);
    given(field.value.trim());
  };
  put(main, el("form", { class: "token", onsubmit: send },
    el("h1", {}, "This server requires a token"),
    el("label", { for: "token" }, "It is in the file passed to --token-file, or in STREAMGAUGE_TOKEN in the server's environment."),
    field, el("button", { type: "submit" }, "Show the page")));
  field.focus();
}));

function head(name) {
  const path = (app) => `/app/${encodeURIComponent(app)}`;
  const tabs = apps.map((app) => el("a", { href: beside(path(app.name)), "aria-current": app.name === name ? "page" : null }, app.name));
  const sql = location.pathname === SQL;
  tabs.push(el("a", { href: beside(SQL), "aria-current": sql ? "page" : null }, "SQL"));
  const spans = sql ? [] : SPANS.map(([value, label]) => el("button", { "aria-pressed": String(value === view.span), onclick: () => { view.span = value; view.chose = true; changed(); } }, label));
  zonePicker.value = zones.zone();
  put(top,
    el("a", { class: "brand", href: "/" }, "streamgauge"),
    el("nav", { "aria-label": "Apps" }, tabs),
    spans.length > 0 && el("div", { class: "spans", role: "group", "aria-label": "Span" }, spans),
    el("div", { class: "tools", role: "group", "aria-label": "This page" },
      zonePicker,
      el("button", { class: "tool link", onclick: (event) => copy(event.currentTarget), title: "Copy a link with app, span, keys, zone and alert" }, "Copy link"),
      !sql && el("button", { class: "tool", onclick: onWall, title: "A view for a screen on the wall: large, without controls; Esc leaves" }, "Kiosk"),
      el("button", { class: "theme", onclick: theme, "aria-label": "Dark or light", title: "Dark or light" }, "◐")));
  const at = zones.named() === zones.UTC ? "UTC" : `${zones.named()} (${zones.offset()})`;
  document.getElementById("zone").textContent = at;
}

/** Puts a link into the clipboard; where that may not be, it is shown to be copied by hand. */
async function copy(button) {
  const link = location.origin + address(true);
  try {
    await navigator.clipboard.writeText(link);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy link"; }, COPIED);
  } catch {
    const field = el("input", { class: "copied", readonly: true, value: link, "aria-label": "A link to just this" });
    button.replaceWith(field);
    field.select();
    field.addEventListener("blur", () => head(shown?.name));
  }
}

function onWall() {
  view.kiosk = KIOSK_SECONDS;
  view.alert = null;
  location.assign(address());
}

function theme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("streamgauge.theme", root.dataset.theme);
  shown?.again();
}

function changed() {
  remember();
  redraw();
}

addEventListener("popstate", () => { recall(); redraw(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown?.again());

function redraw() {
  head(shown?.name);
  shown?.chips();
  shown?.again();
}

/** One app: its status, what fired, its panels; all update when something changed. */
async function show(app) {
  const described = await get(`/apps/${encodeURIComponent(app.name)}`);
  if (described.zone) {
    zones.prefer(described.zone);
    head(app.name);
  }
  const parts = {};
  let latest = null;
  const forced = new Set();
  const context = {
    get span() { return view.span; },
    get alert() { return view.alert; },
    get alerts() { return latest?.alerts; },
    focus: view.focus,
    app: app.name,
    part: (name) => parts[name],
    choose(keys) {
      const { focus } = view;
      const here = Object.entries(keys).every(([key, value]) => same(focus, key, value));
      for (const [key, value] of Object.entries(keys)) here || value == null ? delete focus[key] : (focus[key] = value);
      changed();
    },
    /** Update what changed, and one panel in any case. */
    again(panel = null) {
      if (panel) forced.add(panel);
      shown?.again();
    },
    open(id) {
      view.alert = id;
      remember();
      head(app.name);
      arrange();
      for (const one of [fired, moment]) one?.update().catch((error) => console.error(error));
    },
  };
  const state = status();
  const chosen = el("div", { class: "chosen" });
  const fired = described.alerts ? alerts(described, context) : null;
  const moment = described.alerts ? picture(described, context) : null;
  const panels = described.panels.map((panel) => framed(panel, context));
  const small = panels.filter((panel) => panel.kind === "number");
  const large = panels.filter((panel) => panel.kind !== "number");
  const grid = el("div", { class: "grid" });
  put(main,
    el("h1", {}, described.title), state.node, chosen,
    small.length > 0 && el("div", { class: "numbers" }, small.map((panel) => panel.node)), grid);
  if (!panels.length) main.append(empty("This app declares no panels", "Its tables can be queried at /docs."));
  arrange();

  /** Every row of the grid is full; what fired is first, and beside it a picture, that of the open alert if one is. */
  function arrange() {
    const open = moment && view.alert !== null;
    if (grid.dataset.open === String(open)) return;
    grid.dataset.open = String(open);
    const tiles = laid([...(fired ? [{ kind: "fired", node: fired.node }] : []), ...(open ? [{ kind: "moment", node: moment.node }] : []), ...large]);
    for (const { node, columns } of tiles) node.style.setProperty("--columns", columns);
    // What is moved loses its focus and how far it was scrolled.
    const focused = document.activeElement;
    const scrolled = [...grid.querySelectorAll(".scroll")].map((one) => [one, one.scrollLeft, one.scrollTop]);
    sync(grid, tiles.map(({ node }) => node));
    for (const [one, ...place] of scrolled) one.scrollTo(...place);
    if (grid.contains(focused)) focused.focus({ preventScroll: true });
  }

  async function table(name) {
    const answer = await get(`/tables/${encodeURIComponent(described.parts[name].table)}`);
    if (answer.columns) parts[name] = { table: answer, at: described.parts[name].at, length: length(answer) };
    else delete parts[name];
    return answer;
  }

  const update = gently(async () => {
    if (document.hidden) return;
    arrange();
    const [now, all] = [latest?.parts, new Set(forced)];
    forced.clear();
    const known = await Promise.all(Object.keys(described.parts).map(async (name) => [name, await table(name).catch((error) => ({ waiting: error.message }))]));
    const waiting = Object.fromEntries(known.map(([name, one]) => [name, one.columns ? null : one.waiting]));
    if (view.span === null) {
      view.span = usual(Object.values(parts).map((part) => part.table));
      head(app.name);
    }
    await Promise.all([...panels.map((panel) => panel.update(waiting, now, all)), fired?.update(), moment?.update()]);
    main.dataset.drawn = String(Number(main.dataset.drawn ?? 0) + 1);
  });
  shown = { name: app.name, again: () => { state.draw(); return update(); }, chips: () => put(chosen, chips(context)) };
  shown.chips();
  document.addEventListener("visibilitychange", () => document.hidden || update());
  document.title = `${app.name} · streamgauge`;
  await update();
  follow(app.name, (now) => { latest = now; state.update(now); update(); }, state.broken);
}

function chips(context) {
  return Object.entries(view.focus).map(([key, value]) =>
    el("button", { class: "chip", onclick: () => context.choose({ [key]: value }), "aria-label": `Show all, not only ${key} ${text(value)}` }, `${key}: ${text(value)}`, el("span", { "aria-hidden": "true" }, " ✕")));
}

/** A panel in its frame, which says what is wrong if it can't be drawn. */
function framed(panel, context) {
  const drawn = KINDS[panel.kind](panel, context);
  const warning = el("p", { class: "warning", role: "status", hidden: true });
  const note = el("span", { class: "note" }, "loading …");
  const node = el("section", { class: `panel ${panel.kind}-panel` }, el("header", {}, el("h2", {}, panel.title), note), warning, drawn.node);
  drawn.node.classList.add("body");
  let before = null;
  return {
    kind: panel.kind,
    node,
    async update(waiting, parts, forced) {
      // As long as the table and what is shown of it are the same, so is the picture.
      const sign = parts?.[panel.part]?.ready && !forced.has(panel) ? signed(parts[panel.part]) : null;
      if (sign !== null && sign === before && warning.hidden) return;
      before = sign;
      let wrong = waiting[panel.part] && `${panel.part} can't answer yet: ${waiting[panel.part]}`;
      try {
        const of = wrong ? "" : await drawn.update();
        note.textContent = typeof of === "string" ? of : "";
      } catch (error) {
        if (!(error instanceof Refused)) console.error(error);
        wrong = error.message;
      }
      warning.hidden = !wrong;
      warning.textContent = wrong ?? "";
    },
  };
}

/** All that a picture of a part depends on. */
function signed({ version, from, to, open, watermark, stale }) {
  const { dataset } = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  return JSON.stringify([version, from, to, open, watermark, stale, view.span, view.focus, zones.zone(), dataset.theme, dark]);
}

/** Calls one after another, however often it is wanted: the next at once if none was lately. */
function gently(work) {
  let running = null;
  let wanted = false;
  async function run() {
    do {
      wanted = false;
      await work().catch((error) => console.error(error));
      if (wanted) await new Promise((go) => setTimeout(go, SLOWLY));
    } while (wanted);
    running = null;
  }
  return () => {
    wanted = true;
    return (running ??= run());
  };
}

async function begin() {
  document.documentElement.toggleAttribute("data-kiosk", view.kiosk !== null);
  ({ apps } = await get("/apps"));
  if (location.pathname === SQL) {
    head();
    return questions(main);
  }
  const name = location.pathname.startsWith("/app/") ? decodeURIComponent(location.pathname.slice(5)) : null;
  const app = name === null ? apps[0] : apps.find((one) => one.name === name);
  head(app?.name);
  if (app) {
    const drawn = show(app);
    kiosk(apps.map((one) => `/app/${encodeURIComponent(one.name)}`), apps.indexOf(app), drawn, redraw);
    return drawn;
  }
  if (name !== null) put(main, empty(`There is no app ${name} here`, `Available apps: ${apps.map((one) => one.name).join(", ") || "none"}.`));
  else put(main, empty("No app is shown here", "Start the server with --app or --group, such as: streamgauge serve --app iot --group iot-sensors."));
}

function again() {
  begin().catch((error) => {
    put(main, empty("The page can't be drawn yet", error.message));
    if (error instanceof Refused && error.status === 503) setTimeout(again, SLOWLY);
    else console.error(error);
  });
}

again();
