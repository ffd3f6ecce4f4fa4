"""Pages of Markdown as scripts/docs and the tests of the documentation read them: fenced blocks, links, anchors."""
import dataclasses
import pathlib
import re

# What a block may be. Those of RUN are run by tests/scripts/check-docs-commands.
RUN = {"sh", "console"}
KINDS = RUN | {"bash", "c", "cpp", "cmake", "diff", "hlo", "html", "json", "llvm", "mlir", "ptx", "python", "text", "yaml"}


@dataclasses.dataclass
class Block:
    kind: str
    title: str  # the file that a reader is told to save it as; empty if there is none
    line: int  # of the page, where its text begins
    text: list
    notes: dict  # comments before it: {"not run": "needs a GPU"}


@dataclasses.dataclass
class Page:
    path: pathlib.Path
    blocks: list
    prose: list  # (line, text) of all that stands in no block
    problems: list  # (line, what)


def read_page(path):
    page, block, notes, previous = Page(path, [], [], []), None, {}, ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        fence = re.match(r"( *)```+(.*)$", line)
        if block:
            if fence and not fence[2].strip():
                block = None
            else:
                block.text.append(re.sub(rf"^ {{0,{indent}}}", "", line))
        elif fence:
            info = re.match(r"\s*([\w+-]*)\s*(?:title=\"([^\"]*)\")?\s*$", fence[2])
            kind = info[1] if info else fence[2].strip()
            if kind not in KINDS:
                page.problems.append((number, f"a block of kind `{kind}`; there are {', '.join(sorted(KINDS))}"))
            indent = len(fence[1])
            block = Block(kind, (info and info[2]) or "", number + 1, [], notes)
            page.blocks.append(block)
            notes = {}
        else:
            if note := re.match(r"<!-- (not run|needs): (.*) -->$", line):
                notes[note[1]] = note[2]
            elif line.strip():
                notes = {}
            if line.startswith("    ") and not previous.strip() and line.strip():
                page.problems.append((number, "a block by indentation; fences say what it is"))
            page.prose.append((number, line))
        previous = line
    if block:
        page.problems.append((block.line, "a block without an end"))
    return page


def links(page):
    """(line, target) of each that is no address of the web."""
    for number, line in page.prose:
        for target in re.findall(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"", re.sub(r"`[^`]*`", "``", line)):
            target = target[0] or target[1]
            if not re.match(r"[a-z]+:", target):
                yield number, target


def anchors(page):
    """Those that headings get, as GitHub and the site make them."""
    known = {}
    for _, line in page.prose:
        if heading := re.match(r"#+ (.*?)\s*$", line):
            text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).replace("`", "").lower()
            slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            known[slug] = known.get(slug, 0) + 1
    return {slug if n == 0 else f"{slug}-{n}" for slug, count in known.items() for n in range(count)}
