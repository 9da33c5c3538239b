// The page: reads the address, shows a conversation, a calculator or a comparison, and keeps theme and side bar.
import { call } from "./api.js";
import { openConversation, stop, submit } from "./chat.js";
import { refresh, show } from "./conversations.js";
import { byId, el, problemText } from "./dom.js";

const THEME = "advisor.theme";

function theme() {
  const kept = localStorage.getItem(THEME);
  if (kept) document.documentElement.dataset.theme = kept;
  byId("theme").addEventListener("click", () => {
    const dark = document.documentElement.dataset.theme
      ? document.documentElement.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem(THEME, document.documentElement.dataset.theme);
    for (const figure of document.querySelectorAll("figure")) figure.redraw?.();
  });
}

function side() {
  byId("menu").addEventListener("click", () => {
    const open = document.body.classList.toggle("side-open");
    byId("menu").setAttribute("aria-expanded", String(open));
  });
  byId("find").addEventListener("input", show);
}

function composer() {
  const box = byId("question");
  const send = () => {
    const text = box.value;
    box.value = "";
    grow();
    submit(text);
  };
  const grow = () => {
    box.style.height = "auto";
    box.style.height = `${Math.min(box.scrollHeight, 240)}px`;
  };
  box.addEventListener("input", grow);
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      send();
    }
  });
  byId("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  byId("stop").addEventListener("click", stop);
  document.addEventListener("keydown", (event) => event.key === "Escape" && !byId("derivation").open && stop());
  for (const starter of document.querySelectorAll("#welcome .starter")) {
    starter.addEventListener("click", () => submit(starter.textContent));
  }
}

async function route() {
  const [, room, name] = location.pathname.split("/").map(decodeURIComponent);
  const place = { tools: "tools", compare: "compare" }[room] || "ask";
  document.querySelector(`[data-nav="${place}"]`)?.setAttribute("aria-current", "page");
  byId("composer").hidden = place !== "ask";
  if (place === "tools") return (await import("./calculators.js")).showCalculators(byId("view"), name);
  if (place === "compare") return (await import("./compare.js")).showComparison(byId("view"));
  if (room === "c" && name) {
    try {
      const found = await call("GET", `/v1/conversations/${encodeURIComponent(name)}`);
      return openConversation(found.id, found.turns);
    } catch (error) {
      byId("view").replaceChildren(el("p", { class: "wrong", role: "alert" }, error.error ? problemText(error.error) : error.message));
      return null;
    }
  }
  byId("welcome").hidden = false;
  const asked = new URLSearchParams(location.search).get("q");
  if (asked) byId("question").value = asked.slice(0, 2000);
  byId("question").focus();
  return null;
}

theme();
side();
composer();
route();
refresh();
