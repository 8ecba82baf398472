// The server: questions (GET), verbs (POST with the token), and its events. Rules: the only requests of the page are made here,
// and all go to where it came from; the token lies in this tab only (sessionStorage), and travels in a header, never in an address.

const TOKEN = "ubi-token";
const RETRY_EVERY = 2000; // milliseconds until events are asked for again
const STALE_AFTER = 10000; // milliseconds without an event: the connection is given up, and made anew

// What is known of the server and, by its events, of the crawl. `offset`: its clock minus this one, seconds.
const live = { about: null, crawl: null, connected: false, trouble: "", offset: 0, listeners: new Set() };

function clock() {
  return Date.now() / 1000 + live.offset;
}

class Refused extends Error {
  constructor(sentence, status) {
    super(sentence);
    this.status = status;
  }
}

const token = {
  held: "",
  get() {
    return this.held;
  },
  // From this tab, or from the address of a link (#token=...), which is taken away at once.
  load() {
    try {
      this.held = sessionStorage.getItem(TOKEN) ?? "";
    } catch {
      this.held = ""; // storage is switched off: the token lives as long as the page
    }
    const brought = /^#token=(.+)$/.exec(location.hash);
    if (!brought) return;
    history.replaceState(null, "", "#/crawl");
    this.set(decodeURIComponent(brought[1]));
  },
  set(value) {
    this.held = value;
    try {
      if (value) sessionStorage.setItem(TOKEN, value);
      else sessionStorage.removeItem(TOKEN);
    } catch {
      // as above
    }
  },
};

function headers(held = token.get()) {
  return held ? { Authorization: `Bearer ${held}` } : {};
}

function request(path, options) {
  return fetch(path, { cache: "no-store", credentials: "omit", redirect: "error", ...options });
}

async function answered(promise) {
  let response;
  try {
    response = await promise;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("The server of this page does not answer.", 0);
  }
  let answer = null;
  try {
    answer = JSON.parse(await response.text());
  } catch (error) {
    if (error.name === "AbortError") throw error;
  }
  if (response.ok && answer) return answer;
  throw new Refused(answer?.error?.message ?? `The server answered ${response.status} ${response.statusText}.`, response.status);
}

// A question: what GET /api/<name> answers. Empty parameters are left out. Throws Refused.
function ask(name, parameters = {}, signal = undefined) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters)) if (value !== "" && value !== null && value !== undefined) query.set(key, value);
  return answered(request(query.size ? `/api/${name}?${query}` : `/api/${name}`, { signal, headers: headers() }));
}

// A change. Throws Refused.
function tell(name, body, held = token.get()) {
  return answered(request(`/api/${name}`, { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json", ...headers(held) } }));
}

// Reads the events as long as the page is there. By fetch and not EventSource, which cannot send the token that a public address asks for.
async function listen() {
  let shut = false;
  for (;;) {
    try {
      await readEvents();
    } catch (error) {
      live.trouble = error.message;
      if (error.status === 401 && live.about && !shut) {
        shut = !(await askToken()); // the server has another token now; who closes the question is not asked again
        continue;
      }
    }
    live.connected = false;
    live.listeners.forEach((listener) => listener(live.crawl));
    await new Promise((resolve) => setTimeout(resolve, RETRY_EVERY));
  }
}

async function readEvents() {
  const given = new AbortController();
  let timer = setTimeout(() => given.abort(), STALE_AFTER);
  const response = await request("/api/events", { signal: given.signal, headers: headers() });
  if (!response.ok || !response.body) return answered(Promise.resolve(response));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return null;
    clearTimeout(timer);
    timer = setTimeout(() => given.abort(), STALE_AFTER);
    const parts = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
    rest = parts.pop();
    parts.forEach(readEvent);
  }
}

function readEvent(text) {
  let kind = "message";
  const data = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("event:")) kind = line.slice(6).trim();
    if (line.startsWith("data:")) data.push(line.slice(5));
  }
  if (!data.length) return;
  const said = JSON.parse(data.join("\n"));
  const before = live.crawl;
  live.connected = true;
  if (kind === "trouble") live.trouble = said.error?.message ?? "The crawl cannot be read.";
  if (kind === "crawl") {
    live.trouble = "";
    live.crawl = said;
    live.offset = said.time - Date.now() / 1000;
  }
  live.listeners.forEach((listener) => listener(before));
}
