// SPDX-License-Identifier: Apache-2.0
// Charts: Vega specifications whose data set "table" gets the rows of a block's table. The same functions draw a page
// and, in svg.js, a file.

// Rows as Vega takes them: an object for each, by the names of the columns.
function chartRows(table) {
  return table.rows.map(function (row, index) {
    var datum = {index: index};
    row.forEach(function (cell, i) {
      var object = cell !== null && typeof cell === "object";
      var text = object ? cell.t : cell;
      var number = object && cell.n === 1 && text !== "" && isFinite(text);
      datum[table.columns[i]] = number ? Number(text) : text;
      datum.page = pageOf(table, row, table.columns[i]) || datum.page;
    });
    return datum;
  });
}

// How charts look, from a map of the colours that style.css names.
function chartConfig(colour) {
  var text = {labelColor: colour("quiet"), titleColor: colour("ink"), labelFontSize: 11, titleFontSize: 12,
    titleFontWeight: 600, labelFont: "system-ui, sans-serif", titleFont: "system-ui, sans-serif"};
  var categories = [0, 1, 2, 3, 4, 5, 6, 7].map(function (i) { return colour("c" + i); });
  return {
    background: null,
    axis: Object.assign({gridColor: colour("grid"), domainColor: colour("line"), tickColor: colour("line"),
      labelOverlap: true, labelLimit: 260}, text),
    legend: Object.assign({symbolStrokeWidth: 2, orient: "top", columns: 4, labelLimit: 150}, text),
    title: {color: colour("ink"), font: "system-ui, sans-serif", fontSize: 12, anchor: "start"},
    text: {fill: colour("ink"), font: "system-ui, sans-serif", fontSize: 11},
    symbol: {size: 50},
    range: {category: categories, symbol: ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down",
      "triangle-right", "triangle-left"]}
  };
}

// A chart has the rows that it is given: it reads no file and no address, and has no links and images of its own.
function refusingLoader() {
  var refuse = function (address) { return Promise.reject(new Error("a chart may not load " + address)); };
  return {load: refuse, sanitize: refuse, http: refuse, file: refuse};
}

// Ticks of a logarithmic axis: 1, 2 and 5 of each decade, or even steps where that would be too few. Vega's own have no
// labels but at the first of a decade.
function logTicks(domain) {
  var low = domain[0], high = domain[1], ticks = [], add = function (tick) {
    if (tick >= low && tick <= high) ticks.push(Number(tick.toPrecision(6)));
  };
  if (!(low > 0 && high > low)) return ticks;
  if (high / low >= 8) {
    for (var decade = Math.pow(10, Math.floor(Math.log10(low))); decade <= high; decade *= 10) {
      [1, 2, 5].forEach(function (n) { add(n * decade); });
    }
    return ticks;
  }
  var step = Math.pow(10, Math.floor(Math.log10(high - low)));
  step /= high - low < 2 * step ? 5 : high - low < 5 * step ? 2 : 1;
  for (var i = Math.ceil(low / step); i * step <= high; i++) add(i * step);
  return ticks;
}

// The specification with its rows, signals and width.
function chartSpec(spec, block, width, colour) {
  var whole = JSON.parse(JSON.stringify(spec));
  var values = Object.assign({ink: colour("ink"), quiet: colour("quiet"), accent: colour("c0"), second: colour("c1"),
    third: colour("c2"), paper: colour("paper"), bad: colour("bad"), good: colour("good"), line: colour("line")},
    block.signals);
  whole.signals = (whole.signals || []).filter(function (signal) { return !(signal.name in values); });
  Object.entries(values).forEach(function (entry) {
    whole.signals.push({name: entry[0], value: entry[1]});
  });
  whole.signals.push({name: "at", value: -1});  // index of the row that the keyboard is at
  whole.width = width;
  whole.padding = whole.padding || 6;
  whole.description = block.title;
  whole.data = (whole.data || []).map(function (set) {
    return set.name === "table" ? Object.assign({}, set, {values: chartRows(block.t)}) : set;
  });
  return whole;
}

function drawView(vega, block, element, width) {
  var styles = getComputedStyle(document.documentElement);
  var colour = function (name) { return styles.getPropertyValue("--" + name).trim(); };
  var spec = chartSpec(site.charts[block.c], block, width, colour);
  vega.expressionFunction("logTicks", logTicks);
  var config = chartConfig(colour);
  config.legend.columns = Math.max(1, Math.min(4, Math.floor(width / 170)));
  var view = new vega.View(vega.parse(spec, config, {ast: true}),
    {expr: vega.expressionInterpreter, renderer: "svg", container: element, hover: true,
      loader: refusingLoader()});
  return view.runAsync().then(function () {
    // The frame has the name, the keys read rows aloud, and the table has them all.
    element.querySelector("svg").setAttribute("aria-hidden", "true");
    // What lies outside a chart's own width, such as the axes of its parts, must not make the page scroll.
    var over = element.querySelector("svg").width.baseVal.value - element.clientWidth;
    return over > 0 ? view.width(view.width() - over).runAsync() : view;
  });
}

function describeRow(table, i) {
  return table.columns.map(function (column, c) { return column + ": " + textOf(table.rows[i][c]); })
    .filter(function (text) { return !text.endsWith(": "); }).join(", ");
}

// Arrow keys walk over the rows, Enter opens the page that a row leads to.
function walkRows(figure, block, reads, view) {
  var at = -1;
  function go(i) {
    at = Math.max(0, Math.min(block.t.rows.length - 1, i));
    reads.textContent = describeRow(block.t, at);
    view.signal("at", at).runAsync();
  }
  function open(i) {
    var page = chartRows(Object.assign({}, block.t, {rows: [block.t.rows[i]]}))[0].page;
    if (page) location.hash = addressOf(page);
  }
  figure.addEventListener("keydown", function (event) {
    var step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    if (step) go(at + step);
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(block.t.rows.length - 1);
    else if (event.key === "Enter" && at >= 0) open(at);
    else return;
    event.preventDefault();
  });
  view.addEventListener("mousemove", function (event, item) {
    if (item && item.datum && item.datum.index >= 0) reads.textContent = describeRow(block.t, item.datum.index);
  });
  view.addEventListener("click", function (event, item) {
    if (item && item.datum && item.datum.index >= 0) open(item.datum.index);
  });
}

function drawChart(whole, context) {
  var box = make("div", {class: "chart", "data-chart": whole.c});
  var figure = make("figure", {}), details = make("details", {});
  var caption = make("figcaption", {});
  context.heading = whole.title;
  caption.append(make("h2", {}, whole.title));
  box.append(figure, details);
  var place = placeOfTable(context), newest = 0;

  function failed(plot, error) {
    plot.replaceChildren(make("p", {class: "note"}, String(error.message || error)));
    details.open = true;
    box.dataset.drawn = "no";
    console.warn(error);
  }
  function draw() {
    var block = Object.assign({}, whole, {t: withinRange(whole.t, context.state)}), call = ++newest;
    var plot = make("div", {class: "plot", tabindex: "0", role: "application", "aria-roledescription": "chart",
      "aria-label": block.title + ". Arrow keys read the " + block.t.rows.length + " rows, Enter opens one."});
    var reads = make("div", {class: "reads", "aria-live": "polite"});
    delete box.dataset.drawn;
    figure.replaceChildren(caption, plot, reads);
    details.replaceChildren(make("summary", {}, "The table of this chart (" + block.t.rows.length + " rows)"),
      drawTable(block.t, place));
    loadVega().then(function (vega) {
      if (!box.isConnected || call !== newest) return null;
      return drawView(vega, block, plot, Math.max(280, plot.clientWidth - 4)).then(function (view) {
        walkRows(plot, block, reads, view);
        box.dataset.drawn = "yes";
      });
    }).catch(function (error) { failed(plot, error); });
  }
  draw();
  if (hasDates(whole.t)) context.dated.push(draw);
  window.addEventListener("beforeprint", function () { details.open = true; });
  return box;
}
