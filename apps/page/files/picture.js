// The picture of an alert's moment: what its rule looked at, around that time, with the limit and the bounds.

import { TimeChart, colour } from "./chart.js";
import { el, empty, put, shows } from "./dom.js";
import { keysOf, state } from "./event.js";
import { against, cell, clock, column, figure, measured, moment, scaled, text, uncertainty, visible, written } from "./numbers.js";
import { aggregate, length } from "./questions.js";
import { Refused, get, query } from "./server.js";
import { zone } from "./zone.js";

const WINDOWS = 60;
const SHORTEST = 600;
const POINTS = 400;
const COUNTS = ["count", "sum"];

export function picture(app, context) {
  const chart = new TimeChart(320);
  const heading = el("h2", { tabindex: "-1" });
  const note = el("span", { class: "note" });
  const said = el("div", { class: "said" });
  const drawn = el("div", { class: "body" });
  const close = el("button", { class: "tool", onclick: leave }, "Close");
  const node = el("section", { class: "panel moment-panel", "aria-label": "The alert's moment" }, el("header", {}, heading, note, close), said, drawn);
  let before = null;
  node.addEventListener("keydown", (event) => event.key === "Escape" && leave());

  return {
    node,
    drop: () => chart.drop(),
    async update() {
      const id = context.alert;
      if (id === null) {
        before = null;
        return;
      }
      if (id !== before) put(drawn, el("p", { class: "empty" }, "…"));
      try {
        const { events } = await get(`/apps/${encodeURIComponent(app.name)}/alerts?id=${encodeURIComponent(id)}`);
        await draw(events[0]);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        put(heading, "An alert");
        put(said);
        note.textContent = "";
        shows(said, null);
        put(drawn, empty("This alert can't be shown", error.message));
      }
      // Who opened it is brought to it, once.
      if (id !== before) {
        before = id;
        heading.focus({ preventScroll: true });
        node.scrollIntoView({ block: "nearest" });
      }
    },
  };

  function leave() {
    document.querySelector(".alerts li.here .rule")?.focus({ preventScroll: true });
    context.open(null);
  }

  async function draw(event) {
    const rule = app.rules.find((one) => one.name === event.rule) ?? null;
    const keys = keysOf(app, context, event);
    const [at, over] = [moment(event.at), event.cleared && moment(event.cleared)];
    const of = rule?.unit ?? "";
    const share = Boolean(rule?.to);
    if (!shows(said, event, zone())) {
      const key = event.key === null ? "" : ` · ${text(event.key)}`;
      put(heading, `${visible(event.rule)}${key}`);
      note.textContent = `${clock(at)}${over ? ` – ${clock(over)}` : ""} · ${state(event)}`;
      const [unit, by] = share ? ["%", 100] : [rule?.figure_unit ?? "", 1];
      const one = event.value === null ? null : scaled({ value: Number(event.value), lower: Number(event.lower), upper: Number(event.upper) }, by);
      put(said,
        el("p", { class: "why" }, visible(event.why)),
        el("p", { class: "figures" },
          one && el("span", {}, el("strong", {}, measured(one.value, unit)), " ", uncertainty(one, unit) ?? ""),
          event.limit !== null && el("span", {}, "limit ", el("strong", {}, measured(Number(event.limit) * by, unit))),
          keys && el("button", { class: "name", onclick: () => context.choose(keys) }, `Only ${text(event.key)} in all panels`)));
    }
    const part = context.part(rule?.part ?? app.panels[0]?.part);
    if (!part) return;
    const { points, title, unit, step, looked } = await course(part, rule, event, keys ?? {}, at, over, share, of);
    if (!points.length) return put(drawn, empty("Rows around this moment are no longer stored", "The option --keep sets how long a server stores windows."));
    if (chart.node.parentNode !== drawn) put(drawn, chart.node);
    const scale = share ? 100 : 1;
    const held = looked && event.limit !== null && rule.plain;
    const limits = held ? [{ rule: event.rule, at: Number(event.limit) * scale }] : [];
    const last = over ?? (event.active ? null : at);
    chart.draw([{ name: title, number: 0, colour: colour(0), points }], { title: `${event.rule}, ${title}`, unit, step, limits, zero: true, moment: { at, over: last, since: moment(event.since) } });
  }
}

/** What the rule looked at, of the alert's keys, from some time before its moment to some time after it. */
async function course(part, rule, event, keys, at, over, share, unit) {
  const { table } = part;
  const size = length(table);
  const before = Math.max(WINDOWS * (size ?? 0), 3 * (at - (moment(event.since) ?? at)), SHORTEST);
  const after = over && over - at < 4 * before ? over - at + before / 3 : before / 2;
  const looked = Boolean(rule?.value && aggregate(table, column(rule.value)));
  const value = looked ? rule.value : fallback(table);
  if (!value) return { points: [] };
  const columns = [...new Set([value, share && rule.to].filter(Boolean).map(column))];
  const known = table.keys.map((key) => key.name).filter((name) => name in keys);
  const windows = size ? Math.ceil((before + after) / size) : 0;
  const every = !part.at && windows > POINTS ? written(Math.ceil(windows / POINTS) * size) : "window";
  const answer = await query(table.table, "rows", {
    from: iso(at - before), to: iso(at + after), every,
    ...(known.length ? { key: Object.fromEntries(known.map((name) => [name, [keys[name]]])) } : {}),
    by: part.at ? [part.at] : ["none"], columns,
  });
  const item = rule?.each && looked ? [event.key].flat().at(-1) : undefined;
  const read = (row) => {
    if (item !== undefined) return figure({ it: (cell(row, value) ?? []).find?.((one) => one.item === item) }, "it");
    return share ? against(figure(row, value), figure(row, rule.to), "share") : figure(row, value);
  };
  const points = [];
  for (const row of answer.rows) {
    const one = read(row);
    const [start, end] = [moment(row.window_start), moment(row.window_end)];
    const time = part.at ? moment(row[part.at]) : start;
    // A server gives whole windows; of readings those outside the picture are left out.
    if (!one || time < at - before || time > at + after) continue;
    points.push({ time, ...one, partial: !part.at && answer.open && moment(answer.watermark) !== null && end > moment(answer.watermark), here: (part.at ? time : end) === at });
  }
  points.sort((one, other) => one.time - other.time);
  const title = share ? `${rule.value} in ${rule.to}` : value;
  const step = part.at ? null : every === "window" ? size : Math.ceil(windows / POINTS) * size;
  return { points, title, unit: share ? "%" : looked ? unit : "", step, looked };
}

/** What a part counts, where a rule looks at no answer of its own. */
function fallback(table) {
  return (table.columns.find((one) => COUNTS.includes(one.aggregate)) ?? table.columns.find((one) => !one.questions.some((each) => ["top-k", "sample"].includes(each))))?.name;
}

function iso(at) {
  return new Date(at * 1000).toISOString();
}
