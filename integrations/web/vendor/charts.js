// Vega-Lite with the expression interpreter: it draws without eval, as the page's content policy demands.
import vegaEmbed from "vega-embed";
import { expressionInterpreter } from "vega-interpreter";

export function draw(element, spec, options = {}) {
  return vegaEmbed(element, spec, { ast: true, expr: expressionInterpreter, actions: false, ...options });
}
