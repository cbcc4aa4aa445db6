// From the address to the page, and back with every change.

function draw() {
  const found = passing();
  const matches = matching(found);
  showFilters();
  byId("shown").textContent = matches.length === cases.length ? plural(cases.length, "case") : `${number(matches.length)} of ${plural(cases.length, "case")}`;
  byId("table-view").hidden = filters.view !== "table";
  byId("forest-view").hidden = filters.view !== "forest";
  if (filters.view === "forest") {
    drawForest(matches);
    return;
  }
  const lastOpen = matches.findLastIndex((shown) => filters.open.has(shown.id));
  drawTable(matches, lastOpen + 1);
}

function changed() {
  writeAddress();
  draw();
}

function start() {
  document.body.classList.add("scripted"); // the buttons have the counts
  makeFilters(changed);
  readAddress();
  draw();
  if (filters.open.size) document.querySelector("tr.open")?.scrollIntoView();
  addEventListener("hashchange", () => { readAddress(); draw(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawPlots);
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
    byId("text").focus();
    event.preventDefault();
  });
}

start();
