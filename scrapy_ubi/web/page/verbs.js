// What people do: a verb of `scrapy ubi`, asked back where it matters, sent, and its answer said. Rules: every change goes through `act`;
// nothing is sent without the token; what a button does is also shown as the command that does the same.

function tellAuthority() {
  const can = Boolean(token.get()) && live.about?.changes !== false;
  document.body.classList.toggle("read-only", !can);
  const shown = document.getElementById("authority");
  shown.replaceChildren(can ? "Changes allowed" : "Read-only", el("span", {}, can ? ": forget the token" : ": enter the token"));
  shown.title = can ? "This tab may make changes. Press to make it read-only" : "With the token this tab may make changes";
}

// Says what has happened, to eyes and to screen readers. Errors stay longer.
function announce(text, cls = "") {
  const region = document.getElementById(cls === "bad" ? "alerts" : "said");
  const line = el("p", { cls: `toast ${cls}`, title: "Press to close", onclick: () => line.remove() }, plain(text));
  region.append(line);
  while (region.children.length > 3) region.firstChild.remove();
  setTimeout(() => line.remove(), cls === "bad" ? 15000 : 7000);
}

// A question in a dialog: resolves to what `read` gives when it is confirmed, else to null. `check(form)` says why it cannot be ("": it can):
// then the dialog stays, with that sentence and what was typed.
function dialog(title, content, confirm, { danger = false, read = () => true, check = null } = {}) {
  return new Promise((resolve) => {
    const wrong = el("p", { cls: "notice bad", role: "alert", hidden: true });
    const sends = confirm && el("button", { value: "yes", cls: danger ? "danger" : "primary" }, confirm);
    const form = el("form", { method: "dialog" },
      el("h2", {}, title), content, wrong,
      el("div", { cls: "row end" },
        button(confirm ? "Cancel" : "Close", () => box.close("")),
        sends));
    const box = el("dialog", { "aria-label": title }, form);
    if (check) form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (sends.hasAttribute("aria-busy")) return;
      sends.setAttribute("aria-busy", "true");
      wrong.hidden = true;
      const why = await check(form);
      sends.removeAttribute("aria-busy");
      if (!box.open) return;
      if (!why) return box.close("yes");
      wrong.hidden = false;
      say(wrong, why);
      form.querySelector("input").select();
    });
    box.addEventListener("close", () => {
      const answer = box.returnValue === "yes" ? read(form) : null;
      box.remove();
      resolve(answer);
    });
    document.body.append(box);
    box.showModal();
  });
}

let asking = null; // the question that is open

// Asks for the token, once at a time; whether it was given.
function askToken() {
  asking ??= askForToken().finally(() => (asking = null));
  return asking;
}

async function askForToken() {
  if (live.about && !live.about.changes && !live.about.token_to_read) {
    await dialog("This page is read-only", el("div", {},
      el("p", {}, "Its server was started without a token, so nothing can be changed from here."),
      el("p", {}, "Start it with one, or use the commands of ", code("scrapy ubi"), "."),
      el("pre", {}, "scrapy ubi web --token-file FILE")), "");
    return false;
  }
  const input = el("input", { type: "password", name: "token", autocomplete: "off", required: true, autofocus: true });
  const typed = await dialog("Enter the token", el("div", {},
    el("p", {}, "With it this tab may drain, pause, requeue, seed and set. It is kept until the tab is closed."),
    el("label", { cls: "field" }, el("span", {}, "Token"), input)), "Allow changes", { read: () => input.value.trim(), check: () => whyRefused(input.value.trim()) });
  if (!typed) return false;
  token.set(typed);
  tellAuthority();
  announce("Changes are allowed in this tab.");
  return true;
}

// Why the server does not take this token; '' when it does.
async function whyRefused(typed) {
  if (!/^[\x21-\x7e]+$/.test(typed)) return "This is not the token."; // no header can carry it
  try {
    await tell("token", {}, typed);
  } catch (error) {
    return error.status === 401 ? "This is not the token." : error.message;
  }
  return "";
}

async function pressAuthority() {
  if (!token.get()) return askToken();
  token.set("");
  tellAuthority();
  announce("The token is forgotten: this tab is read-only.");
  return false;
}

function command(...words) {
  const quoted = words.filter((word) => word !== "").map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`));
  return ["scrapy ubi", ...quoted].join(" ");
}

// One change. `of`: {verb, body, command, question (a sentence: ask back), confirm (its button), danger, said (answer -> sentence)}.
// True when it is done.
async function act(of) {
  if (!token.get() && !(await askToken())) return false;
  if (of.question) {
    const content = div(el("p", {}, of.question), el("pre", { title: "The command that does the same" }, plain(of.command)));
    if (!(await dialog(of.title, content, of.confirm, { danger: of.danger }))) return false;
  }
  try {
    const answer = await tell(of.verb, of.body);
    announce(of.said(answer));
    if (answer?.complaint && of.body.host) announce(answer.complaint, "bad");
    refreshSoon();
    return true;
  } catch (error) {
    if (error.status === 401) token.set("");
    tellAuthority();
    announce(error.message, "bad");
    return false;
  }
}

// A button of a verb; `make` gives what `act` takes, or null for nothing to do.
function verb(label, make, cls = "") {
  return button(label, async (event) => {
    const pressed = event.currentTarget;
    const of = make();
    if (!of || pressed.getAttribute("aria-busy")) return;
    pressed.setAttribute("aria-busy", "true");
    await act(of);
    pressed.removeAttribute("aria-busy");
  }, { cls: `verb ${cls}` });
}

function behind(answer, done) {
  const late = answer?.behind ?? [];
  return late.length ? `${done}; ${many(late.length, "agent has", "agents have")} not heard it yet: ${late.slice(0, 3).join(", ")}.` : `${done}; all agents have heard it.`;
}

function seedsSaid(answer) {
  const said = {};
  for (const one of answer.answers ?? []) said[one.said] = (said[one.said] ?? 0) + 1;
  const words = Object.entries(said).map(([word, number]) => `${word} ${count(number)}`);
  if (answer.unanswered) words.push(`${count(answer.unanswered)} not answered yet`);
  const refused = (answer.answers ?? []).find((one) => one.said === "REFUSED");
  return `${many(answer.sent, "URL")} sent: ${words.join(", ") || "no answer yet"}.${refused ? ` ${refused.why}` : ""}`;
}

const verbs = {
  drain: (agent) => ({
    verb: "drain", body: { agent, force: false }, command: command("drain", agent), title: `Drain ${plain(agent)}?`, confirm: "Drain", danger: true,
    question: "It fetches nothing new, ends its loads, hands its hosts over to the others, and leaves.",
    said: () => `${plain(agent)} is asked to leave.`,
  }),
  pause: (host = "") => ({
    verb: "pause", body: host ? { host } : {}, command: command("pause", ...(host ? ["--host", host] : [])),
    title: host ? `Pause ${plain(host)}?` : "Pause the crawl?", confirm: "Pause",
    question: "No page is requested from now on; loads under way end. It stays so until it is resumed, also when agents start again.",
    said: (answer) => behind(answer, host ? `${plain(host)} is paused` : "The crawl is paused"),
  }),
  resume: (host = "") => ({
    verb: "resume", body: host ? { host } : {}, command: command("resume", ...(host ? ["--host", host] : [])),
    said: (answer) => behind(answer, host ? `${plain(host)} goes on` : "The crawl goes on"),
  }),
  finish: () => ({
    verb: "finish", body: {}, command: command("finish"), title: "Finish the crawl?", confirm: "Finish",
    question: "A crawl that waits for seeds ends when it is empty. Any other crawl does so anyway.",
    said: (answer) => behind(answer, "The crawl is asked to end when it is empty"),
  }),
  requeue: (chosen, number) => ({
    verb: "requeue", body: Object.keys(chosen).length ? chosen : { all: true },
    command: command("requeue", ...(Object.keys(chosen).length ? Object.entries(chosen).flatMap(([name, value]) => [`--${name}`, value]) : ["--all"])),
    title: "Fetch these again?", confirm: "Requeue",
    question: `${isNumber(number) ? many(number, "failed request") : "The failed requests"} ${Object.keys(chosen).length ? "chosen here " : ""}will be fetched again, once each.`,
    said: (answer) => `${many(answer.requeued ?? 0, "request")} requeued${answer.unfit ? `, ${count(answer.unfit)} could not be taken in` : ""}.`,
  }),
  set: (name, value, host = "") => ({
    verb: "set", body: { values: { [name]: value }, ...(host ? { host } : {}) }, command: command("set", `${name}=${value}`, ...(host ? ["--host", host] : [])),
    title: `Set ${name}?`, confirm: "Set", question: `${name} = ${value}, ${host ? `for ${plain(host)} only` : "for the whole crawl"}, at every agent, until it is taken back.`,
    said: (answer) => behind(answer, `${name} = ${value}${host ? ` for ${plain(host)}` : ""}`),
  }),
  unset: (name, host = "") => ({
    verb: "unset", body: { names: [name], ...(host ? { host } : {}) }, command: command("unset", name, ...(host ? ["--host", host] : [])),
    title: `Take back ${name}?`, confirm: "Unset", question: `The setting is again as each agent was started with${host ? `, for ${plain(host)}` : ""}.`,
    said: (answer) => behind(answer, `${name} is taken back`),
  }),
  seed: (urls, more) => ({
    verb: "seeds", body: { urls, wait: true, ...more }, command: command("seed", ...urls.filter(Boolean).slice(0, 3)) + (urls.length > 3 ? " …" : ""),
    said: (answer) => seedsSaid(answer),
  }),
};
