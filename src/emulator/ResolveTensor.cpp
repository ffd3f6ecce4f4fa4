// Bulk copies of boxes of tensors, and the instructions that make and publish tensor maps.
//
//   cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [to], [map, {c0, c1}], [barrier];
//   cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [map, {c0, c1}], [from];
//   tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [map], 1, 128;
#include "ResolveForm.h"
#include "TensorMap.h"

#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace hloc::emulator {
namespace {

using Kind = OperandForm::Kind;

/// .1d to .5d, and the operand with the map.
bool takeDimensions(Form &f) {
  const StringRef dimensions = f.takeAnyOf("1d 2d 3d 4d 5d");
  f.decoded.shape[0] = dimensions.empty() ? 0 : uint16_t(dimensions[0] - '0');
  return !dimensions.empty();
}

void addMap(Form &f) { f.add(Kind::TensorAddress, b32, f.decoded.shape[0]); }

/// .tile or .im2col, of which the latter needs images with a width. Other modes are those of sm_100.
bool takeLoadMode(Form &f, StringRef im2col) {
  if (f.take(im2col)) {
    f.decoded.im2col = true;
    return f.decoded.shape[0] >= 3;
  }
  f.take("tile");
  return true;
}

/// An offset for each of W, H and D.
void addOffsets(Form &f) {
  if (!f.decoded.im2col)
    return;
  f.decoded.offset = true;
  f.add(Kind::Values, b16, f.decoded.shape[0] - 2u);
}

bool takePolicy(Form &f) {
  if (f.take("L2::cache_hint"))
    f.add(Kind::Dropped, b64);
  return f.next().empty();
}

bool decodeLoad(Form &f) {
  f.decoded.mode = Mode::TensorLoad;
  f.add(Kind::Address, b64);
  addMap(f);
  f.add(Kind::Address, b64);
  if (!f.take("global") || !takeLoadMode(f, "im2col") || !f.take("mbarrier::complete_tx::bytes"))
    return false;
  addOffsets(f);
  if (f.take("multicast::cluster")) {
    f.decoded.multicast = true;
    f.value(b16);
  }
  return takePolicy(f);
}

/// Of a store, or of a reduction where `operation` is one.
bool decodeStore(Form &f) {
  f.decoded.mode = f.decoded.combine == Mode::None ? Mode::TensorStore : Mode::TensorReduce;
  addMap(f);
  f.add(Kind::Address, b64);
  return takeLoadMode(f, "im2col_no_offs") && f.take("bulk_group") && takePolicy(f);
}

bool decodeReduce(Form &f) {
  if (!takeDimensions(f) || !f.take("global") || !f.take("shared::cta"))
    return false;
  f.decoded.combine = atomicMode(f.takeAnyOf("add min max inc dec and or xor"));
  return f.decoded.combine != Mode::None && decodeStore(f);
}

/// cp.async.bulk.prefetch.L2.global [from], bytes, and .tensor
bool decodePrefetch(Form &f) {
  if (f.take("L2")) {
    f.decoded.opcode = Opcode::Nop;
    f.add(Kind::Address, b64);
    f.value(b32);
    return f.take("global") && takePolicy(f);
  }
  f.decoded.mode = Mode::TensorPrefetch;
  if (!f.take("tensor") || !takeDimensions(f) || !f.take("L2") || !f.take("global") || !takeLoadMode(f, "im2col"))
    return false;
  addMap(f);
  addOffsets(f);
  return takePolicy(f);
}

bool decodeTensor(Form &f) {
  if (!takeDimensions(f))
    return false;
  if (f.take("global"))
    return f.take("shared::cta") && decodeStore(f);
  return !f.takeAnyOf("shared::cluster shared::cta").empty() && decodeLoad(f);
}

std::optional<TensorMapField> fieldOf(StringRef name) {
  return StringSwitch<std::optional<TensorMapField>>(name)
      .Case("global_address", TensorMapField::Address)
      .Case("rank", TensorMapField::Rank)
      .Case("box_dim", TensorMapField::Box)
      .Case("global_dim", TensorMapField::Dim)
      .Case("global_stride", TensorMapField::Stride)
      .Case("element_stride", TensorMapField::ElementStride)
      .Case("elemtype", TensorMapField::Type)
      .Case("interleave_layout", TensorMapField::Interleave)
      .Case("swizzle_mode", TensorMapField::Swizzle)
      .Case("fill_mode", TensorMapField::Fill)
      .Default(std::nullopt);
}

/// tensormap.replace.tile.FIELD{.space}.b1024.type [map], {ordinal,} value
bool decodeReplace(Form &f) {
  Decoded &d = f.decoded;
  d.mode = Mode::ReplaceField;
  if (!f.take("tile"))
    return false;
  const std::optional<TensorMapField> field = fieldOf(f.next());
  if (!field)
    return false;
  f.take(f.next());
  d.field = uint8_t(*field);
  const StringRef space = f.takeAnyOf("global shared::cta");
  d.space = space.empty() ? Space::Generic : space == "global" ? Space::Global : Space::Shared;
  const bool isLong = *field == TensorMapField::Address || *field == TensorMapField::Stride;
  if (!f.take("b1024") || !f.takeTypeInto(d.type, isLong ? "b64" : "b32"))
    return false;
  f.add(Kind::Address, b64);
  switch (*field) {
  case TensorMapField::Address:
  case TensorMapField::Rank:
    f.value(d.type);
    return true;
  case TensorMapField::Box:
  case TensorMapField::Dim:
  case TensorMapField::Stride:
  case TensorMapField::ElementStride: {
    f.add(Kind::Immediate, b32);
    f.value(d.type);
    const unsigned count = TensorMapRecipe::maxRank - (*field == TensorMapField::Stride);
    return f.numOperands() < 2 || f.instruction.operands[1].value < count;
  }
  case TensorMapField::Type:
  case TensorMapField::Interleave:
  case TensorMapField::Swizzle:
  case TensorMapField::Fill:
    f.add(Kind::Immediate, b32);
    return true;
  }
  return false;
}

/// What fences by a tensor map's proxy are for: the whole map.
bool takesWholeMap(const Form &f, unsigned operand) {
  return f.numOperands() <= operand || f.instruction.operands[operand].value == tensorMapBytes;
}

/// .release.gpu, as a fence of that scope.
bool takeOrder(Form &f, StringRef order) {
  Decoded &d = f.decoded;
  if (!f.take(order))
    return false;
  const StringRef scope = f.takeAnyOf("cta cluster gpu sys");
  d.acquires = order == "acquire";
  d.releases = order == "release";
  d.scope = scope == "cta" ? Scope::Block : scope == "cluster" ? Scope::Cluster : Scope::Device;
  return !scope.empty();
}

bool decodeCopyFence(Form &f) {
  f.decoded.mode = Mode::CopyMap;
  f.decoded.type = b32;
  f.add(Kind::Address, b64);
  f.add(Kind::Address, b64);
  f.add(Kind::Immediate, b32);
  return f.take("global") && f.take("shared::cta") && f.take("tensormap::generic") && takeOrder(f, "release") &&
         f.take("sync") && f.take("aligned") && takesWholeMap(f, 2);
}

} // namespace

std::optional<bool> decodeTensorCopy(Form &f) {
  const ArrayRef<std::string> parts = ArrayRef(f.instruction.parts).drop_front();
  auto begins = [&](std::initializer_list<StringRef> words) {
    return parts.size() >= words.size() && std::equal(words.begin(), words.end(), parts.begin());
  };
  auto takeAll = [&](unsigned count) {
    for (unsigned i = 0; i < count; ++i)
      f.take(f.next());
    f.decoded.type = b32;
    f.decoded.space = Space::Shared;
  };
  if (begins({"reduce", "async", "bulk", "tensor"})) {
    takeAll(4);
    return decodeReduce(f);
  }
  if (begins({"async", "bulk", "tensor"})) {
    takeAll(3);
    return decodeTensor(f);
  }
  if (begins({"async", "bulk", "prefetch"})) {
    takeAll(3);
    return decodePrefetch(f);
  }
  return std::nullopt;
}

bool decodeTensormap(Form &f) {
  if (f.take("replace"))
    return decodeReplace(f);
  return f.take("cp_fenceproxy") && decodeCopyFence(f);
}

bool decodeTensormapFence(Form &f) {
  Decoded &d = f.decoded;
  d.type = b32;
  if (!f.take("tensormap::generic"))
    return false;
  if (f.next() == "release") {
    d.mode = Mode::TensorMapRelease;
    return takeOrder(f, "release");
  }
  d.mode = Mode::TensorMapAcquire;
  f.add(Kind::Address, b64);
  f.add(Kind::Immediate, b32);
  return takeOrder(f, "acquire") && takesWholeMap(f, 1);
}

} // namespace hloc::emulator
