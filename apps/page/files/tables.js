// Lists: what is largest with its error bars, rows to sort, samples as they came, a funnel.

import { el, empty, put, shows } from "./dom.js";
import { cell, column, counted, exact, figure, measured, moment, shown, spanned, text, format, uncertainty, unit } from "./numbers.js";
import { aggregate, chosen, last, merged, order, over, same, total } from "./questions.js";
import { VirtualRows } from "./virtual.js";
import { zone } from "./zone.js";

const NOTHING = "No rows in this span";
const LONGER = "Choose a longer span, or wait for the first window.";
const MOST = 1000;
const MOST_ROWS = 10000;
const SEARCHED = 20;
const LINE = 1.95;
const WAIT = 200;

export function ranked(panel, context) {
  const place = el("div", {});
  const open = new Set();
  return {
    node: place,
    async update() {
      const part = context.part(panel.part);
      const { rows, more, answer } = await (panel.by ? groups(panel, part, context) : items(panel, part, context));
      const of = [unit(panel), over(part, answer)].filter(Boolean).join(" · ");
      if (shows(place, rows, more, context.focus, zone())) return of;
      if (!rows.length) return put(place, empty(NOTHING, LONGER));
      const ends = rows.flatMap((row) => [row.one.lower, row.one.upper, 0]);
      const [low, high] = [Math.min(...ends), Math.max(...ends)];
      const list = rows.map((row) => bar(row, panel, context, low, high || 1, open));
      put(place, el("ol", { class: "ranked" }, list), more && el("p", { class: "note" }, more));
      return of;
    },
  };
}

async function items(panel, part, context) {
  const { table } = part;
  const span = { ...last(table, context.span), ...chosen(table, context.focus), by: ["none"] };
  const answer = await merged(table, "top-k", { ...span, column: column(panel.value), k: panel.k });
  const samples = panel.samples ? await merged(table, "sample", { ...span, column: panel.samples }) : null;
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
  const more = answer.rows.length === MOST ? `Among the ${format(MOST)} with the most ${first || "rows"}.` : "";
  return { rows: ranked, more, answer };
}

function bar(row, panel, context, low, high, open) {
  const of = counted(unit(panel)) ? "" : unit(panel);
  const at = (value) => `${(100 * (value - low)) / (high - low)}%`;
  const wide = (from, to) => ({ left: at(Math.min(from, to)), width: `${(100 * Math.abs(to - from)) / (high - low)}%` });
  const here = panel.by && same(context.focus, panel.by, row.key);
  const name = panel.by
    ? el("button", { class: "name", "aria-pressed": String(Boolean(here)), title: row.name, onclick: () => context.choose({ [panel.by]: row.key }) }, row.name)
    : el("span", { class: "name", title: row.name }, row.name);
  const figures = el("span", { class: "value" }, measured(row.one.value, of), " ", uncertainty(row.one, of));
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
  const head = el("tr", {});
  const body = el("tbody", {});
  const grid = el("table", {}, el("thead", {}, head), body);
  const box = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": panel.title }, grid);
  const field = el("input", { class: "filter", type: "search", placeholder: "Filter", "aria-label": `Filter ${panel.title}`, oninput: search });
  const below = el("div", {});
  const nothing = el("div", {}, empty(NOTHING, LONGER));
  const place = el("div", {}, field, nothing, box, below);
  let columns = [];
  let keys = [];
  let at = null;
  let sorted = null;
  let rows = [];
  let all = panel.most;
  let answer = null;
  let orderable = () => false;
  let timer = null;
  let wide = [];
  const list = new VirtualRows({
    box, list: body, rem: LINE,
    key: (row) => JSON.stringify([row.window_start, ...keys.map((key) => row[key])]),
    number: "aria-rowindex",
    first: 2,
    sign: (row) => JSON.stringify([row, filling(row), context.focus, zone(), columns.length]),
    make: line,
    wanted: more,
    filler: () => el("tr", { class: "filler", "aria-hidden": "true" }, el("td", {})),
  });
  return {
    node: place,
    drop: () => list.drop(),
    async update() {
      const part = context.part(panel.part);
      const { table } = part;
      ({ at } = part);
      keys = table.keys.map((key) => key.name);
      const named = Array.isArray(panel.columns) ? panel.columns.map((name) => [name, name]) : Object.entries(panel.columns);
      const own = named.length ? named : [...keys, ...table.columns.map((one) => one.name)].map((name) => [name, name]);
      const requested = [...new Set(own.map(([path]) => column(path)))].filter((name) => aggregate(table, name));
      columns = panel.each_window && !at ? [["window_start", "window"], ...own] : own;
      const by = keys.filter((key) => key !== at || panel.each_window);
      const first = panel.order || (panel.each_window ? `-${at ?? "window_end"}` : "");
      sorted ??= first ? { path: first.replace(/^-/, ""), down: first.startsWith("-") } : { path: columns[0][0], down: false, given: true };
      orderable = (path) => by.includes(path) || path === "window_end" || (requested.includes(path) && order(table, path) === path);
      const path = sorted.path === "window_start" ? "window_end" : sorted.path;
      const known = !sorted.given && orderable(path);
      const more = { limit: field.value ? MOST_ROWS : all, ...(known ? { order: `${sorted.down ? "-" : ""}${path}` } : {}) };
      answer = await (panel.each_window
        ? merged(table, "rows", { ...last(table, context.span), ...chosen(table, context.focus), by: by.length ? by : ["none"], columns: requested, ...more })
        : total(part, requested, by, context, more, keys));
      rows = answer.rows;
      draw();
      return over(part, answer);
    },
  };

  function search() {
    clearTimeout(timer);
    timer = setTimeout(() => { box.scrollTop = 0; context.again(panel); }, WAIT);
  }

  /** The end of the list is near: as many again, if there are more. */
  function more() {
    if (field.value || rows.length < all || all >= MOST_ROWS) return;
    all = Math.min(MOST_ROWS, all * 2);
    context.again(panel);
  }

  function draw() {
    const wanted = field.value.trim().toLowerCase();
    const like = (row) => !wanted || keys.some((key) => text(row[key]).toLowerCase().includes(wanted));
    const ordered = rows.filter(like).toSorted((one, other) => compared(cell(one, sorted.path), cell(other, sorted.path)) * (sorted.down ? -1 : 1));
    [box.hidden, nothing.hidden] = [!rows.length, rows.length > 0];
    field.hidden = rows.length <= SEARCHED && !wanted;
    grid.setAttribute("aria-rowcount", ordered.length + 1);
    if (!shows(head, columns, sorted)) put(head, columns.map(heading));
    for (const node of [list.above, list.below]) node.firstChild.colSpan = columns.length;
    list.show(ordered);
    const cut = rows.length >= (wanted ? MOST_ROWS : all);
    const among = cut && !orderable(sorted.path) ? `, sorted among these by ${columns.find(([path]) => path === sorted.path)?.[1] ?? sorted.path}` : "";
    const said = wanted ? `${format(ordered.length)} of ${cut ? "the first " : ""}${format(rows.length)} match.` : cut ? `The first ${format(rows.length)}${among}${all < MOST_ROWS ? "; scroll for more" : ""}.` : "";
    if (!shows(below, said)) put(below, said && el("p", { class: "note", role: "status" }, said));
    steady();
  }

  /** Columns grow, but don't shrink while other rows are scrolled to. */
  function steady() {
    const cells = [...head.children];
    if (wide.length !== cells.length) wide = [];
    wide = cells.map((one, number) => Math.max(wide[number] ?? 0, Math.min(one.offsetWidth, 220)));
    if (rows.length > 2 * SEARCHED) cells.forEach((one, number) => one.style.setProperty("min-width", `${wide[number]}px`));
  }

  function heading([path, label]) {
    const here = path === sorted.path;
    const turn = () => {
      sorted = { path, down: here ? !sorted.down : true };
      draw();
      // Of more rows than these, others may be the first.
      if (rows.length >= all && orderable(path)) context.again(panel);
    };
    return el("th", { scope: "col", "aria-sort": here ? (sorted.down ? "descending" : "ascending") : null },
      el("button", { "data-path": path, onclick: turn }, label, el("span", { class: "way", "aria-hidden": "true" }, here ? (sorted.down ? "▾" : "▴") : "")));
  }

  /** Whether a row is of a window that still fills. */
  function filling(row) {
    const [end, mark] = [moment(row.window_end), moment(answer.watermark)];
    return panel.each_window && !at && Boolean(answer.open) && mark !== null && end > mark;
  }

  function line(row) {
    const values = Object.fromEntries(keys.filter((key) => key !== at && row[key] != null).map((key) => [key, row[key]]));
    const here = Object.keys(values).length && Object.entries(values).every(([key, value]) => same(context.focus, key, value));
    const marks = [here && "here", filling(row) && "filling"].filter(Boolean).join(" ");
    return el("tr", { class: marks || null }, columns.map(([path]) => data(row, path, values)));
  }

  function data(row, path, values) {
    const value = cell(row, path);
    if (path === "window_start" && panel.each_window) return el("td", {}, spanned(moment(row.window_start), moment(row.window_end)), filling(row) && el("em", {}, "so far"));
    if (path in values) return el("td", {}, el("button", { class: "name", onclick: () => context.choose(values) }, text(value)));
    const one = typeof value === "string" ? null : inside(figure(row, path), row, panel.between?.[path]);
    if (!one) return el("td", {}, text(value));
    const of = panel.units?.[path] ?? "";
    return el("td", { class: "number" }, measured(one.value, of), !exact(one) && [" ", uncertainty(one, of)]);
  }
}

/** An estimate within what is known of it: a median lies between the lowest and the highest value. */
function inside(one, row, ends) {
  const [low, high] = (ends ?? []).map((path) => figure(row, path));
  if (!one || !low || !high || low.lower > high.upper) return one;
  const within = (value) => Math.min(Math.max(value, low.lower), high.upper);
  return { ...one, value: within(one.value), lower: within(one.lower), upper: within(one.upper) };
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
      const answer = await merged(table, "sample", parameters);
      const row = answer.rows[0];
      const values = sampled(row).slice(0, panel.most);
      if (shows(place, values, row?.n, zone())) return over(part, answer);
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
    case "sample": case "recent_sample": case "bernoulli_sample": return ", each equally likely";
    case "weighted_sample": case "var_opt": return `, sampled in proportion to their ${inputs.weight}`;
    case "decayed_sample": return ", newer ones more likely";
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
      if (shows(place, funnels)) return over(part, answer);
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

/** A funnel for each value of a key: what is left after each stage, by the counts of what each rejected. */
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
