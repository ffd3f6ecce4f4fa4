"""Mbarriers step by step, registers that warps hand over, clusters, and copies to other blocks."""
from program import HEADER, Fact, buffer, launch, tensor_map

NAMES = "  .reg .pred %p, %q;\n  .reg .b32 %t, %x, %y, %z, %i, %bar, %block, %rank, %to32, %bar32;\n  .reg .b64 %out, %from, %map, %at, %s<4>;\n"


def script(steps):
    """PTX of a script, and how many words it tells. Steps of one thread:

    "init N", "inval", "arrive [N] [sI]" (sI keeps the state), "drop", "arrive_expect N", "keep N" (noComplete, into s3),
    "expect N", "complete N"; told: "parity 0|1", "wait sI", "pending sI".
    """
    text, told = "", 0

    def tell(register):
        nonlocal text, told
        text += f"  st.global.u32 [%out+{4 * told}], {register};\n"
        told += 1

    for step in steps:
        word, *rest = step.split()
        state = next((f"%{r}" for r in rest if r[0] == "s"), "_")
        number = next((r for r in rest if r[0] != "s"), None)
        more = f", {number}" if number else ""
        if word == "init":
            text += f"  mbarrier.init.shared::cta.b64 [%bar], {number};\n"
        elif word == "inval":
            text += "  mbarrier.inval.shared::cta.b64 [%bar];\n"
        elif word == "arrive":
            text += f"  mbarrier.arrive.shared::cta.b64 {state}, [%bar]{more};\n"
        elif word == "drop":
            text += f"  mbarrier.arrive_drop.shared::cta.b64 {state}, [%bar]{more};\n"
        elif word == "drop_expect":
            text += f"  mbarrier.arrive_drop.expect_tx.shared::cta.b64 {state}, [%bar]{more};\n"
        elif word == "arrive_expect":
            text += f"  mbarrier.arrive.expect_tx.shared::cta.b64 {state}, [%bar]{more};\n"
        elif word == "keep":
            text += f"  mbarrier.arrive.noComplete.shared::cta.b64 %s3, [%bar]{more};\n"
        elif word == "expect":
            text += f"  mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%bar]{more};\n"
        elif word == "complete":
            text += f"  mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%bar]{more};\n"
        elif word == "parity":
            text += f"  mbarrier.test_wait.parity.shared::cta.b64 %p, [%bar], {number};\n  selp.u32 %x, 1, 0, %p;\n"
            tell("%x")
        elif word == "wait":
            text += f"  mbarrier.test_wait.shared::cta.b64 %p, [%bar], {state};\n  selp.u32 %x, 1, 0, %p;\n"
            tell("%x")
        elif word == "pending":
            text += f"  mbarrier.pending_count.b64 %x, {state};\n"
            tell("%x")
        else:
            raise ValueError(step)
    return text, told


SCRIPTS = {
    "phases": ("phases and parities from the start", ["init 3", "parity 0", "parity 1", "arrive s0", "parity 0", "pending s0", "arrive 2 s1", "pending s1",
               "parity 0", "parity 1", "wait s0", "wait s1", "arrive s2", "pending s2", "wait s2", "wait s0", "arrive 2", "parity 1", "parity 0", "wait s2"]),
    "bytes": ("bytes are waited for", ["init 1", "expect 100", "arrive", "parity 0", "complete 60", "parity 0", "complete 40", "parity 0", "parity 1",
              "arrive_expect 16", "parity 1", "complete 16", "parity 1", "parity 0"]),
    "early-bytes": ("bytes may come before they are expected", ["init 2", "complete 32", "parity 0", "arrive", "parity 0", "arrive_expect 32", "parity 0",
                    "parity 1", "complete 8", "expect 8", "arrive 2", "parity 1"]),
    "zero-bytes": ("no bytes expected", ["init 1", "arrive_expect 0", "parity 0", "expect 0", "parity 1", "arrive", "parity 1"]),
    "drop": ("arrive_drop: fewer are counted from the next phase on", ["init 3", "drop s0", "pending s0", "arrive 2", "parity 0", "arrive s1", "pending s1", "parity 1",
             "arrive", "parity 1", "drop s2", "pending s2", "parity 0", "arrive", "parity 0", "arrive", "parity 1"]),
    "drop-bytes": ("arrive_drop with bytes", ["init 2", "drop_expect 64 s0", "pending s0", "arrive", "parity 0", "complete 64", "parity 0", "arrive", "parity 1"]),
    "keep": ("arrive.noComplete", ["init 4", "keep 2", "pending s3", "keep 1", "pending s3", "parity 0", "arrive", "parity 0", "wait s3"]),
    "most": ("the most arrivals and bytes", ["init 1048575", "arrive 1048574 s0", "pending s0", "parity 0", "expect 1048575", "arrive s1", "pending s1", "parity 0", "complete 524288",
             "parity 0", "complete 524287", "parity 0"]),
    "again": ("inval, then init of another count", ["init 1", "arrive", "parity 0", "inval", "init 2", "parity 0", "parity 1", "arrive", "parity 0", "arrive", "parity 0"]),
}


def mbarriers():
    for name, (question, steps) in SCRIPTS.items():
        text, told = script(steps)
        ptx = HEADER + f""".visible .entry steps(.param .u64 out) .reqntid 32, 1, 1 {{
{NAMES}  .shared .align 8 .b64 barrier;
  mov.u32 %t, %tid.x;
  setp.ne.u32 %q, %t, 0;
  @%q bra END;
  mov.u32 %bar, barrier;
  ld.param.u64 %out, [out];
{text}END:
  ret;
}}
"""
        yield Fact("mbarrier-" + name, "mbarrier: " + question, ptx, [launch("steps", [buffer(0, 4 * told)], block=32)], [], (0, 4 * told), [4 * told])


def copies_arrive():
    """cp.async.mbarrier.arrive: phases that are over after it, without and with .noinc."""
    for suffix, count, question in (("", 1, "adds an arrival that it makes"), (".noinc", 33, "counts as one that was there")):
        ptx = HEADER + f""".visible .entry copies(.param .u64 in, .param .u64 out) .reqntid 32, 1, 1 {{
{NAMES}  .shared .align 16 .b8 tile[512];
  .shared .align 8 .b64 barrier;
  mov.u32 %t, %tid.x;
  setp.ne.u32 %q, %t, 0;
  mov.u32 %bar, barrier;
  @%q bra MADE;
  mbarrier.init.shared::cta.b64 [%bar], {count};
MADE:
  bar.warp.sync 0xffffffff;
  ld.param.u64 %from, [in];
  mul.wide.u32 %at, %t, 16;
  add.s64 %from, %from, %at;
  mov.u32 %x, tile;
  mad.lo.u32 %x, %t, 16, %x;
  cp.async.cg.shared.global [%x], [%from], 16;
  cp.async.mbarrier.arrive{suffix}.shared::cta.b64 [%bar];
  cp.async.wait_all;
  nanosleep.u32 20000;
  bar.warp.sync 0xffffffff;
  ld.param.u64 %out, [out];
  mbarrier.test_wait.parity.shared::cta.b64 %p, [%bar], 0;
  selp.u32 %y, 1, 0, %p;
  bar.warp.sync 0xffffffff;
  @%q bra ARRIVED;
  st.global.u32 [%out+512], %y;
  mbarrier.arrive.shared::cta.b64 _, [%bar];
ARRIVED:
  bar.warp.sync 0xffffffff;
  mov.u32 %i, 0;
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], 0, 20000;
  @%p bra OVER;
  add.u32 %i, %i, 1;
  setp.lt.u32 %p, %i, 500;
  @%p bra WAIT;
  setp.ne.u32 %p, %t, %t;
OVER:
  selp.u32 %y, 1, 0, %p;
  add.s64 %at, %out, %at;
  ld.shared.u32 %z, [%x];
  st.global.v4.u32 [%at], {{%z, %y, %z, %y}};
  ret;
}}
"""
        yield Fact("copies-arrive" + suffix.replace(".", "-"), f"cp.async.mbarrier.arrive{suffix} {question}", ptx,
                   [launch("copies", [buffer(0, 512), buffer(1, 516)], block=32, inputs=1)], [list(range(1, 129))], (1, 516), [516])


def registers():
    """Three warpgroups of 168 registers. Two want 240 while the third has kept `first`, later 24: told is how many of their warps
    came through, and how many not before the third gave back the rest."""
    for first, question in ((24, "24 + 2 x 240 fit three times 168: nobody waits"), (40, "40 + 2 x 240 do not: somebody waits for the rest")):
        ptx = HEADER + f""".visible .entry pool(.param .u64 out) 
.reqntid 384, 1, 1
.minnctapersm 1 {{
{NAMES}  .shared .align 4 .b32 given;
  mov.u32 %t, %tid.x;
  mov.u32 %x, 0;
  mov.u32 %to32, given;
  setp.ne.u32 %q, %t, 0;
  @%q bra CLEARED;
  st.shared.u32 [%to32], %x;
CLEARED:
  bar.sync 0;
  ld.param.u64 %out, [out];
  shr.u32 %y, %t, 7;
  setp.eq.u32 %p, %y, 0;
  @%p bra GIVES;
  // time for the others to give
  nanosleep.u32 100000;
  setmaxnreg.inc.sync.aligned.u32 240;
  ld.volatile.shared.u32 %x, [%to32];
  and.b32 %z, %t, 31;
  setp.ne.u32 %p, %z, 0;
  @%p bra END;
  atom.global.add.u32 %z, [%out], 1;
  atom.global.add.u32 %z, [%out+4], %x;
  bra END;
GIVES:
  setmaxnreg.dec.sync.aligned.u32 {first};
  mov.u32 %i, 0;
SLEEP:
  nanosleep.u32 1000000;
  add.u32 %i, %i, 1;
  setp.lt.u32 %p, %i, 5;
  @%p bra SLEEP;
  bar.sync 1, 128;
  mov.u32 %x, 1;
  @%q bra GAVE;
  st.volatile.shared.u32 [%to32], %x;
GAVE:
  bar.sync 1, 128;
  setmaxnreg.dec.sync.aligned.u32 24;
END:
  ret;
}}
"""
        yield Fact(f"registers-{first}", f"setmaxnreg: {question}", ptx,
                   [{"fill": {"to": buffer(0, 8), "value": 0}}, launch("pool", [buffer(0, 8)], block=384)], [], (0, 8), [8],
                   describe=lambda words: f"{words[0]} of 8 warps came through, {words[1]} only then")


def clusters():
    for shape in ([2, 1, 1], [4, 2, 1], [2, 2, 2], [16, 1, 1]):
        grid = [shape[0] * 2, shape[1] * 3, shape[2] * 2]
        blocks = grid[0] * grid[1] * grid[2]
        specials = ["clusterid.x", "clusterid.y", "clusterid.z", "cluster_ctaid.x", "cluster_ctaid.y", "cluster_ctaid.z", "cluster_ctarank",
                    "cluster_nctarank", "nclusterid.x", "nclusterid.y", "nclusterid.z", "cluster_nctaid.x", "cluster_nctaid.y", "cluster_nctaid.z"]
        told = "".join(f"  mov.u32 %x, %{name};\n  st.global.u32 [%at+{4 * i}], %x;\n" for i, name in enumerate(specials))
        ptx = HEADER + f""".visible .entry ranks(.param .u64 out) .explicitcluster .reqntid 32, 1, 1 {{
{NAMES}  .shared .align 4 .b32 mine;
  mov.u32 %t, %tid.x;
  setp.ne.u32 %q, %t, 0;
  @%q bra EVERYBODY;
  mov.u32 %x, %ctaid.z;
  mov.u32 %y, %nctaid.y;
  mul.lo.u32 %x, %x, %y;
  mov.u32 %y, %ctaid.y;
  add.u32 %x, %x, %y;
  mov.u32 %y, %nctaid.x;
  mul.lo.u32 %x, %x, %y;
  mov.u32 %y, %ctaid.x;
  add.u32 %block, %x, %y;
  ld.param.u64 %out, [out];
  mul.wide.u32 %at, %block, 64;
  add.s64 %at, %out, %at;
{told}  mov.u32 %to32, mine;
  add.u32 %x, %block, 1000;
  st.shared.u32 [%to32], %x;
EVERYBODY:
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
  @%q bra READ;
  // the number of the block with the next rank
  mov.u32 %rank, %cluster_ctarank;
  mov.u32 %y, %cluster_nctarank;
  add.u32 %rank, %rank, 1;
  rem.u32 %rank, %rank, %y;
  mapa.shared::cluster.u32 %x, %to32, %rank;
  ld.shared::cluster.u32 %y, [%x];
  st.global.u32 [%at+56], %y;
  getctarank.shared::cluster.u32 %y, %x;
  st.global.u32 [%at+60], %y;
READ:
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
  ret;
}}
"""
        step = launch("ranks", [buffer(0, 64 * blocks)], block=32, cluster=shape)
        step["launch"]["grid"] = grid
        yield Fact("cluster-" + "x".join(map(str, shape)), f"ranks in clusters of {shape[0]} x {shape[1]} x {shape[2]}",
                   ptx.replace(" .explicitcluster", ""), [step], [], (0, 64 * blocks), [64 * blocks])


def multicast():
    """Rank 1 of four sends a box to ranks 0, 2 and 3; each tells its tile and whether its own mbarrier counted the bytes."""
    ptx = HEADER + f""".visible .entry send(.param .align 64 .b8 map[128], .param .u64 out) .reqntid 32, 1, 1 {{
{NAMES}  .shared .align 128 .b8 tile[1024];
  .shared .align 8 .b64 barrier;
  .reg .b16 %mask;
  mov.u32 %t, %tid.x;
  setp.ne.u32 %q, %t, 0;
  mov.u32 %bar, barrier;
  mov.u32 %rank, %cluster_ctarank;
  mov.u32 %i, %t;
FILL:
  mov.u32 %x, tile;
  mad.lo.u32 %x, %i, 4, %x;
  mov.u32 %y, 0xcccccccc;
  st.shared.u32 [%x], %y;
  add.u32 %i, %i, 32;
  setp.lt.u32 %p, %i, 256;
  @%p bra FILL;
  @%q bra MADE;
  mbarrier.init.shared::cta.b64 [%bar], 1;
  setp.eq.u32 %p, %rank, 1;
  selp.u32 %x, 0, 512, %p;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], %x;
MADE:
  fence.proxy.async;
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
  setp.ne.u32 %p, %rank, 1;
  or.pred %p, %p, %q;
  @%p bra SENT;
  mov.b64 %map, map;
  cvta.param.u64 %map, %map;
  mov.u32 %x, tile;
  mov.u16 %mask, 13;
  mov.u32 %y, 4;
  mov.u32 %z, 1;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%x+256], [%map, {{%y, %z}}], [%bar], %mask;
SENT:
  mov.u32 %i, 0;
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], 0, 20000;
  @%p bra OVER;
  add.u32 %i, %i, 1;
  setp.lt.u32 %p, %i, 500;
  @%p bra WAIT;
  setp.ne.u32 %p, %t, %t;
OVER:
  selp.u32 %z, 1, 0, %p;
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
  ld.param.u64 %out, [out];
  mul.wide.u32 %at, %rank, 1028;
  add.s64 %out, %out, %at;
  st.global.u32 [%out+1024], %z;
  mov.u32 %i, %t;
DUMP:
  mov.u32 %x, tile;
  mad.lo.u32 %x, %i, 4, %x;
  ld.shared.u32 %y, [%x];
  mul.wide.u32 %at, %i, 4;
  add.s64 %at, %at, %out;
  st.global.u32 [%at], %y;
  add.u32 %i, %i, 32;
  setp.lt.u32 %p, %i, 256;
  @%p bra DUMP;
  ret;
}}
"""
    made = tensor_map(0, 2048, "u32", [32, 16], [16, 8])
    yield Fact("multicast", "a box sent to three of four blocks", ptx,
               [launch("send", [made, buffer(1, 4112)], 4, 32, inputs=1, cluster=[4, 1, 1])], [list(range(1, 513))], (1, 4112), [4112])


def stores_to_blocks():
    """Each block of four stores to the next by st.async, and adds there by red.async; mbarriers count the bytes."""
    ptx = HEADER + f""".visible .entry pass(.param .u64 out) .reqntid 32, 1, 1 {{
{NAMES}  .shared .align 16 .b8 tile[64];
  .shared .align 8 .b64 barrier;
  mov.u32 %t, %tid.x;
  setp.ne.u32 %q, %t, 0;
  mov.u32 %bar, barrier;
  mov.u32 %to32, tile;
  mov.u32 %rank, %cluster_ctarank;
  @%q bra MADE;
  mov.u32 %x, 100;
  st.shared.v4.u32 [%to32], {{%x, %x, %x, %x}};
  st.shared.v4.u32 [%to32+16], {{%x, %x, %x, %x}};
  mbarrier.init.shared::cta.b64 [%bar], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 36;
MADE:
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
  @%q bra SENT;
  add.u32 %x, %rank, 1;
  and.b32 %x, %x, 3;
  mapa.shared::cluster.u32 %y, %to32, %x;
  mapa.shared::cluster.u32 %bar32, %bar, %x;
  add.u32 %z, %rank, 7;
  st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%y], {{%z, %x, %z, %x}}, [%bar32];
  st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%y+20], %z, [%bar32];
  mov.b64 %at, {{%z, %x}};
  st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%y+24], %at, [%bar32];
  red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%y+16], %z, [%bar32];
  red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%y+16], %z, [%bar32];
SENT:
  mov.u32 %i, 0;
WAIT:
  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [%bar], 0, 20000;
  @%p bra OVER;
  add.u32 %i, %i, 1;
  setp.lt.u32 %p, %i, 500;
  @%p bra WAIT;
  setp.ne.u32 %p, %t, %t;
OVER:
  selp.u32 %z, 1, 0, %p;
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
  setp.ge.u32 %p, %t, 8;
  @%p bra END;
  ld.param.u64 %out, [out];
  mad.lo.u32 %x, %rank, 8, %t;
  mul.wide.u32 %at, %x, 8;
  add.s64 %out, %out, %at;
  mad.lo.u32 %x, %t, 4, %to32;
  ld.shared.u32 %y, [%x];
  st.global.v2.u32 [%out], {{%y, %z}};
END:
  ret;
}}
"""
    yield Fact("store-async", "st.async and red.async to the next block, and their bytes", ptx,
               [launch("pass", [buffer(0, 256)], 4, 32, cluster=[4, 1, 1])], [], (0, 256), [256])


def facts():
    yield from mbarriers()
    yield from copies_arrive()
    yield from registers()
    yield from clusters()
    yield from multicast()
    yield from stores_to_blocks()
