#include "hloc/kernel/LaunchDescription.h"

#include "TensorMapText.h"

#include "hloc/support/Diagnostics.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

#include <limits>

using namespace llvm;

namespace hloc {
namespace {

/// Reads members one by one; after the first complaint every reader returns a default and `failed` stays set.
class Reader {
public:
  explicit Reader(DiagnosticEngine &diagnostics) : diagnostics(diagnostics) {}

  std::optional<LaunchDescription> run(const json::Value &root) {
    const json::Object *object = asObject(&root, "the launch description");
    if (!object)
      return std::nullopt;
    result.target = object->getString("target").value_or("").str();
    eachObject(*object, "buffers", [&](const json::Object &o) { buffer(o); });
    size_t number = 0; // contents name buffers, later ones too
    eachObject(*object, "buffers", [&](const json::Object &o) { contents(o, result.buffers[number++]); });
    eachObject(*object, "steps", [&](const json::Object &o) { step(o); });
    eachObject(*object, "results", [&](const json::Object &o) {
      LaunchResult r;
      if (const json::Array *index = array(o, "index"))
        for (const json::Value &i : *index)
          r.index.push_back(i.getAsInteger().value_or(-1));
      for (int64_t i : r.index)
        if (i < 0)
          fail("`index` of a result must hold tuple indices");
      r.slice = slice(&o);
      result.results.push_back(std::move(r));
    });
    return failed ? std::nullopt : std::optional(std::move(result));
  }

private:
  void fail(std::string message) {
    if (!failed)
      diagnostics.report(DiagnosticKind::BadAttribute, "launch description: " + std::move(message));
    failed = true;
  }
  void refuse(const std::string &message) {
    if (!failed)
      diagnostics.report(DiagnosticKind::UnsupportedFeature, "launch description: " + message);
    failed = true;
  }
  const json::Object *asObject(const json::Value *value, StringRef what) {
    const json::Object *object = value ? value->getAsObject() : nullptr;
    if (!object)
      fail(what.str() + " must be an object");
    return object;
  }
  const json::Array *array(const json::Object &o, StringRef key) {
    const json::Array *found = o.getArray(key);
    if (!found)
      fail("`" + key.str() + "` must be an array");
    return found;
  }
  template <typename F> void eachObject(const json::Object &o, StringRef key, F visit) {
    if (const json::Array *elements = array(o, key))
      for (const json::Value &element : *elements)
        if (const json::Object *object = asObject(&element, "each of `" + key.str() + "`"))
          visit(*object);
  }
  uint64_t number(const json::Object &o, StringRef key, uint64_t low, uint64_t high) {
    std::optional<int64_t> value = o.getInteger(key);
    if (value && *value >= 0 && uint64_t(*value) >= low && uint64_t(*value) <= high)
      return uint64_t(*value);
    fail("`" + key.str() + "` must be a number from " + std::to_string(low) + " to " + std::to_string(high));
    return low;
  }

  void buffer(const json::Object &o) {
    LaunchBuffer b;
    b.id = int64_t(number(o, "id", 0, maxCount));
    b.bytes = number(o, "bytes", 0, maxBytes);
    if (o.get("parameter"))
      b.parameter = int64_t(number(o, "parameter", 0, maxCount));
    for (const LaunchBuffer &other : result.buffers)
      if (other.id == b.id)
        fail("buffer " + std::to_string(b.id) + " is defined twice");
    result.buffers.push_back(b);
  }

  void contents(const json::Object &o, LaunchBuffer &b) {
    if (!o.get("contents"))
      return;
    if (const json::Object *given = asObject(o.get("contents"), "`contents`"))
      b.contents = structure(*given, "`contents` of buffer " + std::to_string(b.id));
    if (b.contents && llvm::any_of(b.contents->pieces, [](const AddressPiece &piece) { return piece.map.has_value(); }))
      refuse("tensor maps in memory are not supported");
    if (b.contents && b.contents->data.size() != b.bytes)
      fail("`contents` of buffer " + std::to_string(b.id) + " must have all its bytes");
    if (b.parameter)
      fail("buffer " + std::to_string(b.id) + " is filled by a parameter and has `contents`");
  }

  /// `{"data": "0001ff", "pieces": [{"at": 8, "buffer": 0, "offset": 0, "bytes": 64, "written": true}]}`
  StructureValue structure(const json::Object &o, const std::string &where) {
    StructureValue made;
    const StringRef digits = o.getString("data").value_or("?");
    if (digits.size() % 2 || !tryGetFromHex(digits, made.data))
      fail("`data` must be pairs of hexadecimal digits");
    if (!o.get("pieces"))
      return made;
    eachObject(o, "pieces", [&](const json::Object &piece) { made.pieces.push_back(this->piece(piece, where)); });
    llvm::sort(made.pieces, [](const AddressPiece &a, const AddressPiece &b) { return a.at < b.at; });
    uint64_t end = 0;
    for (const AddressPiece &piece : made.pieces) {
      if (piece.at < end)
        fail("the pieces at " + std::to_string(piece.at) + " and before it overlap");
      end = piece.at + piece.bytes();
    }
    if (end > made.data.size())
      fail("a piece reaches beyond the `data` around it");
    return made;
  }
  AddressPiece piece(const json::Object &o, const std::string &where) {
    AddressPiece made;
    made.at = number(o, "at", 0, maxCount);
    if (const json::Value *value = o.get("tensor_map")) {
      TensorMapSlice map = tensorMap(*value, where);
      made.slice = map.slice;
      made.map = std::move(map.recipe);
    } else {
      made.slice = slice(&o);
    }
    if (o.get("written"))
      made.written = flag(o, "written");
    return made;
  }
  bool flag(const json::Object &o, StringRef key) {
    std::optional<bool> value = o.getBoolean(key);
    if (!value)
      fail("`" + key.str() + "` must be true or false");
    return value.value_or(false);
  }

  BufferSlice slice(const json::Object *o) {
    BufferSlice s;
    if (!o)
      return s;
    s.offset = number(*o, "offset", 0, maxBytes);
    s.bytes = number(*o, "bytes", 0, maxBytes);
    find(s, int64_t(number(*o, "buffer", 0, maxCount)));
    return s;
  }

  /// The buffer of that id, which has to hold the slice.
  void find(BufferSlice &s, int64_t id) {
    s.buffer = 0;
    while (s.buffer < result.buffers.size() && result.buffers[s.buffer].id != id)
      ++s.buffer;
    if (s.buffer == result.buffers.size())
      fail("there is no buffer " + std::to_string(id));
    else if (s.offset > maxBytes || s.bytes > maxBytes || s.offset + s.bytes > result.buffers[s.buffer].bytes)
      fail("a slice reaches beyond buffer " + std::to_string(id));
  }

  TensorMapSlice tensorMap(const json::Value &value, const std::string &where) {
    TensorMapSlice map;
    std::string error;
    if (isSubByte(value)) {
      refuse("tensor maps of elements of less than a byte are not supported");
    } else if (!manifest_text::readTensorMap({value, where + ", tensor map", error}, map)) {
      fail(error);
    } else {
      find(map.slice, map.slice.buffer);
    }
    return map;
  }
  /// By the driver's names.
  static bool isSubByte(const json::Value &map) {
    const json::Object *object = map.getAsObject();
    const StringRef type = object ? object->getString("type").value_or("") : "";
    return type == "16u4_align8b" || type == "16u4_align16b" || type == "16u6_align16b";
  }

  void step(const json::Object &o) {
    if (const json::Object *copy = o.getObject("copy")) {
      CopyStep c{slice(asObject(copy->get("from"), "`from`")), slice(asObject(copy->get("to"), "`to`"))};
      if (c.from.bytes != c.to.bytes)
        fail("a copy must have slices of equal size");
      result.steps.push_back({"", c});
    } else if (const json::Object *fill = o.getObject("fill")) {
      FillStep f{slice(asObject(fill->get("to"), "`to`")), uint8_t(number(*fill, "value", 0, 255))};
      result.steps.push_back({"", f});
    } else if (const json::Object *launch = o.getObject("launch")) {
      result.steps.push_back(this->launch(*launch));
    } else {
      fail("each of `steps` must be a `copy`, a `fill` or a `launch`");
    }
  }

  Dim3 extent(const json::Object &o, StringRef key) {
    uint32_t extents[3] = {1, 1, 1};
    const json::Array *values = array(o, key);
    for (size_t i = 0; i < 3 && values; ++i) {
      std::optional<int64_t> v = values->size() == 3 ? (*values)[i].getAsInteger() : std::nullopt;
      if (!v || *v < 1 || *v > std::numeric_limits<int32_t>::max())
        fail("`" + key.str() + "` must hold three positive numbers");
      else
        extents[i] = uint32_t(*v);
    }
    return {extents[0], extents[1], extents[2]};
  }

  Step launch(const json::Object &o) {
    LaunchKernel k;
    k.name = o.getString("kernel").value_or("").str();
    if (k.name.empty())
      fail("`kernel` must be a name");
    k.grid = extent(o, "grid");
    k.block = extent(o, "block");
    if (o.get("cluster"))
      k.cluster = extent(o, "cluster");
    if (const json::Value *programmatic = o.get("programmatic")) {
      if (!programmatic->getAsBoolean())
        fail("`programmatic` must be true or false");
      k.programmatic = programmatic->getAsBoolean().value_or(false);
    }
    k.dynamicSharedBytes = uint32_t(number(o, "dynamic_shared_bytes", 0, maxCount));
    LaunchStep made{uint32_t(result.kernels.size()), {}};
    eachObject(o, "arguments", [&](const json::Object &argument) {
      const std::string where = "argument " + std::to_string(made.arguments.size()) + " of `" + k.name + "`";
      if (const json::Value *map = argument.get("tensor_map"))
        return made.arguments.emplace_back(tensorMap(*map, where)), void();
      if (argument.get("data"))
        return made.arguments.emplace_back(structure(argument, where)), void();
      if (!argument.get("value"))
        return made.arguments.emplace_back(slice(&argument)), void();
      ScalarValue s{uint64_t(argument.getInteger("value").value_or(0)), uint32_t(number(argument, "bytes", 1, 8))};
      if (!argument.getInteger("value") || (s.bytes & (s.bytes - 1)))
        fail("a value must be an integer of 1, 2, 4 or 8 bytes");
      made.arguments.emplace_back(s);
    });
    k.inputs = uint32_t(number(o, "inputs", 0, made.arguments.size()));
    std::string name = k.name;
    result.kernels.push_back(std::move(k));
    return {std::move(name), std::move(made)};
  }

  static constexpr uint64_t maxCount = std::numeric_limits<int32_t>::max();
  static constexpr uint64_t maxBytes = 1ull << 40;
  DiagnosticEngine &diagnostics;
  LaunchDescription result;
  bool failed = false;
};

} // namespace

std::optional<LaunchDescription> parseLaunchDescription(DiagnosticEngine &diagnostics) {
  Expected<json::Value> root = json::parse(diagnostics.file()->text());
  if (!root) {
    diagnostics.report(DiagnosticKind::BadAttribute, "launch description: " + toString(root.takeError()));
    return std::nullopt;
  }
  return Reader(diagnostics).run(*root);
}

} // namespace hloc
