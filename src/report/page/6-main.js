// The page as a whole: what is shown, by the part of the address behind #, and what keys do everywhere.

hloc.views = { kernels: "Kernels", steps: "Steps", memory: "Memory", passes: "HLO passes", source: "Source", messages: "Messages" };

class App {
  constructor(data) {
    this.data = data;
    this.lit = this.pinned = null;
    this.panes = [];
    this.source = hloc.text("hlo", "HLO text", hloc.lineTable(data.sourceTable), data.source);
    const kernels = (data.manifest?.kernels ?? []).map((kernel, number) => {
      const estimate = data.estimates[kernel.name], launches = estimate?.launches ?? 0;
      return { ...kernel, number, estimate, launches, total: launches * (estimate?.total_us ?? 0), hue: number * 137 % 360 };
    });
    this.kernels = [...kernels].sort((a, b) => b.total - a.total);
    this.kernels.byNumber = kernels;
    const theme = hloc.element("button", { type: "button", "aria-label": "dark or light", title: "dark or light (t)", onclick: () => this.switchTheme() }, "◐");
    this.tabs = Object.entries(hloc.views).filter(([view]) => data.manifest || !["kernels", "steps", "memory"].includes(view))
      .map(([view, title]) => hloc.element("button", { type: "button", role: "tab", "data-view": view, onclick: () => this.go({ view }) }, title));
    const launches = this.kernels.reduce((sum, kernel) => sum + kernel.launches, 0), time = this.kernels.reduce((sum, kernel) => sum + kernel.total, 0);
    this.main = hloc.element("main", { tabindex: "-1" });
    this.help = hloc.element("dialog", { "aria-label": "keys" }, hloc.element("h2", {}, "Keys"), hloc.element("dl", {},
      [["1 … 6", "the views"], ["/", "search"], ["↑ ↓ j k", "lines of a text, and what they were made for"], ["[ ]", "the pass before, the next"], ["d", "what the pass changed"], ["+ −", "zoom a graph"], ["n p", "next kernel, the one before"], ["Esc", "let go of a line"], ["t", "dark or light"]]
        .map(([key, text]) => [hloc.element("dt", {}, key), hloc.element("dd", {}, text)])), hloc.element("button", { type: "button", onclick: () => this.help.close() }, "close"));
    document.getElementById("app").replaceChildren(hloc.element("header", { class: "top" },
      hloc.element("h1", {}, data.file.split("/").at(-1), " "), hloc.element("span", { class: "note" },
        `hloc ${data.version} · ${data.target} · ${data.manifest ? `${hloc.amount(launches)} ${launches === 1 ? "launch" : "launches"} of ${kernels.length} ${kernels.length === 1 ? "kernel" : "kernels"}, ${hloc.amount(time, " µs")} on ${data.device.name} by estimate` : "not compiled"}`),
      data.run ? hloc.element("span", { class: "verdict " + data.run.verdict.replace(" ", "-") }, data.run.verdict) : null,
      hloc.element("nav", { role: "tablist", "aria-label": "views" }, this.tabs), theme,
      hloc.element("button", { type: "button", "aria-label": "keys", title: "keys (?)", onclick: () => this.help.showModal() }, "?")), this.main, this.help);
    document.title = `${data.file.split("/").at(-1)} – hloc`;
    addEventListener("hashchange", () => this.show());
    addEventListener("keydown", event => this.key(event));
    this.show();
  }

  go(where) { location.hash = new URLSearchParams(where).toString(); }

  async show() {
    const where = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    const hasErrors = this.data.diagnostics.some(one => one.severity === "error") || (this.data.run && ["wrong", "not run"].includes(this.data.run.verdict));
    const view = where.view ?? (hasErrors || !this.data.manifest ? "messages" : this.kernels.length === 1 ? "kernel" : "kernels");
    this.panes = [];
    this.pinned = this.lit = null;
    const number = Number(where.kernel ?? 0);
    const isKernel = view === "kernel" && number in this.kernels.byNumber;
    this.kernel = isKernel ? number : null;
    const made = isKernel ? await hloc.kernelView(this, number, Number(where.ptx ?? 0)) : await this.view(view in hloc.views ? view : "messages", where);
    this.main.replaceChildren(made);
    for (const tab of this.tabs) tab.setAttribute("aria-selected", String(tab.dataset.view === (isKernel ? "kernels" : view)));
    for (const pane of this.panes) { pane.draw(); pane.light(); }
    if (where.line !== undefined && this.panes.length) this.panes[0].goTo(Number(where.line) - 1, true);
    this.afterShow?.();
    this.afterShow = null;
    document.body.dataset.view = view;
    document.body.dataset.shown = location.hash;
  }

  async view(view, where) {
    if (view === "kernels") return hloc.kernelsView(this);
    if (view === "steps") return hloc.stepsView(this);
    if (view === "memory") return hloc.memoryView(this);
    if (view === "messages") return hloc.messagesView(this);
    const stages = [this.source];
    if (view === "passes" && this.data.passes) {
      const table = hloc.lineTable(this.data.passes);
      for (const stage of this.data.passes.stages) stages.push(hloc.text("hlo", stage.name, table, stage.text, stage.ms));
    }
    this.panes = [new Pane(this, stages, view === "passes" ? stages.length - 1 : 0, "HLO")];
    return hloc.element("div", { class: "panes" }, this.panes[0].root);
  }

  // `places`: what is lit while nothing is pinned.
  light(places, pin, origin) {
    if (pin === "pin") this.pinned = places;
    if (pin === "unpin") {
      this.pinned = null;
      this.panes.forEach(pane => pane.forgetPointer());
    }
    this.lit = this.pinned ?? places;
    for (const pane of this.panes) {
      if (pin === "pin" && pane !== origin) pane.showLit();
      pane.light();
    }
  }

  switchTheme() {
    const isDark = (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
    document.documentElement.dataset.theme = isDark ? "light" : "dark";
    for (const pane of this.panes) pane.drawRuler();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
    const views = this.tabs.map(tab => tab.dataset.view);
    if (event.key === "/") document.getElementById("search")?.focus();
    else if (event.key === "?") this.help.showModal();
    else if (event.key === "t") this.switchTheme();
    else if (event.key === "Escape" && !this.help.open) this.light(null, "unpin");
    else if (/^[1-9]$/.test(event.key) && views[event.key - 1]) this.go({ view: views[event.key - 1] });
    else if ((event.key === "n" || event.key === "p") && this.kernel !== null) {
      const at = this.kernels.findIndex(kernel => kernel.number === this.kernel) + (event.key === "n" ? 1 : -1);
      if (this.kernels[at]) this.go({ view: "kernel", kernel: this.kernels[at].number });
    } else return;
    event.preventDefault();
  }
}

hloc.start = async () => {
  if (typeof DecompressionStream === "undefined") {
    document.getElementById("app").textContent = "This browser is too old: it cannot unpack the data of this page (Chrome 80, Firefox 113, Safari 16.4 can).";
    return;
  }
  hloc.app = document.getElementById("module") ? new App(await hloc.block("module"))
                                               : new DifferenceApp(await hloc.block("a-module"), await hloc.block("b-module"));
};
hloc.start();
