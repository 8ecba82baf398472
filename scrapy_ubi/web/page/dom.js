// Elements are made here, and nowhere else. Rules: what an element says is a text node, never markup; no inline handler and no
// style attribute (the content security policy forbids both).

const SVG = "http://www.w3.org/2000/svg";

function furnish(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, to] of Object.entries(value)) node.style.setProperty(key, to);
    else if (name === "value") node.value = value;
    else node.setAttribute(name === "cls" ? "class" : name, value === true ? "" : value);
  }
  node.append(...children.flat(3).filter((one) => one !== null && one !== undefined && one !== false));
  return node;
}

function el(tag, properties = {}, ...children) {
  return furnish(document.createElement(tag), properties, children);
}

function svg(tag, properties = {}, ...children) {
  return furnish(document.createElementNS(SVG, tag), properties, children);
}

function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
  return node;
}

// Text of the crawl: shown whole in its tooltip where it is cut.
function foreign(text, cls = "") {
  const shown = plain(text);
  return el("bdi", { cls: `foreign ${cls}`, title: shown }, shown);
}

function when(time) {
  return el("time", { title: moment(time), "data-when": time }, ago(time));
}

// All relative times on the page, told anew.
function retell() {
  for (const node of document.querySelectorAll("time[data-when]")) say(node, ago(Number(node.dataset.when)));
}

const STATES = {
  good: ["crawling", "running", "fetched", "done", "busy", "joined", "settled", "OK", "back", "begun", "resumed", "unfenced", "unblocked", "redis"],
  calm: ["waiting", "finished", "idle", "queued", "joining", "starting", "left", "resting", "in flight", "sent", "known", "KNOWN", "absent"],
  warn: ["paused", "leaving", "fenced", "held", "blocked", "silent", "stopped", "postponed", "filtered", "unknown", "unreadable"],
  bad: ["dead", "excluded", "ended", "failed", "REFUSED", "refused"],
};

function tone(state) {
  const word = String(state).split(":")[0];
  return Object.keys(STATES).find((name) => STATES[name].includes(word)) ?? "calm";
}

// A state by word and colour.
function chip(state, more = "") {
  return el("span", { cls: `chip ${tone(state)}`, title: plain(state) + more }, plain(state) + more);
}

function link(text, ...path) {
  return el("a", { href: address(...path), cls: "foreign", title: plain(text) }, el("bdi", {}, plain(text)));
}

const made = (tag, cls) => (...children) => el(tag, cls ? { cls } : {}, ...children);
const [quiet, vacant, headline, inLine, div, small, code] = [made("p", "quiet"), made("p", "empty"), made("p", "headline"), made("div", "row"), made("div"), made("small"), made("code")];

function button(label, does, properties = {}) {
  return el("button", { type: "button", onclick: does, ...properties }, label);
}

function card(title, ...children) {
  return el("section", { cls: "card" }, title && el("h2", {}, title), ...children);
}

// What a row of facts says: [name, value] pairs; a value is text or a node, and one that is null is left out.
function facts(pairs) {
  return el("dl", { cls: "facts" }, pairs.filter((pair) => pair && pair[1] !== null && pair[1] !== undefined && pair[1] !== "")
    .map(([name, value]) => div(el("dt", {}, name), el("dd", {}, value))));
}

function notice(text, cls = "") {
  return el("p", { cls: `notice ${cls}` }, plain(text));
}

// A labelled input; `more` are attributes of the input.
function field(label, name, more = {}) {
  const { options, ...rest } = more;
  const input = options
    ? el("select", { name, ...rest }, options.map(([value, text]) => el("option", { value, selected: value === rest.value }, text)))
    : el(rest.rows ? "textarea" : "input", { name, autocomplete: "off", spellcheck: "false", ...rest });
  return el("label", { cls: "field" }, el("span", {}, label), input);
}

// New children for a node, but only when what they depend on has changed: so focus, selection and scrolling stay.
function renew(node, of, make) {
  const text = JSON.stringify(of);
  if (node.dataset.of === text) return;
  node.dataset.of = text;
  const focused = node.contains(document.activeElement) ? document.activeElement : null;
  const at = focused ? [...node.querySelectorAll("a, button")].indexOf(focused) : -1;
  node.replaceChildren(...[make()].flat().filter((one) => one !== null && one !== undefined && one !== false));
  const again = at < 0 ? null : node.querySelectorAll("a, button")[at];
  if (again && again.textContent === focused.textContent) again.focus({ preventScroll: true });
}

function sum(numbers) {
  return numbers.reduce((all, one) => all + one, 0);
}
