// Which windows a panel asks for: the page's span, merged to about as many points as can be seen.

import { ask } from "./server.js";
import { moment, seconds, written } from "./numbers.js";

const POINTS = 160;
const READINGS = 10000;
const ADDED = ["count", "sum"];
const DAY = 86400;
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, DAY, 2 * DAY, 7 * DAY];

export const SPANS = [["15m", "15 min"], ["1h", "1 h"], ["6h", "6 h"], ["1d", "1 d"], ["7d", "7 d"], ["", "all"]];

/** The span to begin with: all of a recording; of a stream that goes on, the shortest that has all, or a day. */
export function usual(tables) {
  const times = (name) => tables.map((table) => moment(table[name])).filter((at) => at !== null);
  if (!times("to").length) return "1h";
  const end = Math.max(...times("to"));
  if (Date.now() / 1000 - end > 2 * 86400) return "";
  const known = end - Math.min(...times("from"));
  return SPANS.find(([span]) => span && known <= seconds(span) && ["1h", "6h", "1d"].includes(span))?.[0] ?? "1d";
}

/** The length of a part's windows in seconds, null where they have none. */
export function length(table) {
  const lasting = table.lasting;
  return lasting?.length && ["tumbling", "sliding"].includes(lasting.kind) ? seconds(lasting.length) : null;
}

/** The span as the server takes it: at least one window long. */
export function last(table, span) {
  if (!span) return {};
  const own = length(table);
  return { last: own && own > seconds(span) ? table.lasting.length : span };
}

/** The length of the windows to merge into, so that a span has a picture's number of them. */
export function every(table, span) {
  const own = length(table);
  if (!own) return "window";
  const known = (moment(table.to) ?? 0) - (moment(table.from) ?? 0);
  const whole = span ? Math.min(seconds(span), known || Infinity) : known;
  const wanted = whole / POINTS;
  if (wanted <= own) return "window";
  // A length that clocks have, of whole windows; else so many windows.
  const fits = (one) => one >= wanted && Math.abs(one / own - Math.round(one / own)) < 1e-9;
  return written(STEPS.find(fits) ?? Math.ceil(wanted / own) * own);
}

/** The values of keys that were chosen, of those that the table has; without `but`. */
export function chosen(table, focus, but = []) {
  const keys = table.keys.map((key) => key.name).filter((name) => name in focus && !but.includes(name));
  return keys.length ? { key: Object.fromEntries(keys.map((name) => [name, [focus[name]]])) } : {};
}

/** Whether a span has so few readings that each is drawn; of more, windows are merged. */
function few(part, context) {
  const { table } = part;
  const known = (moment(table.to) ?? 0) - (moment(table.from) ?? 0);
  const share = context.span && known ? Math.min(1, seconds(context.span) / known) : 1;
  return table.rows * share <= READINGS;
}

/** Rows over time, by some keys; the times of each are its `at`, or the middle of its window. */
export async function course(part, columns, by, context, more = {}) {
  const { table, at } = part;
  const span = context.span;
  const readings = at && few(part, context);
  const step = readings ? "window" : every(table, span);
  const asked = {
    ...last(table, span),
    ...chosen(table, context.focus),
    every: step,
    by: readings ? [...by, at] : by.length ? by : ["none"],
    columns,
    ...more,
  };
  const answer = await ask(table.table, "rows", asked);
  const whole = step === "window" ? length(table) : seconds(step);
  const [from, to] = [moment(answer.from), moment(answer.to)];
  for (const row of answer.rows) {
    const [start, end] = [moment(row.window_start), moment(row.window_end)];
    row.time = readings ? moment(row[at]) : start;
    // How many of the part's windows lie in it: at the edges of a span there are fewer.
    const covered = Math.min(end, to) - Math.max(start, from);
    row.windows = step === "window" || !length(table) ? 1 : Math.max(1, covered / length(table));
  }
  answer.rows.sort((one, other) => one.time - other.time);
  return { ...answer, step: readings ? null : whole, readings };
}

/** Rows over the whole span, by some keys. */
export async function total(part, columns, by, context, more = {}, but = []) {
  const { table } = part;
  return ask(table.table, "rows", {
    ...last(table, context.span),
    ...chosen(table, context.focus, but),
    every: length(table) ? "span" : "window",
    by: by.length ? by : ["none"],
    columns,
    ...more,
  });
}

/** What the figures of a span are of, where that isn't the span: windows that are longer. */
export function over(part, context) {
  const own = part.length;
  return own && context.span && own > seconds(context.span) ? `the last ${part.table.lasting.length}` : "";
}

/** The column by which groups are the largest: this one, if the server can order by it, else a count or a sum. */
export function order(table, name) {
  const found = aggregate(table, name);
  const plain = found && !found.questions.some((question) => !["rows", "distinct", "sets"].includes(question));
  return plain ? name : (table.columns.find((one) => ADDED.includes(one.aggregate))?.name ?? "");
}

/** Whether a key has this value, which an address has as text. */
export function same(focus, key, value) {
  return key in focus && String(focus[key]) === String(value);
}

/** Whether values of longer windows are sums of those of shorter ones. */
export function additive(table, name) {
  return ADDED.includes(aggregate(table, name)?.aggregate);
}

/** Whether an aggregate of that name is what the column holds. */
export function aggregate(table, name) {
  return table.columns.find((one) => one.name === name);
}
