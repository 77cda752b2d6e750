// Pictures over time, on uPlot: lines and points with the bounds of each, limits, gaps, a cursor for keys.

import { behind, clipped, el, put } from "./dom.js";
import { bounds, brief, clock, measured, spanned, uncertainty, withUnit } from "./numbers.js";
import { local, named, zone } from "./zone.js";

export const COLOURS = 8;
const TABLED = 1000;
const NAMED = 8;

const probe = document.body.appendChild(el("i", { hidden: true }));

/** A colour of the sheet as a canvas takes it, in the scheme that is shown. */
export function css(name) {
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

export function colour(number) {
  return css(`--series-${number % COLOURS}`);
}

/** Times as an axis shows them: days where they change, else hours and minutes. */
function ticks(u, splits, axis, space, step) {
  let before = "";
  return splits.map((at) => {
    const [day, time] = local(at);
    const date = step >= 28 * 86400 ? day.slice(0, 7) : day.slice(5);
    const moment = step < 60 ? time.slice(0, 8) : time.slice(0, 5);
    const label = step >= 86400 ? date : before === day ? moment : `${moment}\n${day}`;
    before = day;
    return label;
  });
}

/**
 * A chart of series over time. Each is {name, colour, points: [{time, value, lower, upper, mark}]}, in order of
 * time; `options`: unit, step (seconds from point to point, null of readings), limits, down (small on top),
 * marks (points, no line), candles (each point has its `open` too, and closes at its value), moment (since when,
 * at, and until when something was so; null: it still is). A point that is `here` is what it is about. The chart
 * is as high as its place, at least `height`.
 */
export class TimeChart {
  constructor(height = 240) {
    this.canvas = el("div", { class: "canvas" });
    this.place = el("div", { class: "chart", css: { "min-height": `${height}px` }, tabindex: "0", role: "group", onkeydown: (event) => this.#key(event) }, this.canvas);
    this.legend = el("div", { class: "legend" });
    this.least = height;
    this.small = height < 100;
    this.table = this.small ? null : behind("Chart", () => this.#tabled());
    this.node = el("div", { class: "drawn" }, this.place, this.legend, this.table?.node ?? []);
    this.shape = "";
    this.resized = new ResizeObserver(() => this.#fit());
    this.resized.observe(this.place);
  }

  get height() {
    return Math.max(this.least, this.place.clientHeight);
  }

  draw(series, options) {
    // What has not changed is not drawn again.
    const sign = JSON.stringify([series, options, zone(), css("--ink")]);
    if (sign === this.sign && this.plot) return;
    this.sign = sign;
    this.drawings = (this.drawings ?? 0) + 1;
    this.place.dataset.drawings = this.drawings;
    this.series = series;
    this.options = options;
    this.drawn = series.flatMap(parted);
    const shape = JSON.stringify([this.drawn.map((one) => [one.name, one.colour, one.dash, one.points.length < 3]), options.unit, options.down, options.marks, options.candles, zone(), css("--ink")]);
    const data = this.#data();
    if (shape !== this.shape || !this.plot) {
      this.shape = shape;
      this.plot?.destroy();
      this.plot = new window.uPlot(this.#made(), data, this.canvas);
    } else {
      this.plot.setData(data);
    }
    this.#showValues(null);
    this.table?.renew();
    const from = clock(data[0][0]);
    const names = series.map((one) => clipped(one.name)).filter(Boolean);
    const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : "";
    const label = `${options.title}: ${names.slice(0, NAMED).join(", ")}${more}, from ${from} on. Arrow keys move the cursor.`;
    this.place.setAttribute("aria-label", label.length > 300 ? `${options.title}: ${series.length} series, from ${from} on. Arrow keys move the cursor.` : label);
  }

  /** The points as a table: a row for each time, the latest of very many. */
  #tabled() {
    const { step, unit } = this.options;
    const columns = this.series.map((one) => new Map(one.points.map((point) => [point.time, point])));
    const times = [...new Set(columns.flatMap((one) => [...one.keys()]))].sort((a, b) => a - b).slice(-TABLED);
    const cell = (point) => {
      if (!point) return "";
      const value = measured(point.value, unit);
      if (point.mark === "limit") return `fainter than ${value}`;
      const wide = point.lower !== point.upper ? ` (${measured(point.lower, unit)} to ${measured(point.upper, unit)})` : "";
      return `${value}${wide}${point.mark === "forced" ? ", forced" : ""}${point.partial ? ", so far" : ""}`;
    };
    if (this.options.candles) {
      const prices = (point) => [point.open, point.upper, point.lower, point.value].map((one) => price(one, unit));
      const rows = this.series[0].points.slice(-TABLED);
      return [["time", "open", "high", "low", "close", "change"], rows.map((point) => [spanned(point.time, point.time + step), ...prices(point), `${change(point)}${point.partial ? " so far" : ""}`.trim()])];
    }
    const heads = ["time", ...this.series.map((one) => one.name || (unit || "value"))];
    return [heads, times.map((at) => [step ? spanned(at, at + step) : clock(at), ...columns.map((one) => cell(one.get(at)))])];
  }

  drop() {
    this.resized.disconnect();
    this.plot?.destroy();
    this.plot = null;
  }

  #data() {
    const times = [...new Set(this.series.flatMap((one) => one.points.map((point) => point.time)))].sort((a, b) => a - b);
    const { step } = this.options;
    const holes = step ? [] : this.series.flatMap((one) => gaps(one.points).map(([from, to]) => (from + to) / 2));
    const grid = step ? spread(times, step) : [...new Set([...times, ...holes])].sort((a, b) => a - b);
    this.grid = grid;
    const place = new Map(grid.map((at, number) => [at, number]));
    const columns = this.drawn.map((one) => {
      // What is undefined is joined, a null is a gap: of readings, where many are missing.
      const column = new Array(grid.length).fill(step ? null : undefined);
      for (const [from, to] of step ? [] : gaps(one.points)) column.fill(null, place.get(from) + 1, place.get(to));
      for (const point of one.points) column[place.get(point.time)] = point.value;
      return column;
    });
    return [grid, ...columns];
  }

  #made() {
    const { unit, down } = this.options;
    const apart = this.options.marks || this.options.candles;
    const [ink, faint] = [css("--faint-ink"), css("--line")];
    const font = "11px system-ui, sans-serif";
    const curves = this.drawn.map((one) => {
      const joined = !apart && (one.dash || one.points.length > 2);
      return {
        label: one.name,
        stroke: one.colour,
        width: joined ? 1.6 : 0,
        dash: one.dash,
        paths: joined ? undefined : () => null,
        points: apart ? { show: false } : {
          size: joined ? 5 : 7, fill: one.colour, ...(joined && !one.dash ? {} : { show: !joined }),
          filter: (u, at, show) => (show ? null : lone(u.data[at])),
        },
      };
    });
    return {
      width: this.place.clientWidth || 300,
      height: this.height,
      tzDate: (at) => window.uPlot.tzDate(new Date(at * 1e3), named()),
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, points: { size: 7 }, focus: { prox: 24 } },
      padding: this.small ? [4, 2, 4, 2] : [10, 24, 0, 0],
      scales: { x: { range: () => this.#times() }, y: { dir: down ? -1 : 1, range: () => this.#range() } },
      series: [{}, ...curves],
      axes: this.small ? [{ show: false }, { show: false }] : [
        { stroke: ink, font, grid: { stroke: faint, width: 1 }, ticks: { stroke: faint, size: 4 }, values: ticks, space: 72 },
        {
          stroke: ink, font, grid: { stroke: faint, width: 1 }, ticks: { show: false },
          size: (u, values) => 14 + 6.4 * Math.max(3, ...(values ?? []).map((value) => value.length)),
          values: (u, values, axis, space, distance) => this.options.candles ? priced(values, distance) : values.map((value) => (["bytes", "%", "s"].includes(unit) ? measured(value, unit, brief) : brief(value))),
        },
      ],
      hooks: {
        drawAxes: [(u) => this.#behind(u)],
        draw: [(u) => this.#limits(u), (u) => this.#moment(u)],
        setCursor: [(u) => this.#showValues(u.cursor.idx)],
      },
    };
  }

  /** All times, with room for the marks of the first and the last. */
  #times() {
    const [low, high] = [this.grid[0], this.grid.at(-1)];
    if (this.options.candles) return [low - 0.6 * this.options.step, high + 0.6 * this.options.step];
    const room = this.options.marks || low === high ? (high - low || this.options.step || 60) * 0.03 : 0;
    const { moment } = this.options;
    const ends = [high + room, this.#filling()?.[1], moment && Math.max(moment.at, moment.over ?? moment.at)];
    return [low - room, Math.max(...ends.filter((at) => at != null))];
  }

  #range() {
    const ends = this.series.flatMap((one) => one.points.flatMap((point) => [point.lower, point.upper]));
    const all = ends.filter((value) => value != null);
    let [from, to] = [Math.min(...all), Math.max(...all)];
    for (const limit of this.options.limits ?? []) {
      from = Math.min(from, limit.at);
      to = Math.max(to, limit.at);
    }
    if (!Number.isFinite(from)) return [0, 1];
    if (this.options.zero && from > 0 && from < 0.6 * to) from = 0;
    const room = (to - from || Math.abs(to) || 1) * 0.08;
    return [from === 0 ? 0 : from - room, to + room];
  }

  /** From when to when the last windows still fill; not much more than a tenth of the picture is for them. */
  #filling() {
    const { step } = this.options;
    const starts = this.series.map((one) => one.points.at(-1)).filter((point) => point?.partial).map((point) => point.time);
    if (!step || !starts.length || this.small || this.options.candles) return null;
    const begin = Math.max(...starts);
    return [begin, begin + Math.min(step, Math.max((this.grid.at(-1) - this.grid[0]) * 0.12, step * 0.1))];
  }

  /** Bounds, gaps and windows that still fill, before the lines. */
  #behind(u) {
    const { ctx } = u;
    const x = (at) => u.valToPos(at, "x", true);
    const y = (value) => u.valToPos(value, "y", true);
    const box = u.bbox;
    ctx.save();
    ctx.beginPath();
    ctx.rect(box.left, box.top, box.width, box.height);
    ctx.clip();
    ctx.fillStyle = css("--gap");
    const { step } = this.options;
    // A candle stands around the time at which its window begins.
    const before = this.options.candles ? step / 2 : 0;
    for (const [from, to] of this.options.marks ? [] : missing(this.series, step)) {
      ctx.fillRect(x(from - before), box.top, x(to) - x(from), box.height);
    }
    const filling = this.#filling();
    if (filling) this.#hatched(ctx, x(filling[0]), x(filling[1]), box);
    for (const one of this.series) {
      ctx.fillStyle = ctx.strokeStyle = one.colour;
      if (this.options.marks) this.#marked(ctx, one, x, y);
      else if (this.options.candles) this.#candled(ctx, one, x, y);
      else this.#banded(ctx, one, x, y);
    }
    ctx.restore();
  }

  #hatched(ctx, left, right, box) {
    const apart = 7 * devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, box.top, right - left, box.height);
    ctx.clip();
    ctx.strokeStyle = css("--hatch");
    ctx.lineWidth = devicePixelRatio;
    ctx.beginPath();
    for (let at = left - box.height; at < right; at += apart) {
      ctx.moveTo(at, box.top + box.height);
      ctx.lineTo(at + box.height, box.top);
    }
    ctx.stroke();
    ctx.restore();
    ctx.save();
    ctx.fillStyle = css("--faint-ink");
    ctx.font = `${10 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textAlign = "right";
    ctx.textBaseline = "top";
    ctx.fillText("so far", right - 3 * devicePixelRatio, box.top + 2 * devicePixelRatio);
    ctx.restore();
  }

  /** When something was so: from when to when, and the point that it is about. */
  #moment(u) {
    const { moment } = this.options;
    if (!moment) return;
    const { ctx, bbox } = u;
    const x = (at) => Math.max(bbox.left, Math.min(bbox.left + bbox.width, u.valToPos(at, "x", true)));
    const [begin, end] = [x(moment.at), moment.over === null ? bbox.left + bbox.width : x(moment.over)];
    ctx.save();
    ctx.fillStyle = ctx.strokeStyle = css("--alarm");
    ctx.globalAlpha = 0.1;
    ctx.fillRect(begin, bbox.top, end - begin, bbox.height);
    ctx.globalAlpha = 1;
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.setLineDash([]);
    ctx.beginPath();
    ctx.moveTo(begin, bbox.top);
    ctx.lineTo(begin, bbox.top + bbox.height);
    ctx.stroke();
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textBaseline = "top";
    const near = begin > bbox.left + 0.8 * bbox.width;
    ctx.textAlign = near ? "right" : "left";
    ctx.fillText("fired", begin + (near ? -5 : 5) * devicePixelRatio, bbox.top + 2 * devicePixelRatio);
    for (const point of this.series.flatMap((one) => one.points).filter((one) => one.here)) {
      const [left, top, low, high] = [u.valToPos(point.time, "x", true), ...[point.value, point.lower, point.upper].map((value) => u.valToPos(value, "y", true))];
      ctx.beginPath();
      ctx.moveTo(left, low);
      ctx.lineTo(left, high);
      ctx.stroke();
      ctx.beginPath();
      ctx.arc(left, top, 5 * devicePixelRatio, 0, 2 * Math.PI);
      ctx.stroke();
    }
    ctx.restore();
  }

  #banded(ctx, one, x, y) {
    for (const run of runs(one.points, this.options.step)) {
      if (run.every((point) => point.lower === point.upper)) continue;
      ctx.globalAlpha = 0.22;
      ctx.beginPath();
      if (run.length === 1) {
        const [point] = run;
        ctx.fillRect(x(point.time) - 3, y(point.upper), 6, y(point.lower) - y(point.upper));
      }
      for (const point of run) ctx.lineTo(x(point.time), y(point.upper));
      for (const point of run.toReversed()) ctx.lineTo(x(point.time), y(point.lower));
      ctx.fill();
      ctx.globalAlpha = 1;
    }
  }

  #marked(ctx, one, x, y) {
    const size = 3.5 * devicePixelRatio;
    ctx.lineWidth = devicePixelRatio * 1.2;
    for (const point of one.points) {
      const [left, top] = [x(point.time), y(point.value)];
      ctx.beginPath();
      if (point.mark === "limit") {
        ctx.globalAlpha = 0.6;
        ctx.moveTo(left - size, top);
        ctx.lineTo(left + size, top);
        ctx.lineTo(left, top + 1.6 * size);
        ctx.closePath();
        ctx.stroke();
        ctx.globalAlpha = 1;
        continue;
      }
      ctx.moveTo(left, y(point.lower));
      ctx.lineTo(left, y(point.upper));
      ctx.stroke();
      ctx.beginPath();
      ctx.arc(left, top, size, 0, 2 * Math.PI);
      if (point.mark === "forced") {
        ctx.fillStyle = css("--card");
        ctx.fill();
        ctx.stroke();
        ctx.fillStyle = one.colour;
      } else ctx.fill();
    }
  }

  /** Bodies and wicks: hollow what rises, filled what falls, a line what closes as it opened. */
  #candled(ctx, one, x, y) {
    const line = Math.max(1, Math.round(devicePixelRatio));
    const first = one.points[0].time;
    const room = x(first + this.options.step) - x(first);
    const half = Math.max(line, Math.round(Math.min(0.35 * room, 14 * devicePixelRatio)));
    const [rise, fall, still] = ["--rise", "--fall", "--faint-ink"].map(css);
    for (const point of one.points) {
      const [middle, opened, closed, high, low] = [x(point.time), ...[point.open, point.value, point.upper, point.lower].map(y)].map(Math.round);
      const [top, bottom] = [Math.min(opened, closed), Math.max(opened, closed)];
      const [rises, falls] = [point.value > point.open, point.value < point.open];
      ctx.fillStyle = rises ? rise : falls ? fall : still;
      ctx.globalAlpha = point.partial ? 0.5 : 1;
      const left = middle - half;
      const [width, height] = [2 * half + line, Math.max(line, bottom - top)];
      ctx.fillRect(middle, high, line, top - high);
      ctx.fillRect(middle, top + height, line, Math.max(0, low - top - height));
      ctx.fillRect(left, top, width, height);
      if (rises) ctx.clearRect(left + line, top + line, Math.max(0, width - 2 * line), Math.max(0, height - 2 * line));
    }
    ctx.globalAlpha = 1;
  }

  #limits(u) {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = css("--alarm");
    ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    for (const limit of this.options.limits ?? []) {
      const top = Math.round(u.valToPos(limit.at, "y", true)) + 0.5;
      ctx.beginPath();
      ctx.moveTo(bbox.left, top);
      ctx.lineTo(bbox.left + bbox.width, top);
      ctx.stroke();
      ctx.fillText(`${limit.rule} ${measured(limit.at, this.options.unit)}`, bbox.left + 6 * devicePixelRatio, top - 4 * devicePixelRatio);
    }
    ctx.restore();
  }

  /** The legend: what each series says where the cursor is, else at its end. */
  #showValues(place) {
    const at = place == null ? null : this.plot?.data[0][place];
    const entries = this.series.map((one) => {
      const point = at == null ? one.points.at(-1) : one.points.find((each) => each.time === at);
      return el(
        "span", { class: "entry" },
        !this.options.candles && el("i", { class: `swatch series-${one.number % COLOURS}` }),
        one.name && el("b", { title: one.name }, one.name),
        point ? this.#figure(point) : el("span", {}, "–"),
      );
    });
    const key = (name) => el("span", { class: "key" }, el("i", { class: `candle ${name}` }), name);
    put(this.legend, el("span", { class: "when" }, this.#when(at)), entries, this.options.candles ? [key("rise"), key("fall")] : []);
  }

  /** The time or the window that the legend is about. */
  #when(at) {
    const { step } = this.options;
    const time = at ?? Math.max(...this.series.map((one) => one.points.at(-1)?.time ?? -Infinity));
    if (!Number.isFinite(time)) return "";
    return at != null && !step ? clock(time) : step ? spanned(time, time + step) : `latest, ${clock(time)}`;
  }

  #figure(point) {
    const { unit } = this.options;
    const value = measured(point.value, unit);
    if (this.options.candles) {
      const prices = [["open", point.open], ["high", point.upper], ["low", point.lower], ["close", point.value]];
      return el("span", {}, [...prices.map(([name, one]) => `${name} ${price(one, unit)}`), change(point)].filter(Boolean).join(" · "), point.partial && el("em", {}, "so far"));
    }
    if (point.mark === "limit") return el("span", {}, `fainter than ${value}`);
    if (point.mark === "forced") return el("span", {}, `${value} ± ${measured((point.upper - point.lower) / 2, unit)}, forced photometry`);
    return el("span", {}, value, bounds(point, unit) && [" ", uncertainty(point, unit)], point.partial && el("em", {}, "so far"));
  }

  #key(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 };
    if (!this.plot || !(event.key in steps || ["Home", "End", "Escape"].includes(event.key))) return;
    event.preventDefault();
    const end = this.plot.data[0].length - 1;
    const now = this.plot.cursor.idx ?? end + 1;
    const next = event.key === "Home" ? 0 : event.key === "End" ? end : now + steps[event.key];
    if (event.key === "Escape") return this.plot.setCursor({ left: -10, top: -10 });
    const place = Math.max(0, Math.min(end, next));
    this.plot.setCursor({ left: this.plot.valToPos(this.plot.data[0][place], "x"), top: this.height / 3 });
  }

  #fit() {
    const [width, { height }] = [this.place.clientWidth, this];
    if (this.plot && width && (width !== this.plot.width || height !== this.plot.height)) this.plot.setSize({ width, height });
  }
}

/** A series as two: what is whole, and dashed what still fills, from its whole neighbours on. */
export function parted(one) {
  const { points } = one;
  if (!points.some((point) => point.partial)) return [one];
  const beside = (point, at) => point.partial || points[at - 1]?.partial || points[at + 1]?.partial;
  return [{ ...one, points: points.filter((point) => !point.partial) }, { ...one, points: points.filter(beside), dash: [4, 4] }];
}

/** A candle's change in percent with its sign; nothing where it opened at or below zero. */
function change({ open, value }) {
  if (open <= 0) return "";
  const percent = Number(((value / open - 1) * 100).toFixed(2));
  return `${percent > 0 ? "+" : percent < 0 ? "−" : ""}${Math.abs(percent).toFixed(2)}%`;
}

const PRICE = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 8 });

/** A price with the digits that tell it from the next one. */
function price(value, unit) {
  return withUnit(PRICE.format(value), unit);
}

/** Prices along an axis, all with the decimals that their distance has. */
export function priced(values, distance) {
  let decimals = 0;
  while (decimals < 12 && Math.abs(distance * 10 ** decimals - Math.round(distance * 10 ** decimals)) > 1e-6) decimals++;
  const write = new Intl.NumberFormat("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  return values.map((value) => write.format(value));
}

/** Every time from the first to the last, a step apart, and those that are given. */
function spread(times, step) {
  if (times.length < 2) return times;
  const first = times[0];
  const count = Math.round((times.at(-1) - first) / step) + 1;
  if (count > 20000) return times;
  const whole = Array.from({ length: count }, (_, number) => first + number * step);
  return [...new Set([...whole, ...times])].sort((a, b) => a - b);
}

/** The places of values that no line joins to another one; what is undefined is joined, a null is a gap. */
function lone(column) {
  const joined = (at, way) => {
    let next = at + way;
    while (column[next] === undefined && next in column) next += way;
    return column[next] != null;
  };
  return [...column.keys()].filter((at) => column[at] != null && !joined(at, -1) && !joined(at, 1));
}

/** The points that hang together; without a step, as far apart as the `typical` ones usually are. */
function runs(points, step, typical = points) {
  const longest = step ? step * 1.5 : usual(typical);
  const groups = [];
  for (const point of points) {
    const run = groups.at(-1);
    if (run && point.time - run.at(-1).time <= longest) run.push(point);
    else groups.push([point]);
  }
  return groups;
}

/** The time from one reading to the next beyond which something is missing. */
function usual(points) {
  const steps = points.slice(1).map((point, number) => point.time - points[number].time).sort((a, b) => a - b);
  return steps.length ? Math.max(5 * steps[Math.floor(steps.length / 2)], 1) : Infinity;
}

/** From the last reading before each gap to the first one after it. */
function gaps(points) {
  const parts = runs(points, null);
  return parts.slice(1).map((run, number) => [parts[number].at(-1).time, run[0].time]);
}

/** Spans in which no series has anything. The readings of all lie closer than any one's, so the fullest tells what is usual. */
function missing(series, step) {
  const points = series.flatMap((one) => one.points).sort((one, other) => one.time - other.time);
  const fullest = series.reduce((most, one) => (one.points.length > most.length ? one.points : most), []);
  const parts = runs(points, step, fullest);
  return parts.slice(1).map((run, number) => [parts[number].at(-1).time + (step ?? 0), run[0].time]);
}
