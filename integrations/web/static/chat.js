// The conversation: a question, its events as they happen, the finished answer with everything that can be done to it.
import { chips, fillText, recompute, resultPanel, sourceList, traceRow } from "./answer.js";
import { Problem, ask, call, resume, setKey } from "./api.js";
import { chart } from "./charts.js";
import { announce, byId, copy, el, fromMarkdown, problemText, toast } from "./dom.js";
import { refresh } from "./conversations.js";

const RETRIES = 2;
const state = { conversation: null, running: null };

export function openConversation(id, turns) {
  state.conversation = id;
  byId("view").replaceChildren();
  for (const turn of turns) {
    const box = begin(turn.question);
    if (turn.answer) finish(box, turn.answer);
    else box.text.textContent = "This question was not answered.";
  }
}

export function currentConversation() {
  return state.conversation;
}

export function stop() {
  state.running?.abort();
}

export async function submit(question) {
  const text = question.trim();
  if (!text || state.running) return;
  byId("welcome").hidden = true;
  const box = begin(text);
  box.scrollIntoView({ block: "start", behavior: "auto" });
  const aborter = new AbortController();
  state.running = aborter;
  busy(true);
  try {
    await run(text, box, aborter.signal);
  } finally {
    state.running = null;
    busy(false);
    box.article.setAttribute("aria-busy", "false");
  }
}

// Ask and follow. After a cut the stream is taken up where it broke off; only a turn that the server no longer has is
// asked again.
async function run(question, box, signal) {
  let place = beginning();
  for (let attempt = 0; ; attempt += 1) {
    try {
      if (await follow(question, box, place, signal)) return;
      throw new Error("The connection was cut.");
    } catch (error) {
      if (signal.aborted) return stopped(box, place.turn);
      const gone = error instanceof Problem && error.status === 404 && place.turn;
      if (error instanceof Problem && !gone) return failed(box, error);
      if (attempt >= RETRIES) return failed(box, error, question);
      announce("The connection was cut; going on");
      if (gone || place.shut) {
        place = beginning();
        box.text.replaceChildren(el("p", { class: "soft" }, "The connection was cut; asking again…"));
        box.trace.replaceChildren();
      }
      await new Promise((resolve) => setTimeout(resolve, 600 * (attempt + 1)));
    }
  }
}

// How far the events of a turn have been read, and what they have shown.
function beginning() {
  return { turn: null, last: 0, rows: new Map(), text: "", shut: false };
}

async function follow(question, box, place, signal) {
  const { rows } = place;
  const body = { question, ...(state.conversation ? { conversation_id: state.conversation } : {}) };
  for await (const [number, event] of place.turn ? resume(place.turn, place.last, signal) : ask(body, signal)) {
    place.last = number;
    if (event.type === "started") {
      place.turn = event.turn_id;
      state.conversation = event.conversation_id;
      history.replaceState(null, "", `/c/${encodeURIComponent(event.conversation_id)}`);
    } else if (event.type === "tool_started") {
      const row = traceRow(event);
      rows.set(event.id, row);
      box.trace.append(row);
      announce(`Computing ${event.name.replaceAll("_", " ")}`);
    } else if (event.type === "tool_finished") {
      rows.get(event.id)?.finish(event);
    } else if (event.type === "text") {
      place.text = event.replace ? event.text : place.text + event.text;
      box.text.replaceChildren(fromMarkdown(place.text));
    } else if (event.type === "done") {
      finish(box, event.answer, rows);
      announce("Answered");
      refresh();
      return true;
    } else if (event.type === "error") {
      failed(box, new Problem(422, event.error));
      return true;
    } else if (event.type === "shutdown") {
      place.shut = true;
      return false;
    }
  }
  return false;
}

function begin(question) {
  const trace = el("div", { class: "traces" });
  const text = el("div", { class: "text" }, el("p", { class: "soft" }, "Working…"));
  const below = el("div", { class: "below" });
  const article = el("article", { class: "answer", ariaBusy: "true", ariaLabel: `Answer to: ${question.slice(0, 120)}` }, text, below, trace);
  const turn = el("section", { class: "turn" }, el("div", { class: "question" }, question), article);
  byId("view").append(turn);
  return { article, text, trace, below, scrollIntoView: (options) => turn.scrollIntoView(options) };
}

async function finish(box, answer, rows = new Map()) {
  const shown = await call("POST", "/web/shown", { facts: answer.facts.slice(0, 2000) }).catch(() => ({}));
  fillText(box.text, answer.answer, answer.facts, shown, answer.tool_calls);
  if (answer.degraded) box.text.prepend(el("p", { class: "soft" }, "The language model could not answer; this is by the built-in planner."));
  for (const record of answer.tool_calls) {
    let row = rows.get(record.id) || [...rows.values()][answer.tool_calls.indexOf(record)];
    if (!row) {
      row = traceRow(record);
      box.trace.append(row);
    }
    row.finish(record);
    row.fill(record);
  }
  box.below.replaceChildren();
  for (const spec of answer.charts.slice(0, 6)) box.below.append(chart(spec));
  const recomputed = el("div", { class: "recomputed" });
  const again = async (record, values) => {
    const done = await recompute(record.name, values);
    recomputed.replaceChildren(el("h3", {}, "Recomputed, without asking again"), resultPanel(done));
    recomputed.scrollIntoView({ block: "nearest" });
    announce("Recomputed");
  };
  const seen = new Set();
  for (const record of answer.tool_calls) box.below.append(chips(record, again, seen));
  box.below.append(recomputed, sources(answer), next(answer), actions(answer));
  box.article.setAttribute("aria-busy", "false");
}

function sources(answer) {
  if (!answer.citations.length) return "";
  return el("details", { class: "cited" }, el("summary", {}, `Sources (${answer.citations.length})`), sourceList(answer.citations));
}

function next(answer) {
  if (!answer.suggestions.length) return "";
  return el("div", { class: "next", role: "group", ariaLabel: "What you may ask next" },
    answer.suggestions.map((text) => el("button", { type: "button", class: "starter", onclick: () => submit(text) }, text)));
}

function actions(answer) {
  const share = () => copy(`${location.origin}/c/${encodeURIComponent(answer.conversation_id)}`, "Link copied");
  const vote = (rating, pressed) => async () => {
    const send = async (comment) => {
      await call("POST", "/v1/feedback", { turn_id: answer.turn_id, rating, comment });
      toast("Thank you; it is kept with this answer.");
    };
    try {
      if (rating > 0) await send("");
      else reason.hidden = false;
      if (rating < 0) reason.querySelector("input").focus();
      reason.send = send;
      for (const one of [up, down]) one.setAttribute("aria-pressed", String(one === pressed()));
    } catch (error) {
      toast(error.message);
    }
  };
  const up = el("button", { type: "button", class: "small", ariaPressed: "false", onclick: vote(1, () => up) }, "Helpful");
  const down = el("button", { type: "button", class: "small", ariaPressed: "false", onclick: vote(-1, () => down) }, "Wrong");
  const reason = el("form", { class: "reason", hidden: true }, el("label", {}, "What was wrong? ", el("input", { name: "why", maxLength: 1000 })), el("button", { type: "submit", class: "small" }, "Send"));
  reason.addEventListener("submit", async (event) => {
    event.preventDefault();
    await reason.send(reason.querySelector("input").value).catch((error) => toast(error.message));
    reason.hidden = true;
  });
  const checked = answer.grounding?.numbers ? el("span", { class: "soft" }, `${answer.grounding.grounded} of ${answer.grounding.numbers} numbers checked against tools`) : "";
  return el("div", { class: "actions" }, up, down,
    el("button", { type: "button", class: "small", onclick: () => copy(answer.answer, "Answer copied") }, "Copy answer"),
    el("button", { type: "button", class: "small", onclick: share }, "Link"), checked, reason);
}

function failed(box, error, question) {
  const words = error.error ? problemText(error.error) : error.message;
  box.text.replaceChildren(el("p", { class: "wrong", role: "alert" }, words));
  if (question) box.text.append(el("button", { type: "button", class: "small", onclick: () => submit(question) }, "Ask again"));
  if (error.status === 401) askForKey(box);
  announce(words);
}

function askForKey(box) {
  const input = el("input", { type: "password", autocomplete: "off", ariaLabel: "API key" });
  const form = el("form", { class: "reason" }, el("label", {}, "API key ", input), el("button", { type: "submit", class: "small" }, "Use"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    setKey(input.value.trim());
    toast("Kept in this browser; ask again.");
    refresh();
  });
  box.text.append(form);
}

function stopped(box, turn) {
  if (turn) call("DELETE", `/v1/turns/${encodeURIComponent(turn)}`).catch(() => {}); // over already, or soon
  box.text.append(el("p", { class: "soft" }, "Stopped."));
  announce("Stopped");
}

function busy(on) {
  byId("send").hidden = on;
  byId("stop").hidden = !on;
}
