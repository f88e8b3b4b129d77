"""The public documents that settle what cannot be run here."""

from lanewise.claims.claim import Document

PTX = "https://docs.nvidia.com/cuda/parallel-thread-execution/"
NCU = "https://docs.nvidia.com/nsight-compute/ProfilingGuide/"

PTX_LDMATRIX = Document("PTX ISA", "ldmatrix", f"{PTX}#warp-level-matrix-instructions-ldmatrix")
PTX_MMA = Document(
    "PTX ISA", "matrix fragments for mma.m16n8k16", f"{PTX}#warp-level-matrix-fragment-mma-16816-float"
)
PTX_WGMMA = Document(
    "PTX ISA",
    "asynchronous warpgroup matrix instructions",
    f"{PTX}#asynchronous-warpgroup-level-matrix-instructions",
)
PTX_ALIGNMENT = Document("PTX ISA", "addresses as operands", f"{PTX}#addresses-as-operands")
KEPLER = Document(
    "Kepler Tuning Guide",
    "shared memory bandwidth",
    "https://docs.nvidia.com/cuda/archive/10.0/kepler-tuning-guide/index.html#shared-memory-bandwidth",
)
NCU_METRICS = Document(
    "Nsight Compute Profiling Guide", "metrics reference", f"{NCU}index.html#metrics-reference"
)
NCU_STALLS = Document(
    "Nsight Compute Profiling Guide", "warp stall reasons", f"{NCU}index.html#statistical-sampler"
)
NCU_SECTIONS = Document("Nsight Compute Profiling Guide", "sections", f"{NCU}index.html#sections-and-rules")
NVPROF = Document(
    "Nsight Compute CLI",
    "nvprof transition guide, metric comparison",
    "https://docs.nvidia.com/nsight-compute/NsightComputeCli/index.html#nvprof-metric-comparison",
)
PROGRAMMING_GUIDE = Document(
    "CUDA C++ Programming Guide",
    "compute capabilities",
    "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#compute-capabilities",
)
BEST_PRACTICES = Document(
    "CUDA C++ Best Practices Guide",
    "shared memory and memory banks",
    "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#shared-memory-and-memory-banks",
)
CUTLASS_SWIZZLE = Document(
    "CUTLASS",
    "include/cute/swizzle.hpp",
    "https://github.com/NVIDIA/cutlass/blob/main/include/cute/swizzle.hpp",
)
CUDA_SAMPLES = Document(
    "CUDA samples",
    "cudaTensorCoreGemm.cu",
    "https://github.com/NVIDIA/cuda-samples/tree/master/Samples/3_CUDA_Features/cudaTensorCoreGemm",
)
VECTOR_TYPES = Document(
    "CUDA C++ Programming Guide",
    "built-in vector types",
    "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#built-in-vector-types",
)
SIZEOF = Document("C++ reference", "sizeof operator", "https://en.cppreference.com/w/cpp/language/sizeof")
