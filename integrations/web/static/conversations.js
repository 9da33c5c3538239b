// The list at the side: past conversations, search over their titles, export and removal.
import { call, text } from "./api.js";
import { byId, download, el, toast } from "./dom.js";

let known = [];

export async function refresh() {
  try {
    known = (await call("GET", "/v1/conversations?limit=100")).conversations;
  } catch {
    known = [];
  }
  show();
}

export function show() {
  const wanted = byId("find").value.trim().toLowerCase();
  const found = known.filter((one) => !wanted || (one.title || "").toLowerCase().includes(wanted));
  byId("conversations").replaceChildren(
    ...found.map((one) => {
      const here = location.pathname === `/c/${encodeURIComponent(one.id)}`;
      const link = el("a", { href: `/c/${encodeURIComponent(one.id)}`, ariaCurrent: here ? "page" : null }, one.title || "Untitled");
      const save = el("button", { type: "button", class: "quiet", ariaLabel: `Export ${one.title}`, onclick: () => exportOne(one) }, "⇩");
      const drop = el("button", { type: "button", class: "quiet", ariaLabel: `Delete ${one.title}`, onclick: () => remove(one) }, "×");
      return el("li", {}, link, save, drop);
    }),
  );
  if (!found.length) byId("conversations").append(el("li", { class: "soft" }, wanted ? "None found." : "Nothing asked yet."));
}

async function exportOne(one) {
  try {
    download(`${one.id}.md`, await text(`/v1/conversations/${encodeURIComponent(one.id)}/export?format=markdown`), "text/markdown");
  } catch (error) {
    toast(error.message);
  }
}

async function remove(one) {
  if (!confirm(`Delete “${one.title}”?`)) return;
  try {
    await call("DELETE", `/v1/conversations/${encodeURIComponent(one.id)}`);
    if (location.pathname === `/c/${encodeURIComponent(one.id)}`) location.assign("/");
    await refresh();
  } catch (error) {
    toast(error.message);
  }
}
