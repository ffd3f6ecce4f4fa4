// hloc.h for C++17: the same, with owners and views.
//
//   hloc::Compilation compilation = hloc::compile("gelu.hlo", text, {"--target=sm_90"});
//   if (compilation)
//     std::cout << compilation.ptx();
//   else
//     std::cerr << compilation.messages();
#pragma once

#include "hloc.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hloc {
// Apart from the names inside the library.
inline namespace v1 {

/// Cancels compilations, and hears how far they are. Must outlive those that have it.
class Control {
public:
  Control() : handle(hloc_control_create()) {}
  /// `progress` (done and all kernels) is called by several threads at once.
  explicit Control(std::function<void(size_t, size_t)> progress)
      : listener(std::make_unique<std::function<void(size_t, size_t)>>(std::move(progress))), handle(hloc_control_create()) {
    hloc_control_on_progress(
        handle.get(), [](void *data, size_t done, size_t all) { (*static_cast<decltype(listener.get())>(data))(done, all); },
        listener.get());
  }
  /// From any thread.
  void cancel() { hloc_control_cancel(handle.get()); }
  hloc_control *get() const { return handle.get(); }

private:
  struct Destroy {
    void operator()(hloc_control *control) const { hloc_control_destroy(control); }
  };
  std::unique_ptr<std::function<void(size_t, size_t)>> listener;
  std::unique_ptr<hloc_control, Destroy> handle;
};

/// A copy of what a diagnostic says. `line` and `column` count from 1; 0: it is about no place.
struct Diagnostic {
  hloc_severity severity;
  std::string kind, message, file;
  size_t line, column;
  std::vector<Diagnostic> notes;
};

/// What compile() gives. Views live as long as it does.
class Compilation {
public:
  explicit Compilation(hloc_compilation *given) : handle(given) {}

  hloc_status status() const { return hloc_compilation_status(handle.get()); }
  /// Whether it succeeded.
  explicit operator bool() const { return status() == HLOC_OK; }
  /// Diagnostics as the program prints them.
  const char *messages() const { return hloc_compilation_messages(handle.get()); }

  size_t numTargets() const { return hloc_compilation_num_targets(handle.get()); }
  std::string_view target(size_t index = 0) const {
    const char *name = hloc_compilation_target(handle.get(), index);
    return name ? name : std::string_view();
  }
  std::string_view ptx(size_t target = 0) const { return view(hloc_compilation_ptx(handle.get(), target)); }
  std::string_view cubin(size_t target = 0) const { return view(hloc_compilation_cubin(handle.get(), target)); }
  std::string_view manifest(size_t target = 0) const { return view(hloc_compilation_manifest(handle.get(), target)); }

  std::vector<Diagnostic> diagnostics() const {
    std::vector<Diagnostic> all;
    for (size_t i = 0, count = hloc_compilation_num_diagnostics(handle.get()); i < count; ++i)
      all.push_back(copyOf(hloc_compilation_diagnostic(handle.get(), i)));
    return all;
  }

  hloc_compilation *get() const { return handle.get(); }

private:
  static std::string_view view(hloc_bytes bytes) { return {bytes.data ? bytes.data : "", bytes.size}; }
  static Diagnostic copyOf(const hloc_diagnostic *from) {
    Diagnostic copy{hloc_diagnostic_severity(from), hloc_diagnostic_kind(from),   hloc_diagnostic_message(from),
                    hloc_diagnostic_file(from),     hloc_diagnostic_line(from), hloc_diagnostic_column(from),
                    {}};
    for (size_t i = 0, count = hloc_diagnostic_num_notes(from); i < count; ++i)
      copy.notes.push_back(copyOf(hloc_diagnostic_note(from, i)));
    return copy;
  }

  struct Destroy {
    void operator()(hloc_compilation *compilation) const { hloc_compilation_destroy(compilation); }
  };
  std::unique_ptr<hloc_compilation, Destroy> handle;
};

/// hloc_compile. Each option is a word such as `--target=sm_80`.
inline Compilation compile(const std::string &name, std::string_view text, const std::vector<std::string> &options = {},
                           const Control *control = nullptr) {
  std::vector<const char *> words;
  for (const std::string &option : options)
    words.push_back(option.c_str());
  return Compilation(
      hloc_compile(name.c_str(), text.data(), text.size(), words.data(), words.size(), control ? control->get() : nullptr));
}

} // namespace v1
} // namespace hloc
