// Figures with their bounds, read from answers as rules read them, and how they are written.

import { el } from "./dom.js";
import { local } from "./zone.js";

const UNITS = { us: 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600, d: 86400, w: 604800 };

/** Seconds of a length such as "1m" or "1h30m". */
export function seconds(text) {
  let sum = 0;
  for (const [, number, unit] of String(text).matchAll(/(\d+(?:\.\d+)?)(us|ms|s|m|h|d|w)/g)) {
    sum += number * UNITS[unit];
  }
  return sum;
}

/** A length as it is written in questions: whole units, the largest that fits. */
export function written(length) {
  for (const unit of ["d", "h", "m", "s", "ms"]) {
    const number = length / UNITS[unit];
    if (Number.isInteger(number)) return `${number}${unit}`;
  }
  return `${Math.round(length * 1e6)}us`;
}

/** Seconds since 1970 of an ISO time of the server; null without one. */
export function moment(text) {
  const time = text == null ? NaN : Date.parse(text) / 1000;
  return Number.isFinite(time) ? time : null;
}

/** The answer that a path names, and the part of it: "latency.p99" is of "latency". */
export function column(path) {
  return path.split(".", 1)[0];
}

/** What a row holds under a path: a key, an answer, or a part of one. */
export function cell(row, path) {
  if (path in row) return row[path];
  const name = column(path);
  const part = path.slice(name.length + 1);
  const answer = row[name];
  if (answer == null || typeof answer !== "object") return null;
  const rank = /^p(\d+(?:\.\d+)?)$/.exec(part);
  if (rank && answer.quantiles !== undefined) {
    const share = rank[1] / 100;
    return (answer.quantiles ?? []).find((one) => Math.abs(one.q - share) < 1e-9) ?? null;
  }
  return part in answer ? answer[part] : null;
}

/** A number with its bounds, {value, lower, upper}; null where nothing is known. */
export function figure(row, path) {
  return plain(cell(row, path));
}

function plain(answer) {
  if (typeof answer === "number") return Number.isFinite(answer) ? { value: answer, lower: answer, upper: answer } : null;
  if (typeof answer === "string" && answer.trim() !== "" && Number.isFinite(Number(answer))) return plain(Number(answer));
  if (answer == null || typeof answer !== "object") return null;
  const value = answer.estimate ?? answer.value;
  if (typeof value !== "number") return null;
  if ("estimate" in answer) {
    // Counts are whole; their bounds are written no narrower than they are.
    return { value: Math.round(value), lower: Math.floor(number(answer.lower, value)), upper: Math.ceil(number(answer.upper, value)) };
  }
  return { value, lower: number(answer.lower, value), upper: number(answer.upper, value) };
}

function number(value, otherwise) {
  return typeof value === "number" ? value : otherwise;
}

/** A figure held against another one: its share (%), its change from it (%), or so many times it. */
export function against(one, other, way) {
  if (!one || !other || other.lower <= 0 || other.value <= 0) return null;
  const scale = way === "factor" ? 1 : 100;
  const less = way === "change" ? 100 : 0;
  return {
    value: (one.value / other.value) * scale - less,
    lower: (one.lower / other.upper) * scale - less,
    upper: (one.upper / other.lower) * scale - less,
  };
}

/** The figure that a panel shows of a row, and its unit. */
export function shown(row, panel) {
  const one = figure(row, panel.value);
  return panel.to ? against(one, figure(row, panel.to), panel.against) : one;
}

export function unit(panel) {
  if (!panel.to || panel.unit) return panel.unit ?? "";
  return panel.against === "factor" ? "×" : "%";
}

export function exact(one) {
  return one.lower === one.value && one.upper === one.value;
}

export function scaled(one, by) {
  return one && { value: one.value * by, lower: one.lower * by, upper: one.upper * by };
}

const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 3 });
const FOUR = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 4 });
const TWO = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** A number as people read it. */
export function format(value) {
  if (value == null || !Number.isFinite(value)) return "–";
  if (Number.isInteger(value)) return WHOLE.format(value);
  return Math.abs(value) >= 100 ? TWO.format(value) : FOUR.format(value);
}

/** The same for an axis, where there is little room. */
export function brief(value) {
  if (value == null) return "";
  return Math.abs(value) >= 10000 ? SHORT.format(value) : FOUR.format(value);
}

export function withUnit(text, of) {
  if (!of) return text;
  return of === "%" || of === "×" || of.startsWith("°") ? text + (of.startsWith("°") ? " " : "") + of : `${text} ${of}`;
}

const BYTES = ["bytes", "kB", "MB", "GB", "TB", "PB"];
const SECONDS = [["s", 1], ["ms", 1e-3], ["µs", 1e-6], ["ns", 1e-9]];

/** By what numbers about as large as this one are divided, and the unit that they then have. */
function scale(value, of) {
  const size = Math.abs(value);
  if (of === "bytes") {
    const power = size < 1000 ? 0 : Math.min(BYTES.length - 1, Math.floor(Math.log10(size) / 3));
    return [1000 ** power, BYTES[power]];
  }
  if (of === "s" && size > 0 && size < 1) {
    const [name, by] = SECONDS.find(([, one]) => size >= one) ?? SECONDS.at(-1);
    return [by, name];
  }
  return [1, of ?? ""];
}

/** A number with its unit, which is as large as the number wants it: 1.5 MB, 3.2 ms. */
export function measured(value, of, write = format) {
  if (value == null || !Number.isFinite(value)) return "–";
  const [by, name] = scale(value, of);
  return withUnit(by === 1 ? write(value) : FOUR.format(value / by), name);
}

/** The same where there is little room: millions and more in short; the number and, by itself, its unit. */
export function short(value, of) {
  const whole = measured(value, of, (one) => (Math.abs(one) >= 1e7 ? SHORT.format(one) : format(one)));
  const at = whole.indexOf(" ");
  return at < 0 ? [whole, ""] : [whole.slice(0, at), whole.slice(at + 1)];
}

/** A unit that a tile's head says for all of its numbers: things that are counted, such as posts. */
export function counted(of) {
  return /^[a-z]{5,}$/.test(of) && of !== "bytes";
}

/** The bounds of a figure, "" if it is exact, or closer to them than people read numbers. */
export function bounds(one, of = "") {
  const [value, lower, upper] = [one.value, one.lower, one.upper].map((each) => measured(each, of));
  return lower === value && upper === value ? "" : `(${lower} – ${upper})`;
}

const ROUGH = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 2 });

/** How far its bounds are from a figure, in short: ± 12, or −4 +9; "" where `bounds` is. */
export function margin(one, of = "") {
  if (!bounds(one, of)) return "";
  const [by, name] = scale(one.value, of);
  const [less, more] = [one.value - one.lower, one.upper - one.value].map((each) => ROUGH.format(each / by));
  const given = name === "%" || name === "×" ? name : "";
  if (less === more) return `± ${more}${given}`;
  return [less !== "0" && `−${less}${given}`, more !== "0" && `+${more}${given}`].filter(Boolean).join(" ");
}

/** The bounds of an estimate: how far they are off, and in full where it is pointed at; null of what is exact. */
export function uncertainty(one, of = "") {
  const full = bounds(one, of);
  return full ? el("small", { class: "bounds", title: `between ${full.slice(1, -1).replace(" – ", " and ")}` }, el("span", { class: "short", "aria-hidden": "true" }, margin(one, of)), el("span", { class: "full" }, ` ${full}`)) : null;
}

/** A time, to the second or, of days, to the day; in the zone of the page. */
export function clock(at, day = false) {
  if (at == null) return "–";
  const [date, time] = local(at);
  return day ? date : `${date} ${time}`;
}

/** From one time to another, to the minute where that says enough; the day once if it is one, none if it is today. */
export function between(from, to) {
  const short = from % 60 === 0 && to - from >= 600;
  const [one, other] = [clock(from), clock(to)].map((text) => (short ? text.slice(0, 16) : text));
  const same = one.slice(0, 10) === other.slice(0, 10);
  const today = same && one.startsWith(clock(Date.now() / 1000, true));
  return `${today ? one.slice(11) : one} – ${same ? other.slice(11) : other}`;
}

/** A window by its ends: the times alone where it is of today, to the minute where both are whole ones. */
export function spanned(from, to) {
  const whole = from % 60 === 0 && to % 60 === 0;
  const today = clock(Date.now() / 1000, true);
  const [one, other] = [from, to].map((at) => local(at).map((part, place) => (place && whole ? part.slice(0, 5) : part)));
  if (one[1].startsWith("00:00") && other[1].startsWith("00:00") && to - from > 80000) {
    return to - from < 90000 ? one[0] : `${one[0]} – ${clock(to - 1, true)}`;
  }
  const same = one[0] === other[0];
  return `${same && one[0] === today ? "" : `${one[0]} `}${one[1]} – ${same ? "" : `${other[0]} `}${other[1]}`;
}

/** How long that is, in words of one or two units. */
export function lasting(length) {
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = units.findIndex(([, size]) => length >= size);
  if (first < 0) return "less than 1 s";
  const [name, size] = units[first];
  const whole = Math.floor(length / size);
  const next = units[first + 1];
  const rest = next ? Math.floor((length - whole * size) / next[1]) : 0;
  return rest && whole < 10 ? `${whole} ${name} ${rest} ${next[0]}` : `${whole} ${name}`;
}

// Nothing is seen of them, or they turn the text around them; ends of lines and tabs are blanks here.
const UNSEEN = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}\p{Cs}]/gu;

/** A text in which nothing is overlooked: what can't be seen as escapes, and blanks alone in quotes. */
export function visible(given) {
  const escaped = given.replace(UNSEEN, (one) => {
    const code = one.codePointAt(0).toString(16);
    return code.length < 3 ? `\\x${code.padStart(2, "0")}` : `\\u${code.length > 4 ? `{${code}}` : code.padStart(4, "0")}`;
  });
  return escaped.trim() ? escaped : `'${escaped}'`;
}

/** Any value of a row as text: times of keys, structs, what is missing. */
export function text(value) {
  if (value == null) return "–";
  if (typeof value === "number") return format(value);
  if (typeof value === "string") return ISO.test(value) ? clock(Date.parse(ISO_ZONED.test(value) ? value : `${value}Z`) / 1000) : visible(value);
  if (Array.isArray(value)) return value.map(text).join(", ");
  if (typeof value === "object") {
    const one = plain(value);
    if (one) return `${format(one.value)} ${bounds(one)}`.trim();
    return Object.entries(value).map(([name, part]) => `${name} ${text(part)}`).join(" · ");
  }
  return String(value);
}

const ISO_ZONED = /(\+00:00|Z)$/;
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)?$/;
