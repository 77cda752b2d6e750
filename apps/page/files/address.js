// What the page's address says: span, keys, zone, the alert that is open, and whether nobody sits before it.

import * as zones from "./zone.js";
import { SPANS } from "./questions.js";

export const KIOSK_SECONDS = 20;
const LEAST_SECONDS = 1;

/** What is shown, as the address has it; `span` is null until it is known or chosen. */
export const view = { span: null, chose: false, focus: {}, alert: null, kiosk: null };

export function recall() {
  const query = new URLSearchParams(location.search);
  for (const key of Object.keys(view.focus)) delete view.focus[key];
  for (const [name, value] of query) if (name.startsWith("key.")) view.focus[name.slice(4)] = value;
  view.chose = SPANS.some(([one]) => one === query.get("span"));
  view.span = view.chose ? query.get("span") : null;
  view.alert = query.get("alert");
  const seconds = Number(query.get("kiosk") || KIOSK_SECONDS);
  view.kiosk = query.has("kiosk") ? Math.max(LEAST_SECONDS, Number.isFinite(seconds) ? seconds : KIOSK_SECONDS) : null;
  zones.recall(query.get("zone"));
}

/** The address of what is shown; `whole` also says what would be so without being said, as for somebody else. */
export function address(whole = false) {
  const query = new URLSearchParams();
  if (view.kiosk !== null && !whole) query.set("kiosk", view.kiosk);
  if (view.span !== null && (view.chose || whole)) query.set("span", view.span);
  if (zones.zone() !== zones.UTC || whole) query.set("zone", whole ? zones.named() : zones.zone());
  for (const [name, value] of Object.entries(view.focus)) query.set(`key.${name}`, value);
  if (view.alert !== null) query.set("alert", view.alert);
  return location.pathname + (query.size ? `?${query}` : "");
}

/** The address of another app, with the span and the zone of this one. */
export function beside(path) {
  const query = new URLSearchParams();
  if (view.kiosk !== null) query.set("kiosk", view.kiosk);
  if (view.chose) query.set("span", view.span);
  if (zones.zone() !== zones.UTC) query.set("zone", zones.zone());
  return path + (query.size ? `?${query}` : "");
}

/** Make the address say what is shown. Each choice is a step that the browser's Back undoes. */
export function remember() {
  const now = address();
  if (now !== location.pathname + location.search) history.pushState(null, "", now);
}
