// What the console does beyond plain pages: values grow by the second, menus close, keys lead to places.
"use strict";

const dollars = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD" });
const ticking = [...document.querySelectorAll("[data-ticks]")].map((element) => ({
  element, cents: Number(element.dataset.cents), perSecond: Number(element.dataset.ticks), since: performance.now(),
}));
if (ticking.length) {
  setInterval(() => {
    for (const each of ticking) {
      const grown = each.cents + each.perSecond * (performance.now() - each.since) / 1000;
      each.element.textContent = dollars.format(Math.floor(grown) / 100);
    }
  }, 1000);
}

// In a narrow window the menu is closed until it is opened; in a wide one it is always there.
const sections = document.querySelector(".sections");
const narrow = matchMedia("(max-width: 56rem)");
const fold = () => { if (sections) sections.open = !narrow.matches; };
narrow.addEventListener("change", fold);
fold();

addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

// g and a letter lead to a section, / to the search field.
let begun = false;
addEventListener("keydown", (event) => {
  if (event.target.closest("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") for (const menu of document.querySelectorAll("details.menu[open]")) menu.open = false;
  if (event.key === "/") {
    const search = document.querySelector("[data-search]");
    if (search) { event.preventDefault(); search.focus(); }
  } else if (event.key === "g") {
    begun = true;
    setTimeout(() => { begun = false; }, 1500);
  } else if (begun) {
    begun = false;
    const link = [...document.querySelectorAll(".side a")].find((each) => each.textContent.trim().toLowerCase().startsWith(event.key));
    if (link) link.click();
  }
});

// What goes on is read again until it has come to its end. The bank may be away for seconds meanwhile.
async function reread() {
  try {
    const answer = await fetch(location.href);
    if (answer.redirected) return location.reload();
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    const main = next.querySelector("main");
    if (answer.ok && main) document.querySelector("main").replaceChildren(...main.childNodes);
  } catch { /* it answers again in a moment */ }
  watch();
}
function watch() {
  if (document.querySelector("[data-rereads]")) setTimeout(reread, 700);
}
watch();

// A search that has found nothing goes on in the list alone, so that its filters can be changed meanwhile.
async function search(list) {
  const next = list.querySelector("[data-searches] ~ .pager [rel=next]");
  if (!next) return;
  try {
    const answer = await fetch(next.href);
    if (!answer.ok || answer.redirected) return;
    const found = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-results]");
    if (!found || !list.isConnected) return;
    history.replaceState(null, "", next.href);
    list.replaceWith(found);
    search(found);
  } catch { /* its link goes on */ }
}
const results = document.querySelector("[data-results]");
if (results) search(results);
