// SPDX-License-Identifier: Apache-2.0
// Tables that sort by a click on a column's name and show the rows that a reader asks for. What is chosen is in
// the address: N.q text, N.s column to sort by ('-' in front: descending), N.f.COLUMN value, of table N.

var shownRows = 200;    // at first
var chosenColumns = ["what", "outcome", "status", "operator", "model", "variant", "device"];

function textOf(cell) {
  if (cell === null || typeof cell !== "object") return String(cell);
  return cell.m ? cell.t + " " + cell.m : cell.t;
}

function isNumber(cell) { return typeof cell === "number" || (typeof cell === "object" && cell.n === 1); }

// What a cell is sorted by: "+1.2 %" by 1.2, nothing last.
function sortKey(cell) {
  if (typeof cell === "number") return cell;
  return cell.n ? parseFloat(cell.t) : textOf(cell);
}

function compareCells(a, b) {
  var x = sortKey(a), y = sortKey(b);
  if (typeof x === "number" && typeof y === "number") {
    if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y);
    return x - y;
  }
  return textOf(a).localeCompare(textOf(b), "en", {numeric: true});
}

// What is searched for: words, in any order, of which each has to be there.
function wordsOf(text) { return text.toLowerCase().split(/\s+/).filter(Boolean); }
function hasWords(text, words) {
  var low = text.toLowerCase();
  return words.every(function (word) { return low.includes(word); });
}

// A long name may go on in the next line after a comma or a slash.
function breakable(element, text) {
  text.split(/(?<=[,/])/).forEach(function (part) { element.append(part, make("wbr", {})); });
  return element;
}

// The page of a commit, or of two with all between them, in a repository on the web; "" where there is none.
function commitAddress(column, text) {
  var range = /^([0-9a-f]{7,40})(?:\+dirty)?(?:\.\.([0-9a-f]{7,40})(?:\+dirty)?)?$/.exec(text);
  if (!site.repository || !range || !column.startsWith("commit")) return "";
  return site.repository + (range[2] ? "/compare/" + range[1] + "..." + range[2] : "/commit/" + range[1]);
}

function drawCell(table, row, i) {
  var cell = row[i], column = table.columns[i], page = pageOf(table, row, column);
  var td = make("td", isNumber(cell) ? {class: "n"} : {});
  var text = textOf(cell);
  if (["what", "outcome", "status"].includes(column)) td.classList.add("o-" + text.replace(/[^a-z_]/g, ""));
  if (column === "trend") td.classList.add("trend");
  if (text.length > 60) td.classList.add("long");
  if (text.length < 24) td.classList.add("short");
  var commit = commitAddress(column, text);
  if (page) td.append(breakable(make("a", {href: addressOf(page)}), text));
  else if (commit) td.append(breakable(make("a", {href: commit, rel: "noreferrer"}), text));
  else if (cell.b) td.append(breakable(make("strong", {}), text));
  else breakable(td, text);
  return td;
}

// The values of a column that is worth a choice of its own.
function choices(table, i) {
  if (!chosenColumns.includes(table.columns[i])) return [];
  var values = new Set(table.rows.map(function (row) { return textOf(row[i]); }));
  return values.size > 1 && values.size <= 60 ? Array.from(values).sort() : [];
}

// A table's number and name in its page. Two under one heading, of two devices, say, have names of their own.
function placeOfTable(context) {
  var earlier = context.names.get(context.heading) || 0;
  context.names.set(context.heading, earlier + 1);
  return {n: context.tables++, state: context.state, name: context.heading + (earlier > 0 ? ", " + (earlier + 1) : "")};
}

// That of the table that a row opens to.
function placeWithin(place, i, about) {
  return {n: place.n + "." + i, state: place.state, name: place.name + ": " + about};
}

function drawTable(table, place) {
  var n = place.n, state = place.state, name = place.name;
  var box = make("div", {class: "table"}), all = false;
  var get = function (key) { return state.get(n + "." + key) || ""; };
  var body = make("tbody", {}), headings = [];
  var count = make("span", {class: "note", role: "status"});
  var more = make("button", {type: "button"});
  var folded = [], opened = false, wide = false, room = 0, foldTools = make("span", {});

  function chosen() {
    var words = wordsOf(get("q")), sort = get("s");
    var filters = table.columns.map(function (column) { return get("f." + column); });
    var rows = table.rows.filter(function (row) {
      if (!filters.every(function (value, i) { return !value || textOf(row[i]) === value; })) return false;
      return hasWords(row.map(textOf).join("\n"), words);
    });
    if (sort === "") return rows;
    var down = sort[0] === "-", i = table.columns.indexOf(down ? sort.slice(1) : sort);
    if (i < 0) return rows;
    return rows.slice().sort(function (a, b) { return compareCells(a[i], b[i]) * (down ? -1 : 1); });
  }
  function fill() {
    var rows = chosen(), shown = all ? rows : rows.slice(0, shownRows);
    body.replaceChildren.apply(body, shown.map(function (row) {
      var tr = make("tr", {});
      row.forEach(function (_, i) { tr.append(drawCell(table, row, i)); });
      return tr;
    }));
    Array.from(body.rows).forEach(function (tr, i) { foldRow(table, shown[i], tr, folded, opened, place); });
    count.textContent = rows.length === table.rows.length ? rows.length + " rows"
      : rows.length + " of " + table.rows.length + " rows";
    more.hidden = shown.length === rows.length;
    more.textContent = "Show all " + rows.length + " rows";
    var sort = get("s");
    headings.forEach(function (th, i) {
      var column = table.columns[i];
      th.setAttribute("aria-sort", sort === column ? "ascending" : sort === "-" + column ? "descending" : "none");
      th.querySelector("span").textContent = sort === column ? " \u25b2" : sort === "-" + column ? " \u25bc" : "";
      th.hidden = folded.includes(i);
    });
    var byFolded = foldTools.querySelector("select");
    if (byFolded) byFolded.value = Array.from(byFolded.options).some(function (o) { return o.value === sort; }) ? sort : "";
  }
  // Leaves columns out until the others fit.
  function fit(paper) {
    if (folded.length > 0) { folded = []; fill(); }
    room = scroll.clientWidth;
    if (room === 0) return;
    var forRows = Math.min(room, paper || room) - (table.opened ? opensWidth : 0);
    if (!wide) {
      element.style.width = "0";  // every column as narrow as it can be
      var widths = headings.map(function (th) { return th.offsetWidth; });
      element.style.width = "";
      folded = columnsToFold(table.columns, widths, forRows);
    }
    head.querySelectorAll(".opens").forEach(function (th) { th.remove(); });
    if (folded.length > 0 || table.opened) {
      head.append(drawOpenAll(opened, function (open) { opened = open; fill(); }));
    }
    foldTools.replaceChildren(drawFoldTools(table, folded, wide, {
      sort: function (column) { choose("s", column); },
      wide: function (all) { wide = all; fit(); foldTools.querySelector("button").focus(); }}));
    if (folded.length > 0) fill();
    scroll.dataset.fitted = "yes";
  }
  function choose(key, value) {
    if (value) state.set(n + "." + key, value);
    else state.delete(n + "." + key);
    remember(state);
    fill();
  }

  if (table.rows.length > 8) box.append(drawTools(table, get, choose, foldTools, count));
  var head = make("tr", {});
  table.columns.forEach(function (column, i) {
    var th = make("th", {scope: "col"});
    if (table.rows.some(function (row) { return isNumber(row[i]); })) th.className = "n";
    var button = make("button", {type: "button"}, column);
    button.append(make("span", {"aria-hidden": "true"}));
    button.addEventListener("click", function () {
      var sort = get("s");
      choose("s", sort === column ? "-" + column : sort === "-" + column ? "" : column);
    });
    th.append(button);
    headings.push(th);
    head.append(th);
  });
  var element = make("table", {"aria-label": name});
  var top = make("thead", {});
  top.append(head);
  element.append(top, body);
  var scroll = make("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Table: " + name});
  scroll.append(element);
  more.addEventListener("click", function () { all = true; fill(); });
  box.append(scroll, more);
  window.addEventListener("beforeprint", function () { all = opened = true; wide = false; fill(); fit(paperWidth); });
  window.addEventListener("afterprint", function () { fit(); });
  fill();
  // In the next frame: what the observer changes it would see again.
  new ResizeObserver(function () {
    if (scroll.clientWidth !== room) requestAnimationFrame(function () { fit(); });
  }).observe(scroll);
  return box;
}

function drawTools(table, get, choose, foldTools, count) {
  var tools = make("div", {class: "tools"});
  var label = make("label", {}, "Find");
  var input = make("input", {type: "search", autocomplete: "off"});
  input.value = get("q");
  input.addEventListener("input", function () { choose("q", input.value); });
  label.append(input);
  tools.append(label);
  table.columns.forEach(function (column, i) {
    var values = choices(table, i);
    if (values.length === 0) return;
    var label = make("label", {}, column), select = make("select", {});
    select.append(make("option", {value: ""}, "all"));
    values.forEach(function (value) { select.append(make("option", {value: value}, value || "(none)")); });
    select.value = get("f." + column);
    select.addEventListener("change", function () { choose("f." + column, select.value); });
    label.append(select);
    tools.append(label);
  });
  tools.append(foldTools, count);
  return tools;
}
