// What came out, and what went in: outputs with duplicates, seeds, and one agent by itself.
// Rules: what lies on other machines is not known here, and the page says so; a command makes files of it.

const ROWS_SHOWN = 50;
const ITEMS_SHOWN = 20;
const URL_KEPT = 500; // characters of a URL in an answer to a seed

function outputsView(parameters, context) {
  const [node, items] = [div(), div()];
  context.every(15000, async () => {
    const answer = await ask("items", { limit: ITEMS_SHOWN }, context.signal);
    renew(items, answer, () => itemsCard(answer));
  });
  context.every(15000, async () => {
    const answer = await ask("outputs", {}, context.signal);
    const { measures } = live.crawl ?? { measures: null };
    renew(node, [answer, measures?.totals.pages], () => outputCards(answer, measures));
  });
  return div(node, items);
}

// As text, whatever pages have brought into them.
function itemsCard({ items, hint }) {
  return card("The last items", hint ? vacant(plain(hint)) : null, el("ol", {}, items.map((one) => el("li", { cls: "letter" }, one.agent ? link(one.agent, "agent", one.agent) : "", " ", small(size(one.bytes), one.cut ? ", cut" : ""), el("pre", { tabindex: 0 }, plain(one.item))))));
}

// Whose outputs are not seen here, and why.
function unseenNote(missing) {
  const all = Object.entries(missing ?? {});
  return all.length ? notice(`Outputs of ${many(all.length, "agent")} are not seen here. ${all.slice(0, 5).map(([agent, why]) => `${agent}: ${why}`).join(" ")}`, "warn") : null;
}

function outputCards(answer, measures) {
  const stores = {};
  for (const row of answer.outputs) {
    const store = (stores[row.store] ??= { store: row.store, parts: 0, open_parts: 0, bytes: 0, pages: 0, agents: new Set() });
    for (const name of ["parts", "open_parts", "bytes"]) store[name] += row[name];
    store.files = store.parts + store.open_parts;
    store.pages = isNumber(row.pages) && isNumber(store.pages) ? store.pages + row.pages : null;
    store.agents.add(row.agent);
  }
  const list = Object.values(stores);
  const total = table({
    caption: "Outputs by store", key: (row) => row.store, cls: "fit", empty: "No store is kept here (UBI_STORES), or nothing is written yet.",
    columns: [
      { label: "What", of: (row) => row.store, node: (row) => el("strong", {}, plain(row.store)) }, { label: "Size", num: true, text: (row) => size(row.bytes) },
      counted("Pages", "pages", { hint: "Pages of which something is kept there" }), counted("Files", "files"),
      counted("Open", "open_parts", { hint: "Of these, still being written" }), { label: "Agents", num: true, text: (row) => count(row.agents.size) },
      { label: "Make one file of it", cls: "wide", of: (row) => row.store, node: (row) => code(collectCommand(row.store)) },
    ],
  });
  total.set(list);
  return [
    card("What came out", headline(outputWords(list, measures)), unseenNote(answer.missing), total.node,
      quiet(answer.looked ? ["Seen on this machine, in ", code(plain(answer.looked)), ". Outputs on other machines are not counted here."] : "Outputs on other machines are not counted here.")),
    el("div", { cls: "pair" }, duplicatesCard(answer.duplicates ?? {}, measures), partsCard(answer.outputs)),
  ];
}

function collectCommand(store) {
  if (store.split("(")[0] === "stream") return command("items", "--follow");
  const file = { items: "items.jsonl", warc: "crawl.warc.gz", links: "links.log", graph: "web", index: "pages.ndjson" }[store.split("(")[0]];
  return file ? command("collect", store.split("(")[0], "-o", file) : command("collect", "--help");
}

function outputWords(list, measures) {
  const pages = measures ? `${many(measures.totals.pages, "page")} fetched, ` : "";
  return list.length ? `${pages}${size(sum(list.map((row) => row.bytes)))} in ${many(sum(list.map((row) => row.files)), "file")} here.` : `${pages || "Nothing fetched, "}no output here.`;
}

function duplicatesCard(said, measures) {
  const joined = Object.entries(said.joined ?? {});
  const noted = Object.entries(measures?.noted ?? {}).filter(([name]) => name.startsWith("duplicates/"));
  return card("Duplicates",
    facts([
      ["Pages fetched twice", isNumber(said.overlap) ? percent(said.overlap, 2) : "not known"],
      ...noted.map(([name, number]) => [`Pages that are ${name.slice(11)} copies`, count(number)]),
      ...joined.map(([step, number]) => [`URLs joined by ${plain(step)}`, count(number)]),
    ]),
    el("ul", {}, Object.entries(said.examples ?? {}).map(([step, pair]) => el("li", {}, small(`${plain(step)}: not fetched, as the second has the same normal form`), [pair].flat(2).slice(0, 2).map((url) => div(foreign(url)))))),
    said.copies?.length ? el("h2", {}, "Copies found last") : null,
    el("ul", {}, (said.copies ?? []).slice(0, 8).map((copy) => el("li", {}, div(link(copy.url, "url", copy.url)), small(copy.kind === "near" ? "differs in few words from" : "has the same bytes as"), div(copy.first ? link(copy.first, "url", copy.first) : "another page")))),
    el("pre", {}, command("collect", "duplicates", "-o", "duplicates.jsonl")));
}

function partsCard(outputs) {
  const rows = table({
    caption: "Outputs by agent", key: (row) => `${row.agent} ${row.store} ${row.run}`, empty: "Nothing.", cls: "fit",
    columns: [
      linked("Agent", "agent", "agent"), { label: "What", text: (row) => plain(row.store) },
      { label: "Size", num: true, text: (row) => size(row.bytes) }, { label: "Files", num: true, text: (row) => count(row.parts + row.open_parts) },
    ],
  });
  rows.set(sorted(outputs, (row) => -row.bytes).slice(0, 30));
  return card("By agent", rows.node, outputs.length > 30 ? quiet(`The 30 largest of ${count(outputs.length)}.`) : null);
}

function seedsView(parameters, context) {
  const form = el("form", {},
    field("URLs, one a line", "urls", { rows: 5, required: true, placeholder: "http://shop.example/\nhttp://news.example/" }),
    inLine(field("Priority, higher comes first", "priority", { type: "number", step: 1, value: "1000" }),
      el("label", { cls: "check" }, el("input", { type: "checkbox", name: "force" }), "fetch them even if they are known")),
    inLine(el("button", { cls: "primary verb" }, "Seed")));
  const urls = () => form.elements.urls.value.trimEnd().split("\n").map((line) => line.trim());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const more = { priority: Number(form.elements.priority.value) || 0, ...(form.elements.force.checked ? { force: true } : {}) };
    if (urls().some(Boolean) && (await act(verbs.seed(urls(), more)))) form.elements.urls.value = "";
  });
  const head = headline();
  const rows = table({
    caption: "Answers to seeds", key: (row) => row.seed, empty: "No seed was answered yet.", cls: "fit",
    columns: [
      { label: "Answer", of: (row) => row.said, node: (row) => chip(row.said) }, { label: "When", of: (row) => row.time, node: (row) => when(row.time) },
      { label: "URL", cls: "wide", of: (row) => [row.url, row.name], node: seedUrl },
      { label: "Why", cls: "wide", of: (row) => row.why, node: (row) => row.why && foreign(row.why) },
    ],
  });
  context.every(3000, async () => {
    const answer = await ask("seeds", { limit: ROWS_SHOWN }, context.signal);
    say(head, answer.waiting ? `${many(answer.waiting, "seed")} wait${answer.waiting === 1 ? "s" : ""} for an agent.` : "No seed waits.");
    rows.set(answer.answers);
  });
  return el("div", { cls: "pair" }, card("Add seeds", form, quiet("A crawl takes them until it is over. Filters do not drop a seed.")), card("What became of them", head, rows.node));
}

// Of agents of before there is no URL; one that is long was cut, and leads nowhere.
function seedUrl({ url, name, seed }) {
  const shown = !url ? code(plain(seed)) : /^https?:/.test(url) && url.length < URL_KEPT ? link(url, "url", url) : foreign(url);
  return [shown, name ? small(` ${plain(name)}`) : null];
}

function agentView(parameters, context, name) {
  const [node, doing, more] = [div(), div(), div()];
  context.hear(() => {
    const row = live.crawl.agents.find((one) => one.agent === name);
    if (!row) renew(node, name, () => card(null, notice("There is no such agent."), el("p", {}, el("a", { href: address("crawl") }, "All agents"))));
    else renew(node, row, () => agentFacts(row));
    renew(doing, row ? drains(row) : null, () => row && card("Change", inLine(drains(row) ? verb("Drain this agent", () => verbs.drain(name)) : vacant("Nothing to do: it does not work, or leaves already."))));
    renew(more, row ?? null, () => row && agentCards(row));
  });
  return el("div", { cls: "split" }, node, div(doing, more));
}

function agentFacts(row) {
  const number = (name, words) => [words, count(row[name])];
  return card(null, headline(chip(row.state), row.working ? ` ${rate(row.pages_per_second)} pages/s; ${many(row.queued, "URL")} wait at ${many(row.hosts, "host")}.` : " It does not take part now."),
    facts([
      ["Share of the ring", row.share === null ? null : shareCell(row, live.crawl.agents)], ["Capacity", row.capacity], number("replicas", "Points on the ring"),
      number("pages", "Pages fetched"), number("done", "URLs done"), number("known", "URLs known"), number("queued", "URLs waiting"), number("in_flight", "In flight"), number("hosts", "Hosts"),
      number("forwarded", "Forwarded to others"), number("outbox", "Not acknowledged yet"), number("failed", "Failed"), ["Pages a second", rate(row.pages_per_second)], ["Has crawled", span(row.seconds)],
    ]));
}

function agentCards(row) {
  return [
    card("Mail", facts([["Letters waiting", el("a", { href: address("mail", "", { agent: row.agent }) }, count(row.inbox))], ["Dead letters", el("a", { href: address("mail", "", { agent: row.agent, dead: 1 }) }, count(row.dead_letters))]])),
    card("Process", facts([
      ["Spider", row.spider && foreign(row.spider)], ["Machine", row.machine && foreign(row.machine)], ["Process", row.pid ? String(row.pid) : null], ["Version", row.version && foreign(row.version)],
      ["Started", row.started ? when(row.started) : null], ["Last seen", isNumber(row.age) ? `${span(row.age)} ago` : null], ["View", row.view ? code(plain(row.view).slice(0, 16)) : null],
      ["Incarnation", row.incarnation ? code(plain(row.incarnation)) : null],
    ]), row.unreadable?.length ? notice(`Unreadable: ${row.unreadable.join("; ")}`, "bad") : null),
    card(null, el("p", {}, el("a", { href: address("hosts", "", { agent: row.agent }) }, "Its hosts"), " · ", el("a", { href: address("ring", "", { agent: row.agent }) }, "Its part of the ring"))),
  ];
}
