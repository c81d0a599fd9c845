// Beside each secret that is shown once: a button that copies it. Without this script the field is copied by hand.
// Pages in other languages give its words as data of their script element.
"use strict";
const { copy = "Copy", copied = "Copied", selected = "Selected: press Ctrl+C" } = document.currentScript.dataset;
for (const field of document.querySelectorAll("input.copy")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet small";
  button.textContent = copy;
  button.addEventListener("click", async () => {
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
      button.textContent = copied;
    } catch {
      // Browsers have no clipboard for pages without TLS: the field is selected, and the keyboard copies it.
      button.textContent = selected;
    }
  });
  field.after(button);
}
