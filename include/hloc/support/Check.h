#pragma once
// HLOC_CHECK: the channel for our own mistakes. Always on. What the *user* got wrong goes through DiagnosticEngine.

namespace hloc {

/// Prints where and what failed, how to report it, and exits with code 70 (`ExitCode::InternalError`).
[[noreturn]] void reportInternalError(const char *file, int line, const char *what);

} // namespace hloc

#define HLOC_CHECK(condition, what) ((condition) ? void(0) : ::hloc::reportInternalError(__FILE__, __LINE__, what))
#define HLOC_UNREACHABLE(what) ::hloc::reportInternalError(__FILE__, __LINE__, what)
