// Numbers, spans, times and foreign text as people read them.
// Rules: a number has thin separators and a unit; a time is relative, its tooltip absolute; text of the crawl shows
// every character that would hide or reorder others by its escape.

const NONE = "–";
const THIN = "\u202f";
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

function plain(text) {
  return String(text ?? "").replace(UNSEEN, (one) => {
    const code = one.charCodeAt(0);
    return code < 256 ? "\\x" + code.toString(16).padStart(2, "0") : "\\u" + code.toString(16);
  });
}

function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

function count(value) {
  if (!isNumber(value)) return NONE;
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, THIN);
}

function short(value) {
  if (!isNumber(value)) return NONE;
  const size = Math.abs(value);
  if (size < 1e4) return size < 10 ? String(+value.toFixed(1)) : count(value);
  for (const [limit, unit] of [[1e6, "k"], [1e9, "M"], [1e12, "G"]]) {
    const scaled = (value / limit) * 1000;
    if (size < limit) return (Math.abs(scaled) < 100 ? +scaled.toFixed(1) : count(scaled)) + THIN + unit;
  }
  return value.toExponential(1);
}

function rate(value) {
  if (!isNumber(value)) return NONE;
  return value >= 100 ? count(value) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function percent(share, digits = 1) {
  if (!isNumber(share)) return NONE;
  return (share * 100).toFixed(digits) + THIN + "%";
}

function many(number, one, more = one + "s") {
  return count(number) + " " + (number === 1 ? one : more);
}

function size(bytes) {
  if (!isNumber(bytes)) return NONE;
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (bytes >= 1000 && at < units.length - 1) [bytes, at] = [bytes / 1000, at + 1];
  return (at && bytes < 100 ? +bytes.toFixed(1) : count(bytes)) + THIN + units[at];
}

function span(seconds) {
  if (!isNumber(seconds)) return NONE;
  if (seconds < 1) return (seconds > 0 ? Math.max(1, Math.round(seconds * 1000)) : 0) + THIN + (seconds > 0 ? "ms" : "s");
  if (seconds < 10) return +seconds.toFixed(1) + THIN + "s";
  if (seconds < 100) return Math.round(seconds) + THIN + "s";
  if (seconds < 5400) return Math.round(seconds / 60) + THIN + "min";
  if (seconds < 129600) return +(seconds / 3600).toFixed(seconds < 36000 ? 1 : 0) + THIN + "h";
  return seconds < 3.2e8 ? count(seconds / 86400) + THIN + "days" : "more than ten years";
}

function ago(when, now = clock()) {
  if (!isNumber(when) || when <= 0) return NONE;
  const past = now - when;
  return past < 1.5 && past > -5 ? "now" : past < 0 ? "in " + span(-past) : span(past) + " ago";
}

function until(when, now = clock()) {
  return isNumber(when) && when > now ? "in " + span(when - now) : NONE;
}

function moment(when) {
  return isNumber(when) && when > 0 && when < 8e12 ? new Date(when * 1000).toLocaleString("en-GB") : "";
}

function timeOfDay(when, seconds = false) {
  return new Date(when * 1000).toTimeString().slice(0, seconds ? 8 : 5);
}
