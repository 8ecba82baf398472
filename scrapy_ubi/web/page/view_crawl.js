// The crawl at one look: is it nearly done, how fast, who takes part, what has happened.
// Rules: sentences and estimates are the server's; the table holds one page of agents, however many there are.

const AGENTS_SHOWN = 25;
const EVENTS_SHOWN = 14;
const HOUR = 3600; // seconds
const [PACE, QUEUED] = [1, 2]; // in a point of the page: [time, pages a second, queued]
const NEXT_POINT = 2; // seconds between two points that this page makes itself
const AWHILE = 300; // seconds before Redis was back
const SAME = 20; // seconds within which an agent and this server speak of one event

// How near the end is, in the server's words: the first sentence, and what says more, with a link to the host that decides.
function prognosis({ state, remaining }) {
  if (!remaining) return [state === "absent" ? "Redis holds nothing of this crawl." : "Nothing is known of it yet."];
  const [first, ...more] = remaining.sentences.map(plain);
  const name = remaining.host && plain(remaining.host.host);
  const parts = more.join(" ").split(name || "\u0000");
  if (!name || parts.length < 2) return [first, parts];
  return [first, [parts[0], link(remaining.host.host, "host", remaining.host.host), parts.slice(1).join(name)]];
}

// Seconds that a host needs at least, for what waits: its delay, its loads and its present pause.
const needs = (host) => (isNumber(host.needs) && host.needs > 0 ? host.needs : null);

function crawlView(parameters, context) {
  const head = crawlHead();
  const tiles = crawlTiles();
  const speed = chart({ title: "Pages a second", value: (point) => point[PACE], tell: (value) => `${rate(value)}/s`, most: HOUR });
  const queue = chart({ title: "URLs in the queue", value: (point) => point[QUEUED], tell: (value) => short(value), most: HOUR });
  const agents = agentsTable();
  const events = eventsList();
  const node = el("div", { cls: "crawl" }, head.node, tiles.node,
    el("div", { cls: "pair" }, card(null, speed.node), card(null, queue.node)),
    el("div", { cls: "split" }, agents.node, events.node));
  let points = [];

  async function history() {
    const answer = await ask("history", { minutes: 60 }, context.signal);
    const at = ["time", "pages_per_second", "queued"].map((name) => answer.fields.indexOf(name));
    const told = answer.points.map((point) => at.map((index) => point[index]));
    const until = told.length ? told[told.length - 1][0] : -Infinity;
    points = [...told, ...points.filter((point) => point[0] > until)];
    events.before(answer.events ?? []);
    draw();
  }
  function draw() {
    const { crawl } = live;
    if (!crawl) return;
    const last = points[points.length - 1];
    const now = [crawl.time, crawl.measures.pages_per_second, crawl.measures.totals.queued];
    if (crawl.state === "running" && (!last || last[0] + NEXT_POINT <= now[0])) points.push(now); // until the agents are asked again
    const until = crawl.state === "running" || !points.length ? clock() : points[points.length - 1][0];
    speed.set(points, until, now[PACE]);
    queue.set(points, until, now[QUEUED]);
    head.set(crawl, prognosis(crawl));
    tiles.set(crawl);
    agents.draw();
    events.draw();
  }
  context.hear(draw);
  context.every(60000, history); // asks every agent
  return node;
}

function crawlHead() {
  const first = headline();
  const second = quiet();
  const fill = el("span", { cls: "fill" });
  const told = el("span", { cls: "quiet" });
  const idle = div();
  const warnings = el("div", { role: "status", "aria-label": "Warnings" });
  const track = el("div", { cls: "progress", role: "progressbar", "aria-label": "Known URLs that are done", "aria-valuemin": 0, "aria-valuemax": 100 }, fill);
  const turn = verb("Pause the crawl", () => (live.crawl?.paused ? verbs.resume() : verbs.pause()));
  const end = verb("Finish", () => verbs.finish());
  const node = el("section", { cls: "card head", "aria-label": "Progress" },
    el("div", { cls: "words" }, first, second, idle, warnings, track, told),
    el("div", { cls: "row verbs" }, turn, end));

  function set(crawl, sentences) {
    say(first, sentences[0]);
    const more = sentences[1] ?? [];
    second.hidden = !more.length;
    renew(second, more.map((part) => part.textContent ?? part), () => more);
    renew(idle, crawl.idle ?? [], () => (crawl.idle ?? []).map((one) => quiet(plain(one))));
    renew(warnings, crawl.warnings ?? [], () => (crawl.warnings ?? []).map((one) => notice(one)));
    const { totals, seconds } = crawl.measures;
    const share = totals.known ? Math.min(1, totals.unique / totals.known) : 0;
    fill.style.width = `${(100 * share).toFixed(2)}%`;
    track.setAttribute("aria-valuenow", (100 * share).toFixed(1));
    say(told, `${count(totals.unique)} of ${count(totals.known)} known URLs done (${percent(share)}), ${span(seconds)} so far`);
    say(turn, crawl.paused ? "Resume the crawl" : "Pause the crawl");
    turn.hidden = end.hidden = crawl.state !== "running";
  }
  return { node, set };
}

function crawlTiles() {
  const tile = (label, hint, ...path) => {
    const value = el("strong", {});
    const more = el("small", {});
    const inside = [el("span", {}, label), value, more];
    const node = path.length ? el("a", { cls: "tile", href: address(...path), title: hint }, inside) : el("div", { cls: "tile", title: hint }, inside);
    return { node, set: (text, note) => (say(value, text), say(more, note)) };
  };
  const pages = tile("Pages fetched", "Responses, with retries");
  const speed = tile("Pages a second", "Now, all agents together");
  const queue = tile("URLs waiting", "To the hosts, the longest queue first", "hosts");
  const hosts = tile("Hosts", "All hosts known", "hosts", "", { sort: "host" });
  const failed = tile("Failed", "URLs that failed permanently", "failures");
  const mail = tile("Mail waiting", "Letters in Redis, for all agents", "mail");
  const node = el("div", { cls: "tiles" }, [pages, speed, queue, hosts, failed, mail].map((one) => one.node));
  function set(crawl) {
    const { totals, pages_per_second: now, average_pages_per_second: average, failed: reasons } = crawl.measures;
    const lost = sum(Object.values(reasons));
    pages.set(short(totals.pages), `${count(totals.in_flight)} in flight`);
    speed.set(rate(now), `${rate(average)} on average`);
    queue.set(short(totals.queued), `of ${short(totals.known)} known`);
    hosts.set(short(totals.hosts), `at ${many(crawl.agents.filter((row) => row.working).length, "agent")}`);
    failed.set(short(lost), `${percent(totals.done ? lost / totals.done : 0)} of all done`);
    const dead = sum(crawl.agents.map((row) => row.dead_letters));
    mail.set(short(sum(crawl.agents.map((row) => row.inbox))), dead ? many(dead, "dead letter") : "no dead letter");
  }
  return { node, set };
}

// Agents that need somebody come first, whatever they are called; then agent 2 before agent 10.
const ORDERS = {
  name: (row) => (["bad", "warn"].includes(tone(row.state)) ? "0 " : "1 ") + row.agent.replace(/\d+/g, (digits) => digits.padStart(16, "0")),
  state: (row) => ["bad", "warn", "good", "calm"].indexOf(tone(row.state)) + row.state + row.agent,
  share: (row) => -(row.share ?? 0), pages: (row) => -row.pages, speed: (row) => -row.pages_per_second,
  hosts: (row) => -row.hosts, queued: (row) => -row.queued, inbox: (row) => -row.inbox,
};

function sorted(rows, order) {
  const keyed = rows.map((row) => [order(row), row]);
  return keyed.sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0)).map(([, row]) => row);
}

function agentsTable() {
  const chosen = { sort: "name", state: "", search: "", offset: 0 };
  const change = (what) => (Object.assign(chosen, { offset: 0 }, what), draw());
  const rows = table({
    caption: "Agents", key: (row) => row.agent, onsort: (sort) => change({ sort }), empty: "No such agent.", cls: "agents",
    columns: [
      linked("Agent", "agent", "agent", { sort: "name", up: true }),
      { ...stated, sort: "state", up: true },
      { label: "Share", sort: "share", hint: "Of the ring, and so of the hosts; the mark is what its capacity makes fair", cls: "share", of: (row) => [row.share, row.fair], node: (row) => shareCell(row, live.crawl.agents) },
      counted("Pages", "pages", { sort: "pages" }),
      { label: "Pages/s", num: true, sort: "speed", text: (row) => (row.working ? rate(row.pages_per_second) : NONE) },
      counted("Hosts", "hosts", { sort: "hosts" }),
      counted("Queue", "queued", { sort: "queued" }),
      counted("Inbox", "inbox", { sort: "inbox" }),
      { label: "", cls: "act", of: drains, node: (row) => (drains(row) ? verb("Drain", () => verbs.drain(row.agent), "small") : null) },
    ],
  });
  const pages = pager((offset) => change({ offset }), AGENTS_SHOWN, "agents");
  const states = el("div", { cls: "row states", role: "group", "aria-label": "Show agents of one state only" });
  const search = el("input", { type: "search", placeholder: "Find an agent", "aria-label": "Find an agent", oninput: () => change({ search: search.value.trim() }) });
  const node = card("Agents", el("div", { cls: "row above" }, states, search), rows.node, pages.node);

  function draw() {
    const { agents, agents_total: all } = live.crawl;
    const found = agents.filter((row) => (!chosen.state || row.state === chosen.state) && row.agent.includes(chosen.search));
    const shown = sorted(found, ORDERS[chosen.sort]).slice(chosen.offset, chosen.offset + AGENTS_SHOWN);
    rows.set(shown, chosen.sort);
    pages.set(chosen.offset, shown.length, found.length === agents.length ? all : found.length, found.length);
    search.hidden = all <= AGENTS_SHOWN && !chosen.search;
    drawStates(agents);
  }
  function drawStates(agents) {
    const told = {};
    for (const row of agents) told[row.state] = (told[row.state] ?? 0) + 1;
    const pairs = Object.entries(told).sort();
    renew(states, [pairs, chosen.state], () => pairs.map(([state, number]) => button(`${count(number)} ${state}`, () => change({ state: chosen.state === state ? "" : state }), { cls: `chip ${tone(state)}`, "aria-pressed": String(chosen.state === state) })));
  }
  return { node, draw };
}

const drains = (row) => row.working && !["leaving", "silent"].includes(row.state);

// Its share of the ring beside the greatest among `rows`.
function shareCell({ share, fair }, rows) {
  if (!isNumber(share)) return NONE;
  const whole = 1.08 * rows.reduce((most, row) => Math.max(most, row.share ?? 0, row.fair ?? 0), 0);
  return [bar(share, whole, `${percent(share)} of the ring; fair: ${percent(fair)}`, fair), el("span", { cls: "num" }, percent(share))];
}

function eventsList() {
  const list = el("ol", { cls: "events" });
  const nothing = vacant("Nothing has changed since this server has looked.");
  const more = button("Show all", () => ((whole = true), draw()), { cls: "quiet" });
  const node = card("What has happened", list, nothing, more);
  let whole = false;
  let noted = [];
  // What agents have noted of the time before this server looked.
  // A Redis that is started again cuts all agents off: that is one event, of Redis.
  const byRedis = (one) => ["fenced", "unfenced"].includes(one.what) && live.crawl.events.some((other) => other.what === "redis" && one.time > other.time - AWHILE && one.time < other.time + SAME);
  const unseen = (one) => !byRedis(one) && !live.crawl.events.some((other) => other.what === one.what && other.agent === one.agent && Math.abs(other.time - one.time) < SAME);
  function draw() {
    const past = noted.filter(unseen).map((one) => ({ ...one, id: `${one.what} ${one.agent} ${one.time}` }));
    const events = [...past, ...live.crawl.events].sort((one, other) => other.time - one.time);
    const shown = whole ? events : events.slice(0, EVENTS_SHOWN);
    nothing.hidden = Boolean(events.length);
    more.hidden = shown.length === events.length;
    renew(list, shown.map((event) => event.id), () => shown.map(eventLine));
  }
  return { node, draw, before: (list) => (noted = list) };
}

function eventLine(event) {
  return el("li", {}, chip(event.what), el("span", {}, event.agent ? link(event.agent, "agent", event.agent) : "the crawl"), when(event.time), small(plain(event.text)));
}
