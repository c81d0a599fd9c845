// Shows the document that the page names. Nothing is asked of other sites.
const place = document.getElementById("explorer");
SwaggerUIBundle({
  url: place.dataset.document,
  domNode: place,
  deepLinking: true,
  validatorUrl: null,
});
