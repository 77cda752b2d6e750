// What fired and why: events that last on top, each with its figures, bounds, limit and rule.

import { el, empty, put } from "./dom.js";
import { bounds, clock, lasting, moment, text, told } from "./numbers.js";
import { get } from "./server.js";

const FEW = 8;

export function alerts(app, context) {
  const place = el("section", { class: "panel wide", "aria-labelledby": "fired" });
  let all = false;
  let found = null;
  return {
    node: place,
    async update() {
      found = await get(`/apps/${encodeURIComponent(app.name)}/alerts?last=200`);
      draw();
    },
  };

  function draw() {
    const { events } = found;
    const active = events.filter((event) => lasts(event)).length;
    const rules = Object.entries(found.by_rule).map(([rule, count]) => el("span", { class: "tag" }, `${told(count)} × ${rule}`));
    const head = el("header", {}, el("h2", { id: "fired" }, "What fired"), el("span", { class: "note" }, active ? `${told(active)} still active` : ""), rules);
    const stale = found.stale && el("p", { class: "warning", role: "status" }, `Alerts can't be followed: ${found.stale}`);
    if (!events.length) {
      const none = empty("Nothing has fired", app.rules.length ? `${told(app.rules.length)} rules are watching: ${app.rules.map((rule) => rule.name).join(", ")}.` : "This app has no rules; give some with --rules.");
      return put(place, head, stale, none);
    }
    const shown = all ? events : events.slice(0, FEW);
    const more = events.length > FEW && el("button", { class: "more", onclick: () => { all = !all; draw(); } }, all ? "Show fewer" : `Show all ${told(events.length + found.more)}`);
    const cut = all && found.more ? el("p", { class: "note" }, `The last ${told(events.length)} of ${told(events.length + found.more)}.`) : "";
    put(place, head, stale, el("ol", { class: "alerts" }, shown.map(item)), cut, more);
  }

  function lasts(event) {
    const rule = app.rules.find((one) => one.name === event.rule);
    return event.cleared === null && !rule?.every;
  }

  function item(event) {
    const active = lasts(event);
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
      el("p", { class: "why" }, event.why),
      one,
    );
  }

  function figures(event) {
    const one = { value: Number(event.value), lower: Number(event.lower), upper: Number(event.upper) };
    const limit = event.limit === null ? "" : `, limit ${told(Number(event.limit))}`;
    return `${told(one.value)} ${bounds(one)}`.trim() + limit;
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
