// A cell's nights: its figures with intervals, what is missing, and where the level changed.

function nightsPart(shown) {
  const series = shown.detail.nights ?? [];
  if (!series.length) return [];
  const points = series.flatMap((each) => each.points);
  const unit = series.at(-1).unit;
  const title = `Nights, ${unit}`;
  const target = points.length > 1 ? plotPlace(`${title}; the list below has the figures`, 240) : "";
  const changes = series.flatMap((each) => each.changes);
  const told = [...changes.map((change) => element("li", { class: change.worse ? "fail" : "" }, change.text)),
    ...series.filter((each) => each.began).map((each) => element("li", {}, `A new series from ${each.points[0]?.night ?? "?"} on: ${each.began}`))];
  if (target) requestAnimationFrame(() => plot(target, (palette) => nightsFigure(series, unit, palette)));
  const assumed = points.some((point) => point.assumed) ? "dashed: the interval holds if quads scatter as is assumed; " : "";
  const marks = `${assumed}hollow: far from its neighbours; cross: a night without a figure; dotted: the level changed`;
  return [part(title, target, target && element("p", { class: "dim" }, marks), told.length ? element("ul", {}, told) : element("p", { class: "dim" }, "No change of level."),
    element("details", {}, element("summary", {}, `List of ${plural(points.length, "figure")}`), nightsTable(series)))];
}

function nightsTable(series) {
  const rows = series.flatMap((each) => [
    ...each.points.map((point) => [point.night, ...point.figures.map(figureText), point.word + (point.outlier ? ", far from its neighbours" : "") + (point.assumed ? `, interval ${point.assumed}` : ""), point.builds, each.node]),
    ...each.missing.map(([night, why]) => [night, "", "", "", `no figure: ${why}`, "", each.node]),
  ]).sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0));
  return textTable(["night", "figure", "low", "high", "verdict", "builds", "machine"], rows, { caption: "Nights" });
}

const figureText = (figure) => (figure >= 1000 ? figure.toFixed(0) : figure.toPrecision(4));

function nightsFigure(series, unit, palette) {
  const isRatio = unit === "ratio";
  const traces = series.flatMap((each, index) => {
    const [low, high] = [1, 2].map((at) => each.points.map((point) => point.figures[point.assumed ? 0 : at]));
    const value = each.points.map((point) => point.figures[0]);
    const colour = palette.arms[index % palette.arms.length];
    return [
      { mode: "markers", hoverinfo: "text", x: each.points.map((point) => point.night), y: value,
        text: each.points.map((point) => plain(`${point.night}: ${figureText(point.figures[0])} [${figureText(point.figures[1])}, ${figureText(point.figures[2])}] ${unit} ${point.assumed}\n${point.word}, ${point.builds}`).replaceAll("\n", "<br>")),
        marker: { size: 7, color: colour, symbol: each.points.map((point) => (point.outlier ? "circle-open" : "circle")) },
        error_y: { type: "data", symmetric: false, array: high.map((end, at) => end - value[at]), arrayminus: low.map((end, at) => value[at] - end), color: palette.dim, thickness: 1, width: 0 } },
      assumedIntervals(each, palette),
      levels(each, palette),
    ];
  });
  const missing = series.flatMap((each) => each.missing);
  const marks = series.flatMap((each) => each.changes);
  const figures = series.flatMap((each) => each.points.map((point) => Math.log10(point.figures[0])));
  const [low, high] = [Math.min(...figures) - 0.02, Math.max(...figures) + 0.02];
  return {
    traces: [...traces, { mode: "markers", hoverinfo: "text", x: missing.map(([night]) => night), y: missing.map(() => 0.03), yaxis: "y2",
      text: missing.map(([night, why]) => plain(`${night}: no figure, ${why}`)), marker: { symbol: "x-thin-open", size: 7, color: palette.dim } }],
    layout: {
      margin: { l: 10, r: 10, t: 22, b: 26 },
      shapes: marks.map((change) => ({ type: "line", x0: change.night, x1: change.night, yref: "paper", y0: 0, y1: 1, line: { color: palette.dim, width: 1, dash: "dot" } })),
      annotations: marks.map((change) => ({ x: change.night, y: 1, yref: "paper", yanchor: "bottom", showarrow: false, text: plain(change.short), font: { size: 11, color: change.worse ? palette.fail : palette.dim } })),
      xaxis: { type: "date", showgrid: false },
      yaxis: isRatio ? { type: "log", range: [low, high], tickvals: forestTicks(low, high), ticktext: forestTicks(low, high).map(String) } : { title: { text: unit, standoff: 10, font: { size: 11 } } },
      yaxis2: { overlaying: "y", range: [0, 1], visible: false, fixedrange: true },
    },
  };
}

/** Intervals that hold if quads scatter as is assumed, as dashed lines: bars of errors have no dashes. */
function assumedIntervals({ points }, palette) {
  const held = points.filter((point) => point.assumed);
  return { mode: "lines", hoverinfo: "skip", x: held.flatMap((point) => [point.night, point.night, null]),
    y: held.flatMap(({ figures: [, low, high] }) => [low, high, null]), line: { color: palette.dim, width: 1, dash: "dot" } };
}

/** The level before and after each change, as a line from its first night to its last. */
function levels({ points, changes }, palette) {
  const line = { mode: "lines", hoverinfo: "skip", x: [], y: [], line: { color: palette.dim, width: 1.5 } };
  if (!changes.length) return line;
  const ends = [points[0].night, ...changes.map((change) => change.night), points.at(-1).night];
  const heights = [changes[0].before, ...changes.map((change) => change.after)];
  heights.forEach((height, index) => {
    line.x.push(ends[index], ends[index + 1], null);
    line.y.push(height, height, null);
  });
  return line;
}
