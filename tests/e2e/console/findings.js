// What of this page is not as it must be, each with a sentence. Colours are those that the browser computed.
() => {
  const found = [];
  const seen = (element) => element.getClientRects().length > 0;
  const named = (element) =>
    (element.labels && [...element.labels].some((label) => seen(label) && label.textContent.trim())) ||
    element.getAttribute("aria-label") ||
    element.getAttribute("aria-labelledby");

  for (const control of document.querySelectorAll("input:not([type=hidden]), select, textarea")) {
    if (seen(control) && !named(control)) found.push(`no label: ${control.outerHTML.slice(0, 80)}`);
  }
  for (const control of document.querySelectorAll("a[href], button")) {
    if (!control.textContent.trim() && !named(control)) found.push(`no text: ${control.outerHTML.slice(0, 80)}`);
  }
  for (const landmark of ["header", "nav[aria-label]", "main", "footer"]) {
    if (document.querySelectorAll(landmark).length !== 1) found.push(`not one ${landmark}`);
  }
  if (document.querySelectorAll("h1").length !== 1) found.push("not one h1");
  if (!document.documentElement.lang) found.push("no language");
  if (!document.title.trim()) found.push("no title");
  for (const table of document.querySelectorAll("table")) {
    if (!table.querySelector("th[scope]")) found.push(`table without headers: ${table.id}`);
  }
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  for (const id of new Set(ids)) {
    if (ids.filter((other) => other === id).length > 1) found.push(`id twice: ${id}`);
  }

  const channels = (colour) => {
    const numbers = colour.match(/[\d.]+/g).map(Number);
    return { rgb: numbers.slice(0, 3), alpha: numbers.length > 3 ? numbers[3] : 1 };
  };
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((value) => value / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const { rgb, alpha } = channels(getComputedStyle(at).backgroundColor);
      if (alpha === 1) return rgb;
    }
    return matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255];
  };
  const told = new Set();
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !seen(element) || element.closest(".unseen, svg")) continue;
    const style = getComputedStyle(element);
    const [light, dark] = [luminance(channels(style.color).rgb), luminance(ground(element))].sort((a, b) => b - a);
    const contrast = (light + 0.05) / (dark + 0.05);
    const line = `contrast ${contrast.toFixed(2)}: ${element.tagName}.${element.className}`;
    if (contrast < 4.5 && !told.has(line)) found.push(line);
    told.add(line);
  }
  return found;
}
