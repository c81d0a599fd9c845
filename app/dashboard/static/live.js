// Keeps a running session up to date: the same page is fetched again and its live part put in place.
"use strict";
(() => {
  const SECONDS = 2;
  const live = document.getElementById("live");
  const follow = async () => {
    if (document.visibilityState === "visible") {
      try {
        const response = await fetch(location.href, { credentials: "same-origin", redirect: "error" });
        if (response.ok) {
          const page = new DOMParser().parseFromString(await response.text(), "text/html");
          const fresh = page.getElementById("live");
          if (fresh && fresh.innerHTML !== live.innerHTML) {
            live.replaceChildren(...fresh.childNodes);
            live.dataset.state = fresh.dataset.state;
          }
        }
      } catch {
        // The next try may find the service again.
      }
    }
    if (live.dataset.state === "open") setTimeout(follow, SECONDS * 1000);
  };
  setTimeout(follow, SECONDS * 1000);
})();
