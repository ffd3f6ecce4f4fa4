#pragma once
// Builds the host function of one kernel: LLVM IR that runs one warp, every register a vector of 32 lanes.
//
// Control flow follows PTX's own block order. Each block has a mask of the lanes that wait to enter it; blocks run
// lowest first, so lanes that parted meet again at the first block both reach. A jump back is taken as soon as one lane
// wants it. Hence at any time all waiting lanes are at or after the running block, and no scheduler is needed:
//
//   L0:  @%p bra L2;       pending[L2] |= m & p;  pending[L1] |= m & ~p;  go to the first block after L0 with lanes
//   L1:  add ...;          m = pending[L1]; ...
//   L2:  @%q bra L1;       if (m & q) { pending[L1] |= m & q; go to L1 } ...
//
// The host's compiler takes time that grows faster than a function's length. A long kernel becomes several functions of
// some hundred instructions, chunks of its blocks in order. Each returns the number of the chunk to go on with; pending
// masks, and the registers that pass between chunks, lie in a frame of memory. Where few warps run, all registers lie
// there, and instructions are calls (WarpOps.cpp).

#include "Liveness.h"
#include "WarpAbi.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Support/Allocator.h"

namespace hloc::emulator {

/// One use: build() adds the function of one kernel to a module.
class WarpCode {
public:
  /// `records` must outlive the code.
  WarpCode(llvm::Module &module, const Kernel &kernel, const MachineFunctions &machine, const TranslateOptions &options,
           llvm::BumpPtrAllocator &records, DiagnosticEngine &diagnostics);
  /// Adds `name` to the module. False, with a diagnostic, if an instruction cannot be translated.
  bool build(llvm::StringRef name);

private:
  using Value = llvm::Value;
  using IrType = llvm::Type;

  // Functions (WarpChunks.cpp).
  struct Chunk {
    uint32_t begin, end; ///< blocks
    bool again = false;  ///< a loop that is longer than the chunk may enter it more than once
  };
  void planChunks();
  void placeInFrame(uint32_t slot);
  void forEachRegisterOf(uint32_t firstBlock, uint32_t endBlock, llvm::function_ref<void(uint32_t)> visit) const;
  void planFrame();
  void planFrameOfOps();
  void buildChunk(uint32_t index, llvm::StringRef name);
  void buildDriver(llvm::StringRef name, llvm::ArrayRef<llvm::Function *> functions);
  void prologue();
  void makeSlots();
  uint32_t chunkOf(uint32_t block) const;
  /// Ends the host function; the warp goes on with the first block of `chunk` that has lanes.
  void leaveFor(uint32_t chunk);
  void returnToLoops();
  bool isChunked() const { return chunks.size() > 1; }
  Value *pendingAt(uint32_t block);
  void makeFrame();
  void rememberSpecials();
  bool hasSlot(uint32_t slot) const;
  Value *loadSlot(uint32_t slot);
  void storeSlot(uint32_t slot, Value *value);

  // Instructions as functions (WarpOps.cpp).
  /// An instruction as its function sees it.
  struct Shape {
    Decoded instruction; ///< registers and constants by their numbers here; unguarded
    bool readsSpecials = false;
    std::string key; ///< the same for all instructions that may share a function, given the same Operation
    std::vector<uint32_t> registers; ///< slots
    std::vector<uint64_t> constants; ///< of operands (Source::slot: 1 + number) and offsets (Source::value: the same)
    std::vector<unsigned> widths;    ///< of the registers
    llvm::BitVector keeps, seen;     ///< of the registers, as Liveness has them; the guarded ones keep as well
  };
  Shape shapeOf(const Decoded &d) const;
  bool opsPay();
  llvm::Function *opOf(Shape shape);
  void callOp(const Decoded &d, Value *active);
  void buildOps();
  Value *recordWord(size_t index);
  Value *constantOf(const Source &source, unsigned bits); ///< of a Constant
  Value *offsetOf(const Source &source, unsigned bits);   ///< of an address in a register
  Value *slotAddress(uint32_t slot);                      ///< in the frame
  bool mustKeep(uint32_t slot) const;
  bool bitsSeen(uint32_t slot) const;

  // Control flow (WarpControl.cpp).
  void buildBlock(uint32_t block);
  void leaveTo(uint32_t target, Value *mask);
  void branch(const Decoded &d, uint32_t block);
  Value *liveField(); ///< i32: lanes that have not exited
  void exitLanes(Value *mask);
  void countInstruction(const Decoded &d, Value *mask);
  void callTick(const Decoded &d, llvm::BasicBlock *goOn);

  // Values: vectors of 32 lanes, integers of the width of a type unless said otherwise.
  IrType *lanes(IrType *element) const;
  IrType *intLanes(unsigned bits) const;
  Value *splat(Value *scalar);
  Value *splatInt(unsigned bits, uint64_t value);
  Value *read(const Source &source, unsigned bits);
  Value *readRegister(uint32_t slot);
  Value *readPredicate(const Source &source);
  Value *readSpecial(Special special);
  Value *readFloat(const Source &source, Type type); ///< f32 for f16 and bf16; f32, f64 as they are
  void write(const Source &destination, Value *value, bool isSigned = false);
  void writePredicate(const Source &destination, Value *value);
  void writeFloat(const Decoded &d, Value *value);   ///< rounds f16 and bf16; ftz, sat, canonical NaN
  void writeFlushed(const Decoded &d, Value *value); ///< the same of what .ftz has flushed
  void unsupported(const Decoded &d);
  Value *predicateBits(const Source &source); ///< i32
  Value *activeMask(const Decoded &d);        ///< i32: lanes that execute `d`
  Value *toBits(Value *predicate);            ///< <32 x i1> -> i32
  Value *toLanes(Value *mask);                ///< i32 -> <32 x i1>
  Value *resize(Value *value, unsigned bits, bool isSigned);

  // Instructions; false: not translated (a diagnostic follows).
  bool lower(const Decoded &d);
  bool lowerInteger(const Decoded &d);
  bool lowerMul(const Decoded &d);
  Value *mulHigh64(Value *a, Value *b, bool isSigned);
  bool lowerCarry(const Decoded &d);
  bool lowerDivRem(const Decoded &d);
  bool lowerShift(const Decoded &d);
  bool lowerFunnelShift(const Decoded &d);
  bool lowerBitField(const Decoded &d);
  bool lowerPermute(const Decoded &d);
  bool lowerLop3(const Decoded &d);
  bool lowerMov(const Decoded &d);
  bool lowerSetp(const Decoded &d);
  bool lowerFloat(const Decoded &d);
  bool lowerPacked(const Decoded &d);
  bool lowerPackedSingles(const Decoded &d);
  Value *directed(const Decoded &d, llvm::ArrayRef<Value *> operands);
  bool lowerApproximate(const Decoded &d);
  bool lowerConvert(const Decoded &d);
  bool lowerMemory(const Decoded &d);
  bool lowerParameterLoad(const Decoded &d);
  bool lowerBarrier(const Decoded &d);
  bool lowerCollective(const Decoded &d);

  // Floating point (LowerFloat.cpp, LowerApproximate.cpp); operands are <32 x float> or <32 x double>.
  Value *flush(Value *value, Type type);
  Value *saturate(Value *value);
  Value *canonicalNan(Value *value);
  Value *canonicalNan(IrType *type);
  Value *flushHalf(Value *bits, Type type);
  Value *floatOp(const Decoded &d, llvm::ArrayRef<Value *> arguments, Type type);
  Value *minMax(const Decoded &d, Value *a, Value *b, Value *c = nullptr);
  Value *fmaHalf(llvm::ArrayRef<Value *> arguments, Type type);
  Value *fromHalf(Value *bits, Type type);
  Value *toHalf(Value *value, Type type);
  Value *roundedToHalf(Value *value, Type type);
  Value *outOfLine(const llvm::Twine &name, IrType *result, llvm::ArrayRef<Value *> operands,
                   llvm::function_ref<Value *(llvm::ArrayRef<Value *>)> build);
  Value *compareFloats(Compare compare, Value *a, Value *b);
  Value *polynomial(Value *x, llvm::ArrayRef<double> coefficients);
  Value *exp2(Value *x);
  Value *exp2InDouble(Value *x);
  Value *log2(Value *x, Value *deviation);
  Value *sine(Value *x, bool cosine, Value *deviation);
  Value *tanh(Value *x);

  // Approximate instructions, with the error that PTX allows them (LowerDeviation.cpp).
  static double boundOf(Opcode opcode, Type type);
  Value *deviationOf(const Decoded &d, llvm::ArrayRef<Value *> operands);
  Value *isOrdinary(Value *x, double least, double limit);
  Value *stepped(Value *x, Value *steps);
  Value *stepAcross(Value *residual, Value *deviation);
  Value *roundedWithin(Value *allowed, Value *exact, Value *wanted);
  Value *deviating(Value *exact, Value *allowed, Value *deviation);
  Value *deviatingByUnits(Opcode opcode, Value *exact, Value *nearest, Value *deviation, double least);
  Value *deviatingSine(Opcode opcode, Value *x, Value *exact, Value *deviation);
  Value *approximateSingle(const Decoded &d, llvm::ArrayRef<Value *> operands);
  Value *approximateQuotient(const Decoded &d, Value *a, Value *b, Value *deviation);
  Value *approximateRoot(Value *x, Value *deviation);
  Value *approximateReciprocalRoot(Value *x, Value *deviation);
  Value *approximateHalf(const Decoded &d, Value *bits);
  Value *upperWord(const Decoded &d);
  Value *outOfLine(const Decoded &d, IrType *result, llvm::ArrayRef<Value *> operands,
                   llvm::function_ref<Value *(llvm::ArrayRef<Value *>)> build);
  Value *fp(Value *like, double value);
  Value *unary(llvm::Intrinsic::ID id, Value *x);

  /// Calls `function(operands, out)` once per lane over arrays; for what is too rare to vectorise.
  Value *callArrays(const void *function, llvm::ArrayRef<uint64_t> scalars, llvm::ArrayRef<Value *> arrays,
                    IrType *result);
  Value *scratch(IrType *type, uint64_t elements); ///< memory until the instruction's end
  Value *call(const void *function, IrType *result, llvm::ArrayRef<Value *> arguments);
  Value *pointerTo(const Decoded &d);
  Value *address(const Source &source);

  unsigned widthOf(uint32_t slot) const { return slotBits[slot]; }
  bool isPartial(const Decoded &d) const { return d.guard.kind != Source::Kind::None; }

  llvm::LLVMContext &context;
  llvm::Module &module;
  const Kernel &kernel;
  const MachineFunctions &machine;
  const TranslateOptions &options;
  llvm::BumpPtrAllocator &records;
  DiagnosticEngine &diagnostics;
  Liveness live;
  llvm::IRBuilder<> ir;
  llvm::Function *function = nullptr;
  Value *warp = nullptr; ///< WarpContext *
  Value *mask = nullptr; ///< i32: lanes of the running block
  uint32_t currentBlock = 0;
  Value *currentGuard = nullptr;  ///< <32 x i1> of the instruction, with the block's mask; null when unguarded
  std::vector<unsigned> slotBits; ///< 1: predicate
  std::vector<Chunk> chunks;
  std::vector<uint64_t> frameOffsets; ///< by register that passes between chunks; 0: it does not
  uint64_t frameBytes = 0;
  std::vector<Operation> approximations; ///< that have functions
  bool callsOps = false;
  std::vector<std::pair<llvm::Function *, std::unique_ptr<Shape>>> ops;
  llvm::StringMap<std::vector<size_t>> opsByKey;

  // Of the function that is being built.
  uint32_t currentChunk = 0;
  const Shape *shape = nullptr;       ///< of an op
  Value *record = nullptr;            ///< an op's operands
  Value *frame = nullptr;             ///< of a chunk; pending masks come first
  llvm::AllocaInst *memory = nullptr; ///< for `scratch`
  uint64_t memoryUsed = 0, memoryNeeded = 0;
  std::vector<Value *> slots;               ///< allocas of the registers that pass between its blocks
  llvm::DenseMap<uint32_t, Value *> values; ///< registers in the running block
  std::vector<Value *> pending;             ///< alloca i32 per block, if there is one chunk
  std::vector<llvm::BasicBlock *> gates, bodies;
  llvm::DenseMap<unsigned, Value *> specials;
};

} // namespace hloc::emulator
