#include "hloc/hlo/ReshapeLayouts.h"

#include "catch2/catch.hpp"

using namespace hloc;

namespace {

Shape shaped(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> minorToMajor) {
  return Shape::array(ElementType::F32, dims).withLayout(minorToMajor);
}

} // namespace

TEST_CASE("reshapes that move nothing", "[hlo]") {
  CHECK(reshapeKeepsOrder(shaped({6, 4}, {1, 0}), shaped({2, 3, 4}, {2, 1, 0})));
  CHECK(reshapeKeepsOrder(shaped({6, 4}, {0, 1}), shaped({2, 3, 4}, {1, 0, 2})));
  CHECK(reshapeKeepsOrder(shaped({6, 4}, {0, 1}), shaped({1, 6, 1, 4}, {0, 1, 2, 3})));
  CHECK(reshapeKeepsOrder(shaped({2, 3, 4}, {2, 1, 0}), shaped({24}, {0})));
  CHECK(reshapeKeepsOrder(shaped({}, {}), shaped({1, 1}, {0, 1})));
  CHECK(reshapeKeepsOrder(shaped({0, 4}, {0, 1}), shaped({4, 0}, {0, 1})));
  CHECK_FALSE(reshapeKeepsOrder(shaped({6, 4}, {0, 1}), shaped({2, 3, 4}, {2, 1, 0})));
  CHECK_FALSE(reshapeKeepsOrder(shaped({6, 4}, {1, 0}), shaped({2, 3, 4}, {2, 0, 1})));
  CHECK_FALSE(reshapeKeepsOrder(shaped({6, 4}, {0, 1}), shaped({3, 8}, {1, 0})));
  CHECK_FALSE(reshapeKeepsOrder(shaped({2, 3}, {1, 0}), shaped({2, 3}, {0, 1})));
}

TEST_CASE("layouts before reshapes that move nothing", "[hlo]") {
  auto before = [](llvm::ArrayRef<int64_t> dims, const Shape &to) {
    std::optional<llvm::SmallVector<int64_t, 6>> layout = layoutBeforeReshape(dims, to);
    return layout ? std::vector<int64_t>(layout->begin(), layout->end()) : std::vector<int64_t>{-1};
  };
  CHECK(before({6, 4}, shaped({2, 3, 4}, {2, 1, 0})) == std::vector<int64_t>{1, 0});
  CHECK(before({6, 4}, shaped({2, 3, 4}, {1, 0, 2})) == std::vector<int64_t>{0, 1});
  CHECK(before({6, 1, 4}, shaped({2, 3, 4}, {1, 0, 2})) == std::vector<int64_t>{0, 2, 1});
  CHECK(before({6, 4}, shaped({2, 3, 4}, {0, 1, 2})) == std::vector<int64_t>{-1});
  CHECK(before({6, 4}, shaped({3, 8}, {0, 1})) == std::vector<int64_t>{-1});
}
