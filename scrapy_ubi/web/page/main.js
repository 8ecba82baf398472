// The frame: which view is open, what all views share, and the start. Rules: a view is a function (parameters, context) that gives its node;
// what it asks again and again it asks by `context`, which ends with it, rests while the page is hidden, and shows troubles in one place.

const VIEWS = {
  crawl: ["Crawl", crawlView], ring: ["Ring", ringView], hosts: ["Hosts", hostsView], failures: ["Failures", failuresView], url: ["URL", urlView],
  mail: ["Mail", mailView], outputs: ["Outputs", outputsView], seeds: ["Seeds", seedsView], settings: ["Settings", settingsView],
  agent: ["Agent", agentView, "crawl"], host: ["Host", hostView, "hosts"],
};
const DEFAULT_TITLE = "scrapy ubi";

// The address of a view: #/name/about?parameters
function address(name, about = "", parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const query = new URLSearchParams(given).toString();
  return `#/${name}${about ? `/${encodeURIComponent(about)}` : ""}${query ? `?${query}` : ""}`;
}

function placeOf(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [name, about = ""] = path.split(/\/(.*)/s);
  let decoded = about;
  try {
    decoded = decodeURIComponent(about);
  } catch {
    // a hand-written address with a stray %: taken as it is
  }
  return { name: VIEWS[name] ? name : "crawl", about: decoded, parameters: new URLSearchParams(query) };
}

let open = null; // the context of the view that is open

function makeContext(trouble) {
  const given = new AbortController();
  const rounds = [];
  const hearers = new Set();
  async function attempt(round) {
    if (given.signal.aborted) return;
    if (round.busy) {
      round.more = true;
      return;
    }
    round.busy = true;
    try {
      await round.does();
      round.trouble = "";
    } catch (error) {
      if (error.name === "AbortError" || given.signal.aborted) return;
      if (!(error instanceof Refused)) console.error(error);
      round.trouble = error.message;
    } finally {
      round.busy = false;
    }
    if (round.more) {
      round.more = false;
      attempt(round);
    }
    const said = [...new Set(rounds.map((one) => one.trouble).filter(Boolean))];
    renew(trouble, said, () => said.map((text) => notice(text, "bad")));
  }
  return {
    signal: given.signal,
    // Does it now and then every so many milliseconds (0: once).
    every(milliseconds, does) {
      const round = { does, trouble: "" };
      rounds.push(round);
      attempt(round);
      if (!milliseconds) return () => attempt(round);
      const timer = setInterval(() => document.hidden || attempt(round), milliseconds);
      given.signal.addEventListener("abort", () => clearInterval(timer));
      return () => attempt(round);
    },
    // Called with every event of the crawl.
    hear(listener) {
      hearers.add(listener);
      if (live.crawl) listener();
    },
    heard: () => live.crawl && hearers.forEach((listener) => listener()),
    again: () => rounds.forEach(attempt),
    close: () => given.abort(),
  };
}

function refreshSoon() {
  open?.again();
}

function show() {
  open?.close();
  const { name, about, parameters } = placeOf(location.hash);
  const [label, make, under = name] = VIEWS[name];
  const main = document.getElementById("main");
  const trouble = el("div", { role: "alert" });
  open = makeContext(trouble);
  const title = about ? plain(about) : label;
  const node = make(parameters, open, about);
  main.replaceChildren(el("h1", { cls: name === "crawl" ? "unseen" : "", tabindex: "-1" }, about ? [`${label} `, el("bdi", { cls: "foreign" }, title)] : title), trouble, node);
  for (const one of document.querySelectorAll("#views a")) {
    if (one.dataset.view === under) one.setAttribute("aria-current", "page");
    else one.removeAttribute("aria-current");
  }
  document.title = `${title} · ${live.crawl?.crawl ? plain(live.crawl.crawl) : DEFAULT_TITLE}`;
}

// What all views show: the crawl's name, its state, whether the figures are fresh; and what has happened since the last event, aloud.
function frame(before) {
  const { crawl } = live;
  const state = crawl ? (crawl.paused && crawl.state === "running" ? "paused" : crawl.state) : "";
  const name = crawl ? plain(crawl.crawl ?? "no crawl") : "…";
  say(document.getElementById("name"), name).title = name;
  renew(document.getElementById("state"), state, () => (state ? chip(state) : []));
  const fresh = document.getElementById("fresh");
  fresh.className = live.connected ? (live.trouble ? "warn" : "good") : "bad";
  say(fresh, live.connected ? (live.trouble ? "no figures" : "live") : "not connected");
  fresh.title = live.trouble || (live.about?.shown ? `from ${live.about.shown}` : "");
  if (crawl && before && before !== crawl) {
    const last = before.events.length ? before.events[before.events.length - 1].id : -1;
    crawl.events.filter((event) => event.id > last).slice(-3).forEach((event) => announce(event.text, tone(event.what)));
  }
  open?.heard();
}

async function begin() {
  token.load();
  const nav = document.getElementById("views");
  for (const [name, [label, , under]] of Object.entries(VIEWS)) if (!under) nav.append(el("a", { href: address(name), "data-view": name }, label));
  document.getElementById("authority").addEventListener("click", pressAuthority);
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.querySelector("#main h1").focus();
  });
  tellAuthority();
  live.listeners.add(frame);
  listen();
  for (;;) {
    try {
      live.about = await ask("about");
      break;
    } catch (error) {
      live.trouble = error.message;
      frame();
      if (error.status === 401) await askToken();
      else await new Promise((resolve) => setTimeout(resolve, RETRY_EVERY));
    }
  }
  tellAuthority();
  window.addEventListener("hashchange", () => {
    token.load();
    tellAuthority();
    show();
    document.querySelector("#main h1").focus({ preventScroll: false });
    window.scrollTo(0, 0);
  });
  show();
  setInterval(retell, 1000);
  document.addEventListener("visibilitychange", () => document.hidden || refreshSoon());
}

begin();
