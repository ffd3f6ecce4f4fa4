// A kernel: what was decided, what it takes, and its texts side by side.

// The texts of a kernel's block, in the order in which one became the other.
hloc.kernelTexts = data => {
  const table = hloc.lineTable(data);
  const names = { mlir: "MLIR", llvm: "LLVM", ptx: "PTX", sass: "machine code" };
  const title = stage => stage.kind === stage.name ? names[stage.kind] : stage.name === "executed" ? "PTX that was executed" : `${names[stage.kind]} after ${stage.name}`;
  return [...(data.hlo ? [hloc.text("hlo", "HLO of the kernel", table, data.hlo)] : []),
          ...data.stages.map(stage => hloc.text(stage.kind, title(stage), table, stage.text, stage.ms))];
};

// `executedLine`: a line of the PTX that a run has executed, to begin with.
hloc.kernelView = async (app, number, executedLine) => {
  const kernel = app.kernels.byNumber[number];
  const data = await hloc.block("kernel-" + number);
  const stages = [app.source, ...hloc.kernelTexts(data)];
  const ptx = stages.findLast(stage => stage.kind === "ptx");
  if (ptx) {
    ptx.marks = new Map();
    for (const finding of data.lint) if (finding.line !== undefined) ptx.marks.set(finding.line, [...(ptx.marks.get(finding.line) ?? []), `${finding.rule}: ${finding.message}`]);
  }
  if (ptx && data.counters?.length) hloc.heat(ptx, data.counters, app.heat ?? "sectors");
  const reported = (app.data.run?.reported ?? []).filter(one => !one.isSource && hloc.kernelAt(app, one.line) === number);
  const numbers = data.executedNumbers ? hloc.numbers(data.executedNumbers) : [];
  const shownLine = line => numbers.includes(line) ? data.executedAt + numbers.indexOf(line) : -1;
  for (const one of reported) {
    const line = shownLine(one.line);
    if (ptx && line >= 0) ptx.marks.set(line, [...(ptx.marks.get(line) ?? []), one.message]);
  }
  const find = (name, other) => { const found = stages.findIndex(stage => stage.name === name); return found >= 0 ? found : Math.max(0, other); };
  const left = new Pane(app, stages, find(app.chosen?.left, data.hlo ? 1 : 0), "left text");
  const right = new Pane(app, stages, find(app.chosen?.right, stages.indexOf(ptx)), "right text");
  app.panes = [left, right];
  if (executedLine && shownLine(executedLine) >= 0) app.afterShow = () => { right.choose(stages.indexOf(ptx)); right.goTo(shownLine(executedLine), true); };
  for (const [pane, side] of [[left, "left"], [right, "right"]])
    pane.select.addEventListener("change", () => { app.chosen = { ...app.chosen, [side]: pane.stage.name }; });
  return hloc.element("div", { class: "kernel" }, hloc.facts(app, kernel, data), hloc.element("div", { class: "panes" }, left.root, right.root));
};

// What a run has counted, by line; each with what the best possible would be, where there is such a number.
hloc.counted = {
  instructions: { of: line => line[1], title: line => `${hloc.amount(line[1])} warp instructions, ${hloc.amount(line[2] / line[1])} of 32 lanes` },
  sectors: { of: line => line[4], title: line => `${hloc.amount(line[4])} sectors for ${hloc.amount(line[3])} requests; ${hloc.amount(line[5])} at best` },
  passes: { of: line => line[6], title: line => `${hloc.amount(line[6])} passes of shared memory for ${hloc.amount(line[3])} requests; ${hloc.amount(line[7])} at best` },
  conflicts: { of: line => line[6] - line[7], title: line => `${hloc.amount(line[6] - line[7])} passes more than the ${hloc.amount(line[7])} of no bank conflict` },
  requests: { of: line => line[3], title: line => `${hloc.amount(line[3])} requests of memory` },
  divergence: { of: line => line[8], title: line => `${hloc.amount(line[8])} divergent branches` },
  idle: { of: line => 32 * line[1] - line[2], title: line => `${hloc.amount(32 * line[1] - line[2])} lanes idle of ${hloc.amount(32 * line[1])}` }
};

hloc.heat = (text, counters, what) => {
  const most = Math.max(1, ...counters.map(hloc.counted[what].of));
  text.heat = [];
  for (const line of counters) {
    const facts = Object.values(hloc.counted).filter(each => each.of(line)).map(each => each.title(line));
    text.heat[line[0]] = { share: hloc.counted[what].of(line) / most, title: facts.join("\n") };
  }
};

// Which of the counters colours the lines.
hloc.heatChoice = (app, data) => {
  if (!data.counters?.length) return null;
  const select = hloc.element("select", { id: "heat", onchange: () => {
    app.heat = select.value;
    for (const pane of app.panes) {
      const ptx = pane.stages.findLast(stage => stage.kind === "ptx");
      hloc.heat(ptx, data.counters, app.heat);
      pane.draw();
    }
  } }, Object.keys(hloc.counted).map(what => hloc.element("option", { selected: what === (app.heat ?? "sectors") },
    `${what}: ${hloc.amount(data.counters.reduce((sum, line) => sum + hloc.counted[what].of(line), 0))}`)));
  for (const option of select.options) option.value = option.textContent.split(":")[0];
  return hloc.element("p", {}, hloc.element("label", { for: "heat" }, "lines of PTX by "), select);
};

hloc.facts = (app, kernel, data) => {
  const { estimate } = kernel;
  const remarks = kernel.remarks ?? [];
  const row = (name, value) => [hloc.element("dt", {}, name), hloc.element("dd", {}, value)];
  return hloc.element("details", { class: "facts", open: window.innerHeight > 700 },
    hloc.element("summary", {}, hloc.element("span", { class: "swatch", style: `--hue:${kernel.hue}` }), hloc.element("strong", {}, kernel.name),
      ` ${kernel.hero} · ${hloc.amount(kernel.launches)} ${kernel.launches === 1 ? "launch" : "launches"} · ${estimate ? hloc.amount(estimate.total_us, " µs") + ` on ${app.data.device.name}, bound by ${estimate.bound}` : "no estimate"}`,
      kernel.proofs?.length ? ` · ${kernel.proofs.filter(proof => proof.verdict === "proved").length} of ${kernel.proofs.length} properties proved` : ""),
    hloc.element("div", { class: "columns" },
      hloc.element("dl", {}, row("plan", kernel.plan), row("launch", `${hloc.extents(kernel.grid)} blocks of ${hloc.extents(kernel.block)} threads${kernel.cluster ? `, clusters of ${hloc.extents(kernel.cluster)} blocks` : ""}${kernel.programmatic ? ", programmatic" : ""}`),
        row("shared memory", hloc.bytes((kernel.static_shared_bytes ?? 0) + (kernel.dynamic_shared_bytes ?? 0))),
        kernel.resources ? row("registers", `${kernel.resources.registers} a thread${kernel.resources.spill_store_bytes + kernel.resources.spill_load_bytes ? `, ${kernel.resources.spill_store_bytes} and ${kernel.resources.spill_load_bytes} bytes spilled` : ", none spilled"}`) : [],
        row("least traffic", `${hloc.bytes(kernel.bytes_read)} read, ${hloc.bytes(kernel.bytes_written)} written`),
        kernel.line ? row("HLO", hloc.element("button", { type: "button", class: "link", onclick: () => app.go({ view: "source", line: kernel.line }) }, `${kernel.instruction}, line ${kernel.line}`)) : row("HLO", kernel.instruction ?? ""),
        (kernel.rejections ?? []).length ? row("not taken", hloc.element("details", {}, hloc.element("summary", {}, `${kernel.rejections.length} emitters that come before it`), hloc.element("ul", {}, kernel.rejections.map(each => hloc.element("li", {}, `${each.hero}: ${each.reason}`))))) : []),
      estimate ? hloc.element("dl", {}, hloc.bounds.map(bound => row(bound, [hloc.element("span", { class: "bars" }, hloc.element("span", { class: "bar " + bound, style: `width:${100 * estimate[bound + "_us"] / Math.max(...hloc.bounds.map(each => estimate[each + "_us"]), 1e-9)}%` })), hloc.amount(estimate[bound + "_us"], " µs")])),
        row("launch", hloc.amount(estimate.launch_us, " µs")), row("sectors of 32 B", hloc.amount(estimate.sectors)), row("warp instructions", hloc.amount(estimate.instructions)), row("waves of blocks", hloc.amount(estimate.waves))) : null,
      estimate ? hloc.roofline(app, kernel) : null,
      hloc.proofs(kernel),
      hloc.element("div", {}, hloc.heatChoice(app, data), data.lint.length || remarks.length ? hloc.element("ul", { class: "messages" },
        data.lint.map(finding => hloc.element("li", { class: "warning" }, hloc.element("strong", {}, finding.rule), " ", finding.message, " ",
          finding.line === undefined ? null : hloc.element("button", { type: "button", class: "link", onclick: () => app.panes[1].goTo(finding.line, true) }, `PTX line ${finding.line + 1}`))),
        remarks.map(remark => hloc.element("li", { class: "remark" }, hloc.element("strong", {}, remark.kind), " ", remark.message))) : hloc.element("p", {}, "Neither lint nor remarks have anything to say."))));
};

// What --prove says of the kernel; nothing where it was not asked.
hloc.proofs = kernel => {
  if (!kernel.proofs?.length) return null;
  const where = ({ places, element, buffer }) => [places.map(place => `block ${place.block}, thread ${place.thread}`).join(" and "),
    element === undefined ? buffer : `element ${element} of ${buffer}`].filter(Boolean).join(", ");
  return hloc.element("div", {}, hloc.element("table", { class: "proofs" }, hloc.element("caption", {}, "whatever the inputs are"),
    hloc.element("thead", {}, hloc.element("tr", {}, ["property", "verdict", "reason"].map(head => hloc.element("th", { scope: "col" }, head)))),
    hloc.element("tbody", {}, kernel.proofs.map(proof => hloc.element("tr", {}, hloc.element("th", { scope: "row" }, proof.property),
      hloc.element("td", { class: ["proved", "refuted"].includes(proof.verdict) ? proof.verdict : "" }, proof.verdict),
      hloc.element("td", {}, proof.reason, proof.witness ? hloc.element("div", {}, where(proof.witness)) : null))))));
};

// Warp instructions a second over warp instructions a sector: under which roof the kernel is, and how far.
hloc.roofline = (app, kernel) => {
  const { device } = app.data, { estimate } = kernel;
  const peak = 4 * device.multiprocessors * device.gigahertz, sectorsPerNs = device.bytes_per_second / 32e9;
  const intensity = estimate.instructions / Math.max(1, estimate.sectors), reached = estimate.instructions / (1e3 * Math.max(1e-9, estimate.total_us));
  const width = 300, height = 160, x = value => 30 + (Math.log10(Math.min(1e4, Math.max(1e-2, value))) + 2) / 6 * (width - 40);
  const y = value => height - 25 - (Math.log10(Math.min(1e4, Math.max(1e-1, value))) + 1) / 5 * (height - 40);
  const ridge = peak / sectorsPerNs;
  return hloc.element("svg:svg", { class: "roofline", viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": `roofline: ${hloc.amount(intensity)} warp instructions a sector, ${hloc.amount(reached)} a nanosecond where ${hloc.amount(Math.min(peak, intensity * sectorsPerNs))} are possible` },
    hloc.element("svg:path", { class: "roof", d: `M${x(1e-2)} ${y(1e-2 * sectorsPerNs)}L${x(ridge)} ${y(peak)}L${x(1e4)} ${y(peak)}` }),
    hloc.element("svg:line", { class: "drop", x1: x(intensity), x2: x(intensity), y1: y(reached), y2: y(Math.min(peak, intensity * sectorsPerNs)) }),
    hloc.element("svg:circle", { cx: x(intensity), cy: y(reached), r: 5 }, hloc.svgTitle(`${hloc.amount(intensity)} warp instructions a sector, ${hloc.amount(reached)} a ns`)),
    hloc.element("svg:text", { x: 32, y: height - 8 }, "warp instructions a sector →"),
    hloc.element("svg:text", { x: 8, y: 12 }, "warp instructions a ns"));
};
