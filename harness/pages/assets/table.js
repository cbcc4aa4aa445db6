// The overview: a row for each case, so many at a time that the page stays quick, and below an opened one its details.

const ROWS_AT_ONCE = 100;
const FIGURES = 4;
const COLUMNS = 3 + FIGURES;
const table = { matches: [], drawn: 0, reach: 1 };

/** Draw the rows of these cases anew; `atLeast` rows are drawn at once. */
function drawTable(matches, atLeast = ROWS_AT_ONCE) {
  const place = byId("table-view");
  Object.assign(table, { matches, drawn: 0, reach: axisReach(matches) });
  if (!matches.length) {
    place.replaceChildren(element("p", { class: "empty" }, "No case passes these filters. Reset shows all of them."));
    return;
  }
  const body = element("tbody");
  const more = element("p", { class: "more" });
  place.replaceChildren(element("table", { class: "cases", "aria-label": "Cases", "aria-rowcount": matches.length + 1 }, tableHead(), body), more);
  drawMore(Math.max(ROWS_AT_ONCE, atLeast));
}

function drawMore(count) {
  const body = byId("table-view").querySelector("tbody");
  const next = table.matches.slice(table.drawn, table.drawn + count);
  body.append(...next.map(tableRow));
  table.drawn += next.length;
  for (const row of body.querySelectorAll("tr.row")) {
    if (filters.open.has(row.dataset.case) && !row.classList.contains("open")) openRow(row);
  }
  drawMoreButtons();
}

function drawMoreButtons() {
  const rest = table.matches.length - table.drawn;
  const ask = (count) => () => {
    const first = table.drawn;
    drawMore(count);
    byId("table-view").querySelectorAll("button.case")[first].focus();
  };
  byId("table-view").querySelector(".more").replaceChildren(...(rest <= 0 ? [] : [
    `${number(table.drawn)} of ${number(table.matches.length)} are listed. `,
    element("button", { type: "button", onclick: ask(ROWS_AT_ONCE) }, `Show ${number(Math.min(rest, ROWS_AT_ONCE))} more`), " ",
    element("button", { type: "button", onclick: ask(rest) }, `Show all ${number(table.matches.length)}`),
  ]));
}

function tableHead() {
  const scale = `${axisText(1 / table.reach)} .. ${axisText(table.reach)}`;
  const heads = [["Verdict"], ["Workload"], ["Case"], ["t/s, ms, MiB", "figure"], ["Change", "figure"], ["Interval", "figure"],
    [table.matches.some((shown) => shown.ratio) ? `Ratio ${scale}` : "", "figure"]];
  return element("thead", {}, element("tr", {}, heads.map(([text, name]) => element("th", { scope: "col", class: name }, text))));
}

function tableRow(shown) {
  const opens = element("button", { type: "button", class: "case", "aria-expanded": "false", "aria-controls": `detail-${shown.index}`,
    title: shown.id }, `${shown.what || shown.id}${shown.synthetic ? " *" : ""}`);
  const about = [shown.kind, shown.contrast, arrow(shown.models), data.journals.length > 1 ? data.journals[shown.journal] : ""].filter(Boolean).join(" · ");
  const figures = figureCells(shown);
  const row = element("tr", { class: "row", "data-case": shown.id, "data-index": shown.index },
    element("td", { class: "word" }, element("span", { class: `status ${shown.status}` }, shown.words)),
    element("td", { class: "tight" }, shown.workload, element("div", { class: "dim" }, `@${shown.class}`)),
    element("td", { class: "what", colspan: figures.length ? 1 : 1 + FIGURES }, opens, " ", element("span", { class: "dim" }, about),
      shown.status === "pass" ? "" : element("div", { class: "reason" }, bareReason(shown))),
    figures);
  opens.addEventListener("click", () => (row.classList.contains("open") ? closeRow(row) : openRow(row)));
  opens.addEventListener("keydown", moveBetweenRows);
  return row;
}

/** The cells of speeds, change, interval and plot; none where there is no figure, and the reason has their room. */
function figureCells(shown) {
  if (!shown.speeds && !shown.figure) return [];
  return [
    element("td", { class: "figure" }, shown.speeds),
    element("td", { class: "figure" }, shown.figure),
    element("td", { class: "figure" }, shown.interval, shown.assumed ? element("div", { class: "dim" }, shown.assumed) : ""),
    element("td", { class: "figure plotted" }, shown.ratio ? bar(shown) : ""),
  ];
}

/** The reason without the word that the verdict's column has. */
function bareReason({ status, found, reason }) {
  const word = [status, ...(found ?? [])].find((each) => reason.startsWith(`${each}: `));
  return word ? reason.slice(word.length + 2) : reason;
}

/** Up and down go from case to case: with hundreds of rows, Tab alone is a long way. */
function moveBetweenRows(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  const buttons = [...byId("table-view").querySelectorAll("button.case")];
  const next = buttons[buttons.indexOf(event.currentTarget) + step];
  if (next) next.focus();
  event.preventDefault();
}

function openRow(row) {
  const shown = cases[Number(row.dataset.index)];
  row.classList.add("open");
  row.querySelector(".case").setAttribute("aria-expanded", "true");
  const place = element("div", { class: "about" });
  row.after(element("tr", { class: "opened", id: `detail-${shown.index}` }, element("td", { colspan: COLUMNS }, place)));
  drawDetail(shown, place);
  filters.open.add(shown.id);
  writeAddress();
}

function closeRow(row) {
  row.classList.remove("open");
  row.querySelector(".case").setAttribute("aria-expanded", "false");
  row.nextElementSibling.remove();
  filters.open.delete(row.dataset.case);
  writeAddress();
}

// ---- a ratio and its interval in a row, on the axis that all rows share ----

const REACHES = [1.02, 1.05, 1.1, 1.25, 1.5, 2, 4, 10, 100];
const axisText = (ratio) => (ratio < 0.1 || ratio >= 10 ? String(Number(ratio.toPrecision(2))) : ratio.toFixed(2));

/** The smallest axis around no change on which nine in ten of the ratios and twice their margins lie. */
function axisReach(matches) {
  const far = matches.filter((shown) => shown.ratio)
    .map((shown) => Math.max(Math.abs(Math.log(shown.ratio[0])), 2 * Math.log1p(shown.margin))).sort((one, other) => one - other);
  const needed = far.length ? far[Math.floor(0.9 * (far.length - 1))] : 0;
  return REACHES.find((reach) => 0.95 * Math.log(reach) >= needed) ?? REACHES.at(-1);
}

function bar(shown) {
  const at = (ratio) => 50 + 50 * (Math.log(ratio) / Math.log(table.reach));
  const inside = (place) => Math.max(0, Math.min(100, place));
  const [value, low, high] = shown.ratio.map(at);
  const margin = [1 / (1 + shown.margin), 1 + shown.margin].map(at).map(inside);
  const made = element("span", { class: "bar", "aria-hidden": "true" });
  const put = (name, left, width, text = "") => {
    const part = element("span", { class: name }, text);
    part.style.left = `${left}%`;
    if (width !== undefined) part.style.width = `${width}%`;
    made.append(part);
  };
  put("band", margin[0], margin[1] - margin[0]);
  put("one", 50);
  if (high > 0 && low < 100) put(`line${shown.assumed ? " assumed" : ""}`, inside(low), inside(high) - inside(low));
  if (value >= 0 && value <= 100) put("point", value);
  if (low < 0) put("cut", 0, undefined, "◂");
  if (high > 100) put("cut", 95, undefined, "▸");
  return made;
}
