// Small helpers: elements built by property, never by markup; markdown with HTML off and sanitised.
import { DOMPurify, MarkdownIt } from "./vendor/text.js";

export function el(name, properties = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "class") node.className = value;
    else if (key === "data") Object.assign(node.dataset, value);
    else if (key in node && key !== "list" && key !== "form") node[key] = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const byId = (id) => document.getElementById(id);

const markdown = new MarkdownIt({ html: false, linkify: false, breaks: false });
markdown.disable("image");
const ALLOWED = {
  ALLOWED_TAGS: ["p", "strong", "em", "ul", "ol", "li", "code", "pre", "table", "thead", "tbody", "tr", "th", "td",
    "h1", "h2", "h3", "h4", "blockquote", "a", "br", "hr", "s"],
  ALLOWED_ATTR: ["href", "style", "start"],
  ALLOWED_URI_REGEXP: /^https?:\/\//i,
  RETURN_DOM_FRAGMENT: true,
};

// A fragment of safe elements. Links leave the page in a tab of their own; column alignment becomes a class.
export function fromMarkdown(text) {
  const fragment = DOMPurify.sanitize(markdown.render(text), ALLOWED);
  for (const link of fragment.querySelectorAll("a")) {
    link.rel = "noopener noreferrer";
    link.target = "_blank";
  }
  for (const cell of fragment.querySelectorAll("[style]")) {
    if (cell.style.textAlign === "right") cell.className = "number";
    cell.removeAttribute("style");
  }
  return fragment;
}

let hiding;
export function toast(text) {
  const box = byId("toast");
  box.textContent = text;
  box.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => (box.hidden = true), 4000);
}

export function announce(text) {
  byId("status").textContent = text;
}

export async function copy(text, what = "Copied") {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = el("textarea", { value: text, class: "hidden-label" });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  toast(what);
}

export function download(name, content, type) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

export function words(name) {
  return String(name).replaceAll("_", " ");
}

export function problemText(error) {
  const parts = [error.message];
  if (error.hint) parts.push(error.hint);
  if (error.candidates?.length) parts.push(`Nearest: ${error.candidates.join(", ")}.`);
  return parts.filter(Boolean).join(" ");
}
