// fuzz-seeds FOLDER: writes what the fuzzers start from: generated modules for parser and verifier, constants, indexing
// maps, a manifest, an archive, a launch description; and hlo.dict, the words of HLO text from the tables.
#include "fuzz/ModuleGenerator.h"
#include "fuzz/Targets.h"

#include "hloc/hlo/Printer.h"
#include "hloc/kernel/Manifest.h"
#include "hloc/npz/Npz.h"
#include "hloc/support/Files.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>

using namespace hloc;

namespace {

void write(const std::string &folder, const std::string &name, llvm::StringRef bytes) {
  std::string error;
  if (!createFolders(folder, error) || !writeFile(folder + "/" + name, bytes, error)) {
    llvm::errs() << folder << "/" << name << ": " << error << "\n";
    std::exit(1);
  }
}

std::string dictionary() {
  std::string words;
  auto add = [&](llvm::StringRef word) { words += ("\"" + word + "\"\n").str(); };
  for (unsigned i = 0; i < numOpcodes(); ++i)
    add((" " + text(static_cast<Opcode>(i)) + "(").str());
  for (unsigned i = 0; i < numAttributeKeys(); ++i)
    add((", " + text(static_cast<AttributeKey>(i)) + "=").str());
#define HLOC_ELEMENT_TYPE(name, text, bits, category) add(text "[");
#include "hloc/hlo/ElementTypes.def"
#define HLOC_ENUM_VALUE(type, name, text) add(text);
#include "hlo/EnumValues.def"
  for (const char *word : {"HloModule ",
                           "ENTRY ",
                           "ROOT ",
                           "FileNames",
                           "FunctionNames",
                           "FileLocations",
                           "StackFrames",
                           "{...}",
                           "inf",
                           "-inf",
                           "nan",
                           "-nan(0x",
                           "9223372036854775807",
                           "-9223372036854775808",
                           "18446744073709551615",
                           "<=",
                           "->",
                           "/*",
                           "*/",
                           "//",
                           "_",
                           "x",
                           ":T(8,128)",
                           ":E(4)",
                           "S(5)",
                           "size=3x3",
                           "pad=1_1x0_0",
                           "stride=2",
                           "lhs_dilate=2",
                           "rhs_dilate=2",
                           "rhs_reversal=1",
                           "b01f_01io->b01f",
                           "[2,4]<=[8]",
                           "[4,2]<=[2,4]T(1,0)",
                           "-start(",
                           "-done(",
                           "-update(",
                           "#0"})
    add(word);
  return words;
}

void writeModules(const std::string &folder) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    GeneratorOptions options;
    options.instructions = 1 + seed % 12;
    options.singleDeviceOnly = seed % 3;
    options.maxElements = 16;
    std::string text;
    llvm::raw_string_ostream os(text);
    PrintOptions print;
    print.full = seed % 2;
    printHlo(*generateModule(seed, options), os, print);
    for (const char *target : {"/parser", "/verifier", "/interpreter"})
      write(folder + target, "generated-" + std::to_string(seed) + ".hlo", text);
  }
}

void writeSmallSeeds(const std::string &folder) {
  const char *literals[] = {"f32[2,3]\n{{1,2.5,-inf},{nan,-nan(0x7),1e-40}}",
                            "(s32[], pred[2])\n(7, {true, 0})",
                            "c64[2]\n{(1,2),(-0,nan)}",
                            "s4[3]\n{-8,7,0}",
                            "f8e4m3fn[2]\n{448,-0}",
                            "u64[]\n-1",
                            "f32[100]\n{...}",
                            "f32[0,2]\n{}"};
  for (size_t i = 0; i < std::size(literals); ++i)
    write(folder + "/literal", std::to_string(i), literals[i]);
  const char *maps[] = {
      "(d0, d1)[s0]{rt0} -> (d0 + rt0, s0, d1 / 4), domain: d0 in [0, 9], d1 in [0, 127], s0 in [0, 31], "
      "rt0 in [0, 5], d1 + s0 in [0, 140]",
      "(d0) -> (d0 floordiv 3, d0 mod 3), domain: d0 in [0, 29]",
      "(th_x, bl_x)[v] -> ((bl_x * 128 + th_x) * 4 + v), domain: th_x in [0, 127], bl_x in [0, 99], v in "
      "[0, 3], (bl_x * 128 + th_x) mod 4 in [0, 0]"};
  for (size_t i = 0; i < std::size(maps); ++i)
    write(folder + "/indexing-map", std::to_string(i), maps[i]);
  Manifest manifest;
  manifest.module = "m";
  manifest.target = "sm_90";
  manifest.ptxVersion = "8.0";
  write(folder + "/manifest", "empty.json", printManifest(manifest));
  write(folder + "/launch", "all-parts.json",
        R"({"target": "sm_90", "buffers": [{"id": 7, "bytes": 64, "parameter": 0}, {"id": 9, "bytes": 32}],
  "steps": [{"copy": {"from": {"buffer": 7, "offset": 32, "bytes": 32}, "to": {"buffer": 9, "offset": 0, "bytes": 32}}},
            {"launch": {"kernel": "f", "grid": [2, 1, 1], "block": [16, 1, 1], "dynamic_shared_bytes": 8, "inputs": 1,
              "arguments": [{"buffer": 9, "offset": 0, "bytes": 32}, {"value": 5, "bytes": 4}]}}],
  "results": [{"index": [1], "buffer": 9, "offset": 0, "bytes": 32}]})");
  NpzArray array{"0", "<f4", {2, 3}, std::vector<uint8_t>(24)};
  write(folder + "/npz", "one.npz", writeNpz({array, array}));
  write(folder + "/npz", "one.npy", writeNpy(array));
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    llvm::errs() << "usage: fuzz-seeds FOLDER\n";
    return 2;
  }
  writeModules(argv[1]);
  writeSmallSeeds(argv[1]);
  write(argv[1], "hlo.dict", dictionary());
  return 0;
}
