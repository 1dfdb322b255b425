"use strict";

const drawings = JSON.parse(document.getElementById("drawings").textContent);
const options = {
  responsive: true,
  displaylogo: false,
  modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
};
const dark = matchMedia("(prefers-color-scheme: dark)");

// Text and rules follow the page's colours; lines keep theirs, but for the darkest.
function colours() {
  const style = getComputedStyle(document.documentElement);
  const [ink, muted, rule, panel] = ["--ink", "--muted", "--rule", "--panel"].map((name) =>
    style.getPropertyValue(name).trim()
  );
  const axis = (name) => ({
    [name + ".gridcolor"]: rule,
    [name + ".linecolor"]: rule,
    [name + ".tickfont.color"]: muted,
    [name + ".title.font.color"]: muted,
  });
  return {
    "font.color": ink,
    "hoverlabel.bgcolor": panel,
    "hoverlabel.font.color": ink,
    "modebar.activecolor": ink,
    ...axis("xaxis"),
    ...axis("yaxis"),
  };
}

function lines(data) {
  if (!dark.matches) return data;
  const light = { "#444444": "#c3ccd5", "#332288": "#9a8cf0", "#882255": "#d9679a" };
  const text = JSON.stringify(data).replace(/#444444|#332288|#882255/g, (colour) => light[colour]);
  return JSON.parse(text.replaceAll("rgba(136,34,85,", "rgba(217,103,154,"));
}

function draw() {
  for (const drawing of drawings) {
    Plotly.newPlot(drawing.id, lines(drawing.data), structuredClone(drawing.layout), options);
    Plotly.relayout(drawing.id, colours());
  }
}

draw();
dark.addEventListener("change", draw);
