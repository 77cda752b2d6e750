// Which windows a panel requests: the page's span, merged to about as many points as can be seen.

import { Refused, query } from "./server.js";
import { between, figure, lasting, moment, seconds, written } from "./numbers.js";

const POINTS = 160;
const MUCH = ["The question asks for too much", "The question took too long"];
const DEPTH = 10;
/** Questions, with the lengths of their spans, that were too much: they are asked in parts at once. */
const refused = new Set();
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

/**
 * The answer to a question, of as much as the server merges for one: what has a row for each step is put together
 * from parts of the span, as are counts, sums and extremes of all of it; what else is one figure of all is of its
 * latest half, or half of that.
 */
export async function merged(table, question, parameters, depth = 0) {
  const span = depth < DEPTH ? halves(table, parameters) : null;
  const sign = span && [table.table, question, parameters.every, Math.round(span[2] - span[0])].join(" ");
  if (!refused.has(sign)) {
    try {
      return await query(table.table, question, parameters);
    } catch (error) {
      if (!span || !(error instanceof Refused) || !MUCH.includes(error.title)) throw error;
      if (error.title === MUCH[0]) refused.add(sign);
    }
  }
  const { last: _, ...rest } = parameters;
  const [from, middle, to] = span.map((at) => new Date(at * 1000).toISOString());
  const ask = (since, until) => merged(table, question, { ...rest, from: since, ...(until ? { to: until } : {}) }, depth + 1);
  const one = !parameters.every || parameters.every === "span";
  const known = one && combinable(table, question, parameters);
  if (one && !known) return { ...(await ask(middle, parameters.to)), latest: true };
  const [first, second] = [await ask(from, middle), await ask(middle, parameters.to ?? to)];
  const rows = one ? combined(table, parameters, first.rows, second.rows) : [...first.rows, ...second.rows];
  return { ...second, from: first.from ?? second.from, rows };
}

const COMBINED = { count: (one, other) => one + other, sum: (one, other) => one + other, min: Math.min, max: Math.max };

/** Whether all figures of a question about a whole span follow from those of its halves. */
function combinable(table, question, { columns, limit }) {
  return question === "rows" && !limit && columns.every((name) => aggregate(table, name)?.aggregate in COMBINED);
}

/** The rows of two halves of a span, those of the same keys as one. */
function combined(table, { by, columns }, first, second) {
  const keys = by.filter((name) => name !== "none");
  const sign = (row) => JSON.stringify(keys.map((name) => row[name]));
  const rows = new Map(first.map((row) => [sign(row), row]));
  for (const row of second) {
    const other = rows.get(sign(row));
    rows.set(sign(row), other ? { ...row, window_start: other.window_start, ...Object.fromEntries(columns.map((name) => [name, both(table, name, row, other)])) } : row);
  }
  return [...rows.values()];
}

function both(table, name, row, other) {
  const [one, before] = [row, other].map((each) => figure(each, name));
  if (!one || !before) return row[name] ?? other[name];
  const combine = COMBINED[aggregate(table, name).aggregate];
  return { value: combine(one.value, before.value), lower: combine(one.lower, before.lower), upper: combine(one.upper, before.upper) };
}

/** Where a span begins, where steps begin in its middle, and where it ends; null if it is a single step. */
function halves(table, { every, last, from, to }) {
  const end = moment(to ?? table.to);
  const begin = from ? moment(from) : last ? end - seconds(last) : moment(table.from);
  const step = every && !["span", "window"].includes(every) ? seconds(every) : (length(table) ?? 1);
  if (begin === null || end === null) return null;
  const middle = Math.floor((begin + end) / 2 / step) * step;
  return middle > begin && middle < end ? [begin, middle, end] : null;
}

/** The length of a part's windows in seconds, null where they have none. */
export function length(table) {
  const { window } = table;
  return window?.size && ["tumbling", "hopping"].includes(window.kind) ? seconds(window.size) : null;
}

/** The time up to which a table has rows: the end of its last window, unless that one still fills. */
function known(table, size) {
  const [to, mark] = [moment(table.to), moment(table.watermark)];
  if (!table.open || mark === null) return to;
  return Math.min(to, Math.max(mark, to - size));
}

/** The span as the server takes it: the fewest windows that cover it, up to what is known. */
export function last(table, span) {
  if (!span || table.lasting?.kind === "all") return {};
  const size = length(table);
  const end = size && known(table, size);
  if (!end) return { last: span };
  const start = moment(table.to) - Math.ceil((moment(table.to) - end + seconds(span)) / size - 1e-9) * size;
  return { from: new Date(start * 1000).toISOString() };
}

/** The length of the windows to merge into, so that a span has about as many as a picture shows. */
export function every(table, span, most = POINTS) {
  const ownLength = length(table);
  if (!ownLength) return "window";
  const known = (moment(table.to) ?? 0) - (moment(table.from) ?? 0);
  const whole = span ? Math.min(seconds(span), known || Infinity) : known;
  const wanted = whole / most;
  if (wanted <= ownLength) return "window";
  // A length that clocks have, of whole windows; else so many windows.
  const fits = (one) => one >= wanted && Math.abs(one / ownLength - Math.round(one / ownLength)) < 1e-9;
  return written(STEPS.find(fits) ?? Math.ceil(wanted / ownLength) * ownLength);
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
export async function course(part, columns, by, context, more = {}, most = POINTS) {
  const { table, at } = part;
  const span = context.span;
  const readings = at && few(part, context);
  const step = readings ? "window" : every(table, span, most);
  const parameters = {
    ...last(table, span),
    ...chosen(table, context.focus),
    every: step,
    by: readings ? [...by, at] : by.length ? by : ["none"],
    columns,
    ...more,
  };
  const answer = await merged(table, "rows", parameters);
  const whole = step === "window" ? length(table) : seconds(step);
  const [from, to] = [moment(answer.from), moment(answer.to)];
  for (const row of answer.rows) {
    const [start, end] = [moment(row.window_start), moment(row.window_end)];
    row.time = readings ? moment(row[at]) : start;
    // How many of the part's windows lie in it: at the edges of a span there are fewer.
    const covered = Math.min(end, to) - Math.max(start, from);
    row.windows = step === "window" || !length(table) ? 1 : Math.max(1, covered / length(table));
    row.partial = !readings && fills(answer, row);
  }
  answer.rows.sort((one, other) => one.time - other.time);
  return { ...answer, step: readings ? null : whole, readings };
}

/** Whether a row is of a window that may still fill, or of windows of which the span has only some. */
export function fills(answer, row) {
  const [start, end, mark] = [row.window_start, row.window_end, answer.watermark].map(moment);
  return start < moment(answer.from) || end > moment(answer.to) || (answer.open && mark !== null && end > mark);
}

/** Rows over the whole span, by some keys. */
export async function total(part, columns, by, context, more = {}, but = []) {
  const { table } = part;
  return merged(table, "rows", {
    ...last(table, context.span),
    ...chosen(table, context.focus, but),
    every: length(table) ? "span" : "window",
    by: by.length ? by : ["none"],
    columns,
    ...more,
  });
}

/** The span that an answer covers, up to what is known of windows that still fill; if there are any, it says so. */
export function over(part, answer) {
  const [from, to] = ends(part, answer);
  if (from === null || to === null || to <= from) return "";
  return `${between(from, to)} (${lasting(to - from)})${filling(answer) ? " so far" : ""}${answer.latest ? ", the latest part that one question can merge" : ""}`;
}

/** How many seconds an answer covers. */
export function covered(part, answer) {
  const [from, to] = ends(part, answer);
  return from === null || to === null ? 0 : to - from;
}

function ends(part, answer) {
  return [moment(answer.from), answer.open && part.length ? known(answer, part.length) : moment(answer.to)];
}

/** Whether the last windows of an answer still fill. */
function filling(answer) {
  const [to, mark] = [moment(answer.to), moment(answer.watermark)];
  return Boolean(answer.open) && mark !== null && to > mark;
}

/** The column by which groups are the largest: this one, if the server can order by it, else a count or a sum. */
export function order(table, name) {
  const declared = aggregate(table, name);
  const plain = declared && !declared.questions.some((question) => !["rows", "distinct", "sets"].includes(question));
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
