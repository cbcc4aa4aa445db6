// The data of the page, and what every other part asks of a case.

const data = JSON.parse(byId("data").textContent);
const cases = data.cases;

cases.forEach((each, index) => {
  each.index = index; // worst first, as the page was made
  each.heap = [each.id, each.what, each.reason, each.contrast, each.node, each.words, each.detail.slug]
    .filter(Boolean).join("\n").toLowerCase();
});

const jobOf = (shown) => data.jobs[`${shown.journal}/${shown.detail.job}`];
const arrow = (names) => names.join(" → ");

const PANELS = { pp: "Prompt processing", tg: "Token generation", both: "Prompt processing and generation", first: "Time to first token" };
