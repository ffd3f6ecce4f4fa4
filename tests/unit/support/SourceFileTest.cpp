#include "hloc/support/SourceFile.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <thread>

using namespace hloc;

TEST_CASE("source-file-lines-and-offsets-are-inverse") {
  SourceFile file("a.hlo", "one\n\nthree\n");
  CHECK(file.lineColumn(0).line == 1);
  CHECK(file.lineColumn(4).line == 2);
  CHECK(file.lineColumn(7).line == 3);
  CHECK(file.lineColumn(7).column == 3);
  CHECK(file.offsetOf({3, 3}) == 7);
  CHECK(file.offsetOf({99, 1}) == 11);
  CHECK(file.lineAt(7) == "three");
}

// Kernels are compiled in parallel, and each asks for the lines of its instructions.
TEST_CASE("source-file-serves-threads-that-ask-at-once") {
  std::string text;
  constexpr uint32_t lines = 20000;
  for (uint32_t line = 0; line < lines; ++line)
    text += "12345678\n";
  std::atomic<uint32_t> wrong = 0;
  for (int round = 0; round < 50; ++round) {
    SourceFile file("a.hlo", text);
    std::atomic<bool> go = false;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        while (!go)
          std::this_thread::yield();
        LineColumn place = file.lineColumn((lines - 1) * 9 + 2);
        wrong += place.line != lines || place.column != 3;
      });
    go = true;
    for (std::thread &thread : threads)
      thread.join();
  }
  CHECK(wrong == 0);
}
