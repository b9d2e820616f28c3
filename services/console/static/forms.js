// A form that changes something is sent once: its buttons are disabled from the press until the page is shown anew.
"use strict";

document.addEventListener("submit", (event) => {
  if (event.target.getAttribute("method") !== "post") return;
  for (const button of event.target.querySelectorAll("button")) button.disabled = true;
});

// A browser that goes back may show the page as it was left.
window.addEventListener("pageshow", () => {
  for (const button of document.querySelectorAll('form[method="post"] button')) button.disabled = false;
});
