// Fills the report from its data. Names come from models and are only ever set as text.
"use strict";
const data = JSON.parse(document.getElementById("quench-data").textContent);
const element = (name, text, parent) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.appendChild(made);
  return made;
};
const shown = (value, digits = 4) =>
  value === null || value === undefined ? "-" : typeof value === "number" ? value.toFixed(digits) : value;
const COLUMNS = [["#", "index"], ["layer", "name"], ["operator", "op"], ["runs as", "kind"], ["bits", "bits"], ["own SQNR, dB", "own_sqnr"], ["accumulated SQNR, dB", "sqnr"],
                 ["cosine", "cosine"], ["MSE", "mse"], ["why in float", "reason"]];
let order = { key: "index", up: true };
let chosen = -1;

const pairs = (id, rows) => {
  const table = document.getElementById(id);
  for (const [key, value] of rows) {
    const row = element("tr", undefined, table);
    element("th", key, row);
    element("td", value, row);
  }
};

// Green at 40 dB and more, red at 10 dB and less.
const color = (sqnr) => {
  if (sqnr === null || sqnr === undefined) return "#d5d8de";
  const good = Math.max(0, Math.min(1, (sqnr - 10) / 30));
  return `hsl(${Math.round(good * 120)}, 70%, 60%)`;
};

const fill = () => {
  const words = document.getElementById("search").value.toLowerCase();
  const table = document.getElementById("layers");
  table.replaceChildren();
  const head = element("tr", undefined, element("thead", undefined, table));
  for (const [title, key] of COLUMNS) {
    const cell = element("th", title + (order.key === key ? (order.up ? " \u25b2" : " \u25bc") : ""), head);
    cell.onclick = () => { order = { key, up: order.key === key ? !order.up : true }; fill(); };
  }
  const body = element("tbody", undefined, table);
  const rows = data.layers.filter((layer) => `${layer.name} ${layer.op} ${layer.reason}`.toLowerCase().includes(words));
  const rank = (value) => (value === null || value === undefined ? Infinity : value);
  rows.sort((a, b) => {
    const [x, y] = [rank(a[order.key]), rank(b[order.key])];
    return (x < y ? -1 : x > y ? 1 : a.index - b.index) * (order.up ? 1 : -1);
  });
  for (const layer of rows) {
    const row = element("tr", undefined, body);
    for (const [, key] of COLUMNS) {
      const value = layer[key];
      const number = typeof value === "number";
      const cell = element("td", key === "index" || key === "bits" ? shown(value, 0) : key === "mse" && number ? value.toExponential(3) : shown(value), row);
      if (number) cell.className = "number";
    }
    if (layer.index === chosen) row.className = "chosen";
    row.onclick = () => choose(layer.index);
  }
};

const charts = {};
const draw = (id, config) => {
  if (charts[id]) charts[id].destroy();
  charts[id] = new Chart(document.getElementById(id), config);
};
const OPTIONS = { animation: false, maintainAspectRatio: false, normalized: true };

// The ends of the grid, as lines over the bars.
const rangeLines = {
  id: "rangeLines",
  afterDatasetsDraw(chart) {
    const range = chart.options.quenchRange;
    if (!range) return;
    const { ctx, chartArea: area } = chart;
    ctx.save();
    ctx.strokeStyle = "#c1121f";
    ctx.setLineDash([4, 3]);
    for (const at of range) {
      const x = area.left + Math.max(0, Math.min(1, at)) * (area.right - area.left);
      ctx.beginPath(); ctx.moveTo(x, area.top); ctx.lineTo(x, area.bottom); ctx.stroke();
    }
    ctx.restore();
  },
};

const histogram = (id, title, hist) => {
  if (!hist) { if (charts[id]) { charts[id].destroy(); delete charts[id]; } return; }
  const width = (hist.max - hist.min) / hist.share.length;
  const labels = hist.share.map((_, i) => (hist.min + (i + 0.5) * width).toPrecision(3));
  const span = hist.max > hist.min ? hist.max - hist.min : 1;
  draw(id, { type: "bar",
    data: { labels, datasets: [{ label: title, data: hist.share, backgroundColor: "#457b9d", categoryPercentage: 1, barPercentage: 1 }] },
    options: { ...OPTIONS, quenchRange: hist.range && hist.range.map((end) => (end - hist.min) / span),
      plugins: { title: { display: true, text: `${title}: ${hist.name}` }, legend: { display: false },
        subtitle: { display: true, text: hist.range ? `range ${hist.range[0].toPrecision(5)} to ${hist.range[1].toPrecision(5)}, seen ${hist.min.toPrecision(5)} to ${hist.max.toPrecision(5)}` : "in float" } },
      scales: { y: { title: { display: true, text: "share" } } } },
    plugins: [rangeLines] });
};

const choose = (index) => {
  chosen = index;
  const layer = data.layers[index];
  document.getElementById("detail-name").textContent = layer.name;
  histogram("weight", "weight", layer.weight);
  histogram("activation", "activation", layer.activation);
  fill();
};

const along = () => draw("along", { type: "line",
  data: { labels: data.layers.map((layer) => layer.name), datasets: [{ label: "accumulated SQNR, dB", data: data.layers.map((layer) => layer.sqnr),
    borderColor: "#1d3557", pointBackgroundColor: data.layers.map((layer) => color(layer.sqnr)), pointRadius: 4, spanGaps: true }] },
  options: { ...OPTIONS, onClick: (_, hits) => { if (hits.length) choose(hits[0].index); },
    scales: { x: { ticks: { maxRotation: 90, autoSkip: true } } } } });

const ranking = () => {
  const section = document.getElementById("ranking-section");
  if (!data.sensitivity) { section.remove(); return; }
  const rows = data.sensitivity.layers;
  section.querySelector(".chart").style.height = `${Math.max(260, rows.length * 16)}px`;
  draw("ranking", { type: "bar",
    data: { labels: rows.map((row) => row.layer), datasets: [{ label: `${data.sensitivity.metric}, worst first`, data: rows.map((row) => row.metric), backgroundColor: "#e76f51" }] },
    options: { ...OPTIONS, indexAxis: "y", scales: { y: { ticks: { autoSkip: false } } } } });
};

// The loss, and on an axis of its own the score of the validation set; step 0 is before training.
const training = () => {
  const section = document.getElementById("training-section");
  if (!data.training) { section.remove(); return; }
  const { points, score, start, kept } = data.training;
  const at = (key) => points.map((point) => ({ x: point.step, y: point[key] })).filter((point) => point.y !== null);
  const scores = (start === null ? [] : [{ x: 0, y: start }]).concat(at("score"));
  const line = (label, list, color, axis, pointRadius) =>
    ({ label, data: list, borderColor: color, backgroundColor: color, yAxisID: axis, pointRadius, showLine: true });
  draw("training", { type: "scatter",
    data: { datasets: [line("loss", at("loss"), "#1d3557", "y", 0)].concat(scores.length ? [line(`validation ${score}`, scores, "#e76f51", "right", 4)] : []) },
    options: { ...OPTIONS, plugins: { subtitle: { display: true, text: `kept: step ${kept}` } },
      scales: { x: { title: { display: true, text: "step" }, min: 0 }, y: { title: { display: true, text: "loss" } },
        right: { position: "right", display: scores.length > 0, grid: { drawOnChartArea: false } } } } });
};

// Nodes in rows by how far they are from the inputs, with a line for each value.
const graph = () => {
  const SVG = "http://www.w3.org/2000/svg";
  const svg = document.getElementById("graph");
  const rows = [];
  const places = data.nodes.map((node) => {
    const row = node.depth;
    rows[row] = (rows[row] || 0) + 1;
    return [row, rows[row] - 1];
  });
  const [W, H] = [210, 34];
  const add = (name, attributes, parent, text) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.appendChild(made);
    return made;
  };
  svg.setAttribute("width", W * Math.max(1, ...rows.filter((count) => count)) + 20);
  svg.setAttribute("height", H * rows.length + 20);
  data.nodes.forEach((node, i) => node.inputs.forEach((from) => {
    const [[r0, c0], [r1, c1]] = [places[from], places[i]];
    add("line", { x1: c0 * W + 100, y1: r0 * H + 30, x2: c1 * W + 100, y2: r1 * H + 8, stroke: "#99a" }, svg);
  }));
  data.nodes.forEach((node, i) => {
    const [row, column] = places[i];
    const fillColor = node.kind === "integer" ? color(node.sqnr) : node.kind === "float" ? "#d5d8de" : "#ffffff";
    const box = add("g", {}, svg);
    add("title", {}, box, `${node.name}\n${node.op}, ${node.kind}${node.sqnr === null ? "" : `, ${node.sqnr.toFixed(2)} dB`}`);
    add("rect", { x: column * W + 8, y: row * H + 8, width: W - 20, height: 22, rx: 3, fill: fillColor, stroke: "#667" }, box);
    const words = `${node.op} ${node.name}`;
    add("text", { x: column * W + 12, y: row * H + 22 }, box, words.length > 34 ? words.slice(0, 33) + "\u2026" : words);
  });
};

document.getElementById("title").textContent = data.title;
document.title = data.title;
pairs("summary", data.summary);
pairs("settings", data.settings);
document.getElementById("search").oninput = fill;
fill();
along();
training();
ranking();
if (data.layers.length) choose(0);
requestAnimationFrame(() => { graph(); document.body.dataset.ready = String(Math.round(performance.now())); });
