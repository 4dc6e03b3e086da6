// What helps where there is a script: results while one types, copying of code, the language chosen last.
"use strict";

const field = document.getElementById("q");
const found = document.getElementById("found");
const count = document.getElementById("found-count");
let sections = null;

async function search() {
  const words = field.value.toLowerCase().match(/[\p{L}\p{N}_.-]+/gu) || [];
  if (words.length === 0) return show([]);
  sections ??= fetch("/docs/search.json").then((answer) => answer.json());
  const rated = [];
  for (const [address, title, heading] of await sections) {
    const name = `${title} ${address.split("/").pop()}`.toLowerCase(), below = heading.toLowerCase();
    if (!words.every((word) => isIn(`${name} ${below}`, word))) continue;
    rated.push([(heading ? 1 : 0) + (name.startsWith(words[0]) ? 0 : 2), { address, title, heading }]);
  }
  rated.sort((one, other) => one[0] - other[0]);
  show(rated.slice(0, 8).map((each) => each[1]));
}

// A word is in a text if it is a part of it, or differs from one of its words by a letter: two in a long one.
function isIn(text, word) {
  if (text.includes(word)) return true;
  const most = word.length < 4 ? 0 : word.length < 7 ? 1 : 2;
  return most > 0 && text.split(/[^\p{L}\p{N}]+/u).some((each) => distance(each, word) <= most);
}

function distance(one, other) {
  if (Math.abs(one.length - other.length) > 2) return 3;
  let row = [...Array(other.length + 1).keys()];
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++)
      next[j] = Math.min(next[j - 1] + 1, row[j] + 1, row[j - 1] + (one[i - 1] === other[j - 1] ? 0 : 1));
    row = next;
  }
  return row[other.length];
}

function show(results) {
  found.replaceChildren(...results.map(({ address, title, heading }) => {
    const item = document.createElement("li"), link = document.createElement("a"), below = document.createElement("span");
    link.href = address;
    below.textContent = heading;
    link.append(title, below);
    item.append(link);
    return item;
  }));
  found.hidden = results.length === 0;
  count.textContent = field.value ? `${results.length} suggestions; Enter searches the text of all pages` : "";
}

field.addEventListener("input", search);
document.addEventListener("keydown", (event) => {
  const links = [...found.querySelectorAll("a")];
  const place = links.indexOf(document.activeElement);
  const isInSearch = document.activeElement === field || place >= 0;
  if (event.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) field.focus();
  else if (event.key === "Escape" && isInSearch) { show([]); field.focus(); }
  else if (event.key === "ArrowDown" && isInSearch) links[Math.min(place + 1, links.length - 1)]?.focus();
  else if (event.key === "ArrowUp" && place >= 0) (links[place - 1] || field).focus();
  else return;
  event.preventDefault();
});
document.addEventListener("click", (event) => { if (!event.target.closest("[role=search]")) show([]); });

for (const block of document.querySelectorAll("pre")) {
  const frame = document.createElement("div"), button = document.createElement("button");
  frame.className = "copyable";
  button.className = "copy";
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.textContent);
    button.textContent = "Copied";
  });
  block.replaceWith(frame);
  frame.append(block, button);
}

for (const choice of document.querySelectorAll(".tabs input")) {
  if (choice.value === localStorage.getItem("language")) choice.checked = true;
  choice.addEventListener("change", () => localStorage.setItem("language", choice.value));
}
document.querySelector(".pages [aria-current=page]")?.scrollIntoView({ block: "nearest" });
