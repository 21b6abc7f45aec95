Object.assign(modules["vega-dataflow"].transforms, modules["vega-transforms"], modules["vega-view-transforms"],
  modules["vega-encode"], modules["vega-label"]);
return {View: modules["vega-view"].View, parse: modules["vega-parser"].parse,
  expressionInterpreter: modules["vega-interpreter"].expressionInterpreter,
  expressionFunction: modules["vega-functions"].expressionFunction};
})();
