#pragma once
// Functions on vectors of the host that pay to be compiled for several kinds of it.

#if defined(__x86_64__) && !__has_feature(address_sanitizer)
#define HLOC_FOR_WIDE_HOSTS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define HLOC_FOR_WIDE_HOSTS
#endif
