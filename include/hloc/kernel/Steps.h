#pragma once
// Steps: what is done, in order, over the buffers of a module. The execution plan, the manifest, programs on a device
// and descriptions of other compilers' launches all hold this one tree.
//
//   launch gelu(buffer 0, buffer 1)
//   while predicate in byte 0 of buffer 3 { condition: launch less(...)   body: launch step(...), copy ... }
//
// Kernels and buffers are numbers in tables of whoever holds the steps. Steps run one after the other, as on one
// stream.

#include "hloc/kernel/TensorMapRecipe.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace hloc {

/// `bytes` bytes of a buffer from `offset` on.
struct BufferSlice {
  uint32_t buffer = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  bool operator==(const BufferSlice &) const = default;
};

/// An argument passed by value in the low `bytes` (1, 2, 4 or 8) of `value`.
struct ScalarValue {
  uint64_t value = 0;
  uint32_t bytes = 8;
  bool operator==(const ScalarValue &) const = default;
};

/// A tensor map of a part of a buffer, passed by value in 128 bytes.
struct TensorMapSlice {
  BufferSlice slice;
  TensorMapRecipe recipe;
  bool operator==(const TensorMapSlice &) const = default;
};

/// The address of a slice, eight bytes from byte `at` of a structure or of a buffer's contents; or a tensor map of it,
/// in 128 bytes.
struct AddressPiece {
  uint64_t at = 0;
  BufferSlice slice;
  bool written = false; ///< whether kernels may write there
  std::optional<TensorMapRecipe> map = std::nullopt;

  uint64_t bytes() const { return map ? 128 : 8; }
  bool operator==(const AddressPiece &) const = default;
};

/// An argument passed by value that is a structure: its bytes, in which addresses are still to be filled in.
struct StructureValue {
  std::string data;
  std::vector<AddressPiece> pieces; ///< they do not overlap
  bool operator==(const StructureValue &) const = default;
};

using StepArgument = std::variant<BufferSlice, ScalarValue, TensorMapSlice, StructureValue>;
/// The memory that an argument makes accessible; null for values and structures. Constness follows `argument`.
template <typename Argument> auto sliceOf(Argument &argument) -> decltype(std::get_if<BufferSlice>(&argument)) {
  auto *map = std::get_if<TensorMapSlice>(&argument);
  return map ? &map->slice : std::get_if<BufferSlice>(&argument);
}

struct Step;
using Steps = std::vector<Step>;

/// Kernel `kernel` with one argument for each of its parameters. What it writes the kernel says.
struct LaunchStep {
  uint32_t kernel = 0;
  std::vector<StepArgument> arguments;
  std::vector<AddressPiece> reached = {}; ///< addresses that it finds in memory, wherever they stand there
};

struct CopyStep {
  BufferSlice from, to; ///< of equal size; they do not overlap
};

/// Every byte of `to` becomes `value`.
struct FillStep {
  BufferSlice to;
  uint8_t value = 0;
};

/// Something that no kernel here does: a function of a library, or (External) what whoever runs the module has to
/// supply.
struct CallStep {
  enum class Kind { Library, External };
  Kind kind = Kind::External;
  std::string function;      ///< `cublasGemmEx`, `all-reduce`
  std::string configuration; ///< what the function has to know, as the HLO says it
  std::vector<BufferSlice> reads, writes;
};

/// While `condition` leaves a byte other than 0 in `predicate`: `body`. Both work on the loop's state in place. Or
/// without condition and predicate: `body` so many times.
struct WhileStep {
  Steps condition;
  BufferSlice predicate; ///< one byte; none of a loop that is counted
  Steps body;
  std::optional<uint64_t> rounds = std::nullopt; ///< how often the body runs, where that is known beforehand

  bool isCounted() const { return predicate.bytes == 0; }
};

/// One of the branches: `selector` is a pred (one byte; branch 0 if true, 1 if false) or an s32 (the last branch if it
/// is negative or too large).
struct ConditionalStep {
  BufferSlice selector; ///< one or four bytes
  std::vector<Steps> branches;
};

/// What could not be compiled stands where it would be done. A program with such a step can be looked at, not carried
/// out.
struct UnsupportedStep {
  std::string reason;
  std::vector<BufferSlice> reads, writes;
};

struct Step {
  std::string name; ///< of the HLO instruction, for people
  std::variant<LaunchStep, CopyStep, FillStep, CallStep, WhileStep, ConditionalStep, UnsupportedStep> action;
};

/// Visits all steps in order, those inside others after them. `visit(step)`; constness follows `steps`.
template <typename StepList, typename Visit> void forEachStep(StepList &steps, const Visit &visit) {
  for (auto &step : steps) {
    visit(step);
    if (auto *loop = std::get_if<WhileStep>(&step.action)) {
      forEachStep(loop->condition, visit);
      forEachStep(loop->body, visit);
    } else if (auto *choice = std::get_if<ConditionalStep>(&step.action)) {
      for (auto &branch : choice->branches)
        forEachStep(branch, visit);
    }
  }
}

/// Visits the slices a step names itself. `visit(slice)`.
template <typename AnyStep, typename Visit> void forEachSlice(AnyStep &step, const Visit &visit) {
  if (auto *launch = std::get_if<LaunchStep>(&step.action)) {
    for (auto &argument : launch->arguments) {
      if (auto *slice = sliceOf(argument))
        visit(*slice);
      else if (auto *structure = std::get_if<StructureValue>(&argument))
        for (auto &piece : structure->pieces)
          visit(piece.slice);
    }
    for (auto &piece : launch->reached)
      visit(piece.slice);
  } else if (auto *copy = std::get_if<CopyStep>(&step.action)) {
    visit(copy->from);
    visit(copy->to);
  } else if (auto *fill = std::get_if<FillStep>(&step.action)) {
    visit(fill->to);
  } else if (auto *call = std::get_if<CallStep>(&step.action)) {
    for (auto &slice : call->reads)
      visit(slice);
    for (auto &slice : call->writes)
      visit(slice);
  } else if (auto *unsupported = std::get_if<UnsupportedStep>(&step.action)) {
    for (auto &slice : unsupported->reads)
      visit(slice);
    for (auto &slice : unsupported->writes)
      visit(slice);
  } else if (auto *loop = std::get_if<WhileStep>(&step.action)) {
    if (!loop->isCounted())
      visit(loop->predicate);
  } else if (auto *choice = std::get_if<ConditionalStep>(&step.action)) {
    visit(choice->selector);
  }
}

/// The first step that could not be compiled, in the order of forEachStep; null if there is none.
const Step *findUnsupported(const Steps &steps);

/// `step `x` was not compiled: REASON`, for whoever would carry it out.
std::string describeUnsupported(const Step &step);

} // namespace hloc
