// What is shown of the whole module: kernels by time, steps as a list and as a graph, memory, messages.

hloc.bounds = ["memory", "issue", "shared", "latency"];

// A bar of what a kernel's time is made of.
hloc.bar = estimate => {
  const all = Math.max(...hloc.bounds.map(bound => estimate[bound + "_us"]), 1e-9);
  return hloc.element("span", { class: "bars", role: "img",
      "aria-label": hloc.bounds.map(bound => `${bound} ${hloc.amount(estimate[bound + "_us"])} microseconds`).join(", ") },
    hloc.bounds.map(bound => hloc.element("span", { class: "bar " + bound, title: `${bound}: ${hloc.amount(estimate[bound + "_us"], " µs")}`,
      style: `width:${100 * estimate[bound + "_us"] / all}%` })));
};

// A table that a click on a head sorts. `columns`: [{head, value(row), cell?(row), isNumber}].
hloc.sortable = (columns, rows, caption, onChoose) => {
  const body = hloc.element("tbody");
  let sorted = rows, column = null, down = true;
  const draw = () => body.replaceChildren(...sorted.map(row => hloc.element("tr",
    onChoose ? { tabindex: "0", onclick: () => onChoose(row), onkeydown: event => { if (event.key === "Enter") onChoose(row); } } : {},
    columns.map(each => hloc.element("td", { class: each.isNumber ? "number" : "" },
      each.cell ? each.cell(row) : each.isNumber ? hloc.amount(each.value(row)) : String(each.value(row)))))));
  const heads = columns.map(each => hloc.element("th", { scope: "col" },
    hloc.element("button", { type: "button", onclick: () => {
      down = column === each ? !down : Boolean(each.isNumber);
      column = each;
      sorted = [...sorted].sort((a, b) => {
        const x = each.value(a), y = each.value(b);
        return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
      });
      heads.forEach((head, i) => head.setAttribute("aria-sort", columns[i] === each ? (down ? "descending" : "ascending") : "none"));
      draw();
    } }, each.head)));
  draw();
  const element = hloc.element("table", {}, hloc.element("caption", {}, caption), hloc.element("thead", {}, hloc.element("tr", {}, heads)), body);
  return { element, filter: wanted => { sorted = rows.filter(wanted); draw(); } };
};

hloc.kernelsView = app => {
  const { kernels } = app;
  const table = hloc.sortable([
    { head: "kernel", value: kernel => kernel.name, cell: kernel => [hloc.element("span", { class: "swatch", style: `--hue:${kernel.hue}` }), kernel.name] },
    { head: "emitter", value: kernel => kernel.hero },
    { head: "launches", value: kernel => kernel.launches, isNumber: true },
    { head: "µs each", value: kernel => kernel.estimate?.total_us ?? 0, isNumber: true },
    { head: "µs in all", value: kernel => kernel.total, isNumber: true },
    { head: "bound by", value: kernel => kernel.estimate?.bound ?? "", cell: kernel => kernel.estimate ? [hloc.bar(kernel.estimate), kernel.estimate.bound] : [] },
    { head: "blocks", value: kernel => kernel.grid.reduce((a, b) => a * b, 1), isNumber: true },
    { head: "threads", value: kernel => kernel.block.reduce((a, b) => a * b, 1), isNumber: true },
    { head: "bytes", value: kernel => kernel.bytes_read + kernel.bytes_written, isNumber: true, cell: kernel => hloc.bytes(kernel.bytes_read + kernel.bytes_written) },
    { head: "operation", value: kernel => kernel.op_name ?? "" }
  ], kernels, `${kernels.length} kernels, by estimated time of all their launches`, kernel => app.go({ view: "kernel", kernel: kernel.number }));
  const search = hloc.element("input", { type: "search", id: "search", placeholder: "filter (/)", "aria-label": "filter kernels",
    oninput: () => table.filter(kernel => [kernel.name, kernel.hero, kernel.op_name ?? ""].join(" ").toLowerCase().includes(search.value.toLowerCase())) });
  return hloc.element("div", { class: "scroll" }, search, table.element);
};

// --- steps

// [{title, steps}] of what is inside.
hloc.inside = step => {
  if (step.body) return [...(step.condition ? [{ title: "condition", steps: step.condition }] : []), { title: "body", steps: step.body }];
  return (step.branches ?? []).map((steps, i) => ({ title: `branch ${i}`, steps }));
};

hloc.kernelOf = (app, step) => step.kind === "launch" ? app.kernels.byNumber[step.kernel] : null;

hloc.countSteps = steps => steps.reduce((sum, step) => sum + 1 + hloc.inside(step).reduce((inner, part) => inner + hloc.countSteps(part.steps), 0), 0);

hloc.stepTitle = (app, step) => {
  const kernel = hloc.kernelOf(app, step);
  if (kernel) return kernel.name;
  if (step.body) return `${step.name}: loop${step.rounds !== undefined ? ` of ${hloc.amount(step.rounds)} rounds` : ""}`;
  return `${step.name}: ${step.function ?? step.kind}`;
};

hloc.stepsView = app => {
  const steps = app.data.manifest.steps;
  const list = (all, depth) => hloc.element("ol", { class: "steps" }, all.map(step => {
    const inside = hloc.inside(step);
    const kernel = hloc.kernelOf(app, step);
    const title = hloc.stepTitle(app, step);
    const head = kernel
      ? hloc.element("button", { type: "button", class: "link", onclick: () => app.go({ view: "kernel", kernel: kernel.number }) },
          hloc.element("span", { class: "swatch", style: `--hue:${kernel.hue}` }), title, hloc.element("small", {}, ` ${kernel.hero} · ${hloc.amount(kernel.estimate?.total_us ?? 0, " µs")}`))
      : hloc.element("span", { class: "kind " + step.kind }, title);
    if (!inside.length) return hloc.element("li", { "data-title": title.toLowerCase() }, head);
    return hloc.element("li", { "data-title": title.toLowerCase() }, hloc.element("details", { open: depth < 2 }, hloc.element("summary", {}, head),
      inside.map(part => hloc.element("div", {}, hloc.element("small", {}, part.title), list(part.steps, depth + 1)))));
  }));
  const whole = list(steps, 0);
  const search = hloc.element("input", { type: "search", id: "search", placeholder: "find a step (/)", "aria-label": "find a step", oninput: () => {
    const words = search.value.toLowerCase();
    for (const item of whole.querySelectorAll("li")) {
      const found = words !== "" && item.dataset.title.includes(words);
      item.classList.toggle("found", found);
      for (let above = item.parentElement.closest("details"); found && above; above = above.parentElement.closest("details")) above.open = true;
    }
    whole.querySelector(".found")?.scrollIntoView({ block: "center" });
    graph.find(words);
  } });
  const graph = hloc.graph(app, steps);
  return hloc.element("div", { class: "split" }, hloc.element("div", { class: "scroll" }, search, hloc.element("p", {}, `${hloc.countSteps(steps)} steps`), whole), graph.element);
};

// Which steps of a list read what which others have written, by buffers: [[from, to]].
hloc.dependences = (app, steps) => {
  const writers = new Map(), edges = new Set();
  const slices = step => {
    const reads = [], writes = [];
    const visit = one => {
      const kernel = hloc.kernelOf(app, one);
      if (kernel) one.arguments.forEach((argument, i) => {
        if (argument.buffer !== undefined) (kernel.parameters[i]?.written ? writes : reads).push(argument.buffer);
      });
      for (const slice of [one.from, one.predicate, one.selector, ...(one.reads ?? [])]) if (slice) reads.push(slice.buffer);
      for (const slice of [one.to, ...(one.writes ?? [])]) if (slice) writes.push(slice.buffer);
      hloc.inside(one).forEach(part => part.steps.forEach(visit));
    };
    visit(step);
    return { reads, writes };
  };
  steps.forEach((step, i) => {
    const { reads, writes } = slices(step);
    for (const buffer of reads) if (writers.has(buffer) && writers.get(buffer) !== i) edges.add(`${writers.get(buffer)} ${i}`);
    for (const buffer of writes) writers.set(buffer, i);
  });
  return [...edges].map(edge => edge.split(" ").map(Number));
};

// Places of nodes are dagre's, which a worker asks; without it they stand in a column.
hloc.layout = (sizes, edges) => new Promise(resolve => {
  const column = () => { let y = 0; resolve(sizes.map(size => ({ x: 0, y: (y += 60) - 60, ...size }))); };
  const libraries = document.getElementById("libraries").textContent;
  if (!libraries.includes("dagre")) return column();
  const source = `onmessage = event => {
    const graph = new dagre.graphlib.Graph();
    graph.setGraph({ rankdir: "TB", nodesep: 12, ranksep: 28, ranker: event.data.sizes.length > 120 ? "longest-path" : "network-simplex" });
    graph.setDefaultEdgeLabel(() => ({}));
    event.data.sizes.forEach((size, i) => graph.setNode(String(i), { ...size }));
    event.data.edges.forEach(([from, to]) => graph.setEdge(String(from), String(to)));
    dagre.layout(graph);
    postMessage(event.data.sizes.map((_, i) => graph.node(String(i))));
  };`;
  const worker = new Worker(URL.createObjectURL(new Blob(["var window = self;\n", libraries, "\n", source], { type: "text/javascript" })));
  worker.onmessage = event => { resolve(event.data); worker.terminate(); };
  worker.onerror = () => { column(); worker.terminate(); };
  worker.postMessage({ sizes, edges });
});

hloc.graph = (app, steps) => {
  const path = [{ title: "entry", steps }];
  const crumbs = hloc.element("nav", { "aria-label": "where in the program" });
  const drawing = hloc.element("svg:g");
  const svg = hloc.element("svg:svg", { class: "graph", role: "img", "aria-label": "steps and what they read of each other", tabindex: "0" }, drawing);
  let scale = 1, x = 20, y = 20, words = "";
  const place = () => drawing.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
  const zoom = (factor, atX, atY) => {
    const next = Math.min(4, Math.max(0.05, scale * factor));
    x = atX - (atX - x) * next / scale;
    y = atY - (atY - y) * next / scale;
    scale = next;
    place();
  };
  svg.addEventListener("wheel", event => {
    const box = svg.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 400), event.clientX - box.left, event.clientY - box.top);
    event.preventDefault();
  }, { passive: false });
  const pointers = new Map();
  svg.addEventListener("pointerdown", event => { if (!event.target.closest(".node")) { pointers.set(event.pointerId, event); svg.setPointerCapture(event.pointerId); } });
  svg.addEventListener("pointermove", event => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const other = [...pointers.values()].find(each => each.pointerId !== event.pointerId);
    const box = svg.getBoundingClientRect();
    if (other) zoom(Math.hypot(event.clientX - other.clientX, event.clientY - other.clientY) / Math.max(1, Math.hypot(before.clientX - other.clientX, before.clientY - other.clientY)), other.clientX - box.left, other.clientY - box.top);
    else { x += event.clientX - before.clientX; y += event.clientY - before.clientY; place(); }
    pointers.set(event.pointerId, event);
  });
  for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, event => pointers.delete(event.pointerId));
  svg.addEventListener("keydown", event => {
    const box = svg.getBoundingClientRect(), moves = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    if (event.key === "+" || event.key === "-") zoom(event.key === "+" ? 1.25 : 0.8, box.width / 2, box.height / 2);
    else if (event.key in moves) { x += moves[event.key][0]; y += moves[event.key][1]; place(); }
    else return;
    event.preventDefault();
  });
  const mark = () => drawing.querySelectorAll(".node").forEach(node => node.classList.toggle("found", words !== "" && node.dataset.title.includes(words)));
  const draw = async () => {
    const { steps: shown } = path.at(-1);
    crumbs.replaceChildren(...path.flatMap((part, i) => [i ? " › " : "", hloc.element("button", { type: "button", class: "link", onclick: () => { path.length = i + 1; draw(); } }, part.title)]));
    const titles = shown.map(step => hloc.stepTitle(app, step));
    const edges = hloc.dependences(app, shown);
    const nodes = await hloc.layout(titles.map(title => ({ width: Math.min(220, 20 + 7 * title.length), height: 30 })), edges);
    const lines = edges.map(([from, to]) => {
      const a = nodes[from], b = nodes[to], middle = (a.y + b.y) / 2;
      return hloc.element("svg:path", { class: "edge", d: `M${a.x} ${a.y + 15}C${a.x} ${middle} ${b.x} ${middle} ${b.x} ${b.y - 15}` });
    });
    const boxes = nodes.map((node, i) => {
      const step = shown[i], kernel = hloc.kernelOf(app, step), inside = hloc.inside(step);
      const choose = () => {
        if (kernel) return app.go({ view: "kernel", kernel: kernel.number });
        if (!inside.length) return;
        const part = inside.at(-1);
        path.push({ title: `${step.name} ${part.title}`, steps: part.steps });
        draw();
      };
      return hloc.element("svg:g", { class: "node " + step.kind, transform: `translate(${node.x - node.width / 2} ${node.y - 15})`, tabindex: "0", role: "button",
          "data-title": titles[i].toLowerCase(), style: kernel ? `--hue:${kernel.hue}` : null, onclick: choose, onkeydown: event => { if (event.key === "Enter") choose(); } },
        hloc.svgTitle(titles[i] + (kernel ? `: ${kernel.hero}, ${hloc.amount(kernel.estimate?.total_us ?? 0, " µs")}` : "")),
        hloc.element("svg:rect", { width: node.width, height: 30, rx: inside.length ? 10 : 3 }),
        hloc.element("svg:text", { x: 10, y: 19 }, titles[i].length > 28 ? titles[i].slice(0, 27) + "…" : titles[i]));
    });
    drawing.replaceChildren(...lines, ...boxes);
    x = y = 20;
    scale = 1;
    if (nodes.length) x = Math.max(20, svg.clientWidth / 2) - nodes[0].x;
    place();
    mark();
    svg.dataset.nodes = nodes.length;
  };
  const element = hloc.element("div", { class: "graphs" }, hloc.element("header", {}, crumbs,
    hloc.element("button", { type: "button", "aria-label": "zoom in", onclick: () => zoom(1.25, svg.clientWidth / 2, svg.clientHeight / 2) }, "+"),
    hloc.element("button", { type: "button", "aria-label": "zoom out", onclick: () => zoom(0.8, svg.clientWidth / 2, svg.clientHeight / 2) }, "−")), svg);
  requestAnimationFrame(draw);
  return { element, find: text => { words = text; mark(); } };
};

// --- memory

// Of each buffer the first and the last step that names it, and which write it, by the order of the steps.
hloc.lifetimes = (app) => {
  const uses = app.data.manifest.buffers.map(() => null), names = [];
  const use = (buffer, at, isWritten) => {
    uses[buffer] ??= { first: at, last: at, writes: [] };
    uses[buffer].last = at;
    if (isWritten && uses[buffer].writes.at(-1) !== at) uses[buffer].writes.push(at);
  };
  const visit = steps => steps.forEach(step => {
    const at = names.length;
    names.push(hloc.stepTitle(app, step));
    const parameters = hloc.kernelOf(app, step)?.parameters ?? [];
    (step.arguments ?? []).forEach((slice, i) => { if (slice.buffer !== undefined) use(slice.buffer, at, parameters[i]?.written); });
    for (const slice of [step.from, step.predicate, step.selector, ...(step.reads ?? [])]) if (slice?.buffer !== undefined) use(slice.buffer, at, false);
    for (const slice of [step.to, ...(step.writes ?? [])]) if (slice?.buffer !== undefined) use(slice.buffer, at, true);
    hloc.inside(step).forEach(part => visit(part.steps));
    // What a loop names it may need in its next round.
    if (step.body) uses.forEach(found => { if (found && found.last >= at) { found.first = Math.min(found.first, at); found.last = names.length - 1; } });
  });
  visit(app.data.manifest.steps);
  return { uses, names };
};

// What a buffer is of: `parameter 0`, `result {1}`, both where a result takes a parameter's place.
hloc.ownerOf = (app, buffer, number) => {
  const leaf = path => path?.length ? ` {${path.join(", ")}}` : "";
  const results = app.data.manifest.results.filter(result => result.slice?.buffer === number).map(result => `result${leaf(result.leaf)}`);
  const own = buffer.kind === "parameter" ? [`parameter ${buffer.parameter}${leaf(buffer.leaf)}`] : buffer.kind === "result" && results.length ? [] : [buffer.kind];
  return [...own, ...results].join(", ");
};

// Buffers that share no memory lie one above the other: pale while nobody needs them, darkest where a step writes them.
hloc.ownMemory = (app, buffers, names) => {
  const width = Math.max(1, names.length), bytes = Math.max(1, buffers.reduce((sum, buffer) => sum + buffer.bytes, 0));
  const heights = buffers.map(buffer => Math.max(0.005, buffer.bytes / bytes)), height = heights.reduce((sum, each) => sum + each, 0);
  let top = 0;
  const bar = (name, first, last, at) => hloc.element("svg:rect", { class: name, x: 1000 * first / width, width: 1000 * (last - first + 1) / width, ...at });
  const bands = buffers.map((buffer, i) => {
    const at = { y: top, height: 400 * heights[i] / height }, { use } = buffer;
    top += at.height;
    const runs = []; // of steps that write
    for (const step of use?.writes ?? []) {
      if (runs.length && runs.at(-1)[1] === step - 1) runs.at(-1)[1] = step;
      else runs.push([step, step]);
    }
    const said = !use ? "no step names it" : `named by steps ${use.first + 1} (${names[use.first]}) to ${use.last + 1} (${names[use.last]}), ${use.writes.length ? `written first by step ${use.writes[0] + 1} (${names[use.writes[0]]})` : "never written"}`;
    return hloc.element("svg:g", { class: buffer.kind, "data-buffer": buffer.number }, hloc.svgTitle(`buffer ${buffer.number}, ${buffer.owner}${buffer.shape ? " " + buffer.shape : ""}: ${hloc.bytes(buffer.bytes)}; ${said}`),
      bar("all", 0, width - 1, at), use ? bar("used", use.first, use.last, at) : null, runs.map(([first, last]) => bar("written", first, last, at)));
  });
  const key = kind => hloc.element("span", {}, hloc.element("span", { class: "key " + kind }), kind === "temporary" ? "temporaries " : `${kind}s `);
  return [hloc.element("p", {}, `What shares no memory has ${hloc.bytes(bytes)} of its own all the time; it is paler before the first step that names it and after the last, darkest where a step writes it. `, [...new Set(buffers.map(buffer => buffer.kind))].map(key)),
    hloc.element("svg:svg", { class: "memory own", viewBox: "0 0 1000 400", preserveAspectRatio: "none", role: "img", "aria-label": `${buffers.length} buffers with memory of their own over ${width} steps` }, bands)];
};

hloc.memoryView = app => {
  const { uses, names } = hloc.lifetimes(app);
  const buffers = app.data.manifest.buffers.map((buffer, number) => ({ ...buffer, number, use: uses[number], owner: hloc.ownerOf(app, buffer, number) }));
  const own = buffers.filter(buffer => buffer.offset === undefined && buffer.bytes > 0);
  const shared = buffers.filter(buffer => buffer.offset !== undefined && buffer.use);
  const height = Math.max(1, ...shared.map(buffer => buffer.offset + buffer.bytes)), width = Math.max(1, names.length);
  const atStep = new Array(width).fill(0);
  for (const buffer of shared) for (let i = buffer.use.first; i <= buffer.use.last; ++i) atStep[i] += buffer.bytes;
  const peak = atStep.indexOf(Math.max(...atStep));
  const svg = hloc.element("svg:svg", { class: "memory", viewBox: "0 0 1000 400", preserveAspectRatio: "none", role: "img", "aria-label": `temporaries over ${width} steps; the most at step ${peak + 1}, ${names[peak] ?? ""}` },
    shared.map(buffer => hloc.element("svg:rect", { x: 1000 * buffer.use.first / width, width: 1000 * (buffer.use.last - buffer.use.first + 1) / width,
      y: 400 - 400 * (buffer.offset + buffer.bytes) / height, height: Math.max(0.5, 400 * buffer.bytes / height), style: `--hue:${buffer.number * 137 % 360}` },
      hloc.svgTitle(`buffer ${buffer.number}${buffer.shape ? " " + buffer.shape : ""}: ${hloc.bytes(buffer.bytes)} at ${buffer.offset}, steps ${buffer.use.first + 1} to ${buffer.use.last + 1} (${names[buffer.use.first]} … ${names[buffer.use.last]})`))),
    shared.length ? hloc.element("svg:line", { class: "peak", x1: 1000 * (peak + 0.5) / width, x2: 1000 * (peak + 0.5) / width, y1: 0, y2: 400 }) : null);
  const others = hloc.sortable([
    { head: "buffer", value: buffer => buffer.number, isNumber: true },
    { head: "what", value: buffer => buffer.owner },
    { head: "shape", value: buffer => buffer.shape ?? "" },
    { head: "bytes", value: buffer => buffer.bytes, isNumber: true, cell: buffer => hloc.bytes(buffer.bytes) },
    { head: "at", value: buffer => buffer.offset ?? -1, cell: buffer => buffer.offset === undefined ? "its own" : String(buffer.offset) },
    { head: "first step", value: buffer => buffer.use ? buffer.use.first + 1 : 0, isNumber: true },
    { head: "last step", value: buffer => buffer.use ? buffer.use.last + 1 : 0, isNumber: true },
    { head: "written first by", value: buffer => buffer.use?.writes.length ? names[buffer.use.writes[0]] : "" }
  ], buffers, `${buffers.length} buffers`);
  return hloc.element("div", { class: "scroll" },
    hloc.element("p", {}, shared.length ? `Temporaries share ${hloc.bytes(height)}; most of it is needed at step ${peak + 1}, ${names[peak]}: ${hloc.bytes(atStep[peak])}. Steps run from left to right.` : "There are no temporaries that share memory."),
    shared.length ? svg : null, own.length ? hloc.ownMemory(app, own, names) : null, others.element);
};

// --- messages

// The kernel that a line of the PTX that was executed is of, or undefined.
hloc.kernelAt = (app, line) => {
  const number = (app.data.executed ?? []).findIndex(([first, last]) => first <= line && line <= last);
  return number >= 0 ? number : undefined;
};

hloc.messages = (app, diagnostics) => hloc.element("ul", { class: "messages" }, diagnostics.map(message => {
  const place = part => part.line === undefined ? [] : [part.isSource
    ? hloc.element("button", { type: "button", class: "link", onclick: () => app.go({ view: "source", line: part.line }) }, `line ${part.line}`)
    : hloc.kernelAt(app, part.line) !== undefined
      ? hloc.element("button", { type: "button", class: "link", onclick: () => app.go({ view: "kernel", kernel: hloc.kernelAt(app, part.line), ptx: part.line }) }, `PTX line ${part.line}`)
      : hloc.element("span", {}, `${part.file}:${part.line}`), hloc.element("pre", {}, part.text)];
  return hloc.element("li", { class: message.severity }, hloc.element("strong", {}, message.severity), " ", hloc.element("span", { class: "text" }, message.message), ` [${message.kind}] `, place(message),
    message.notes.length ? hloc.element("ul", {}, message.notes.map(note => hloc.element("li", {}, note.message, " ", place(note)))) : null);
}));

// Numbers by name; those of a part with the part's name.
hloc.counterTable = counters => {
  const rows = [];
  const add = (name, value) => {
    if (typeof value === "number") { if (value) rows.push({ name, value }); }
    else if (Array.isArray(value)) value.forEach(part => add(`${name} ${part.name ?? ""}`.trim(), part));
    else if (value && typeof value === "object") for (const [key, part] of Object.entries(value)) if (key !== "name") add(`${name} ${key.replaceAll("_", " ")}`.trim(), part);
  };
  add("", counters);
  return hloc.sortable([{ head: "what", value: row => row.name }, { head: "number", value: row => row.value, isNumber: true }], rows, `${rows.length} counters that are not 0`).element;
};

// What led to the first element that is wrong: the reference's values, from inputs to the element.
hloc.chain = (app, chain) => {
  const at = value => `${value.name}[${value.index.join(", ")}]`;
  const named = i => hloc.element("a", { href: `#chain-${i}`, onclick: event => { event.preventDefault(); rows[i].scrollIntoView({ block: "nearest" }); rows[i].focus(); } }, at(chain.values[i]));
  const how = value => [
    value.numTerms ? hloc.element("div", {}, `${hloc.amount(value.numTerms)} ${value.numTerms === 1 ? "term" : "terms"}${value.terms.length < value.numTerms ? ", of which these matter most" : ""}`,
      hloc.element("ul", {}, value.terms.map(term => hloc.element("li", {}, term)))) : null,
    value.operands.length ? hloc.element("div", {}, !value.numTerms ? "of " : value.opcode === "dot" ? "the first is of " : "the first, and what it begins with: ", value.operands.map((i, n) => [n ? ", " : "", named(i)])) : null,
    value.end ? hloc.element("div", { class: "note" }, value.end) : null];
  const rows = chain.values.map((value, i) => hloc.element("tr", { tabindex: "-1", id: `chain-${i}` },
    hloc.element("td", {}, value.line ? hloc.element("button", { type: "button", class: "link", onclick: () => app.go({ view: "source", line: value.line }) }, `line ${value.line}`) : null),
    hloc.element("td", {}, hloc.element("code", {}, at(value))), hloc.element("td", {}, `${value.type} ${value.opcode}`),
    hloc.element("td", { class: "number" }, hloc.element("strong", {}, value.value)), hloc.element("td", { class: "how" }, how(value))));
  const result = chain.leaf.length ? `result {${chain.leaf.join(", ")}}` : "the result";
  return [hloc.element("h2", {}, "What led to the first wrong element"),
    hloc.element("p", {}, `Element [${chain.index.join(", ")}] of ${result}${chain.step ? ` of step ${chain.step}` : ""} is `, hloc.element("strong", {}, chain.actual),
      ", and by the reference ", hloc.element("strong", {}, chain.expected), chain.admissible ? `; admissible is ${chain.admissible}.` : "; nothing else is admissible."),
    chain.missing ? hloc.element("p", { class: "note" }, `How it comes about is not shown: ${chain.missing}.`)
      : hloc.element("table", { class: "chain" }, hloc.element("caption", {}, "values by the reference, each behind what it is made of"),
          hloc.element("thead", {}, hloc.element("tr", {}, ["HLO", "element", "what", "value", "made of"].map(head => hloc.element("th", { scope: "col" }, head)))), hloc.element("tbody", {}, rows))];
};

hloc.messagesView = app => {
  const { run, diagnostics } = app.data;
  const reported = run?.reported ?? [];
  // What the compilation says is said of a run again.
  const others = diagnostics.filter(one => !reported.some(other => other.message === one.message && other.line === one.line));
  return hloc.element("div", { class: "scroll" },
    run ? [hloc.element("h2", { class: "verdict " + run.verdict.replace(" ", "-") }, `Run: ${run.verdict}`), run.agreement ? hloc.element("pre", {}, run.agreement) : null,
           run.notes.map(note => hloc.element("p", {}, note)), hloc.messages(app, reported), run.chain ? hloc.chain(app, run.chain) : null] : null,
    others.length ? [hloc.element("h2", {}, "Compilation"), hloc.messages(app, others)] : run ? null : hloc.element("p", {}, "Nothing was reported."),
    run?.counters ? [hloc.element("h2", {}, "Counters of the first run"), hloc.counterTable(run.counters)] : null);
};
