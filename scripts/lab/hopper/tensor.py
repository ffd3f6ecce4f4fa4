"""What copies by tensor maps move: boxes in shared memory byte by byte, elements outside, and maps that kernels change."""
import random

from program import HEADER, Fact, buffer, launch, tensor_map

UNTOUCHED = 0xcccccccc  # what shared memory holds before

# Thread 0 has expected bytes at %bar. %done: whether phase 0 was over before patience was.
WAIT = """
  mov.u32 %i, 0;
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %done, [%bar], 0, 20000;
  @%done bra WAITED;
  add.u32 %i, %i, 1;
  setp.lt.u32 %p, %i, 500;
  @%p bra WAIT;
WAITED:
  nanosleep.u32 20000;
  bar.sync 0;
"""


def coordinates(rank, offsets=0):
    """Loads c0 to c4 and o0 to o2 of %from, in words."""
    lines = "".join(f"  ld.global.u32 %c{i}, [%from+{4 * i}];\n" for i in range(rank))
    for i in range(offsets):
        lines += f"  ld.global.u32 %x, [%from+{20 + 4 * i}];\n  cvt.u16.u32 %o{i}, %x;\n"
    return lines


def vector(prefix, count):
    return "{" + ", ".join(f"%{prefix}{i}" for i in range(count)) + "}"


REGISTERS = """  .reg .pred %p, %q, %done;
  .reg .b16 %o<3>;
  .reg .b32 %t, %i, %x, %y, %tile, %bar, %c<5>, %block;
  .reg .b64 %map, %from, %to, %at;
"""
EVERYTHING = REGISTERS + """  mov.u32 %t, %tid.x;
  mov.u32 %tile, tile;
  mov.u32 %bar, barrier;
  setp.ne.u32 %q, %t, 0;
"""


def fill(size, start=0):
    """Of `size` bytes at %tile, all 128 threads."""
    return f"""  mov.u32 %i, %t;
FILL{start}:
  mad.lo.u32 %x, %i, 4, %tile;
  mov.u32 %y, {UNTOUCHED};
  st.shared.u32 [%x], %y;
  add.u32 %i, %i, 128;
  setp.lt.u32 %p, %i, {size // 4};
  @%p bra FILL{start};
"""


def dump(size):
    """The bytes at %tile and two flags, to the block's part of `out`: whether phase 0 was over, and phase 1 with no byte more."""
    return f"""  mul.wide.u32 %at, %block, {size + 8};
  ld.param.u64 %to, [out];
  add.s64 %to, %to, %at;
  @%q bra FLAGGED;
  selp.u32 %x, 1, 0, %done;
  st.global.u32 [%to+{size}], %x;
  mbarrier.arrive.shared::cta.b64 _, [%bar];
  mbarrier.test_wait.parity.shared::cta.b64 %p, [%bar], 1;
  selp.u32 %x, 1, 0, %p;
  st.global.u32 [%to+{size + 4}], %x;
FLAGGED:
  mov.u32 %i, %t;
DUMP:
  mad.lo.u32 %x, %i, 4, %tile;
  ld.shared.u32 %y, [%x];
  mul.wide.u32 %at, %i, 4;
  add.s64 %at, %at, %to;
  st.global.u32 [%at], %y;
  add.u32 %i, %i, 128;
  setp.lt.u32 %p, %i, {size // 4};
  @%p bra DUMP;
  ret;
}}
"""


def load_kernel(rank, im2col, size, expected, offset, lanes=1, prefetch=False):
    offsets = rank - 2 if im2col else 0
    mode = "im2col" if im2col else "tile"
    more = ", " + vector("o", offsets) if im2col else ""
    copy = (f"  cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes [%x], "
            f"[%map, {vector('c', rank)}], [%bar]{more};\n")
    if prefetch:
        copy = f"  cp.async.bulk.prefetch.tensor.{rank}d.L2.global.{mode} [%map, {vector('c', rank)}]{more};\n"
    return HEADER + f""".visible .entry load(.param .align 64 .b8 map[128], .param .u64 places, .param .u64 out) .reqntid 128, 1, 1 {{
  .shared .align 1024 .b8 tile[{size}];
  .shared .align 8 .b64 barrier;
{EVERYTHING}  mov.u32 %block, %ctaid.x;
  mov.b64 %map, map;
  cvta.param.u64 %map, %map;
{fill(size)}  @%q bra READY;
  mbarrier.init.shared::cta.b64 [%bar], 1;
READY:
  fence.proxy.async;
  bar.sync 0;
  ld.param.u64 %from, [places];
  mul.wide.u32 %at, %block, 32;
  add.s64 %from, %from, %at;
{coordinates(rank, offsets)}  @%q bra EXPECTED;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], {expected};
EXPECTED:
  bar.sync 0;
  setp.ge.u32 %p, %t, {lanes};
  @%p bra ISSUED;
  add.u32 %x, %tile, {offset};
{copy}ISSUED:
{WAIT}{dump(size)}"""


def places_of(given):
    """Eight words for each: coordinates, then offsets from word 5 on."""
    words = []
    for place in given:
        point, offsets = place if isinstance(place[0], tuple) else (place, ())
        words += [c & 0xffffffff for c in point] + [0] * (5 - len(point)) + list(offsets) + [0] * (3 - len(offsets))
    return words


SIZES = {"u8": 1, "u16": 2, "f16": 2, "bf16": 2, "u64": 8, "s64": 8, "f64": 8}


def count(dims):
    total = 1
    for dim in dims:
        total *= dim
    return total


def load(name, question, kind, dims, box, places, offset=0, size=None, expected=None, words=None, lanes=1, refused=False, traps=False, prefetch=False,
         **more):
    """box: of im2col (channels, pixels). size: bytes of shared memory that are looked at. prefetch: instead of a load."""
    element = SIZES.get(kind, 4)
    im2col = "im2col" in more
    steps = more.get("element_strides", [1] * len(dims))
    taken = list(box) if im2col else [box[0]] + [-(-b // s) for b, s in zip(box[1:], steps[1:])]
    moved = 0 if prefetch else count(taken) * element
    span = {"128B": 128, "64B": 64, "32B": 32}.get(more.get("swizzle"), 0)
    size = size or offset + (max(span, taken[0] * element) * count(taken[1:]) + 1023) // 1024 * 1024
    length = sum((d - 1) * s for d, s in zip(dims[1:], more["strides"])) + dims[0] * element if "strides" in more else count(dims) * element
    words = words or [(2 * i + 2) << 16 | (2 * i + 1) for i in range(-(-length // 4))]
    made = tensor_map(0, 4 * len(words), kind, dims, None if im2col else box, **more)
    total = len(places) * (size + 8)
    return Fact("load-" + name, question, load_kernel(len(dims), im2col, size, expected or moved * lanes, offset, lanes, prefetch),
                [launch("load", [made, buffer(1, 32 * len(places)), buffer(2, total)], len(places), inputs=2)],
                [[w & 0xffffffff for w in words], places_of(places)], (2, total), [total], refused=refused or traps,
                traps=traps, explain=explain_boxes(size // 4 + 2))


def explain_boxes(each):
    """each: words of a box with its flags."""
    def explain(card, emulated):
        told = []
        for block in range(len(card) // each):
            flags = card[(block + 1) * each - 2:(block + 1) * each]
            if flags != [1, 1]:
                told.append(f"box {block}: the bytes were not those expected: phase over {flags[0]}, nothing left over {flags[1]}")
            if emulated:
                apart = [i for i in range(each - 2) if card[block * each + i] != emulated[block * each + i]]
                told += [f"box {block}: {len(apart)} words differ, first at byte {4 * i}: card {card[block * each + i]:08x}, "
                         f"emulator {emulated[block * each + i]:08x}" for i in apart[:1]]
        return told
    return explain


SPECIAL = [0, 0x80000000, 1, 0x80000001, 0x007fffff, 0x007ff000, 0x00000fff, 0x00001000, 0x00800000, 0x3f800fff, 0x3f801000, 0x3f801001,
           0x3f803000, 0xbf801000, 0x7f7fffff, 0xff7fffff, 0x7f7fefff, 0x7f7ff000, 0x7f800000, 0xff800000, 0x7f800001, 0x7fc00000, 0x7fffffff,
           0xffc12345, 0x7f801000, 0xff801fff]
# Boxes begin at multiples of 16 bytes.
INSIDE, AROUND = [(0, 0), (16, 3)], [(0, 0), (-8, -3), (40, 36), (64, 0), (0, -8), (-64, 0), (1 << 20, 5), (-(1 << 31), -1)]


def loads():
    yield load("128B", "box of 128 bytes, swizzled by 128", "bf16", [64, 40], [64, 8], AROUND, swizzle="128B")
    yield load("64B", "box of 64 bytes, swizzled by 64", "bf16", [64, 40], [32, 16], AROUND, swizzle="64B")
    yield load("32B", "box of 32 bytes, swizzled by 32", "bf16", [64, 40], [16, 24], AROUND, swizzle="32B")
    yield load("none", "box of 48 bytes, not swizzled", "bf16", [64, 40], [24, 5], AROUND)
    for span, rows in (("128B", (8, 16, 24, 48)), ("64B", (8, 24)), ("32B", (8,))):
        for columns in rows:
            yield load(f"short-{span}-{2 * columns}", f"rows of {2 * columns} bytes, swizzled by {span[:-1]}", "bf16", [64, 40],
                       [columns, 10], INSIDE + [(56, 36)], swizzle=span)
    yield load("offset", "swizzle of a box that begins at byte 384 of 1024", "bf16", [64, 40], [64, 8], INSIDE, offset=384, size=2048,
               swizzle="128B")
    yield load("offset-64", "swizzle of 64 of a box that begins at byte 128 of 512", "bf16", [64, 40], [32, 8], INSIDE, offset=128, size=1024,
               swizzle="64B")
    rng = random.Random(5)
    single = SPECIAL + [rng.getrandbits(32) for _ in range(16 * 16 - len(SPECIAL))]
    for kind in ("f32", "f32_ftz", "tf32", "tf32_ftz"):
        yield load(f"convert-{kind}", f"{kind}: what a load makes of elements", kind, [16, 16], [16, 16], [(0, 0), (8, 8)], words=single)
    for kind in ("f16", "bf16", "f32", "f64", "tf32", "f32_ftz"):
        columns = 64 // SIZES.get(kind, 4)
        yield load(f"nan-{kind}", f"{kind}: NaN for what lies outside", kind, [columns, 8], [columns, 8], [(-columns // 4, -2), (columns // 2, 4)],
                   fill="nan")
    for kind in ("u8", "u16", "u32", "s32", "u64", "s64"):
        columns = 64 // SIZES.get(kind, 4)
        yield load(f"type-{kind}", f"{kind}: box and zeros outside", kind, [columns, 8], [columns, 8], [(-columns // 4, -2), (columns // 2, 4)])
    yield load("steps", "steps of 2 rows, of 3 planes", "bf16", [32, 20, 15], [16, 7, 8], [(0, 0, 0), (8, -3, 2), (24, 15, 10)],
               element_strides=[1, 2, 3])
    yield load("steps-0", "steps along the innermost dimension are ignored", "bf16", [64, 20], [16, 6], [(0, 0), (8, 1)], element_strides=[2, 1])
    yield load("5d", "order of five dimensions", "bf16", [16, 6, 5, 4, 3], [8, 3, 2, 3, 2], [(0, 0, 0, 0, 0), (8, 4, 4, 2, 2), (-8, -1, -1, -1, -1)])
    yield load("strides", "strides that are not dense", "bf16", [24, 10, 4], [16, 4, 2], [(0, 0, 0), (16, 8, 3)], strides=[80, 1600])
    yield load("zero-stride", "a stride of zero repeats rows", "bf16", [24, 10], [8, 4], [(0, 0), (8, 8)], strides=[0], words=list(range(1, 65)))
    yield load("1d", "one dimension", "u8", [1000], [256], [(0,), (896,), (-16,)])
    yield from pixels()
    yield from bad_loads()
    yield load("lanes", "32 lanes issue one load: bytes are counted once", "bf16", [64, 40], [16, 8], INSIDE, expected=256, lanes=32, traps=True)
    yield load("lanes-32", "32 lanes issue one load: bytes are counted 32 times", "bf16", [64, 40], [16, 8], INSIDE, expected=8192, lanes=32,
               refused=True)


def pixels():
    corners = {"lower": [-1, -1], "upper": [-1, -1]}
    some = [((0, -1, -1, 0), (0, 0)), ((0, -1, -1, 0), (2, 1)), ((8, 3, 1, 1), (1, 2)), ((0, 5, 3, 1), (0, 0)), ((8, 0, 0, -1), (0, 0))]
    for swizzle in ("none", "32B"):
        yield load(f"pixels-2d-{swizzle}", f"im2col, W first, padded by one, swizzle {swizzle}", "bf16", [16, 7, 5, 3], [8, 50], some,
                   swizzle=swizzle, im2col={**corners, "channels": 8, "pixels": 50})
    yield load("pixels-steps", "im2col, every other pixel", "bf16", [16, 9, 8, 3], [8, 40], some, element_strides=[1, 2, 2, 1],
               im2col={**corners, "channels": 8, "pixels": 40})
    yield load("pixels-steps-odd", "im2col, steps of 3 and 2 from a corner of -2, -1", "bf16", [16, 9, 8, 3], [16, 33],
               [((0, -2, -1, 0), (0, 0)), ((0, 1, 1, 1), (3, 2))], element_strides=[1, 3, 2, 1],
               im2col={"lower": [-2, -1], "upper": [1, -2], "channels": 16, "pixels": 33})
    yield load("pixels-steps-image", "im2col, every other image", "bf16", [16, 4, 3, 5], [8, 30], [((0, 0, 0, 0), (0, 0))],
               element_strides=[1, 1, 1, 2], im2col={"lower": [0, 0], "upper": [0, 0], "channels": 8, "pixels": 30})
    yield load("pixels-nan", "im2col, NaN outside", "f16", [16, 7, 5, 2], [16, 64], some[:3], fill="nan",
               im2col={**corners, "channels": 16, "pixels": 64})
    yield load("pixels-1d", "im2col of one dimension", "bf16", [16, 20, 4], [16, 48], [((0, -2, 0), (0,)), ((0, 3, 1), (4,))],
               im2col={"lower": [-2], "upper": [-2], "channels": 16, "pixels": 48})
    yield load("pixels-3d", "im2col of three dimensions", "bf16", [8, 5, 4, 3, 2], [8, 100],
               [((0, -1, 0, -1, 0), (0, 0, 0)), ((0, 1, 1, 1, 0), (2, 1, 1))], im2col={"lower": [-1, 0, -1], "upper": [-1, 0, 0], "channels": 8, "pixels": 100})
    yield load("pixels-image", "im2col from behind the last image", "bf16", [16, 7, 5, 3], [8, 20], [((0, 0, 0, 3), (0, 0)), ((8, 5, 3, 2), (0, 0))],
               im2col={**corners, "channels": 8, "pixels": 20})
    for name, place in (("w", (0, -2, 0, 0)), ("h", (0, 0, -2, 0)), ("both", (0, -3, -2, 0))):
        yield load(f"trap-pixels-before-{name}", f"im2col from a pixel before the corner along {name}", "bf16", [16, 7, 5, 3], [8, 20],
                   [(place, (0, 0))], im2col={**corners, "channels": 8, "pixels": 20}, traps=True)
    for name, place in (("w", (0, 6, 0, 0)), ("h", (0, 0, 4, 0)), ("both", (0, 6, 4, 0))):
        yield load(f"trap-pixels-behind-{name}", f"im2col from a pixel behind the corner along {name}", "bf16", [16, 7, 5, 3], [8, 20],
                   [(place, (0, 0))], im2col={**corners, "channels": 8, "pixels": 20}, traps=True)
    yield load("trap-pixels-channel", "im2col from channel 4 of bf16", "bf16", [16, 7, 5, 3], [8, 20], [((4, 0, 0, 0), (0, 0))],
               im2col={**corners, "channels": 8, "pixels": 20}, traps=True)


def bad_loads():
    """Boxes that the engine does not load."""
    for kind, column in (("u8", 8), ("u8", -1), ("bf16", 4), ("bf16", 1), ("f32", 2), ("f32", -1), ("f64", 1)):
        columns = 64 // SIZES.get(kind, 4)
        yield load(f"trap-{kind}-{column}", f"a box from column {column} of {kind}", kind, [columns, 8], [columns, 8], [(column, 0)], traps=True)
    yield load("trap-outside", "a box from byte 8 of a row far outside", "bf16", [64, 40], [64, 8], [(1028, 0)], swizzle="128B", traps=True)
    yield load("prefetch", "prefetches of boxes", "bf16", [64, 40], [64, 8], AROUND, prefetch=True)
    yield load("prefetch-4", "a prefetch of a box from column 4 of bf16", "bf16", [64, 40], [64, 8], [(4, 0)], prefetch=True)


def store_kernel(rank, mode, operation, size, rounds, lanes):
    name = f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{operation}" if operation else f"cp.async.bulk.tensor.{rank}d.global.shared::cta"
    return HEADER + f""".visible .entry store(.param .u64 image, .param .u64 places, .param .align 64 .b8 map[128]) .reqntid 128, 1, 1 {{
  .shared .align 1024 .b8 tile[{size}];
  .shared .align 8 .b64 barrier;
{EVERYTHING}  mov.b64 %map, map;
  cvta.param.u64 %map, %map;
  ld.param.u64 %from, [image];
  mov.u32 %i, %t;
FILL:
  mul.wide.u32 %at, %i, 4;
  add.s64 %at, %at, %from;
  ld.global.u32 %y, [%at];
  mad.lo.u32 %x, %i, 4, %tile;
  st.shared.u32 [%x], %y;
  add.u32 %i, %i, 128;
  setp.lt.u32 %p, %i, {size // 4};
  @%p bra FILL;
  fence.proxy.async;
  bar.sync 0;
  setp.ge.u32 %p, %t, {lanes};
  @%p bra END;
  ld.param.u64 %from, [places];
  mov.u32 %i, 0;
AGAIN:
{coordinates(rank)}  {name}.{mode}.bulk_group [%map, {vector('c', rank)}], [%tile];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  add.s64 %from, %from, 32;
  add.u32 %i, %i, 1;
  setp.lt.u32 %p, %i, {rounds};
  @%p bra AGAIN;
END:
  ret;
}}
"""


def store(name, question, kind, dims, box, places, operation=None, image=None, before=None, lanes=1, traps=False, **more):
    """box: of im2col (channels, pixels). before: words of the tensor."""
    element = SIZES.get(kind, 4)
    im2col = "im2col" in more
    steps = more.get("element_strides", [1] * len(dims))
    taken = list(box) if im2col else [box[0]] + [-(-b // s) for b, s in zip(box[1:], steps[1:])]
    span = {"128B": 128, "64B": 64, "32B": 32}.get(more.get("swizzle"), 0)
    size = (max(span, taken[0] * element) * count(taken[1:]) + 1023) // 1024 * 1024
    words = count(dims) * element // 4
    image = (image or [(2 * i + 2) << 16 | (2 * i + 1) for i in range(size // 4)])[:size // 4]
    image = image + [0] * (size // 4 - len(image))
    before = before or [0xbeef0000 + i for i in range(words)]
    before = (before * (words // len(before) + 1))[:words]
    made = tensor_map(3, 4 * words, kind, dims, None if im2col else box, **more)
    mode = "im2col_no_offs" if im2col else "tile"
    return Fact("store-" + name, question, store_kernel(len(dims), mode, operation, size, len(places), lanes),
                [{"copy": {"from": buffer(2, 4 * words), "to": buffer(3, 4 * words)}},
                 launch("store", [buffer(0, size), buffer(1, 32 * len(places)), made], inputs=2)],
                [image, places_of(places), before], (3, 4 * words), [4 * words], refused=traps, traps=traps)


def singles(rng, extremes):
    return [rng.choice(SPECIAL) if rng.random() < extremes else rng.getrandbits(1) << 31 | rng.randint(110, 140) << 23 | rng.getrandbits(23)
            for _ in range(1024)]


def subnormals(rng):
    """And some that are just not."""
    return [rng.getrandbits(1) << 31 | rng.randint(0, 1) << 23 | rng.getrandbits(23) for _ in range(1024)]


def halves(rng, bias, mantissa, extremes):
    full = 2 * bias + 1
    made = []
    for _ in range(2048):
        power = rng.choice((0, full, 2 * bias)) if rng.random() < extremes else rng.randint(bias - 8, bias + 8)
        made.append(rng.getrandbits(1) << 15 | power << mantissa | rng.getrandbits(mantissa))
    return [made[i] | made[i + 1] << 16 for i in range(0, 2048, 2)]


def stores():
    around = [(0, 0), (16, 3), (40, 36), (64, 0), (0, 40), (1 << 20, 5)]  # never before the beginning
    for swizzle, box in (("none", [24, 5]), ("128B", [64, 8]), ("64B", [32, 8]), ("32B", [16, 8])):
        yield store(f"{swizzle}", f"outside is left out, swizzle {swizzle}", "bf16", [64, 40], box, around, swizzle=swizzle)
    yield store("short", "rows of 32 bytes, swizzled by 128", "bf16", [64, 40], [16, 10], INSIDE, swizzle="128B")
    yield store("steps", "steps of 2 rows, of 3 planes", "bf16", [32, 20, 15], [16, 7, 8], [(0, 0, 0), (24, 15, 10)], element_strides=[1, 2, 3])
    pixels = {"lower": [-1, -1], "upper": [-1, -1], "channels": 8, "pixels": 50}
    yield store("pixels", "im2col", "bf16", [16, 7, 5, 3], [8, 50], [(0, 0, 0, 0), (8, 3, 1, 1)], im2col=pixels)
    yield store("trap-pixels", "im2col from a pixel of the padding", "bf16", [16, 7, 5, 3], [8, 50], [(0, -1, -1, 0)], im2col=pixels, traps=True)
    for name, place in (("column", (-8, 0)), ("row", (0, -1)), ("bytes", (4, 0))):
        yield store(f"trap-{name}", f"a store to column {place[0]}, row {place[1]} of bf16", "bf16", [64, 40], [24, 5], [place], traps=True)
    yield store("trap-add", "a reduction to row -4", "u32", [16, 16], [16, 16], [(4, -4)], "add", traps=True)
    rng = random.Random(7)
    for kind in ("f32_ftz", "tf32", "tf32_ftz"):
        yield store(f"convert-{kind}", f"{kind}: what a store makes of elements", kind, [16, 16], [16, 16], [(0, 0)],
                    image=SPECIAL + [rng.getrandbits(32) for _ in range(256 - len(SPECIAL))])
    tile = ([16, 16], [16, 16], [(0, 0), (8, 4)])
    for kind, operations in (("u32", "add min max inc dec and or xor"), ("s32", "add min max"), ("u64", "add min max and xor"), ("s64", "min max")):
        for operation in operations.split():
            yield store(f"{operation}-{kind}", f"{operation} of {kind}", kind, *tile, operation,
                        [rng.getrandbits(32) for _ in range(512)], [rng.getrandbits(32) for _ in range(512)])
    # Numbers beyond 2^24 apart and subnormal ones show rounding and flushing.
    yield store("add-f32", "add of f32", "f32", *tile, "add", singles(rng, 0.1), singles(rng, 0.1))
    yield store("add-f32_ftz", "add of f32_ftz", "f32_ftz", *tile, "add", singles(rng, 0.1), singles(rng, 0.1))
    for kind in ("f32", "f32_ftz"):
        yield store(f"add-{kind}-subnormal", f"add of {kind}, subnormal numbers", kind, *tile, "add", subnormals(rng), subnormals(rng))
    for kind, bias, mantissa in (("f16", 15, 10), ("bf16", 127, 7)):
        for operation in ("add", "min", "max"):
            yield store(f"{operation}-{kind}", f"{operation} of {kind}", kind, *tile, operation, halves(rng, bias, mantissa, 0.1),
                        halves(rng, bias, mantissa, 0.1))
    yield store("lanes", "32 lanes issue one reduction: so often it is added", "u32", [16, 16], [16, 16], [(0, 0)], "add", [1] * 256, [0] * 256,
                lanes=32)


def bulk(name, question, operation, image, before, lanes=1):
    """A reduction of 1024 bytes into global memory without a tensor map."""
    ptx = HEADER + f""".visible .entry reduce(.param .u64 image, .param .u64 tensor) .reqntid 128, 1, 1 {{
  .shared .align 1024 .b8 tile[1024];
  .shared .align 8 .b64 barrier;
{EVERYTHING}  ld.param.u64 %from, [image];
  mul.wide.u32 %at, %t, 8;
  add.s64 %at, %at, %from;
  ld.global.v2.u32 {{%c0, %c1}}, [%at];
  mad.lo.u32 %x, %t, 8, %tile;
  st.shared.v2.u32 [%x], {{%c0, %c1}};
  fence.proxy.async;
  bar.sync 0;
  setp.ge.u32 %p, %t, {lanes};
  @%p bra END;
  ld.param.u64 %to, [tensor];
  cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation} [%to], [%tile], 1024;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
END:
  ret;
}}
"""
    return Fact("bulk-" + name, question, ptx, [{"copy": {"from": buffer(1, 1024), "to": buffer(2, 1024)}},
                                                launch("reduce", [buffer(0, 1024), buffer(2, 1024)], inputs=1)],
                [image[:256], before[:256]], (2, 1024), [1024])


def bulks():
    rng = random.Random(11)
    yield bulk("lanes", "32 lanes issue one bulk reduction: so often it is added", "add.u32", [1] * 256, [0] * 256, 32)
    yield bulk("add-f32", "bulk add of f32", "add.f32", singles(rng, 0.1), singles(rng, 0.1))
    yield bulk("add-f32-subnormal", "bulk add of f32, subnormal numbers", "add.f32", subnormals(rng), subnormals(rng))
    for kind, bias, mantissa in (("f16", 15, 10), ("bf16", 127, 7)):
        for operation in ("add.noftz", "min", "max"):
            yield bulk(f"{operation.split('.')[0]}-{kind}", f"bulk {operation} of {kind}", f"{operation}.{kind}", halves(rng, bias, mantissa, 0.1),
                       halves(rng, bias, mantissa, 0.1))


def replace_kernel(fields, rank, size, expected):
    """fields: (name, ordinal or None, value); values of addresses are %at, the tensor's."""
    lines = ""
    for name, ordinal, value in fields:
        wide = name in ("global_address", "global_stride")
        immediate = name in ("elemtype", "interleave_layout", "swizzle_mode", "fill_mode")
        operand = "%at" if value is None else str(value)
        if not immediate and value is not None:
            lines += f"  mov.b64 %to, {value};\n" if wide else f"  mov.u32 %y, {value};\n"
            operand = "%to" if wide else "%y"
        lines += (f"  tensormap.replace.tile.{name}.shared::cta.b1024.b{64 if wide else 32} [%made], " +
                  (f"{ordinal}, " if ordinal is not None else "") + operand + ";\n")
    copy = (f"  cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%tile], "
            f"[%map, {vector('c', rank)}], [%bar];\n")
    return HEADER + f""".visible .entry make(.param .u64 tensor, .param .u64 places, .param .u64 maps, .param .u64 out) .reqntid 128, 1, 1 {{
  .shared .align 1024 .b8 tile[{size}];
  .shared .align 128 .b8 made[128];
  .shared .align 8 .b64 barrier;
  .reg .b64 %made;
{EVERYTHING}  mov.u32 %block, %ctaid.x;
  ld.param.u64 %map, [maps];
  mul.wide.u32 %at, %block, 128;
  add.s64 %map, %map, %at;
{fill(size)}  mov.u32 %x, made;
  cvt.u64.u32 %made, %x;
  setp.ge.u32 %p, %t, 32;
  @%p bra MADE;
  mad.lo.u32 %x, %t, 4, %x;
  mov.u32 %y, 0;
  st.shared.u32 [%x], %y;
  bar.warp.sync 0xffffffff;
  @%q bra REPLACED;
  mbarrier.init.shared::cta.b64 [%bar], 1;
  ld.param.u64 %at, [tensor];
{lines}REPLACED:
  bar.warp.sync 0xffffffff;
  tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%map], [%made], 128;
MADE:
  fence.proxy.async;
  bar.sync 0;
  fence.proxy.tensormap::generic.acquire.gpu [%map], 128;
  ld.param.u64 %from, [places];
  mul.wide.u32 %at, %block, 32;
  add.s64 %from, %from, %at;
{coordinates(rank)}  @%q bra ISSUED;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], {expected};
{copy}ISSUED:
{WAIT}{dump(size)}"""


TYPES = "u8 u16 u32 s32 u64 s64 f16 f32 f32_ftz f64 bf16 tf32 tf32_ftz".split()


def replaced(name, question, kind, dims, strides, box, places, steps=None, swizzle=0, fills=0):
    element = SIZES.get(kind, 4)
    steps = steps or [1] * len(dims)
    taken = [box[0]] + [-(-b // s) for b, s in zip(box[1:], steps[1:])]
    expected = count(taken) * element
    size = (max((0, 32, 64, 128)[swizzle], taken[0] * element) * count(taken[1:]) + 1023) // 1024 * 1024
    fields = [("global_address", None, None), ("rank", None, len(dims) - 1)]
    fields += [("box_dim", i, b) for i, b in enumerate(box)] + [("global_dim", i, d) for i, d in enumerate(dims)]
    fields += [("global_stride", i, s) for i, s in enumerate(strides)] + [("element_stride", i, s) for i, s in enumerate(steps)]
    fields += [("elemtype", None, TYPES.index(kind)), ("interleave_layout", None, 0), ("swizzle_mode", None, swizzle), ("fill_mode", None, fills)]
    length = sum((d - 1) * s for d, s in zip(dims[1:], strides)) + dims[0] * element
    words = [((2 * i + 2) << 16 | (2 * i + 1)) & 0xffffffff for i in range(-(-length // 4))]
    total, blocks = len(places) * (size + 8), len(places)
    arguments = [buffer(0, 4 * len(words)), buffer(1, 32 * blocks), buffer(2, 128 * blocks), buffer(3, total)]
    return Fact("replace-" + name, question, replace_kernel(fields, len(dims), size, expected),
                [launch("make", arguments, blocks, inputs=2)], [words, places_of(places)], (3, total), [128 * blocks, total],
                explain=explain_boxes(size // 4 + 2))


def replacements():
    yield replaced("2d", "a map made of zeros, two dimensions, swizzle 128", "bf16", [64, 40], [128], [64, 8], AROUND[:6], swizzle=3)
    yield replaced("3d", "three dimensions, steps, NaN outside", "f16", [24, 10, 6], [64, 1024], [16, 6, 4], [(0, 0, 0), (16, 8, 3), (-8, -2, -1)],
                   [1, 2, 3], fills=1)
    yield replaced("1d", "one dimension, u8", "u8", [1000], [], [256], [(0,), (896,)])
    for number, kind in enumerate(TYPES):
        columns = 64 // SIZES.get(kind, 4)
        yield replaced(f"type-{kind}", f"element type {number} is {kind}", kind, [columns, 8], [64], [columns, 8], [(-columns // 4, -2), (columns // 2, 4)])
    yield replaced("5d", "five dimensions, swizzle 32", "bf16", [16, 6, 5, 4, 3], [32, 192, 960, 3840], [16, 3, 2, 3, 2],
                   [(0, 0, 0, 0, 0), (8, 4, 4, 2, 2)], swizzle=1)


def facts():
    yield from loads()
    yield from stores()
    yield from bulks()
    yield from replacements()
