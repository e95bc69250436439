// The graph of the report: layers by how far a node is from the inputs, folded into columns, lines that
// keep clear of boxes, and a frame that moves and zooms. Knows nothing of the page but its elements.
"use strict";
const quenchGraph = (() => {
  const [W, H, GAP, ROW] = [190, 24, 18, 52];
  const SVG = "http://www.w3.org/2000/svg";
  const NARROW = 10;  // of a line that passes a row
  const GUTTER = 48;  // between columns

  // Boxes and, for lines that pass rows, points to pass at.
  const rows_of = (nodes) => {
    const places = nodes.map((node, i) => ({ node: i, row: node.depth, width: W, up: [], down: [] }));
    const lines = [];
    nodes.forEach((node, i) => node.inputs.forEach((from) => {
      const line = [places[from]];
      for (let row = nodes[from].depth + 1; row < node.depth; ++row) {
        const point = { node: -1, row, width: NARROW, up: [], down: [] };
        places.push(point);
        line.push(point);
      }
      line.push(places[i]);
      for (let k = 1; k < line.length; ++k) { line[k - 1].down.push(line[k]); line[k].up.push(line[k - 1]); }
      lines.push(line);
    }));
    const rows = [];
    for (const place of places) (rows[place.row] ||= []).push(place);
    return { places, lines, rows: Array.from(rows, (row) => row || []) };
  };

  // Neighbours near each other: the middle of those above, then of those below.
  const mean = (list, key) => list.reduce((sum, each) => sum + each[key], 0) / list.length;
  const order = (rows) => {
    rows.forEach((row) => row.forEach((place, i) => { place.at = i; }));
    for (let sweep = 0; sweep < 6; ++sweep) {
      const down = sweep % 2 === 0;
      for (const row of down ? rows : [...rows].reverse()) {
        for (const place of row) {
          const near = down ? place.up : place.down;
          place.want = near.length ? mean(near, "at") : place.at;
        }
        row.sort((a, b) => a.want - b.want);
        row.forEach((place, i) => { place.at = i; });
      }
    }
  };

  // Each place where its neighbours are, as far as the order leaves room.
  const set_x = (rows) => {
    for (const row of rows) {
      let x = 0;
      for (const place of row) { place.x = x + place.width / 2; x += place.width + GAP; }
    }
    for (let sweep = 0; sweep < 8; ++sweep) {
      for (const row of sweep % 2 === 0 ? rows : [...rows].reverse()) {
        const near = (place) => (sweep % 2 === 0 ? place.up : place.down);
        for (const place of row) place.want = near(place).length ? mean(near(place), "x") : place.x;
        const room = (i) => (row[i - 1].width + row[i].width) / 2 + GAP;
        row[0] && (row[0].x = row[0].want);
        for (let i = 1; i < row.length; ++i) row[i].x = Math.max(row[i].want, row[i - 1].x + room(i));
        // What was pushed to the right is taken back by half.
        const pushed = row.reduce((sum, place) => sum + place.x - place.want, 0) / Math.max(1, row.length);
        for (const place of row) place.x -= pushed;
      }
    }
  };

  const span = (places) => places.reduce(([low, high], { x, width }) =>
    [Math.min(low, x - width / 2), Math.max(high, x + width / 2)], [Infinity, -Infinity]);

  // A network is long and thin, a screen is not: it goes on at the top of the next column, best where
  // few lines have to.
  const fold = ({ rows, places }, aspect) => {
    const [low, high] = span(places);
    const columns = Math.max(1, Math.round(Math.sqrt(aspect * rows.length * ROW / (high - low + GUTTER))));
    const most = Math.ceil(rows.length / columns);
    let left = 0;
    for (let first = 0, end; first < rows.length; first = end) {
      end = Math.min(rows.length, first + most);
      for (let row = end, least = first + Math.ceil(0.75 * most); row >= least && end < rows.length; --row) {
        if (rows[row].length < rows[end].length) end = row;
      }
      const column = rows.slice(first, end).flat();
      const [from, to] = span(column);
      for (const place of column) {
        Object.assign(place, { x: place.x + left - from, y: (place.row - first) * ROW, column: left });
      }
      left += to - from + GUTTER;
    }
  };

  const layout = (nodes, aspect) => {
    const made = rows_of(nodes);
    order(made.rows);
    set_x(made.rows);
    if (nodes.length) fold(made, aspect);
    return made;
  };

  const add = (name, attributes, parent, text) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.appendChild(made);
    return made;
  };

  const curve = (line) => {
    let path = `M${line[0].x} ${line[0].y + H}`;
    for (let k = 1; k < line.length; ++k) {
      const [from, to] = [line[k - 1], line[k]];
      const start = k === 1 ? from.y + H : from.y + H / 2;
      const end = k === line.length - 1 ? to.y : to.y + H / 2;
      if (from.column !== to.column) {  // up beside the column that it comes to
        const x = to.column - GUTTER / 2;
        path += `C${from.x} ${start + ROW / 2} ${x} ${start + ROW / 2} ${x} ${start}L${x} ${end}`
          + `C${x} ${end - ROW / 2} ${to.x} ${end - ROW / 2} ${to.x} ${end}`;
        continue;
      }
      path += `C${from.x} ${(start + end) / 2} ${to.x} ${(start + end) / 2} ${to.x} ${end}`;
    }
    return path;
  };

  // Names tell layers apart at their ends.
  const shorten = (name, most) => {
    if (name.length <= most) return name;
    const front = Math.max(0, Math.floor((most - 1) / 3));
    return `${name.slice(0, front)}\u2026${name.slice(name.length - Math.max(1, most - 1 - front))}`;
  };

  // The operator and as much of the name as a box has room for.
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = "11px sans-serif";
  const fitting = ({ op, name }) => {
    let words = `${op} ${name}`;
    for (let letters = name.length; letters > 3 && pen.measureText(words).width > W - 12;) {
      letters -= Math.max(1, Math.floor((pen.measureText(words).width - W) / 9));
      words = `${op} ${shorten(name, letters)}`;
    }
    return words;
  };

  const FAR = 0.45;  // below this text cannot be read

  const make = (svg, frame, nodes, on_choose) => {
    const size = () => frame.getBoundingClientRect();
    const { places, lines } = layout(nodes, size().width / size().height);
    const world = add("g", {}, svg);
    const edges = lines.map((line) => ({ path: add("path", { d: curve(line) }, world), ends: [line[0].node, line[line.length - 1].node] }));
    const boxes = nodes.map((node, i) => {
      const { x, y } = places[i];
      const box = add("g", { class: "node", "data-node": i }, world);
      add("rect", { x: x - W / 2, y, width: W, height: H, rx: 4 }, box);
      add("text", { x: x - W / 2 + 5, y: y + 16 }, box, fitting(node));
      add("title", {}, box, `${node.name}\n${node.op}, ${node.kind}`);
      return box;
    });
    const view = { x: 0, y: 0, scale: 1 };
    const show = () => {
      world.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
      world.classList.toggle("far", view.scale < FAR);
      frame.dataset.scale = view.scale.toFixed(4);
    };
    const zoom = (factor, x = size().width / 2, y = size().height / 2) => {
      const scale = Math.min(4, Math.max(0.01, view.scale * factor));
      view.x = x - (x - view.x) * scale / view.scale;
      view.y = y - (y - view.y) * scale / view.scale;
      view.scale = scale;
      show();
    };
    const move = (dx, dy) => { view.x += dx; view.y += dy; show(); };
    const centre = (i, least = 0.9) => {
      view.scale = Math.max(view.scale, least);
      view.x = size().width / 2 - places[i].x * view.scale;
      view.y = size().height / 2 - places[i].y * view.scale;
      show();
    };
    const ends = (key) => places.reduce(([low, high], p) => [Math.min(low, p[key]), Math.max(high, p[key])], [Infinity, -Infinity]);
    const fit = () => {
      if (!places.length) return;
      const [[left, right], [top, bottom]] = [ends("x"), ends("y")];
      const { width, height } = size();
      view.scale = Math.min(1.5, width / (right - left + W + 40), height / (bottom - top + H + 40));
      view.x = width / 2 - (left + right) / 2 * view.scale;
      view.y = height / 2 - (top + bottom + H) / 2 * view.scale;
      show();
    };
    // Where the whole cannot be read, its beginning can, and the whole is one key away.
    const start = () => {
      if (!places.length) return;
      fit();
      if (view.scale >= FAR) return;
      const [left, right] = span(places.filter((place) => place.column === places[0].column));
      view.scale = 0.8;
      view.x = (right - left) * 0.8 < size().width ? 20 - left * 0.8 : size().width / 2 - places[0].x * 0.8;
      view.y = 20;
      show();
    };
    const mark = (name, wanted) => boxes.forEach((box, i) => box.classList.toggle(name, wanted(i)));
    const choose = (i) => {
      mark("chosen", (each) => each === i);
      for (const { path, ends } of edges) path.classList.toggle("chosen", ends.includes(i));
    };

    let drag = null;
    frame.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = size();
      zoom(Math.exp(-event.deltaY / 400), event.clientX - box.left, event.clientY - box.top);
    }, { passive: false });
    frame.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, y: event.clientY, moved: 0 }; });
    frame.addEventListener("pointermove", (event) => {
      if (!drag || !event.buttons) return;
      const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
      drag = { x: event.clientX, y: event.clientY, moved: drag.moved + Math.abs(dx) + Math.abs(dy) };
      move(dx, dy);
    });
    frame.addEventListener("click", (event) => {
      const box = event.target.closest("g.node");
      if (box && !(drag && drag.moved > 4)) on_choose(Number(box.dataset.node));
    });
    frame.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
      if (step) { move(...step); event.preventDefault(); }
      if (event.key === "+") zoom(1.25);
      if (event.key === "-") zoom(0.8);
      if (event.key === "0") fit();
    });
    const paint = (color_of) => boxes.forEach((box, i) => {
      const color = color_of(nodes[i], i);
      box.firstChild.style.fill = color;
      box.classList.toggle("pale", color.startsWith("var"));
    });
    start();
    return { zoom, fit, centre, mark, choose, paint };
  };

  return { layout, make, shorten };
})();
