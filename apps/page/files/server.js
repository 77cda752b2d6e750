// Questions to the server, with the token if it wants one, and its events.

const KEY = "streamgauge.token";
let token = sessionStorage.getItem(KEY);
let asking = null;

export class Refused extends Error {
  constructor(problem, status) {
    super(problem.detail ?? problem.title ?? `status ${status}`);
    this.title = problem.title ?? "";
    this.status = status;
  }
}

/** Who asks for the token when one is wanted: an async function that gives it. */
export function tokenBy(ask) {
  asking = ask;
}

let pending = null;

async function newToken(used) {
  if (token !== used) return;
  pending ??= asking().then((given) => {
    token = given;
    sessionStorage.setItem(KEY, given);
    pending = null;
  });
  await pending;
}

async function sent(path, options = {}) {
  for (;;) {
    const used = token;
    const headers = { ...options.headers };
    if (used) headers.Authorization = `Bearer ${used}`;
    const response = await fetch(path, { ...options, headers });
    if (response.status !== 401) return response;
    await newToken(used);
  }
}

async function answered(response) {
  const found = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(found, response.status);
  return found;
}

export async function get(path) {
  return answered(await sent(path));
}

/** An answer about a table: its rows, and what they stand on. */
export async function ask(table, question, asked = {}) {
  const body = JSON.stringify(asked);
  const headers = { "Content-Type": "application/json" };
  return answered(await sent(`/tables/${encodeURIComponent(table)}/${question}`, { method: "POST", headers, body }));
}

/** Call `take` with each event's name and data, for ever; `broken` with what is wrong, null once it is well. */
export async function follow(path, take, broken, signal) {
  let last = null;
  let patience = 500;
  while (!signal.aborted) {
    try {
      const response = await sent(path, { signal, headers: last ? { "Last-Event-ID": last } : {} });
      if (!response.ok) await answered(response);
      broken(null);
      patience = 500;
      for await (const event of events(response.body)) {
        last = event.id ?? last;
        if (event.data) take(event.event ?? "message", JSON.parse(event.data));
      }
    } catch (error) {
      if (signal.aborted) return;
      broken(error instanceof Refused ? error.message : "the server doesn't answer; trying again");
    }
    await new Promise((go) => setTimeout(go, patience));
    patience = Math.min(patience * 2, 10000);
  }
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    const parts = rest.split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const found = {};
      for (const line of part.split("\n")) {
        const at = line.indexOf(":");
        if (at > 0) found[line.slice(0, at)] = line.slice(at + 1).trimStart();
      }
      yield found;
    }
  }
}
