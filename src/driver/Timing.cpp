#include "Timing.h"

#include "hloc/codegen/Toolchain.h"
#include "hloc/support/Diagnostics.h"
#include "hloc/support/Files.h"

#include "fmt/format.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <map>

#include <sys/resource.h>

namespace hloc {

namespace {

double milliseconds(Timing::Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

double milliseconds(const timeval &time) { return double(time.tv_sec) * 1e3 + double(time.tv_usec) / 1e3; }

} // namespace

void Timing::timed(llvm::StringRef name, llvm::StringRef track, Clock::time_point begin, Clock::time_point end,
                   int depth) {
  if (!on)
    return;
  std::lock_guard lock(mutex);
  spans.push_back({name.str(), track.empty() ? "module" : track.str(), begin, end, depth});
}

std::vector<Timing::Span> Timing::sorted() const {
  std::lock_guard lock(mutex);
  std::vector<Span> copy = spans;
  std::stable_sort(copy.begin(), copy.end(), [](const Span &a, const Span &b) {
    return std::tie(a.begin, a.depth) < std::tie(b.begin, b.depth);
  });
  return copy;
}

Timing::Clock::duration Timing::outsideStages(Clock::time_point end) const {
  Clock::duration outside{};
  Clock::time_point covered = start;
  for (const Span &span : sorted()) {
    if (span.depth)
      continue;
    if (span.begin > covered)
      outside += span.begin - covered;
    covered = std::max(covered, span.end);
  }
  return end > covered ? outside + (end - covered) : outside;
}

void Timing::counted(llvm::StringRef what, size_t count) {
  if (!on || !count)
    return;
  std::lock_guard lock(mutex);
  auto known = llvm::find_if(countList, [&](const auto &one) { return one.first == what; });
  if (known == countList.end())
    countList.emplace_back(what.str(), count);
  else
    known->second += count;
}

void Timing::beginKernel(const std::string &track) {
  std::lock_guard lock(mutex);
  kernels.insert(track);
}

bool Timing::hasManyKernels() const {
  constexpr size_t few = 16; ///< whose passes a table can list
  std::lock_guard lock(mutex);
  return kernels.size() > few;
}

std::string Timing::rows(const std::vector<Span> &all) {
  std::string out;
  auto row = [&out](const Span &span) {
    out += fmt::format("{:>10.3f}  {}{}{}\n", milliseconds(span.end - span.begin), std::string(2 * span.depth, ' '),
                       span.name, span.track == "module" ? "" : "  [" + span.track + "]");
  };
  // Tracks run at the same time: the passes of a stage are those of its track within its time.
  std::vector<bool> shown(all.size());
  for (const Span &stage : all) {
    if (stage.depth)
      continue;
    row(stage);
    for (size_t i = 0; i < all.size(); ++i)
      if (const Span &pass = all[i];
          pass.depth && !shown[i] && pass.track == stage.track && pass.begin >= stage.begin && pass.end <= stage.end) {
        row(pass);
        shown[i] = true;
      }
  }
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].depth && !shown[i])
      row(all[i]);
  return out;
}

namespace {

/// Spans of one name: a stage, a pass of it, or one of the passes inside that.
struct Sum {
  Timing::Clock::duration sum{};
  Timing::Clock::time_point begin, end;
  std::map<std::string, Sum> parts;

  void add(Timing::Clock::time_point from, Timing::Clock::time_point to) {
    begin = sum.count() ? std::min(begin, from) : from;
    end = sum.count() ? std::max(end, to) : to;
    sum += to - from;
  }
  /// Those that took most first.
  std::string rowsOfParts(int depth) const {
    std::vector<std::pair<std::string, const Sum *>> sorted;
    for (const auto &[name, part] : parts)
      sorted.emplace_back(name, &part);
    llvm::stable_sort(sorted, [](const auto &a, const auto &b) { return a.second->sum > b.second->sum; });
    std::string out;
    for (const auto &[name, part] : sorted)
      out += fmt::format("{:>10.3f}  {:>9}  {}{}\n", milliseconds(part->sum), "", std::string(2 * depth, ' '), name) +
             part->rowsOfParts(depth + 1);
    return out;
  }
};

} // namespace

std::string Timing::sumsOverKernels(const std::vector<Span> &spans, size_t numKernels) {
  std::vector<std::pair<std::string, Sum>> stages; // in the order in which the first kernel comes to them
  struct Place {
    size_t stage = 0;
    std::string pass;
  };
  std::map<std::string, Place> places; // by track: what was begun last
  for (const Span &span : spans) {
    Place &place = places[span.track];
    if (span.depth == 0) {
      auto stage = llvm::find_if(stages, [&](const auto &one) { return one.first == span.name; });
      place.stage = stage - stages.begin();
      if (stage == stages.end())
        stages.emplace_back(span.name, Sum());
    } else if (span.depth == 1) {
      place.pass = span.name;
    }
    if (stages.empty())
      continue; // a pass before any stage
    Sum &stage = stages[place.stage].second;
    Sum &sum = span.depth == 0   ? stage
               : span.depth == 1 ? stage.parts[span.name]
                                 : stage.parts[place.pass].parts[span.name];
    sum.add(span.begin, span.end);
  }
  std::string out = fmt::format("{:>10}  {:>9}  stage of {} kernels\n", "sum", "elapsed", numKernels);
  for (const auto &[name, stage] : stages)
    out +=
        fmt::format("{:>10.3f}  {:>9.3f}  {}\n", milliseconds(stage.sum), milliseconds(stage.end - stage.begin), name) +
        stage.rowsOfParts(1);
  return out;
}

std::string Timing::slowestKernels(const std::vector<Span> &spans) {
  constexpr size_t most = 10;
  struct Kernel {
    std::string name, stages;
    Clock::duration sum{};
  };
  std::vector<Kernel> kernels;
  std::map<std::string, size_t> numberOf;
  for (const Span &span : spans) {
    if (span.depth)
      continue;
    auto [number, isNew] = numberOf.try_emplace(span.track, kernels.size());
    if (isNew)
      kernels.push_back({span.track, "", {}});
    Kernel &kernel = kernels[number->second];
    kernel.stages +=
        fmt::format("{} {} {:.3f}", kernel.stages.empty() ? ":" : ",", span.name, milliseconds(span.end - span.begin));
    kernel.sum += span.end - span.begin;
  }
  llvm::stable_sort(kernels, [](const Kernel &a, const Kernel &b) { return a.sum > b.sum; });
  std::string out = fmt::format("{:>21}  slowest kernels\n", "");
  for (const Kernel &kernel : llvm::ArrayRef(kernels).take_front(most))
    out += fmt::format("{:>10.3f}  {}{}\n", milliseconds(kernel.sum), kernel.name, kernel.stages);
  return out;
}

std::string Timing::counts() const {
  std::string out;
  for (const auto &[what, count] : countList)
    out += fmt::format("{:>10}  {}\n", count, what);
  return out;
}

std::string Timing::resources() {
  rusage own = {}, children = {};
  if (::getrusage(RUSAGE_SELF, &own) || ::getrusage(RUSAGE_CHILDREN, &children))
    return "";
  return fmt::format("{:>10.3f}  processor time, and {:.3f} of other processes\n",
                     milliseconds(own.ru_utime) + milliseconds(own.ru_stime),
                     milliseconds(children.ru_utime) + milliseconds(children.ru_stime)) +
         fmt::format("{:>10.3f}  MiB of memory at most\n", double(own.ru_maxrss) / 1024);
}

std::string Timing::table() const {
  Clock::time_point now = Clock::now();
  std::string out = "===-- time by stage and pass, ms --===\n";
  std::vector<Span> all = sorted();
  if (!hasManyKernels()) {
    out += rows(all) + counts();
  } else {
    auto ofModule =
        std::stable_partition(all.begin(), all.end(), [&](const Span &span) { return !kernels.contains(span.track); });
    std::vector<Span> ofKernels(ofModule, all.end());
    all.erase(ofModule, all.end());
    out += rows(all) + sumsOverKernels(ofKernels, kernels.size()) + slowestKernels(ofKernels) + counts() + resources();
  }
  out += fmt::format("{:>10.3f}  in no stage\n", milliseconds(outsideStages(now)));
  out += fmt::format("{:>10.3f}  total\n", milliseconds(now - start));
  return out;
}

std::string Timing::chromeTrace() const {
  std::string out;
  llvm::raw_string_ostream os(out);
  llvm::json::OStream json(os, 1);
  std::map<std::string, int> tracks;
  json.object([&] {
    json.attributeArray("traceEvents", [&] {
      for (const Span &span : sorted()) {
        int track = tracks.try_emplace(span.track, int(tracks.size())).first->second;
        json.object([&] {
          json.attribute("name", span.name);
          json.attribute("cat", span.depth == 0 ? "stage" : "pass");
          json.attribute("ph", "X");
          json.attribute("ts", milliseconds(span.begin - start) * 1000);
          json.attribute("dur", milliseconds(span.end - span.begin) * 1000);
          json.attribute("pid", 1);
          json.attribute("tid", track);
        });
      }
      for (const auto &[name, track] : tracks)
        json.object([&] {
          json.attribute("name", "thread_name");
          json.attribute("ph", "M");
          json.attribute("pid", 1);
          json.attribute("tid", track);
          json.attributeObject("args", [&] { json.attribute("name", name); });
        });
    });
  });
  out += "\n";
  return out;
}

void writeTiming(const Timing &timing, const std::string &file, DiagnosticEngine &diagnostics) {
  if (!timing.enabled())
    return;
  if (file.empty()) {
    llvm::errs() << timing.table();
    return;
  }
  std::string error;
  if (!writeFile(file, timing.chromeTrace(), error))
    diagnostics.report(DiagnosticKind::UnwritableFile, "cannot write `" + file + "`: " + error);
}

Toolchain discoverTools(const ToolchainOptions &options, Timing &timing) {
  TimedScope scope(timing, "find tools");
  return Toolchain::discover(options);
}

} // namespace hloc
