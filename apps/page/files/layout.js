// How wide each tile is: as its kind deserves, and no row of the grid with a hole in it.

export const COLUMNS = 12;

// What it has at least, and at most, of twelve columns.
const WIDTHS = {
  fired: [4, 12], moment: [8, 12], lines: [4, 8], candles: [4, 8], lightcurve: [4, 8], map: [4, 12], spread: [4, 8], rows: [12, 12], object: [12, 12],
  ranked: [3, 6], samples: [3, 12], funnel: [3, 6], images: [4, 8],
};
const PICTURES = ["lines", "candles", "lightcurve", "spread", "map"];

/**
 * Tiles ({kind, …}) in the order in which they are shown, each with its `columns`. The first is followed by the
 * first picture, which has what is left of its row. In each row the tiles share what is left over.
 */
export function laid(tiles) {
  const left = [...tiles];
  if (left[0]?.kind === "fired" && left[1]?.kind !== "moment") {
    const picture = left.findIndex((one) => PICTURES.includes(one.kind));
    if (picture > 1) left.splice(1, 0, ...left.splice(picture, 1));
  }
  const rows = [];
  while (left.length) {
    const row = [left.shift()];
    let room = COLUMNS - least(row[0]);
    const first = row[0].kind === "fired";
    if (first && left.length && (PICTURES.includes(left[0].kind) || left[0].kind === "moment")) {
      row.push(left.shift());
      room = 0;
      rows.push(row.map((one, at) => ({ ...one, columns: at ? COLUMNS - least(row[0]) : least(row[0]) })));
      continue;
    }
    // The next that fit, in their order; one that is as wide as the page doesn't hold up those behind it.
    for (let at = 0; at < left.length && room > 0;) {
      if (least(left[at]) <= room) {
        room -= least(left[at]);
        row.push(...left.splice(at, 1));
      } else if (least(left[at]) === COLUMNS) at++;
      else break;
    }
    rows.push(widened(row, room));
  }
  return rows.flat();
}

function least({ kind }) {
  return (WIDTHS[kind] ?? [6, 12])[0];
}

/** What is left of a row goes to its tiles in turn, pictures first; to the last ones whatever there still is. */
function widened(row, room) {
  const columns = row.map(least);
  const most = row.map(({ kind }) => (WIDTHS[kind] ?? [6, 12])[1]);
  const turns = [...row.keys()].sort((one, other) => PICTURES.includes(row[other].kind) - PICTURES.includes(row[one].kind));
  while (room > 0) {
    const before = room;
    for (const at of turns) {
      if (room > 0 && columns[at] < most[at]) {
        columns[at]++;
        room--;
      }
    }
    if (room === before) {
      columns[turns[0]] += room;
      room = 0;
    }
  }
  return row.map((one, at) => ({ ...one, columns: columns[at] }));
}
