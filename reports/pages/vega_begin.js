// Vega 5, https://vega.github.io, Copyright (c) 2015-2022, University of Washington Interactive Data Lab and
// contributors, BSD-3-Clause; it includes parts of D3, https://d3js.org, Copyright 2010-2021 Mike Bostock, ISC.
// Debian's libjs-vega has it in parts, which are put together here.
// SPDX-License-Identifier: Apache-2.0 AND BSD-3-Clause AND ISC
var moegateVega = (function () {
"use strict";
var modules = {};
function moegateModule(name, body) {
  var module = {exports: {}};
  body(module, module.exports, function (needed) {
    return modules[needed === "vega-selections" ? "vega-selection" : needed];
  });
  modules[name] = module.exports;
}
