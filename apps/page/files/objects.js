// One object at a time: its light curve, its pictures, what is known of it, and its page for others.

import { el, empty, put } from "./dom.js";
import { TimeChart, colour } from "./chart.js";
import { cell, clock, column, figure, moment, text, visible } from "./numbers.js";
import { last } from "./questions.js";
import { blob, get, hasToken, query } from "./server.js";

const NONE = "No object in this span";
const LONGER = "Choose a longer span, or an object in a table or on a map.";

/** The object that was chosen, else the one that was seen last. */
async function object(panel, part, context) {
  if (panel.each in context.focus) return context.focus[panel.each];
  const { table, at } = part;
  const newest = { ...last(table, context.span), by: at ? [panel.each, at] : [panel.each], order: `-${at ?? "window_end"}`, limit: 1 };
  const answer = await query(table.table, "rows", { ...newest, columns: [table.columns[0].name] });
  return answer.rows.length ? answer.rows[0][panel.each] : undefined;
}

/** All rows of an object, whatever span is shown: its past is what is looked at. */
async function history(panel, part, columns, one, more) {
  const { table } = part;
  return query(table.table, "rows", { key: { [panel.each]: [one] }, columns: [...new Set(columns.filter(Boolean).map(column))], ...more });
}

/** As many of the newest rows as pictures and facts are looked for in. */
function newest(part) {
  return { limit: 20, order: `-${part.at ?? "window_end"}` };
}

/** The newest value that is known. */
function latest(rows, path) {
  return rows.map((row) => cell(row, path)).find((value) => value != null);
}

function caption(panel, one) {
  return el("p", { class: "caption" }, `${panel.each} `, el("b", {}, text(one)));
}

export function lightcurve(panel, context) {
  const chart = new TimeChart(260);
  const heading = el("div", {});
  const place = el("div", {});
  return {
    node: place,
    drop: () => chart.drop(),
    async update(given) {
      const part = context.part(panel.part);
      const one = given ?? (await object(panel, part, context));
      if (one === undefined) return put(place, empty(NONE, LONGER));
      const keys = part.table.keys.map((key) => key.name);
      const named = [panel.magnitude, panel.error, panel.limit, panel.band, panel.forced].filter((path) => path && !keys.includes(path));
      const answer = await history(panel, part, named, one, {});
      const bands = new Map();
      for (const row of answer.rows) {
        const point = observed(row, panel, part.at);
        const name = panel.band ? text(cell(row, panel.band)) : "";
        if (point) bands.set(name, [...(bands.get(name) ?? []), point]);
      }
      put(heading, caption(panel, one));
      if (!bands.size) return put(place, heading, empty("This object has no measurements", "Choose another one."));
      const series = [...bands.keys()].sort().map((name, number) => ({
        name, number, colour: colour(number), points: bands.get(name).sort((a, b) => a.time - b.time),
      }));
      if (chart.node.parentNode !== place) put(place, heading, chart.node);
      chart.draw(series, { title: `${panel.title}, ${text(one)}`, unit: "mag", step: null, down: true, marks: true });
    },
  };
}

function observed(row, panel, at) {
  const time = moment(at ? row[at] : row.window_start);
  const magnitude = figure(row, panel.magnitude);
  const error = panel.error ? (figure(row, panel.error)?.value ?? 0) : 0;
  const mark = panel.forced && figure(row, panel.forced)?.value ? { mark: "forced" } : {};
  if (magnitude) return { time, value: magnitude.value, lower: magnitude.lower - error, upper: magnitude.upper + error, ...mark };
  const limit = panel.limit ? figure(row, panel.limit) : null;
  return limit && { time, value: limit.value, lower: limit.value, upper: limit.value, mark: "limit" };
}

export function images(panel, context) {
  const place = el("div", {});
  let before = "";
  return {
    node: place,
    async update(given) {
      const part = context.part(panel.part);
      const one = given ?? (await object(panel, part, context));
      if (one === undefined) return put(place, empty(NONE, LONGER));
      const paths = Object.keys(panel.images);
      const { rows } = await history(panel, part, paths, one, newest(part));
      const sources = paths.map((path) => picture(latest(rows, path)));
      const now = JSON.stringify([one, sources]);
      if (now === before) return;
      before = now;
      const figures = paths.map((path, at) => el(
        "figure", {},
        sources[at] ? el("img", { src: sources[at], alt: `${panel.images[path]} of ${text(one)}` }) : el("div", { class: "none" }, "no picture"),
        el("figcaption", {}, panel.images[path]),
      ));
      put(place, caption(panel, one), el("div", { class: "images" }, figures));
    },
  };
}

const PLACES = new Intl.NumberFormat("en-US", { maximumFractionDigits: 5, useGrouping: false });

/** An object's light curve beside its pictures and what is known of it, below why it was reported, and its own page. */
export function oneObject(panel, context) {
  const [curve, pictures] = [lightcurve(panel, context), images(panel, context)];
  const [facts, why, place] = [el("div", {}), el("div", { class: "why" }), el("div", {})];
  const whole = el("div", { class: "beside" }, el("div", { class: "curve" }, curve.node), el("div", { class: "pictures" }, pictures.node, facts), why);
  return {
    node: place,
    drop: () => curve.drop(),
    async update() {
      const part = context.part(panel.part);
      const one = await object(panel, part, context);
      if (one === undefined) return put(place, empty(NONE, LONGER));
      if (whole.parentNode !== place) put(place, whole);
      const paths = Object.keys(panel.facts);
      const [, , { rows }, events] = await Promise.all([
        curve.update(one), pictures.update(one),
        history(panel, part, paths, one, newest(part)), reasons(one, context),
      ]);
      const known = paths.map((path) => [panel.facts[path], latest(rows, path)]).filter(([, value]) => value != null);
      put(facts, known.length > 0 && el("dl", { class: "facts" }, known.map(([name, value]) =>
        el("div", {}, el("dt", {}, name), el("dd", {}, typeof value === "number" ? PLACES.format(value) : text(value))))));
      put(why, events.length > 0 && el("ul", { class: "reasons" }, events.map((event) =>
          el("li", {}, el("time", {}, clock(moment(event.at))), " ", el("b", {}, visible(event.rule)), ` ${visible(event.why)}`))),
        pageOf(one, context));
    },
  };
}

/** What was reported of an object, the latest first; nothing where alerts aren't followed. */
async function reasons(one, context) {
  const path = `/apps/${encodeURIComponent(context.app)}/alerts?last=20&key=${encodeURIComponent(one)}`;
  return (await get(path).catch(() => ({ events: [] }))).events;
}

/** Links to the object's page by itself. With a token it can only be saved: links carry none. */
function pageOf(one, context) {
  const path = `/apps/${encodeURIComponent(context.app)}/objects/${encodeURIComponent(one)}.html`;
  const name = `${String(one).replace(/[^\w.+-]/g, "_")}.html`;
  const save = async (event) => {
    if (!hasToken()) return;
    event.preventDefault();
    const address = URL.createObjectURL(await blob(path));
    el("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
  };
  return el("p", { class: "page-of" }, "A page of its own to share: ",
    !hasToken() && [el("a", { href: path, target: "_blank", rel: "noopener" }, "open"), " · "],
    el("a", { href: path, download: name, onclick: save }, "save as a file"));
}

const KINDS = [["89504e47", "png"], ["ffd8ff", "jpeg"], ["47494638", "gif"]];

/** The address of a picture: of bytes, which come in hexadecimal, or of base64; null of anything else. */
function picture(value) {
  if (typeof value !== "string" || !value) return null;
  let hex = value;
  if (!/^([0-9a-f]{2})+$/.test(value)) {
    try {
      hex = Array.from(atob(value.slice(0, 16)), (one) => one.charCodeAt(0).toString(16).padStart(2, "0")).join("");
    } catch {
      return null;
    }
  }
  const kind = KINDS.find(([begin]) => hex.startsWith(begin))?.[1];
  if (!kind) return null;
  const base64 = hex === value ? btoa(String.fromCharCode(...value.match(/../g).map((two) => parseInt(two, 16)))) : value;
  return `data:image/${kind};base64,${base64}`;
}
