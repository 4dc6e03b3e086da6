// What the console does beyond plain pages: values grow by the second, menus close, keys lead to places, ids are copied.
"use strict";

const inDollars = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD" });
const dollars = { format: (amount) => inDollars.format(amount).replace("-", "−") };
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

// In a narrow window the menu and the filters of a list are closed until they are opened; in a wide one they are always there.
document.documentElement.classList.add("scripted");
const narrow = matchMedia("(max-width: 56rem)");
// Many filters are behind the button on a wide window, too, while none of them is chosen.
const isLong = (each) => each.matches(":has(.fields > :nth-child(7)):not(:has(.count))");
const fold = () => { for (const each of document.querySelectorAll(".sections, .filters > .more")) each.open = !(narrow.matches || isLong(each)) || Boolean(each.querySelector("[aria-invalid]")); };
narrow.addEventListener("change", fold);
fold();

const menusThatClose = () => document.querySelectorAll(narrow.matches ? "details.menu[open], .sections[open]" : "details.menu[open]");
addEventListener("click", (event) => {
  for (const menu of menusThatClose()) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

// What leads somewhere from every page of the console: its sections, and the other teams.
const places = [...document.querySelectorAll(".side a, .switch .sheet a")].map((link) => ({
  link, words: link.textContent.replace(/\s+/g, " ").trim(),
}));

const KEYS = [["Ctrl K or /", "Find anything"], ["g, then a letter", "Go to the first section that begins with it"], ["Arrows, Enter", "Choose what was found"], ["Esc", "Close"], ["?", "Show these keys"]];
const findLink = document.querySelector("[data-find]");
// The letters of a text in this order, others between them: a letter that is left out does no harm.
const isLike = (words, wanted) => { let from = 0; return [...wanted].every((each) => (from = words.indexOf(each, from) + 1)); };

// What the page of the search found, as places; without a text, what it suggests.
async function findAll(wanted) {
  if (!findLink || wanted.length === 1) return [];
  try {
    const answer = await fetch(`${findLink.href}?${new URLSearchParams({ q: wanted, list: "1" })}`);
    if (!answer.ok || answer.redirected) return [];
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    return [...page.querySelectorAll("[data-found] a.row")].map((link) => ({ link, words: link.textContent, kind: link.closest("[data-found]").dataset.found, hit: link.matches(".hit") }));
  } catch { return []; }
}

// What was opened from here before, in this window only, the newest first.
const OPENED = "opened", OPENED_MAX = 4;
const readOpened = () => JSON.parse(sessionStorage.getItem(OPENED) || "[]").filter((each) => each.base === findLink?.pathname);
function keepOpened({ link, words }) {
  const one = { base: findLink?.pathname, href: link.href, words: (link.querySelector(".what > span") || link).textContent.trim() || words };
  sessionStorage.setItem(OPENED, JSON.stringify([one, ...readOpened().filter((each) => each.href !== one.href)].slice(0, OPENED_MAX)));
}

document.querySelector('form[action="/sign-out"]')?.addEventListener("submit", () => sessionStorage.removeItem(OPENED));

// The words of a place with what was typed in them marked.
function marked(words, wanted) {
  const at = wanted ? words.toLowerCase().indexOf(wanted) : -1, label = document.createElement("span");
  label.append(at < 0 ? words : words.slice(0, at));
  if (at >= 0) label.append(Object.assign(document.createElement("mark"), { textContent: words.slice(at, at + wanted.length) }), words.slice(at + wanted.length));
  return label;
}

function openKeys() {
  const keys = Object.assign(document.createElement("dialog"), { className: "palette" });
  keys.setAttribute("aria-label", "Keys");
  const list = Object.assign(document.createElement("dl"), { className: "keys" });
  for (const [key, meaning] of KEYS) list.append(Object.assign(document.createElement("dt"), { textContent: key }), Object.assign(document.createElement("dd"), { textContent: meaning }));
  keys.append(Object.assign(document.createElement("h2"), { textContent: "Keys" }), list);
  keys.addEventListener("click", (event) => { if (event.target === keys) keys.close(); });
  keys.addEventListener("close", () => keys.remove());
  document.body.append(keys);
  keys.showModal();
}

// A window that finds a section by letters of its name, and everything of a team.
function openPalette() {
  const palette = document.createElement("dialog");
  palette.className = "palette";
  palette.setAttribute("aria-label", "Go to");
  const input = Object.assign(document.createElement("input"), { type: "search", placeholder: findLink?.dataset.find || "Go to a page", autocomplete: "off" });
  const list = document.createElement("div");
  const hint = Object.assign(document.createElement("p"), { className: "hint", });
  for (const [name, value] of Object.entries({ role: "combobox", "aria-label": "Go to", "aria-expanded": "true", "aria-controls": "places" })) input.setAttribute(name, value);
  list.id = "places";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Found");
  let chosen = 0, wait = 0, hits = [], said = null;
  const option = (each, number, wanted) => {
    const link = Object.assign(document.createElement("a"), { className: "hit", href: each.link.href, tabIndex: -1, id: `place-${number}` });
    if (each.hit) link.append(...[...each.link.childNodes].map((part) => document.importNode(part, true)));
    else link.append((each.link.querySelector?.("svg") || document.querySelector(".find svg") || "").cloneNode?.(true) || "", marked(each.words, wanted));
    link.setAttribute("role", "option");
    link.setAttribute("aria-selected", String(number === chosen));
    link.addEventListener("click", () => keepOpened(each));
    return link;
  };
  const show = () => {
    const wanted = input.value.trim().toLowerCase();
    const opened = wanted ? [] : readOpened().map((each) => ({ link: each, words: each.words, kind: "Opened recently" }));
    const named = places.filter((each) => isLike(each.words.toLowerCase(), wanted)).map((each) => ({ ...each, kind: "Go to" }));
    const [first, last] = [true, false].map((is) => named.filter((each) => each.words.toLowerCase().includes(wanted) === is));
    const found = wanted ? [...first, ...hits, ...(hits.length + first.length ? [] : last)] : [...opened, ...hits, ...first];
    chosen = Math.max(0, Math.min(chosen, found.length - 1));
    const groups = new Map();
    found.forEach((each, number) => {
      if (!groups.has(each.kind)) groups.set(each.kind, []);
      groups.get(each.kind).push(option(each, number, wanted));
    });
    list.replaceChildren(...[...groups].map(([kind, options], number) => {
      const group = document.createElement("div"), heading = Object.assign(document.createElement("span"), { className: "label", textContent: kind, id: `kind-${number}` });
      group.setAttribute("role", "group");
      group.setAttribute("aria-labelledby", heading.id);
      heading.setAttribute("role", "presentation");
      group.append(heading, ...options);
      return group;
    }));
    hint.textContent = wanted && said === wanted && !found.length ? "Nothing was found. Try a name, a kind like “fee”, a month or an amount." : "↑ ↓ to choose, Enter to open, Ctrl Enter for a new tab, Esc to close";
    const active = list.querySelector("[aria-selected=true]");
    if (active) { input.setAttribute("aria-activedescendant", active.id); active.scrollIntoView({ block: "nearest" }); }
    else input.removeAttribute("aria-activedescendant");
  };
  input.addEventListener("input", () => {
    chosen = 0;
    show();
    clearTimeout(wait);
    const wanted = input.value.trim();
    wait = setTimeout(async () => {
      const found = await findAll(wanted);
      if (wanted === input.value.trim()) { hits = found; said = wanted.toLowerCase(); show(); }
    }, 120);
  });
  findAll("").then((found) => { if (!input.value.trim()) { hits = found; show(); } });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      chosen += event.key === "ArrowDown" ? 1 : -1;
      show();
    } else if (event.key === "Enter") {
      event.preventDefault();
      const link = list.querySelector("[aria-selected=true]");
      if (link && (event.ctrlKey || event.metaKey)) open(link.href, "_blank", "noopener");
      else if (link) link.click();
    }
  });
  palette.addEventListener("click", (event) => { if (event.target === palette) palette.close(); });
  palette.addEventListener("close", () => palette.remove());
  palette.append(input, list, hint);
  document.body.append(palette);
  show();
  palette.showModal();
}

findLink?.addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  openPalette();
});

// g and a letter lead to a section, / to the search field of the page, or without one to the window above; so does Ctrl K.
let begun = false;
addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && places.length) {
    event.preventDefault();
    if (!document.querySelector(".palette")) openPalette();
    return;
  }
  if (event.target.closest("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") for (const menu of menusThatClose()) menu.open = false;
  if (event.key === "/") {
    const search = document.querySelector("[data-search]");
    event.preventDefault();
    if (search) search.focus();
    else if (places.length) openPalette();
  } else if (event.key === "?" && !document.querySelector(".palette")) {
    openKeys();
  } else if (event.key === "g") {
    begun = true;
    setTimeout(() => { begun = false; }, 1500);
  } else if (begun) {
    begun = false;
    const found = places.find((each) => each.words.toLowerCase().startsWith(event.key));
    if (found) found.link.click();
  }
});

// Ids and numbers are copied by a button next to them.
function offerCopies(part) {
  for (const element of part.querySelectorAll(".facts .key, .head .key, [data-copy]")) {
    const text = element.textContent.trim();
    if (!text || element.querySelector(".copy")) continue;
    const button = Object.assign(document.createElement("button"), { type: "button", className: "copy", title: "Copy" });
    button.setAttribute("aria-label", `Copy ${text}`);
    const icon = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    icon.setAttribute("viewBox", "0 0 16 16");
    icon.setAttribute("aria-hidden", "true");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3");
    icon.append(path);
    button.append(icon);
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(text);
      path.setAttribute("d", "M3 8.5l3.5 3.5L13 4.5");
      button.setAttribute("aria-label", "Copied");
      setTimeout(() => { path.setAttribute("d", "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3"); button.setAttribute("aria-label", `Copy ${text}`); }, 1500);
    });
    element.append(button);
  }
}
if (navigator.clipboard) offerCopies(document);

// What is ticked in a list is counted and summed; one box ticks all.
for (const list of document.querySelectorAll("[data-picks]")) {
  const boxes = [...list.querySelectorAll("[data-cents]")];
  const place = list.querySelector("[data-pick-all]");
  if (!place) continue;
  const all = place.querySelector("input");
  const count = () => {
    const picked = boxes.filter((each) => each.checked);
    const cents = picked.reduce((sum, each) => sum + Number(each.dataset.cents), 0);
    list.querySelector("output").textContent = picked.length ? `${picked.length} selected, ${dollars.format(cents / 100)}` : "";
    list.querySelector(".sign button").disabled = !picked.length;
    all.checked = picked.length === boxes.length;
    all.indeterminate = picked.length > 0 && !all.checked;
  };
  place.hidden = false;
  all.addEventListener("change", () => { for (const each of boxes) each.checked = all.checked; count(); });
  list.addEventListener("change", count);
  addEventListener("pageshow", count);
}

// A group of boxes is ticked as a whole, or not at all.
for (const group of document.querySelectorAll("[data-ticks-all]")) {
  const boxes = [...group.querySelectorAll("[type=checkbox]")], heading = group.querySelector(".label");
  const button = Object.assign(document.createElement("button"), { type: "button", className: "link" });
  const show = () => { button.textContent = boxes.every((each) => each.checked) ? "Select none" : "Select all"; button.setAttribute("aria-label", `${button.textContent} of ${heading.firstChild.textContent}`); };
  button.addEventListener("click", () => { const wanted = !boxes.every((each) => each.checked); for (const each of boxes) each.checked = wanted; show(); });
  group.addEventListener("change", show);
  heading.append(button);
  show();
}

// A running task is reloaded until it has ended. The bank may be unavailable for seconds in the meantime.
async function reread() {
  try {
    const answer = await fetch(location.href);
    if (answer.redirected) return location.reload();
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    const main = next.querySelector("main");
    if (answer.ok && main) {
      document.querySelector("main").replaceChildren(...main.childNodes);
      if (navigator.clipboard) offerCopies(document);
    }
  } catch { /* it answers again in a moment */ }
  watch();
}
function watch() {
  if (document.querySelector("[data-rereads]")) setTimeout(reread, 700);
}
watch();

// A search without results continues only in the list, so that its filters can be changed in the meantime.
async function search(list) {
  const way = list.querySelector("[data-searches]")?.dataset.searches;
  const next = way && list.querySelector(`.pager [rel=${way}]`);
  if (!next) return;
  try {
    const answer = await fetch(next.href);
    if (!answer.ok || answer.redirected) return;
    const found = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-results]");
    if (!found || !list.isConnected) return;
    history.replaceState(null, "", next.href);
    list.replaceWith(found);
    search(found);
  } catch { /* its link continues */ }
}
const results = document.querySelector("[data-results]");
if (results) search(results);

// Filters of a list apply as they change; what a page cannot take is said by the page itself.
for (const form of document.querySelectorAll("form[data-live]")) {
  let wait = 0, asked = 0;
  form.classList.add("live");
  const apply = async () => {
    const sent = [...new FormData(form)].filter(([, value]) => value);
    const address = `${form.action}?${new URLSearchParams(sent)}`;
    const number = ++asked;
    try {
      const answer = await fetch(address);
      if (number !== asked) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const list = page.querySelector("[data-results]");
      if (!answer.ok || answer.redirected || !list) return location.assign(address);
      for (const part of ["[data-results]", ".head", ".presets", ".filters .go", ".filters summary"]) document.querySelector(part)?.replaceWith(page.querySelector(part));
      history.replaceState(null, "", address);
      search(document.querySelector("[data-results]"));
    } catch { location.assign(address); }
  };
  form.addEventListener("change", apply);
  form.addEventListener("input", (event) => { if (event.target.matches("[inputmode]")) { clearTimeout(wait); wait = setTimeout(apply, 400); } });
  form.addEventListener("submit", (event) => { event.preventDefault(); apply(); });
}

// A chart shows the day under the pointer. Dragging over days shows only these; its values are those of the table below it.
const svgPart = (name, attributes) => {
  const part = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) part.setAttribute(key, value);
  return part;
};
for (const chart of document.querySelectorAll("[data-chart]")) {
  const plot = chart.querySelector(".plot"), svg = plot.querySelector("svg"), line = svg.querySelector(".line");
  const rows = [...chart.nextElementSibling.querySelectorAll("tbody tr")].reverse();
  const days = rows.map((row) => ({ day: row.cells[0].textContent, shown: row.cells[1].textContent.trim(), value: Number(row.cells[1].textContent.replace("\u2212", "-").replace(/[^0-9.-]/g, "")) }));
  const places = line.getAttribute("points").split(" ").map((each) => each.split(",").map(Number));
  const [low, high] = [Math.min(...places.map(([, y]) => y)), Math.max(...places.map(([, y]) => y))];
  const [top, bottom] = [days[places.findIndex(([, y]) => y === low)].value, days[places.findIndex(([, y]) => y === high)].value];
  const valueAt = (y) => high === low ? top : top + (bottom - top) * (y - low) / (high - low);
  const cursor = svgPart("path", { class: "cursor" }), chosen = svgPart("rect", { class: "chosen", y: -1000, height: 3000, width: 0 });
  const [dot, tip] = ["dot", "tip"].map((className) => Object.assign(document.createElement("div"), { className, hidden: true }));
  const [marks, ends] = [plot.querySelectorAll(".marks span"), chart.querySelectorAll("figcaption span")];
  const whole = Object.assign(document.createElement("button"), { type: "button", className: "link", textContent: "Show all days", hidden: true });
  svg.append(chosen, cursor);
  plot.append(dot, tip);
  ends[0].after(whole);
  let view = [0, 0, 1000, 300], from = null;
  const nearest = (event) => {
    const box = svg.getBoundingClientRect();
    const x = view[0] + view[2] * (event.clientX - box.left) / box.width;
    return Math.max(0, Math.min(days.length - 1, Math.round(x / 1000 * (days.length - 1))));
  };
  const show = (first, last) => {
    const ys = places.slice(first, last + 1).map(([, y]) => y);
    const isAll = first === 0 && last === days.length - 1;
    const room = Math.max((Math.max(...ys) - Math.min(...ys)) * .1, 1);
    const [y, end] = isAll ? [0, 300] : [Math.min(...ys) - room, Math.max(...ys) + room];
    view = [places[first][0], y, places[last][0] - places[first][0], end - y];
    svg.setAttribute("viewBox", view.join(" "));
    svg.querySelector(".grid").setAttribute("d", [0, .5, 1].map((part) => `M0 ${y + view[3] * part}H1000`).join(""));
    marks.forEach((mark, n) => { mark.textContent = inDollars.format(valueAt(y + view[3] * n / 2)).replace(/\.00$/, "").replace("-", "\u2212"); });
    ends[0].textContent = days[first].day;
    ends[ends.length - 1].textContent = days[last].day;
    whole.hidden = isAll;
  };
  const leave = () => { dot.hidden = tip.hidden = true; cursor.setAttribute("d", ""); chosen.setAttribute("width", 0); from = null; };
  svg.addEventListener("pointermove", (event) => {
    const at = nearest(event), [x, y] = places[at], box = svg.getBoundingClientRect();
    const [left, down] = [(x - view[0]) / view[2] * box.width, (y - view[1]) / view[3] * box.height];
    dot.hidden = tip.hidden = false;
    cursor.setAttribute("d", `M${x} ${view[1]}V${view[1] + view[3]}`);
    dot.style.translate = `${left}px ${down}px`;
    tip.replaceChildren(Object.assign(document.createElement("strong"), { textContent: days[at].shown }), days[at].day);
    tip.style.left = `${Math.max(0, Math.min(left + 12, box.width - tip.offsetWidth))}px`;
    if (from === null) return;
    chosen.setAttribute("x", Math.min(x, places[from][0]));
    chosen.setAttribute("width", Math.abs(x - places[from][0]));
  });
  svg.addEventListener("pointerdown", (event) => { if (event.button === 0) { from = nearest(event); event.preventDefault(); } });
  svg.addEventListener("pointerup", (event) => {
    const to = nearest(event), begun = from;
    leave();
    if (begun !== null && Math.abs(to - begun) > 1) show(Math.min(begun, to), Math.max(begun, to));
  });
  svg.addEventListener("pointerleave", leave);
  svg.addEventListener("pointercancel", leave);
  whole.addEventListener("click", () => show(0, days.length - 1));
}

// A CSV file is read into the field of a table.
for (const input of document.querySelectorAll("input[data-reads]")) {
  input.parentElement.hidden = false;
  input.addEventListener("change", async () => {
    if (input.files[0]) document.getElementById(input.dataset.reads).value = await input.files[0].text();
  });
}

// Who opens what an unread notification is about has read it.
addEventListener("click", (event) => {
  const form = event.target.closest?.(".unread a.row")?.closest("li").querySelector("[data-marks-read]");
  if (!form) return;
  const sent = new URLSearchParams(new FormData(form)), button = form.querySelector("button");
  if (button.name) sent.set(button.name, button.value);
  fetch(form.action, { method: "POST", body: sent, keepalive: true, redirect: "manual" }).catch(() => {});
});

// A preset fills in fields of its form, named and valued as in a query; it is chosen while they have these values.
for (const button of document.querySelectorAll("[data-fills]")) {
  const fields = [...new URLSearchParams(button.dataset.fills)].map(([name, value]) => [button.form.elements[name], value]);
  const show = () => button.setAttribute("aria-pressed", String(fields.every(([field, value]) => field.value === value)));
  button.addEventListener("click", () => { for (const [field, value] of fields) field.value = value; button.form.dispatchEvent(new Event("input")); });
  button.form.addEventListener("input", show);
  button.hidden = false;
  show();
}

// A page about what is under way is read again until that has ended; not while somebody fills in a form of it.
const isUnderWay = () => document.querySelector("[data-under-way]") !== null;
const readAgain = (wait) => setTimeout(async () => {
  const main = document.querySelector("main");
  if (!document.hidden && !main.querySelector("details[open] form")) {
    try {
      const answer = await fetch(location.href);
      if (answer.redirected) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (answer.ok) main.replaceChildren(...page.querySelector("main").childNodes);
    } catch { /* The next attempt may succeed. */ }
  }
  if (isUnderWay()) readAgain(Math.min(wait * 1.4, 60000));
}, wait);
if (isUnderWay()) readAgain(1500);
