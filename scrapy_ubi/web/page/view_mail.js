// Mail: what waits in the agents' inboxes, letter by letter, and what was set aside.
// Rules: a letter shows its first lines; the rest is folded away, and made only when it is opened.

const LETTERS_SHOWN = 10;
const BOXES_SHOWN = 20;
const LINES_SHOWN = 12;

function mailView(parameters, context) {
  const state = { agent: parameters.get("agent") ?? "", dead: parameters.get("dead") === "1", offset: 0 };
  const choose = (what) => {
    Object.assign(state, what);
    history.replaceState(null, "", address("mail", "", { agent: state.agent, dead: state.dead ? 1 : "" }));
    draw();
    read();
  };
  const shows = (row, dead) => state.agent === row.agent && state.dead === dead;
  const cell = (row, number, dead) => button(count(number), () => choose({ agent: row.agent, dead }), { cls: "choice num", "aria-pressed": String(shows(row, dead)), "aria-label": `${count(number)} ${dead ? "dead letters" : "letters"} of ${plain(row.agent)}` });
  const boxes = table({
    caption: "Inboxes", key: (row) => row.agent, empty: "No agents.", cls: "fit",
    columns: [
      linked("Agent", "agent", "agent"),
      stated,
      { label: "Letters", num: true, of: (row) => [row.inbox, shows(row, false)], node: (row) => cell(row, row.inbox, false) },
      { label: "Dead", num: true, of: (row) => [row.dead_letters, shows(row, true)], node: (row) => cell(row, row.dead_letters, true) },
    ],
  });
  const pages = pager((offset) => ((state.offset = offset), draw()), BOXES_SHOWN, "inboxes");
  const title = el("h2", {});
  const letters = el("div", { "aria-live": "polite" });

  function draw() {
    if (!live.crawl) return;
    const rows = sorted(live.crawl.agents, (row) => 1e15 - row.inbox - 1e6 * row.dead_letters);
    if (!state.agent && rows.length) Object.assign(state, { agent: rows[0].agent, dead: !rows[0].inbox && rows[0].dead_letters > 0 }) && read();
    boxes.set(rows.slice(state.offset, state.offset + BOXES_SHOWN));
    pages.set(state.offset, Math.min(BOXES_SHOWN, rows.length - state.offset), rows.length);
  }
  const read = context.every(5000, async () => {
    const { agent, dead } = state;
    if (!agent) return;
    const box = await ask(dead ? "dead" : "inbox", { agent, limit: LETTERS_SHOWN }, context.signal);
    if (agent !== state.agent || dead !== state.dead) return;
    if (letters.querySelector("details[open]") && letters.dataset.whose === `${dead} ${agent}`) return; // somebody reads
    letters.dataset.whose = `${dead} ${agent}`;
    say(title, `${dead ? "Dead letters" : "Inbox"} of ${plain(agent)}`);
    renew(letters, [dead, box], () => (dead ? deadLetters(box) : waitingLetters(box)));
  });
  context.hear(draw);
  return el("div", { cls: "split left" }, card("Inboxes", boxes.node, pages.node), el("section", { cls: "card" }, title, letters));
}

function lettersHead(box, shown, what) {
  if (!box.total) return vacant(`No ${what}.`);
  return quiet(`${many(box.total, what)}${shown < box.total ? `; the first ${count(shown)} are shown` : ""}.`);
}

function waitingLetters(box) {
  return [lettersHead(box, box.letters.length, "letter"), ...box.letters.map((letter) => el("article", { cls: "letter" },
    el("h3", {}, letter.lane === "state" ? "Copies and handovers" : letter.lane === "discovery" ? "URLs found" : plain(letter.lane || "Letter"), " from ", letter.from ? link(letter.from, "agent", letter.from) : "nobody known"),
    quiet(`${many(letter.records ?? 0, "record")}, ${size(letter.size)}, number ${letter.seq}, `, when(letter.time)),
    letter.unreadable ? notice(`Unreadable: ${letter.unreadable}`, "bad") : null,
    letter.unreadable && letter.head ? el("pre", {}, plain(letter.head)) : null,
    ...(letter.deltas ?? []).slice(0, 3).map(deltaLines),
    (letter.deltas ?? []).length > 3 ? folded(`${many(letter.deltas.length - 3, "more host")}`, () => letter.deltas.slice(3, 60).map(deltaLines)) : null))];
}

// What one letter says of a host.
function deltaLines(delta) {
  const said = [delta.discovered.length && many(delta.discovered.length, "URL"), delta.done.length && `${count(delta.done.length)} done`, delta.redo.length && `${count(delta.redo.length)} to follow again`,
    delta.notes && "notes", delta.offer && `offer: knows ${count(delta.offer.known)}, done ${count(delta.offer.done)}`].filter(Boolean).join(", ");
  const line = (entry) => el("li", {}, link(entry.url, "url", entry.url), small(`depth ${entry.depth}`));
  return el("div", { cls: "delta" }, link(delta.host, "host", delta.host), small(said),
    el("ul", { cls: "lines" }, delta.discovered.slice(0, 4).map(line)),
    delta.discovered.length > 4 ? folded(many(delta.discovered.length - 4, "more URL"), () => el("ul", { cls: "lines" }, delta.discovered.slice(4, 4 + 5 * LINES_SHOWN).map(line))) : null);
}

function deadLetters(box) {
  return [lettersHead(box, box.dead.length, "dead letter"), ...box.dead.map((letter) => el("article", { cls: "letter" },
    el("h3", {}, plain(letter.reason)),
    quiet("from ", letter.sender ? link(letter.sender, "agent", letter.sender) : "an unknown sender", `, ${size(letter.size)}, `, isNumber(letter.time) ? when(letter.time) : plain(letter.id)),
    letter.head ? el("pre", {}, plain(letter.head)) : null))];
}

function folded(summary, make) {
  const node = el("details", {}, el("summary", {}, summary));
  node.addEventListener("toggle", () => node.open && node.children.length === 1 && node.append(...[make()].flat()), { once: true });
  return node;
}
