#pragma once

#include "hloc/hlo/HloModule.h"
#include "hloc/parser/Parser.h"
#include "hloc/support/Files.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

namespace hloc {

/// Everything that the language has, in all forms of writing it.
inline constexpr const char *sampleText = R"(HloModule sample, is_scheduled=true,
  entry_computation_layout={(f32[4,8]{1,0}, f32[])->(f32[4]{0}, s32[])}

FileNames
1 "a.py"
FunctionNames
1 "main"

%sum (a: f32[], b: f32[]) -> f32[] { // adds
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %r = f32[] add(f32[] %a, %b)
}

twice { p=f32[4] parameter(0)
  ROOT q = add(p, p) }

ENTRY %main (x: f32[4,8], zero: f32[]) -> (f32[4], s32[]) {
  %x = f32[4,8]{1,0} parameter(0)
  %zero = f32[] parameter(1), sharding={replicated}
  %row = f32[4]{0} reduce(%x, %zero), dimensions={1}, to_apply=%sum, metadata={op_name="jit(f)/sum" source_line=3}
  %two = f32[4] call(%row), to_apply=twice
  /* a comment
     of two lines */
  inner = f32[4] map(%two), dimensions={0}, to_apply={
    v = f32[] parameter(0)
    ROOT w = f32[] multiply(v, v)
  }
  %n = (f32[4], /*index=1*/s32[]) tuple(inner, s32[] constant(7)), control-predecessors={%row, %two}
  c = s32[] constant(3), backend_config={"a":[1,2],"b":"x = y"}
  e = f32[4] get-tuple-element(%n), index=0
  m = pred[4] compare(f32[4]{0} e, multiply(%row, %row)), direction=LT
  ROOT %out = (f32[4], s32[]) tuple(e, c)
}, execution_thread="main"
)";

/// The examples, and what HLOC_CORPUS holds that parses.
inline std::vector<std::string> exampleFiles() {
  std::vector<std::string> files;
  const char *corpus = std::getenv("HLOC_CORPUS");
  for (const char *folder : {HLOC_SOURCE_DIR "/hlo_examples", corpus}) {
    std::error_code error;
    if (!folder)
      continue;
    for (llvm::sys::fs::recursive_directory_iterator it(folder, error), end; it != end && !error; it.increment(error)) {
      DiagnosticEngine diagnostics;
      std::string problem;
      if (llvm::sys::path::extension(it->path()) == ".hlo" &&
          (folder != corpus ||
           parseHloModule(std::make_shared<const SourceFile>("f", readFile(it->path(), problem).value_or("")),
                          diagnostics)))
        files.push_back(it->path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

inline std::string textOf(const std::string &file) {
  std::string error;
  return readFile(file, error).value_or("");
}

} // namespace hloc
