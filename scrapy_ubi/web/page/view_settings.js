// Live settings: what was said while the crawl runs, and what can be said.
// Rules: a value is sent as it was typed (a list as JSON), and judged by the server; nothing is kept here.

function settingsView(parameters, context) {
  const host = parameters.get("host") ?? "";
  const head = headline();
  const notes = el("div", {});
  const form = settingForm(host);
  const changed = table({
    caption: "Settings that were changed", key: (row) => `${row.name} ${row.host}`, empty: "Nothing was changed: all is as the agents were started with.", cls: "fit",
    columns: [
      { label: "Setting", of: (row) => row.name, node: (row) => el("strong", {}, row.name) }, { label: "Value", of: (row) => row.value, node: (row) => foreign(JSON.stringify(row.value)) },
      { label: "Host", of: (row) => row.host, node: (row) => (row.host ? link(row.host, "host", row.host) : "all") }, { label: "Since", of: (row) => row.when, node: (row) => when(row.when) },
      { label: "By", of: (row) => row.who, node: (row) => foreign(row.who) }, { label: "", cls: "act", of: (row) => [row.name, row.host], node: takeBack },
    ],
  });
  const all = table({
    caption: "Settings that can be changed", key: (row) => row.name, empty: "", cls: "fit live",
    columns: [
      { label: "Setting", of: (row) => row.name, node: (row) => button(row.name, () => form.choose(row.name), { cls: "choice", title: "Change it" }) },
      { label: "Given at the start", of: (row) => row.value, node: (row) => (row.value === null ? NONE : foreign(row.value)) },
      { label: "For a host", text: (row) => (row.host ? "yes" : "") }, { label: "Meaning", cls: "wide", text: (row) => plain(row.help) },
    ],
  });
  context.every(5000, async () => {
    const answer = await ask("settings", {}, context.signal);
    head.hidden = !answer.changed.length && !answer.behind.length;
    say(head, answer.behind.length ? `Not heard yet by ${answer.behind.slice(0, 5).map(plain).join(", ")}.` : "All agents have heard everything.");
    renew(notes, answer.refused, () => Object.entries(answer.refused).flatMap(([agent, fields]) => Object.entries(fields).slice(0, 3).map(([name, why]) => notice(`${agent} refuses ${name}: ${why}`, "bad"))));
    changed.set(answer.changed);
    all.set(answer.live);
    form.offer(answer.live);
  });
  return div(el("div", { cls: "split" }, card("Changed", head, notes, changed.node), form.node), card("What can be changed", all.node));
}

function takeBack(row) {
  if (row.name === "pause") return verb("Resume", () => verbs.resume(row.host), "small");
  return row.name === "finish" ? null : verb("Take back", () => verbs.unset(row.name, row.host), "small");
}

function settingForm(host) {
  const help = el("p", { cls: "quiet", "aria-live": "polite" });
  const choice = el("select", { name: "name", required: true });
  const form = el("form", {}, el("label", { cls: "field" }, el("span", {}, "Setting"), choice), help,
    field("Value", "value", { required: true, placeholder: "2" }), field("Host, empty for all", "host", { value: host, placeholder: "shop.example" }), inLine(el("button", { cls: "primary verb" }, "Set")));
  let rows = [];
  const told = () => {
    const row = rows.find((one) => one.name === choice.value);
    say(help, row ? `${plain(row.help)} ${row.kind ? `(${row.kind}${row.choices?.length ? `: ${row.choices.join(", ")}` : ""})` : ""}` : "");
    form.elements.host.disabled = Boolean(row) && !row.host;
  };
  choice.addEventListener("change", told);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const { value, host: where } = form.elements;
    act(verbs.set(choice.value, settingValue(value.value.trim()), where.disabled ? "" : where.value.trim()));
  });
  function offer(list) {
    rows = list;
    renew(choice, list.map((row) => row.name), () => list.filter((row) => !host || row.host).map((row) => el("option", { value: row.name }, row.name)));
    told();
  }
  function choose(name) {
    choice.value = name;
    told();
    form.elements.value.focus();
  }
  return { node: card("Change one", form), offer, choose };
}

// A list is typed as JSON; everything else travels as the text it is.
function settingValue(typed) {
  if (!typed.startsWith("[")) return typed;
  try {
    return JSON.parse(typed);
  } catch {
    return typed;
  }
}
