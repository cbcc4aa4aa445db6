// Which cases are shown: a state that lives in the address, so that a link shows what its sender saw.

const CHOICES = [
  { name: "kind", label: "Kind", of: (shown) => [shown.kind] },
  { name: "found", label: "Finding", of: (shown) => shown.found },
  { name: "workload", label: "Workload", of: (shown) => [shown.workload] },
  { name: "class", label: "Node class", of: (shown) => [shown.class] },
  { name: "build", label: "Build", of: (shown) => shown.builds },
  { name: "model", label: "Model", of: (shown) => shown.models },
  { name: "factor", label: "What differs", of: (shown) => shown.factors },
  { name: "flag", label: "Flag", of: (shown) => shown.flags },
  { name: "journal", label: "Journal", of: (shown) => [data.journals[shown.journal]] },
];

const ratioOr = (shown, otherwise) => (shown.ratio ? shown.ratio[0] : otherwise);
const SORTS = {
  worst: { label: "worst first", by: (one, other) => one.index - other.index },
  slowest: { label: "slowest first", by: (one, other) => ratioOr(one, Infinity) - ratioOr(other, Infinity) || one.index - other.index },
  fastest: { label: "fastest first", by: (one, other) => ratioOr(other, 0) - ratioOr(one, 0) || one.index - other.index },
  id: { label: "by id", by: (one, other) => (one.id < other.id ? -1 : one.id > other.id ? 1 : one.index - other.index) },
};

const filters = { status: new Set(), choice: {}, text: "", sort: "worst", view: "table", open: new Set() };

function readAddress() {
  const told = new URLSearchParams(location.hash.slice(1));
  filters.status = new Set((told.get("status") ?? "").split(",").filter((status) => data.statuses.includes(status)));
  filters.choice = Object.fromEntries(CHOICES.map(({ name }) => [name, told.get(name)]).filter(([, value]) => value));
  filters.text = told.get("q") ?? "";
  filters.sort = Object.hasOwn(SORTS, told.get("sort") ?? "") ? told.get("sort") : "worst";
  filters.view = told.get("view") === "forest" ? "forest" : "table";
  filters.open = new Set(told.getAll("case"));
}

function writeAddress() {
  const told = new URLSearchParams();
  if (filters.status.size) told.set("status", [...filters.status].join(","));
  for (const [name, value] of Object.entries(filters.choice)) told.set(name, value);
  if (filters.text) told.set("q", filters.text);
  if (filters.sort !== "worst") told.set("sort", filters.sort);
  if (filters.view !== "table") told.set("view", filters.view);
  for (const id of filters.open) told.append("case", id);
  history.replaceState(null, "", `#${told}`);
}

/** The cases that pass every filter but the statuses': what the counts on the status buttons count. */
function passing() {
  const asked = CHOICES.filter(({ name }) => filters.choice[name]);
  const words = filters.text.toLowerCase().split(/\s+/).filter(Boolean);
  return cases.filter((shown) =>
    asked.every(({ name, of }) => (of(shown) ?? []).includes(filters.choice[name])) &&
    words.every((word) => shown.heap.includes(word)));
}

function matching(found = passing()) {
  const wanted = filters.status.size ? found.filter((shown) => filters.status.has(shown.status)) : found;
  return [...wanted].sort(SORTS[filters.sort].by);
}

/** Draw the controls once; `changed` is called after each change of a filter. */
function makeFilters(changed) {
  const form = byId("filters");
  form.addEventListener("submit", (event) => event.preventDefault());
  form.append(statusButtons(changed), viewButtons(changed), searchField(changed), ...CHOICES.map((choice) => choiceField(choice, changed)),
    sortField(changed), element("button", { type: "button", id: "reset", onclick: () => reset(changed) }, "Reset"));
}

function statusButtons(changed) {
  const toggle = (status) => {
    if (!filters.status.delete(status)) filters.status.add(status);
    changed();
  };
  const present = data.statuses.filter((status) => cases.some((shown) => shown.status === status));
  return element("fieldset", { class: "statuses" }, element("legend", {}, "Status"), present.map((status) =>
    element("button", { type: "button", class: `status ${status}`, "data-status": status, onclick: () => toggle(status) })));
}

function searchField(changed) {
  const typed = (event) => { filters.text = event.target.value; changed(); };
  return element("label", { class: "field" }, "Search ",
    element("input", { type: "search", id: "text", placeholder: "id, arm, reason: all words", autocomplete: "off", spellcheck: "false", oninput: typed }));
}

function choiceField({ name, label, of }, changed) {
  const counts = new Map();
  for (const shown of cases) for (const value of of(shown) ?? []) counts.set(value, (counts.get(value) ?? 0) + 1);
  if (counts.size < 2) return "";
  const chosen = (event) => {
    if (event.target.value) filters.choice[name] = event.target.value;
    else delete filters.choice[name];
    changed();
  };
  const options = [...counts].sort(([one], [other]) => one.localeCompare(other, "en", { numeric: true }));
  return element("label", { class: "field" }, label, element("select", { "data-choice": name, onchange: chosen },
    element("option", { value: "" }, "any"), options.map(([value, count]) => element("option", { value }, `${value} (${number(count)})`))));
}

function sortField(changed) {
  const chosen = (event) => { filters.sort = event.target.value; changed(); };
  return element("label", { class: "field" }, "Order", element("select", { id: "sort", onchange: chosen },
    Object.entries(SORTS).map(([value, { label }]) => element("option", { value }, label))));
}

function viewButtons(changed) {
  const show = (view) => { filters.view = view; changed(); };
  return element("fieldset", { class: "views" }, element("legend", {}, "View"), [["table", "Table"], ["forest", "Forest plot"]].map(([view, label]) =>
    element("button", { type: "button", "data-view": view, onclick: () => show(view) }, label)));
}

function reset(changed) {
  Object.assign(filters, { status: new Set(), choice: {}, text: "", sort: "worst" });
  changed();
  byId("text").focus();
}

/** Make the controls say what the state says. */
function showFilters() {
  const counts = new Map();
  for (const shown of passing()) counts.set(shown.status, (counts.get(shown.status) ?? 0) + 1);
  for (const button of document.querySelectorAll("[data-status]")) {
    const status = button.dataset.status;
    button.textContent = `${number(counts.get(status) ?? 0)} ${status}`;
    button.classList.toggle("none", !counts.get(status));
    button.setAttribute("aria-pressed", filters.status.has(status));
  }
  for (const select of document.querySelectorAll("[data-choice]")) {
    const value = filters.choice[select.dataset.choice] ?? "";
    select.value = value;
    select.classList.toggle("set", value !== "");
  }
  if (byId("text").value !== filters.text) byId("text").value = filters.text;
  byId("sort").value = filters.sort;
  for (const button of document.querySelectorAll("[data-view]")) button.setAttribute("aria-pressed", button.dataset.view === filters.view);
  byId("reset").disabled = !filters.status.size && !filters.text && filters.sort === "worst" && !Object.keys(filters.choice).length;
}
