// Pictures over time, on uPlot: lines and points with the bounds of each, limits, gaps, a cursor for keys.

import { el, put } from "./dom.js";
import { brief, clock, format, withUnit } from "./numbers.js";

export const COLOURS = 8;

const probe = document.body.appendChild(el("i", { hidden: true }));

/** A colour of the sheet as a canvas takes it, in the scheme that is shown. */
export function css(name) {
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

export function colour(number) {
  return css(`--series-${number % COLOURS}`);
}

/** Times as an axis shows them: days where they change, else hours and minutes, always UTC. */
function ticks(u, splits, axis, space, step) {
  let before = "";
  return splits.map((at) => {
    const [day, time] = new Date(at * 1000).toISOString().split("T");
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
 * marks (points, no line), from and to.
 */
export class TimeChart {
  constructor(height = 240) {
    this.place = el("div", { class: "chart", tabindex: "0", role: "group", onkeydown: (event) => this.#key(event) });
    this.legend = el("div", { class: "legend" });
    this.node = el("div", {}, this.place, this.legend);
    this.height = height;
    this.small = height < 100;
    this.shape = "";
    this.resized = new ResizeObserver(() => this.#fit());
    this.resized.observe(this.place);
  }

  draw(series, options) {
    this.series = series;
    this.options = options;
    this.drawn = series.flatMap(parted);
    const shape = JSON.stringify([this.drawn.map((one) => [one.name, one.colour, one.dash, one.points.length < 3]), options.unit, options.down, options.marks, document.documentElement.dataset.theme, css("--ink")]);
    const data = this.#data();
    if (shape !== this.shape || !this.plot) {
      this.shape = shape;
      this.plot?.destroy();
      this.plot = new window.uPlot(this.#made(), data, this.place);
    } else {
      this.plot.setData(data);
    }
    this.#showValues(null);
    const from = clock(data[0][0]);
    this.place.setAttribute("aria-label", `${options.title}: ${series.map((one) => one.name).filter(Boolean).join(", ")}, from ${from} on. Arrow keys move the cursor.`);
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
    const { unit, down, marks } = this.options;
    const [ink, faint] = [css("--faint-ink"), css("--line")];
    const font = "11px system-ui, sans-serif";
    const curves = this.drawn.map((one) => {
      const joined = !marks && (one.dash || one.points.length > 2);
      return {
        label: one.name,
        stroke: one.colour,
        width: joined ? 1.6 : 0,
        dash: one.dash,
        paths: joined ? undefined : () => null,
        points: marks || one.dash ? { show: false } : { size: joined ? 5 : 7, fill: one.colour, ...(joined ? {} : { show: true }) },
      };
    });
    return {
      width: this.place.clientWidth || 300,
      height: this.height,
      tzDate: (at) => window.uPlot.tzDate(new Date(at * 1e3), "Etc/UTC"),
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
          values: (u, values) => values.map((value) => withUnit(brief(value), unit === "%" ? "%" : "")),
        },
      ],
      hooks: {
        drawAxes: [(u) => this.#behind(u)],
        draw: [(u) => this.#limits(u)],
        setCursor: [(u) => this.#showValues(u.cursor.idx)],
      },
    };
  }

  /** All times, with room for the marks of the first and the last. */
  #times() {
    const [low, high] = [this.grid[0], this.grid.at(-1)];
    const room = this.options.marks || low === high ? (high - low || this.options.step || 60) * 0.03 : 0;
    return [low - room, high + room];
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

  /** Bounds and gaps, before the lines. */
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
    for (const [from, to] of this.options.marks ? [] : missing(this.series, step)) {
      ctx.fillRect(x(from), box.top, x(to) - x(from), box.height);
    }
    for (const one of this.series) {
      ctx.fillStyle = ctx.strokeStyle = one.colour;
      if (this.options.marks) this.#marked(ctx, one, x, y);
      else this.#banded(ctx, one, x, y);
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
      ctx.fillText(`${limit.rule} ${format(limit.at)}`, bbox.left + 6 * devicePixelRatio, top - 4 * devicePixelRatio);
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
        el("i", { class: `swatch series-${one.number % COLOURS}` }),
        one.name && el("b", {}, one.name),
        el("span", {}, point ? this.#figure(point) : "–"),
      );
    });
    put(this.legend, el("span", { class: "when" }, at == null ? "latest" : clock(at)), entries);
  }

  #figure(point) {
    const value = withUnit(format(point.value), this.options.unit);
    if (point.mark === "limit") return `fainter than ${value}`;
    if (point.mark === "forced") return `${value} ± ${format((point.upper - point.lower) / 2)}, forced photometry`;
    const label = point.lower === point.upper ? value : `${value} (${format(point.lower)} – ${format(point.upper)})`;
    return point.partial ? `${label} so far` : label;
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
    const width = this.place.clientWidth;
    if (this.plot && width && width !== this.plot.width) this.plot.setSize({ width, height: this.height });
  }
}

/** A series as two: what is whole, and dashed what still fills, from its whole neighbours on. */
export function parted(one) {
  const { points } = one;
  if (!points.some((point) => point.partial)) return [one];
  const beside = (point, at) => point.partial || points[at - 1]?.partial || points[at + 1]?.partial;
  return [{ ...one, points: points.filter((point) => !point.partial) }, { ...one, points: points.filter(beside), dash: [4, 4] }];
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

/** The points that hang together. */
function runs(points, step) {
  const longest = step ? step * 1.5 : usual(points);
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

/** Spans in which no series has anything. */
function missing(series, step) {
  const points = series.flatMap((one) => one.points).sort((one, other) => one.time - other.time);
  const parts = runs(points, step);
  return parts.slice(1).map((run, number) => [parts[number].at(-1).time + (step ?? 0), run[0].time]);
}
