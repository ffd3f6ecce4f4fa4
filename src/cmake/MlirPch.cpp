// Carries the precompiled header of the MLIR layers; see HlocLayer.cmake.
