// The time zone in which every time of the page is written: UTC, the browser's own, or any other.

const KEY = "streamgauge.zone";

export const UTC = "UTC";
export const LOCAL = "local";

let chosen = UTC;
let explicit = false;
let formats = null;

/** The zone that was chosen: UTC, local, or a name as IANA has it. */
export function zone() {
  return chosen;
}

/** The zone's name as IANA has it. */
export function named() {
  return chosen === LOCAL ? Intl.DateTimeFormat().resolvedOptions().timeZone : chosen;
}

/** Choose a zone; one that the browser doesn't know is left alone, and that is false. */
export function choose(one) {
  if (one !== LOCAL && !known(one)) return false;
  chosen = one;
  formats = null;
  return true;
}

/** The zone of the address, else the one that was chosen here last, else UTC. */
export function recall(given) {
  explicit = given !== null && choose(given);
  if (explicit) return;
  const kept = localStorage.getItem(KEY);
  explicit = kept !== null && choose(kept);
  if (!explicit) choose(UTC);
}

/** Take the zone whose days a table's windows are, unless one was chosen. */
export function prefer(name) {
  if (!explicit) choose(name);
}

export function keep() {
  explicit = true;
  localStorage.setItem(KEY, chosen);
}

function known(name) {
  try {
    return Boolean(name) && Boolean(new Intl.DateTimeFormat("en", { timeZone: name }));
  } catch {
    return false;
  }
}

/** All zones that can be chosen. */
export function zones() {
  return Intl.supportedValuesOf("timeZone").filter((name) => name !== UTC);
}

/** The day and the time of an instant (seconds since 1970) in the zone: 2026-01-31, 14:03:07. */
export function local(at) {
  if (named() === UTC) return new Date(at * 1000).toISOString().slice(0, 19).split("T");
  formats ??= new Intl.DateTimeFormat("en", {
    timeZone: named(), hourCycle: "h23", year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
  });
  const parts = Object.fromEntries(formats.formatToParts(at * 1000).map(({ type, value }) => [type, value]));
  return [`${parts.year.padStart(4, "0")}-${parts.month}-${parts.day}`, `${parts.hour}:${parts.minute}:${parts.second}`];
}

/** How far the zone is from UTC at an instant, such as UTC+2; by itself for UTC. */
export function offset(at = Date.now() / 1000) {
  if (named() === UTC) return UTC;
  const name = new Intl.DateTimeFormat("en", { timeZone: named(), timeZoneName: "shortOffset" }).formatToParts(at * 1000).find(({ type }) => type === "timeZoneName").value;
  return name.replace("GMT", "UTC");
}

/** The picker: what is chosen is called `changed`. */
export function picker(changed) {
  const option = (value, label = value) => {
    const one = document.createElement("option");
    [one.value, one.textContent] = [value, label];
    return one;
  };
  const node = document.createElement("select");
  node.className = "zone";
  node.setAttribute("aria-label", "Time zone");
  node.title = "Time zone";
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  node.append(option(UTC), option(LOCAL, `local (${own})`), ...zones().map((name) => option(name, name.replaceAll("_", " "))));
  node.addEventListener("change", () => {
    choose(node.value);
    keep();
    changed();
  });
  return node;
}
