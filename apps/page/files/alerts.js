// What fired and why: events that last on top, of any number those that are seen; each opens its moment's picture.

import { el, empty, put, shows } from "./dom.js";
import { keysOf, state } from "./event.js";
import { clock, moment, text, format, visible } from "./numbers.js";
import { get } from "./server.js";
import { VirtualRows } from "./virtual.js";
import { zone } from "./zone.js";

const FIRST = 200;
const MOST = 5000;
const SEARCHED = 12;
const WAIT = 250;
const LINES = 4.6;

export function alerts(app, context) {
  const place = el("section", { class: "panel fired-panel", "aria-labelledby": "fired" });
  const top = el("div", {});
  const list = el("ol", { class: "alerts" });
  const box = el("div", { class: "scroll body", tabindex: "0", role: "region", "aria-label": "What fired" }, list);
  const field = el("input", { class: "filter", type: "search", placeholder: "Filter by a key or a word", "aria-label": "Filter alerts", oninput: search });
  const below = el("div", {});
  put(place, top, field, box, below);
  const rows = new VirtualRows({
    box, list, rem: LINES,
    key: (event) => event.id,
    number: "aria-posinset",
    sign: (event) => JSON.stringify([event, event.id === context.alert, zone()]),
    make: item,
    wanted: more,
  });
  let latest = null;
  let rule = null;
  let wanted = FIRST;
  let timer = null;
  let requested = "";
  let revealed = null;

  return {
    node: place,
    async update() {
      const query = new URLSearchParams({ last: wanted, ...(rule === null ? {} : { rule }), ...(field.value ? { text: field.value } : {}) });
      const known = latest && context.alerts && latest.number === context.alerts.number && latest.stale === context.alerts.stale;
      if (!known || String(query) !== requested) {
        latest = await get(`/apps/${encodeURIComponent(app.name)}/alerts?${query}`);
        requested = String(query);
      }
      draw();
    },
    drop: () => rows.drop(),
  };

  function search() {
    clearTimeout(timer);
    timer = setTimeout(again, WAIT);
  }

  function again() {
    wanted = FIRST;
    box.scrollTop = 0;
    context.again();
  }

  /** The end of the list is near: as many again, if there are more. */
  function more() {
    if (!latest?.more || wanted >= MOST || !String(requested).includes(`last=${wanted}`)) return;
    wanted = Math.min(MOST, wanted * 2);
    context.again();
  }

  function draw() {
    const { events } = latest;
    const all = Object.values(latest.by_rule).reduce((sum, count) => sum + count, 0);
    field.hidden = all <= SEARCHED && !field.value;
    if (!shows(top, latest.by_rule, latest.active, latest.stale, rule)) {
      const turn = (name) => () => { rule = rule === name ? null : name; again(); };
      const rules = Object.entries(latest.by_rule).map(([name, count]) =>
        el("button", { class: "tag", "aria-pressed": String(rule === name), onclick: turn(name), "data-path": name, title: `Show only alerts of ${visible(name)}` }, `${format(count)} × ${visible(name)}`));
      put(top,
        el("header", {}, el("h2", { id: "fired" }, "What fired"), el("span", { class: "note" }, latest.active ? `${format(latest.active)} still active` : ""), rules),
        latest.stale && el("p", { class: "warning", role: "status" }, `Alerts can't be followed: ${latest.stale}`));
    }
    box.hidden = !events.length;
    rows.show(events, events.length + latest.more);
    // One that a link opened may be far down.
    const at = context.alert === revealed ? -1 : events.findIndex((event) => event.id === context.alert);
    if (at >= 0) rows.reveal(at);
    revealed = context.alert;
    const burning = events.filter((event) => event.active).length;
    const hidden = latest.active > burning && !latest.more && rule === null && !field.value;
    if (shows(below, events.length, latest.more, hidden && burning, rule, all)) return;
    const watching = app.rules.length ? `${format(app.rules.length)} rules are watching: ${app.rules.map((one) => one.name).join(", ")}.` : "This app has no rules; pass some with --rules.";
    const none = all ? empty("No alert matches the filter", "Clear the filter to see all alerts.") : empty("Nothing has fired", watching);
    const cut = latest.more > 0 && el("p", { class: "note" }, `${format(events.length)} of ${format(events.length + latest.more)}; scroll for more.`);
    put(below, !events.length && none, hidden && el("p", { class: "warning", role: "status" }, `${format(burning)} of ${format(latest.active)} active alerts are shown.`), cut);
  }

  function item(event) {
    const { active } = event;
    const began = moment(event.at);
    const open = event.id === context.alert;
    const toggle = () => context.open(open ? null : event.id);
    const key = event.key === null ? "" : el("button", { class: "name", onclick: (click) => { click.stopPropagation(); choose(event); } }, text(event.key));
    return el(
      "li", { class: [active && "active", open && "here"].filter(Boolean).join(" ") || null, onclick: toggle },
      el("button", { class: "rule", "aria-expanded": String(open), title: "Show the chart of this moment", onclick: (click) => { click.stopPropagation(); toggle(); } }, visible(event.rule)),
      el("time", { datetime: event.at }, clock(began)),
      el("span", { class: "key" }, key),
      el("span", { class: "state" }, state(event)),
      el("p", { class: "why", title: visible(event.why) }, visible(event.why)),
    );
  }

  /** Panels show what an alert is about, where its rule's part has one key for each of its values. */
  function choose(event) {
    const keys = keysOf(app, context, event);
    if (keys) context.choose(keys);
  }
}
