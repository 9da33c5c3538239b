// One answer: its text with numbers that open their derivation, charts, the tool trace, assumption chips, sources.
import { call } from "./api.js";
import { chart } from "./charts.js";
import { byId, copy, el, fromMarkdown, problemText, toast, words } from "./dom.js";
import { enliven } from "./tables.js";

// Paragraphs of the text that the page shows in a better form below it.
const TAKEN_OVER = ["Assumed", "Sources", "Next you may ask"];

// Fill `box` with the text; every printed fact becomes a button.
export function fillText(box, markdown, facts, shown, calls) {
  const fragment = fromMarkdown(markdown);
  for (const strong of fragment.querySelectorAll("p > strong:first-child")) {
    const label = strong.textContent.replace(/:$/, "");
    if (!TAKEN_OVER.includes(label)) continue;
    const next = strong.parentElement.nextElementSibling;
    if (label.startsWith("Next") && next?.tagName === "UL") next.remove();
    strong.parentElement.remove();
  }
  for (const code of fragment.querySelectorAll("pre")) {
    const button = el("button", { type: "button", class: "small copy", onclick: () => copy(code.textContent) }, "Copy");
    const wrap = el("div", { class: "code" });
    code.replaceWith(wrap);
    wrap.append(button, code);
  }
  linkFacts(fragment, facts, shown, calls);
  box.replaceChildren(fragment);
  for (const table of box.querySelectorAll("table")) {
    const before = table.previousElementSibling;
    enliven(table, before?.tagName === "P" ? before.textContent : "table");
  }
}

function linkFacts(fragment, facts, shown, calls) {
  const byText = new Map();
  for (const fact of facts) {
    const forms = shown[fact.id] || {};
    for (const text of new Set([forms.value, forms.range])) {
      if (typeof fact.value !== "number" || !text || !/\d.*\D|\d{2}/.test(text)) continue; // a bare "1" is no figure to open
      byText.set(text, [...(byText.get(text) || []), { ...fact, label: labelOf(fact, calls) }]);
    }
  }
  if (!byText.size) return;
  const texts = [...byText.keys()].sort((a, b) => b.length - a.length).slice(0, 1500);
  const pattern = new RegExp(`(?<![\\w.,$–-])(?:${texts.map(escape).join("|")})(?![\\w–]|[.,]\\d)`, "g");
  const walker = document.createTreeWalker(fragment, NodeFilter.SHOW_TEXT);
  const nodes = [];
  while (walker.nextNode()) if (!walker.currentNode.parentElement?.closest("pre, code, a, th")) nodes.push(walker.currentNode);
  for (const node of nodes) {
    const row = node.parentElement?.closest("tr")?.cells[0]?.textContent;
    const parts = [];
    let last = 0;
    for (const match of node.data.matchAll(pattern)) {
      const fact = pick(byText.get(match[0]), row);
      if (!fact) continue;
      const before = node.data.slice(last, match.index);
      // A word joiner keeps an opening bracket on the line of the number that follows it.
      parts.push(before.endsWith("(") ? `${before}\u2060` : before, factButton(match[0], fact, shown, calls));
      last = match.index + match[0].length;
    }
    if (parts.length) node.replaceWith(...parts, node.data.slice(last));
  }
}

function labelOf(fact, calls) {
  const own = calls.find((one) => one.id === fact.tool_call)?.result?.facts || [];
  return own.find((one) => `${fact.tool_call}.${one.id}` === fact.id || one.id === fact.id)?.label || "";
}

// Two facts may print alike. In a table the row's name decides, or nothing does; elsewhere the first one named.
function pick(found, row) {
  if (row === undefined) return found[0];
  const named = found.find((fact) => fact.label === row || words(fact.name) === row);
  return named || (found.length === 1 ? found[0] : null);
}

function escape(text) {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

function factButton(text, fact, shown, calls) {
  return el("button", {
    type: "button", class: "fact", ariaLabel: `${text}: ${words(fact.name)}, show how`,
    onclick: () => openDerivation(fact, shown[fact.id], calls),
  }, text);
}

// The sheet behind a number: what it is, its range, what it rests on, the sum, the sources.
export function openDerivation(fact, forms, calls) {
  const sheet = byId("derivation");
  const record = calls.find((one) => one.id === fact.tool_call) || {};
  const result = record.result || {};
  const row = (label, value) => value && [el("dt", {}, label), el("dd", {}, value)];
  const kinds = { exact: "exact", modelled: "modelled: computed from a formula", measured: "measured", price: "dated price", quoted: "quoted from a source" };
  sheet.replaceChildren(
    el("h2", { id: "derivation-title" }, `${words(fact.label || fact.name)}: ${forms?.value ?? fact.value}`),
    el("dl", {},
      row("Range", forms?.range),
      row("Kind", kinds[fact.kind] || fact.kind),
      row("Exactly", typeof fact.value === "number" ? `${fact.value.toLocaleString("en", { maximumFractionDigits: 6 })} ${fact.unit}`.trim() : null),
      row("Rests on", fact.basis),
      row("As of", fact.as_of),
      row("Computed by", record.name && words(record.name))),
    result.steps?.length ? el("h3", {}, "The sum") : "",
    result.steps?.length ? el("ol", { class: "steps" }, result.steps.map((step) => el("li", {}, el("b", {}, step.symbol), ` = ${step.expression}`, el("span", { class: "result" }, ` = ${plainValue(step.value)} ${step.unit}`.trimEnd())))) : "",
    result.sources?.length ? el("h3", {}, "Sources") : "",
    sourceList((result.sources || []).map((one) => ({ ...one, source: one.url || one.id }))),
    el("form", { method: "dialog" }, el("button", { type: "submit" }, "Close")),
  );
  sheet.showModal();
}

function plainValue(value) {
  if (typeof value !== "number") return String(value);
  return value.toLocaleString("en", { maximumSignificantDigits: 6 });
}

export function sourceList(sources) {
  if (!sources.length) return "";
  return el("ul", { class: "sources" }, sources.map((one) => {
    const web = /^https:\/\//.test(one.source || "");
    const title = web ? el("a", { href: one.source, target: "_blank", rel: "noopener noreferrer" }, one.title) : el("span", {}, one.title);
    return el("li", {}, title, one.as_of ? el("span", { class: "date" }, ` ${one.as_of}`) : "");
  }));
}

// A folded row for each tool call: inputs, the sum, sources, time.
export function traceRow(record) {
  const summary = el("summary", {}, el("span", { class: "tool-name" }, words(record.name)), el("span", { class: "tool-state" }, "working…"));
  const body = el("div", { class: "trace" });
  const row = el("details", { class: "tool" }, summary, body);
  row.finish = (done) => {
    summary.lastChild.textContent = done.error ? "could not" : `${Math.max(1, Math.round(done.milliseconds))} ms`;
    row.classList.toggle("failed", Boolean(done.error));
  };
  row.fill = (full) => {
    const result = full.result || {};
    body.replaceChildren(
      el("h4", {}, "Inputs"),
      el("pre", {}, JSON.stringify(full.arguments, null, 1)),
      full.error ? el("p", {}, problemText(full.error)) : "",
      result.steps?.length ? el("h4", {}, "Steps") : "",
      result.steps?.length ? el("ol", { class: "steps" }, result.steps.map((step) => el("li", {}, el("b", {}, step.symbol), ` = ${step.expression} = ${plainValue(step.value)} ${step.unit}`))) : "",
      result.sources?.length ? el("h4", {}, "Sources") : "",
      sourceList((result.sources || []).map((one) => ({ ...one, source: one.url || one.id }))),
      el("p", { class: "trace-links" },
        el("a", { href: calculatorAddress(full.name, full.arguments) }, "Open in the calculator"),
        el("a", { href: `/compare?a=${encodeURIComponent(JSON.stringify([full.name, full.arguments]))}` }, "Compare with another")),
    );
  };
  return row;
}

export function calculatorAddress(name, values) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(values)) {
    if (value !== null && value !== undefined) query.set(key, typeof value === "object" ? JSON.stringify(value) : String(value));
  }
  return `/tools/${encodeURIComponent(name)}?${query}`;
}

// Assumption chips of one tool call. Editing one runs the tool again, without any model, into `target`.
export function chips(record, onChange, seen = new Set()) {
  const found = (record.result?.assumptions || []).filter((one) => one.argument && !seen.has(one.argument));
  if (!found.length) return "";
  const list = el("div", { class: "chips", role: "group", ariaLabel: `Assumptions of ${words(record.name)}, editable` });
  for (const one of found) {
    if (seen.has(one.argument)) continue;
    seen.add(one.argument);
    list.append(chip(one, record, onChange));
  }
  return el("section", { class: "assumed" }, el("h3", {}, `Assumed by ${words(record.name)}; click one to change it`), list);
}

function chip(assumption, record, onChange) {
  const label = () => [el("span", { class: "chip-name" }, words(assumption.argument)), ` ${assumption.value}`];
  const button = el("button", { type: "button", class: "chip", title: assumption.why }, label());
  button.addEventListener("click", () => {
    const input = el("input", { value: String(assumption.value ?? ""), ariaLabel: `New value for ${words(assumption.argument)}`, size: 12 });
    const form = el("form", { class: "chip-form" }, el("span", { class: "chip-name" }, words(assumption.argument)), input,
      el("button", { type: "submit", class: "small" }, "Recompute"), el("button", { type: "button", class: "small", onclick: () => form.replaceWith(button) }, "Cancel"));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        await onChange(record, { ...record.arguments, [assumption.argument]: typed(input.value, assumption.value) });
      } catch (error) {
        toast(error.error ? problemText(error.error) : error.message);
      }
    });
    button.replaceWith(form);
    input.select();
    input.focus();
  });
  return button;
}

// Text from a field as the value that the tool expects: numbers and booleans as such, else words.
export function typed(text, like) {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  if (typeof like === "boolean" || /^(true|false)$/i.test(trimmed)) return /^(true|yes|1)$/i.test(trimmed);
  if (/^[[{]/.test(trimmed)) return JSON.parse(trimmed);
  return trimmed !== "" && !Number.isNaN(Number(trimmed)) ? Number(trimmed) : trimmed;
}

export async function recompute(name, values) {
  const clean = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== ""));
  return call("POST", `/web/tools/${encodeURIComponent(name)}`, clean);
}

// A tool's result without a conversation: a recomputation, a calculator's answer, one side of a comparison.
export function resultPanel(done, options = {}) {
  const record = { id: "r", name: done.tool, arguments: done.arguments, result: done.result, milliseconds: done.milliseconds };
  const facts = done.result.facts.map((fact) => ({ ...fact, tool_call: "r" }));
  const text = el("div", { class: "text" });
  fillText(text, done.markdown, facts, done.shown, [record]);
  const panel = el("div", { class: "panel" }, text);
  text.after(...done.result.charts.map(chart));
  const again = async (old, values) => {
    const next = await recompute(old.name, values);
    panel.replaceWith(resultPanel(next, options));
    options.changed?.(next);
  };
  panel.append(chips(record, again));
  const row = traceRow(record);
  row.finish(record);
  row.fill(record);
  panel.append(row);
  return panel;
}
