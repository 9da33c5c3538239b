// Two plans side by side: the same tool, two sets of values; rows that differ are marked.
import { recompute, resultPanel } from "./answer.js";
import { formFor, valuesOf } from "./calculators.js";
import { call } from "./api.js";
import { copy, el, problemText, words } from "./dom.js";

export async function showComparison(view) {
  const { tools } = await call("GET", "/v1/tools");
  const query = new URLSearchParams(location.search);
  const sides = ["a", "b"].map((key) => parse(query.get(key)));
  const name = sides[0]?.[0] || sides[1]?.[0] || "estimate_run";
  const tool = tools.find((one) => one.name === name) || tools[0];
  const pick = el("select", { ariaLabel: "Tool", onchange: () => location.assign(`/compare?a=${encodeURIComponent(JSON.stringify([pick.value, {}]))}`) },
    tools.map((one) => el("option", { value: one.name, selected: one.name === tool.name }, words(one.name))));
  const start = sides[0]?.[1] || {};
  const columns = ["A", "B"].map((label, index) => column(label, tool, sides[index]?.[1] || start));
  const difference = el("div", { class: "difference", ariaLive: "polite" });
  const both = async () => {
    const done = await Promise.all(columns.map((one) => one.compute()));
    history.replaceState(null, "", address(tool, columns));
    difference.replaceChildren(done.every(Boolean) ? table(done) : "");
  };
  view.replaceChildren(
    el("h1", {}, "Two plans side by side"),
    el("p", {}, "Tool ", pick),
    el("div", { class: "sides" }, columns.map((one) => one.node)),
    el("div", { class: "actions" }, el("button", { type: "button", onclick: both }, "Compare"),
      el("button", { type: "button", class: "small", onclick: () => copy(location.href, "Link copied") }, "Copy link")),
    difference,
    el("div", { class: "sides" }, columns.map((one) => one.output)),
  );
  if (sides[0] && sides[1]) both();
}

function parse(text) {
  try {
    const [name, values] = JSON.parse(text);
    return typeof name === "string" && values && typeof values === "object" ? [name, values] : null;
  } catch {
    return null;
  }
}

function column(label, tool, values) {
  const given = new URLSearchParams();
  for (const [key, value] of Object.entries(values)) given.set(key, typeof value === "object" ? JSON.stringify(value) : String(value));
  const form = formFor(tool, given);
  form.querySelector("[type=submit]").remove();
  for (const node of form.querySelectorAll("[id]")) node.id = `${label}-${node.id}`;
  for (const node of form.querySelectorAll("label")) node.htmlFor = `${label}-${node.htmlFor}`;
  for (const node of form.querySelectorAll("[aria-describedby]")) node.setAttribute("aria-describedby", `${label}-${node.getAttribute("aria-describedby")}`);
  form.addEventListener("submit", (event) => event.preventDefault());
  const output = el("div", {});
  const compute = async () => {
    try {
      const done = await recompute(tool.name, valuesOf(form));
      output.replaceChildren(el("h2", {}, label), resultPanel(done));
      return done;
    } catch (error) {
      output.replaceChildren(el("h2", {}, label), el("p", { class: "wrong", role: "alert" }, error.error ? problemText(error.error) : error.message));
      return null;
    }
  };
  return { node: el("fieldset", {}, el("legend", {}, label), form), output, compute, values: () => valuesOf(form) };
}

function address(tool, columns) {
  const query = new URLSearchParams();
  ["a", "b"].forEach((key, index) => query.set(key, JSON.stringify([tool.name, columns[index].values()])));
  return `/compare?${query}`;
}

function table([left, right]) {
  const names = [...new Set([...left.result.facts, ...right.result.facts].map((fact) => fact.name))];
  const cell = (done, name) => {
    const fact = done.result.facts.find((one) => one.name === name);
    return fact ? done.shown[fact.id]?.value ?? String(fact.value) : "–";
  };
  const label = (name) => [...left.result.facts, ...right.result.facts].find((fact) => fact.name === name)?.label || words(name);
  const rows = names.map((name) => [label(name), cell(left, name), cell(right, name)]);
  return el("div", { class: "table-box", tabIndex: 0, role: "region", ariaLabel: "Differences" },
    el("table", {}, el("thead", {}, el("tr", {}, ["", "A", "B"].map((text) => el("th", { scope: "col" }, text)))),
      el("tbody", {}, rows.map(([name, a, b]) => el("tr", { class: a === b ? "" : "differs" }, el("th", { scope: "row" }, name), el("td", { class: "number" }, a), el("td", { class: "number" }, b))))));
}
