"use strict";

const drawings = JSON.parse(document.getElementById("drawings").textContent);
const options = {
  responsive: true,
  displaylogo: false,
  modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
};
for (const drawing of drawings) {
  Plotly.newPlot(drawing.id, drawing.data, drawing.layout, options);
}
