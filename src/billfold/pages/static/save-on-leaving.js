// Saves a form when its page is left without a button: another app on a phone, a closed tab, the way back.
"use strict";

const form = document.querySelector("[data-saved-on-leaving]");
const filled = () => new URLSearchParams(new FormData(form)).toString();
let saved = filled();

form.addEventListener("submit", () => { saved = null; });
addEventListener("pageshow", (event) => { if (event.persisted) saved = filled(); });
document.addEventListener("visibilitychange", async () => {
  const now = filled();
  if (document.visibilityState === "visible" || saved === null || now === saved) return;
  saved = now;
  const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(`${now}&go=stay`), keepalive: true });
  if (answer.status === 409) return; // what somebody else has saved is shown with the next button
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const mark = page.querySelector("[name=mark]");
  if (mark) {
    form.elements.mark.value = mark.value;
    saved = filled();
  }
});
