// Elements and text. Nothing of the program's goes through a parser of HTML: all of it is set as text.

hloc.element = (name, attributes = {}, ...children) => {
  const made = name.startsWith("svg:") ? document.createElementNS("http://www.w3.org/2000/svg", name.slice(4))
                                       : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter(child => child !== undefined && child !== null));
  return made;
};

hloc.svgTitle = text => hloc.element("svg:title", {}, text);

hloc.amount = (value, unit = "") => {
  if (!isFinite(value)) return "–";
  const digits = value !== 0 && Math.abs(value) < 100 ? (Math.abs(value) < 1 ? 3 : 2) : 0;
  return value.toLocaleString("en", { maximumFractionDigits: digits }) + unit;
};

// 12288 × 1 × 1 is 12,288.
hloc.extents = sizes => sizes.slice(0, sizes.findLastIndex(size => size > 1) + 1).map(size => hloc.amount(size)).join(" × ") || "1";

hloc.bytes = value => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; ++unit; }
  return hloc.amount(value, " " + units[unit]);
};

// --- colours of text, by Prism; plain without it

hloc.grammars = {
  hlo: {
    comment: /\/\/.*|\/\*.*?\*\//, string: /"(?:\\.|[^"\\])*"/,
    type: /\b(?:pred|[su]\d+|bf16|f\d+\w*|c64|c128|token)\[[^\]]*\](?:\{[\d,:A-Z()*]*\})?/,
    keyword: /\b(?:HloModule|ENTRY|ROOT)\b/, variable: /%[\w.-]+/, function: /[a-z][\w-]*(?=\()/,
    property: /\b[a-z_]+(?==)/, number: /(?<![\w.])-?\d[\w.+-]*/
  },
  mlir: {
    comment: /\/\/.*/, string: /"(?:\\.|[^"\\])*"/, variable: /%[\w.$#-]+/, symbol: /@[\w.$-]+|\^\w+/,
    function: /\b[a-z_]+\.[\w.]+/, type: /\b(?:[su]?i\d+|f\d+\w*|bf16|index|(?:tensor|vector|memref|complex)<[^>]*>)/,
    keyword: /\b(?:module|func|return|iter_args|attributes|to|step|in|into)\b/, property: /#[\w.]+/, number: /\b-?\d[\w.+-]*/
  },
  llvm: {
    comment: /;.*/, string: /"[^"]*"/, variable: /%[-\w.$]+/, symbol: /@[-\w.$]+/, property: /[!#][\w.]+/,
    type: /\b(?:i\d+|half|bfloat|float|double|ptr|void|label|metadata)\b/,
    keyword: /\b(?:define|declare|ret|br|switch|call|tail|load|store|getelementptr|phi|select|icmp|fcmp|add|sub|mul|[su]div|[su]rem|shl|[la]shr|and|or|xor|f(?:add|sub|mul|div|rem|neg)|zext|sext|trunc|fpext|fptrunc|[fsu](?:i)?to(?:fp|[su]i)|bitcast|extractelement|insertelement|shufflevector|extractvalue|insertvalue|freeze)\b/,
    number: /(?<![\w.])-?(?:0x\w+|\d[\w.+-]*)/
  },
  ptx: {
    comment: /\/\/.*/, symbol: /\$?[\w$]+:(?!:)/, variable: /%[\w.]+/, property: /(?<![\w.])\.[a-z]\w*/,
    function: /(?<![%.\w$])[a-z]\w*(?:\.[\w:]+)+/, keyword: /\b(?:ret|exit|trap)\b/, number: /(?<![\w.%$])-?(?:0[fdxFDX]\w+|\d+)/
  }
};
hloc.grammars.sass = {
  comment: /\/\*.*?\*\//, symbol: /\.L_x_\d+/, variable: /\b(?:U?R|U?P|SR_|B)\w*\b/, function: /\b[A-Z][A-Z0-9_]*(?:\.[\w]+)*/, number: /(?<![\w.])-?(?:0x\w+|\d[\d.]*)/
};

hloc.coloured = (text, kind) => {
  const grammar = hloc.grammars[kind];
  if (typeof Prism === "undefined" || !grammar || text.length > 4000) return [text];
  return Prism.tokenize(text, grammar).map(token =>
    typeof token === "string" ? token : hloc.element("span", { class: "t-" + token.type }, String(token.content)));
};

// --- texts, of which only what is in sight has elements

const rowHeight = 18;

class Pane {
  // app.lit: a set of HLO lines, or null. `stages`: texts that can be chosen.
  constructor(app, stages, chosen, label) {
    this.app = app;
    this.stages = stages;
    this.asDifference = false;
    this.line = -1;
    this.select = hloc.element("select", { "aria-label": label + ": which text", onchange: () => this.choose(Number(this.select.value)) },
      stages.map((stage, i) => hloc.element("option", { value: i },
        `${stage.name}${!stage.ms ? "" : ` · ${hloc.amount(stage.ms, " ms")}`}`)));
    this.diffButton = hloc.element("button", { type: "button", "aria-pressed": "false", title: "what has changed (d)",
      onclick: () => this.toggleDifference() }, "diff");
    this.note = hloc.element("span", { class: "note", role: "status" });
    this.ruler = hloc.element("canvas", { class: "ruler", "aria-hidden": "true" });
    this.window = hloc.element("div", { class: "window" });
    this.spacer = hloc.element("div", { class: "spacer" }, this.window);
    this.lines = hloc.element("div", { class: "lines", tabindex: "0", role: "region", "aria-label": label,
      onscroll: () => this.draw(),
      onmousemove: event => this.hover(event), onmouseleave: () => { this.forgetPointer(); app.light(null, null, this); },
      onclick: event => this.click(event), onkeydown: event => this.key(event) }, this.spacer);
    this.root = hloc.element("section", { class: "pane" },
      hloc.element("header", {}, this.select, this.diffButton, this.note),
      hloc.element("div", { class: "body" }, this.lines, this.ruler));
    new ResizeObserver(() => { this.draw(); this.drawRuler(); }).observe(this.lines);
    this.choose(chosen);
  }

  get stage() { return this.stages[this.number]; }

  choose(number) {
    this.number = Math.max(0, Math.min(this.stages.length - 1, number));
    this.select.value = String(this.number);
    const previous = this.stages[this.number - 1];
    const before = this.stage.before ?? (previous?.kind === this.stage.kind && previous.table === this.stage.table ? previous : null);
    const hasBefore = before !== null;
    this.diffButton.disabled = !hasBefore;
    if (this.asDifference && hasBefore) {
      const all = hloc.difference(before, this.stage);
      const isNear = all.map((_, i) => all.slice(Math.max(0, i - 3), i + 4).some(row => row.mark !== " "));
      this.rows = all.filter((_, i) => isNear[i]);
      if (!this.rows.length) this.rows = [{ mark: " ", text: hloc.words("nothing is changed"), at: 0 }];
    } else {
      this.rows = Array.from({ length: this.stage.size }, (_, at) => ({ mark: " ", text: this.stage, at }));
    }
    this.line = -1;
    this.forgetPointer();
    this.spacer.style.height = this.rows.length * rowHeight + "px";
    this.lines.scrollTop = 0;
    this.draw();
    this.light();
  }

  toggleDifference() {
    if (this.diffButton.disabled) return;
    this.asDifference = !this.asDifference;
    this.diffButton.setAttribute("aria-pressed", String(this.asDifference));
    this.choose(this.number);
  }

  places(row) { return row.text.places(row.at); }
  isLit(row) { return this.app.lit && this.places(row).some(place => this.app.lit.has(place)); }

  draw() {
    const first = Math.max(0, Math.floor(this.lines.scrollTop / rowHeight) - 20);
    const last = Math.min(this.rows.length, Math.ceil((this.lines.scrollTop + (this.lines.clientHeight || 400)) / rowHeight) + 20);
    this.window.style.transform = `translateY(${first * rowHeight}px)`;
    this.window.replaceChildren(...this.rows.slice(first, last).map((row, i) => this.element(row, first + i)));
  }

  element(row, i) {
    const marks = row.text.marks?.get(row.at);
    const heat = row.text.heat?.[row.at];
    const classes = ["line", row.mark === "+" ? "added" : row.mark === "-" ? "removed" : "",
                     this.isLit(row) ? "lit" : "", i === this.line ? "current" : "", marks ? "marked" : ""];
    return hloc.element("div", { class: classes.filter(Boolean).join(" "), "data-row": i, title: marks?.join("\n"),
                                 "data-places": this.places(row).join(",") },
      hloc.element("span", { class: "number", style: heat ? `--heat:${heat.share}` : null, title: heat?.title },
        row.mark === " " ? String(row.at + 1) : row.mark),
      hloc.element("code", {}, hloc.coloured(row.text.line(row.at), row.text.kind)));
  }

  light() {
    for (const element of this.window.children)
      element.classList.toggle("lit", Boolean(this.isLit(this.rows[element.dataset.row])));
    const count = this.app.lit ? this.rows.filter(row => this.isLit(row)).length : 0;
    this.note.textContent = this.app.lit ? (this.app.lit.size ? `${count} of ${this.rows.length} lines` : "made for no line of the HLO")
                                         : `${this.rows.length} lines`;
    this.drawRuler();
  }

  drawRuler() {
    const { ruler } = this, height = this.lines.clientHeight;
    ruler.width = 10;
    ruler.height = height;
    const context = ruler.getContext("2d");
    if (!this.app.lit || !height) return;
    context.fillStyle = getComputedStyle(this.root).getPropertyValue("--lit-mark");
    this.rows.forEach((row, i) => {
      if (this.isLit(row)) context.fillRect(0, i / this.rows.length * height, 10, Math.max(2, height / this.rows.length));
    });
  }

  rowAt(event) {
    const element = event.target.closest?.(".line");
    return element ? Number(element.dataset.row) : -1;
  }
  forgetPointer() { this.hovered = -1; }
  hover(event) {
    const i = this.rowAt(event);
    if (i === this.hovered) return; // the pointer moves many times over one row, and each light goes through all rows
    this.hovered = i;
    if (i >= 0) this.app.light(new Set(this.places(this.rows[i])), null, this);
  }
  click(event) {
    const i = this.rowAt(event);
    if (i >= 0) this.goTo(i, true);
  }
  // The line becomes the one whose HLO is lit until another is.
  goTo(i, pin) {
    this.line = Math.max(0, Math.min(this.rows.length - 1, i));
    const top = this.line * rowHeight;
    if (top < this.lines.scrollTop || top + rowHeight > this.lines.scrollTop + this.lines.clientHeight)
      this.lines.scrollTop = Math.max(0, top - this.lines.clientHeight / 3);
    this.draw();
    if (pin && this.rows.length) this.app.light(new Set(this.places(this.rows[this.line])), "pin", this);
  }
  showLit() {
    const i = this.rows.findIndex(row => this.isLit(row));
    if (i < 0) return;
    this.lines.scrollTop = Math.max(0, i * rowHeight - this.lines.clientHeight / 3);
    this.draw();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.floor(this.lines.clientHeight / rowHeight) - 1;
    const moves = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 };
    if (event.key in moves) this.goTo(this.line + moves[event.key], true);
    else if (event.key === "]") this.choose(this.number + 1);
    else if (event.key === "[") this.choose(this.number - 1);
    else if (event.key === "d") this.toggleDifference();
    else if (event.key === "Escape") this.app.light(null, "unpin", this);
    else return;
    event.preventDefault();
  }
}

hloc.words = text => ({ kind: "words", size: 1, line: () => text, places: () => [], numbers: [0] });
