// The xla_gpu dialect: what is missing between HLO and LLVM once tensors are memory handles. RATIONALE.md says why.
#ifndef HLOC_XLA_GPU_DIALECT
#define HLOC_XLA_GPU_DIALECT

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def XlaGpu_Dialect : Dialect {
  let name = "xla_gpu";
  let cppNamespace = "::hloc::xla_gpu";
  let summary = "Loops over indexing maps, pure calls, shared memory and warp reductions on tensors as memory handles";
  let description = [{
    Tensors are handles of memory: an input is only read (`tensor.extract`), an output is threaded through
    `tensor.insert`, loops and calls in destination-passing style and returned by the entry function.

    Discardable attributes used as a protocol:

    | name | on | meaning |
    |---|---|---|
    | `xla_gpu.entry` | func | the kernel |
    | `xla_gpu.block`, `xla_gpu.grid` | entry func | launch, `array<i32: x, y, z>` |
    | `xla_gpu.registers` | entry func | `i32`, that a thread may take: a `.maxnreg` where the code can do with them |
    | `xla_gpu.slice_index = N : index` | argument | buffer identity: equal numbers are the same buffer |
    | `xla_gpu.invariant` | argument | nobody writes the buffer while the kernel runs: loads may be non-coherent |
    | `xla_gpu.range = [lo : index, hi : index]` | op with one result, argument | closed range of the value |
    | `xla_gpu.no_compute` | func | only moves values: always inlined |
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
}

class XlaGpu_Attr<string name, string attrMnemonic> : AttrDef<XlaGpu_Dialect, name> { let mnemonic = attrMnemonic; }

def XlaGpu_IndexingMapAttr : XlaGpu_Attr<"IndexingMap", "indexing_map"> {
  let summary = "An IndexingMap without runtime variables";
  let description = [{
    `#xla_gpu.indexing_map<"(d0)[s0] -> (d0 * 4 + s0), domain: d0 in [0, 31], s0 in [0, 3]">`. Several adjacent strings
    are concatenated. Equality ignores the names of variables.
  }];
  let parameters = (ins AttrParameter<"::hloc::IndexingMap", "the map", "const ::hloc::IndexingMap &">:$map);
  let builders = [AttrBuilderWithInferredContext<(ins "const ::hloc::IndexingMap &":$map), [{
    return $_get(map.context(), map);
  }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif
