// What failed and why, by reason and one by one, with requeue; and where a URL is.
// Rules: what is chosen stands in the address, so that it can be sent to somebody; requeue means exactly what is chosen.

const FAILED_SHOWN = 50;

const FAILURE_WORDS = [
  [/^robots\/unreachable/, "its host's robots.txt could not be read"], [/^robots/, "robots.txt forbids it"],
  [/^host\/dead/, "its host did not answer, again and again"], [/^host\/busy/, "its host asked to come back later, again and again"],
  [/^host\/failing/, "its host answered with errors only"], [/^http\/4/, "the server says there is no such page for us"], [/^http\/5/, "the server failed, after all retries"],
  [/^http/, "an error status, after all retries"], [/^redirects/, "too many redirects"], [/^load/, "its load took too long"], [/^limit/, "beyond a limit of its host"],
  [/^exception\/.*Timeout/, "the download took too long, after all retries"], [/^exception\/.*Resolve/, "its name has no address"],
  [/^exception/, "the download failed, after all retries"], [/^callback/, "the spider's callback raised this"],
  [/^ignored/, "a middleware ignored it"], [/^codec/, "the request could not travel whole"],
];

function reasonWords(reason) {
  return FAILURE_WORDS.find(([pattern]) => pattern.test(reason))?.[1] ?? "";
}

function failuresView(parameters, context) {
  const chosen = {};
  for (const name of ["reason", "host", "url"]) chosen[name] = parameters.get(name) ?? "";
  const form = el("form", { cls: "row above" },
    field("Reason", "reason", { value: chosen.reason, placeholder: "http/404, or http" }), field("Host", "host", { value: chosen.host, placeholder: "shop.example" }),
    field("URL", "url", { value: chosen.url, type: "text", placeholder: "http://…" }), el("button", { cls: "primary" }, "Show"),
    button("Clear", () => change({ reason: "", host: "", url: "" }), { cls: "quiet" }));
  const reasons = el("div", { cls: "reasons" });
  const head = headline();
  const again = verb("Requeue these", () => (answer?.total ? verbs.requeue(given(), answer.total) : null));
  again.hidden = true;
  const missing = el("div", {});
  const rows = failedTable();
  let answer = null;
  const given = () => Object.fromEntries(Object.entries(chosen).filter(([, value]) => value));

  function change(what) {
    Object.assign(chosen, what);
    for (const name of Object.keys(chosen)) form.elements[name].value = chosen[name];
    history.replaceState(null, "", address("failures", "", chosen));
    refresh();
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    change({ reason: form.elements.reason.value.trim(), host: form.elements.host.value.trim(), url: form.elements.url.value.trim() });
  });
  const refresh = context.every(10000, async () => {
    answer = await ask("failed", { ...chosen, limit: FAILED_SHOWN }, context.signal);
    const some = Object.keys(given()).length > 0;
    say(head, answer.total ? `${many(answer.total, "URL")} failed permanently${some ? " and are chosen here" : ""}.` : some ? "No failure is like this." : "Nothing has failed.");
    again.hidden = !answer.total;
    say(again, some ? "Requeue these" : "Requeue all");
    renew(reasons, [answer.reasons, chosen.reason], () => reasonBars(answer, chosen, change));
    renew(missing, answer.missing, () => missingNote(answer));
    rows.set(answer.failed);
  });
  return div(card(null, form, missing, el("div", { cls: "row between" }, head, again)),
    el("div", { cls: "split left" }, card("Reasons", reasons), card(`The newest, at most ${FAILED_SHOWN}`, rows.node)));
}

function reasonBars(answer, chosen, change) {
  const all = Object.entries(answer.reasons);
  if (!all.length) return vacant("No reasons.");
  const most = Math.max(...all.map(([, number]) => number));
  return all.slice(0, 30).map(([reason, number]) => el("div", { cls: "reason" },
    button([el("bdi", { cls: "foreign" }, plain(reason)), el("span", { cls: "num" }, count(number)), bar(number, most, `${count(number)} of ${count(answer.total)}`), small(reasonWords(reason))],
      () => change({ reason: chosen.reason === reason ? "" : reason }), { cls: "choice", "aria-pressed": String(chosen.reason === reason), title: "Show these only" }),
    verb("Requeue", () => verbs.requeue({ reason, ...(chosen.host ? { host: chosen.host } : {}) }, number), "small")));
}

function failedTable() {
  return table({
    caption: "Failed URLs, the newest first", key: (row) => `${row.agent} ${row.key} ${row.host}`, empty: "Nothing to show.", cls: "failed",
    columns: [
      linked("URL", "url", "url", { cls: "wide" }),
      { label: "Reason", of: (row) => row.reason, cls: "cause", node: (row) => div(foreign(row.reason), div(small(reasonWords(row.reason)))) },
      { label: "When", num: true, of: (row) => row.when, node: (row) => when(row.when) },
    ],
  });
}

const WHERE_WORDS = {
  unknown: () => "No agent has met this URL.",
  filtered: (row) => `It would be dropped when it is found, by the filter ${plain(row.filter ?? "")}.`,
  sent: (row) => `On its way from ${plain(row.agent)}${row.to ? ` to ${plain(row.to)}` : ""}, which has not acknowledged it yet.`,
  queued: (row) => `It waits at ${plain(row.agent)}${isNumber(row.before) ? (row.before ? `; ${count(row.before)} of its host come before it` : "; it is the next of its host") : ""}.`,
  "in flight": (row) => `It is being fetched by ${plain(row.agent)}.`,
  done: (row) => `Fetched${row.status ? ` with status ${row.status}` : ""}, by ${plain(row.agent)}.`,
  failed: (row) => `It failed at ${plain(row.agent)}: ${plain(row.reason)}${reasonWords(row.reason ?? "") ? `, ${reasonWords(row.reason)}` : ""}.`,
};

function urlView(parameters, context, about) {
  const input = field("URL", "url", { type: "text", value: about, required: true, placeholder: "http://shop.example/page" });
  const form = el("form", { cls: "row above" }, input, el("button", { cls: "primary" }, "Where is it?"));
  const result = el("div", { "aria-live": "polite" });
  const doing = inLine();
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const to = address("url", form.elements.url.value.trim());
    if (to === location.hash) context.again();
    else location.hash = to;
  });
  if (about) {
    context.every(5000, async () => {
      const answer = await ask("url", { url: about }, context.signal);
      renew(result, answer, () => urlCards(answer));
      const { where, url } = answer;
      renew(doing, [where, url], () => (where === "failed" ? verb("Requeue it", () => verbs.requeue({ url }, 1)) : where === "unknown" ? verb("Seed it", () => verbs.seed([url], {})) : null));
    });
  }
  return div(card(null, form, about ? null : quiet("It is found however it is spelled: the key is made as the scheduler makes it.")), result, doing);
}

function urlCards(answer) {
  const { where } = answer;
  const told = (WHERE_WORDS[where] ?? (() => `It is ${plain(where)}.`))(answer);
  return [
    missingNote(answer),
    el("div", { cls: "split" },
      card(null, headline(chip(where), ` ${told}`),
        facts([
          ["URL", foreign(answer.url)], answer.host ? ["Host", link(answer.host, "host", answer.host)] : null,
          answer.owner ? ["Owner of its host", link(answer.owner, "agent", answer.owner)] : null,
          answer.successors?.length ? ["Keep a copy", listOf(answer.successors, "agent")] : null,
          isNumber(answer.depth) ? ["Depth", count(answer.depth)] : null, isNumber(answer.priority) ? ["Priority", String(answer.priority)] : null,
          answer.when ? ["When", when(answer.when)] : null, answer.key ? ["Key", code(answer.key)] : null,
        ])),
      answer.agents?.length ? card("What agents say", el("ul", { cls: "lines" }, answer.agents.map((row) => el("li", {}, link(row.agent, "agent", row.agent), " ", chip(row.where, row.role === "copy" ? " (copy)" : ""),
        small(plain([row.reason, row.state ? `the host is ${row.state}` : ""].filter(Boolean).join("; "))))))) : null),
  ];
}
