// Charts are data that tools return. The drawing bundle is fetched when the first one is to be shown.
import { download, el, toast } from "./dom.js";

let bundle;

function dark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function config() {
  const ink = dark() ? "#dde3ee" : "#1b2330";
  const line = dark() ? "#39435a" : "#dde2ea";
  const axis = { labelColor: ink, titleColor: ink, gridColor: line, domainColor: line, tickColor: line, labelLimit: 220 };
  return {
    background: "transparent",
    font: "system-ui, sans-serif",
    title: { color: ink, anchor: "start", fontSize: 14, fontWeight: 600 },
    axis,
    legend: { labelColor: ink, titleColor: ink },
    view: { stroke: null },
    text: { color: ink },
    range: { category: ["#3d6fe0", "#e08a1e", "#2a9d6f", "#c2417c", "#7a5cc7", "#3aa6b9", "#a36a3b", "#7d8797"] },
  };
}

// A figure to put into the page at once; it draws itself when it is there, since its width is the place's.
export function chart(spec) {
  const title = typeof spec.title === "string" ? spec.title : spec.title?.text || "Chart";
  const canvas = el("div", { class: "chart", role: "img", ariaLabel: `${title} (the same figures are in the tables)` });
  const tools = el("div", { class: "table-tools" });
  const figure = el("figure", {}, canvas, tools);
  const whole = { ...spec, $schema: undefined, width: spec.width ?? "container", autosize: { type: "fit-x", contains: "padding" } };
  figure.redraw = async () => {
    try {
      bundle ||= import("./vendor/charts.js");
      const { draw } = await bundle;
      const drawn = await draw(canvas, whole, { renderer: "svg", config: config() });
      const save = async (kind) => {
        if (kind === "svg") download("chart.svg", await drawn.view.toSVG(), "image/svg+xml");
        else download("chart.png", new Blob([bytesOf(await drawn.view.toImageURL("png", 2))], { type: "image/png" }));
      };
      tools.replaceChildren(...["svg", "png"].map((kind) =>
        el("button", { type: "button", class: "small", onclick: () => save(kind).catch(() => toast("Could not save the chart.")) }, kind.toUpperCase())));
    } catch (error) {
      console.warn("chart not drawn:", error.message);
      canvas.textContent = "This chart could not be drawn; its figures are in the table.";
    }
  };
  queueMicrotask(() => figure.redraw());
  return figure;
}

// toImageURL gives a data: address for PNG, which the page's policy lets nobody fetch: it is decoded here.
function bytesOf(url) {
  return Uint8Array.from(atob(url.slice(url.indexOf(",") + 1)), (letter) => letter.charCodeAt(0));
}
