// kernels/clones.hpp -- one loop, compiled for the oldest and for today's x86-64 processors.
#pragma once

/// Before a function of plain loops: the loader picks the version that the processor can run.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define VLR_CPU_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define VLR_CPU_CLONES
#endif
