// How far the tables are: event time, lag, what became of every message, and signs of a stale feed.

import { el, put } from "./dom.js";
import { clock, lasting, moment, format } from "./numbers.js";

const BEHIND = 2 * 86400;
const QUIET = 120;
const RATED = 60;
const PARTS = [["counted", "counted"], ["filtered", "filtered"], ["late", "late"], ["dead_lettered", "dead-lettered"]];

export function status() {
  const node = el("section", { class: "status", "aria-label": "Progress" });
  const seen = { read: null, since: Date.now() };
  const counts = [];
  let broken = null;
  let state = null;

  function draw() {
    const parts = Object.entries(state?.parts ?? {});
    const warnings = [broken && `No live changes: ${broken}`];
    for (const [name, part] of parts) {
      if (!part.ready) warnings.push(`${name} can't answer yet: ${part.waiting ?? "its log is being read"}`);
      if (part.stale) warnings.push(`${name} has not been followed since ${clock(moment(part.stale.since))}: ${part.stale.why}`);
    }
    warnings.push(...(state?.late ?? []));
    put(node, warnings.filter(Boolean).map((text) => el("p", { class: "warning", role: "status" }, text)), el("dl", {}, ...facts(parts.map(([, part]) => part))));
  }

  function facts(parts) {
    const marks = parts.map((part) => moment(part.watermark)).filter((at) => at !== null && at < 9e9);
    const ends = parts.map((part) => moment(part.to)).filter((at) => at !== null);
    const items = [];
    const mark = marks.length ? Math.min(...marks) : null;
    const behind = Date.now() / 1000 - mark;
    if (mark !== null) items.push(fact("final up to", clock(mark), behind > 0 && behind < BEHIND ? `${lasting(behind)} behind now` : "event time"));
    else if (ends.length) items.push(fact("up to", clock(Math.max(...ends)), "event time"));
    const lags = parts.map((part) => part.lag).filter((lag) => lag != null);
    if (lags.length) items.push(fact("to be read", format(Math.max(...lags)), "messages in the tables' logs"));
    const account = parts.map((part) => part.account).find(Boolean);
    if (account) items.push(read(account), ...late(account), ...rate(account), ...quiet(account));
    return items;
  }

  function read(account) {
    const sum = PARTS.reduce((whole, [name]) => whole + account[name], 0);
    const parts = PARTS.filter(([name]) => account[name] || name === "counted").map(([name, label]) => `${format(account[name])} ${label}`);
    const right = sum === account.read;
    return fact("messages read", format(account.read), `${right ? "=" : "≠"} ${parts.join(" + ")}`, !right ? "wrong" : account.late ? "late" : null);
  }

  /** The part whose windows left out the most messages as late, if that is more than the account shown says. */
  function late(account) {
    const named = Object.entries(state.parts).map(([name, part]) => [name, part.account?.late ?? 0]);
    const [name, most] = named.reduce((one, other) => (other[1] > one[1] ? other : one), ["", account.late]);
    return name ? [fact("late", format(most), `messages that the windows of ${name} left out`, "late")] : [];
  }

  /** How many messages a second there were in the last minute, as far as this page has seen it. */
  function rate(account) {
    const now = Date.now() / 1000;
    if (counts.at(-1)?.read > account.read) counts.length = 0;
    counts.push({ at: now, read: account.read });
    while (counts.length > 2 && counts[1].at <= now - RATED) counts.shift();
    const [{ at, read }] = counts;
    if (now - at < 2) return [];
    const label = now - at < RATED - 5 ? `in the last ${lasting(now - at)}` : "in the last minute";
    return [fact("now", `${format(Number(((account.read - read) / (now - at)).toPrecision(3)))} msg/s`, label)];
  }

  function quiet(account) {
    if (account.read !== seen.read) {
      seen.read = account.read;
      seen.since = Date.now();
    }
    const length = (Date.now() - seen.since) / 1000;
    return length > QUIET ? [fact("no message for", lasting(length), "the feed may be stale", "wrong")] : [];
  }

  setInterval(() => state && draw(), 30000).unref?.();
  return {
    node,
    draw,
    update(now) { state = now; draw(); },
    broken(why) { broken = why; draw(); },
  };
}

function fact(name, value, more, wrong) {
  return el("div", { class: wrong }, el("dt", {}, name), el("dd", {}, el("strong", {}, value), " ", el("span", {}, more)));
}
