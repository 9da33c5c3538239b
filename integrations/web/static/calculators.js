// A form for each tool, made from its schema; the address holds the values, so that a result can be shared.
import { calculatorAddress, recompute, resultPanel, typed } from "./answer.js";
import { call } from "./api.js";
import { announce, copy, download, el, problemText, words } from "./dom.js";

export async function showCalculators(view, name) {
  const { tools } = await call("GET", "/v1/tools");
  const tool = tools.find((one) => one.name === name);
  if (!tool) {
    view.replaceChildren(
      el("h1", {}, "Calculators"),
      name ? el("p", { class: "wrong" }, `There is no calculator called ${name}.`) : el("p", {}, "The same tools that answer questions, as forms."),
      el("div", { class: "cards" }, tools.map((one) => el("a", { class: "card", href: `/tools/${one.name}` }, el("b", {}, words(one.name)), el("span", {}, one.summary)))),
    );
    return;
  }
  document.title = `${words(tool.name)} – training advisor`;
  const given = new URLSearchParams(location.search);
  const output = el("div", { id: "output", ariaLive: "polite" });
  const form = formFor(tool, given);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    compute(tool, form, output);
  });
  view.replaceChildren(
    el("p", {}, el("a", { href: "/tools" }, "← All calculators")),
    el("h1", {}, words(tool.name)),
    el("p", {}, tool.summary),
    tool.description ? el("details", { class: "cited" }, el("summary", {}, "How it is computed"), el("p", { class: "description" }, tool.description)) : "",
    el("div", { class: "calculator" }, form, output),
  );
  if ([...given.keys()].length) compute(tool, form, output);
}

async function compute(tool, form, output) {
  const values = valuesOf(form);
  history.replaceState(null, "", calculatorAddress(tool.name, values));
  form.querySelectorAll(".field-error").forEach((node) => node.remove());
  try {
    const done = await recompute(tool.name, values);
    const share = el("div", { class: "actions" },
      el("button", { type: "button", class: "small", onclick: () => copy(location.href, "Link copied") }, "Copy link"),
      el("button", { type: "button", class: "small", onclick: () => download(`${tool.name}.json`, JSON.stringify(done.result, null, 1), "application/json") }, "JSON"),
      el("a", { class: "small button", href: `/compare?a=${encodeURIComponent(JSON.stringify([tool.name, values]))}` }, "Compare"));
    output.replaceChildren(resultPanel(done), share);
    announce("Computed");
  } catch (error) {
    const problem = error.error || { message: error.message };
    output.replaceChildren(el("p", { class: "wrong", role: "alert" }, problemText(problem)));
    const field = problem.field && form.elements.namedItem(problem.field);
    if (field) {
      field.after(el("span", { class: "field-error" }, problem.message));
      field.closest("details")?.setAttribute("open", "");
      field.focus();
    }
  }
}

export function formFor(tool, given) {
  const schema = tool.input_schema;
  const example = tool.examples[0] || {};
  const required = new Set(schema.required || []);
  const first = [], rest = [];
  for (const [key, raw] of Object.entries(schema.properties || {})) {
    const main = required.has(key) || key in example || given.has(key);
    (main ? first : rest).push(field(key, resolve(raw, schema), required.has(key), given.get(key), example[key]));
  }
  return el("form", { class: "form", noValidate: true },
    first, rest.length ? el("details", {}, el("summary", {}, `More (${rest.length})`), el("div", { class: "form" }, rest)) : "",
    el("button", { type: "submit" }, "Compute"));
}

function resolve(property, schema) {
  const options = property.anyOf || [property];
  const found = options.map((one) => (one.$ref ? schema.$defs?.[one.$ref.split("/").pop()] || one : one)).filter((one) => one.type !== "null");
  return { ...found[0], choices: found.flatMap((one) => one.enum || []), description: property.description || found[0]?.description, default: property.default, kinds: found.map((one) => one.type) };
}

function field(key, about, required, value, example) {
  const id = `f-${key}`;
  const hint = about.description ? el("span", { class: "hint", id: `${id}-hint` }, about.description) : "";
  const common = { id, name: key, required, "aria-describedby": hint ? `${id}-hint` : null };
  let input;
  if (about.kinds.length === 1 && about.kinds[0] === "boolean") {
    input = el("select", common, option("", "default"), option("true", "yes"), option("false", "no"));
  } else if (about.choices.length && about.kinds.length <= 2 && !about.kinds.includes("object")) {
    input = el("select", common, required ? "" : option("", "default"), about.choices.map((one) => option(String(one), words(one))));
  } else {
    const shown = example !== undefined ? String(typeof example === "object" ? JSON.stringify(example) : example) : about.default ?? "";
    input = el(key.includes("config") || key.includes("text") ? "textarea" : "input", { ...common, autocomplete: "off", placeholder: shown === "" || shown === null ? "" : String(shown) });
  }
  if (value !== null && value !== undefined) input.value = value;
  else if (required && example !== undefined) input.value = typeof example === "object" ? JSON.stringify(example) : example;
  input.dataset.kind = about.kinds.join(" ");
  return el("div", { class: "field" }, el("label", { htmlFor: id }, words(key), required ? el("span", { class: "must" }, " needed") : ""), input, hint);
}

function option(value, label) {
  return el("option", { value }, label);
}

export function valuesOf(form) {
  const values = {};
  for (const input of form.querySelectorAll("[name]")) {
    if (input.value.trim() === "") continue;
    values[input.name] = valueOf(input);
  }
  return values;
}

// Words stay words where the schema wants text; "70B" is text although "70" could be a number.
function valueOf(input) {
  const kinds = input.dataset.kind.split(" ");
  const text = input.value.trim();
  if (kinds.includes("array") && !/^\[/.test(text)) return kinds.includes("string") ? text : text.split(",").map((part) => part.trim()).filter(Boolean);
  if (kinds.every((kind) => kind === "string")) return text;
  try {
    return typed(text);
  } catch {
    return text;
  }
}
