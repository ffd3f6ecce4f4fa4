// Carries a precompiled header; see HlocLayer.cmake.
