// Shows what was typed into the passwords of a form, and hides it again.
"use strict";

for (const button of document.querySelectorAll("[data-shows-passwords]")) {
  const fields = button.form.querySelectorAll("input[type=password]");
  button.hidden = false;
  button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", shown);
    for (const field of fields) field.type = shown ? "text" : "password";
  });
  // A password is not kept by the browser as ordinary text.
  button.form.addEventListener("submit", () => { for (const field of fields) field.type = "password"; });
}
