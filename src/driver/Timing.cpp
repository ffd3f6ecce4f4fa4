#include "Timing.h"

#include "hloc/codegen/Toolchain.h"
#include "hloc/support/Diagnostics.h"
#include "hloc/support/Files.h"

#include "fmt/format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <map>

namespace hloc {

namespace {

double milliseconds(Timing::Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

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

std::string Timing::table() const {
  Clock::time_point now = Clock::now();
  std::string out = "===-- time by stage and pass, ms --===\n";
  auto row = [&out](const Span &span) {
    out += fmt::format("{:>10.3f}  {}{}{}\n", milliseconds(span.end - span.begin), std::string(2 * span.depth, ' '),
                       span.name, span.track == "module" ? "" : "  [" + span.track + "]");
  };
  std::vector<Span> all = sorted();
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
