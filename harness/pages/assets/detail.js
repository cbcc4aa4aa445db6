// What is shown below an opened case. A part that has nothing to say is not there.

function drawDetail(shown, place) {
  const job = jobOf(shown);
  place.append(
    verdictPart(shown, job),
    ...nightsPart(shown),
    ...tracePart(shown, job),
    ...outputsPart(shown),
    ...effectsPart(shown),
    element("div", { class: "columns" }, memoryPart(shown, job), placementPart(shown, job), machinePart(shown, job), statePart(shown, job), flagsPart(shown, job)),
    replayPart(shown),
  );
}

const text = (index) => data.texts[index];
const part = (title, ...children) => element("section", { "aria-label": title }, element("h3", {}, title), ...children);

function facts(pairs) {
  const told = pairs.filter(([, value]) => value !== "" && value !== undefined && value !== null);
  return element("dl", { class: "facts" }, told.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

function verdictPart(shown, job) {
  const { detail } = shown;
  const speeds = detail.speeds.map(([label, figure, spread, processes]) =>
    [label, figure, spread && `scatter ${spread}`, plural(processes, "process")].filter(Boolean).join(", "));
  return element("section", { "aria-label": "Verdict" },
    element("p", { class: "reason-full" }, element("span", { class: `status ${shown.status}` }, shown.words), " ", bareReason(shown)),
    facts([
      ["case", element("code", {}, shown.id)],
      ["contrast", shown.contrast],
      ["expected", detail.expected],
      ["error", detail.slug],
      ["source", detail.source.filter(Boolean).join("; use instead: ")],
      ["speeds", speeds.length ? element("div", {}, speeds.map((line) => element("div", {}, line))) : ""],
      ["change by quad", detail.quads.join(", ")],
      ["void", text(detail.void)],
      ["schedule", job?.design],
      ["ended", job && [job.end, job.failure, job.finished ? "" : "the journal has no end of this job", job.lost ? `${plural(job.lost, "process")} of it are lost` : ""].filter(Boolean).join("; ")],
      ["tries", job && job.tries.length > 1 ? element("div", {}, job.tries.map((line) => element("div", {}, line))) : ""],
      ["known scatter", job?.spreads[shown.workload]],
    ]));
}

// ---- each process start in order ----

function tracePart(shown, job) {
  const trace = job?.traces[shown.workload];
  if (!job?.processes.length) return [];
  const steps = job.processes.map((process, index) => ({ ...process, ...(trace?.processes[index] ?? { kept: [], warmup: [], half: false }), index }))
    .filter((step) => shown.detail.places.includes(step.arm) && (shown.kind !== "equivalence" || step.answers));
  if (!steps.length) return [];
  const unit = trace?.unit ?? "";
  const title = trace ? `Process starts in order, ${shown.workload} in ${unit}` : "Process starts in order";
  const target = trace && steps.some((step) => step.kept.length) ? plotPlace(`${title}; the list below has the figures`, 250) : "";
  const made = part(title, target && traceLegend(shown, job), target,
    element("details", { open: !target }, element("summary", {}, `List of ${plural(steps.length, "process")}`), processTable(shown, steps, job, unit)));
  if (target) target.style.maxWidth = `${Math.max(480, 90 + 55 * steps.length)}px`;
  if (target) requestAnimationFrame(() => plot(target, (palette) => traceFigure(shown, job, steps, unit, palette)));
  return [made];
}

function traceLegend(shown, job) {
  const labels = shown.detail.places.filter((place) => place >= 0).flatMap((place) => [
    element("span", { class: `arm${place}` }, `${["●", "◆", "■", "▲"][place]} ${armName(job, place)}`), "  "]);
  return element("p", { class: "dim" }, labels, "large: median of a process; small: its repetitions; hollow grey: not judged, with the reason on hover and in the list");
}

const role = (job, place) => (job.arms.length === 2 ? ["baseline", "candidate"][place] : job.arms.length === 1 ? "" : job.arms[place].label);
const armName = (job, place) => (job.arms.length === 2 ? ["baseline ", "candidate "][place] : "") + job.arms[place].label;
/** Why the speed of a process is not judged. */
const whyNot = (step, job) => step.why || (step.half ? (job.arms.length === 2 ? "its quad is not whole" : "its block is not whole") : "");

/** The median on a log scale, as it is judged. */
function middle(figures) {
  const sorted = [...figures].sort((one, other) => one - other);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : Math.sqrt(sorted[half - 1] * sorted[half]);
}

const digits = (figure) => (figure >= 1000 ? figure.toFixed(0) : figure.toPrecision(4));
const unitName = (step, job) => (step.unit < 0 ? "" : `${job.arms.length === 2 ? "quad" : "block"} ${step.unit + 1}`);

function traceFigure(shown, job, steps, unit, palette) {
  const symbols = ["circle", "diamond", "square", "triangle-up"];
  const timed = steps.filter((step) => step.kept.length);
  const at = (step) => steps.indexOf(step) + 1;
  const told = (step) => plain([`process ${at(step)}: ${armName(job, step.arm)}`, unitName(step, job), `${digits(middle(step.kept))} ${unit}`, whyNot(step, job)].filter(Boolean).join("\n")).replaceAll("\n", "<br>");
  const traces = shown.detail.places.filter((place) => place >= 0).flatMap((place) => {
    const ours = timed.filter((step) => step.arm === place);
    const colour = (step) => (whyNot(step, job) ? palette.dim : palette.arms[place]);
    return [
      { mode: "markers", hoverinfo: "skip", x: ours.flatMap((step) => step.kept.map(() => at(step))), y: ours.flatMap((step) => step.kept),
        marker: { size: 4, opacity: 0.55, color: ours.flatMap((step) => step.kept.map(() => colour(step))) } },
      { mode: "markers", hoverinfo: "text", text: ours.map(told), x: ours.map(at), y: ours.map((step) => middle(step.kept)),
        marker: { size: 10, symbol: ours.map((step) => symbols[place] + (whyNot(step, job) ? "-open" : "")), color: ours.map(colour), line: { width: 1.5, color: ours.map(colour) } } },
    ];
  });
  const units = [...new Set(steps.map((step) => step.unit))].map((each) => steps.filter((step) => step.unit === each)).filter((found) => found[0].unit >= 0);
  const ends = (found) => [at(found[0]) - 0.5, at(found.at(-1)) + 0.5];
  const shapes = units.flatMap((found, index) => {
    const [x0, x1] = ends(found);
    const isOut = found.every((step) => whyNot(step, job));
    return (index % 2 === 0 || isOut) ? [{ type: "rect", layer: "below", yref: "paper", y0: 0, y1: 1, x0, x1, line: { width: 0 }, fillcolor: palette.band, opacity: isOut ? 1 : 0.5 }] : [];
  });
  const named = units.length <= 30 ? units : units.filter((_, index) => index % Math.ceil(units.length / 30) === 0);
  const annotations = named.map((found) => {
    const [x0, x1] = ends(found);
    const isVoid = found.some((step) => step.why.startsWith("void"));
    return { x: (x0 + x1) / 2, y: 1, yref: "paper", yanchor: "bottom", showarrow: false, font: { color: palette.dim, size: 11 }, text: plain(`${unitName(found[0], job)}${isVoid ? " void" : ""}`) };
  });
  return { traces, layout: { shapes, annotations, margin: { l: 10, r: 10, t: 20, b: 34 },
    xaxis: { title: { text: "process start", font: { size: 11 } }, range: [0.4, steps.length + 0.6], dtick: steps.length <= 30 ? 1 : undefined, showgrid: false },
    yaxis: { title: { text: unit, standoff: 10, font: { size: 11 } }, rangemode: "normal" } } };
}

function processTable(shown, steps, job, unit) {
  const list = (figures) => figures.map(digits).join("  ");
  const counts = (step) => (unit ? whyNot(step, job) || "judged" : step.failed ? step.why : "judged");
  const columns = [
    ["#", (step, index) => String(index + 1)],
    ["arm", (step) => role(job, step.arm)],
    ["place", (step) => unitName(step, job) || "burn-in"],
    [`median ${unit}`, (step) => (step.kept.length ? digits(middle(step.kept)) : "")],
    ["kept", (step) => list(step.kept)],
    ["warm-up", (step) => list(step.warmup)],
    ["load, s", (step) => (step.load === null ? "" : step.load.toFixed(2))],
    ["whole, s", (step) => step.wall.toFixed(1)],
    ["peak, MiB", (step) => step.peak.toFixed(1)],
    ["counts", counts],
  ].map(([head, cell]) => [head, steps.map(cell)]).filter(([, cells]) => cells.some(Boolean));
  return textTable(columns.map(([head]) => head), steps.map((_, index) => columns.map(([, cells]) => cells[index])), { caption: `Process starts of ${shown.what}` });
}

// ---- outputs, effects ----

function outputsPart(shown) {
  const [detail, scope] = [text(shown.detail.detail), text(shown.detail.scope)];
  const made = [];
  if (detail) made.push(part(scope ? "Outputs" : "End of the engine's log", element("pre", { class: "diff", tabindex: "0" }, detail.split("\n").map(diffLine))));
  if (scope) made.push(part("What the check of outputs shows, and what not", element("p", {}, scope)));
  return made;
}

function diffLine(line) {
  const side = line.startsWith("- ") ? "minus" : line.startsWith("+ ") ? "plus" : "";
  if (side) return element("span", { class: side }, `${line}\n`);
  const words = line.split(/(\[-.*?-\]|\{\+.*?\+\})/).map((piece) =>
    piece.startsWith("[-") && piece.endsWith("-]") ? element("del", {}, piece)
      : piece.startsWith("{+") && piece.endsWith("+}") ? element("ins", {}, piece) : piece);
  return element("span", {}, words, "\n");
}

function effectsPart(shown) {
  if (!shown.detail.effects.length) return [];
  return [part("What is due to which factor", textTable(["effect", "change", "interval", "judged"],
    shown.detail.effects.map(([name, figure, interval, word]) => [name, figure || "unknown", interval, word || "shown, not judged"]), { caption: "Effects" }))];
}

// ---- memory, placement, machine ----

const placesOf = (shown) => shown.detail.places.filter((place) => place >= 0);

function memoryPart(shown, job) {
  const places = placesOf(shown);
  const tables = places.map((place) => new Map((job?.memory[place] ?? []).map(([device, use, planned, seen]) => [`${device}, ${use}`, [planned, seen]])));
  const names = [...new Set(tables.flatMap((found) => [...found.keys()]))];
  if (!names.length) return "";
  return part("Memory, MiB: estimated, and printed or seen", textTable(
    ["", ...places.flatMap((place) => [`${role(job, place)} estimated`.trim(), "found"])],
    names.map((name) => [name, ...tables.flatMap((found) => found.get(name) ?? ["", ""])]), { caption: "Memory", kind: "figures" }));
}

function placementPart(shown, job) {
  const differing = text(shown.detail.load);
  const told = besides(job?.placement, shown);
  if (!differing && !told.length) return "";
  return part("Placement",
    differing ? element("div", {}, element("p", { class: "dim" }, "Done otherwise than asked or estimated, and differences from baseline to candidate:"),
      element("ul", {}, differing.split("\n").map((line) => element("li", {}, line)))) : "",
    told.length ? element("details", {}, element("summary", {}, "What the builds said of loading"), armTable(told, shown, job, "Loading")) : "");
}

function machinePart(shown, job) {
  if (!job?.node.length) return "";
  return part("Machine", facts([["host", job.host], ...job.node, ["last change", job.since]]));
}

function statePart(shown, job) {
  const told = besides(job?.state, shown);
  return told.length ? part("State of the machine around the processes, lowest .. highest", armTable(told, shown, job, "State")) : "";
}

function flagsPart(shown, job) {
  const places = placesOf(shown);
  if (!places.length) return "";
  const rows = (name, of) => [name, ...places.map((place) => of(job.arms[place]) ?? "")];
  const flags = [...new Set(places.flatMap((place) => Object.keys(job.arms[place].flags)))];
  const engine = [...new Set(places.flatMap((place) => Object.keys(job.engines[place])))];
  const table = [rows("build", (arm) => arm.build), rows("model", (arm) => arm.model), rows("environment", (arm) => arm.environment),
    rows("content key", (arm) => arm.content), rows("identity", (arm) => arm.identity),
    ...engine.map((name) => [`said: ${name}`, ...places.map((place) => job.engines[place][name] ?? "")]),
    ...flags.map((flag) => rows(flag, (arm) => arm.flags[flag]))].filter((row) => row.slice(1).some(Boolean));
  const differing = table.filter((row) => new Set(row.slice(1)).size > 1 && !["identity", "content key"].includes(row[0]));
  return part("Arms",
    places.length > 1 && differing.length ? armTable(differing, shown, job, "In what the arms differ") : "",
    element("details", {}, element("summary", {}, "Build, model and all flags"), armTable(table, shown, job, "Build, model and flags")));
}

/** Rows of a name and a text for each arm of the job, cut down to the case's arms. */
const besides = (rows, shown) => (rows ?? []).map(([name, ...texts]) => [name, ...placesOf(shown).map((place) => texts[place])]).filter((row) => row.slice(1).some(Boolean));

const armTable = (rows, shown, job, caption) =>
  textTable(["", ...placesOf(shown).map((place) => role(job, place))], rows, { caption, kind: "lines" });

function replayPart(shown) {
  return part("Run it again, explain it", element("pre", { class: "command", tabindex: "0" }, shown.detail.commands.join("\n")));
}
