#include "CublasLt.h"

#include <algorithm>

namespace hloc {

using namespace cublaslt;

namespace {

constexpr int cudaTypes[] = {
#define HLOC_LIBRARY_TYPE(name, text, bytes, cuda, cudnn) cuda,
#include "hloc/kernel/LibraryTypes.def"
};
int cudaType(LibraryType type) { return cudaTypes[size_t(type)]; }

struct ComputeRow {
  ComputeType compute;
  LibraryType scale; ///< type of alpha and beta
};
ComputeRow computeOf(MatmulCall::Compute compute) {
  switch (compute) {
  case MatmulCall::Compute::F32:
    return {Compute32F, LibraryType::F32};
  case MatmulCall::Compute::Tf32:
    return {Compute32FFastTf32, LibraryType::F32};
  case MatmulCall::Compute::F64:
    return {Compute64F, LibraryType::F64};
  case MatmulCall::Compute::S32:
    return {Compute32I, LibraryType::S32};
  }
  return {};
}

EpilogueType epilogueOf(MatmulCall::Epilogue epilogue) {
  switch (epilogue) {
  case MatmulCall::Epilogue::Default:
    return EpilogueDefault;
  case MatmulCall::Epilogue::Relu:
    return EpilogueRelu;
  case MatmulCall::Epilogue::Gelu:
    return EpilogueGelu;
  case MatmulCall::Epilogue::Bias:
    return EpilogueBias;
  case MatmulCall::Epilogue::ReluBias:
    return EpilogueReluBias;
  case MatmulCall::Epilogue::GeluBias:
    return EpilogueGeluBias;
  }
  return EpilogueDefault;
}

/// Of the type that products are scaled in, in memory of the host.
struct Scalar {
  double wide = 0;
  float single = 0;
  int32_t whole = 0;
  explicit Scalar(double value) : wide(value), single(float(value)), whole(int32_t(value)) {}
  const void *as(LibraryType type) const {
    return type == LibraryType::F64   ? static_cast<const void *>(&wide)
           : type == LibraryType::S32 ? static_cast<const void *>(&whole)
                                      : static_cast<const void *>(&single);
  }
};

/// The largest power of two up to 256, from which on the library does not ask, that divides an address.
uint32_t alignmentOf(cuda::DevicePointer address) {
  return address ? uint32_t(std::min<uint64_t>(address & (~address + 1), 256)) : 256;
}

std::vector<std::string> namesOf(const std::string &path, const std::vector<std::string> &folders) {
  if (!path.empty())
    return {path};
  std::vector<std::string> names;
  for (const char *version : {"13", "12", "11"})
    names.push_back(std::string("libcublasLt.so.") + version);
  for (const std::string &folder : folders)
    for (size_t i = 0; i < 3; ++i)
      names.push_back(folder + "/" + names[i]);
  return names;
}

} // namespace

std::unique_ptr<CublasLt> CublasLt::open(const std::string &path, const std::vector<std::string> &folders,
                                         std::string &error) {
  std::unique_ptr<CublasLt> opened(new CublasLt(namesOf(path, folders)));
  if (!opened->library.isOpen()) {
    error = "there is no cuBLASLt here: " + opened->library.error() + "; HLOC_CUBLASLT names its file";
    return nullptr;
  }
  if (!opened->findFunctions(error) ||
      !opened->check(opened->cublasLtCreate(&opened->handle), "opening cuBLASLt (cublasLtCreate)", error))
    return nullptr;
  return opened;
}

/// As the device's, results are not looked at.
CublasLt::~CublasLt() {
  for (auto &[key, made] : prepared)
    release(made);
  if (handle)
    cublasLtDestroy(handle);
}

void CublasLt::release(Prepared &made) const {
  for (MatrixLayout layout : {made.a, made.b, made.c, made.d})
    if (layout)
      cublasLtMatrixLayoutDestroy(layout);
  if (made.desc)
    cublasLtMatmulDescDestroy(made.desc);
}

bool CublasLt::findFunctions(std::string &error) {
  std::string missing;
#define HLOC_CUBLASLT_FUNCTION(symbol, result, parameters)                                                             \
  symbol = library.function<result parameters>(#symbol);                                                               \
  if (!symbol)                                                                                                         \
    missing += (missing.empty() ? "" : ", ") + std::string(#symbol);
#include "CublasLtFunctions.def"
  if (missing.empty())
    return true;
  error = "the library `" + library.name() + "` is too old or not cuBLASLt: it lacks " + missing;
  return false;
}

bool CublasLt::check(int status, const std::string &doing, std::string &error) const {
  if (status == Success)
    return true;
  const char *name = cublasLtGetStatusName(status);
  error = doing + ": " + (name ? std::string(name) : "status " + std::to_string(status)) + " of `" + library.name() +
          "`, version " + std::to_string(cublasLtGetVersion());
  return false;
}

bool CublasLt::makeLayout(const MatmulCall &call, const MatmulCall::Matrix &matrix, MatrixLayout &layout,
                          std::string &error) {
  const int32_t batch = int32_t(call.batch);
  const int64_t stride = int64_t(matrix.batchStride);
  return check(cublasLtMatrixLayoutCreate(&layout, cudaType(matrix.type), call.rowsOf(matrix), call.columnsOf(matrix),
                                          int64_t(matrix.leadingDimension)),
               "describing a matrix (cublasLtMatrixLayoutCreate)", error) &&
         check(cublasLtMatrixLayoutSetAttribute(layout, LayoutBatchCount, &batch, sizeof batch),
               "describing a batch (cublasLtMatrixLayoutSetAttribute)", error) &&
         check(cublasLtMatrixLayoutSetAttribute(layout, LayoutStridedBatchOffset, &stride, sizeof stride),
               "describing a batch (cublasLtMatrixLayoutSetAttribute)", error);
}

bool CublasLt::describe(const MatmulCall &call, Prepared &made, std::string &error) {
  const ComputeRow compute = computeOf(call.compute);
  if (!check(cublasLtMatmulDescCreate(&made.desc, compute.compute, cudaType(compute.scale)),
             "describing a product (cublasLtMatmulDescCreate)", error))
    return false;
  auto set = [&](DescAttribute attribute, int32_t value) {
    return check(cublasLtMatmulDescSetAttribute(made.desc, attribute, &value, sizeof value),
                 "describing a product (cublasLtMatmulDescSetAttribute)", error);
  };
  // c is asked for even where beta is 0: it has the layout of the result then.
  return set(DescTransA, call.a.transposed ? OpT : OpN) && set(DescTransB, call.b.transposed ? OpT : OpN) &&
         set(DescEpilogue, epilogueOf(call.epilogue)) && makeLayout(call, call.a, made.a, error) &&
         makeLayout(call, call.b, made.b, error) && makeLayout(call, call.c ? *call.c : call.d, made.c, error) &&
         makeLayout(call, call.d, made.d, error);
}

bool CublasLt::choose(const MatmulCall &call, const std::vector<uint32_t> &alignments, uint64_t workspaceBytes,
                      Prepared &made, std::string &error) {
  Preference preference = nullptr;
  if (!check(cublasLtMatmulPreferenceCreate(&preference), "choosing an algorithm (cublasLtMatmulPreferenceCreate)",
             error))
    return false;
  auto set = [&](PreferenceAttribute attribute, auto value) {
    return check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
                 "choosing an algorithm (cublasLtMatmulPreferenceSetAttribute)", error);
  };
  int found = 0;
  const bool fine =
      set(PrefMaxWorkspaceBytes, workspaceBytes) && set(PrefReductionSchemeMask, uint32_t(ReductionComputeType)) &&
      set(PrefMinAlignmentA, alignments[0]) && set(PrefMinAlignmentB, alignments[1]) &&
      set(PrefMinAlignmentC, alignments[2]) && set(PrefMinAlignmentD, alignments[3]) &&
      check(cublasLtMatmulAlgoGetHeuristic(handle, made.desc, made.a, made.b, made.c, made.d, preference, 1,
                                           &made.algorithm, &found),
            "choosing an algorithm for " + call.configuration() + " (cublasLtMatmulAlgoGetHeuristic)", error);
  cublasLtMatmulPreferenceDestroy(preference);
  if (fine && found == 0)
    error = "`" + library.name() + "` has no algorithm for " + call.configuration();
  return fine && found > 0;
}

bool CublasLt::multiply(const MatmulCall &call, const std::string &configuration,
                        const std::vector<cuda::DevicePointer> &reads, const std::vector<cuda::DevicePointer> &writes,
                        uint64_t workspaceBytes, cuda::Stream stream, std::string &error) {
  const cuda::DevicePointer d = writes.front(), c = call.c ? reads[2] : d;
  std::vector<uint32_t> alignments;
  std::string key = configuration;
  for (cuda::DevicePointer address : {reads[0], reads[1], c, d}) {
    alignments.push_back(alignmentOf(address));
    key += " " + std::to_string(alignments.back());
  }
  auto [place, isNew] = prepared.try_emplace(key);
  Prepared &made = place->second;
  if (isNew && (!describe(call, made, error) || !choose(call, alignments, workspaceBytes, made, error))) {
    release(made);
    prepared.erase(place);
    return false;
  }
  if (call.hasBias() &&
      !check(cublasLtMatmulDescSetAttribute(made.desc, DescBiasPointer, &reads.back(), sizeof reads.back()),
             "naming a bias (cublasLtMatmulDescSetAttribute)", error))
    return false;
  auto pointer = [](cuda::DevicePointer address) { return reinterpret_cast<void *>(address); };
  const LibraryType scale = computeOf(call.compute).scale;
  const Scalar alpha(call.alpha), beta(call.beta);
  return check(cublasLtMatmul(handle, made.desc, alpha.as(scale), pointer(reads[0]), made.a, pointer(reads[1]), made.b,
                              beta.as(scale), pointer(c), made.c, pointer(d), made.d, &made.algorithm.algorithm,
                              pointer(writes.back()), workspaceBytes, stream),
               "multiplying by " + configuration + " (cublasLtMatmul)", error);
}

} // namespace hloc
