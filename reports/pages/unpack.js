// SPDX-License-Identifier: Apache-2.0
// Pages as page_json.cc packs them, so that a year of ten thousand rows takes a quarter of the bytes, made into what
// blocks.js draws: tables with rows, charts with tables. `shared` are arrays that the pages of a file have in common.

function unpackArray(array, shared) { return typeof array === "number" ? shared[array] : array; }

// {columns, links, rows}: names; pages that columns lead to, by their names; an array of cells for each row.
function unpackTable(table, shared) {
  var cells = table.cells.map(function (column) { return unpackArray(column, shared); }), rows = [];
  var cellAt = function (i) {
    return function (column) { return column[column.length === 1 ? 0 : i]; };  // one: the same in all rows
  };
  for (var i = 0; i < table.n; i++) rows.push(cells.map(cellAt(i)));
  return {columns: unpackArray(table.columns, shared), links: table.links || {}, rows: rows};
}

// The chart of a level over runs, with its table.
function unpackLevels(block, shared) {
  var names = ["runs", "at", "processes", "code"], codes = ["", "same", "changed"], steps = new Map(block.steps);
  var of = Object.fromEntries(names.map(function (name) { return [name, unpackArray(block[name], shared)]; }));
  var number = function (value) { return value === null ? {t: "", n: 1} : value; };
  var bound = function (i, sign) {  // reach: half of the interval of the level's logarithm, in 1e-5
    if (block.reach[i] === null) return number(null);
    return Number((block.level[i] * Math.exp(sign * block.reach[i] * 1e-5)).toPrecision(5));
  };
  var rows = of.at.map(function (at, i) {
    var run = of.runs[at];
    return [Number(run[0]), run[1], run[2], number(block.level[i]), bound(i, -1), bound(i, 1), of.processes[i],
      codes[of.code[i]], number(steps.has(i) ? steps.get(i) : null)];
  });
  var columns = ["run", "started", "commit", block.unit, "from", "to", "processes", "code", "step (%)"];
  var isOfEnvironment = function (step) { return step.length > 2; };
  if (block.steps.some(isOfEnvironment)) {
    var causes = new Map(block.steps.filter(isOfEnvironment).map(function (step) { return [step[0], "environment"]; }));
    columns.push("step of");
    rows.forEach(function (row, i) { row.push(causes.get(i) || ""); });
  }
  return {c: block.y, title: block.title, signals: Object.assign({unit: block.unit}, block.signals),
    t: {columns: columns, links: {run: "night={run}"}, rows: rows}};
}

function unpackPage(page, shared) {
  return {title: page.title, blocks: page.blocks.map(function (block) {
    if (block.y !== undefined) return unpackLevels(block, shared);
    if (block.t === undefined) return block;
    var table = unpackTable(block.t, shared);
    if (block.o) table.opened = block.o.map(function (opened) { return unpackTable(opened, shared); });
    return Object.assign({}, block, {t: table});
  })};
}

// The page that a cell leads to; "" where it leads nowhere.
function pageOf(table, row, column) {
  var text = function (name) {
    var cell = row[table.columns.indexOf(name)];
    return String(cell !== null && typeof cell === "object" ? cell.t : cell);
  };
  if (!Object.hasOwn(table.links, column) || text(column) === "") return "";
  return table.links[column].replace(/\{([^}]*)\}/g, function (_, name) { return text(name); });
}
