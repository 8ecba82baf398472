// The ring, drawn: who owns which part of it. Rules: one canvas, however many agents and replicas; the table beside it says the same in words;
// the chosen agent has the accent colour, so no meaning hangs on the colours of the others.

const RING_ROWS = 15;
const RING_EVERY = 10000; // milliseconds

function ringView(parameters, context) {
  const canvas = el("canvas", { role: "img", cls: "ring" });
  const middle = el("p", { cls: "middle", "aria-hidden": "true" });
  const words = quiet();
  const owner = ownerForm(context, (answer) => ((placed = answer), draw()));
  let ring = null;
  let chosen = parameters.get("agent") ?? "";
  let offset = 0;
  let placed = null;
  const choose = (agent) => ((chosen = chosen === agent ? "" : agent), draw());
  const rows = table({
    caption: "Agents on the ring", key: (row) => row.agent, empty: "No agent has a part of the ring.", cls: "fit",
    columns: [
      { label: "Agent", of: (row) => [row.agent, row.agent === chosen], node: (row) => button(el("bdi", {}, plain(row.agent)), () => choose(row.agent), { cls: "choice foreign", "aria-pressed": String(row.agent === chosen), title: "Show its parts" }) },
      { label: "Share", cls: "share", of: (row) => [row.share, row.fair], node: (row) => shareCell(row, ring.agents) },
      { label: "Of fair", num: true, hint: "Its share by its fair share: 1 is perfect balance", text: (row) => (row.fair && isNumber(row.share) ? (row.share / row.fair).toFixed(2) : NONE) },
      { label: "Capacity", num: true, text: (row) => (isNumber(row.capacity) ? String(+row.capacity.toFixed(2)) : NONE) },
      counted("Points", "replicas", { hint: "Its replicas on the ring" }),
      counted("Hosts", "hosts"),
    ],
  });
  const pages = pager((to) => ((offset = to), draw()), RING_ROWS, "agents");

  function draw() {
    if (!ring) return;
    const at = ring.agents.findIndex((row) => row.agent === chosen);
    const shown = at >= 0 ? ring.agents[at] : null;
    say(words, ringWords(ring.agents));
    middle.replaceChildren(...(shown ? [el("strong", {}, percent(shown.share)), el("span", { cls: "foreign" }, plain(shown.agent))] : [el("strong", {}, count(ring.agents.length)), el("span", {}, ring.agents.length === 1 ? "agent" : "agents")]));
    rows.set(ring.agents.slice(offset, offset + RING_ROWS), "");
    pages.set(offset, Math.min(RING_ROWS, ring.agents.length - offset), ring.agents.length);
    canvas.setAttribute("aria-label", `${ringWords(ring.agents)}${shown ? ` ${plain(shown.agent)} has ${percent(shown.share)}.` : ""}`);
    drawRing(canvas, ring, at, placed);
  }
  new ResizeObserver(draw).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw, { signal: context.signal });
  canvas.addEventListener("click", (event) => ring && chooseAt(event, canvas, ring, choose));
  context.every(RING_EVERY, async () => {
    ring = await ask("ring", {}, context.signal);
    draw();
  });
  return el("div", { cls: "split ringed" }, card(null, el("div", { cls: "round" }, canvas, middle), words), div(card("Parts", rows.node, pages.node), owner));
}

function ringWords(agents) {
  if (!agents.length) return "No agent has a part of the ring.";
  const ratios = agents.filter((row) => row.fair && isNumber(row.share)).map((row) => row.share / row.fair);
  if (!ratios.length) return `${many(agents.length, "agent")}; two of them cannot be on one ring.`;
  const deviation = sum(ratios.map((ratio) => Math.abs(ratio - 1))) / ratios.length;
  return `${many(agents.length, "agent")}, ${many(sum(agents.map((row) => row.replicas)), "point")}. The largest part is ${Math.max(...ratios).toFixed(2)} times what is fair; mean deviation ${percent(deviation)}.`;
}

function chooseAt(event, canvas, ring, choose) {
  const box = canvas.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left - box.width / 2, event.clientY - box.top - box.height / 2];
  const turn = (Math.atan2(x, -y) / (2 * Math.PI) + 1) % 1;
  const owner = ring.agents[ring.sectors[Math.floor(turn * ring.sectors.length)]];
  if (owner) choose(owner.agent);
}

// Hues around the accent, from green to violet; agents that follow each other differ in lightness as well.
function ringColour(index, dark) {
  const part = (index * 0.618) % 1;
  const light = [52, 76, 40, 64, 84][index % 5];
  return `hsl(${150 + part * 115} ${dark ? 22 : 30}% ${dark ? light * 0.8 : light}%)`;
}

function drawRing(canvas, ring, chosen, placed) {
  const width = canvas.clientWidth;
  if (!width) return;
  const scale = window.devicePixelRatio || 1;
  [canvas.width, canvas.height] = [width * scale, width * scale];
  const style = getComputedStyle(document.body);
  const [accent, line, ink] = ["--accent", "--line", "--ink"].map((name) => style.getPropertyValue(name).trim());
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const art = canvas.getContext("2d");
  art.setTransform(scale, 0, 0, scale, (width * scale) / 2, (width * scale) / 2);
  const [outer, inner] = [width / 2 - 10, width / 2 - 10 - Math.min(46, width / 7)];
  for (const [first, last, owner] of ringArcs(ring.sectors)) {
    art.fillStyle = owner < 0 ? line : owner === chosen ? accent : chosen >= 0 ? line : ringColour(owner, dark);
    ringArc(art, first / ring.sectors.length, last / ring.sectors.length, owner === chosen ? outer + 5 : outer, inner);
  }
  if (placed && isNumber(placed.point)) {
    const turn = placed.point * 2 * Math.PI;
    art.strokeStyle = art.fillStyle = ink;
    art.lineWidth = 2;
    art.beginPath();
    art.moveTo(Math.sin(turn) * (inner - 14), -Math.cos(turn) * (inner - 14));
    art.lineTo(Math.sin(turn) * (outer + 8), -Math.cos(turn) * (outer + 8));
    art.stroke();
  }
}

// Runs of sectors with one owner: [first, last + 1, owner].
function ringArcs(sectors) {
  const arcs = [];
  sectors.forEach((owner, at) => {
    const before = arcs[arcs.length - 1];
    if (before && before[2] === owner) before[1] = at + 1;
    else arcs.push([at, at + 1, owner]);
  });
  return arcs;
}

function ringArc(art, from, to, outer, inner) {
  const [start, end] = [from * 2 * Math.PI - Math.PI / 2, to * 2 * Math.PI - Math.PI / 2];
  art.beginPath();
  art.arc(0, 0, outer, start, end);
  art.arc(0, 0, inner, end, start, true);
  art.closePath();
  art.fill();
}

// Which agent a host belongs to.
function ownerForm(context, shown) {
  const result = el("div", { "aria-live": "polite" });
  const form = el("form", { cls: "row" }, field("URL or host", "url", { type: "text", required: true, placeholder: "shop.example" }), el("button", { cls: "primary" }, "Who owns it?"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const typed = form.elements.url.value.trim();
    try {
      const answer = await ask("owner", { url: typed.includes("://") ? typed : `http://${typed}/` }, context.signal);
      result.replaceChildren(facts([
        ["URL", foreign(answer.url)],
        [answer.partition === "host" ? "Host" : "Domain", link(answer.host, "host", answer.host)],
        ["Owner", link(answer.owner, "agent", answer.owner)],
        ["Keep a copy", answer.successors.length ? listOf(answer.successors, "agent") : "no agent"],
        ["After them", listOf(answer.order.slice(1 + answer.successors.length, 6 + answer.successors.length), "agent")],
      ]));
      shown(answer);
    } catch (error) {
      result.replaceChildren(notice(error.message, "bad"));
    }
  });
  return card("Who owns a host", form, result);
}

function listOf(names, view) {
  return names.length ? names.map((name, at) => [at ? ", " : "", link(name, view, name)]) : null;
}
