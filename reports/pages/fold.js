// SPDX-License-Identifier: Apache-2.0
// Columns for which a table has no space: they are left out, and each row opens to show its own.

// Of little use at a glance: they go first. What then is too much goes from the right.
var foldedFirst = ["against", "adjusted p", "mde (%)", "blind", "waiver", "path", "launch", "cache", "routing", "model",
  "operator", "from (%)", "to (%)"];
var foldedLast = ["why", "rows", "Speedup", "change (%)", "change", "variant"];
var keptBelow = ["variant", "change", "route", "us", "Speedup", "speed-up", "change (%)"];
var paperWidth = 680;  // what a sheet has at least, in CSS pixels; what it will have is not known before it is printed
var opensWidth = 44;  // of the column that opens rows, in CSS pixels

// The order in which columns are left out. The first stays, and so does the case, which leads to its page.
function foldingOrder(columns) {
  var rank = function (i) {
    var first = foldedFirst.indexOf(columns[i]), last = foldedLast.indexOf(columns[i]);
    if (first >= 0) return first;
    return last >= 0 ? 1000 + last : 500 - i;
  };
  return columns.map(function (_, i) { return i; })
    .filter(function (i) { return i > 0 && columns[i] !== "case"; })
    .sort(function (a, b) { return rank(a) - rank(b); });
}

// Of columns that need `widths`, those that must go for the rest to fit into `room`.
function columnsToFold(columns, widths, room) {
  var over = widths.reduce(function (sum, width) { return sum + width; }, 0) - room, folded = [];
  if (over <= 0) return folded;
  over += opensWidth;
  foldingOrder(columns).forEach(function (i) {
    if (over <= 0) return;
    over -= widths[i];
    folded.push(i);
  });
  return folded.sort(function (a, b) { return a - b; });
}

// A row's folded cells, as a row below it, and the table that it opens to; empty cells say nothing.
function drawFolded(table, row, folded, place) {
  var list = make("dl", {});
  folded.forEach(function (i) {
    if (textOf(row[i]) === "" || keptBelow.includes(table.columns[i])) return;
    var value = make("dd", {}), item = make("div", {});
    value.append.apply(value, drawCell(table, row, i).childNodes);
    item.append(make("dt", {}, table.columns[i]), value);
    list.append(item);
  });
  var cell = make("td", {colspan: table.columns.length + 1}), tr = make("tr", {class: "folded"});
  if (list.children.length > 0) cell.append(list);
  var i = table.rows.indexOf(row);
  if (table.opened) cell.append(drawTable(table.opened[i], placeWithin(place, i, nameOfRow(table, row))));
  tr.append(cell);
  return tr;
}

function nameOfRow(table, row) {
  var names = table.opened ? ["what", "operator", "variant"] : table.columns.slice(0, 1);
  return names.map(function (name) { return textOf(row[table.columns.indexOf(name)]); }).join(" ");
}

// What tells rows apart and was folded goes under the case, so that a phone shows it, too.
function drawUnder(table, row, folded) {
  var line = make("div", {class: "under"});
  keptBelow.forEach(function (name) {
    var i = table.columns.indexOf(name);
    if (!folded.includes(i) || textOf(row[i]) === "") return;
    line.append(make("span", {}, (name === "variant" ? "" : name + " ") + textOf(row[i])), " ");
  });
  return line;
}

// Leaves out of a drawn row what is folded, and lets it open.
function foldRow(table, row, tr, folded, opened, place) {
  if (folded.length === 0 && !table.opened) return;
  folded.forEach(function (i) { tr.cells[i].hidden = true; });
  tr.cells[Math.max(0, table.columns.indexOf("case"))].append(drawUnder(table, row, folded));
  var cell = make("td", {class: "opens"}), button = openButton(nameOfRow(table, row)), below = null;
  function show(open) {
    if (below) below.remove();
    below = open ? drawFolded(table, row, folded, place) : null;
    if (below) tr.after(below);
    button.show(open);
  }
  button.element.addEventListener("click", function () { show(below === null); });
  cell.append(button.element);
  tr.append(cell);
  show(opened);
}

// A button that says whether what it is about is open.
function openButton(about) {
  var element = make("button", {type: "button"});
  return {element: element, show: function (open) {
    element.textContent = open ? "\u2212" : "+";
    element.setAttribute("aria-expanded", open ? "true" : "false");
    element.setAttribute("aria-label", (open ? "Less of " : "More of ") + about);
  }};
}

// The head's last cell, which opens all rows and closes them.
function drawOpenAll(opened, choose) {
  var th = make("th", {class: "opens", scope: "col"}), button = openButton("every row");
  button.show(opened);
  button.element.addEventListener("click", function () {
    opened = !opened;
    button.show(opened);
    choose(opened);
  });
  th.append(button.element);
  return th;
}

// For what has no heading to click on: an order by a folded column, and all columns after all.
function drawFoldTools(table, folded, wide, actions) {
  var box = make("span", {class: "tools"});
  if (folded.length > 0) {
    var label = make("label", {}, "Sort by"), select = make("select", {});
    select.append(make("option", {value: ""}, "a heading"));
    folded.forEach(function (i) {
      var column = table.columns[i];
      select.append(make("option", {value: column}, column),
        make("option", {value: "-" + column}, column + ", descending"));
    });
    select.addEventListener("change", function () { actions.sort(select.value); });
    label.append(select);
    box.append(label);
  }
  if (folded.length > 0 || wide) {
    var button = make("button", {type: "button", "aria-pressed": wide ? "true" : "false"},
      "All " + table.columns.length + " columns");
    button.addEventListener("click", function () { actions.wide(!wide); });
    box.append(button);
  }
  return box;
}
