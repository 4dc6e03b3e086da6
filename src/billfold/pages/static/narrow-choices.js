// A search narrows the choices of a form to those that have every word; groups open while one of theirs is found.
"use strict";

for (const input of document.querySelectorAll("[data-narrows]")) {
  const groups = [...document.getElementById(input.dataset.narrows).querySelectorAll("details")];
  const count = (group) => {
    const boxes = [...group.querySelectorAll("[type=checkbox]")];
    group.querySelector("[data-counts]").textContent = `${boxes.filter((each) => each.checked).length} of ${boxes.length}`;
  };
  input.hidden = false;
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const group of groups) {
      let found = 0;
      for (const choice of group.querySelectorAll(".choice")) {
        choice.hidden = !words.every((each) => choice.textContent.toLowerCase().includes(each));
        found += !choice.hidden;
      }
      group.hidden = !found;
      if (words.length) group.open = found > 0;
    }
  });
  input.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
  for (const group of groups) {
    group.addEventListener("change", () => count(group));
    group.addEventListener("click", () => setTimeout(() => count(group)));
  }
}
