#pragma once
// What a manifest says, read without trusting it.

#include "Driver.h"
#include "Json.h"

#include <cstdlib>
#include <optional>
#include <set>

namespace hloc_launch {

/// `bytes` bytes of a buffer from `offset` on.
struct Slice {
  uint32_t buffer = 0;
  uint64_t offset = 0, bytes = 0;
};
/// What cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col are told of a map beside its address. Words are numbers, in
/// the driver's order.
struct TensorMap {
  size_t type = 0, interleave = 0, swizzle = 0, fill = 0, l2 = 0;
  std::vector<uint64_t> dims, strides; ///< elements; bytes, of all dimensions but the first
  std::vector<uint32_t> box, steps;    ///< elements, for each dimension; of im2col no box
  bool isOfPixels = false;             ///< im2col
  std::vector<int32_t> lower, upper;
  uint32_t channels = 0, pixels = 0;
};
/// A pointer, or by value a tensor map of the buffer that parameter `pointer` points to.
struct Parameter {
  uint64_t bytes = 0, alignment = 1;
  bool isWritten = false;
  size_t role = 0; ///< role and index: which buffer of the kernel's
  uint32_t index = 0;
  std::optional<TensorMap> map = std::nullopt;
  size_t pointer = 0;
};
struct Kernel {
  std::string name;
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, dynamicSharedBytes = 0;
  uint32_t cluster[3] = {0, 0, 0}; ///< blocks of each; zeros: as the image says
  bool isProgrammatic = false;     ///< may begin before the kernel before it is complete
  std::vector<Parameter> parameters;

  bool isExtended() const { return cluster[0] || isProgrammatic; }
};
struct Step {
  enum class Kind { Launch, Copy, Fill, LibraryCall, External, While, Conditional, Unsupported };
  Kind kind = Kind::Launch;
  std::string name;                 ///< of the HLO instruction
  uint32_t kernel = 0;              ///< Launch
  std::vector<Slice> slices;        ///< Launch: one for each parameter of the kernel
  Slice from, to;                   ///< Copy; Fill: `to`
  uint32_t value = 0;               ///< Fill
  std::string function, text;       ///< calls: the function, and its configuration; Unsupported: the reason
  std::vector<Slice> reads, writes; ///< calls
  Slice choice;        ///< While: the predicate; of a loop that is counted, no bytes. Conditional: selector
  uint64_t rounds = 0; ///< While that is counted
  std::vector<std::vector<Step>> parts; ///< While: condition and body; Conditional: branches
};
struct Buffer {
  enum class Kind { Parameter, Result, Temporary, Constant };
  Kind kind = Kind::Temporary;
  uint64_t bytes = 0;
  std::string shape; ///< `f32[12,1000]{1,0}`
  uint32_t parameter = 0;
  std::vector<uint32_t> leaf; ///< which leaf of the parameter's or the result's tuple
  bool isDonated = false, hasPlace = false;
  uint64_t place = 0;     ///< of a temporary in the memory that they share
  std::string data;       ///< of a constant; given up once it is on the device
  uint64_t alignment = 1; ///< bytes, what kernels count on
};
struct Result {
  std::vector<uint32_t> leaf;
  Slice slice;
  std::string shape;
};
struct Manifest {
  static constexpr uint32_t version = 2;
  std::string module, target; ///< `sm_90`
  std::vector<Kernel> kernels;
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  std::vector<Result> results;
};

/// What an array takes in memory. Elements of less than a byte are stored by atomics on the 32-bit words around them.
inline uint64_t allocationBytes(const std::string &shape, uint64_t bytes) {
  for (const char *type : {"s1[", "u1[", "s2[", "u2[", "s4[", "u4[", "f4e2m1fn["})
    if (shape.rfind(type, 0) == 0)
      return (bytes + 3) / 4 * 4;
  return bytes;
}

/// Reads a manifest that nobody vouches for: what contradicts itself, or leaves its buffers, is refused with the line.
class ManifestReader {
public:
  static Status read(std::string_view text, Manifest &manifest) {
    ManifestReader reader(manifest);
    if (!reader.json.parse(text))
      return Status::failure("manifest: " + reader.json.error());
    return reader.readAll() ? Status() : Status::failure("manifest: " + reader.why);
  }

private:
  using Index = uint32_t; ///< of a node; 0, the root, stands for none
  static constexpr uint64_t maxBytes = uint64_t(1) << 60;
  static constexpr uint64_t placement = 256; ///< buffers lie at multiples of it, as memory that the driver gives does

  explicit ManifestReader(Manifest &result) : manifest(result) {}

  bool fail(Index node, const std::string &reason) {
    if (why.empty())
      why = "line " + std::to_string(json.line(json.nodes()[node].at)) + ": " + reason;
    return false;
  }
  /// An object's members, `found` in the order of `keys`: the first `numRequired` have to be there, others may not.
  template <size_t size>
  bool members(Index object, const char *const (&keys)[size], size_t numRequired, Index (&found)[size]) {
    const auto &nodes = json.nodes();
    if (nodes[object].kind != '{')
      return fail(object, "an object is expected");
    std::fill(found, found + size, 0);
    for (Index i = object + 1; i < nodes[object].end; i = nodes[i].end) {
      const auto place = size_t(std::find(keys, keys + size, json.key(nodes[i])) - keys);
      if (place == size || found[place])
        return fail(i, (place == size ? "unknown key `" : "a second `") +
                           std::string(json.key(nodes[i]).substr(0, 40)) + "`");
      found[place] = i;
    }
    for (size_t i = 0; i < numRequired; ++i)
      if (!found[i])
        return fail(object, std::string("`") + keys[i] + "` is missing");
    return true;
  }
  template <typename Read> bool elements(Index list, Read read) {
    const auto &nodes = json.nodes();
    if (nodes[list].kind != '[')
      return fail(list, "a list is expected");
    for (Index i = list + 1; i < nodes[list].end; i = nodes[i].end)
      if (!read(i))
        return false;
    return true;
  }
  bool read(Index node, std::string &result) {
    if (json.nodes()[node].kind != '"')
      return fail(node, "a string is expected");
    result = json.string(json.nodes()[node]);
    return true;
  }
  bool read(Index node, uint64_t &result, uint64_t most = UINT64_MAX) {
    result = 0;
    const std::string_view digits = json.raw(json.nodes()[node]);
    bool fine = json.nodes()[node].kind == '0' && digits.size() <= 20;
    for (char c : digits) {
      const uint64_t digit = uint64_t(Json::digitOf(c));
      fine = fine && digit < 10 && result <= (most - digit) / 10;
      result = result * 10 + digit;
    }
    return fine || fail(node, "an integer from 0 to " + std::to_string(most) + " is expected");
  }
  bool read(Index node, uint32_t &result, uint32_t most = UINT32_MAX) {
    uint64_t wide = 0;
    const bool fine = read(node, wide, uint64_t(most));
    result = uint32_t(wide);
    return fine;
  }
  bool read(Index node, bool &result) {
    result = json.nodes()[node].kind == 't';
    return result || json.nodes()[node].kind == 'f' || fail(node, "true or false is expected");
  }
  template <typename Number> bool read(Index node, std::vector<Number> &result, Number most = Number(-1)) {
    return elements(node, [&](Index element) { return read(element, result.emplace_back(), most); });
  }
  /// Corners of bounding boxes.
  bool read(Index node, std::vector<int32_t> &result) {
    return elements(node, [&](Index element) {
      const std::string digits(json.raw(json.nodes()[element]));
      const bool isNumber =
          json.nodes()[element].kind == '0' && digits.size() <= 6 && digits.find_first_of(".eE") == std::string::npos;
      result.push_back(isNumber ? int32_t(std::strtol(digits.c_str(), nullptr, 10)) : 0);
      return isNumber || fail(element, "an integer of up to five digits is expected");
    });
  }
  bool readExtents(Index node, uint32_t (&result)[3], const uint32_t (&most)[3]) {
    size_t count = 0;
    return elements(node,
                    [&](Index element) {
                      return count < 3 && read(element, result[count], most[count]) && result[count++];
                    }) &&
                   count == 3
               ? true
               : fail(node, "three positive integers that CUDA admits are expected");
  }
  template <size_t size> bool readWord(Index node, const char *const (&words)[size], size_t &result) {
    std::string word;
    if (!read(node, word))
      return false;
    result = size_t(std::find(words, words + size, word) - words);
    return result < size || fail(node, "unknown word `" + word.substr(0, 40) + "`");
  }

  bool readAll() {
    // The version first: another may have other keys.
    const auto &nodes = json.nodes();
    for (Index i = 1; nodes[0].kind == '{' && i < nodes[0].end; i = nodes[i].end)
      if (json.key(nodes[i]) == "version" &&
          (nodes[i].kind != '0' || json.raw(nodes[i]) != std::to_string(Manifest::version)))
        return fail(i, "this launcher reads version " + std::to_string(Manifest::version) + ", not " +
                           std::string(json.raw(nodes[i]).substr(0, 40)));
    Index at[9];
    return members(0, {"version", "module", "target", "kernels", "buffers", "steps", "results", "ptx_version", "tools"},
                   7, at) &&
           read(at[1], manifest.module) && read(at[2], manifest.target) &&
           elements(at[3], [&](Index i) { return readKernel(i, manifest.kernels.emplace_back()); }) &&
           elements(at[4], [&](Index i) { return readBuffer(i, manifest.buffers.emplace_back()); }) &&
           readSteps(at[5], manifest.steps) &&
           elements(at[6], [&](Index i) { return readResult(i, manifest.results.emplace_back()); });
  }

  bool readKernel(Index node, Kernel &kernel) {
    Index at[20];
    static constexpr uint32_t maxGrid[3] = {2147483647, 65535, 65535}, maxBlock[3] = {1024, 1024, 64},
                              maxCluster[3] = {16, 16, 16};
    if (!members(node,
                 {"name",
                  "grid",
                  "block",
                  "parameters",
                  "dynamic_shared_bytes",
                  "static_shared_bytes",
                  "instruction",
                  "line",
                  "op_name",
                  "hero",
                  "plan",
                  "rejections",
                  "remarks",
                  "proofs",
                  "bytes_read",
                  "bytes_written",
                  "planned_registers",
                  "resources",
                  "cluster",
                  "programmatic"},
                 4, at) ||
        !read(at[0], kernel.name) || !readExtents(at[1], kernel.grid, maxGrid) ||
        !readExtents(at[2], kernel.block, maxBlock) || (at[4] && !read(at[4], kernel.dynamicSharedBytes, INT32_MAX)) ||
        (at[18] && !readExtents(at[18], kernel.cluster, maxCluster)) ||
        (at[19] && !read(at[19], kernel.isProgrammatic)))
      return false;
    auto isRest = [](char c) {
      return (c | 32) >= 'a' && (c | 32) <= 'z' ? true : (c >= '0' && c <= '9') || c == '_' || c == '$';
    };
    if (kernel.name.empty() || !std::all_of(kernel.name.begin(), kernel.name.end(), isRest))
      return fail(node, "a kernel's name is no PTX identifier");
    if (!kernelNames.insert(kernel.name).second)
      return fail(node, "a second kernel `" + kernel.name + "`");
    if (uint64_t(kernel.block[0]) * kernel.block[1] * kernel.block[2] > 1024)
      return fail(node, "a block of more than 1024 threads");
    for (int i = 0; at[18] && i < 3; ++i)
      if (kernel.grid[i] % kernel.cluster[i] || kernel.cluster[0] * kernel.cluster[1] * kernel.cluster[2] > 16)
        return fail(at[18], "clusters of more than 16 blocks, or that do not make up the grid");
    return elements(at[3], [&](Index i) { return readParameter(i, kernel); });
  }

  bool readParameter(Index node, Kernel &kernel) {
    static const char *const roles[] = {"input", "output", "temporary"};
    Index at[8];
    Parameter parameter;
    if (!members(node, {"bytes", "alignment", "written", "role", "index", "shape", "alias", "tensor_map"}, 3, at) ||
        !read(at[0], parameter.bytes) || !read(at[1], parameter.alignment) || !read(at[2], parameter.isWritten) ||
        (at[3] && !readWord(at[3], roles, parameter.role)) || (at[4] && !read(at[4], parameter.index)))
      return false;
    if (!parameter.alignment || parameter.alignment > placement || (parameter.alignment & (parameter.alignment - 1)))
      return fail(node, "an alignment is no power of two up to 256");
    auto isPointer = [&](const Parameter &other) {
      return !other.map && other.role == parameter.role && other.index == parameter.index;
    };
    auto &others = kernel.parameters;
    const auto pointer = std::find_if(others.begin(), others.end(), isPointer);
    parameter.pointer = size_t(pointer - others.begin());
    if (at[7] && (!at[3] || !at[4] || pointer == others.end() || pointer->bytes != parameter.bytes ||
                  pointer->alignment != parameter.alignment || pointer->isWritten != parameter.isWritten))
      return fail(at[7], "a tensor map of no buffer that a parameter before it points to");
    if (at[7] && !readMap(at[7], parameter))
      return false;
    others.push_back(std::move(parameter));
    return true;
  }

  /// What the driver reads has to be there, and the whole tensor in its buffer; the rest the driver checks.
  bool readMap(Index node, Parameter &parameter) {
    static const char *const
        types[] = {"u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz"},
        *const interleaves[] = {"none", "16B", "32B"}, *const swizzles[] = {"none", "32B", "64B", "128B"},
        *const fills[] = {"zero", "nan"}, *const sizes[] = {"none", "64B", "128B", "256B"};
    static constexpr unsigned bytesOf[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    Index at[10], of[4];
    TensorMap &map = parameter.map.emplace();
    if (!members(node,
                 {"type", "dims", "strides", "box", "im2col", "element_strides", "interleave", "swizzle", "fill", "l2"},
                 3, at) ||
        !readWord(at[0], types, map.type) || !read(at[1], map.dims, uint64_t(1) << 32) ||
        !read(at[2], map.strides, uint64_t(1) << 40) || (at[3] && !read(at[3], map.box)) ||
        (at[5] && !read(at[5], map.steps)) || (at[6] && !readWord(at[6], interleaves, map.interleave)) ||
        (at[7] && !readWord(at[7], swizzles, map.swizzle)) || (at[8] && !readWord(at[8], fills, map.fill)) ||
        (at[9] && !readWord(at[9], sizes, map.l2)))
      return false;
    map.isOfPixels = at[4];
    if (at[4] && (!members(at[4], {"lower", "upper", "channels", "pixels"}, 4, of) || !read(of[0], map.lower) ||
                  !read(of[1], map.upper) || !read(of[2], map.channels) || !read(of[3], map.pixels)))
      return false;
    const size_t rank = map.dims.size();
    if (map.steps.empty())
      map.steps.assign(rank, 1);
    if (rank < (map.isOfPixels ? 3 : 1) || rank > 5 || map.strides.size() + 1 != rank || map.steps.size() != rank ||
        map.box.size() != (map.isOfPixels ? 0 : rank) || map.lower.size() != map.upper.size() ||
        map.lower.size() != (map.isOfPixels ? rank - 2 : 0))
      return fail(node, "a tensor map whose lists do not have the same dimensions");
    if (parameter.alignment % (map.interleave == 2 ? 32 : 16))
      return fail(node, "a tensor map of a buffer that is too little aligned");
    uint64_t room = parameter.bytes; // behind the first element along the dimensions so far
    for (size_t i = rank; i-- > 0;) {
      const uint64_t each = i ? map.strides[i - 1] : bytesOf[map.type], count = map.dims[i] - (i ? 1 : 0);
      if (!map.dims[i] || (each && count > room / each))
        return fail(node, "a tensor map that leaves its buffer");
      room -= count * each;
    }
    return true;
  }

  bool readBuffer(Index node, Buffer &buffer) {
    static const char *const words[] = {"parameter", "result", "temporary", "constant"};
    Index at[8];
    size_t kind = 0;
    if (!members(node, {"kind", "bytes", "shape", "parameter", "leaf", "offset", "donated", "data"}, 2, at) ||
        !readWord(at[0], words, kind) || !read(at[1], buffer.bytes, maxBytes) ||
        (at[2] && !read(at[2], buffer.shape)) || (at[3] && !read(at[3], buffer.parameter)) ||
        (at[4] && !read(at[4], buffer.leaf)) || (at[5] && !read(at[5], buffer.place, maxBytes)) ||
        (at[6] && !read(at[6], buffer.isDonated)) || (at[7] && !readHex(at[7], buffer.data)))
      return false;
    buffer.kind = Buffer::Kind(kind);
    buffer.hasPlace = at[5];
    if (buffer.hasPlace && (buffer.kind != Buffer::Kind::Temporary || buffer.place % placement))
      return fail(node, "only temporaries share memory, at multiples of 256");
    if (buffer.isDonated && buffer.kind != Buffer::Kind::Parameter)
      return fail(node, "only parameters are donated");
    if (buffer.data.size() != (buffer.kind == Buffer::Kind::Constant ? buffer.bytes : 0))
      return fail(node, "only constants have data, as much as they have bytes");
    return true;
  }
  bool readHex(Index node, std::string &result) {
    const std::string_view digits = json.raw(json.nodes()[node]);
    bool fine = json.nodes()[node].kind == '"' && digits.size() % 2 == 0;
    for (size_t i = 0; fine && i < digits.size(); i += 2) {
      const int high = Json::digitOf(digits[i]), low = Json::digitOf(digits[i + 1]);
      fine = high >= 0 && low >= 0;
      result += char(high * 16 + low);
    }
    return fine || fail(node, "pairs of hexadecimal digits are expected");
  }

  /// A slice of a buffer, which steps may write if `isWritten`.
  bool readSlice(Index node, Slice &slice, bool isWritten = false) {
    Index at[3];
    if (!members(node, {"buffer", "offset", "bytes"}, 3, at) || !read(at[0], slice.buffer) ||
        !read(at[1], slice.offset) || !read(at[2], slice.bytes))
      return false;
    if (slice.buffer >= manifest.buffers.size())
      return fail(node, "there is no buffer " + std::to_string(slice.buffer));
    const Buffer &buffer = manifest.buffers[slice.buffer];
    if (slice.offset > buffer.bytes || slice.bytes > buffer.bytes - slice.offset)
      return fail(node, "a slice leaves its buffer");
    if (isWritten &&
        (buffer.kind == Buffer::Kind::Constant || (buffer.kind == Buffer::Kind::Parameter && !buffer.isDonated)))
      return fail(node, "a constant, or a parameter that is not donated, is written");
    return true;
  }
  bool readSlices(Index node, std::vector<Slice> &slices, bool isWritten) {
    return elements(node, [&](Index i) { return readSlice(i, slices.emplace_back(), isWritten); });
  }
  bool readResult(Index node, Result &result) {
    Index at[3];
    return members(node, {"leaf", "slice", "shape"}, 2, at) && read(at[0], result.leaf) &&
           readSlice(at[1], result.slice) && (!at[2] || read(at[2], result.shape));
  }

  bool readSteps(Index node, std::vector<Step> &steps) {
    return elements(node, [&](Index i) { return readStep(i, steps.emplace_back()); });
  }
  bool readStep(Index node, Step &step) {
    static const char *const words[] = {"launch",   "copy",  "fill",        "library-call",
                                        "external", "while", "conditional", "unsupported"};
    const auto &nodes = json.nodes();
    Index kind = 0;
    for (Index i = node + 1; nodes[node].kind == '{' && i < nodes[node].end; i = nodes[i].end)
      if (json.key(nodes[i]) == "kind")
        kind = i;
    size_t word = 0;
    if (!kind)
      return fail(node, "an object with a `kind` is expected");
    if (!readWord(kind, words, word))
      return false;
    step.kind = Step::Kind(word);
    switch (step.kind) {
    case Step::Kind::Launch:
      return readLaunch(node, step);
    case Step::Kind::Copy:
    case Step::Kind::Fill:
      return readMove(node, step);
    case Step::Kind::While:
      return readLoop(node, step);
    case Step::Kind::Conditional:
      return readConditional(node, step);
    default:
      return readCall(node, step);
    }
  }
  bool readLaunch(Index node, Step &step) {
    Index at[4];
    if (!members(node, {"kind", "name", "kernel", "arguments"}, 4, at) || !read(at[1], step.name) ||
        !read(at[2], step.kernel))
      return false;
    if (step.kernel >= manifest.kernels.size())
      return fail(node, "there is no kernel " + std::to_string(step.kernel));
    const std::vector<Parameter> &parameters = manifest.kernels[step.kernel].parameters;
    return elements(at[3],
                    [&](Index i) {
                      return step.slices.size() < parameters.size() &&
                             readArgument(i, parameters[step.slices.size()], step);
                    }) &&
                   step.slices.size() == parameters.size()
               ? true
               : fail(at[3], "one argument is expected for each parameter of the kernel");
  }
  bool readArgument(Index node, const Parameter &parameter, Step &step) {
    Slice &slice = step.slices.emplace_back();
    if (!readSlice(node, slice, parameter.isWritten))
      return false;
    if (slice.bytes < parameter.bytes || slice.offset % parameter.alignment)
      return fail(node, "a slice is smaller than the kernel's parameter, or not aligned for it");
    if (const Slice &pointer = step.slices[parameter.map ? parameter.pointer : step.slices.size() - 1];
        slice.buffer != pointer.buffer || slice.offset != pointer.offset)
      return fail(node, "a tensor map of other memory than the kernel has a pointer to");
    uint64_t &alignment = manifest.buffers[slice.buffer].alignment;
    alignment = std::max(alignment, parameter.alignment);
    return true;
  }
  bool readMove(Index node, Step &step) {
    Index at[4];
    if (step.kind == Step::Kind::Fill)
      return members(node, {"kind", "name", "to", "value"}, 4, at) && read(at[1], step.name) &&
             readSlice(at[2], step.to, true) && read(at[3], step.value, 255);
    if (!members(node, {"kind", "name", "from", "to"}, 4, at) || !read(at[1], step.name) ||
        !readSlice(at[2], step.from) || !readSlice(at[3], step.to, true))
      return false;
    const bool areApart = step.from.buffer != step.to.buffer || step.from.offset + step.from.bytes <= step.to.offset ||
                          step.to.offset + step.to.bytes <= step.from.offset;
    return (step.from.bytes == step.to.bytes && areApart) || fail(node, "a copy of another size, or onto itself");
  }
  bool readLoop(Index node, Step &step) {
    Index at[6];
    if (!members(node, {"kind", "name", "body", "rounds", "condition", "predicate"}, 3, at) ||
        !read(at[1], step.name) || (at[3] && !read(at[3], step.rounds)))
      return false;
    if (!at[4] != !at[5] || (!at[4] && !at[3]))
      return fail(node, "a loop has a condition with a predicate, or is counted");
    step.parts.resize(2);
    if (at[4] && (!readSteps(at[4], step.parts[0]) || !readSlice(at[5], step.choice)))
      return false;
    return (!at[4] || step.choice.bytes == 1 || fail(at[5], "a predicate is one byte")) &&
           readSteps(at[2], step.parts[1]);
  }
  bool readConditional(Index node, Step &step) {
    Index at[4];
    if (!members(node, {"kind", "name", "selector", "branches"}, 4, at) || !read(at[1], step.name) ||
        !readSlice(at[2], step.choice) ||
        !elements(at[3], [&](Index i) { return readSteps(i, step.parts.emplace_back()); }))
      return false;
    const bool fits = step.choice.bytes == 1 ? step.parts.size() == 2 : step.choice.bytes == 4 && !step.parts.empty();
    return fits || fail(node, "a selector is a byte for two branches, or four bytes");
  }
  bool readCall(Index node, Step &step) {
    Index at[6], of[5];
    if (step.kind == Step::Kind::Unsupported)
      return members(node, {"kind", "name", "reason", "reads", "writes"}, 5, of) && read(of[1], step.name) &&
             read(of[2], step.text) && readSlices(of[3], step.reads, false) && readSlices(of[4], step.writes, true);
    return members(node, {"kind", "name", "function", "configuration", "reads", "writes"}, 6, at) &&
           read(at[1], step.name) && read(at[2], step.function) && read(at[3], step.text) &&
           readSlices(at[4], step.reads, false) && readSlices(at[5], step.writes, true) &&
           (!step.function.empty() || fail(node, "a call of nothing"));
  }

  Manifest &manifest;
  Json json;
  std::set<std::string> kernelNames;
  std::string why;
};

} // namespace hloc_launch
