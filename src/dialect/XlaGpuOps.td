#ifndef HLOC_XLA_GPU_OPS
#define HLOC_XLA_GPU_OPS

include "XlaGpuDialect.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"

class XlaGpu_Op<string mnemonic, list<Trait> traits = []> : Op<XlaGpu_Dialect, mnemonic, traits>;

def XlaGpu_ApplyIndexingOp : XlaGpu_Op<"apply_indexing", [Pure, DeclareOpInterfaceMethods<OpAsmOpInterface, []>]> {
  let summary = "Evaluates an indexing map";
  let description = [{
    `%r:2 = xla_gpu.apply_indexing #map(%a, %b)[%s]`: dimension operands, then range operands; one result per map result.
    The map has no constraints: whoever applies it already knows that the point lies in the domain.
  }];
  let arguments = (ins Variadic<Index>:$operands, XlaGpu_IndexingMapAttr:$map);
  let results = (outs Variadic<Index>);
  let builders = [
    OpBuilder<(ins "::mlir::ValueRange":$operands, "const ::hloc::IndexingMap &":$map)>,
    // Dims are `operands`, ranges 0..n-1: for maps made on the spot.
    OpBuilder<(ins "::mlir::ValueRange":$operands, "::mlir::AffineMap":$affine,
                   "::llvm::ArrayRef<::hloc::IndexingVariable>":$dims)>];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    const ::hloc::IndexingMap &indexingMap() { return getMap().getMap(); }
    ::mlir::OperandRange dimOperands() { return getOperands().take_front(indexingMap().dims().size()); }
    ::mlir::OperandRange rangeOperands() { return getOperands().drop_front(indexingMap().dims().size()); }
  }];
}

def XlaGpu_YieldOp : XlaGpu_Op<"yield", [Pure, ReturnLike, Terminator, ParentOneOf<["LoopOp", "AtomicRmwOp"]>]> {
  let summary = "Ends the body of loop and atomic_rmw";
  let arguments = (ins Variadic<AnyType>:$values);
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def XlaGpu_LoopOp : XlaGpu_Op<"loop", [AttrSizedOperandSegments, RecursiveMemoryEffects,
    SingleBlockImplicitTerminator<"YieldOp">, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "Loop nest over the range variables of an indexing map";
  let description = [{
    ```
    %r = xla_gpu.loop (%t, %b)[%i, %j] -> (%x, %y) in #map iter_args(%acc = %init) -> (f32) {
      xla_gpu.yield %next : f32
    }
    ```
    Enumerates the range variables of `#map` (first one outermost); the body runs only where the map's constraints and
    the bounds of its dimensions hold. Body arguments: range variables, map results, iteration arguments.
  }];
  let arguments = (ins Variadic<Index>:$dims, Variadic<AnyType>:$inits, XlaGpu_IndexingMapAttr:$map);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$region);
  let skipDefaultBuilders = 1;
  let builders = [
    // Builds the body with `body(builder, loc, rangeVariables, mapResults, iterArgs)`, which must end it with a YieldOp.
    OpBuilder<(ins "const ::hloc::IndexingMap &":$map, "::mlir::ValueRange":$dims, "::mlir::ValueRange":$inits,
      CArg<"::llvm::function_ref<void(::mlir::OpBuilder &, ::mlir::Location, ::mlir::ValueRange, ::mlir::ValueRange, "
           "::mlir::ValueRange)>", "nullptr">:$body)>];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    const ::hloc::IndexingMap &indexingMap() { return getMap().getMap(); }
    /// The body's arguments by role.
    ::mlir::ValueRange rangeArguments();
    ::mlir::ValueRange mapResultArguments();
    ::mlir::ValueRange iterArguments();
    /// What the body hands to the next iteration.
    ::mlir::OperandRange yielded() { return getBody()->getTerminator()->getOperands(); }
  }];
}

def XlaGpu_PureCallOp : XlaGpu_Op<"pure_call", [Pure, CallOpInterface, DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "Call of a function without side effects";
  let description = [{
    `%c = xla_gpu.pure_call @f(%t, %i) : (tensor<8xf32>, index) -> f32`. Equal calls may be merged, unused ones dropped.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<AnyType>:$operands, UnitAttr:$noinline,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let results = (outs Variadic<AnyType>);
  let builders = [OpBuilder<(ins "::mlir::func::FuncOp":$callee, "::mlir::ValueRange":$operands)>,
                  OpBuilder<(ins "::mlir::FlatSymbolRefAttr":$callee, "::mlir::TypeRange":$results,
                                 "::mlir::ValueRange":$operands)>];
  let assemblyFormat = [{
    $callee `(` $operands `)` (`noinline` $noinline^)? attr-dict `:` functional-type($operands, results)
  }];
  let extraClassDeclaration = [{
    ::mlir::CallInterfaceCallable getCallableForCallee() { return getCalleeAttr(); }
    void setCalleeFromCallable(::mlir::CallInterfaceCallable callee) {
      setCalleeAttr(::llvm::cast<::mlir::FlatSymbolRefAttr>(::llvm::cast<::mlir::SymbolRefAttr>(callee)));
    }
    ::mlir::Operation::operand_range getArgOperands() { return getOperands(); }
    ::mlir::MutableOperandRange getArgOperandsMutable() { return getOperandsMutable(); }
  }];
}

def XlaGpu_AllocateSharedOp : XlaGpu_Op<"allocate_shared", [MemoryEffects<[MemAlloc]>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "Uninitialised tensor shared by the threads of the block";
  let description = [{
    `%s = xla_gpu.allocate_shared : tensor<32x33xf32>`. Two of them are two buffers: never merged. With `{alignment = 1024}`
    it starts at a multiple of so many bytes, else at one of 16.
  }];
  let arguments = (ins OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$alignment);
  let results = (outs AnyStaticShapeTensor:$result);
  let builders = [OpBuilder<(ins "::mlir::RankedTensorType":$type), [{ build($_builder, $_state, type, IntegerAttr()); }]>];
  let assemblyFormat = "attr-dict `:` type($result)";
}

def XlaGpu_SyncThreadsOp : XlaGpu_Op<"sync_threads", [
    MemoryEffects<[MemRead, MemWrite]>, TypesMatchWith<"results are the operands", "operands", "results", "$_self">]> {
  let summary = "Block barrier that orders accesses to the given tensors";
  let description = [{
    `%a2, %b2 = xla_gpu.sync_threads %a, %b : tensor<4xf32>, tensor<8xf32>`: what is read from `%a2` was written before
    the barrier by any thread of the block. No condition around it may depend on the thread. `of 256`: of so many threads,
    all that come here, whole warps. `of 128 each`: those that come are groups of so many neighbours, none of which waits
    for another; a power of two.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$operands, OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$threads,
                       UnitAttr:$each);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$types, "::mlir::ValueRange":$operands),
                            [{ build($_builder, $_state, types, operands, IntegerAttr(), false); }]>];
  let assemblyFormat = "$operands (`of` $threads^)? (`each` $each^)? attr-dict `:` type($operands)";
  let hasVerifier = 1;
}

def XlaGpu_ShuffleReduceOp : XlaGpu_Op<"shuffle_reduce", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    TypesMatchWith<"results are the operands", "operands", "results", "$_self">]> {
  let summary = "Reduction over neighbouring lanes of a warp";
  let description = [{
    `%r:2 = xla_gpu.shuffle_reduce(%x, %y) to 16 combiner=@f : f32, f32`: for d = 16, 8, 4, 2, 1 every lane calls
    `@f(own values..., values of lane + d...)`. Lane 0 of each group of 32 ends with the reduction of the group; other
    lanes with partial results. With `to_all`, every lane calls it with the values of lane `own xor d`, and all lanes of
    the group end with its reduction, bit for bit the same if `@f` does not care for the order of its two arguments. The
    distance is a power of two below the warp size. No condition around it may depend on the thread: predicated_extract
    gives what has nothing to add a neutral value, predicated_insert lets one lane write.
  }];
  let arguments = (ins Variadic<AnyType>:$operands, FlatSymbolRefAttr:$combiner,
                       ConfinedAttr<I64Attr, [IntPositive]>:$max_distance, UnitAttr:$to_all);
  let results = (outs Variadic<AnyType>:$results);
  let builders = [OpBuilder<(ins "::mlir::func::FuncOp":$combiner, "::mlir::ValueRange":$operands, "int64_t":$maxDistance,
                                 CArg<"bool", "false">:$toAll)>];
  let assemblyFormat = [{
    `(` $operands `)` `to` $max_distance (`to_all` $to_all^)? `combiner` `` `=` `` $combiner attr-dict `:` type($operands)
  }];
  let hasVerifier = 1;
}

def XlaGpu_LoadFragmentsOp : XlaGpu_Op<"load_fragments"> {
  let summary = "A warp's pieces of a shared tensor, as tensor cores want them";
  let description = [{
    `%f = xla_gpu.load_fragments %t[%i] transposed : tensor<4096xbf16>`: four matrices of 8 rows of 16 bytes. Lane 8 m + r
    names the first element of row r of matrix m; rows are neighbours in memory, at a multiple of their size. Word m of lane
    4 i + j is word j of row i of matrix m: of 16 bits, elements 2 j and 2 j + 1.

    With `transposed`, of 16 bits, it is these elements of column i. Bytes are transposed in pairs: words 0 and 1 are of
    columns 2 i and 2 i + 1, each rows 2 j and 2 j + 1 of matrix 0 and of matrix 1; words 2 and 3 the same of matrices 2 and
    3. Lanes in which `swapped` holds have the rows of matrix 1 before those of matrix 0, and those of 3 before those of 2.
    All lanes of a warp come here together.
  }];
  let arguments = (ins AnyStaticShapeTensor:$source, Index:$index, Optional<I1>:$swapped, UnitAttr:$transposed);
  let results = (outs FixedVectorOfShapeAndType<[4], I32>:$result);
  let assemblyFormat = [{
    $source `[` $index `]` (`transposed` $transposed^)? (`swapped` $swapped^)? attr-dict `:` type($source)
  }];
  let hasVerifier = 1;
}

class FragmentOf<int count, list<Type> types> : AnyTypeOf<!foreach(type, types, FixedVectorOfShapeAndType<[count], type>)>;

def XlaGpu_MultiplyFragmentsOp : XlaGpu_Op<"multiply_fragments", [Pure,
    TypesMatchWith<"the result is a sum like those it is added to", "sums", "result", "$_self">]> {
  let summary = "A warp's product of matrices in registers, added to sums";
  let description = [{
    `%d = xla_gpu.multiply_fragments %a, %b, %c : bf16`: 16 x 8 p elements of %a by 8 p x 8 of %b, added to 16 x 8 sums, where
    p neighbours of a row of %a, or of a column of %b, are in a register. Lane 4 i + j has, of %a, neighbours number j of row
    i and of row i + 8, and the same 4 p columns on; of %b, neighbours number j of column i, and those 4 p rows on; of sums
    (i, 2 j), (i, 2 j + 1) and those of row i + 8. All lanes of a warp come here together.

    | factors | p | sums |
    |---|---|---|
    | `bf16`, `f16` | 2 | f32 |
    | `tf32`: words of f32, of which the 13 low bits are not looked at | 1 | f32 |
    | `si8`, `ui8`; `si8 by ui8` of two types | 4 | i32, which wrap |
    | `f64` | 1 | f64 |
  }];
  let arguments = (ins FragmentOf<4, [I32, F64]>:$lhs, FragmentOf<2, [I32, F64]>:$rhs, FragmentOf<4, [F32, I32, F64]>:$sums,
                       TypeAttr:$element, OptionalAttr<TypeAttr>:$rhsElement);
  let results = (outs FragmentOf<4, [F32, I32, F64]>:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `,` $sums attr-dict `:` custom<Fragments>($element, $rhsElement, type($lhs), type($rhs), type($sums))
  }];
  let hasVerifier = 1;
}

def XlaGpu_MultiplyTilesOp : XlaGpu_Op<"multiply_tiles", [
    TypesMatchWith<"results are the sums", "sums", "results", "$_self">]> {
  let summary = "Starts a warpgroup's product of matrices in shared memory, added to sums";
  let description = [{
    ```
    %d:4 = xla_gpu.multiply_tiles %a[%i], %b[%j], (%c0, %c1, %c2, %c3) {
        element = bf16, lhsLayout = array<i64: 16, 1024, 128, 0>, lhsSteps = array<i64: 0, 32, 64, 96>,
        rhsLayout = array<i64: 16, 1024, 128, 0>, rhsSteps = array<i64: 0, 32, 64, 96>}
        : tensor<4096xbf16>, tensor<512xbf16>, f32, f32, f32, f32
    ```
    64 rows of %a by n columns of %b, added to 64 x n sums, of which a thread has n / 2. Lane 4 i + j of warp w of the four
    has, at 4 m + 2 h + l, that of row 16 w + 8 h + i and column 8 m + 2 j + l. Factors are read behind the threads' backs:
    sums are known, and factors may be overwritten, when `await_products` has waited for it. What is read was published
    (`publish_tiles`) and is behind a barrier. All 128 threads come here together.

    `lhsLayout`, `rhsLayout`: [leading, stride, span, along], distances in bytes as descriptors of matrices in shared memory
    have them (PTX ISA, "Matrix Descriptor"): `span` is the bytes of a swizzled row, 0 of none; `along` is 1 if rows, or
    columns, are neighbours, 0 if terms are. `lhsSteps`, `rhsSteps`: where each 32 bytes of terms begin, in bytes from
    the first; as many products are made.

    `anew`: nothing is added to what the sums were. They are the registers in which the results are: those of products
    before that are not needed any more.
  }];
  let arguments = (ins AnyStaticShapeTensor:$lhs, Index:$lhsAt, AnyStaticShapeTensor:$rhs, Index:$rhsAt,
                       Variadic<AnyTypeOf<[F32, I32]>>:$sums, TypeAttr:$element, OptionalAttr<TypeAttr>:$rhsElement,
                       DenseI64ArrayAttr:$lhsLayout, DenseI64ArrayAttr:$rhsLayout, DenseI64ArrayAttr:$lhsSteps,
                       DenseI64ArrayAttr:$rhsSteps, UnitAttr:$anew);
  let results = (outs Variadic<AnyTypeOf<[F32, I32]>>:$results);
  let assemblyFormat = [{
    $lhs `[` $lhsAt `]` `,` $rhs `[` $rhsAt `]` `,` `(` $sums `)` attr-dict `:` type($lhs) `,` type($rhs) `,` type($sums)
  }];
  let hasVerifier = 1;
}

def XlaGpu_MultiplyHeldOp : XlaGpu_Op<"multiply_held", [AttrSizedOperandSegments,
    TypesMatchWith<"results are the sums", "sums", "results", "$_self">]> {
  let summary = "Starts a warpgroup's product of fragments in registers and a matrix in shared memory, added to sums";
  let description = [{
    As multiply_tiles, but that of the left side each warp has its 16 rows in registers: for each 32 bytes of terms four words
    a thread, as multiply_fragments has them. They may be overwritten when the products were awaited.
  }];
  let arguments = (ins Variadic<I32>:$lhs, AnyStaticShapeTensor:$rhs, Index:$rhsAt, Variadic<AnyTypeOf<[F32, I32]>>:$sums,
                       TypeAttr:$element, OptionalAttr<TypeAttr>:$rhsElement, DenseI64ArrayAttr:$rhsLayout,
                       DenseI64ArrayAttr:$rhsSteps, UnitAttr:$anew);
  let results = (outs Variadic<AnyTypeOf<[F32, I32]>>:$results);
  let assemblyFormat = [{
    `(` $lhs `)` `,` $rhs `[` $rhsAt `]` `,` `(` $sums `)` attr-dict `:` type($rhs) `,` type($sums)
  }];
  let hasVerifier = 1;
}

def XlaGpu_AwaitProductsOp : XlaGpu_Op<"await_products", [
    TypesMatchWith<"results are the sums", "sums", "results", "$_self">]> {
  let summary = "Waits for a warpgroup's products of tiles";
  let description = [{
    `%s2 = xla_gpu.await_products %s but 1 : f32`: all that `multiply_tiles` started are there, but those of the last one.
  }];
  let arguments = (ins Variadic<AnyTypeOf<[F32, I32]>>:$sums, ConfinedAttr<I64Attr, [IntNonNegative]>:$open);
  let results = (outs Variadic<AnyTypeOf<[F32, I32]>>:$results);
  let assemblyFormat = "$sums `but` $open attr-dict `:` type($sums)";
}

def XlaGpu_KeepOp : XlaGpu_Op<"keep"> {
  let summary = "Values are in registers here: made before, and not overwritten yet";
  let description = [{
    `xla_gpu.keep %p, %w : f32, vector<4xi32>`. Nothing else ties values to a place: what is made of products that are there
    could come behind the wait for those that are not, and factors of these be overwritten before it. Words and vectors of
    words.
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

def XlaGpu_PublishTilesOp : XlaGpu_Op<"publish_tiles", [
    MemoryEffects<[MemRead, MemWrite]>, TypesMatchWith<"results are the operands", "operands", "results", "$_self">]> {
  let summary = "What the thread wrote to shared tensors can be read by multiply_tiles, behind the next barrier";
  let arguments = (ins Variadic<AnyRankedTensor>:$operands);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "$operands attr-dict `:` type($operands)";
}

// --- a ring of tiles: one thread copies them in bulk, others wait for them

def XlaGpu_InitBarriersOp : XlaGpu_Op<"init_barriers"> {
  let summary = "Makes barriers in shared memory, each with so many arrivals a phase";
  let description = [{
    `xla_gpu.init_barriers %b, [1, 1, 2, 2] : tensor<4xi64>`: by one thread; others use them behind a barrier of the block.
  }];
  let arguments = (ins AnyStaticShapeTensor:$barriers, DenseI64ArrayAttr:$arrivals);
  let assemblyFormat = "$barriers `,` $arrivals attr-dict `:` type($barriers)";
}

def XlaGpu_ArriveOp : XlaGpu_Op<"arrive"> {
  let summary = "The thread arrives at a barrier in shared memory";
  let description = [{
    `xla_gpu.arrive %b[%i] expecting 4096 if %c : tensor<4xi64>`: where the condition holds. The phase is not over until
    so many bytes were copied for it, too. `in 2`: at that of each of so many blocks of the cluster. `for_warp`: behind
    what all lanes of the warp did before, who come here together.
  }];
  let arguments = (ins AnyStaticShapeTensor:$barriers, Index:$index, OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$bytes,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$blocks, UnitAttr:$forWarp, Optional<I1>:$condition);
  let assemblyFormat = [{
    $barriers `[` $index `]` (`expecting` $bytes^)? (`in` $blocks^)? (`for_warp` $forWarp^)? (`if` $condition^)? attr-dict
        `:` type($barriers)
  }];
}

def XlaGpu_AwaitPhaseOp : XlaGpu_Op<"await_phase", [TypesMatchWith<"results are the tiles", "tiles", "results", "$_self">]> {
  let summary = "Waits until a phase of a barrier is over";
  let description = [{
    `xla_gpu.await_phase %b[%i], %p : tensor<4xi64>`: that with parity %p, 0 or 1; of a barrier whose first phase goes on, the
    one before it, of parity 1, is over. `%u = xla_gpu.await_phase %b[%i], %p for %t : tensor<4xi64>, tensor<128xf32>`: %u is
    %t with what others have copied there by then.
  }];
  let arguments = (ins AnyStaticShapeTensor:$barriers, Index:$index, I32:$parity, Variadic<AnyRankedTensor>:$tiles);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $barriers `[` $index `]` `,` $parity (`for` $tiles^)? attr-dict `:` type($barriers) (`,` type($tiles)^)?
  }];
}

def XlaGpu_CopyBoxOp : XlaGpu_Op<"copy_box"> {
  let summary = "Starts a bulk copy of a tensor map's box into shared memory";
  let description = [{
    `xla_gpu.copy_box %map[%x, %y] into %t[%j] for %b[%i] : tensor<128xi8>, tensor<8192xbf16>, tensor<4xi64>`: the box
    whose first element has these coordinates, the innermost first; elements that are not there are zeros. When it is
    there, its bytes are counted at the barrier. With `to 3`, it goes to the same place of these blocks of the cluster, a mask, and is counted there.
  }];
  let arguments = (ins AnyStaticShapeTensor:$map, Variadic<Index>:$coordinates, AnyStaticShapeTensor:$dest, Index:$at,
                       AnyStaticShapeTensor:$barriers, Index:$index, OptionalAttr<I64Attr>:$blocks);
  let assemblyFormat = [{
    $map `[` $coordinates `]` `into` $dest `[` $at `]` `for` $barriers `[` $index `]` (`to` $blocks^)? attr-dict
    `:` type($map) `,` type($dest) `,` type($barriers)
  }];
}

def XlaGpu_SyncClusterOp : XlaGpu_Op<"sync_cluster"> {
  let summary = "Barrier of all threads of a cluster's blocks, which orders what they did";
  let assemblyFormat = "attr-dict";
}

def XlaGpu_SetRegistersOp : XlaGpu_Op<"set_registers"> {
  let summary = "The warpgroup gives registers away, or waits for more";
  let description = "`xla_gpu.set_registers 232 more`: so many a thread. All its warps come here together.";
  let arguments = (ins ConfinedAttr<I64Attr, [IntPositive]>:$count, UnitAttr:$more);
  let assemblyFormat = "$count (`more` $more^)? attr-dict";
  let hasVerifier = 1;
}

def XlaGpu_CopyAsyncOp : XlaGpu_Op<"copy_async", [
    AttrSizedOperandSegments, TypesMatchWith<"the result is the destination", "dest", "result", "$_self">]> {
  let summary = "Starts a copy from global into shared memory, behind the thread's back";
  let description = [{
    `%t2 = xla_gpu.copy_async 8 of %in[%i] into %t[%j] if %c : tensor<4096xbf16>, tensor<2048xbf16>`: eight neighbours of
    %in become those of the shared tensor from %j on; zeros do where the condition does not hold, and nothing is read
    then. 4, 8 or 16 bytes, both sides aligned to as many. What is there is known when the copy's group has been waited
    for: nobody reads or writes these elements until then.
  }];
  let arguments = (ins AnyStaticShapeTensor:$source, Variadic<Index>:$indices, AnyStaticShapeTensor:$dest, Index:$at,
                       ConfinedAttr<I64Attr, [IntPositive]>:$size, Optional<I1>:$condition);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = [{
    $size `of` $source `[` $indices `]` `into` $dest `[` $at `]` (`if` $condition^)? attr-dict
    `:` type($source) `,` type($dest)
  }];
  let hasVerifier = 1;
}

def XlaGpu_CommitCopiesOp : XlaGpu_Op<"commit_copies", [
    TypesMatchWith<"results are the operands", "operands", "results", "$_self">]> {
  let summary = "Ends a group of a thread's asynchronous copies";
  let description = [{
    `%a2, %b2 = xla_gpu.commit_copies %a, %b : tensor<4xf32>, tensor<8xf32>`: all copies that the thread has started and not
    yet committed are a group, which may be empty.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$operands);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "$operands attr-dict `:` type($operands)";
}

def XlaGpu_AwaitCopiesOp : XlaGpu_Op<"await_copies", [
    TypesMatchWith<"results are the operands", "operands", "results", "$_self">]> {
  let summary = "Waits for groups of a thread's asynchronous copies";
  let description = [{
    `%a2 = xla_gpu.await_copies %a but 2 : tensor<4xf32>`: all groups but the last two that the thread committed are there.
    Other threads see them behind a barrier.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$operands, ConfinedAttr<I64Attr, [IntNonNegative]>:$open);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "$operands `but` $open attr-dict `:` type($operands)";
}

def XlaGpu_AtomicRmwOp : XlaGpu_Op<"atomic_rmw", [Pure, SingleBlockImplicitTerminator<"YieldOp">,
    TypesMatchWith<"the result is the tensor", "input", "result", "$_self">]> {
  let summary = "Atomic update of one element, or of consecutive ones";
  let description = [{
    ```
    %t2 = xla_gpu.atomic_rmw %t[%i] : tensor<8xf32> {
    ^bb0(%current: f32):
      xla_gpu.yield %next : f32
    }
    ```
    The body argument is the element type or a rank-1 vector of it (then each element is updated atomically by itself).
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, Variadic<Index>:$indices);
  let results = (outs AnyStaticShapeTensor:$result);
  let regions = (region SizedRegion<1>:$region);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$tensor, "::mlir::ValueRange":$indices,
      CArg<"::llvm::function_ref<void(::mlir::OpBuilder &, ::mlir::Location, ::mlir::Value)>", "nullptr">:$body)>];
  let assemblyFormat = "$input `[` $indices `]` `:` type($input) $region attr-dict";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
  let extraClassDeclaration = [{
    ::mlir::Value current() { return getBody()->getArgument(0); }
    ::mlir::Value updated() { return getBody()->getTerminator()->getOperand(0); }
  }];
}

def XlaGpu_PredicatedInsertOp : XlaGpu_Op<"predicated_insert", [Pure,
    TypesMatchWith<"the value is an element", "dest", "value", "::llvm::cast<::mlir::ShapedType>($_self).getElementType()">,
    TypesMatchWith<"the result is the destination", "dest", "result", "$_self">]> {
  let summary = "tensor.insert where a condition holds";
  let description = "`%t2 = xla_gpu.predicated_insert %v into %t[%i] if %c : tensor<8xf32>`";
  let arguments = (ins AnyType:$value, AnyStaticShapeTensor:$dest, Variadic<Index>:$indices, I1:$condition);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$value `into` $dest `[` $indices `]` `if` $condition attr-dict `:` type($dest)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

def XlaGpu_PredicatedExtractOp : XlaGpu_Op<"predicated_extract", [Pure,
    TypesMatchWith<"the fallback is an element", "source", "fallback",
                   "::llvm::cast<::mlir::ShapedType>($_self).getElementType()">,
    TypesMatchWith<"the result is an element", "source", "result",
                   "::llvm::cast<::mlir::ShapedType>($_self).getElementType()">]> {
  let summary = "tensor.extract where a condition holds, else a fallback";
  let description = "`%v = xla_gpu.predicated_extract %t[%i] if %c else %d : tensor<8xf32>`";
  let arguments = (ins AnyStaticShapeTensor:$source, Variadic<Index>:$indices, I1:$condition, AnyType:$fallback);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$source `[` $indices `]` `if` $condition `else` $fallback attr-dict `:` type($source)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

#endif
