"""How wgmma sums up: random products of all kinds, and which model of the sums has a card's bits.

A block is a chain of wgmmas of m64n8 and one step of k (32 bytes) each. Operands lie along k and are not swizzled.
"""
import random
from dataclasses import dataclass, replace
from fractions import Fraction

from program import HEADER, Fact, buffer, launch
from wgmma import descriptor

ROWS, COLUMNS, STEP = 64, 8, 32  # STEP: bytes of k


@dataclass(frozen=True)
class Kind:
    """Of a factor: bits, exponent bits, mantissa bits, bias, and whether infinities exist."""
    name: str
    bits: int
    exponent: int
    mantissa: int
    infinite: bool = True

    def split(self, word):
        """(mantissa, exponent): the value is mantissa * 2^exponent; a word instead of a mantissa for what is no number."""
        if self.name == "tf32":
            word >>= 13
        bias = (1 << (self.exponent - 1)) - 1
        fraction, power = word & ((1 << self.mantissa) - 1), word >> self.mantissa & ((1 << self.exponent) - 1)
        sign = -1 if word >> (self.mantissa + self.exponent) & 1 else 1
        full = (1 << self.exponent) - 1
        if power == full and (self.infinite or fraction == (1 << self.mantissa) - 1):
            return ("nan", sign) if fraction or not self.infinite else ("inf", sign)
        if power == 0:
            return sign * fraction, 1 - bias - self.mantissa
        return sign * (fraction | 1 << self.mantissa), power - bias - self.mantissa


KINDS = {k.name: k for k in (Kind("f16", 16, 5, 10), Kind("bf16", 16, 8, 7), Kind("tf32", 32, 8, 10), Kind("e5m2", 8, 5, 2),
                             Kind("e4m3", 8, 4, 3, False), Kind("f32", 32, 8, 23), Kind("s8", 8, 0, 0), Kind("u8", 8, 0, 0))}


def kernel(a, b, result, steps, suffix, listed, scales):
    """listed: a comes from registers, as fragments. scales: of d (0: c does not count), a and b."""
    k = STEP * 8 // KINDS[a].bits
    halves, integers = result == "f16", result == "s32"
    registers = 2 if halves else 4
    sums = ", ".join(f"%d{i}" for i in range(registers))
    signs = "" if integers else (f", {scales[1]}, {scales[2]}" + ("" if k != 16 else ", 0" if listed else ", 0, 0"))
    loads = "".join(f"  ld.global.u32 %d{i}, [%at+{4 * i}];\n" for i in range(registers))
    stores = "".join(f"  st.global.u32 [%to+{4 * i}], %d{i};\n" for i in range(registers))
    body = ""
    for step in range(steps):
        operand = "%da"
        if listed:
            operand = "{" + ", ".join(f"%a{step}_{i}" for i in range(4)) + "}"
        body += (f"  wgmma.mma_async.sync.aligned.m64n8k{k}{suffix}.{result}.{a}.{b} {{{sums}}}, {operand}, %db, {scales[0]}{signs};\n"
                 "  add.s64 %da, %da, 128;\n  add.s64 %db, %db, 16;\n")
    fragments = ""
    for step in range(steps if listed else 0):
        # Register r of lane l: row l / 4, 8 more if r is odd, and 4 bytes at 4 (l % 4), 16 more if r > 1.
        for r in range(4):
            fragments += f"  ld.shared.u32 %a{step}_{r}, [%w+{step * 2048 + r % 2 * 256 + r // 2 * 128}];\n"
    names = "".join(f"  .reg .b32 %a{step}_<4>;\n" for step in range(steps if listed else 0))
    return HEADER + f""".visible .entry sum(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 out) .reqntid 128, 1, 1 {{
  .reg .pred %p;
  .reg .b32 %t, %i, %x, %y, %w, %block, %v<4>, %d<4>;
  .reg .b64 %at, %to, %da, %db, %from;
{names}  .shared .align 1024 .b8 tile_a[{2048 * steps}];
  .shared .align 1024 .b8 tile_b[{256 * steps}];
  mov.u32 %t, %tid.x;
  mov.u32 %block, %ctaid.x;
  // Chunk i of a: row i / 2, part i % 2; rows of 32 bytes become 8 x 16 bytes, parts 128 bytes apart.
  ld.param.u64 %from, [a];
  mov.u32 %i, %t;
A:
  mad.lo.u32 %x, %block, {128 * steps}, %i;
  mul.wide.u32 %at, %x, 16;
  add.s64 %at, %at, %from;
  ld.global.v4.u32 {{%v0, %v1, %v2, %v3}}, [%at];
  shr.u32 %x, %i, 1;
  and.b32 %x, %x, 7;
  shl.b32 %x, %x, 4;
  and.b32 %y, %i, 1;
  mad.lo.u32 %x, %y, 128, %x;
  shr.u32 %y, %i, 4;
  mad.lo.u32 %x, %y, 256, %x;
  mov.u32 %y, tile_a;
  add.u32 %x, %x, %y;
  st.shared.v4.u32 [%x], {{%v0, %v1, %v2, %v3}};
  add.u32 %i, %i, 128;
  setp.lt.u32 %p, %i, {128 * steps};
  @%p bra A;
  ld.param.u64 %from, [b];
  mov.u32 %i, %t;
  setp.ge.u32 %p, %i, {16 * steps};
  @%p bra LOADED;
  mad.lo.u32 %x, %block, {16 * steps}, %i;
  mul.wide.u32 %at, %x, 16;
  add.s64 %at, %at, %from;
  ld.global.v4.u32 {{%v0, %v1, %v2, %v3}}, [%at];
  shr.u32 %x, %i, 1;
  and.b32 %x, %x, 7;
  shl.b32 %x, %x, 4;
  and.b32 %y, %i, 1;
  mad.lo.u32 %x, %y, 128, %x;
  shr.u32 %y, %i, 4;
  mad.lo.u32 %x, %y, 256, %x;
  mov.u32 %y, tile_b;
  add.u32 %x, %x, %y;
  st.shared.v4.u32 [%x], {{%v0, %v1, %v2, %v3}};
LOADED:
  mad.lo.u32 %x, %block, 128, %t;
  mul.wide.u32 %at, %x, {4 * registers};
  ld.param.u64 %to, [out];
  add.s64 %to, %to, %at;
  ld.param.u64 %from, [c];
  add.s64 %at, %at, %from;
{loads}  fence.proxy.async;
  bar.sync 0;
  // Warp w's rows of a begin 512 w bytes on.
  shr.u32 %x, %t, 5;
  mov.u32 %w, tile_a;
  mad.lo.u32 %w, %x, 512, %w;
  and.b32 %x, %t, 31;
  mad.lo.u32 %w, %x, 4, %w; // 16 (l / 4) + 4 (l % 4)
{fragments}  mov.u32 %x, tile_a;
  shr.u32 %x, %x, 4;
  cvt.u64.u32 %da, %x;
  add.s64 %da, %da, {descriptor(0, 128, 256)};
  mov.u32 %x, tile_b;
  shr.u32 %x, %x, 4;
  cvt.u64.u32 %db, %x;
  add.s64 %db, %db, {descriptor(0, 128, 256)};
  wgmma.fence.sync.aligned;
{body}  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
{stores}  ret;
}}
"""


def random_word(rng, kind, style):
    """styles: narrow and wide exponents, any bits."""
    if style == "any" or not kind.exponent:
        return rng.getrandbits(kind.bits)
    bias, spread = (1 << (kind.exponent - 1)) - 1, {"narrow": 1, "wide": 6, "wider": 14}[style]
    spread = min(spread, bias - 2) if kind.bits > 8 else min(spread, bias)
    if kind.bits == 8 and rng.random() < 0.1:
        return rng.choice((0, 1, 0x80, 0x81))
    sign, power = rng.getrandbits(1), bias + rng.randint(-spread, spread)
    word = (sign << kind.exponent | power) << kind.mantissa | rng.getrandbits(kind.mantissa)
    if kind.name == "e4m3" and word & 0x7f == 0x7f:
        word ^= 1
    return word << 13 if kind.name == "tf32" else word


def pack(words, bits):
    per = 32 // bits
    return [sum(words[i + j] << (bits * j) for j in range(per)) for i in range(0, len(words), per)]


def inputs(a, b, result, steps, blocks, seed):
    """a[block][step][row][k], b[block][step][column][k] and c in the order of registers, as words."""
    rng = random.Random(seed)
    made = [[], [], []]
    sums = KINDS["f16" if result == "f16" else "f32"]
    for block in range(blocks):
        style = ("narrow", "wide", "wider", "wide", "narrow", "any", "wide", "wider")[block % 8]
        if steps > 1 and style == "any":
            style = "wide"
        for out, kind, rows in ((made[0], KINDS[a], ROWS), (made[1], KINDS[b], COLUMNS)):
            out += pack([random_word(rng, kind, style) for _ in range(steps * rows * STEP * 8 // kind.bits)], kind.bits)
        for _ in range(ROWS * COLUMNS * sums.bits // 32):
            if result == "s32":
                made[2].append(rng.choice((0, 1, 0x7ffff000, 0x80000400, rng.getrandbits(32))))
            elif block % 3 == 0:
                made[2].append(0)
            else:
                made[2] += pack([random_word(rng, sums, style) for _ in range(32 // sums.bits)], sums.bits)
    return made


@dataclass(frozen=True)
class Model:
    """As the emulator's Summation. block 0: all of k. extra: bits kept below the leading one; of: bits of the sum."""
    block: int = 0
    kept: int = 25
    of: int = 23
    by_factors: bool = True
    nearest: bool = False
    c_last: bool = False
    exact: bool = False

    def __str__(self):
        if self.exact:
            return "exact, rounded once"
        return (f"blocks of {self.block or 'all k'}, {self.kept} bits kept, sums of {self.of}" +
                (" to nearest" if self.nearest else "") + ("" if self.by_factors else ", by products") + (", c last" if self.c_last else ""))


def floor_log2(x):
    return x.bit_length() - 1


def cut(mantissa, exponent, quantum):
    """In units of 2^quantum, towards zero."""
    shift = exponent - quantum
    if shift >= 0:
        return mantissa << shift
    return -(-mantissa >> -shift) if mantissa < 0 else mantissa >> -shift


def shorten(value, exponent, bits, nearest, least):
    """(value, exponent) with `bits` bits behind the leading one; no exponent less than `least`."""
    drop = max(floor_log2(abs(value)) - bits, least - exponent) if value else 0
    if drop <= 0:
        return value, exponent
    magnitude = abs(value)
    kept = magnitude >> drop
    if nearest:
        rest, half = magnitude & ((1 << drop) - 1), 1 << (drop - 1)
        kept += rest > half or (rest == half and kept & 1)
    return (kept if value > 0 else -kept), exponent + drop


def add_up(model, products, c, halves):
    """products: (mantissa, exponent, exponent of the factors' powers of two), c: (mantissa, exponent) -> likewise."""
    limit, mantissa = (-24, 10) if halves else (-149, 23)
    if model.exact:
        total = Fraction(c[0]) * Fraction(2) ** c[1] + sum(Fraction(m) * Fraction(2) ** e for m, e, _ in products)
        scale = min([c[1]] + [e for _, e, _ in products])
        return shorten(int(total / Fraction(2) ** scale), scale, mantissa, True, limit)
    value = (0, 0) if model.c_last else c
    depth = model.block or len(products)
    for first in range(0, len(products), depth):
        terms = products[first:first + depth]
        largest = max([floor_log2(abs(value[0])) + value[1]] if value[0] else [-10000])
        for m, e, power in terms:
            if m:
                largest = max(largest, power if model.by_factors else floor_log2(abs(m)) + e)
        if largest == -10000:
            continue
        quantum = largest - model.kept
        total = cut(*value, quantum) + sum(cut(m, e, quantum) for m, e, _ in terms)
        value = shorten(total, quantum, 52 if halves else model.of, model.nearest, -10000 if halves else limit)
    if model.c_last:
        scale = min(c[1], value[1])
        value = ((c[0] << (c[1] - scale)) + (value[0] << (value[1] - scale)), scale)
        return shorten(*value, mantissa, True, limit)
    return shorten(*value, mantissa, halves, limit)


def to_bits(value, exponent, halves):
    """The f32 or f16 of a number that it can hold but for its size."""
    mantissa, bias, full = (10, 15, 31) if halves else (23, 127, 255)
    sign = (1 if value < 0 else 0) << (15 if halves else 31)
    value = abs(value)
    if not value:
        return 0
    top = floor_log2(value) + exponent
    if top > bias:
        return sign | full << mantissa
    least = 1 - bias
    power = max(top, least)
    shift = exponent - (power - mantissa)
    fraction = value << shift if shift >= 0 else value >> -shift
    return sign | (fraction if top < least else ((power + bias) << mantissa) | (fraction & ((1 << mantissa) - 1)))


class Sums:
    """The sums of a fact with steps = 1, of numbers alone."""

    def __init__(self, a, b, halves, words):
        self.a, self.b, self.halves = KINDS[a], KINDS[b], halves
        self.words = words

    def element(self, words, bits, index):
        per = 32 // bits
        return words[index // per] >> (index % per * bits) & ((1 << bits) - 1)

    def terms(self, number):
        """(products, c) of the number-th sum in the order of results; None if not all are numbers."""
        per_thread = 4
        thread, i = number // per_thread, number % per_thread
        block, t = divmod(thread, 128)
        row, column = t // 32 * 16 + t % 32 // 4 + i // 2 * 8, t % 4 * 2 + i % 2
        k = STEP * 8 // self.a.bits
        c = KINDS["f16" if self.halves else "f32"].split(self.element(self.words[2], 16 if self.halves else 32, number))
        products = []
        for j in range(k):
            x = self.a.split(self.element(self.words[0], self.a.bits, (block * ROWS + row) * k + j))
            y = self.b.split(self.element(self.words[1], self.b.bits, (block * COLUMNS + column) * k + j))
            if isinstance(x[0], str) or isinstance(y[0], str):
                return None
            power = floor_log2(abs(x[0])) + x[1] + floor_log2(abs(y[0])) + y[1] if x[0] and y[0] else 0
            products.append((x[0] * y[0], x[1] + y[1], power))
        return None if isinstance(c[0], str) else (products, c)

    def bits(self, result, number):
        return self.element(result, 16 if self.halves else 32, number)

    def count(self):
        return len(self.words[2]) * (2 if self.halves else 1)

    def right(self, model, sample):
        return sum(to_bits(*add_up(model, *terms, self.halves), self.halves) == bits for terms, bits in sample)


def models(k):
    base = Model()
    for block in sorted({0, k // 2, k // 4, 4} - {k}):
        for kept in range(11, 28):
            for of in sorted({13, 14, 23, kept}):
                for by_factors in (True, False):
                    yield replace(base, block=block, kept=kept, of=of, by_factors=by_factors)
                    yield replace(base, block=block, kept=kept, of=of, by_factors=by_factors, nearest=True)
                    yield replace(base, block=block, kept=kept, of=of, by_factors=by_factors, c_last=True)
    yield Model(exact=True)


def explain_sums(sums, most=20000):
    def explain(card, emulated):
        told = []
        numbers = range(0, sums.count(), max(1, sums.count() // most))
        sample = [(terms, sums.bits(card, n)) for n in numbers if (terms := sums.terms(n))]
        left = list(models(STEP * 8 // sums.a.bits))
        for size, most_models in ((150, 60), (1500, 8), (len(sample), 3)):
            part = sample[:: max(1, len(sample) // size)]
            ranked = sorted((-sums.right(m, part), i) for i, m in enumerate(left))[:most_models]
            told, left = [f"{-right} of {len(part)}: {left[i]}" for right, i in ranked], [left[i] for _, i in ranked]
        if emulated:
            apart = [(n, sums.bits(card, n), sums.bits(emulated, n)) for n in range(sums.count())
                     if sums.bits(card, n) != sums.bits(emulated, n)]
            specials = sum(sums.terms(n) is None for n, _, _ in apart[:1000])
            ulps = sorted(abs(x - y) for n, x, y in apart)
            told.append(f"{len(apart)} of {sums.count()} differ, of the first 1000 {specials} with infinities or NaN; bits apart: "
                        f"median {ulps[len(ulps) // 2] if ulps else 0}, most {ulps[-1] if ulps else 0}")
            told += [f"sum {n}: card {x:08x}, emulator {y:08x}" for n, x, y in apart[:4]]
        return told
    return explain


CASES = [  # a, b, result, steps, blocks, suffix, listed
    ("f16", "f16", "f32", 1, 48, "", False), ("f16", "f16", "f16", 1, 48, "", False), ("bf16", "bf16", "f32", 1, 48, "", False),
    ("tf32", "tf32", "f32", 1, 48, "", False), ("e4m3", "e4m3", "f32", 1, 48, "", False), ("e5m2", "e5m2", "f32", 1, 48, "", False),
    ("e4m3", "e5m2", "f32", 1, 24, "", False), ("e4m3", "e4m3", "f16", 1, 48, "", False), ("e5m2", "e5m2", "f16", 1, 24, "", False),
    ("bf16", "bf16", "f32", 4, 24, "", False), ("f16", "f16", "f16", 4, 24, "", False), ("e4m3", "e4m3", "f32", 4, 24, "", False),
    ("tf32", "tf32", "f32", 4, 24, "", False),
    ("bf16", "bf16", "f32", 1, 24, "", True), ("e4m3", "e4m3", "f32", 1, 24, "", True), ("tf32", "tf32", "f32", 2, 24, "", True),
    ("s8", "s8", "s32", 1, 8, ".satfinite", False), ("u8", "s8", "s32", 2, 8, "", False), ("s8", "u8", "s32", 1, 8, ".satfinite", True),
    ("bf16", "bf16", "f32", 1, 8, "", False, 0, 1, 1), ("bf16", "bf16", "f32", 1, 8, "", False, 1, -1, 1),
    ("e4m3", "e4m3", "f32", 1, 8, "", False, 1, 1, -1), ("f16", "f16", "f16", 1, 8, "", False, 1, -1, -1),
]


def facts():
    for number, (a, b, result, steps, blocks, suffix, listed, *scales) in enumerate(CASES):
        words = inputs(a, b, result, steps, blocks, number)
        size = 4 * len(words[2])
        name = (f"sums-{a}-{b}-{result}" + (f"-{steps}" if steps > 1 else "") + ("-registers" if listed else "") +
                "".join(f"-{n}" for n, s in zip(("fresh", "minus-a", "minus-b"), scales) if s != 1))
        arguments = [buffer(i, 4 * len(words[i])) for i in range(3)] + [buffer(3, size)]
        explain = None
        if steps == 1 and result != "s32" and not scales:
            explain = explain_sums(Sums(a, b, result == "f16", words))
        chain = f"{steps} of k after the other" if steps > 1 else "one step of k"
        yield Fact(name, f"sums of {a} by {b} in {result}, {chain}" + (", a in registers" if listed else "") +
                   (f", scales {scales}" if scales else ""), kernel(a, b, result, steps, suffix, listed, scales or (1, 1, 1)),
                   [launch("sum", arguments, blocks, inputs=3)], words, (3, size),
                   [size], explain=explain)
