// One connection for the events of any number of listeners, each of an app: browsers keep six to a server.

const FIRST_WAIT = 500;
const LONGEST_WAIT = 10000;

/** Listeners are {app, update, broken, unauthorized}: what changed, what is wrong (null: nothing), a wrong token. */
export class Stream {
  #listeners = new Map();
  #states = new Map();
  #apps = [];
  #token = null;
  #wrong = null;
  #connection = null;

  join(id, token, listener) {
    this.#listeners.set(id, listener);
    const state = this.#states.get(listener.app);
    if (this.#connection && state !== undefined) listener.update(JSON.parse(state));
    if (this.#connection && this.#wrong) listener.broken(this.#wrong);
    const covered = this.#connection && this.#apps.includes(listener.app) && token === this.#token;
    this.#token = token;
    if (!covered) this.#connect();
  }

  leave(id) {
    this.#listeners.delete(id);
    if (!this.#listeners.size) this.#close();
  }

  #close() {
    this.#connection?.abort();
    this.#connection = null;
  }

  #connect() {
    this.#close();
    this.#apps = [...new Set([...this.#listeners.values()].map((one) => one.app))];
    this.#connection = new AbortController();
    this.#states.clear();
    this.#follow(this.#connection.signal);
  }

  async #follow(signal) {
    const query = new URLSearchParams(this.#apps.map((app) => ["app", app]));
    const headers = this.#token ? { Authorization: `Bearer ${this.#token}` } : {};
    let wait = FIRST_WAIT;
    while (!signal.aborted) {
      try {
        const response = await fetch(`/changes?${query}`, { signal, headers });
        if (response.status === 401) {
          this.#close();
          for (const one of this.#listeners.values()) one.unauthorized();
          return;
        }
        if (!response.ok) this.#say((await response.json()).detail);
        else {
          this.#say(null);
          wait = FIRST_WAIT;
          for await (const event of events(response.body)) {
            if (event.data) this.#update(JSON.parse(event.data).apps);
          }
        }
      } catch (error) {
        if (signal.aborted) return;
        this.#say("the server doesn't answer; trying again");
      }
      await new Promise((go) => setTimeout(go, wait));
      wait = Math.min(wait * 2, LONGEST_WAIT);
    }
  }

  #say(wrong) {
    this.#wrong = wrong;
    for (const one of this.#listeners.values()) one.broken(wrong);
  }

  #update(apps) {
    for (const [app, state] of Object.entries(apps)) {
      const text = JSON.stringify(state);
      if (this.#states.get(app) === text) continue;
      this.#states.set(app, text);
      for (const one of this.#listeners.values()) if (one.app === app) one.update(state);
    }
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
      const fields = {};
      for (const line of part.split("\n")) {
        const at = line.indexOf(":");
        if (at > 0) fields[line.slice(0, at)] = line.slice(at + 1).trimStart();
      }
      yield fields;
    }
  }
}
