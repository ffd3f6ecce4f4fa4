// Two compilations beside each other: what has changed, kernel by kernel.

// Texts of two tables, with numbers by which equal lines are equal.
hloc.comparable = (before, after) => {
  const numbers = new Map();
  const renumbered = text => ({ ...text, numbers: Array.from({ length: text.size }, (_, i) => {
    const line = text.line(i);
    if (!numbers.has(line)) numbers.set(line, numbers.size);
    return numbers.get(line);
  }) });
  const other = renumbered(before);
  return { ...renumbered(after), before: other };
};

class DifferenceApp {
  constructor(before, after) {
    this.sides = [before, after];
    this.panes = [];
    this.lit = null;
    const find = (data, kernel) => (data.manifest?.kernels ?? []).findIndex(other => other.name === kernel.name);
    const described = (data, number) => number < 0 ? null : { ...data.manifest.kernels[number], number, digest: data.digests?.[number], estimate: data.estimates[data.manifest.kernels[number].name] };
    this.rows = [];
    (after.manifest?.kernels ?? []).forEach((kernel, number) => this.rows.push([described(before, find(before, kernel)), described(after, number)]));
    (before.manifest?.kernels ?? []).forEach((kernel, number) => { if (find(after, kernel) < 0) this.rows.push([described(before, number), null]); });
    this.main = hloc.element("main", { tabindex: "-1" });
    const time = data => Object.values(data.estimates ?? {}).reduce((sum, each) => sum + each.launches * each.total_us, 0);
    const name = data => `${data.file.split("/").at(-1)} (hloc ${data.version}, ${data.target})`;
    document.getElementById("app").replaceChildren(hloc.element("header", { class: "top" }, hloc.element("h1", {}, `${name(before)} → ${name(after)}`),
      hloc.element("span", { class: "note" }, `${hloc.amount(time(before), " µs")} → ${hloc.amount(time(after), " µs")} by estimate`),
      hloc.element("nav", {}, hloc.element("button", { type: "button", onclick: () => { location.hash = ""; } }, "Kernels"))), this.main);
    document.title = "difference – hloc";
    addEventListener("hashchange", () => this.show());
    this.show();
  }

  static kind([before, after]) {
    if (!before) return "new";
    if (!after) return "gone";
    return before.digest === after.digest && before.plan === after.plan ? "equal" : "changed";
  }

  async show() {
    const number = new URLSearchParams(location.hash.slice(1)).get("row");
    this.panes = [];
    this.main.replaceChildren(number !== null && this.rows[number] ? await this.kernel(this.rows[number]) : this.table());
    for (const pane of this.panes) { pane.draw(); pane.light(); }
    document.body.dataset.view = number === null ? "kernels" : "kernel";
    document.body.dataset.shown = location.hash;
  }

  table() {
    const value = (row, side, of) => row[side] ? of(row[side]) : undefined;
    const both = (row, of) => [0, 1].map(side => value(row, side, of) ?? "–").filter((text, i, all) => i === 0 || text !== all[0]).join(" → ");
    const time = kernel => kernel.estimate?.total_us ?? 0;
    const order = { changed: 0, new: 1, gone: 2, equal: 3 };
    const rows = this.rows.map((row, number) => ({ row, number })).sort((a, b) => order[DifferenceApp.kind(a.row)] - order[DifferenceApp.kind(b.row)]);
    const counts = Object.keys(order).map(kind => `${rows.filter(each => DifferenceApp.kind(each.row) === kind).length} ${kind}`).join(", ");
    return hloc.element("div", { class: "scroll" }, hloc.sortable([
      { head: "kernel", value: ({ row }) => (row[1] ?? row[0]).name },
      { head: "what", value: ({ row }) => DifferenceApp.kind(row) },
      { head: "emitter", value: ({ row }) => both(row, kernel => kernel.hero) },
      { head: "launches", value: ({ row }) => both(row, kernel => hloc.amount(kernel.estimate?.launches ?? 0)) },
      { head: "µs each", value: ({ row }) => both(row, kernel => hloc.amount(time(kernel))) },
      { head: "ratio", isNumber: true, value: ({ row }) => row[0] && row[1] && time(row[0]) ? time(row[1]) / time(row[0]) : 1 },
      { head: "registers", value: ({ row }) => both(row, kernel => kernel.resources?.registers ?? "") },
      { head: "launch", value: ({ row }) => both(row, kernel => `${hloc.extents(kernel.grid)} of ${hloc.extents(kernel.block)}`) },
      { head: "plan", value: ({ row }) => both(row, kernel => kernel.plan) }
    ], rows, `${rows.length} kernels: ${counts}`, ({ number }) => { location.hash = `row=${number}`; }).element);
  }

  async kernel(row) {
    const texts = await Promise.all(row.map(async (kernel, side) => kernel ? hloc.kernelTexts(await hloc.block(`${"ab"[side]}-kernel-${kernel.number}`)) : []));
    const stages = texts[1].map(text => {
      const before = texts[0].find(other => other.kind === text.kind && other.name === text.name);
      return before ? hloc.comparable(before, text) : text;
    });
    if (!stages.length) stages.push(...texts[0]);
    const pane = new Pane(this, stages, stages.findLastIndex(stage => stage.kind === "ptx"), "what has changed");
    pane.toggleDifference();
    this.panes = [pane];
    const plans = row.map(kernel => kernel?.plan ?? "–");
    return hloc.element("div", { class: "kernel" }, hloc.element("p", { class: "facts" }, hloc.element("strong", {}, (row[1] ?? row[0]).name), ` ${DifferenceApp.kind(row)} · ${plans[0] === plans[1] ? plans[0] : plans.join(" → ")}`),
      hloc.element("div", { class: "panes" }, pane.root));
  }

  light(places, pin) {
    this.lit = pin === "unpin" ? null : places;
    if (pin === "unpin") this.panes.forEach(pane => pane.forgetPointer());
    for (const pane of this.panes) pane.light();
  }
}
