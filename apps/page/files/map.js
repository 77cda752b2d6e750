// Points on the earth or on the sky, drawn as SVG: no tiles are fetched from anywhere. Land and
// constellations are the page's own files.

import { behind, el, empty, put, svg } from "./dom.js";
import { column, figure, format, measured, text } from "./numbers.js";
import { aggregate, order, same, total } from "./questions.js";

const [WIDTH, HEIGHT] = [720, 360];
const MOST = 2000;
const LEAST_HIGH = 3;

export function map(panel, context) {
  const place = el("div", {});
  return {
    node: place,
    async update() {
      const part = context.part(panel.part);
      const { table } = part;
      const paths = [panel.longitude, panel.latitude, panel.value].filter(Boolean);
      const columns = [...new Set(paths.map(column))].filter((name) => aggregate(table, name));
      const keys = [panel.label, ...paths.filter((path) => table.keys.some((key) => key.name === path))];
      const more = { limit: MOST, ...(panel.value && order(table, panel.value) === panel.value ? { order: `-${panel.value}` } : {}) };
      const wanted = columns.length ? columns : [table.columns[0].name];
      const answer = await total(part, wanted, [...new Set(keys)], context, more, [panel.label]);
      const points = answer.rows.map((row) => point(row, panel)).filter(Boolean);
      if (!points.length) return put(place, empty("No position in this span", "Choose a longer span, or wait for the first window."));
      const project = panel.sky ? sky(await strokes()) : earth(points, await rings());
      const most = Math.max(...points.map((one) => one.value?.value ?? 0));
      const list = points.toReversed().map((one, number) => dot(one, project, most, panel, context, number === points.length - 1));
      const box = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "map", role: "group", "aria-label": `${panel.title}: ${format(points.length)} points` };
      const heads = [panel.label, "longitude", "latitude", ...(panel.value ? [panel.unit || "value"] : [])];
      const tabled = () => [heads, points.map((one) => [text(one.key), ...one.at.map((at) => `${format(at)}°`), ...(panel.value ? [one.value ? measured(one.value.value, panel.unit) : ""] : [])])];
      put(place, svg("svg", box, project.lines, list), note(points, panel, answer.rows.length, project.land), behind(panel.title, tabled).node);
    },
  };
}

function note(points, panel, rows, land) {
  const extent = panel.sky
    ? "The whole sky (Mollweide), right ascension to the left. Constellations: d3-celestial."
    : `${format(Math.min(...points.map((one) => one.at[1])))}° to ${format(Math.max(...points.map((one) => one.at[1])))}° latitude, north up.`;
  return el("p", { class: "note" }, `${format(points.length)} points. ${extent}${rows >= MOST ? ` At most ${format(MOST)} are shown.` : ""}${land ? " Land: Natural Earth, 1:110 million." : ""}`);
}

function point(row, panel) {
  const [longitude, latitude] = [panel.longitude, panel.latitude].map((path) => figure(row, path)?.value);
  if (longitude == null || latitude == null || Math.abs(latitude) > 90) return null;
  const turned = ((((longitude + 180) % 360) + 360) % 360) - 180;
  return { key: row[panel.label], at: [turned, latitude], value: panel.value ? figure(row, panel.value) : null };
}

function dot(one, project, most, panel, context, first) {
  const [x, y] = project.at(one.at);
  const size = one.value && most > 0 ? 3 + 7 * Math.sqrt(Math.max(0, one.value.value) / most) : 4.5;
  const here = same(context.focus, panel.label, one.key);
  const label = one.value ? `${text(one.key)}: ${measured(one.value.value, panel.unit)}` : text(one.key);
  const choose = () => context.choose({ [panel.label]: one.key });
  // One stop for the tabulator; arrows go from point to point.
  const key = (event) => {
    const next = { ArrowRight: "previousElementSibling", ArrowLeft: "nextElementSibling" }[event.key];
    if (next) event.target[next]?.focus();
    else if (["Enter", " "].includes(event.key)) choose();
    else return;
    event.preventDefault();
  };
  const given = { cx: x, cy: y, r: size, class: here ? "dot here" : "dot", tabindex: first ? "0" : "-1", role: "button", "aria-label": label, onclick: choose, onkeydown: key };
  return svg("circle", given, svg("title", {}, label));
}

/** The whole sky by Mollweide's projection, right ascension 0 in the middle, growing to the left. */
function sky(lines) {
  const at = ([longitude, latitude]) => {
    const phi = (latitude * Math.PI) / 180;
    let theta = phi;
    for (let turn = 0; turn < 30 && Math.abs(latitude) < 89.9; turn++) {
      theta -= (2 * theta + Math.sin(2 * theta) - Math.PI * Math.sin(phi)) / (2 + 2 * Math.cos(2 * theta));
    }
    if (Math.abs(latitude) >= 89.9) theta = phi;
    return [WIDTH / 2 - (longitude / 180) * Math.cos(theta) * (WIDTH / 2 - 4), HEIGHT / 2 - Math.sin(theta) * (HEIGHT / 2 - 4)];
  };
  const path = (places) => svg("polyline", { class: "graticule", points: places.map((one) => at(one).map((each) => each.toFixed(1)).join(",")).join(" ") });
  const steps = (from, to, count) => Array.from({ length: count + 1 }, (_, number) => from + ((to - from) * number) / count);
  const meridians = steps(-180, 180, 12).map((longitude) => path(steps(-90, 90, 36).map((latitude) => [longitude + (longitude === 180 ? -1e-6 : 0), latitude])));
  const parallels = steps(-60, 60, 4).map((latitude) => path(steps(-179.999, 179.999, 72).map((longitude) => [longitude, latitude])));
  const names = [-120, -60, 0, 60, 120].map((longitude) => {
    const [x, y] = at([longitude, 0]);
    return svg("text", { x: x + 3, y: y - 3, class: "name" }, `${((longitude + 360) % 360) / 15}h`);
  });
  const constellations = svg("path", { class: "constellations", d: figures(lines, at) });
  return { at, lines: [meridians, parallels, constellations, names].flat() };
}

/** The path of constellations' strokes: one that crosses the edge at 12 hours continues on the other side. */
export function figures(lines, at) {
  const path = [];
  const draw = (letter, place) => path.push(letter + at(place).map((each) => each.toFixed(1)).join(" "));
  const turn = ([x]) => 360 * Math.floor((x + 180) / 360);
  for (const line of lines) {
    line.forEach(([x, y], number) => {
      const [before, now] = [number ? turn(line[number - 1]) : turn(line[0]), turn(line[number])];
      if (before !== now) {
        const [from, height] = line[number - 1];
        const edge = (before + now) / 2;
        const crossing = height + ((edge - from) / (x - from)) * (y - height);
        draw("L", [edge - before, crossing]);
        draw("M", [edge - now, crossing]);
      }
      draw(number ? "L" : "M", [x - now, y]);
    });
  }
  return path.join("");
}

const STEPS = [90, 45, 30, 15, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001];

let land = null;

/** The rings of all land, read when the first map of the earth is drawn. */
async function rings() {
  if (!land) {
    const { LAND } = await import("./land.js");
    land = LAND.trim().split("\n").map(unpacked);
  }
  return land;
}

let figured = null;

/** The strokes of all constellations, read when the first map of the sky is drawn. */
async function strokes() {
  if (!figured) {
    const { LINES } = await import("./constellations.js");
    figured = LINES.trim().split("\n").map(unpacked);
  }
  return figured;
}

/** Places in degrees from hundredths, each less the one before. */
export function unpacked(line) {
  const numbers = line.split(" ").map(Number);
  const ring = [];
  for (let at = 0, x = 0, y = 0; at < numbers.length; at += 2) ring.push([(x += numbers[at]) / 100, (y += numbers[at + 1]) / 100]);
  return ring;
}

/**
 * Land that is seen between these degrees, and its coast. Where the picture reaches beyond the date line, it is
 * there once more. Of a small part of the earth there is none: the coast is some kilometres off at this scale.
 */
export function coasts(land, at, [west, east], [south, north]) {
  if (north - south < LEAST_HIGH) return [];
  const [filled, drawn] = [[], []];
  for (const turn of [-360, 0, 360]) {
    for (const ring of land) {
      const [xs, ys] = [0, 1].map((axis) => ring.map((one) => one[axis] + (axis ? 0 : turn)));
      if (Math.max(...xs) < west || Math.min(...xs) > east || Math.max(...ys) < south || Math.min(...ys) > north) continue;
      const places = xs.map((x, number) => at([x, ys[number]]).map((each) => each.toFixed(1)).join(" "));
      filled.push(`M${places.join("L")}Z`);
      // A ring that is closed at the pole has no coast there.
      const polar = (number) => ring[number][1] < -89.9;
      drawn.push(places.map((one, number) => (number && !polar(number) && !polar(number - 1) ? "L" : "M") + one).join(""));
    }
  }
  return [svg("path", { class: "land", d: filled.join("") }), svg("path", { class: "coast", d: drawn.join("") })];
}

/** The part of the earth that the points lie in, each degree as wide as it is at its middle. */
function earth(points, land) {
  const [xs, ys] = [0, 1].map((axis) => points.map((one) => one.at[axis]));
  const middle = [(Math.min(...xs) + Math.max(...xs)) / 2, (Math.min(...ys) + Math.max(...ys)) / 2];
  const narrow = Math.max(0.1, Math.cos((middle[1] * Math.PI) / 180));
  const across = Math.max((Math.max(...xs) - Math.min(...xs)) * narrow, 0.002);
  const up = Math.max(Math.max(...ys) - Math.min(...ys), 0.001);
  const scale = Math.min((WIDTH - 60) / across, (HEIGHT - 50) / up);
  const at = ([longitude, latitude]) => [WIDTH / 2 + (longitude - middle[0]) * narrow * scale, HEIGHT / 2 - (latitude - middle[1]) * scale];
  const [wide, high] = [WIDTH / narrow / scale, HEIGHT / scale];
  const around = (centre, size) => [centre - size / 2, centre + size / 2];
  const shapes = coasts(land, at, around(middle[0], wide), around(middle[1], high));
  const step = STEPS.find((one) => wide / one >= 3) ?? STEPS.at(-1);
  const lines = [];
  const from = (middle_, size) => Math.ceil((middle_ - size / 2) / step) * step;
  const name = (value, letters) => `${format(Math.abs(Number(value.toFixed(4))))}° ${value >= 0 ? letters[0] : letters[1]}`;
  for (let x = from(middle[0], wide); x <= middle[0] + wide / 2; x += step) {
    const [left] = at([x, middle[1]]);
    lines.push(svg("line", { class: "graticule", x1: left, x2: left, y1: 0, y2: HEIGHT }), svg("text", { class: "name", x: left + 3, y: HEIGHT - 5 }, name(x, "EW")));
  }
  for (let y = from(middle[1], high); y <= middle[1] + high / 2; y += step) {
    const [, top] = at([middle[0], y]);
    lines.push(svg("line", { class: "graticule", x1: 0, x2: WIDTH, y1: top, y2: top }), svg("text", { class: "name", x: 4, y: top - 4 }, name(y, "NS")));
  }
  // A picture within the picture: what lies beside the map's own box is cut off on wide screens, too.
  const within = shapes.length ? [svg("svg", { width: WIDTH, height: HEIGHT }, shapes)] : [];
  return { at, lines: [...within, ...lines, ...bar(scale, high)], land: shapes.length > 0 };
}

const KM_A_DEGREE = 111.195;

/** A bar of round length, where a degree is about as wide all over the map. */
export function bar(scale, high) {
  if (high > 20) return [];
  const most = (140 / scale) * KM_A_DEGREE * 1000;
  const power = 10 ** Math.floor(Math.log10(most));
  const metres = [5, 2, 1].find((one) => one * power <= most) * power;
  const [end, y, long] = [WIDTH - 12, HEIGHT - 22, (metres / 1000 / KM_A_DEGREE) * scale];
  const label = metres >= 1000 ? `${format(metres / 1000)} km` : `${format(metres)} m`;
  return [
    svg("path", { class: "scale", d: `M${end - long} ${y - 4}V${y}H${end}V${y - 4}` }),
    svg("text", { class: "name", x: end - long + 3, y: y - 5 }, label),
  ];
}
