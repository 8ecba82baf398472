// Tables that stay: rows are known by a key, and a new answer changes only the cells that differ, so focus and selection survive.
// Rules: never more rows than a page of the answer; where the columns have no room, however that comes, a row becomes a list of named
// values (page.css: .stacked, data-label), and stays one until the width changes, so that it does not go back and forth with its figures.

const STACKED_BELOW = 460; // pixels: beneath, names would be cut to nothing

// `columns`: {key, label, num, sort (the API's name of this order), text(row) or node(row, old), hint}. `onsort(name)` is called with a column's order.
function table({ caption, columns, key, onsort, empty = "Nothing here.", cls = "" }) {
  const heads = columns.map((column) => heading(column, onsort));
  const body = el("tbody");
  const head = el("thead", {}, el("tr", {}, heads.map((one) => one.node)));
  const grid = el("table", { cls }, el("caption", { cls: "unseen" }, caption), head, body);
  const nothing = vacant("…");
  const node = el("div", { cls: "table" }, grid, nothing);
  const rows = new Map();

  let width = 0;
  // A table is as wide as its columns need, at least.
  function stack() {
    if (width && grid.offsetWidth > width) grid.classList.add("stacked");
  }
  new ResizeObserver(() => {
    if (node.clientWidth === width) return;
    width = node.clientWidth;
    grid.classList.toggle("stacked", width > 0 && width < STACKED_BELOW);
    stack();
  }).observe(node);

  function set(list, sorted = "") {
    for (const one of heads) one.mark(sorted);
    const wanted = new Map(list.map((row) => [key(row), row]));
    for (const [name, row] of rows) if (!wanted.has(name)) rows.delete(name) && row.node.remove();
    let at = body.firstElementChild;
    for (const [name, data] of wanted) {
      if (!rows.has(name)) rows.set(name, tableRow(columns));
      const row = rows.get(name);
      row.show(data);
      if (row.node === at) at = at.nextElementSibling;
      else body.insertBefore(row.node, at);
    }
    grid.hidden = !list.length;
    nothing.hidden = Boolean(list.length);
    say(nothing, empty);
    stack();
  }

  grid.hidden = true;
  return { node, set };
}

// Columns that many tables have: a link to what is named there, and a count.
const linked = (label, name, view, more = {}) => ({ label, of: (row) => row[name], node: (row) => (row[name] ? link(row[name], view, row[name]) : null), ...more });
const counted = (label, name, more = {}) => ({ label, num: true, text: (row) => count(row[name]), ...more });
const stated = { label: "State", of: (row) => [row.state, row.role], node: (row) => chip(row.state, row.role === "copy" ? " (copy)" : "") };

function heading(column, onsort) {
  const properties = { scope: "col", cls: column.num ? "num" : "", title: column.hint };
  if (!column.sort || !onsort) return { node: el("th", properties, column.label), mark: () => {} };
  const node = el("th", properties, button(column.label, () => onsort(column.sort), { cls: "sort" }));
  return { node, mark: (sorted) => node.setAttribute("aria-sort", sorted === column.sort ? (column.up ? "ascending" : "descending") : "none") };
}

function tableRow(columns) {
  const cells = columns.map((column) => el("td", { cls: [column.num ? "num" : "", column.cls ?? ""].join(" ").trim() || null, "data-label": column.label }));
  const held = columns.map(() => undefined);
  const node = el("tr", {}, cells);
  function show(data) {
    columns.forEach((column, at) => {
      if (column.text) {
        say(cells[at], column.text(data));
        return;
      }
      // What a cell depends on is in `of`: as long as that is equal, its nodes stay.
      const of = column.of ? JSON.stringify(column.of(data)) : JSON.stringify(data);
      if (of === held[at]) return;
      held[at] = of;
      cells[at].replaceChildren(...[column.node(data)].flat().filter((one) => one || one === 0));
    });
  }
  return { node, show };
}

// First, previous, next; `onturn(offset)`.
function pager(onturn, limit, noun) {
  const told = el("span", { cls: "told" });
  const first = button("First", () => onturn(0));
  const back = button("Previous", () => onturn(Math.max(0, at - limit)));
  const on = button("Next", () => onturn(at + limit));
  let at = 0;
  const turns = el("span", { cls: "row" }, first, back, on);
  const node = el("nav", { cls: "pager", "aria-label": `Pages of ${noun}` }, told, turns);
  function set(offset, shown, total, reachable = total) {
    at = offset;
    say(told, shown ? `${count(offset + 1)}–${count(offset + shown)} of ${count(total)} ${noun}` : `${count(total)} ${noun}`);
    first.disabled = back.disabled = offset === 0;
    on.disabled = offset + shown >= Math.min(total, reachable);
    turns.hidden = total <= limit && offset === 0;
  }
  return { node, set };
}

// A bar of a value, as long as it is a part of `whole`, with a mark at what would be fair.
function bar(share, whole, label, fair = null, cls = "") {
  const width = (value) => `${Math.min(100, (100 * value) / whole).toFixed(2)}%`;
  return el("span", { cls: `bar ${cls}`, role: "img", "aria-label": label, title: label },
    el("span", { cls: "fill", style: { width: width(share) } }),
    isNumber(fair) && el("span", { cls: "fair", style: { left: width(fair) } }));
}
