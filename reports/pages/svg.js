// SPDX-License-Identifier: Apache-2.0
// node svg.js VEGA JOB: draws {spec, title, table} of the file JOB as SVG on standard output, on white.
"use strict";
const fs = require("fs"), path = require("path");
const read = (name) => fs.readFileSync(name, "utf8");
const load = (text, what) => new Function(text + "\nreturn " + what + ";")();

const vega = load(read(process.argv[2]), "moegateVega");
const scripts = ["unpack.js", "charts.js"].map((name) => read(path.join(__dirname, name))).join("");
const {unpackTable, chartSpec, chartConfig, logTicks, refusingLoader} = load(scripts,
  "{unpackTable, chartSpec, chartConfig, logTicks, refusingLoader}");
const job = JSON.parse(read(process.argv[3]));

const light = /:root \{([^}]*)\}/.exec(read(path.join(__dirname, "style.css")))[1];
const colours = new Map(Array.from(light.matchAll(/--(\w+): *(#\w+)/g), (match) => [match[1], match[2]]));
const colour = (name) => colours.get(name);

const width = job.spec.width || 760;
const block = {title: job.title, t: unpackTable(job.table.table, job.table.shared), signals: {}};
const spec = chartSpec(job.spec, block, width, colour);
spec.padding = 12;
spec.title = job.spec.title || job.title;
const config = Object.assign(chartConfig(colour), {background: colour("paper")});
config.legend.labelLimit = 240;  // without a canvas Vega takes text for wider than it is
vega.expressionFunction("logTicks", logTicks);
// One line of what is wrong: node would print the line of the script where it was found, which is all of Vega.
const fail = (error) => {
  console.error(String(error));
  process.exit(1);
};
process.on("uncaughtException", fail);
new vega.View(vega.parse(spec, config, {ast: true}), {expr: vega.expressionInterpreter, renderer: "none",
  loader: refusingLoader()})
  .logLevel(2)  // warnings: of what was not loaded
  .toSVG().then((svg) => {
    const name = job.title.replace(/[<>&"]/g, (c) => "&#" + c.charCodeAt(0) + ";");
    process.stdout.write(svg.replace("<svg ", () => "<svg role=\"img\" aria-label=\"" + name + "\" ") + "\n");
  }, fail);
