// An event that a rule reported: what it is about, and whether it lasts.

import { lasting, moment } from "./numbers.js";

/** The keys and their values that an event is about, as its rule's part has them; null where they can't be known. */
export function keysOf(app, context, event) {
  const rule = app.rules.find((one) => one.name === event.rule);
  const part = context.part(rule?.part ?? app.panels[0]?.part);
  if (!part || event.key === null) return null;
  const keys = rule?.per?.length ? rule.per : part.table.keys.map((key) => key.name).filter((name) => name !== part.at);
  const values = Array.isArray(event.key) ? event.key : [event.key];
  return Object.fromEntries(keys.slice(0, values.length).map((name, number) => [name, values[number]]));
}

/** Whether it lasts, and how long it did. */
export function state(event) {
  const over = event.cleared && moment(event.cleared);
  return event.active ? (event.unknown ? "unknown" : "active") : over ? `cleared after ${lasting(over - moment(event.at))}` : "ended immediately";
}
