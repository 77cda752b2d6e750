// Lists: what is largest with its error bars, rows to sort, samples as they came, a funnel.

import { el, empty, put } from "./dom.js";
import { bounds, cell, column, exact, figure, shown, text, format, unit, withUnit } from "./numbers.js";
import { aggregate, chosen, last, order, over, same, total } from "./questions.js";
import { query } from "./server.js";

const NOTHING = "No rows in this span";
const LONGER = "Choose a longer span, or wait for the first window.";
const MOST = 1000;

export function ranked(panel, context) {
  const place = el("div", {});
  const open = new Set();
  return {
    node: place,
    async update() {
      const part = context.part(panel.part);
      const { rows, more, answer } = await (panel.by ? groups(panel, part, context) : items(panel, part, context));
      if (!rows.length) return put(place, empty(NOTHING, LONGER));
      const ends = rows.flatMap((row) => [row.one.lower, row.one.upper, 0]);
      const [low, high] = [Math.min(...ends), Math.max(...ends)];
      const list = rows.map((row) => bar(row, panel, context, low, high || 1, open));
      put(place, el("ol", { class: "ranked" }, list), more && el("p", { class: "note" }, more));
      return over(part, answer);
    },
  };
}

async function items(panel, part, context) {
  const { table } = part;
  const span = { ...last(table, context.span), ...chosen(table, context.focus), by: ["none"] };
  const answer = await query(table.table, "top-k", { ...span, column: column(panel.value), k: panel.k });
  const samples = panel.samples ? await query(table.table, "sample", { ...span, column: panel.samples }) : null;
  const strata = samples?.rows[0]?.strata ?? [];
  const rows = answer.rows.map((row) => ({
    name: text(row.item),
    one: figure({ it: row }, "it"),
    samples: strata.find((one) => one.key === row.item)?.values ?? [],
  }));
  return { rows: rows.filter((row) => row.one), answer };
}

async function groups(panel, part, context) {
  const derived = panel.to || panel.both_ways || panel.value.includes(".");
  const first = order(part.table, column(panel.to || panel.value));
  const columns = [...new Set([panel.value, panel.to, panel.samples, first].filter(Boolean).map(column))];
  const limit = derived || first !== column(panel.value) ? MOST : panel.k;
  const key = { ...panel.where, ...chosen(part.table, context.focus, [panel.by]).key };
  const parameters = { limit, ...(first ? { order: `-${first}` } : {}), ...(Object.keys(key).length ? { key } : {}) };
  const answer = await total(part, columns, [panel.by], context, parameters, [panel.by]);
  const rows = answer.rows.map((row) => ({
    name: text(row[panel.by]),
    key: row[panel.by],
    one: shown(row, panel),
    samples: panel.samples ? sampled(row[panel.samples]) : [],
  }));
  const size = (row) => (panel.both_ways ? Math.abs(row.one.value) : row.one.value);
  const ranked = rows.filter((row) => row.one).sort((one, other) => size(other) - size(one)).slice(0, panel.k);
  const more = answer.rows.length === MOST ? `Of the ${format(MOST)} with the most ${first || "rows"}.` : "";
  return { rows: ranked, more, answer };
}

function bar(row, panel, context, low, high, open) {
  const at = (value) => `${(100 * (value - low)) / (high - low)}%`;
  const wide = (from, to) => ({ left: at(Math.min(from, to)), width: `${(100 * Math.abs(to - from)) / (high - low)}%` });
  const here = panel.by && same(context.focus, panel.by, row.key);
  const name = panel.by
    ? el("button", { class: "name", "aria-pressed": String(Boolean(here)), onclick: () => context.choose({ [panel.by]: row.key }) }, row.name)
    : el("span", { class: "name" }, row.name);
  const figures = el("span", { class: "value" }, withUnit(format(row.one.value), unit(panel)), " ", el("small", {}, bounds(row.one)));
  const drawn = el(
    "span", { class: "bar", "aria-hidden": "true" },
    el("i", { class: row.one.value < 0 ? "fill less" : "fill", css: wide(0, row.one.value) }),
    !exact(row.one) && el("i", { class: "error", css: wide(row.one.lower, row.one.upper) }),
  );
  const line = el("div", { class: "line" }, name, figures, drawn);
  if (!row.samples.length) return el("li", {}, line);
  const more = el("details", { open: open.has(row.name), ontoggle: (event) => (event.target.open ? open.add(row.name) : open.delete(row.name)) },
    el("summary", {}, `${row.samples.length} sampled`), row.samples.slice(0, 5).map((value) => el("p", { class: "sample" }, text(value))));
  return el("li", {}, line, more);
}

export function rows(panel, context) {
  const place = el("div", {});
  let sorted = null;
  let rows = [];
  return {
    node: place,
    async update() {
      const part = context.part(panel.part);
      const { table, at } = part;
      const keys = table.keys.map((key) => key.name);
      const named = Array.isArray(panel.columns) ? panel.columns.map((name) => [name, name]) : Object.entries(panel.columns);
      const columns = named.length ? named : [...keys, ...table.columns.map((one) => one.name)].map((name) => [name, name]);
      const requested = [...new Set(columns.map(([path]) => column(path)))].filter((name) => aggregate(table, name));
      const by = keys.filter((key) => key !== at || panel.each_window);
      const wanted = panel.order || (panel.each_window ? `-${at ?? "window_end"}` : "");
      const path = wanted.replace(/^-/, "");
      const known = keys.includes(path) || path === "window_end" || (requested.includes(path) && order(table, path) === path);
      const more = { limit: panel.most, ...(wanted && known ? { order: wanted } : {}) };
      const answer = await (panel.each_window
        ? query(table.table, "rows", { ...last(table, context.span), ...chosen(table, context.focus), by: by.length ? by : ["none"], columns: requested, ...more })
        : total(part, requested, by, context, more, keys));
      rows = answer.rows;
      const shownColumns = panel.each_window && !at ? [["window_start", "window"], ...columns] : columns;
      sorted ??= wanted ? { path, down: wanted.startsWith("-") } : { path: shownColumns[0][0], down: false };
      draw(shownColumns, keys, at);
      return over(part, answer);
    },
  };

  function draw(columns, keys, at) {
    if (!rows.length) return put(place, empty(NOTHING, LONGER));
    const ordered = rows.toSorted((one, other) => compared(cell(one, sorted.path), cell(other, sorted.path)) * (sorted.down ? -1 : 1));
    const heads = columns.map(([path, heading]) => {
      const here = path === sorted.path;
      const turn = () => {
        sorted = { path, down: here ? !sorted.down : true };
        draw(columns, keys, at);
        place.querySelector(`button[data-path="${CSS.escape(path)}"]`)?.focus();
      };
      return el("th", { scope: "col", "aria-sort": here ? (sorted.down ? "descending" : "ascending") : null },
        el("button", { "data-path": path, onclick: turn }, heading, el("span", { class: "way", "aria-hidden": "true" }, here ? (sorted.down ? "▾" : "▴") : "")));
    });
    const lines = ordered.map((row) => {
      const keyValues = Object.fromEntries(keys.filter((key) => key !== at && row[key] != null).map((key) => [key, row[key]]));
      const here = Object.keys(keyValues).length && Object.entries(keyValues).every(([key, value]) => same(context.focus, key, value));
      return el("tr", { class: here ? "here" : null }, columns.map(([path]) => data(row, path, keyValues, context)));
    });
    const most = rows.length >= panel.most ? el("p", { class: "note" }, `The first ${format(panel.most)}.`) : "";
    put(place, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": panel.title }, el("table", {}, el("thead", {}, el("tr", {}, heads)), el("tbody", {}, lines))), most);
  }
}

function data(row, path, keyValues, context) {
  const value = cell(row, path);
  if (path in keyValues) return el("td", {}, el("button", { class: "name", onclick: () => context.choose(keyValues) }, text(value)));
  const one = typeof value === "string" ? null : figure(row, path);
  if (!one) return el("td", {}, text(value));
  return el("td", { class: "number" }, format(one.value), !exact(one) && el("small", {}, " ", bounds(one)));
}

/** Numbers by size, estimates by themselves, texts by their letters; what is missing first. */
function compared(one, other) {
  const [left, right] = [one, other].map((value) => figure({ it: value }, "it")?.value ?? value);
  if (left == null || right == null) return (left != null) - (right != null);
  if (typeof left === "number" && typeof right === "number") return left - right;
  return String(left).localeCompare(String(right));
}

export function samples(panel, context) {
  const place = el("div", {});
  return {
    node: place,
    async update() {
      const part = context.part(panel.part);
      const { table } = part;
      const parameters = { ...last(table, context.span), ...chosen(table, context.focus), column: column(panel.value), by: ["none"] };
      const answer = await query(table.table, "sample", parameters);
      const row = answer.rows[0];
      const values = sampled(row).slice(0, panel.most);
      if (!values.length) return put(place, empty(NOTHING, LONGER));
      const list = values.map((value) => el("li", {}, fields(value, panel)));
      const all = row.n != null && el("p", { class: "note" }, `${format(values.length)} of ${format(row.n)}${likely(aggregate(table, column(panel.value)))}.`);
      put(place, el("ul", { class: "samples scroll", tabindex: "0", role: "region", "aria-label": panel.title }, list), all);
      return over(part, answer);
    },
  };
}

/** Which values of a sample are likelier to be in it. */
function likely({ aggregate: kind, inputs }) {
  switch (kind) {
    case "sample": case "recent_sample": case "bernoulli_sample": return ", each equally likely to be here";
    case "weighted_sample": case "var_opt": return `, the likelier to be here the larger their ${inputs.weight}`;
    case "decayed_sample": return ", the likelier to be here the newer they are";
    case "stratified_sample": return `, some of each ${inputs.key}`;
    case "hash_sample": return `, all of some values of ${inputs.key}`;
    default: return "";
  }
}

/** The values of a sample; of one by strata, each with its key. */
function sampled(row) {
  if (!row?.strata) return row?.values ?? [];
  return row.strata.flatMap((one) => one.values.map((value) => (value !== null && typeof value === "object" ? { key: one.key, ...value } : { key: one.key, value })));
}

function fields(value, panel) {
  if (value == null || typeof value !== "object") return el("p", { class: "sample" }, text(value));
  const names = panel.fields.length ? panel.fields : Object.keys(value);
  return names.map((name) => el("p", { class: "sample" }, el("b", {}, name), " ", text(value[name])));
}

export function funnel(panel, context) {
  const place = el("div", {});
  return {
    node: place,
    async update() {
      const part = context.part(panel.part);
      const [answer, funnels] = await (panel.by ? felled(panel, part, context) : stages(panel, part, context));
      if (!funnels.length) return put(place, empty(NOTHING, LONGER));
      put(place, funnels.map(([name, left]) => [name && el("h3", {}, name), el("ol", { class: "ranked funnel" }, left.map(stage))]).flat());
      return over(part, answer);
    },
  };
}

/** One funnel: what is left at each stage, by the stages' own counts. */
async function stages(panel, part, context) {
  const named = Object.entries(panel.stages);
  const answer = await total(part, [...new Set(named.map(([path]) => column(path)))], [], context);
  const row = answer.rows[0];
  return [answer, row ? [["", named.map(([path, heading]) => [heading, figure(row, path)?.value ?? 0])]] : []];
}

/** A funnel for each value of a key: what is left after each stage, by the counts of what each felled. */
async function felled(panel, part, context) {
  const keys = [...new Set([panel.each, panel.order, panel.by].filter(Boolean))];
  const answer = await total(part, [column(panel.value)], keys, context);
  const groups = Map.groupBy(answer.rows, (row) => (panel.each ? text(row[panel.each]) : ""));
  const funnels = [...groups].map(([name, rows]) => {
    const ordered = rows.toSorted((one, other) => compared(one[panel.order || panel.by], other[panel.order || panel.by]));
    const counts = ordered.map((row) => figure(row, panel.value)?.value ?? 0);
    let left = counts.reduce((sum, count) => sum + count, 0);
    const stages = [["all", left]];
    for (const [at, row] of ordered.entries()) {
      if (row[panel.by] === panel.passed) continue;
      left -= counts[at];
      stages.push([text(row[panel.by]), left]);
    }
    return [name, stages];
  });
  return [answer, funnels];
}

function stage([heading, count], at, all) {
  const lost = at ? all[at - 1][1] - count : 0;
  const share = all[0][1] ? (100 * count) / all[0][1] : 0;
  return el(
    "li", {},
    el("div", { class: "line" }, el("span", { class: "name" }, heading), el("span", { class: "value" }, format(count), " ", el("small", {}, at ? `${format(share)}% left, −${format(lost)}` : "")),
      el("span", { class: "bar", "aria-hidden": "true" }, el("i", { class: "fill", css: { left: "0", width: `${share}%` } }))),
  );
}
