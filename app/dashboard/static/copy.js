// Beside each secret that is shown once: a button that copies it. Without this script the field is copied by hand.
"use strict";
for (const field of document.querySelectorAll("input.copy")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet small";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
      button.textContent = "Copied";
    } catch {
      // Browsers have no clipboard for pages without TLS: the field is selected, and the keyboard copies it.
      button.textContent = "Selected: press Ctrl+C";
    }
  });
  field.after(button);
}
