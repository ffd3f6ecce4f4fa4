#include "Recorder.h"

namespace hloc {

void Recorder::produced(const IrEvent &event) {
  RecordedTrack &track = get(event.track);
  std::vector<ShownLine> lines = shownLines(event.kind, event.text());
  constexpr llvm::StringRef kinds[] = {"hlo", "mlir", "llvm", "ptx"};
  track.passes.push_back(
      {kinds[unsigned(event.kind)], event.pass.str(), event.milliseconds, track.table.numbersOf(lines)});
  if (event.kind == IrKind::Ptx)
    track.ptx = std::move(lines);
}

RecordedTrack *Recorder::find(llvm::StringRef track) {
  std::lock_guard lock(mutex);
  auto found = tracks.find(track);
  return found == tracks.end() ? nullptr : found->second.get();
}

RecordedTrack &Recorder::get(llvm::StringRef track) {
  std::lock_guard lock(mutex);
  std::unique_ptr<RecordedTrack> &found = tracks[track];
  if (!found)
    found = std::make_unique<RecordedTrack>();
  return *found;
}

} // namespace hloc
