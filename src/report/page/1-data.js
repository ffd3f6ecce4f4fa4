"use strict";
// The data of the page: blocks of compressed JSON. A text is a list of numbers of lines in a table of its block.

const hloc = {};

hloc.block = async id => {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), c => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
};

// Lines are told by others before them (LineTable.h).
hloc.lineTable = data => {
  const lines = [];
  for (let i = 0; i < data.of.length; ++i) {
    const other = data.of[i] ? lines[i - data.of[i]] : "";
    lines.push(other.slice(0, data.first[i]) + data.rest[i] + other.slice(other.length - data.last[i]));
  }
  return { lines, places: data.place.map(number => data.places[number]) };
};

hloc.numbers = steps => {
  let expected = 0;
  return steps.map(step => (expected += step + 1) - 1);
};

// {kind, name, ms, size, line(i), places(i), number(i)}
hloc.text = (kind, name, table, steps, ms) => {
  const numbers = hloc.numbers(steps);
  return { kind, name, ms, numbers, size: numbers.length, table,
           line: i => table.lines[numbers[i]], places: i => table.places[numbers[i]] };
};

// What of `b` was not in `a`, and what of `a` is gone: [{mark: " " | "+" | "-", text, at}], by Myers' algorithm on the
// numbers of lines. Texts that differ in more than `most` lines are shown as wholly replaced.
hloc.difference = (a, b, most = 3000) => {
  let begin = 0, endA = a.size, endB = b.size;
  while (begin < endA && begin < endB && a.numbers[begin] === b.numbers[begin]) ++begin;
  while (endA > begin && endB > begin && a.numbers[endA - 1] === b.numbers[endB - 1]) { --endA; --endB; }
  const x = a.numbers.slice(begin, endA), y = b.numbers.slice(begin, endB);
  const result = [];
  for (let i = 0; i < begin; ++i) result.push({ mark: " ", text: b, at: i });
  for (const [mark, at] of hloc.edits(x, y, most)) {
    result.push({ mark, text: mark === "-" ? a : b, at: at + begin });
  }
  for (let i = endB; i < b.size; ++i) result.push({ mark: " ", text: b, at: i });
  return result;
};

hloc.edits = (x, y, most) => {
  const n = x.length, m = y.length, traces = [];
  let furthest = new Map([[1, 0]]), found = n + m === 0;
  for (let d = 0; d <= Math.min(n + m, most) && !found; ++d) {
    const next = new Map();
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (furthest.get(k - 1) ?? -1) < (furthest.get(k + 1) ?? -1));
      let i = down ? furthest.get(k + 1) ?? 0 : furthest.get(k - 1) + 1;
      while (i < n && i - k < m && i - k >= 0 && x[i] === y[i - k]) ++i;
      next.set(k, i);
      if (i >= n && i - k >= m) { found = true; break; }
    }
    traces.push(furthest);
    furthest = next;
  }
  if (!found) return [...x.map((_, i) => ["-", i]), ...y.map((_, i) => ["+", i])];
  const edits = [];
  let i = n, j = m;
  for (let d = traces.length - 1; d > 0; --d) {
    const before = traces[d], k = i - j;
    const down = k === -d || (k !== d && (before.get(k - 1) ?? -1) < (before.get(k + 1) ?? -1));
    const fromI = down ? before.get(k + 1) ?? 0 : before.get(k - 1), fromJ = fromI - (down ? k + 1 : k - 1);
    while (i > fromI + (down ? 0 : 1) && j > fromJ + (down ? 1 : 0)) { --i; edits.push([" ", --j]); }
    edits.push(down ? ["+", --j] : ["-", --i]);
  }
  while (i > 0 && j > 0) { --i; edits.push([" ", --j]); }
  return edits.reverse();
};
