// What fired and why: events that last on top, each with its figures, bounds, limit and rule.

import { el, empty, put } from "./dom.js";
import { bounds, clock, lasting, moment, text, format, visible } from "./numbers.js";
import { get } from "./server.js";

const FEW = 8;
const MANY = 12;

export function alerts(app, context) {
  const place = el("section", { class: "panel wide", "aria-labelledby": "fired" });
  let all = false;
  let latest = null;
  return {
    node: place,
    async update() {
      latest = await get(`/apps/${encodeURIComponent(app.name)}/alerts?last=200`);
      draw();
    },
  };

  function draw() {
    const { events } = latest;
    const rules = Object.entries(latest.by_rule).map(([rule, count]) => el("span", { class: "tag" }, `${format(count)} × ${rule}`));
    const head = el("header", {}, el("h2", { id: "fired" }, "What fired"), el("span", { class: "note" }, latest.active ? `${format(latest.active)} still active` : ""), rules);
    const stale = latest.stale && el("p", { class: "warning", role: "status" }, `Alerts can't be followed: ${latest.stale}`);
    if (!events.length) {
      const none = empty("Nothing has fired", app.rules.length ? `${format(app.rules.length)} rules are watching: ${app.rules.map((rule) => rule.name).join(", ")}.` : "This app has no rules; give some with --rules.");
      return put(place, head, stale, none);
    }
    // What lasts is never hidden behind a button: a long list of it scrolls.
    const burning = events.filter((event) => event.active).length;
    const few = Math.max(FEW, burning);
    const shown = all ? events : events.slice(0, few);
    const more = events.length > few && el("button", { class: "more", onclick: () => { all = !all; draw(); } }, all ? "Show fewer" : `Show all ${format(events.length + latest.more)}`);
    const cut = all && latest.more ? el("p", { class: "note" }, `The last ${format(events.length)} of ${format(events.length + latest.more)}.`) : "";
    const hidden = latest.active > burning && el("p", { class: "warning", role: "status" }, `${format(burning)} of ${format(latest.active)} active ones are shown.`);
    const scrolls = burning > MANY ? { class: "alerts scroll", tabindex: "0", role: "region", "aria-label": "What fired" } : { class: "alerts" };
    put(place, head, stale, hidden, el("ol", scrolls, shown.map(item)), cut, more);
  }

  function item(event) {
    const { active } = event;
    const at = moment(event.at);
    const over = event.cleared && moment(event.cleared);
    const state = active ? "active" : over ? `cleared after ${lasting(over - at)}` : "over at once";
    const key = event.key === null ? "" : el("button", { class: "name", onclick: () => choose(event) }, text(event.key));
    const one = event.value === null ? "" : el("span", { class: "value" }, figures(event));
    return el(
      "li", { class: active ? "active" : null },
      el("time", { datetime: event.at }, clock(at)),
      el("span", { class: "rule" }, event.rule),
      el("span", { class: "key" }, key),
      el("span", { class: "state" }, state),
      el("p", { class: "why" }, visible(event.why)),
      one,
    );
  }

  function figures(event) {
    const one = { value: Number(event.value), lower: Number(event.lower), upper: Number(event.upper) };
    const limit = event.limit === null ? "" : `, limit ${format(Number(event.limit))}`;
    return `${format(one.value)} ${bounds(one)}`.trim() + limit;
  }

  /** Panels show what an alert is about, where its rule's part has one key for each of its values. */
  function choose(event) {
    const part = app.rules.find((rule) => rule.name === event.rule)?.part ?? app.panels[0]?.part;
    if (!context.part(part)) return;
    const { table, at } = context.part(part);
    const keys = table.keys.map((key) => key.name).filter((name) => name !== at);
    const values = Array.isArray(event.key) ? event.key : [event.key];
    context.choose(Object.fromEntries(keys.slice(0, values.length).map((name, number) => [name, values[number]])));
  }
}
