// A line over time, as inline SVG. Rules: drawn for the width it has; times without a figure are gaps; the nearest point is told
// for the pointer and for the arrow keys; its label says in words what the line shows; the axis is as long as there are points.

const CHART_HEIGHT = 132;
const CHART_ROOM = { top: 12, bottom: 20, left: 0, right: 0 };
const LEAST_SPAN = 10; // seconds on the axis
const TIME_STEPS = [1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 180, 300, 600, 900, 1800, 3600]; // seconds between two marks
const markWidth = (step) => (step < 60 ? 64 : 50); // pixels, at least, of a mark with its time: with seconds, or without

// `value(point)` is what is drawn, `tell(value)` how it is said, `most` how many seconds are shown. Points: [unix seconds, ...].
function chart({ title, value, tell: told, most }) {
  const now = el("strong", { cls: "now" });
  const read = el("span", { cls: "read", "aria-live": "off" });
  const art = svg("svg", { height: CHART_HEIGHT, width: "100%", role: "img", tabindex: "0" });
  const node = el("figure", { cls: "chart" }, el("figcaption", {}, el("span", {}, title), now, read), art);
  let points = [];
  let present = null;
  let end = 0;
  let seconds = LEAST_SPAN;
  let at = -1;

  // `last`: the figure of now, as it stands elsewhere on the page.
  function set(list, until, last) {
    present = last;
    end = until;
    points = list.filter((point) => point[0] <= end && point[0] >= end - most);
    seconds = Math.max(LEAST_SPAN, points.length ? end - points[0][0] : 0);
    draw();
  }

  function draw() {
    const width = Math.max(120, art.clientWidth || node.clientWidth || 480);
    const scale = chartScale(points, value, width, end, seconds);
    art.setAttribute("viewBox", `0 0 ${width} ${CHART_HEIGHT}`);
    art.setAttribute("aria-label", chartWords(title, points, value, told, seconds, present));
    say(now, isNumber(present) ? told(present) : NONE);
    const marked = at >= 0 && at < points.length && isNumber(value(points[at])) ? points[at] : null;
    say(read, marked ? `${timeOfDay(marked[0], typicalStep(points) < 60)}: ${told(value(marked))}` : "");
    art.replaceChildren(...chartFrame(scale, told), ...chartLine(scale, points, value),
      ...(marked ? [svg("line", { cls: "cross", x1: scale.x(marked[0]), x2: scale.x(marked[0]), y1: CHART_ROOM.top, y2: scale.floor }),
        svg("circle", { cls: "dot", r: 3.5, cx: scale.x(marked[0]), cy: scale.y(value(marked)) })] : []));
  }

  function mark(index) {
    at = index;
    draw();
  }
  art.addEventListener("pointermove", (event) => {
    const box = art.getBoundingClientRect();
    const time = end - seconds + ((event.clientX - box.left) / box.width) * seconds;
    mark(nearestPoint(points, time));
  });
  art.addEventListener("pointerleave", () => mark(-1));
  art.addEventListener("blur", () => mark(-1));
  art.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !points.length) return;
    event.preventDefault();
    read.setAttribute("aria-live", "polite");
    mark(Math.min(points.length - 1, Math.max(0, (at < 0 ? points.length : at) + step)));
  });
  new ResizeObserver(() => draw()).observe(node);
  return { node, set };
}

function chartScale(points, value, width, end, seconds) {
  const floor = CHART_HEIGHT - CHART_ROOM.bottom;
  const most = points.reduce((high, point) => (isNumber(value(point)) && value(point) > high ? value(point) : high), 0);
  const top = niceTop(most);
  return {
    width, floor, top, end, seconds,
    x: (time) => +(((time - (end - seconds)) / seconds) * width).toFixed(1),
    y: (number) => +(floor - (number / top) * (floor - CHART_ROOM.top)).toFixed(1),
  };
}

// The next of 1, 2, 2.5, 5 times a power of ten.
function niceTop(most) {
  if (!(most > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((step) => step >= most);
}

function chartFrame(scale, told) {
  const marks = [];
  for (const part of [0, 0.5, 1]) {
    const y = scale.y(scale.top * part);
    marks.push(svg("line", { cls: part ? "grid" : "axis", x1: 0, x2: scale.width, y1: y, y2: y }));
    if (part) marks.push(svg("text", { x: 0, y: y - 3 }, short(scale.top * part)));
  }
  const step = TIME_STEPS.find((one) => (one / scale.seconds) * scale.width >= markWidth(one)) ?? TIME_STEPS[TIME_STEPS.length - 1];
  const edge = markWidth(step) / 2;
  for (let time = Math.ceil((scale.end - scale.seconds) / step) * step; time <= scale.end; time += step) {
    const x = scale.x(time);
    if (x < edge || x > scale.width - edge) continue;
    marks.push(svg("line", { cls: "axis", x1: x, x2: x, y1: scale.floor, y2: scale.floor + 4 }));
    marks.push(svg("text", { x, y: CHART_HEIGHT - 4, "text-anchor": "middle" }, timeOfDay(time, step < 60)));
  }
  return marks;
}

function chartLine(scale, points, value) {
  const gap = Math.max(45, 3 * typicalStep(points));
  const runs = [];
  let before = -Infinity;
  for (const point of points) {
    if (!isNumber(value(point)) || point[0] < scale.end - scale.seconds) continue;
    if (point[0] - before > gap) runs.push([]);
    before = point[0];
    runs[runs.length - 1].push(point);
  }
  return runs.flatMap((run) => {
    const line = run.map((point) => `${scale.x(point[0])} ${scale.y(value(point))}`).join("L");
    const area = `M${scale.x(run[0][0])} ${scale.floor}L${line}L${scale.x(run[run.length - 1][0])} ${scale.floor}Z`;
    return [svg("path", { cls: "area", d: area }), svg("path", { cls: "line", d: "M" + line })];
  });
}

function typicalStep(points) {
  return points.length > 1 ? (points[points.length - 1][0] - points[0][0]) / (points.length - 1) : 10;
}

function nearestPoint(points, time) {
  let best = -1;
  points.forEach((point, index) => {
    if (best < 0 || Math.abs(point[0] - time) < Math.abs(points[best][0] - time)) best = index;
  });
  return best;
}

function chartWords(title, points, value, told, seconds, present) {
  const values = points.map(value).filter(isNumber);
  if (!values.length) return `${title}: no figures yet`;
  return `${title}, the last ${span(seconds)}: ${isNumber(present) ? `now ${told(present)}, ` : ""}lowest ${told(Math.min(...values))}, highest ${told(Math.max(...values))}`;
}
