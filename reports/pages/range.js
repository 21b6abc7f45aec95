// SPDX-License-Identifier: Apache-2.0
// The days that a page's charts over dates show: one choice for all of them, kept in the address as days=30, or as
// from=2026-11-01 and to=2026-11-30.

var dayMs = 86400000;

function timeOf(started) { return Date.parse(started.replace(" ", "T") + "Z"); }

function hasDates(table) { return table.columns.includes("started") && table.rows.length > 8; }

// The first and the last moment that is shown of a table.
function rangeOf(table, state) {
  var column = table.columns.indexOf("started"), days = Number(state.get("days"));
  var last = Math.max.apply(null, table.rows.map(function (row) { return timeOf(row[column]); }));
  var from = Date.parse(state.get("from")), to = Date.parse(state.get("to"));
  if (days > 0) return [last - days * dayMs, last];
  return [isNaN(from) ? -Infinity : from, isNaN(to) ? Infinity : to + dayMs - 1];
}

function withinRange(table, state) {
  if (!hasDates(table)) return table;
  var column = table.columns.indexOf("started"), range = rangeOf(table, state);
  return Object.assign({}, table, {rows: table.rows.filter(function (row) {
    var time = timeOf(row[column]);
    return time >= range[0] && time <= range[1];
  })});
}

// Draws the choice. `chosen` is called after each.
function drawRange(state, chosen) {
  var tools = make("div", {class: "tools range", role: "group", "aria-label": "Days of the charts"});
  var select = make("select", {}), inputs = {};
  function choose(values) {
    ["days", "from", "to"].forEach(function (key) {
      if (values[key]) state.set(key, values[key]);
      else state.delete(key);
    });
    remember(state);
    show();
    chosen();
  }
  function show() {
    var own = state.get("from") || state.get("to");
    select.value = own ? "own" : state.get("days") || "";
    ["from", "to"].forEach(function (key) { inputs[key].value = state.get(key) || ""; });
  }
  [["", "all"], ["7", "last 7 days"], ["30", "last 30 days"], ["90", "last 90 days"], ["own", "from … to …"]]
    .forEach(function (option) { select.append(make("option", {value: option[0]}, option[1])); });
  var label = make("label", {}, "Days");
  label.append(select);
  tools.append(label);
  ["from", "to"].forEach(function (key) {
    var label = make("label", {}, key === "from" ? "From" : "To");
    inputs[key] = make("input", {type: "date"});
    inputs[key].addEventListener("change", function () { choose({from: inputs.from.value, to: inputs.to.value}); });
    label.append(inputs[key]);
    tools.append(label);
  });
  select.addEventListener("change", function () {
    if (select.value === "own") inputs.from.focus();
    else choose({days: select.value});
  });
  show();
  return tools;
}
