// A form is sent once: a second click while the answer is on its way does nothing.
"use strict";

const sent = new WeakSet();
addEventListener("submit", (event) => {
  if (sent.has(event.target)) event.preventDefault();
  sent.add(event.target);
});
// A visitor who returns to a page may send its forms again.
addEventListener("pageshow", () => { for (const form of document.forms) sent.delete(form); });
