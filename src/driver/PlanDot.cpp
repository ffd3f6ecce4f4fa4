#include "Dot.h"

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <algorithm>
#include <map>

namespace hloc {

namespace {

std::string sizeText(uint64_t bytes) {
  if (bytes < 1024)
    return fmt::format("{} B", bytes);
  if (bytes < 1024 * 1024)
    return fmt::format("{:.1f} KiB", double(bytes) / 1024);
  return fmt::format("{:.1f} MiB", double(bytes) / (1024 * 1024));
}

std::string extentText(const Dim3 &extent) {
  std::string text = std::to_string(extent.x);
  if (extent.y != 1 || extent.z != 1)
    text += fmt::format("x{}", extent.y);
  if (extent.z != 1)
    text += fmt::format("x{}", extent.z);
  return text;
}

std::string indexText(llvm::ArrayRef<uint32_t> index) { return fmt::format("{{{}}}", fmt::join(index, ",")); }

/// Steps, then the buffers that they use and the results that lie there.
class PlanGraph {
public:
  explicit PlanGraph(const Manifest &manifest) : manifest(manifest), firstUse(manifest.buffers.size(), unused) {}

  std::string run() {
    line(fmt::format("digraph \"{}\" {{", dotEscaped(manifest.module)));
    indent = 1;
    line("node [shape=box, style=filled, fillcolor=white, fontname=monospace];");
    drawSteps(manifest.steps);
    drawBuffers();
    drawResults();
    drawReuse();
    for (const std::string &edge : edges)
      line(edge);
    indent = 0;
    line("}");
    return std::move(out);
  }

private:
  static constexpr uint32_t unused = UINT32_MAX;

  void line(const std::string &text) { out += std::string(2 * indent, ' ') + text + "\n"; }

  void open(const std::string &label) {
    line(fmt::format("subgraph cluster_{} {{", numClusters++));
    ++indent;
    line(fmt::format("label=\"{}\";", label));
  }
  void close() {
    --indent;
    line("}");
  }

  // --- steps

  void drawSteps(const Steps &steps) {
    for (const Step &step : steps)
      if (const auto *loop = std::get_if<WhileStep>(&step.action))
        drawLoop(step, *loop);
      else if (const auto *choice = std::get_if<ConditionalStep>(&step.action))
        drawConditional(step, *choice);
      else
        drawSimple(step);
  }

  void drawLoop(const Step &step, const WhileStep &loop) {
    open("while " + dotEscaped(step.name));
    const size_t first = numSteps;
    size_t test = 0;
    if (loop.isCounted()) {
      test = node(fmt::format("{} rounds", loop.rounds.value_or(0)), "shape=diamond, fillcolor=palegreen");
    } else {
      open("condition");
      drawSteps(loop.condition);
      test = node("goes on?", "shape=diamond, fillcolor=palegreen");
      use(test, loop.predicate, /*reads=*/true, /*writes=*/false);
      close();
    }
    open("body");
    drawSteps(loop.body);
    close();
    for (size_t end : ends)
      edges.push_back(fmt::format("s{} -> s{} [style=dotted, label=again, constraint=false];", end, first));
    ends = {test};
    close();
  }

  void drawConditional(const Step &step, const ConditionalStep &choice) {
    open("conditional " + dotEscaped(step.name));
    const size_t test = node("which branch?", "shape=diamond, fillcolor=palegreen");
    use(test, choice.selector, /*reads=*/true, /*writes=*/false);
    llvm::SmallVector<size_t> endsOfAll;
    for (auto [number, branch] : llvm::enumerate(choice.branches)) {
      open(fmt::format("branch {}", number));
      ends = {test};
      drawSteps(branch);
      if (branch.empty())
        node("nothing", "style=dashed");
      llvm::append_range(endsOfAll, ends);
      close();
    }
    ends = std::move(endsOfAll);
    close();
  }

  void drawSimple(const Step &step) {
    const std::string name = dotEscaped(step.name);
    if (const auto *launch = std::get_if<LaunchStep>(&step.action)) {
      drawLaunch(name, *launch);
    } else if (const auto *copy = std::get_if<CopyStep>(&step.action)) {
      const size_t id = node(fmt::format("{}\\ncopy of {}", name, sizeText(copy->from.bytes)), "fillcolor=lightblue");
      use(id, copy->from, /*reads=*/true, /*writes=*/false);
      use(id, copy->to, /*reads=*/false, /*writes=*/true);
    } else if (const auto *fill = std::get_if<FillStep>(&step.action)) {
      const size_t id =
          node(fmt::format("{}\\nfill {} with {}", name, sizeText(fill->to.bytes), fill->value), "fillcolor=lightblue");
      use(id, fill->to, /*reads=*/false, /*writes=*/true);
    } else if (const auto *call = std::get_if<CallStep>(&step.action)) {
      const char *kind = call->kind == CallStep::Kind::External ? "external" : "library";
      drawCall(fmt::format("{}\\n{}: {}", name, kind, dotEscaped(call->function)), "fillcolor=salmon", call->reads,
               call->writes);
    } else if (const auto *unsupported = std::get_if<UnsupportedStep>(&step.action)) {
      drawCall(fmt::format("{}\\nnot compiled: {}", name, dotEscaped(unsupported->reason)),
               "fillcolor=white, style=\"filled,dashed\", color=red", unsupported->reads, unsupported->writes);
    }
  }

  void drawLaunch(const std::string &name, const LaunchStep &launch) {
    const KernelSpec &kernel = manifest.kernels[launch.kernel];
    const size_t id = node(fmt::format("{}\\nkernel {}\\n{}: {} blocks of {}", name, dotEscaped(kernel.name),
                                       dotEscaped(kernel.hero), extentText(kernel.grid), extentText(kernel.block)),
                           "fillcolor=khaki");
    for (auto [parameter, argument] : llvm::zip_equal(kernel.parameters, launch.arguments))
      if (const auto *slice = sliceOf(argument))
        use(id, *slice, parameter.role == KernelParameter::Role::Input, parameter.written);
  }

  void drawCall(const std::string &label, const char *look, llvm::ArrayRef<BufferSlice> reads,
                llvm::ArrayRef<BufferSlice> writes) {
    const size_t id = node(label, look);
    for (const BufferSlice &slice : reads)
      use(id, slice, /*reads=*/true, /*writes=*/false);
    for (const BufferSlice &slice : writes)
      use(id, slice, /*reads=*/false, /*writes=*/true);
  }

  /// What is done after the last steps.
  size_t node(const std::string &label, const std::string &look) {
    const size_t id = numSteps++;
    line(fmt::format("s{} [label=\"{}\", {}];", id, label, look));
    for (size_t end : ends)
      edges.push_back(fmt::format("s{} -> s{} [style=dotted, weight=10];", end, id));
    ends = {id};
    firstEdge = edges.size();
    return id;
  }

  void use(size_t step, const BufferSlice &slice, bool reads, bool writes) {
    const ModuleBuffer &buffer = manifest.buffers[slice.buffer];
    firstUse[slice.buffer] = std::min(firstUse[slice.buffer], uint32_t(step));
    const bool isWhole = slice.offset == 0 && slice.bytes == buffer.bytes;
    const std::string part = isWhole ? "" : fmt::format(" [label=\"{} at {}\"]", sizeText(slice.bytes), slice.offset);
    if (reads)
      addUse(fmt::format("b{} -> s{}{};", slice.buffer, step, part));
    if (writes)
      addUse(fmt::format("s{} -> b{}{};", step, slice.buffer, part));
  }

  /// Once, however often the step has the buffer among its arguments.
  void addUse(std::string edge) {
    if (!llvm::is_contained(llvm::ArrayRef(edges).drop_front(firstEdge), edge))
      edges.push_back(std::move(edge));
  }

  // --- buffers

  void drawBuffer(size_t number) {
    const ModuleBuffer &buffer = manifest.buffers[number];
    std::string kind, colour = "white";
    switch (buffer.kind) {
    case ModuleBuffer::Kind::Parameter:
      kind = fmt::format("parameter {}", buffer.parameterNumber);
      if (!buffer.leafIndex.empty())
        kind += " " + indexText(buffer.leafIndex);
      kind += buffer.donated ? ", donated" : "";
      colour = "lightgrey";
      break;
    case ModuleBuffer::Kind::Result:
      kind = "result " + indexText(buffer.leafIndex);
      colour = "lightgrey";
      break;
    case ModuleBuffer::Kind::Constant:
      kind = "constant";
      colour = "lightgrey";
      break;
    case ModuleBuffer::Kind::Temporary:
      kind = buffer.offset ? fmt::format("at {}", *buffer.offset) : "temporary";
      break;
    }
    std::string shape = buffer.shape.empty() ? "" : dotEscaped(buffer.shape) + "\\n";
    line(fmt::format("b{} [label=\"b{}: {}\\n{}{}\", shape=ellipse, fillcolor={}];", number, number, kind, shape,
                     sizeText(buffer.bytes), colour));
  }

  static bool isShared(const ModuleBuffer &buffer) {
    return buffer.kind == ModuleBuffer::Kind::Temporary && buffer.offset;
  }

  void drawBuffers() {
    for (auto [number, buffer] : llvm::enumerate(manifest.buffers))
      if (!isShared(buffer))
        drawBuffer(number);
    if (llvm::none_of(manifest.buffers, isShared))
      return;
    open(fmt::format("temporaries that share {}", sizeText(sharedTemporaryBytes(manifest.buffers))));
    for (auto [number, buffer] : llvm::enumerate(manifest.buffers))
      if (isShared(buffer))
        drawBuffer(number);
    close();
  }

  void drawResults() {
    for (auto [number, result] : llvm::enumerate(manifest.results)) {
      line(fmt::format("r{} [label=\"result {}\\n{}\", shape=house, fillcolor=lightgrey];", number,
                       indexText(result.leafIndex), dotEscaped(result.shape)));
      edges.push_back(fmt::format("b{} -> r{};", result.slice.buffer, number));
    }
  }

  /// From each temporary to those that lie, as the next ones, in some of its memory.
  void drawReuse() {
    std::vector<uint32_t> order;
    for (uint32_t number = 0; number < manifest.buffers.size(); ++number)
      if (isShared(manifest.buffers[number]) && manifest.buffers[number].bytes && firstUse[number] != unused)
        order.push_back(number);
    llvm::stable_sort(order, [&](uint32_t a, uint32_t b) { return firstUse[a] < firstUse[b]; });
    struct Part {
      uint64_t end;
      uint32_t owner;
    };
    std::map<uint64_t, Part> parts; // by where they begin; they do not overlap
    for (uint32_t number : order) {
      const uint64_t begin = *manifest.buffers[number].offset, end = begin + manifest.buffers[number].bytes;
      std::vector<uint32_t> before;
      auto at = parts.upper_bound(begin);
      if (at != parts.begin() && std::prev(at)->second.end > begin)
        --at;
      while (at != parts.end() && at->first < end) {
        const auto [from, part] = *at;
        at = parts.erase(at);
        before.push_back(part.owner);
        if (from < begin)
          parts[from] = {begin, part.owner};
        if (part.end > end)
          parts[end] = {part.end, part.owner};
      }
      parts[begin] = {end, number};
      llvm::sort(before);
      before.erase(llvm::unique(before), before.end());
      for (uint32_t owner : before)
        edges.push_back(fmt::format("b{} -> b{} [style=dashed, color=blue, label=\"memory of\", constraint=false];",
                                    owner, number));
    }
  }

  const Manifest &manifest;
  std::string out;
  std::vector<std::string> edges;
  std::vector<uint32_t> firstUse; ///< by buffer: the first step that reads or writes it
  size_t indent = 0, numClusters = 0, numSteps = 0;
  llvm::SmallVector<size_t> ends; ///< of what has been drawn: steps after which the next is done
  size_t firstEdge = 0;           ///< of the last step
};

} // namespace

std::string planGraph(const Manifest &manifest) { return PlanGraph(manifest).run(); }

} // namespace hloc
