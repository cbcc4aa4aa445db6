// Ratios of speeds with their intervals, a plot for each kind of workload: gains in one can hide losses in another.

const FOREST_ROWS = 40;
const LABEL_PX = 6.1; // of a character, on average and with room

function drawForest(matches) {
  const place = byId("forest-view");
  const withRatio = matches.filter((shown) => shown.ratio);
  const panels = Object.entries(PANELS).map(([panel, title]) => [title, withRatio.filter((shown) => shown.panel === panel)]).filter(([, found]) => found.length);
  place.replaceChildren(element("p", { class: "dim" },
    `${number(withRatio.length)} of these ${plural(matches.length, "case")} have a ratio of speeds, candidate over baseline: right of 1 is faster. ` +
    "The band is the margin, what is still equivalent. Dashed: the interval holds if quads scatter as is assumed. The table has the same figures."));
  for (const [title, found] of panels) forestPanel(place, title, found);
}

function forestPanel(place, title, found) {
  const shownRows = found.slice(0, FOREST_ROWS);
  const rest = found.length - shownRows.length;
  const target = plotPlace(`${title}: ${plural(shownRows.length, "ratio")} with intervals; the table has the figures`, 70 + 20 * shownRows.length);
  place.append(element("h2", {}, `${title} (${number(found.length)})`), target,
    rest ? element("p", { class: "dim" }, `${number(rest)} more: narrow the filters, or change the order.`) : "");
  plot(target, (palette) => forestFigure(shownRows, palette));
}

function forestFigure(rows, palette) {
  const segments = (wanted) => {
    const line = { x: [], y: [] };
    rows.forEach((shown, index) => {
      if (Boolean(shown.assumed) !== wanted) return;
      line.x.push(shown.ratio[1], shown.ratio[2], null);
      line.y.push(index, index, null);
    });
    return { ...line, mode: "lines", hoverinfo: "skip", line: { color: palette.text, width: 2, dash: wanted ? "dot" : "solid" } };
  };
  const points = { x: rows.map((shown) => shown.ratio[0]), y: rows.map((_, index) => index), mode: "markers", hoverinfo: "text",
    text: rows.map((shown) => plain(`${shown.words}\n${shortened(shown.id, 120)}\n${shown.figure} [${shown.interval}] ${shown.assumed ?? ""}`).replaceAll("\n", "<br>")),
    marker: { color: palette.text, size: 8 } };
  const bands = rows.flatMap((shown, index) => (shown.margin === rows[index - 1]?.margin ? [] : [{ type: "rect", layer: "below", line: { width: 0 },
    fillcolor: palette.band, x0: 1 / (1 + shown.margin), x1: 1 + shown.margin, y0: index - 0.5, y1: bandEnd(rows, index) }]));
  const one = { type: "line", x0: 1, x1: 1, y0: -0.5, y1: rows.length - 0.5, line: { color: palette.dim, width: 1 } };
  const label = (shown) => plain(shortened(`${shown.what} · ${arrow(shown.models)} · ${shown.workload} @${shown.class}`, 90));
  const labels = rows.map(label);
  const [low, high] = forestRange(rows);
  const ticks = forestTicks(low, high);
  return {
    traces: [segments(false), segments(true), points],
    layout: {
      shapes: [...bands, one], margin: { l: 16 + LABEL_PX * Math.max(...labels.map((each) => each.length)), r: 16, t: 24, b: 20 },
      xaxis: { type: "log", range: [low, high], side: "top", tickvals: ticks, ticktext: ticks.map(String), showgrid: true },
      yaxis: { tickvals: rows.map((_, index) => index), ticktext: labels, automargin: false, range: [rows.length - 0.5, -0.5], showgrid: false, fixedrange: true },
    },
  };
}

/** Where the rows end that have the margin of this one and follow it. */
function bandEnd(rows, index) {
  const other = rows.findIndex((shown, at) => at > index && shown.margin !== rows[index].margin);
  return (other < 0 ? rows.length : other) - 0.5;
}

/** Both ends of the axis, as powers of ten: ratios have room, and intervals of a single quad do not stretch it without end. */
function forestRange(rows) {
  const ends = rows.flatMap(({ ratio: [value, low, high], margin }) => {
    const [at, room] = [Math.log10(value), 2 * Math.log10(1 + margin)];
    return [-room, room, at, Math.max(Math.log10(low), at - 0.3), Math.min(Math.log10(high), at + 0.3)];
  });
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  return [low - 0.04 * (high - low), high + 0.04 * (high - low)];
}

const FINE_TICKS = [0.7, 0.8, 0.85, 0.9, 0.95, 1, 1.05, 1.1, 1.15, 1.2, 1.3, 1.5];
const MIDDLE_TICKS = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 5];
const COARSE_TICKS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20, 50, 100];

const forestTicks = (low, high) =>
  (high - low < 0.35 ? FINE_TICKS : high - low < 0.9 ? MIDDLE_TICKS : COARSE_TICKS).filter((tick) => Math.log10(tick) >= low && Math.log10(tick) <= high);
