// Tables in an answer: sorted by a click on a heading, saved as CSV.
import { download, el } from "./dom.js";

const PREFIX = { k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, m: 1e-3, µ: 1e-6 };

// The number that a printed cell stands for, so that 900 MB sorts below 1.2 GB; NaN for words.
export function sortValue(text) {
  const match = text.replaceAll(",", "").match(/^(?:\d+×\s+)?[$~≈]?\s*(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*(\S*)/i);
  if (!match) return NaN;
  const [, number, unit] = match;
  if (/^(min|h|days|s|ms)$/.test(unit)) return Number(number) * { ms: 1e-3, s: 1, min: 60, h: 3600, days: 86400 }[unit];
  return Number(number) * (unit.length > 1 && PREFIX[unit[0]] && /^.(i?B|B\/s|b\/s|FLOP)/.test(unit) ? PREFIX[unit[0]] : 1);
}

export function enliven(table, title = "table") {
  const heads = [...table.querySelectorAll("thead th")];
  heads.forEach((head, index) => {
    const label = head.textContent;
    head.replaceChildren(el("button", { type: "button", class: "sort", onclick: () => sort(table, index, head) }, label));
    head.setAttribute("aria-sort", "none");
  });
  for (const cell of table.querySelectorAll("td")) if (cell.textContent.length <= 26) cell.classList.add("short");
  const box = el("div", { class: "table-box", tabIndex: 0, role: "region", ariaLabel: title });
  table.replaceWith(box);
  const csv = el("button", { type: "button", class: "small", onclick: () => download(`${slug(title)}.csv`, asCsv(table), "text/csv") }, "CSV");
  box.append(table);
  box.after(el("div", { class: "table-tools" }, csv));
}

function sort(table, index, head) {
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const other of table.querySelectorAll("thead th")) other.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => [row, row.cells[index]?.textContent ?? ""]);
  const numeric = rows.filter(([, cell]) => cell && cell !== "–").every(([, cell]) => !Number.isNaN(sortValue(cell)));
  rows.sort(([, a], [, b]) => {
    if (numeric) return (Number.isNaN(sortValue(a)) ? Infinity : sortValue(a)) - (Number.isNaN(sortValue(b)) ? Infinity : sortValue(b));
    return a.localeCompare(b);
  });
  if (down) rows.reverse();
  body.append(...rows.map(([row]) => row));
}

export function asCsv(table) {
  return [...table.rows]
    .map((row) => [...row.cells].map((cell) => quote(cell.textContent)).join(","))
    .join("\n") + "\n";
}

// A leading = + - @ would run as a formula in a spreadsheet; a number may begin with its sign.
function quote(text) {
  const safe = /^[=+@\t\r]|^-(?!\d)/.test(text) ? `'${text}` : text;
  return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function slug(text) {
  return text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "table";
}
