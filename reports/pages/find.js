// SPDX-License-Identifier: Apache-2.0
// Pages that are made here: what a search finds, and what changed between two runs. They look it up in the page
// "everything", which has three tables (pages, runs, rows), and in those called levels=RUN.

function readTables(id) {
  return load(id).then(function () {
    var found = pages.get(id);
    if (!found) throw new Error("These pages have none called " + id + ".");
    return unpackPage(found.page, found.shared).blocks.map(function (block) { return block.t; });
  });
}

function pageOfWords(text) {
  var words = wordsOf(text);
  return readTables("everything").then(function (tables) {
    var titles = ["Pages", "Runs", "Rows"], blocks = [];
    tables.forEach(function (table, i) {
      var rows = table.rows.filter(function (row) { return hasWords(row.map(textOf).join("\n"), words); });
      if (rows.length > 0) blocks.push({h: titles[i]}, {t: Object.assign({}, table, {rows: rows})});
    });
    if (blocks.length === 0) blocks.push({p: [[{t: "Nothing has all of these words."}]]});
    return {title: "Search: " + text, blocks: blocks};
  });
}

// Two runs. Levels compare within a series: one device, timer, flush and protocol.

function comparableRuns(table) {
  var at = function (name) { return table.columns.indexOf(name); };
  return table.rows.filter(function (row) { return textOf(row[at("series")]) !== ""; }).map(function (row) {
    var text = ["run", "label", "started", "commit", "device"].map(function (name) { return textOf(row[at(name)]); });
    return {id: text[0], series: textOf(row[at("series")]), name: text.filter(Boolean).join(", ")};
  });
}

function drawChoiceOfRuns(runs, before, after) {
  var tools = make("div", {class: "tools"});
  var select = function (name, shown, chosen, go) {
    var label = make("label", {}, name), element = make("select", {});
    shown.forEach(function (run) { element.append(make("option", {value: run.id}, run.name)); });
    element.value = chosen.id;
    element.addEventListener("change", function () { location.hash = addressOf("compare=" + go(element.value)); });
    label.append(element);
    tools.append(label);
  };
  var alike = runs.filter(function (run) { return run.series === after.series && run !== after; });
  select("Run", runs, after, function (id) {
    var chosen = runs.find(function (run) { return run.id === id; });
    return (chosen.series === before.series && chosen !== before ? before.id : "") + ".." + id;
  });
  select("against", alike, before, function (id) { return id + ".." + after.id; });
  return tools;
}

// What a row changed by: of the means' logarithms, with the 95 % interval of both as one.
function changeOfRow(before, now) {
  var there = [before, now].map(function (row) { return textOf(row[0]) !== ""; });
  var number = function (x) { return {t: x.toFixed(2), n: 1}; }, none = {t: "", n: 1};
  if (!there[0] && !there[1]) return null;
  var codes = [before, now].map(function (row) { return textOf(row[2]); });
  var code = !codes[0] || !codes[1] ? "" : codes[0] === codes[1] ? "same" : "changed";
  if (!there[0] || !there[1]) return {what: there[0] ? "lost" : "new", code: code, log: 0, cells: [none, none, none]};
  var log = Math.log(now[0] / before[0]), halves = [before, now].map(function (row) { return textOf(row[1]); });
  var percent = function (x) { return number(100 * Math.expm1(x)); };
  if (!halves[0] || !halves[1]) return {what: "one process", code: code, log: log, cells: [percent(log), none, none]};
  var half = Math.hypot(halves[0], halves[1]) / 100;
  return {what: log > half ? "slower" : log < -half ? "faster" : "no change seen", code: code, log: log,
    cells: [percent(log), percent(log - half), percent(log + half)]};
}

function changesOfRows(rows, before, now) {
  var changes = [];
  rows.forEach(function (row, i) {
    var change = changeOfRow(before[i], now[i]);
    if (!change) return;
    change.operator = textOf(row[0]).split("/")[0];
    change.row = [change.what, change.operator, row[0], row[1], before[i][0], now[i][0]].concat(change.cells, change.code);
    change.variant = row[1];
    changes.push(change);
  });
  return changes.sort(function (a, b) { return Math.abs(b.log) - Math.abs(a.log); });
}

var changeColumns = ["what", "operator", "case", "variant", "before", "now", "change (%)", "from (%)", "to (%)", "code"];
var changeOrder = ["slower", "lost", "faster", "new"];

// Rows of one variant that changed alike are one row, which opens to them.
function groupsOfChanges(changes, links) {
  var groups = new Map(), table = {columns: ["what", "change (%)", "rows", "operator", "variant", "code changed"],
    links: {}, rows: [], opened: []};
  changes.forEach(function (change) {
    var name = JSON.stringify([change.what, change.operator, change.variant]);
    if (changeOrder.includes(change.what)) groups.set(name, (groups.get(name) || []).concat([change]));
  });
  var weight = function (group) { return group.reduce(function (sum, change) { return sum + change.log; }, 0); };
  Array.from(groups.values()).sort(function (a, b) {
    return changeOrder.indexOf(a[0].what) - changeOrder.indexOf(b[0].what) || Math.abs(weight(b)) - Math.abs(weight(a));
  }).forEach(function (group) {
    var mean = weight(group) / group.length;
    table.rows.push([group[0].what, {t: mean === 0 ? "" : (100 * Math.expm1(mean)).toFixed(2), n: 1}, group.length,
      group[0].operator, group[0].variant, group.filter(function (change) { return change.code === "changed"; }).length]);
    table.opened.push({columns: changeColumns, links: links, rows: group.map(function (change) { return change.row; })});
  });
  return table;
}

function countsOf(changes) {
  var has = function (what) { return changes.filter(function (change) { return change.what === what; }).length; };
  var text = changeOrder.filter(has).map(function (what) { return has(what) + " " + what; }).join(", ");
  var same = changes.filter(function (change) { return change.code === "same"; });
  var moved = same.filter(function (change) { return change.what === "slower" || change.what === "faster"; });
  return [[{t: text || "Nothing changed", b: 1}, {t: " of " + changes.length + " rows."}],
    [{t: "A row is slower or faster where the 95 % interval of its change, of both means' intervals together, leaves " +
      "out 0: some 5 of 100 are without any change. Of " + same.length + " rows of the same code " + moved.length +
      " are. This is no verdict: moegate gate --run NOW --against BEFORE judges all rows together."}]];
}

function pageOfRuns(text) {
  return readTables("everything").then(function (tables) {
    var runs = comparableRuns(tables[1]), asked = text.split("..");
    var find = function (id) { return runs.find(function (run) { return run.id === id; }); };
    var after = find(asked[1]) || runs.find(function (run) {
      return runs.some(function (other) { return other !== run && other.series === run.series; });
    });
    if (!after) return {title: "Compare runs", blocks: [{p: [[{t: "No two runs of this store compare."}]]}]};
    var alike = runs.filter(function (run) { return run.series === after.series && run !== after; });
    var before = alike.find(function (run) { return run.id === asked[0]; }) ||
      alike.find(function (run) { return Number(run.id) < Number(after.id); }) || alike[0];
    var choice = {draw: function () { return drawChoiceOfRuns(runs, before || after, after); }};
    if (!before) return {title: "Compare runs", blocks: [choice, {p: [[{t: "No other run compares with this one."}]]}]};
    return Promise.all([readTables("levels=" + before.id), readTables("levels=" + after.id)]).then(function (levels) {
      var changes = changesOfRows(tables[2].rows, levels[0][0].rows, levels[1][0].rows);
      var groups = groupsOfChanges(changes, tables[2].links), blocks = [choice, {p: countsOf(changes)}];
      if (groups.rows.length > 0) blocks.push({h: "What changed"}, {t: groups});
      blocks.push({h: "All rows"}, {t: {columns: changeColumns, links: tables[2].links,
        rows: changes.map(function (change) { return change.row; })}});
      return {title: "Run " + after.id + " against run " + before.id, blocks: blocks};
    });
  });
}

// The page of an address that is made here; null: it is a page of the store.
function madePage(id) {
  var words = /^search=(.*)$/s.exec(id), two = /^compare(?:=(.*))?$/s.exec(id);
  return words ? pageOfWords(words[1]) : two ? pageOfRuns(two[1] || "") : null;
}
