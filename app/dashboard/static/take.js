// Pages of people who answer by a link work without this. It makes the key that lets the same form be sent again, and
// takes the code of a receipt from behind # in the address, which no server sees.
"use strict";
for (const field of document.querySelectorAll("input[name=key]")) {
  if (field.value === "") {
    const bytes = crypto.getRandomValues(new Uint8Array(32));
    field.value = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  }
}
const receipt = document.querySelector("input#receipt");
if (receipt !== null && location.hash.length > 1) receipt.value = location.hash.slice(1);
