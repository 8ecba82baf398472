// Hosts: all of them, a page at a time, and one by itself with what can be done about it.
// Rules: agents look through all of their hosts for an answer, so the list asks when a person does; a page back asks with the place it had.

const HOSTS_SHOWN = 50;
const HOST_EVERY = 5000; // milliseconds
const HOST_ORDERS = { slowest: "needs longest", queued: "longest queue", done: "most done", failed: "most failed", next: "next one due", host: "name" };

function hostsView(parameters, context) {
  const wanted = parameters.get("sort");
  const chosen = { sort: HOST_ORDERS[wanted] ? wanted : "slowest", search: parameters.get("search") ?? "", agent: parameters.get("agent") ?? "" };
  const places = [""]; // the `after` of each page up to this one
  let answer = null;
  const rows = hostsTable((sort) => change({ sort }));
  const told = el("span", { cls: "told" });
  const back = button("Previous", () => (places.pop(), refresh()));
  const on = button("Next", () => (places.push(answer.after), refresh()));
  const missing = el("div", {});
  const search = field("Part of the name", "search", { type: "search", value: chosen.search, placeholder: "shop.example" });
  const sort = field("Order", "sort", { options: Object.entries(HOST_ORDERS), value: chosen.sort });
  const form = el("form", { cls: "row above" }, search, sort, field("Agent", "agent", { value: chosen.agent, placeholder: "all" }), el("button", { cls: "primary" }, "Show"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    change({ search: form.elements.search.value.trim(), sort: form.elements.sort.value, agent: form.elements.agent.value.trim() });
  });
  form.elements.sort.addEventListener("change", () => form.requestSubmit());

  function change(what) {
    Object.assign(chosen, what);
    places.length = 1;
    form.elements.sort.value = chosen.sort;
    history.replaceState(null, "", address("hosts", "", chosen));
    refresh();
  }
  const refresh = context.every(0, async () => {
    rows.node.classList.add("busy");
    try {
      answer = await ask("hosts", { ...chosen, after: places[places.length - 1], limit: HOSTS_SHOWN }, context.signal);
    } finally {
      rows.node.classList.remove("busy");
    }
    rows.set(answer.hosts, chosen.sort);
    const first = (places.length - 1) * HOSTS_SHOWN;
    say(told, answer.hosts.length ? `${count(first + 1)}–${count(first + answer.hosts.length)} of ${many(answer.total, "host")}` : "No host");
    back.disabled = places.length === 1;
    on.disabled = !answer.after;
    renew(missing, answer.missing, () => missingNote(answer));
  });
  return card(null, form, missing, rows.node,
    el("nav", { cls: "pager", "aria-label": "Pages of hosts" }, told, el("span", { cls: "row" }, button("Refresh", refresh), back, on)));
}

function missingNote(answer) {
  const silent = Object.entries(answer.missing ?? {});
  if (!silent.length) return [];
  return notice(`What ${many(silent.length, "agent knows", "agents know")} is missing: ${silent.slice(0, 5).map(([agent, why]) => `${agent} (${why})`).join(", ")}`, "warn");
}

function hostsTable(onsort) {
  return table({
    caption: "Hosts", key: (row) => `${row.host} ${row.agent}`, onsort, empty: "No host is known by this name.", cls: "hosts",
    columns: [
      { label: "Host", sort: "host", up: true, of: (row) => [row.host, row.shards], node: (row) => [link(row.host, "host", row.host), row.shards ? small(` ${count(row.shards)} shards`) : null] },
      stated,
      counted("Queue", "queued", { sort: "queued" }),
      counted("Done", "done", { sort: "done" }),
      counted("Failed", "failed", { sort: "failed" }),
      { label: "Next", num: true, sort: "next", up: true, hint: "How long until it may be fetched again", text: (row) => (row.next === null ? NONE : row.next ? span(row.next) : "now") },
      { label: "Delay", num: true, hint: "Between two requests", text: (row) => (isNumber(row.delay) ? span(row.delay) : NONE) },
      { label: "Needs", num: true, sort: "slowest", hint: "At least, for what waits: queue × (delay + load) ÷ loads at once, and the present pause", text: (row) => (needs(row) ? span(needs(row)) : NONE) },
      { label: "Agent", of: (row) => row.agent, node: (row) => (row.shards ? plain(row.agent) : link(row.agent, "agent", row.agent)) },
      { label: "Last error", cls: "why", of: (row) => row.error, node: (row) => row.error && foreign(row.error) },
    ],
  });
}

function hostView(parameters, context, host) {
  // What is pressed stands apart from figures that change, so that no button is replaced under a finger.
  const [said, doing, more] = [div(), div(), div()];
  let settings = null;
  const refresh = context.every(HOST_EVERY, async () => {
    const answer = await ask("host", { host, limit: 20 }, context.signal);
    const rows = answer.agents;
    const row = rows.find((one) => one.role !== "copy") ?? rows[0];
    renew(said, answer, () => hostCards(answer, row));
    if (!row) return;
    const given = (settings?.changed ?? []).filter((one) => one.host === answer.host);
    renew(more, [row.notes, row.failures], () => [robotsCard(row), hostFailures(row, answer.host)]);
    if (doing.contains(document.activeElement) && document.activeElement.matches("input")) return; // somebody types
    renew(doing, [given, row.delay, row.failed], () => hostVerbs(answer.host, row, given));
  });
  context.every(0, async () => {
    settings = await ask("settings", {}, context.signal);
    refresh();
  });
  return div(el("div", { cls: "split" }, said, div(doing, more)));
}

function hostCards(answer, main) {
  if (!answer.agents.length) return [missingNote(answer), card(null, notice("No agent knows this host."), el("p", {}, el("a", { href: address("hosts") }, "All hosts")))];
  const rows = answer.agents;
  const owned = rows.filter((row) => row.role !== "copy");
  return [missingNote(answer), card("Now", hostWords(main), hostFacts(main, owned, rows, answer)), queueCard(main)];
}

// One sentence: what holds this host up.
function hostWords(row) {
  const least = needs(row);
  const wait = least ? ` That takes ${span(least)} at least.` : "";
  const why = { busy: "One of its pages is being fetched.", idle: "Nothing of it waits.", waiting: "It waits for its turn.", held: "It is still being handed over.", resting: "Its queue rests on disk until its turn.", excluded: "It does not answer, and is left alone for a while.", ended: "It was given up: what waits of it fails." };
  const rate = row.state.startsWith("rate: ") && `It waits for a rate of the group: ${row.state.slice(6)}.`;
  const state = rate || (row.state.startsWith("postponed") ? `It is left alone: ${row.state.slice(11) || "for a while"}.` : (why[row.state] ?? ""));
  return headline(chip(row.state), ` ${many(row.queued, "URL")} wait. ${plain(state)}${wait}`);
}

function hostFacts(row, owned, rows, answer) {
  const total = (name) => sum(owned.length ? owned.map((one) => one[name]) : [row[name]]);
  const { until: rest, end, delay, health } = row.notes ?? {};
  const askers = Object.entries(delay ?? {});
  return facts([
    ["Owner", answer.owner ? link(answer.owner, "agent", answer.owner) : NONE],
    ["Copies", listOf(rows.filter((one) => one.role === "copy").map((one) => one.agent), "agent") ?? "none"],
    ["Queue", count(total("queued"))], ["Done", count(total("done"))], ["Failed", count(total("failed"))],
    ["Next request", row.next === null ? NONE : row.next ? `in ${span(row.next)}` : "now"],
    ["Delay", isNumber(row.delay) ? span(row.delay) : NONE],
    ["Loads at once", row.loads || "1"],
    askers.length ? ["Delay asked for by", askers.map(([source, seconds]) => `${plain(source)} ${span(seconds)}`).join(", ")] : null,
    health ? ["Did not answer", `${count(health[0])} in a row`] : null,
    rest ? ["Left alone until", [when(rest[0]), ` (${plain(rest[1])})`]] : null,
    end ? ["Given up", foreign(end)] : null,
    row.error ? ["Last error", foreign(row.error)] : null,
    row.learned ? ["Learned", foreign(row.learned)] : null,
  ]);
}

function hostVerbs(host, row, given) {
  const name = "UBI_HOST_DELAY";
  const input = el("input", { type: "number", name: "delay", min: 0, step: "any", value: isNumber(row.delay) ? String(row.delay) : "", "aria-label": "Delay in seconds" });
  const paused = given.some((one) => one.name === "pause");
  const set = given.filter((one) => one.name !== "pause");
  const delay = isNumber(row.delay) && row.delay > 0 ? row.delay : 0;
  return card("Change",
    inLine(el("label", { cls: "field" }, el("span", {}, "Delay, seconds"), input), verb("Set", () => (input.value ? verbs.set(name, Number(input.value), host) : null)),
      delay ? verb("Double it", () => verbs.set(name, +(delay * 2).toFixed(3), host)) : null),
    inLine(paused ? verb("Resume this host", () => verbs.resume(host)) : verb("Pause this host", () => verbs.pause(host)),
      row.failed ? verb(`Requeue ${count(row.failed)} failed`, () => verbs.requeue({ host }, row.failed)) : null),
    set.length ? el("ul", { cls: "plain" }, set.map((one) => el("li", { cls: "row" }, code(plain(`${one.name} = ${one.value}`)), small("since ", when(one.when)), verb("Take back", () => verbs.unset(one.name, host), "small")))) : null,
    quiet(el("a", { href: address("settings", "", { host }) }, "Other settings of this host")));
}

// What is remembered of its robots.txt, by authority (policy/robots/record.py has the letters). Notes may have any form.
function robotsCard(row) {
  const records = Object.entries(row.notes?.robots ?? {}).filter(([, said]) => said && typeof said === "object");
  if (!records.length) return card("robots.txt", vacant("Nothing is remembered of it at this agent."));
  return card("robots.txt", records.slice(0, 4).map(([authority, said]) => div(el("p", {}, foreign(authority)), facts([
    ["State", said.g ? "given up" : said.t ? "read" : "not reached yet"], said.t ? ["Read", when(said.t)] : null,
    ["Asks for a delay of", said.d ? span(said.d) : "none"], said.s ? ["Not reached since", when(said.s)] : null,
  ]), said.r ? el("pre", { title: "Its rules, as they travel" }, plain(said.r)) : null)));
}

function queueCard(row) {
  const lines = [...(row.in_flight ?? []).map((one) => ({ ...one, flying: true })), ...(row.queue ?? [])];
  if (!lines.length) return card("Queue", vacant("Nothing waits."));
  return card("Queue, in this order", el("ol", { cls: "lines" }, lines.map((one) => el("li", {}, link(one.url, "url", one.url),
    small(one.flying ? "in flight" : `depth ${one.depth}, priority ${one.priority}`)))));
}

function hostFailures(row, host) {
  if (!row.failures?.length) return null;
  return card("Failed last", el("ol", { cls: "lines" }, row.failures.map((one) => el("li", {}, link(one.url, "url", one.url), small(plain(one.reason), ", ", when(one.when))))),
    el("p", {}, el("a", { href: address("failures", "", { host }) }, "All failures of this host")));
}
