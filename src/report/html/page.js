// Fills the report from its data. Names come from models and are only ever set as text.
"use strict";
const data = JSON.parse(document.getElementById("quench-data").textContent);
const by_id = (id) => document.getElementById(id);
const element = (name, text, parent) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.appendChild(made);
  return made;
};
const known = (value) => value !== null && value !== undefined;
const shown = (value, digits = 4) => (!known(value) ? "-" : typeof value === "number" ? value.toFixed(digits) : value);
// dB that stand for "no noise at all" are not a number to read.
const decibels = (value) => (!known(value) ? "-" : value >= 200 ? "exact" : value.toFixed(2));
const COLUMNS = [
  ["#", "index", (v) => shown(v, 0), "Place in the network"], ["layer", "name"], ["operator", "op"], ["runs as", "kind"], ["bits", "bits", (v) => shown(v, 0), "Of the weight"],
  ["own SQNR, dB", "own_sqnr", decibels, "Its own error: what it reads is as in the float model"],
  ["accumulated SQNR, dB", "sqnr", decibels, "The error of its output when all layers before it are quantised too"],
  ["loss", "loss", (v) => (known(v) ? v.toPrecision(3) : "-"), "What the outputs lose when it alone is quantised"],
  ["clipped, %", "clipped", (v) => shown(v, 3), "Weights beyond the range of the integers"],
  ["cosine", "cosine", shown, "Between its output in the float and the quantised model"], ["why in float", "reason"],
  ["scheme", "scheme"], ["scale", "scale"], ["zero point", "zero_point"], ["MSE", "mse", (v) => (known(v) ? v.toExponential(3) : "-")]];
// Green is good.
const hue = (share) => `hsl(${Math.round(Math.max(0, Math.min(1, share)) * 120)}, 65%, 62%)`;
const SHADES = { sqnr: (value) => (value - 10) / 30, own_sqnr: (value) => (value - 20) / 30 };
let order = { key: "index", up: true };
let chosen = -1;

const pairs = (id, rows) => {
  const table = by_id(id);
  table.replaceChildren();
  for (const [key, value] of rows) {
    if (value === "") continue;
    const row = element("tr", undefined, table);
    element("th", key, row);
    element("td", /^\d{5,}$/.test(value) ? Number(value).toLocaleString("en") : value, row);
  }
};

// What a layer costs: the share of noise for SQNR, else what the metric loses.
const noise = (sqnr) => 100 * 10 ** (-sqnr / 10);
const loss_of = (row) => {
  const { metric, float, higher_is_better: up } = data.sensitivity;
  if (!known(row.metric)) return null;
  if (metric === "sqnr") return noise(row.metric);
  return known(float) ? (up ? float - row.metric : row.metric - float) : null;
};
const NOISE = "noise at the outputs, % of the signal";
const LOSS = !data.sensitivity || data.sensitivity.metric === "sqnr" ? NOISE : `loss of ${data.sensitivity.metric}`;
if (data.sensitivity) {
  const losses = new Map(data.sensitivity.layers.map((row) => [row.layer, loss_of(row)]));
  for (const layer of data.layers) layer.loss = losses.has(layer.name) ? losses.get(layer.name) : null;
}
for (const layer of data.layers) {
  const { weight } = layer;
  Object.assign(layer, weight && weight.params ? { scheme: weight.params.scheme, scale: weight.params.scale, zero_point: weight.params.zero_point, clipped: weight.params.clipped } : {});
}
// Columns that no layer has anything in are left out.
const columns = COLUMNS.filter(([, key]) => data.layers.some((layer) => known(layer[key]) && layer[key] !== ""));

// Rows are made once: sorting and searching move them, choosing marks one.
const rows = data.layers.map((layer) => {
  const row = document.createElement("tr");
  row.dataset.layer = layer.index;
  for (const [, key, print] of columns) {
    const value = layer[key];
    const cell = element("td", (print || shown)(value), row);
    if (typeof value === "number") cell.className = "number";
    if (SHADES[key] && known(value)) cell.style.boxShadow = `inset 4px 0 ${hue(SHADES[key](value))}`;
  }
  row.onclick = () => choose(layer.index);
  return row;
});

const sort_by = (key) => { order = { key, up: order.key === key ? !order.up : true }; fill(); };

const head = () => {
  const made = document.createElement("thead");
  const row = element("tr", undefined, made);
  for (const [title, key, , why] of columns) {
    const cell = element("th", undefined, row);
    const button = element("button", title + (order.key === key ? (order.up ? " \u25b2" : " \u25bc") : ""), cell);
    cell.title = why || "";
    cell.ariaSort = order.key !== key ? "none" : order.up ? "ascending" : "descending";
    button.onclick = () => sort_by(key);
  }
  return made;
};

const fill = () => {
  const words = by_id("search").value.toLowerCase();
  const found = data.layers.filter((layer) => `${layer.name} ${layer.op} ${layer.reason}`.toLowerCase().includes(words));
  const rank = (value) => (known(value) ? value : order.up ? Infinity : -Infinity);
  found.sort((a, b) => {
    const [x, y] = [rank(a[order.key]), rank(b[order.key])];
    return (x < y ? -1 : x > y ? 1 : a.index - b.index) * (order.up ? 1 : -1);
  });
  const body = document.createElement("tbody");
  body.append(...found.map((layer) => rows[layer.index]));
  by_id("layers").replaceChildren(head(), body);
  by_id("layers-found").textContent = words === "" ? "" : `${found.length} of ${data.layers.length}`;
};

// Keeps the row in sight without moving the page.
const reveal = (row) => {
  const frame = by_id("layers").parentElement;
  const top = row.offsetTop - by_id("layers").tHead.offsetHeight;
  if (top < frame.scrollTop) frame.scrollTop = top;
  const below = row.offsetTop + row.offsetHeight - frame.clientHeight;
  if (below > frame.scrollTop) frame.scrollTop = below;
};

const charts = {};
const draw = (id, config) => {
  if (charts[id]) charts[id].destroy();
  charts[id] = new Chart(by_id(id), config);
};
const OPTIONS = { animation: false, maintainAspectRatio: false, normalized: true };
const [BLUE, ORANGE] = ["#457b9d", "#e76f51"];

// The ends of what the integers can hold, as lines over the bars.
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
  pairs(`${id}-facts`, []);
  if (!hist) { if (charts[id]) { charts[id].destroy(); delete charts[id]; } return; }
  const width = (hist.max - hist.min) / hist.share.length;
  const labels = hist.share.map((_, i) => (hist.min + (i + 0.5) * width).toPrecision(3));
  const span = hist.max > hist.min ? hist.max - hist.min : 1;
  const bars = (label, share, color) => ({ label, data: share, backgroundColor: color, categoryPercentage: 1, barPercentage: 1, grouped: false });
  const sets = [bars("float", hist.share, BLUE)];
  if (hist.quantized) sets.unshift(bars("quantised", hist.quantized, "rgba(231, 111, 81, 0.65)"));
  draw(id, { type: "bar", data: { labels, datasets: sets },
    options: { ...OPTIONS, quenchRange: hist.range && hist.range.map((end) => (end - hist.min) / span),
      plugins: { title: { display: true, text: `${title}: ${hist.name}` }, legend: { display: sets.length > 1 } },
      scales: { x: { ticks: { maxTicksLimit: 9, maxRotation: 0 } }, y: { title: { display: true, text: "share" } } } },
    plugins: [rangeLines] });
  const facts = [["values seen", `${hist.min.toPrecision(5)} to ${hist.max.toPrecision(5)}`]];
  if (hist.range) facts.push(["range of the integers (red lines)", `${hist.range[0].toPrecision(5)} to ${hist.range[1].toPrecision(5)}`]);
  if (hist.params) {
    const { bits, scheme, scale, zero_point: zero, clipped } = hist.params;
    facts.push(["bits", String(bits)], ["scheme", scheme], ["scale", scale], ["zero point", zero], ["clipped", `${shown(clipped, 4)} %`]);
  } else if (!hist.range) facts.push(["runs as", "float"]);
  pairs(`${id}-facts`, facts);
};

const layers_by_name = new Map(data.layers.map((layer) => [layer.name, layer.index]));
const nodes_by_name = new Map(data.nodes.map((node, i) => [node.name, i]));
let graph = null;

const choose = (index, centre = true) => {
  if (rows[chosen]) rows[chosen].className = "";
  chosen = index;
  rows[index].className = "chosen";
  reveal(rows[index]);
  const layer = data.layers[index];
  by_id("detail-name").textContent = layer.name;
  histogram("weight", "weight", layer.weight);
  histogram("activation", "activation", layer.activation);
  const node = nodes_by_name.get(layer.name);
  if (graph) { graph.choose(node); if (known(node) && centre) graph.centre(node, 0); }
};

// A layer, or a node without a weight, which the graph alone has.
const show = (name) => {
  const layer = layers_by_name.get(name);
  if (known(layer)) { choose(layer); return; }
  const node = nodes_by_name.get(name);
  if (!graph || !known(node)) return;
  graph.choose(node);
  graph.centre(node);
};

const along = () => {
  const own = data.layers.some((layer) => known(layer.own_sqnr)) ? " by its own error alone, and" : "";
  by_id("along-text").textContent = `How near each layer's output is to the float model's:${own} with all layers before it quantised too. More is better; a click chooses the layer.`;
  const line = (label, key, color) => ({ label, data: data.layers.map((layer) => (known(layer[key]) && layer[key] < 200 ? layer[key] : null)), borderColor: color, backgroundColor: color, borderWidth: data.layers.length > 200 ? 1 : 3, pointRadius: data.layers.length > 200 ? 0 : 3, spanGaps: true });
  draw("along", { type: "line",
    data: { labels: data.layers.map((layer) => layer.name), datasets: [line("accumulated SQNR, dB", "sqnr", BLUE), line("own SQNR, dB", "own_sqnr", ORANGE)].filter((set) => set.data.some(known)) },
    // Names do not fit below hundreds of layers: their places do, and the name is told beside the pointer.
    options: { ...OPTIONS, interaction: { mode: "index", intersect: false }, onClick: (_, hits) => { if (hits.length) choose(hits[0].index); },
      scales: { x: { title: { display: true, text: "place in the network" }, ticks: { maxRotation: 0, callback: (at) => data.layers[at].index } }, y: { title: { display: true, text: "dB" } } } } });
};

const ranking = () => {
  if (!data.sensitivity) { by_id("ranking-section").hidden = true; return; }
  const { samples } = data.sensitivity;
  const by = samples ? `, by ${samples} sample${samples === 1 ? "" : "s"}` : "";
  const ranked = data.sensitivity.layers.slice(0, 60);
  const reverse = data.sensitivity.reverse;
  // Where the metric loses nothing, what the layers do to the outputs still tells them apart.
  const lossless = !reverse && ranked.every((row) => !(loss_of(row) > 0)) && ranked.some((row) => known(row.sqnr));
  const of = reverse ? (row) => row.metric : lossless ? (row) => noise(row.sqnr) : loss_of;
  if (lossless) ranked.sort((a, b) => of(b) - of(a));
  const label = reverse ? data.sensitivity.metric : lossless ? NOISE : LOSS;
  const some = ranked.length < data.sensitivity.layers.length ? `, ${ranked.length} of ${data.sensitivity.layers.length}` : "";
  by_id("ranking-text").textContent = reverse ? `${label} with all layers quantised but one; best left in float on top${some}${by}.`
    : `Each layer quantised alone${lossless ? `: no layer costs any ${data.sensitivity.metric}. Shown is the ${label}` : `: ${label}`}; the worst on top${some}${by}.`;
  const letters = Math.max(14, Math.floor(by_id("ranking").parentElement.clientWidth / 22));
  by_id("ranking").parentElement.style.height = `${Math.max(160, ranked.length * 18 + 60)}px`;
  draw("ranking", { type: "bar",
    data: { labels: ranked.map((row) => row.layer), datasets: [{ label, data: ranked.map(of), backgroundColor: ORANGE }] },
    options: { ...OPTIONS, indexAxis: "y", onClick: (_, hits) => { if (hits.length) show(ranked[hits[0].index].layer); }, scales: { y: { ticks: { autoSkip: false, callback: (at) => quenchGraph.shorten(ranked[at].layer, letters) } } } } });
};

// What the search for a metric tried: layers left in float against what the model then reached.
const target = () => {
  if (!data.target) { by_id("target-section").hidden = true; return; }
  const { metric, at_least: wanted, points } = data.target;
  const dots = points.map((point) => ({ x: point.in_float, y: point.value }));
  const most = Math.max(1, ...dots.map((dot) => dot.x));
  draw("target", { type: "scatter",
    data: { datasets: [{ label: `${metric} of what was tried`, data: dots, backgroundColor: BLUE, pointRadius: 5 },
      { label: "asked for", data: [{ x: 0, y: wanted }, { x: most, y: wanted }], borderColor: ORANGE, showLine: true, pointRadius: 0 }] },
    options: { ...OPTIONS, scales: { x: { title: { display: true, text: "layers in float" }, min: 0 }, y: { title: { display: true, text: metric } } } } });
};

// The loss, and on an axis of its own the score of the validation set; step 0 is before training.
const training = () => {
  if (!data.training) { by_id("training-section").hidden = true; return; }
  const { points, score, start, kept } = data.training;
  const at = (key) => points.map((point) => ({ x: point.step, y: point[key] })).filter((point) => point.y !== null);
  const scores = (start === null ? [] : [{ x: 0, y: start }]).concat(at("score"));
  const line = (label, list, color, axis, pointRadius) =>
    ({ label, data: list, borderColor: color, backgroundColor: color, yAxisID: axis, pointRadius, showLine: true });
  draw("training", { type: "scatter",
    data: { datasets: [line("loss", at("loss"), BLUE, "y", 0)].concat(scores.length ? [line(`validation ${score}`, scores, ORANGE, "right", 4)] : []) },
    options: { ...OPTIONS, plugins: { subtitle: { display: true, text: `kept: step ${kept}` } },
      scales: { x: { title: { display: true, text: "step" }, min: 0 }, y: { title: { display: true, text: "loss" } },
        right: { position: "right", display: scores.length > 0, grid: { drawOnChartArea: false } } } } });
};

const COLORS = {
  "accumulated SQNR": { of: (node) => node.sqnr, key: "green: 40 dB and more, red: 10 dB and less", share: SHADES.sqnr },
  "own SQNR": { of: (node) => layer_of(node)?.own_sqnr, key: "green: 50 dB and more, red: 20 dB and less", share: SHADES.own_sqnr },
  "loss alone": { of: (node) => layer_of(node)?.loss, key: "red: the layer that costs most", share: (value) => 1 - value / Math.max(1e-30, ...data.layers.map((layer) => layer.loss || 0)) },
  "bits of the weight": { of: (node) => layer_of(node)?.bits, key: "green: 8 bits and more, red: 2 bits", share: (value) => (value - 2) / 6 },
};
const layer_of = (node) => data.layers[layers_by_name.get(node.name)];
const FLOAT = "var(--float)";

const paint = () => {
  const way = COLORS[by_id("graph-color").value];
  by_id("graph-key").textContent = `${way.key}; grey: in float or unknown; not filled: only moves data. Drag to move, wheel to zoom, click a node.`;
  graph.paint((node) => {
    if (node.kind === "moves") return "var(--card)";
    const value = way.of(node);
    return known(value) && node.kind !== "float" ? hue(way.share(value)) : FLOAT;
  });
};

// Paper is white, and as wide as it is.
const on_paper = (printing) => {
  const dark = document.documentElement.classList.contains("dark");
  if (printing) screen_was_dark = dark;
  if (dark || screen_was_dark) set_theme(!printing && screen_was_dark);
  for (const chart of Object.values(charts)) chart.resize();
};
let screen_was_dark = false;

const find = () => {
  const words = by_id("graph-search").value.toLowerCase();
  const hits = words === "" ? [] : [...data.nodes.keys()].filter((i) => `${data.nodes[i].op} ${data.nodes[i].name}`.toLowerCase().includes(words));
  const set = new Set(hits);
  graph.mark("found", (i) => set.has(i));
  by_id("graph-found").textContent = words === "" ? "" : `${hits.length} found`;
  return hits;
};

const show_graph = () => {
  for (const [name, { of }] of Object.entries(COLORS)) {
    if (data.nodes.some((node) => known(of(node)))) element("option", name, by_id("graph-color"));
  }
  if (!by_id("graph-color").options.length) element("option", "accumulated SQNR", by_id("graph-color"));
  graph = quenchGraph.make(by_id("graph"), by_id("graph-frame"), data.nodes, (i) => {
    graph.choose(i);
    const layer = layers_by_name.get(data.nodes[i].name);
    if (known(layer)) choose(layer, false);
  });
  let next = 0;
  by_id("graph-search").oninput = () => { next = 0; const hits = find(); if (hits.length) graph.centre(hits[0]); };
  by_id("graph-search").onkeydown = (event) => {
    const hits = find();
    if (event.key === "Enter" && hits.length) graph.centre(hits[++next % hits.length]);
  };
  by_id("graph-color").onchange = paint;
  by_id("zoom-in").onclick = () => graph.zoom(1.25);
  by_id("zoom-out").onclick = () => graph.zoom(0.8);
  by_id("zoom-fit").onclick = graph.fit;
  paint();
};

const draw_charts = () => {
  const dark = document.documentElement.classList.contains("dark");
  Chart.defaults.color = dark ? "#c3cad6" : "#555";
  Chart.defaults.borderColor = dark ? "#333a45" : "#e3e5ea";
  along(); training(); ranking(); target();
  if (chosen >= 0) choose(chosen, false);
};
const set_theme = (dark) => { document.documentElement.classList.toggle("dark", dark); draw_charts(); };

const start = () => {
  by_id("title").textContent = data.title;
  document.title = data.title;
  by_id("command").textContent = [data.version, data.command].filter(Boolean).join("  $ ");
  for (const [what, value] of data.cards || []) element("b", value, element("div", what, by_id("cards"))).parentElement.className = "card";
  pairs("summary", data.summary);
  pairs("settings", data.settings);
  for (const warning of data.warnings || []) element("li", warning, by_id("warnings"));
  by_id("warnings-section").hidden = !(data.warnings || []).length;
  by_id("along-section").hidden = !data.layers.some((layer) => known(layer.sqnr) || known(layer.own_sqnr));
  by_id("search").oninput = fill;
  addEventListener("beforeprint", () => on_paper(true));
  addEventListener("afterprint", () => on_paper(false));
  by_id("theme").onclick = () => set_theme(!document.documentElement.classList.contains("dark"));
  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input, select")) return;
    if (event.key === "/") { by_id("search").focus(); event.preventDefault(); }
    if (event.key === "d") by_id("theme").click();
    if ((event.key === "j" || event.key === "k") && data.layers.length) choose(Math.max(0, Math.min(data.layers.length - 1, chosen + (event.key === "j" ? 1 : -1))));
  });
  document.documentElement.classList.toggle("dark", matchMedia("(prefers-color-scheme: dark)").matches);
  fill();
  if (data.layers.length) chosen = 0;
  draw_charts();
  for (const section of document.querySelectorAll("main section:not([hidden])")) {
    const link = element("a", section.querySelector("h2").textContent);
    link.href = `#${section.id}`;
    by_id("theme").before(link);
  }
};
start();
requestAnimationFrame(() => { show_graph(); if (chosen >= 0) choose(chosen, false); document.body.dataset.ready = String(Math.round(performance.now())); });
