// Questions to the server, with the token if it wants one, and its events.

import { Stream } from "./stream.js";

const KEY = "streamgauge.token";
let token = sessionStorage.getItem(KEY);
let promptForToken = null;

export class Refused extends Error {
  constructor(problem, status) {
    super(problem.detail ?? problem.title ?? `status ${status}`);
    this.title = problem.title ?? "";
    this.problem = problem;
    this.status = status;
  }
}

/** Sets the function that asks the user for the token when one is needed; it is async and gives the token. */
export function tokenBy(prompt) {
  promptForToken = prompt;
}

let pending = null;

async function newToken(used) {
  if (token !== used) return;
  pending ??= promptForToken().then((given) => {
    token = given;
    sessionStorage.setItem(KEY, given);
    pending = null;
  });
  await pending;
}

async function send(path, options = {}) {
  for (;;) {
    const used = token;
    const headers = { ...options.headers };
    if (used) headers.Authorization = `Bearer ${used}`;
    const response = await fetch(path, { ...options, headers });
    if (response.status !== 401) return response;
    await newToken(used);
  }
}

async function parsed(response) {
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(body, response.status);
  return body;
}

export async function get(path) {
  return parsed(await send(path));
}

export async function post(path, value) {
  const headers = { "Content-Type": "application/json" };
  return parsed(await send(path, { method: "POST", headers, body: JSON.stringify(value) }));
}

/** Whether the server requires a token, which links can't carry. */
export function hasToken() {
  return Boolean(token);
}

/** A file of the server's, as it is. */
export async function blob(path) {
  const response = await send(path);
  return response.ok ? response.blob() : parsed(response);
}

/** An answer about a table: its rows, and what they stand on. */
export async function query(table, question, parameters = {}) {
  return post(`/tables/${encodeURIComponent(table)}/${question}`, parameters);
}

/** Call `update` with an app's state after each change while the tab is seen; `broken` with what is wrong, or null. */
export function follow(app, update, broken) {
  const stream = window.SharedWorker ? shared() : new Stream();
  const listener = { app, update, broken, unauthorized };
  let joined = false;

  function turn() {
    if (joined === !document.hidden) return;
    joined = !document.hidden;
    if (joined) stream.join(listener, token, listener);
    else stream.leave(listener);
  }

  async function unauthorized(used = token) {
    await newToken(used);
    if (joined) stream.join(listener, token, listener);
  }

  document.addEventListener("visibilitychange", turn);
  window.addEventListener("pagehide", () => { joined = false; stream.leave(listener); });
  window.addEventListener("pageshow", turn);
  turn();
}

/** The stream of the worker that all tabs share, for the one listener of this tab. */
function shared() {
  const worker = new SharedWorker(new URL("./shared.js", import.meta.url), { type: "module", name: "streamgauge" });
  let listener = null;
  worker.port.onmessage = ({ data }) => {
    if ("state" in data) listener?.update(data.state);
    else if ("wrong" in data) listener?.broken(data.wrong);
    else listener?.unauthorized(data.unauthorized);
  };
  return {
    join(id, used, one) {
      listener = one;
      worker.port.postMessage({ app: one.app, token: used });
    },
    leave() {
      listener = null;
      worker.port.postMessage({ app: null });
    },
  };
}
