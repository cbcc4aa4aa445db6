// The plotting library, unpacked once the first plot is asked for, and what all plots share.

let loading;
const drawn = new Map();

function plotly() {
  loading ??= unpacked(byId("plotly").textContent).then((text) => {
    document.head.append(Object.assign(document.createElement("script"), { textContent: text }));
    return window.Plotly;
  });
  return loading;
}

/** A text that the library takes as it stands: it reads a little markup in labels. */
const plain = (text) => String(text).replace(/[&<>]/g, (char) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[char]);

const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return { text: of("text"), dim: of("dim"), line: of("line"), ground: of("ground"), band: of("band"), fail: of("fail"),
    arms: ["baseline", "candidate", "third", "fourth"].map(of) };
}

/** Draw into a place; `make` gives traces and layout for the colours that hold, and is asked again when they change. */
async function plot(place, make) {
  const library = await plotly();
  if (!place.isConnected) return; // the reader has gone on meanwhile
  const palette = colours();
  const { traces, layout } = make(palette);
  const axis = { gridcolor: palette.line, linecolor: palette.line, zeroline: false, automargin: true, fixedrange: false };
  await library.react(place.firstChild, traces, {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest", showlegend: false, dragmode: "zoom",
    font: { family: "system-ui, sans-serif", size: 12, color: palette.text },
    hoverlabel: { bgcolor: palette.ground, bordercolor: palette.line, font: { color: palette.text, size: 12 }, align: "left" },
    ...layout,
    xaxis: { ...axis, ...layout.xaxis }, yaxis: { ...axis, ...layout.yaxis },
  }, { displayModeBar: false, responsive: true, doubleClick: "reset" });
  byId("js-plotly-tester")?.setAttribute("aria-hidden", "true"); // what the library measures texts with
  drawn.set(place, make);
}

function redrawPlots() {
  for (const [place, make] of drawn) {
    if (place.isConnected) plot(place, make);
    else drawn.delete(place);
  }
}

/** A place for a plot: one picture with a name for those who do not see it, whatever the library puts inside. */
const plotPlace = (label, height) => {
  const place = element("div", { class: "plot", role: "img", "aria-label": label }, element("div", { "aria-hidden": "true" }));
  place.style.height = `${height}px`;
  return place;
};
