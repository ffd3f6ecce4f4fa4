#include "driver/UnifiedDiff.h"

#include <catch2/catch.hpp>

using namespace hloc;

TEST_CASE("unified-diff-of-equal-texts-is-empty") { CHECK(unifiedDiff("a\nb\n", "a\nb\n", "x").empty()); }

TEST_CASE("unified-diff-counts-the-lines-of-each-hunk") {
  std::string before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n", after = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n";
  CHECK(unifiedDiff(before, after, "f") == "--- a/f\n+++ b/f\n"
                                           "@@ -2,8 +2,9 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n 9\n+10\n");
}

TEST_CASE("unified-diff-skips-what-is-far-from-a-change") {
  std::string before, after;
  for (int i = 0; i < 100; ++i) {
    before += std::to_string(i) + "\n";
    after += (i == 10 ? "x\ny" : i == 80 ? "x" : std::to_string(i)) + "\n";
  }
  std::string diff = unifiedDiff(before, after, "f");
  CHECK(diff.find("@@ -8,7 +8,8 @@") != std::string::npos);
  CHECK(diff.find("@@ -78,7 +79,7 @@") != std::string::npos);
  CHECK(diff.find(" 50\n") == std::string::npos);
}

TEST_CASE("unified-diff-of-an-empty-text-names-line-0") {
  CHECK(unifiedDiff("", "1\n", "f") == "--- a/f\n+++ b/f\n@@ -0,0 +1,1 @@\n+1\n");
  CHECK(unifiedDiff("1\n", "", "f") == "--- a/f\n+++ b/f\n@@ -1,1 +0,0 @@\n-1\n");
}

TEST_CASE("unified-diff-says-where-the-last-line-has-no-end") {
  CHECK(unifiedDiff("1", "1\n", "a b") ==
        "--- a/a b\t\n+++ b/a b\t\n@@ -1,1 +1,1 @@\n-1\n\\ No newline at end of file\n+1\n");
}

TEST_CASE("unified-diff-leaves-ignored-lines-where-they-are") {
  auto ignored = [](llvm::StringRef line) { return line.starts_with("#"); };
  CHECK(unifiedDiff("#a\n1\n#b\n2\n#c\n", "1\n2\n", "f", ignored).empty());
  CHECK(unifiedDiff("#a\n1\n#b\n2\n#c\n", "1\n3\n", "f", ignored) ==
        "--- a/f\n+++ b/f\n@@ -1,5 +1,5 @@\n #a\n 1\n #b\n-2\n+3\n #c\n");
}
