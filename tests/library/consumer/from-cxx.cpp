// Compiles the file that it is given for two targets, with progress: from-cxx FILE.hlo
#include <hloc.hpp>

#include <fstream>
#include <iostream>
#include <iterator>

int main(int argc, char **argv) {
  std::ifstream file(argc > 1 ? argv[1] : "");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const hloc::Control control([](size_t done, size_t all) { std::clog << done << " of " << all << " kernels\n"; });
  const hloc::Compilation compilation = hloc::compile(argv[1], text, {"--target=sm_80,sm_90"}, &control);
  for (const hloc::Diagnostic &diagnostic : compilation.diagnostics())
    std::cerr << diagnostic.file << ":" << diagnostic.line << ": " << diagnostic.kind << ": " << diagnostic.message
              << "\n";
  for (size_t i = 0; i < compilation.numTargets(); ++i)
    std::cout << compilation.target(i) << ": " << compilation.ptx(i).size() << " bytes of PTX, "
              << compilation.manifest(i).size() << " of manifest\n";
  return compilation.status();
}
