// Shows the document that the page names. Nothing is asked of other sites.
// Its style sheet has dark colors for a class, and asks no setting of the device.
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();
const place = document.getElementById("explorer");
SwaggerUIBundle({
  url: place.dataset.document,
  domNode: place,
  deepLinking: true,
  validatorUrl: null,
});
