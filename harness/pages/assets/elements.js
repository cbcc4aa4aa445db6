// Elements are made here and nowhere else: what comes from the journal becomes text, never markup.

const byId = (id) => document.getElementById(id);

/** An element with attributes and children; attributes beginning with "on" are listeners, children that are no nodes become text. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== ""));
  return made;
}

/** A table of texts; the first column of each row is its head. */
function textTable(heads, rows, { caption, kind = "" } = {}) {
  const cell = (text, index) =>
    index === 0 ? element("th", { scope: "row" }, text) : element("td", { class: kind }, text);
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    element("table", { "aria-label": caption, class: kind },
      heads.length ? element("thead", {}, element("tr", {}, heads.map((head) => element("th", { scope: "col" }, head)))) : "",
      element("tbody", {}, rows.map((row) => element("tr", {}, row.map(cell))))));
}

const number = (count) => count.toLocaleString("en");
const plural = (count, word) => `${number(count)} ${word}${count === 1 ? "" : word.endsWith("s") ? "es" : "s"}`;

/** Undo what `packed` of embedding.py did. */
async function unpacked(base64) {
  const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}
