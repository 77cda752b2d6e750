// The page: its head, an app's panels in their order, and when they update.

import { alerts } from "./alerts.js";
import { el, empty, put } from "./dom.js";
import { lines, number, spread } from "./lines.js";
import { map } from "./map.js";
import { images, lightcurve, oneObject } from "./objects.js";
import { SPANS, length, same, usual } from "./questions.js";
import { Refused, follow, get, tokenBy } from "./server.js";
import { questions } from "./sql.js";
import { status } from "./status.js";
import { funnel, ranked, rows, samples } from "./tables.js";
import { text } from "./numbers.js";

const KINDS = { lines, spread, number, ranked, rows, lightcurve, object: oneObject, map, images, funnel, samples };
const WIDE = ["rows", "map", "object"];
const SLOWLY = 2000;
const SQL = "/page/sql";

const top = document.getElementById("top");
const main = document.getElementById("main");
const focus = {};
let span = null;
let chose = false;
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
    el("h1", {}, "This server wants a token"),
    el("label", { for: "token" }, "It is in the file that --token-file named, or in STREAMGAUGE_TOKEN, where the server was started."),
    field, el("button", { type: "submit" }, "Show the page")));
  field.focus();
}));

/** Span and keys as the address has them. */
function recall() {
  const query = new URLSearchParams(location.search);
  for (const key of Object.keys(focus)) delete focus[key];
  for (const [name, value] of query) if (name.startsWith("key.")) focus[name.slice(4)] = value;
  span = SPANS.some(([one]) => one === query.get("span")) ? query.get("span") : null;
  chose = span !== null;
}

function remember() {
  const query = new URLSearchParams();
  if (chose) query.set("span", span);
  for (const [name, value] of Object.entries(focus)) query.set(`key.${name}`, value);
  const address = location.pathname + (query.size ? `?${query}` : "");
  // Each choice is a step that the browser's Back undoes.
  if (address !== location.pathname + location.search) history.pushState(null, "", address);
}

function head(name) {
  const tabs = apps.map((app) => el("a", { href: `/app/${encodeURIComponent(app.name)}`, "aria-current": app.name === name ? "page" : null }, app.name));
  tabs.push(el("a", { href: SQL, "aria-current": location.pathname === SQL ? "page" : null }, "SQL"));
  const spans = location.pathname === SQL ? [] : SPANS.map(([value, label]) => el("button", { "aria-pressed": String(value === span), onclick: () => { span = value; chose = true; changed(); } }, label));
  put(top,
    el("a", { class: "brand", href: "/" }, "streamgauge"),
    el("nav", { "aria-label": "Apps" }, tabs),
    spans.length > 0 && el("div", { class: "spans", role: "group", "aria-label": "Span" }, spans),
    el("button", { class: "theme", onclick: theme, "aria-label": "Dark or light", title: "Dark or light" }, "◐"));
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

function redraw() {
  head(shown?.name);
  shown?.chips();
  shown?.again();
}

/** One app: its status, what fired, its panels; all update when something changed. */
async function show(app) {
  const described = await get(`/apps/${encodeURIComponent(app.name)}`);
  const parts = {};
  const context = {
    get span() { return span; },
    focus,
    app: app.name,
    part: (name) => parts[name],
    choose(keys) {
      const here = Object.entries(keys).every(([key, value]) => same(focus, key, value));
      for (const [key, value] of Object.entries(keys)) here || value == null ? delete focus[key] : (focus[key] = value);
      changed();
    },
  };
  const state = status();
  const chosen = el("div", { class: "chosen" });
  const fired = described.alerts ? alerts(described, context) : null;
  const panels = described.panels.map((panel) => framed(panel, context));
  const small = panels.filter((panel) => panel.kind === "number");
  put(main,
    el("h1", {}, described.title), state.node, chosen, fired?.node,
    small.length > 0 && el("div", { class: "numbers" }, small.map((panel) => panel.node)),
    el("div", { class: "grid" }, panels.filter((panel) => panel.kind !== "number").map((panel) => panel.node)));
  if (!panels.length) main.append(empty("This app declares no panels", "Its tables can be queried at /docs."));

  async function table(name) {
    const answer = await get(`/tables/${encodeURIComponent(described.parts[name].table)}`);
    if (answer.columns) parts[name] = { table: answer, at: described.parts[name].at, length: length(answer) };
    else delete parts[name];
    return answer;
  }

  const update = gently(async () => {
    if (document.hidden) return;
    const known = await Promise.all(Object.keys(described.parts).map(async (name) => [name, await table(name).catch((error) => ({ waiting: error.message }))]));
    const waiting = Object.fromEntries(known.map(([name, one]) => [name, one.columns ? null : one.waiting]));
    if (span === null) {
      span = usual(Object.values(parts).map((part) => part.table));
      head(app.name);
    }
    await Promise.all([...panels.map((panel) => panel.update(waiting)), fired?.update()]);
    main.dataset.drawn = String(Number(main.dataset.drawn ?? 0) + 1);
  });
  shown = { name: app.name, again: update, chips: () => put(chosen, chips(context)) };
  shown.chips();
  document.addEventListener("visibilitychange", () => document.hidden || update());
  document.title = `${app.name} · streamgauge`;
  await update();
  follow(app.name, (now) => { state.update(now); update(); }, state.broken);
}

function chips(context) {
  return Object.entries(focus).map(([key, value]) =>
    el("button", { class: "chip", onclick: () => context.choose({ [key]: value }), "aria-label": `Show all again, not only ${key} ${text(value)}` }, `${key}: ${text(value)}`, el("span", { "aria-hidden": "true" }, " ✕")));
}

/** A panel in its frame, which says what is wrong if it can't be drawn. */
function framed(panel, context) {
  const drawn = KINDS[panel.kind](panel, context);
  const warning = el("p", { class: "warning", role: "status", hidden: true });
  const note = el("span", { class: "note" });
  const wide = WIDE.includes(panel.kind) ? " wide" : "";
  const node = el("section", { class: `panel ${panel.kind}-panel${wide}` }, el("header", {}, el("h2", {}, panel.title), note), warning, drawn.node);
  return {
    kind: panel.kind,
    node,
    async update(waiting) {
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
  ({ apps } = await get("/apps"));
  if (location.pathname === SQL) {
    head();
    return questions(main);
  }
  const name = location.pathname.startsWith("/app/") ? decodeURIComponent(location.pathname.slice(5)) : null;
  const app = name === null ? apps[0] : apps.find((one) => one.name === name);
  head(app?.name);
  if (app) return show(app);
  if (name !== null) put(main, empty(`There is no app ${name} here`, `There are: ${apps.map((one) => one.name).join(", ") || "none"}.`));
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
