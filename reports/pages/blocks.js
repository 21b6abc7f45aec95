// SPDX-License-Identifier: Apache-2.0
// A page's blocks as elements. Text only ever becomes text: nothing here parses HTML.

function make(name, attributes, text) {
  var element = document.createElement(name);
  Object.entries(attributes).forEach(function (entry) { element.setAttribute(entry[0], entry[1]); });
  if (text !== undefined) element.textContent = text;
  return element;
}

function drawSpan(span) {
  var element = span.l ? make("a", {href: addressOf(span.l)}) : make(span.b ? "strong" : "span", {});
  element.append(span.c ? make("code", {}, span.t) : span.t);
  return element;
}

function drawLines(parent, lines) {
  lines.forEach(function (line, i) {
    if (i > 0) parent.append(make("br", {}));
    line.forEach(function (span) { parent.append(drawSpan(span)); });
  });
  return parent;
}

function drawCommand(command) {
  var row = make("div", {class: "command"});
  if (!command[1]) return row;
  var button = make("button", {type: "button", "aria-label": "Copy: " + command[0]}, "Copy");
  button.addEventListener("click", function () {
    var done = function () { button.textContent = "Copied"; };
    var select = function () { window.getSelection().selectAllChildren(row.querySelector("code")); };
    if (navigator.clipboard) navigator.clipboard.writeText(command[1]).then(done, select);
    else select();
  });
  row.append(command[0] + ":", make("code", {}, command[1]), button);
  return row;
}

function drawBlock(parent, block, context) {
  if (block.h !== undefined) {
    context.heading = block.h;
    parent.append(make("h2", {}, block.h));
  } else if (block.p) {
    parent.append(drawLines(make("p", block.small ? {class: "small"} : {}), block.p));
  } else if (block.l) {
    var list = make("ul", {class: "flat"});
    block.l.forEach(function (line) { list.append(drawLines(make("li", {}), [line])); });
    parent.append(list);
  } else if (block.k) {
    block.k.forEach(function (command) { parent.append(drawCommand(command)); });
  } else if (block.t && block.c === undefined) {
    parent.append(drawTable(block.t, placeOfTable(context)));
  } else if (block.c !== undefined) {
    if (hasDates(block.t) && context.dated.length === 0) {
      parent.append(drawRange(context.state, function () { context.dated.forEach(function (draw) { draw(); }); }));
    }
    parent.append(drawChart(block, context));
  } else if (block.draw) {
    parent.append(block.draw());
  }
}

function drawPage(parent, page, state) {
  var context = {state: state, tables: 0, names: new Map(), heading: page.title, dated: []};
  parent.append(make("h1", {}, page.title));
  page.blocks.forEach(function (block) { drawBlock(parent, block, context); });
}
