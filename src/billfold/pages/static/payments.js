// Payees are found by typing, and what a form adds up to, or leaves in the Pocket, is said at once.
"use strict";

const centsIn = (text) => /^\$?(\d+|\d{1,3}(,\d{3})+)(\.\d{1,2})?$/.test(text.trim()) ? Math.round(Number(text.replace(/[$,]/g, "")) * 100) : 0;
let pickers = 0;

// The payees that the list at an address has for a text, each with why it cannot be paid, if so.
async function findPayees(address, text) {
  try {
    const answer = await fetch(`${address}?${new URLSearchParams({ text })}`);
    if (!answer.ok || answer.redirected) return [];
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    return [...page.querySelectorAll("[data-results] [data-choice]")].map((each) => ({ value: each.dataset.choice, ...each.dataset }));
  } catch { return []; }
}

// A select among many becomes a field: it finds among its own options, and from two letters on in the list at `data-finds`.
function makePicker(select) {
  const number = ++pickers, empty = select.options[0].textContent;
  const box = Object.assign(document.createElement("div"), { className: "picker" });
  const input = Object.assign(document.createElement("input"), { type: "text", autocomplete: "off", placeholder: empty, spellcheck: false });
  const list = Object.assign(document.createElement("ul"), { id: `picked-${number}`, hidden: true }), hint = Object.assign(document.createElement("p"), { className: "hint" });
  for (const name of ["aria-label", "aria-describedby", "aria-invalid"]) if (select.hasAttribute(name)) input.setAttribute(name, select.getAttribute(name));
  for (const [name, value] of Object.entries({ role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id })) input.setAttribute(name, value);
  if (select.id) { input.id = select.id; select.id = `${select.id}-chosen`; }
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Payees");
  select.before(box);
  box.append(input, list, hint, select);
  select.hidden = true;
  const own = [...select.options].filter((each) => each.value && each.dataset.name).map((each) => ({ value: each.value, ...each.dataset }));
  const keeps = select.name.startsWith("row.");
  let shown = [], at = 0, wait = 0;
  const say = () => {
    const option = select.selectedOptions[0];
    input.value = select.value ? option.dataset.name || option.textContent : "";
    hint.textContent = select.value ? option.dataset.hint || "" : "";
  };
  const close = () => { list.hidden = true; input.setAttribute("aria-expanded", "false"); input.removeAttribute("aria-activedescendant"); };
  const choose = (each) => {
    if (!each || each.why) return;
    let option = [...select.options].find((one) => one.value === each.value);
    if (!option) select.append(option = new Option(each.name, each.value));
    Object.assign(option.dataset, { name: each.name, hint: each.hint || "", way: each.way || "" });
    select.value = each.value;
    say();
    close();
    select.dispatchEvent(new Event("change", { bubbles: true }));
  };
  // A row keeps a text that chooses nobody: the preview asks who is meant, or lets them be added.
  const keep = () => {
    const text = input.value.trim(), option = select.selectedOptions[0];
    if (keeps && text && !(select.value && text === (option.dataset.name || option.textContent))) choose({ value: text, name: text, hint: "The preview asks who this is." });
  };
  const show = () => {
    at = Math.max(0, Math.min(at, shown.length - 1));
    list.replaceChildren(...shown.map((each, n) => {
      const item = Object.assign(document.createElement("li"), { id: `picked-${number}-${n}` });
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", String(n === at));
      if (each.why) item.setAttribute("aria-disabled", "true");
      item.append(each.name, Object.assign(document.createElement("span"), { className: "hint", textContent: each.why || each.hint || "" }));
      item.addEventListener("pointerdown", (event) => { event.preventDefault(); choose(each); });
      return item;
    }));
    if (!shown.length) list.replaceChildren(Object.assign(document.createElement("li"), { className: "hint", textContent: keeps ? "No payee is called so. The preview lets you add it." : "No payee is called so." }));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    const active = list.querySelector("[aria-selected=true]");
    if (active) { input.setAttribute("aria-activedescendant", active.id); active.scrollIntoView({ block: "nearest" }); }
  };
  const find = () => {
    const text = input.value.trim(), words = text.toLowerCase().split(/\s+/);
    const found = own.filter((each) => words.every((word) => `${each.name} ${each.hint}`.toLowerCase().includes(word)));
    shown = found.slice(0, 12);
    show();
    clearTimeout(wait);
    if (text.length > 1) wait = setTimeout(async () => {
      const more = await findPayees(select.dataset.finds, text);
      if (text !== input.value.trim() || document.activeElement !== input) return;
      const known = new Set(shown.map((each) => each.value));
      shown = [...shown, ...more.filter((each) => !known.has(each.value))];
      show();
    }, 150);
  };
  input.addEventListener("input", () => { at = 0; find(); });
  input.addEventListener("focus", () => { input.select(); });
  input.addEventListener("click", () => { if (list.hidden) { shown = own.slice(0, 12); at = 0; show(); } });
  input.addEventListener("blur", () => {
    keep();
    if (!input.value.trim() && select.value) { select.value = ""; select.dispatchEvent(new Event("change", { bubbles: true })); }
    say();
    close();
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !list.hidden) { event.preventDefault(); close(); }
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (list.hidden) return find();
      at += event.key === "ArrowDown" ? 1 : -1;
      show();
    } else if (event.key === "Enter" && !list.hidden) { event.preventDefault(); choose(shown[at]); }
    else if (event.key === "Enter") keep();
  });
  // A choice in a row of a preview is a correction, which is sent at once.
  select.addEventListener("change", () => { if (select.name.startsWith("fix.") && select.value) select.form.requestSubmit(); });
  say();
}

// Payments that are typed one below the other: rows are added, and the amounts are summed.
for (const form of document.querySelectorAll("[data-sums]")) {
  const body = form.querySelector("tbody"), adds = form.querySelector("[data-adds]"), sum = form.querySelector("output"), origin = form.querySelector("#origin");
  const blank = body.lastElementChild.cloneNode(true);
  const count = () => {
    const cents = [...body.querySelectorAll("[name$='.amount']")].map((each) => centsIn(each.value)).filter(Boolean);
    const total = cents.reduce((all, each) => all + each, 0), has = origin.selectedOptions[0]?.dataset.cents;
    sum.textContent = total ? `${cents.length} ${cents.length === 1 ? "payment" : "payments"}, ${dollars.format(total / 100)}` : "";
    sum.classList.toggle("down", has !== undefined && total > Number(has));
    if (total && has !== undefined) sum.append(Object.assign(document.createElement("span"), { className: "hint", textContent: total > has ? `${dollars.format((total - has) / 100)} more than available today` : `leaves ${dollars.format((has - total) / 100)} available today` }));
  };
  adds.addEventListener("click", (event) => {
    event.preventDefault();
    const number = body.children.length + 1, row = blank.cloneNode(true);
    for (const each of row.querySelectorAll("[name]")) {
      each.name = each.name.replace(/\d+/, number);
      each.setAttribute("aria-label", each.getAttribute("aria-label").replace(/\d+/, number));
      each.value = "";
    }
    body.append(row);
    makePicker(row.querySelector("select"));
    row.querySelector("input").focus();
    adds.hidden = number >= Number(form.dataset.sums);
  });
  form.addEventListener("input", count);
  form.addEventListener("change", count);
  addEventListener("pageshow", count);
}

for (const select of document.querySelectorAll("select[data-finds]")) makePicker(select);

// One payment: what it leaves, and when it arrives by the way its payee is paid.
for (const form of document.querySelectorAll("[data-leaves]")) {
  const left = form.querySelector("[data-left]"), to = form.querySelector("[name=to]"), ways = form.querySelectorAll("[data-way-of]");
  const show = () => {
    const has = form.querySelector("#origin").selectedOptions[0]?.dataset.cents, cents = centsIn(form.querySelector("#amount").value);
    left.hidden = !cents || has === undefined;
    left.textContent = left.hidden ? "" : cents > has ? `${dollars.format((cents - has) / 100)} more than is available today.` : `Leaves ${dollars.format((has - cents) / 100)} available today.`;
    left.classList.toggle("down", !left.hidden && cents > has);
    const way = to.selectedOptions[0]?.dataset.way;
    for (const each of ways) each.hidden = each.dataset.wayOf !== way;
  };
  show();
  form.addEventListener("input", show);
  form.addEventListener("change", show);
  addEventListener("pageshow", show);
}

// The bank of a routing number is said as soon as the number is complete.
for (const input of document.querySelectorAll("[data-names-bank]")) {
  const place = Object.assign(document.createElement("p"), { className: "hint" }), bank = input.form.querySelector("[name=institution_name]");
  const usual = document.getElementById(`${input.id}-hint`);
  place.setAttribute("role", "status");
  (usual || input).after(place);
  const ask = async () => {
    place.textContent = "";
    if (usual) usual.hidden = false;
    if (!/^\d{9}$/.test(input.value.trim())) return;
    const sent = new FormData(input.form), number = input.value.trim();
    try {
      const answer = await fetch(`${input.dataset.namesBank}?${new URLSearchParams({ type: sent.get("type"), routing_number: number })}`);
      if (!answer.ok || answer.redirected || input.value.trim() !== number) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html"), said = page.querySelector("#bank-of-number");
      place.textContent = said ? said.textContent : "";
      if (usual) usual.hidden = Boolean(place.textContent);
      if (said?.dataset.bank && bank && !bank.value) bank.value = said.dataset.bank;
    } catch { /* The bank can be typed. */ }
  };
  input.addEventListener("input", ask);
  ask();
}
