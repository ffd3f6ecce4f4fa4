// The .npy format: magic, version, a Python dictionary as header, raw elements.

#include "hloc/npz/Npz.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"

#include <algorithm>

namespace hloc {

namespace {

constexpr llvm::StringLiteral magic = "\x93NUMPY";
constexpr size_t maxRank = 64;

struct Header {
  std::string descr;
  std::vector<int64_t> shape;
  bool fortranOrder = false;
};

/// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`: exactly the three keys, in any order.
class HeaderReader {
public:
  HeaderReader(llvm::StringRef text, std::string &error) : text(text), error(error) {}

  std::optional<Header> read() {
    Header header;
    unsigned seen = 0;
    if (!take("{"))
      return fail("no dictionary");
    while (!take("}")) {
      std::string key;
      if (!readString(key) || !take(":"))
        return fail("expected a key");
      bool known = key == "descr"           ? readDescr(header)
                   : key == "fortran_order" ? readBool(header.fortranOrder)
                   : key == "shape"         ? readShape(header.shape)
                                            : false;
      if (!known)
        return fail("bad value of `" + key + "`");
      ++seen;
      if (!take(",") && !text.ltrim().starts_with("}"))
        return fail("expected `,`");
    }
    return seen == 3 ? std::optional(header) : fail("`descr`, `fortran_order` and `shape` are needed");
  }

private:
  std::nullopt_t fail(const std::string &what) {
    error = "malformed .npy header: " + what;
    return std::nullopt;
  }
  bool take(llvm::StringRef token) {
    text = text.ltrim();
    return text.consume_front(token);
  }
  bool readString(std::string &value) {
    text = text.ltrim();
    if (text.empty() || (text[0] != '\'' && text[0] != '"'))
      return false;
    size_t end = text.find(text[0], 1);
    if (end == llvm::StringRef::npos)
      return false;
    value = text.slice(1, end).str();
    text = text.drop_front(end + 1);
    return true;
  }
  bool readDescr(Header &header) { return readString(header.descr); }
  bool readBool(bool &value) {
    value = take("True");
    return value || take("False");
  }
  bool readShape(std::vector<int64_t> &shape) {
    if (!take("("))
      return false;
    while (!take(")")) {
      int64_t dim = 0;
      text = text.ltrim();
      if (text.consumeInteger(10, dim) || dim < 0 || shape.size() == maxRank)
        return false;
      text.consume_front("L"); // as Python 2 wrote it
      shape.push_back(dim);
      if (!take(",") && !text.ltrim().starts_with(")"))
        return false;
    }
    return true;
  }

  llvm::StringRef text;
  std::string &error;
};

/// Bytes of all elements; nothing on overflow.
std::optional<uint64_t> byteCount(const Header &header) {
  uint64_t bytes = descrBytes(header.descr);
  for (int64_t dim : header.shape)
    if (__builtin_mul_overflow(bytes, uint64_t(dim), &bytes) || bytes > uint64_t(INT64_MAX))
      return std::nullopt;
  return bytes;
}

/// Column-major to row-major.
std::vector<uint8_t> toRowMajor(llvm::ArrayRef<uint8_t> from, llvm::ArrayRef<int64_t> shape, unsigned width) {
  std::vector<uint8_t> to(from.size());
  llvm::SmallVector<int64_t, 8> index(shape.size(), 0);
  for (size_t out = 0; out < to.size(); out += width) {
    int64_t in = 0;
    for (size_t i = shape.size(); i-- > 0;)
      in = in * shape[i] + index[i];
    std::copy_n(from.begin() + size_t(in) * width, width, to.begin() + out);
    for (size_t i = shape.size(); i-- > 0 && ++index[i] == shape[i];)
      index[i] = 0;
  }
  return to;
}

/// Swaps each element, or each half of a complex one.
void swapBytes(std::vector<uint8_t> &bytes, llvm::StringRef descr) {
  unsigned width = descrBytes(descr);
  if (descr[1] == 'c')
    width /= 2;
  for (size_t i = 0; i < bytes.size(); i += width)
    std::reverse(bytes.begin() + i, bytes.begin() + i + width);
}

} // namespace

unsigned descrBytes(llvm::StringRef descr) {
  unsigned named = llvm::StringSwitch<unsigned>(descr)
                       .Case("bfloat16", 2)
                       .Cases({"int1", "int2", "int4", "uint1", "uint2", "uint4"}, 1)
                       .Cases({"float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"}, 1)
                       .StartsWith("float8_", 1)
                       .Default(0);
  if (named)
    return named;
  unsigned width = 0;
  bool plain = descr.size() >= 3 && llvm::StringRef("<>|=").contains(descr[0]) &&
               llvm::StringRef("biufcV").contains(descr[1]) && !descr.drop_front(2).getAsInteger(10, width);
  if (!plain)
    return 0;
  switch (descr[1]) {
  case 'b':
    return width == 1 ? 1 : 0;
  case 'i':
  case 'u':
    return width == 1 || width == 2 || width == 4 || width == 8 ? width : 0;
  case 'f':
    return width == 1 || width == 2 || width == 4 || width == 8 ? width : 0; // f1: ml_dtypes' float8_e5m2
  case 'c':
    return width == 8 || width == 16 ? width : 0;
  default: // V: raw bytes
    return width <= 16 ? width : 0;
  }
}

std::optional<NpzArray> readNpy(llvm::StringRef file, std::string &error) {
  auto fail = [&](const char *what) {
    error = what;
    return std::nullopt;
  };
  llvm::StringRef rest = file;
  if (!rest.consume_front(magic) || rest.size() < 6)
    return fail("not a .npy file");
  uint8_t version = uint8_t(rest[0]);
  if (version < 1 || version > 3)
    return fail("unknown version of the .npy format");
  rest = rest.drop_front(2);
  size_t lengthBytes = version == 1 ? 2 : 4;
  size_t length =
      version == 1 ? llvm::support::endian::read16le(rest.data()) : llvm::support::endian::read32le(rest.data());
  rest = rest.drop_front(lengthBytes);
  if (length > rest.size())
    return fail("the .npy header is cut off");
  std::optional<Header> header = HeaderReader(rest.take_front(length), error).read();
  if (!header)
    return std::nullopt;
  rest = rest.drop_front(length);
  if (descrBytes(header->descr) == 0) {
    error = "element type `" + header->descr + "` is not supported";
    return std::nullopt;
  }
  std::optional<uint64_t> bytes = byteCount(*header);
  if (!bytes || *bytes != rest.size())
    return fail("the .npy data does not have the size its header says");
  NpzArray array{"", header->descr, header->shape, {rest.bytes_begin(), rest.bytes_end()}};
  if (header->fortranOrder && array.shape.size() > 1)
    array.bytes = toRowMajor(array.bytes, array.shape, descrBytes(array.descr));
  if (array.descr[0] == '>') {
    swapBytes(array.bytes, array.descr);
    array.descr[0] = '<';
  }
  return array;
}

std::string writeNpy(const NpzArray &array) {
  std::string header = "{'descr': '" + array.descr + "', 'fortran_order': False, 'shape': (";
  for (int64_t dim : array.shape)
    header += std::to_string(dim) + ", ";
  header += "), }";
  // The data starts at a multiple of 64.
  size_t unpadded = magic.size() + 4 + header.size() + 1;
  header.append((64 - unpadded % 64) % 64, ' ');
  header += '\n';
  std::string out = magic.str();
  out += '\x01';
  out += '\0';
  out += char(header.size() & 0xFF);
  out += char(header.size() >> 8);
  out += header;
  out.append(array.bytes.begin(), array.bytes.end());
  return out;
}

} // namespace hloc
