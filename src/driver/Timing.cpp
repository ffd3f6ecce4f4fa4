#include "Timing.h"

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

void Timing::add(llvm::StringRef name, llvm::StringRef track, Clock::time_point begin, Clock::time_point end,
                 int depth) {
  if (!on)
    return;
  std::lock_guard lock(mutex);
  spans.push_back({name.str(), track.str(), begin, end, depth});
}

std::vector<Timing::Span> Timing::sorted() const {
  std::lock_guard lock(mutex);
  std::vector<Span> copy = spans;
  std::stable_sort(copy.begin(), copy.end(), [](const Span &a, const Span &b) {
    return std::tie(a.begin, a.depth) < std::tie(b.begin, b.depth);
  });
  return copy;
}

std::string Timing::table() const {
  std::string out = "===-- time by stage and pass, ms --===\n";
  for (const Span &span : sorted())
    out += fmt::format("{:>10.3f}  {}{}{}\n", milliseconds(span.end - span.begin), std::string(2 * span.depth, ' '),
                       span.name, span.track == "module" ? "" : "  [" + span.track + "]");
  out += fmt::format("{:>10.3f}  total\n", milliseconds(Clock::now() - start));
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

} // namespace hloc
