// A question in SQL to this server's tables: what is typed, the rows with their bounds, and where it is wrong.

import { el, empty, put } from "./dom.js";
import { bounds, exact, format, text } from "./numbers.js";
import { Refused, get, post } from "./server.js";

const KEY = "streamgauge.sql";

export async function questions(main) {
  const { tables } = await get("/tables");
  const place = el("div", {});
  const field = el("textarea", { id: "sql", rows: 6, spellcheck: "false", autocomplete: "off", "aria-describedby": "sql-tables" });
  field.value = sessionStorage.getItem(KEY) ?? example(tables);
  const run = el("button", { type: "submit" }, "Run");
  const form = el("form", { class: "sql", onsubmit: (event) => { event.preventDefault(); answer(); } },
    el("label", { for: "sql" }, "One SELECT over the tables of this server; Ctrl+Enter runs it"), field, run);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      answer();
    }
  });
  put(main, el("h1", {}, "SQL"), el("section", { class: "panel sql-panel" }, form, place),
    el("section", { class: "panel", id: "sql-tables" }, el("header", {}, el("h2", {}, "Tables")), listed(tables)));
  main.dataset.drawn = "1";
  document.title = "SQL · streamgauge";
  field.focus();

  async function answer() {
    const statement = field.value;
    sessionStorage.setItem(KEY, statement);
    run.disabled = true;
    try {
      put(place, rows(await post("/sql", { sql: statement })));
    } catch (error) {
      if (!(error instanceof Refused)) console.error(error);
      put(place, wrong(error, statement));
    } finally {
      run.disabled = false;
    }
  }
}

function example(tables) {
  const ready = tables.find((table) => table.columns?.length);
  if (!ready) return "";
  const quoted = (name) => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`);
  return `SELECT * FROM ${quoted(ready.table)}\n  WHERE window_start >= NOW() - INTERVAL '1' DAY LIMIT 20`;
}

/** The tables with their keys and aggregates: the names that a question may use. */
function listed(tables) {
  if (!tables.length) return empty("This server has no table");
  return el("dl", { class: "names" }, tables.map((table) => el("div", {},
    el("dt", {}, table.table),
    el("dd", {}, table.columns
      ? [...table.keys.map((key) => key.name), ...table.columns.map((one) => `${one.name}: ${one.aggregate}(${one.column ?? ""})`)].join(", ")
      : (table.waiting ?? "it can't answer yet")))));
}

function rows(result) {
  const { columns, bounds: edges } = result;
  if (!result.rows.length) return empty("No rows");
  const head = columns.map((name) => el("th", { scope: "col" }, name));
  const lines = result.rows.map((row, at) => el("tr", {}, row.map((value, column) => {
    if (typeof value !== "number") return el("td", {}, text(value));
    const [lower, upper] = edges?.[columns[column]]?.[at] ?? [value, value];
    const one = { value, lower, upper };
    return el("td", { class: "number" }, format(value), !exact(one) && el("small", {}, " ", bounds(one)));
  })));
  return [
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Rows" }, el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, lines))),
    el("p", { class: "note", role: "status" }, `${format(result.rows.length)} ${result.rows.length === 1 ? "row" : "rows"}`),
  ];
}

/** What is wrong, with the line of the statement and a mark below the column. */
function wrong(error, statement) {
  const { line, column } = error.problem ?? {};
  const shown = line && statement.split("\n")[line - 1];
  const mark = shown && `${shown}\n${shown.slice(0, column - 1).replace(/[^\t]/g, " ")}^`;
  return el("div", { class: "warning", role: "alert" }, el("p", {}, error.message), mark && el("pre", {}, mark));
}
