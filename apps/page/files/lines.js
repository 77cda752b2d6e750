// Values over time with their bounds: lines by key, candles, a band of quantiles, one number's course in small.

import { behind, el, empty, put, shows } from "./dom.js";
import { TimeChart, colour } from "./chart.js";
import { bounds, column, counted, exact, figure, measured, moment, scaled, seconds, short, shown, text, format, uncertainty, unit, written } from "./numbers.js";
import { additive, aggregate, chosen, course, covered, every, fills, last, length, merged, order, over, same, total } from "./questions.js";

/** Pixels that a candle needs, with the space beside it. */
const CANDLE = 9;
/** Windows of which one may be filled in part. */
const MANY = 10;
const NOTHING = "No rows in this span";
const LONGER = "Choose a longer span, or wait for the first window.";

function wanted(panel) {
  return [...new Set([panel.value, panel.to, panel.lower, panel.upper].filter(Boolean).map(column))];
}

/** What a panel draws of a row: its figure, with sums for one window's length. */
function point(row, panel, table) {
  let one = shown(row, panel);
  if (!one) return null;
  if (!panel.to && additive(table, column(panel.value))) one = scaled(one, 1 / row.windows);
  const [lower, upper] = [panel.lower, panel.upper].map((path) => path && figure(row, path)?.value);
  return { time: row.time, value: one.value, lower: lower || one.lower, upper: upper || one.upper, partial: row.partial };
}

/** The values of the key that are the largest over the span. */
async function largest(panel, part, context) {
  if (!panel.by || panel.by in context.focus) return {};
  const first = order(part.table, column(panel.to || panel.value));
  const columns = [first || column(panel.value)];
  const totals = await total(part, columns, [panel.by], context, { limit: panel.most, ...(first ? { order: `-${first}` } : {}) });
  const names = totals.rows.map((row) => row[panel.by]);
  const { key } = chosen(part.table, context.focus);
  return { key: { ...key, [panel.by]: names.length ? names : [null] } };
}

export function lines(panel, context) {
  const chart = new TimeChart();
  const place = el("div", {});
  return {
    node: place,
    drop: () => chart.drop(),
    async update() {
      const part = context.part(panel.part);
      const keys = await largest(panel, part, context);
      const answer = await course(part, wanted(panel), panel.by ? [panel.by] : [], context, keys);
      const groups = new Map();
      for (const row of answer.rows) {
        const one = point(row, panel, part.table);
        const name = panel.by && row[panel.by] !== null ? text(row[panel.by]) : "";
        if (one) groups.set(name, [...(groups.get(name) ?? []), one]);
      }
      if (!groups.size) return put(place, empty(NOTHING, LONGER));
      const names = [...groups.keys()].sort();
      const moved = panel.from_first && names.length > 1;
      const drawn = (points) => (moved ? fromFirst(points) : points);
      const series = names.map((name, number) => ({ name, number, colour: colour(number), points: drawn(groups.get(name)) }));
      const scale = panel.to && panel.against === "share" ? 100 : 1;
      const whole = panel.to || !additive(part.table, column(panel.value)) ? answer.step : null;
      // A limit is of one window: of longer ones, only sums say that.
      const longer = whole && whole > (part.length ?? whole) && !panel.to;
      const limits = (panel.limits || []).filter((limit) => !longer && held(limit, context.focus)).map((limit) => ({ ...limit, at: limit.at * scale }));
      if (!moved && series.every((one) => one.points.length < 2)) {
        // One window is no course: its figures are written out.
        const words = answer.step && el("p", { class: "note" }, "Only one window so far; the chart begins with the second.");
        put(place, el("div", { class: "legend alone" }, series.map((one) => alone(one, unit(panel)))), words);
        return noted(unit(panel), answer.step && written(answer.step), over(part, answer));
      }
      if (chart.node.parentNode !== place) put(place, chart.node);
      chart.draw(series, { title: panel.title, unit: moved ? "%" : unit(panel), step: answer.step, limits, zero: true });
      if (moved) return noted("% from the first", answer.step && `each point ${written(answer.step)}`, over(part, answer));
      const sums = !panel.to && additive(part.table, column(panel.value));
      const each = answer.readings ? "each reading" : answer.step && (sums ? `in ${written(part.length)}` : `each point ${written(answer.step)}`);
      return noted(unit(panel), each, over(part, answer));
    },
  };
}

export function candles(panel, context) {
  const chart = new TimeChart();
  const heading = el("div", {});
  const place = el("div", {});
  return {
    node: place,
    drop: () => chart.drop(),
    async update() {
      const part = context.part(panel.part);
      const keys = await largest({ ...panel, most: 1 }, part, context);
      const most = Math.max(20, Math.floor((place.clientWidth || 600) / CANDLE));
      const paths = ["open", "high", "low", "close"].map((name) => panel[name]);
      const answer = await course(part, [...new Set(paths.map(column))], [], context, keys, most);
      const points = answer.rows.map((row) => candle(row, paths)).filter(Boolean);
      if (!points.length) return put(place, empty(NOTHING, LONGER));
      const name = text(panel.by in context.focus ? context.focus[panel.by] : keys.key[panel.by][0]);
      if (!shows(heading, name)) put(heading, el("p", { class: "caption" }, `${panel.by} `, el("b", { title: name }, name)));
      if (chart.node.parentNode !== place) put(place, heading, chart.node);
      chart.draw([{ name: "", number: 0, colour: colour(0), points }], { title: `${panel.title}, ${name}`, unit: unit(panel), step: answer.step, candles: true });
      return noted(unit(panel), answer.step && `each candle ${written(answer.step)}`, over(part, answer));
    },
  };
}

/** A row as a candle; null where a price is missing. */
function candle(row, paths) {
  const [open, upper, lower, value] = paths.map((path) => figure(row, path)?.value);
  if ([open, upper, lower, value].includes(undefined)) return null;
  return { time: row.time, open, upper, lower, value, partial: row.partial };
}

/** A series of a single point, in words. */
function alone(one, of) {
  const [only] = one.points;
  const so = only.partial && el("em", {}, "so far");
  return el("span", { class: "entry" }, one.name && el("b", { title: one.name }, one.name), el("strong", {}, measured(only.value, of)), el("span", {}, bounds(only, of) && [" ", uncertainty(only, of)], so));
}

/** What a tile says of its numbers: their unit, what each stands for, the span of all. */
function noted(...parts) {
  return parts.filter(Boolean).join(" · ");
}

/** Points as changes in percent from the first that isn't 0. */
function fromFirst(points) {
  const base = points.find((point) => point.value)?.value;
  const change = (value) => (value == null || !base ? null : (value / base - 1) * 100);
  return points.map((point) => ({ ...point, value: change(point.value), lower: change(point.lower), upper: change(point.upper) }));
}

function held(limit, focus) {
  return Object.entries(limit.where).every(([key, value]) => !(key in focus) || same(focus, key, value));
}

export function spread(panel, context) {
  const chart = new TimeChart();
  const bars = el("div", {});
  const place = el("div", {});
  return {
    node: place,
    drop: () => chart.drop(),
    async update() {
      const part = context.part(panel.part);
      const name = column(panel.value);
      const q = [...new Set([...panel.ranks, 0.5])].sort((a, b) => a - b);
      const { table } = part;
      const span = { ...last(table, context.span), ...chosen(table, context.focus), column: name, by: ["none"] };
      const step = every(table, context.span);
      const [parts, all] = await Promise.all([
        merged(table, "quantiles", { ...span, every: step, q }),
        merged(table, "quantiles", { ...span, q: Array.from({ length: 41 }, (_, at) => at / 40) }),
      ]);
      if (!parts.rows.length) return put(place, empty(NOTHING, LONGER));
      const series = q.map((rank, number) => ({
        name: rank === 0.5 ? "median" : `p${format(rank * 100)}`,
        number,
        colour: colour(number),
        points: parts.rows
          .filter((row) => row.q === rank && Number.isFinite(row.value))
          .map((row) => ({ time: moment(row.window_start), value: row.value, lower: row.lower, upper: row.upper, partial: fills(parts, row) }))
          .sort((one, other) => one.time - other.time),
      }));
      put(bars, histogram(all.rows, panel));
      if (series.every((one) => one.points.length < 2)) {
        // One window is no course: its quantiles are written out.
        const entries = series.filter((one) => one.points.length).map((one) => el("span", { class: "entry" }, el("b", {}, one.name), quantile(one.points[0], panel)));
        put(place, el("div", { class: "legend" }, entries), bars);
        return noted(panel.unit, over(part, all));
      }
      if (chart.node.parentNode !== place) put(place, chart.node, bars);
      const apart = step === "window" ? length(table) : seconds(step);
      chart.draw(series, { title: panel.title, unit: panel.unit, step: apart });
      return noted(panel.unit, apart && `each point ${written(apart)}`, over(part, all));
    },
  };
}

function quantile(one, panel) {
  return el("span", {}, measured(one.value, panel.unit), " ", uncertainty(one, panel.unit));
}

/** A histogram drawn of quantiles: between two of them lies the same share of all values. */
function histogram(rows, panel) {
  const values = rows.filter((row) => Number.isFinite(row.value)).map((row) => row.value);
  if (values.length < 3) return "";
  const [low, high] = [values[0], values.at(-1)];
  const bins = 24;
  const width = (high - low) / bins;
  if (!width) return el("p", { class: "note" }, `All values are ${measured(low, panel.unit)}.`);
  const counts = new Array(bins).fill(0);
  for (let at = 1; at < values.length; at++) {
    const [from, to] = [values[at - 1], values[at]];
    for (let bin = 0; bin < bins; bin++) {
      const [left, right] = [low + bin * width, low + (bin + 1) * width];
      const common = to === from ? (from >= left && (from < right || bin === bins - 1) ? 1 : 0) : Math.max(0, Math.min(to, right) - Math.max(from, left)) / (to - from);
      counts[bin] += common / (values.length - 1);
    }
  }
  const most = Math.max(...counts);
  const bars = counts.map((share, bin) => {
    const title = `${measured(low + bin * width, panel.unit)} – ${measured(low + (bin + 1) * width, panel.unit)}: about ${format(share * 100)}%`;
    return el("i", { css: { height: `${(100 * share) / most}%` }, title });
  });
  const edges = (bin) => [low + bin * width, low + (bin + 1) * width].map((at) => measured(at, panel.unit));
  const tabled = () => [["from", "to", "share"], counts.map((share, bin) => [...edges(bin), `${format(share * 100)}%`])];
  return el(
    "figure", { class: "histogram" },
    el("div", { class: "bars", role: "img", "aria-label": `Histogram from ${format(low)} to ${format(high)}` }, bars),
    el("figcaption", {}, el("span", {}, measured(low, panel.unit)), el("span", {}, "distribution of values over the span"), el("span", {}, measured(high, panel.unit))),
    behind("Histogram", tabled).node,
  );
}

export function number(panel, context) {
  const chart = new TimeChart(72);
  const figures = el("div", { class: "figure" });
  const place = el("div", {}, figures);
  return {
    node: place,
    drop: () => chart.drop(),
    async update() {
      const part = context.part(panel.part);
      const [whole, parts] = await Promise.all([
        total(part, wanted(panel), [], context),
        course(part, wanted(panel), [], context),
      ]);
      const row = whole.rows[0];
      const one = row && shown(row, panel);
      if (!one) {
        chart.node.remove();
        shows(figures, null);
        return put(figures, empty(NOTHING, LONGER));
      }
      if (!shows(figures, one, whole.from, whole.to, unit(panel))) {
        const all = measured(one.value, unit(panel));
        const [number, of] = short(one.value, unit(panel));
        const note = exact(one) ? el("span", { class: "exact" }, "exact") : (uncertainty(one, unit(panel)) ?? el("span", { class: "exact" }, "almost exact"));
        put(figures, el("strong", { title: all }, number, of && el("small", {}, " ", of)), note, rate(panel, part, one, whole));
      }
      // A window that still fills would look like a fall, and two points are no trend.
      const points = parts.rows.filter((each) => !each.partial).map((each) => point(each, panel, part.table)).filter(Boolean);
      if (points.length < 3) {
        chart.node.remove();
        return over(part, whole);
      }
      if (chart.node.parentNode !== place) place.append(chart.node);
      chart.draw([{ name: "", number: 0, colour: colour(0), points }], { title: panel.title, unit: unit(panel), step: parts.step, zero: true });
      return over(part, whole);
    },
  };
}

/**
 * How many a second that are, of what is counted. The first rows of all came anywhere in their window, so with few
 * windows it isn't known how long they took.
 */
function rate(panel, part, one, answer) {
  const adds = aggregate(part.table, column(panel.value))?.aggregate === "count" || panel.unit === "bytes";
  const length = covered(part, answer);
  const since = moment(answer.from) > moment(part.table.from) || length >= MANY * (part.length ?? 0);
  return !panel.to && adds && since && length > 0 && el("span", { class: "rate" }, `${measured(one.value / length, counted(unit(panel)) ? "" : unit(panel), rough)}/s`);
}

function rough(value) {
  return format(Number(value.toPrecision(3)));
}
