"""Where wgmma finds its operands: descriptors of every layout.

Shared memory holds a different bf16 in each 16 bits, the other operand is the identity, so each element of the result
tells the address that it was read from.
"""
from program import HEADER, Fact, buffer, launch

WORDS = 32768  # of 16 bits: 64 KiB
ROWS_OF_B = {False: 64, True: 128}  # along k, along n


def bf16_of(index):
    """Finite, normal, not zero, and no other index's."""
    return 0x0080 + index if index < 0x7e80 else 0x8080 + index - 0x7e80


def index_of(single):
    """Of the bits of an f32 that is one of these; -1 if it is none."""
    bits = single >> 16
    index = bits - 0x0080 if bits < 0x8000 else bits - 0x8080 + 0x7e80
    return index if single & 0xffff == 0 and 0 <= index < WORDS else -1


def descriptor(start, leading, stride, swizzle=0, base=0):
    """All distances in bytes."""
    return (start >> 4) | (leading >> 4) << 16 | (stride >> 4) << 32 | base << 49 | {0: 0, 128: 1, 64: 2, 32: 3}[swizzle] << 62


FILL = """
  // 64 KiB at the first multiple of 1024: word i holds bf16s number 2 i and 2 i + 1
  mov.u32 %base, shared;
  add.u32 %base, %base, 1023;
  and.b32 %base, %base, 0xfffffc00;
  mov.u32 %i, %tid.x;
FILL:
  shl.b32 %x, %i, 1;
  setp.lt.u32 %p, %x, 0x7e80;
  selp.b32 %y, 0x0080, 0x0200, %p;
  add.u32 %x, %x, %y;
  add.u32 %y, %x, 1;
  shl.b32 %y, %y, 16;
  or.b32 %x, %x, %y;
  shl.b32 %y, %i, 2;
  add.u32 %y, %y, %base;
  st.shared.u32 [%y], %x;
  add.u32 %i, %i, 128;
  setp.lt.u32 %p, %i, 16384;
  @%p bra FILL;
"""

BEGIN = """.extern .shared .align 1024 .b8 shared[];
.visible .entry probe(.param .u64 descriptors, .param .u64 out) .reqntid 128, 1, 1 {
  .reg .pred %p, %q;
  .reg .b16 %one;
  .reg .b32 %base, %i, %x, %y, %lane, %group, %in, %block, %a<4>;
  .reg .f32 %d<64>;
  .reg .b64 %da, %db, %at, %to;
"""

ADDRESS = """
  // the descriptor of this block, with the address of the 64 KiB
  mov.u32 %block, %ctaid.x;
  ld.param.u64 %at, [descriptors];
  mul.wide.u32 %to, %block, 8;
  add.s64 %at, %at, %to;
  ld.global.u64 {0}, [%at];
  shr.u32 %x, %base, 4;
  cvt.u64.u32 %to, %x;
  add.s64 {0}, {0}, %to;
  fence.proxy.async;
  bar.sync 0;
"""


def multiply(columns, a, b, transposed, kind="bf16"):
    sums = ", ".join(f"%d{i}" for i in range(columns // 2))
    zeros = "".join(f"  mov.f32 %d{i}, 0f00000000;\n" for i in range(columns // 2))
    return (f"{zeros}  wgmma.fence.sync.aligned;\n"
            f"  wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{kind}.{kind} {{{sums}}}, {a}, {b}, 1, 1, 1, {transposed};\n"
            "  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;\n")


def store(registers, threads):
    """Of the block's first threads, all registers of one after the other."""
    lines = "".join(f"  st.global.f32 [%to+{4 * i}], %d{i};\n" for i in range(registers))
    return (f"  mov.u32 %i, %tid.x;\n  mad.lo.u32 %x, %block, {threads}, %i;\n  ld.param.u64 %to, [out];\n"
            f"  mul.wide.u32 %at, %x, {4 * registers};\n  add.s64 %to, %to, %at;\n"
            f"  setp.ge.u32 %p, %i, {threads};\n  @%p bra END;\n{lines}END:\n  ret;\n}}\n")


def kernel_of_b(transposed):
    columns = ROWS_OF_B[transposed]
    identity = """
  // rows 0 to 15 of each warp's a are the identity
  mov.u32 %lane, %laneid;
  shr.u32 %group, %lane, 2;
  and.b32 %in, %lane, 3;
  shl.b32 %in, %in, 1;
  setp.eq.u32 %p, %group, %in;
  selp.b32 %a0, 0x3f80, 0, %p;
  add.u32 %in, %in, 1;
  setp.eq.u32 %p, %group, %in;
  selp.b32 %x, 0x3f800000, 0, %p;
  or.b32 %a0, %a0, %x;
  mov.b32 %a1, 0;
  mov.b32 %a2, 0;
  mov.b32 %a3, %a0;
"""
    return (HEADER + BEGIN + FILL + identity + ADDRESS.format("%db") +
            multiply(columns, "{%a0, %a1, %a2, %a3}", "%db", int(transposed)) + store(columns // 2, 32))


def kernel_of_a(transposed):
    """b is the identity of 16 behind the 64 KiB, along k and not swizzled."""
    identity = """
  add.u32 %x, %base, 65536;
  mov.u32 %y, %tid.x;
  shl.b32 %y, %y, 2;
  add.u32 %x, %x, %y;
  mov.b32 %y, 0;
  st.shared.u32 [%x], %y;
  bar.sync 0;
  mov.u32 %i, %tid.x;
  setp.ge.u32 %p, %i, 16;
  @%p bra MADE;
  // element k = i of row i: chunk i / 8 lies 128 i / 8 bytes on, rows 8 to 15 lie 256 bytes on
  and.b32 %x, %i, 7;
  mul.lo.u32 %x, %x, 18;
  shr.u32 %y, %i, 3;
  mad.lo.u32 %x, %y, 384, %x;
  add.u32 %x, %x, %base;
  mov.b16 %one, 0x3f80;
  st.shared.u16 [%x+65536], %one;
MADE:
  add.u32 %x, %base, 65536;
  shr.u32 %x, %x, 4;
  cvt.u64.u32 %db, %x;
  or.b64 %db, %db, DESCRIPTOR;
""".replace("DESCRIPTOR", str(descriptor(0, 128, 256)))
    return (HEADER + BEGIN + FILL + identity + ADDRESS.format("%da") +
            multiply(16, "%da", "%db", f"{int(transposed)}, 0") + store(8, 128))


def places(words, block, transposed, is_a):
    """{(row, k): byte of shared memory} as the result of a block tells."""
    found = {}
    registers, lanes = (8, 128) if is_a else (ROWS_OF_B[transposed] // 2, 32)
    for lane in range(lanes):
        for i in range(registers):
            row, column = lane // 32 * 16 + lane % 32 // 4 + i // 2 % 2 * 8, i // 4 * 8 + lane % 4 * 2 + i % 2
            at = 2 * index_of(words[(block * lanes + lane) * registers + i])
            found[(row, column) if is_a else (column, row)] = at
    return found


def predicted(bits, row, k, transposed):
    """The byte that element `k` of `row` should be read from, by the emulator's formulas."""
    start, leading, stride = ((bits >> shift & 0x3fff) << 4 for shift in (0, 16, 32))
    base, span = bits >> 49 & 7, (0, 128, 64, 32)[bits >> 62]
    if not transposed:
        part, inside, pitch, step = k // 8, k % 8 * 2, span or 16, 16 if span else leading
        at = start + row % 8 * pitch + row // 8 * stride + part * step
    else:
        part, inside = row // 8, row % 8 * 2
        if span:
            per = span // 16
            at = start + part % per * 16 + part // per * leading + k % 8 * span + k // 8 * stride
        else:
            at = start + part * stride + k % 8 * 16 + k // 8 * leading
    phase = ((at >> 7) - base) & (span // 16 - 1 if span else 0)
    return (at ^ phase << 4) + inside


# (start, leading, stride, swizzle, base offset)
ALONG_K = [
    (0, 128, 256, 0, 0), (0, 1024, 128, 0, 0), (0, 2064, 272, 0, 0), (4096, 128, 256, 0, 0), (16, 144, 512, 0, 0),
    (0, 0, 256, 32, 0), (0, 16, 512, 32, 0), (1024, 4096, 768, 32, 0),
    (0, 0, 512, 64, 0), (32, 16, 1024, 64, 0), (2048, 4096, 1536, 64, 0),
    (0, 0, 1024, 128, 0), (32, 16, 1024, 128, 0), (64, 1024, 2048, 128, 0), (96, 4096, 3072, 128, 0), (1024, 128, 1024, 128, 0),
    (384, 16, 1024, 128, 3), (640, 16, 1024, 128, 5), (416, 16, 2048, 128, 3), (128, 16, 512, 64, 1), (128, 16, 256, 32, 1),
]
ALONG_M = [
    (0, 2048, 128, 0, 0), (0, 128, 256, 0, 0), (0, 4352, 272, 0, 0), (64, 8192, 128, 0, 0),
    (0, 512, 256, 32, 0), (0, 256, 4096, 32, 0), (1024, 768, 8192, 32, 0),
    (0, 1024, 512, 64, 0), (0, 512, 4096, 64, 0), (2048, 1536, 8192, 64, 0),
    (0, 2048, 1024, 128, 0), (0, 1024, 2048, 128, 0), (1024, 3072, 8192, 128, 0),
    (384, 1024, 2048, 128, 3), (640, 2048, 1024, 128, 5), (128, 512, 4096, 64, 1), (128, 256, 4096, 32, 1),
]
# What the emulator reports: starts that no base offset explains, base offsets without need, distances that swizzles part at.
ODD_ALONG_K = [
    (384, 16, 1024, 128, 0), (128, 16, 512, 64, 0), (128, 16, 256, 32, 0), (112, 16, 1024, 128, 0), (16, 16, 1024, 128, 0), (0, 16, 1024, 128, 3),
    (0, 128, 256, 0, 3), (0, 16, 1040, 128, 0), (0, 16, 896, 128, 0), (0, 16, 0, 128, 0), (0, 0, 256, 0, 0),
]
ODD_ALONG_M = [
    (384, 1024, 2048, 128, 0), (16, 2048, 1024, 128, 0), (64, 2048, 1024, 128, 0), (0, 2048, 1152, 128, 0), (0, 1152, 2304, 128, 0),
    (0, 1024, 2048, 128, 3), (0, 2048, 128, 0, 1),
]


def explain_places(given, transposed, is_a):
    def explain(card, emulated):
        told = []
        for block, values in enumerate(given):
            found, bits = places(card, block, transposed, is_a), descriptor(*values)
            wrong = [(key, at) for key, at in sorted(found.items()) if at != predicted(bits, *key, transposed)]
            if wrong:
                (row, k), at = wrong[0]
                told.append(f"start {values[0]} leading {values[1]} stride {values[2]} swizzle {values[3]} base {values[4]}: "
                            f"{len(wrong)} of {len(found)} elsewhere, first row {row} k {k} from {at}, not {predicted(bits, row, k, transposed)}")
        return told or ["all as the formulas say"]
    return explain


def facts():
    for is_a in (False, True):
        for transposed in (False, True):
            sets = [("", ALONG_M if transposed else ALONG_K)] + [("-odd", ODD_ALONG_M if transposed else ODD_ALONG_K)]
            for suffix, given in sets:
                words = []
                for values in given:
                    bits = descriptor(*values)
                    words += [bits & 0xffffffff, bits >> 32]
                size = len(given) * 4 * (8 * 128 if is_a else ROWS_OF_B[transposed] // 2 * 32)
                where = ("a along m" if is_a else "b along n") if transposed else ("a" if is_a else "b") + " along k"
                yield Fact(
                    f"layout-{'a' if is_a else 'b'}-{'mn' if transposed else 'k'}{suffix}",
                    f"places of {where}, {len(given)} {'odd ' if suffix else ''}descriptors",
                    (kernel_of_a if is_a else kernel_of_b)(transposed),
                    [launch("probe", [buffer(0, 4 * len(words)), buffer(1, size)], len(given), inputs=1, shared=65536 + 2048)],
                    [words], (1, size), [size], refused=bool(suffix), explain=explain_places(given, transposed, is_a))
