// Elements whose box leaves that of their card (or of the screen), and texts that are cut although nothing tells them whole: neither a
// title of the element, of one within or around it, nor a scroll bar. The body of a function that gives sentences.
const wide = document.documentElement.clientWidth;
const faults = [];
const name = (one) => `${one.tagName.toLowerCase()}.${one.className?.baseVal ?? one.className} "${one.textContent.slice(0, 40)}"`;
const unseen = (one) => one.closest(".unseen") || getComputedStyle(one).clipPath !== "none" || one.closest("thead") && getComputedStyle(one.closest("thead")).clipPath !== "none";
const rolls = (one) => ["auto", "scroll"].includes(getComputedStyle(one).overflowX);
const hides = (one) => getComputedStyle(one).overflowX === "hidden";
if (document.scrollingElement.scrollWidth > innerWidth) faults.push(`the page is ${document.scrollingElement.scrollWidth} wide`);
for (const one of document.querySelectorAll("header *, main *, dialog *")) {
  if (!one.getClientRects().length || one.id === "skip" || one.closest("svg") || unseen(one)) continue;
  const box = one.getBoundingClientRect();
  if (!box.width) continue;
  let inside = false;
  let frame = null;
  for (let above = one.parentElement; above && !frame; above = above.parentElement) {
    if (above.matches(".card, .tile, dialog, header, main, body")) frame = above;
    else if (hides(above) || rolls(above)) inside = true;
  }
  const bounds = frame.getBoundingClientRect();
  if (!inside && (box.right > bounds.right + 1 || box.left < bounds.left - 1)) faults.push(`${name(one)} leaves its card: ${Math.round(box.left)} to ${Math.round(box.right)} of ${Math.round(bounds.left)} to ${Math.round(bounds.right)}`);
  if (box.right > wide + 1 && !inside) faults.push(`${name(one)} is beyond the screen`);
  if (hides(one) && one.scrollWidth > one.clientWidth + 1 && !one.matches(".bar, .progress")) {
    const tells = one.closest("[title]") || [...one.querySelectorAll("[title]")].some((inner) => inner.title.length >= one.textContent.length / 2);
    if (!tells) faults.push(`${name(one)} is cut`);
  }
  if (one.matches("button, .chip") && one.scrollWidth > one.clientWidth + 1 && !hides(one)) faults.push(`${name(one)} is wider than its button`);
}
return [...new Set(faults)].slice(0, 12);
