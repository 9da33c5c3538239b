// The server's routes: JSON calls, and the answer's events read from a streamed POST.

const KEY = "advisor.key";

function headers(extra = {}) {
  const key = localStorage.getItem(KEY);
  return { "content-type": "application/json", ...(key ? { authorization: `Bearer ${key}` } : {}), ...extra };
}

export function setKey(key) {
  if (key) localStorage.setItem(KEY, key);
  else localStorage.removeItem(KEY);
}

export class Problem extends Error {
  constructor(status, error) {
    super(error.message || `The server said ${status}.`);
    this.status = status;
    this.error = error;
  }
}

export async function call(method, path, body) {
  const response = await fetch(path, {
    method,
    headers: headers(),
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (!response.ok) throw await problem(response);
  return response.status === 204 ? null : response.json();
}

export async function text(path) {
  const response = await fetch(path, { headers: headers() });
  if (!response.ok) throw await problem(response);
  return response.text();
}

const KEEP_SECONDS = 30; // how long a turn goes on while nobody reads it

// Yields [number, event] for the typed events of one turn, in order; ends after done or error. When the connection is
// cut, `resume` goes on after the last number that arrived.
export async function* ask(body, signal) {
  const response = await fetch("/v1/ask", {
    method: "POST",
    headers: headers({ accept: "text/event-stream" }),
    body: JSON.stringify({ ...body, keep_seconds: KEEP_SECONDS }),
    signal,
  });
  yield* events(response);
}

export async function* resume(turn, last, signal) {
  const response = await fetch(`/v1/turns/${encodeURIComponent(turn)}/events`, {
    headers: headers({ accept: "text/event-stream", "last-event-id": String(last) }),
    signal,
  });
  yield* events(response);
}

async function* events(response) {
  if (!response.ok) throw await problem(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    buffer += value;
    let end;
    while ((end = buffer.indexOf("\n\n")) >= 0) {
      const lines = buffer.slice(0, end).split("\n");
      buffer = buffer.slice(end + 2);
      const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart());
      const id = lines.find((line) => line.startsWith("id:"));
      if (data.length) yield [id ? Number(id.slice(3)) : 0, JSON.parse(data.join("\n"))];
    }
  }
}

async function problem(response) {
  const body = await response.json().catch(() => ({}));
  const error = body.error || { code: "http", message: `The server said ${response.status}.` };
  return new Problem(response.status, error);
}
