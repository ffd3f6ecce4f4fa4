#include "TensorMapText.h"

#include "fmt/ranges.h"

namespace hloc::manifest_text {
namespace {

bool read(const Reader &reader, std::vector<uint64_t> &numbers) {
  return reader.elements([&](const Reader &element) { return element.read(numbers.emplace_back()); });
}

bool read(const Reader &reader, std::vector<int32_t> &numbers) {
  return reader.elements([&](const Reader &element) {
    int64_t number = 0;
    if (!element.read(number))
      return false;
    numbers.push_back(int32_t(number));
    return numbers.back() == number || element.fail("number too large");
  });
}

/// One of the names that `parse` of TensorMapRecipe.h knows.
template <typename Enum> bool readName(const Reader &reader, Enum &value) {
  std::string name;
  return reader.read(name) && (hloc::parse(name, value) || reader.fail(fmt::format("unknown word `{}`", name)));
}

bool readPixels(const Reader &reader, TensorMapPixels &pixels) {
  return reader.members({"lower", "upper", "channels", "pixels"}, [&](llvm::StringRef key, const Reader &member) {
    if (key == "lower" || key == "upper")
      return read(member, key == "lower" ? pixels.lower : pixels.upper);
    if (key == "channels" || key == "pixels")
      return member.read(key == "channels" ? pixels.channels : pixels.pixels);
    return member.unknownKey();
  });
}

bool readMember(llvm::StringRef key, const Reader &member, TensorMapRecipe &r) {
  if (key == "type")
    return readName(member, r.type);
  if (key == "dims" || key == "strides")
    return read(member, key == "dims" ? r.dims : r.strides);
  if (key == "box" || key == "element_strides")
    return member.read(key == "box" ? r.box : r.elementStrides);
  if (key == "im2col")
    return readPixels(member, r.im2col.emplace());
  if (key == "interleave")
    return readName(member, r.interleave);
  if (key == "swizzle")
    return readName(member, r.swizzle);
  if (key == "fill")
    return readName(member, r.fill);
  if (key == "l2")
    return readName(member, r.l2);
  return member.unknownKey();
}

} // namespace

bool readTensorMap(const Reader &reader, TensorMapRecipe &recipe) {
  return reader.members({"type", "dims", "strides"},
                        [&](llvm::StringRef key, const Reader &member) { return readMember(key, member, recipe); });
}

bool readTensorMap(const Reader &reader, TensorMapSlice &map) {
  if (!reader.has("type") && !reader.has("dims"))
    return reader.fail("only the memory is named; `type`, `dims`, `strides` and `box` say what the map is");
  if (!reader.members({"buffer", "offset", "bytes", "type", "dims"}, [&](llvm::StringRef key, const Reader &member) {
        if (key == "buffer")
          return member.read(map.slice.buffer);
        if (key == "offset" || key == "bytes")
          return member.read(key == "offset" ? map.slice.offset : map.slice.bytes);
        return readMember(key, member, map.recipe);
      }))
    return false;
  // Buffers are aligned to more than maps ask for.
  const std::string error = findTensorMapError(map.recipe, map.slice.offset);
  return error.empty() || reader.fail("the driver would refuse this map: " + error);
}

void printTensorMap(llvm::json::OStream &json, const TensorMapRecipe &r) {
  auto numbers = [&](llvm::StringRef name, const auto &values) {
    json.attributeBegin(name);
    json.rawValue(fmt::format("[{}]", fmt::join(values, ", ")));
    json.attributeEnd();
  };
  json.attributeObject("tensor_map", [&] {
    json.attribute("type", nameOf(r.type));
    numbers("dims", r.dims);
    numbers("strides", r.strides);
    if (const auto &pixels = r.im2col)
      json.attributeObject("im2col", [&] {
        numbers("lower", pixels->lower);
        numbers("upper", pixels->upper);
        json.attribute("channels", pixels->channels);
        json.attribute("pixels", pixels->pixels);
      });
    else
      numbers("box", r.box);
    if (!r.elementStrides.empty())
      numbers("element_strides", r.elementStrides);
    json.attribute("interleave", nameOf(r.interleave));
    json.attribute("swizzle", nameOf(r.swizzle));
    json.attribute("fill", nameOf(r.fill));
    json.attribute("l2", nameOf(r.l2));
  });
}

} // namespace hloc::manifest_text
