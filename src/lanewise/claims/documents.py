"""The public documents that settle what cannot be run here."""

from lanewise.claims.claim import Document
from lanewise.machine import product

PTX = "https://docs.nvidia.com/cuda/parallel-thread-execution/"
NCU = "https://docs.nvidia.com/nsight-compute/ProfilingGuide/"
CLI = "https://docs.nvidia.com/nsight-compute/NsightComputeCli/index.html"
GUIDE = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html"
PRACTICES = "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html"

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
    f"{CLI}#nvprof-metric-comparison",
)
PROGRAMMING_GUIDE = Document(
    "CUDA C++ Programming Guide",
    "compute capabilities",
    f"{GUIDE}#compute-capabilities",
)
BEST_PRACTICES = Document(
    "CUDA C++ Best Practices Guide",
    "shared memory and memory banks",
    f"{PRACTICES}#shared-memory-and-memory-banks",
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
    f"{GUIDE}#built-in-vector-types",
)
SIZEOF = Document("C++ reference", "sizeof operator", "https://en.cppreference.com/w/cpp/language/sizeof")
NCU_REPLAY = Document("Nsight Compute Profiling Guide", "kernel replay", f"{NCU}index.html#replay")
NCU_CLI = Document(
    "Nsight Compute CLI",
    "command line options, profile",
    f"{CLI}#command-line-options",
)
NVPROF_RETIRED = Document(
    "CUDA Profiler User's Guide", "nvprof", "https://docs.nvidia.com/cuda/profiler-users-guide/"
)
PASCAL = Document(
    "Pascal Tuning Guide",
    "unified L1/texture cache",
    "https://docs.nvidia.com/cuda/pascal-tuning-guide/index.html#unified-l1-texture-cache",
)
GLOBAL_MEMORY = Document(
    "CUDA C++ Best Practices Guide",
    "coalesced access to global memory",
    f"{PRACTICES}#coalesced-access-to-global-memory",
)
ALLOCATION_ALIGNMENT = Document(
    "CUDA C++ Programming Guide",
    "size and alignment requirement",
    f"{GUIDE}#device-memory-accesses",
)
SHARED_WRITES = Document(
    "CUDA C++ Programming Guide",
    "SIMT architecture: writes of several lanes to one location",
    f"{GUIDE}#simt-architecture",
)
SHUFFLES = Document(
    "CUDA C++ Programming Guide",
    "warp shuffle functions",
    f"{GUIDE}#warp-shuffle-functions",
)
SYNCHRONISATION = Document(
    "CUDA C++ Programming Guide",
    "synchronization functions",
    f"{GUIDE}#synchronization-functions",
)
TMA = Document(
    "CUDA C++ Programming Guide",
    "asynchronous data copies using the Tensor Memory Accelerator",
    f"{GUIDE}#asynchronous-data-copies-using-the-tensor-memory-accelerator-tma",
)
PTX_CP_ASYNC = Document("PTX ISA", "cp.async", f"{PTX}#data-movement-and-conversion-instructions-cp-async")
PIPELINES = Document(
    "CUDA C++ Programming Guide",
    "asynchronous data copies using cuda::pipeline",
    f"{GUIDE}#asynchronous-data-copies-using-cuda-pipeline",
)
ADA = Document(
    "NVIDIA Ada GPU Architecture",
    "GeForce RTX 4090",
    product("RTX 4090").source,
)
AMPERE = Document("NVIDIA A100 Tensor Core GPU", "data sheet", product("A100 80GB").source)
PYTORCH_FORMATS = Document(
    "PyTorch",
    "channels last memory format",
    "https://pytorch.org/tutorials/intermediate/memory_format_tutorial.html",
)
TENSORFLOW_CONV = Document(
    "TensorFlow", "tf.nn.conv2d", "https://www.tensorflow.org/api_docs/python/tf/nn/conv2d"
)
TENSOR_FORMATS = Document(
    "TensorRT",
    "data formats",
    "https://docs.nvidia.com/deeplearning/tensorrt/",
)
FLASH_ATTENTION = Document(
    "FlashAttention", "theorem 2 and backward pass", "https://arxiv.org/abs/2205.14135"
)
PAGED_ATTENTION = Document("PagedAttention", "sections 3 and 4", "https://arxiv.org/abs/2309.06180")
