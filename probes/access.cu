// One warp, one memory instruction per launch, so that every counter of a launch belongs to one known pattern.
//
// Input (a file): one launch per line, in launch order:
//     <name> <active mask, hex> <32 byte offsets, lane 0 first> [32 byte offsets of the global source, cp.async alone]
//
// Build: nvcc -O2 -arch=native -o access access.cu        Run under a profiler: see measure.py
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

constexpr int kSharedBytes = 48 * 1024;
constexpr int kGlobalBytes = 1 << 20;

struct Pattern {
  uint32_t mask;
  uint32_t offset[32];
  uint32_t source[32];
};

#define CHECK(call)                                                                  \
  do {                                                                               \
    cudaError_t status = (call);                                                     \
    if (status != cudaSuccess) {                                                     \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status));           \
      std::exit(1);                                                                  \
    }                                                                                \
  } while (0)

// `keep` is 0 at run time, which the compiler cannot know: results stay alive and no store is executed.
#define PROBE(name, body)                                                                              \
  __global__ void name(const __grid_constant__ Pattern pattern, char* global, uint32_t keep) {         \
    extern __shared__ __align__(1024) char tile[];                                                     \
    const uint32_t lane = threadIdx.x;                                                                 \
    const uint32_t tile_address = (uint32_t)__cvta_generic_to_shared(tile);                            \
    const uint32_t shared_address = tile_address + pattern.offset[lane];                               \
    char* const global_address = global + pattern.offset[lane];                                        \
    const bool active = pattern.mask >> lane & 1;                                                      \
    uint32_t r0 = lane, r1 = 1, r2 = 2, r3 = 3;                                                        \
    (void)active, (void)tile_address, (void)shared_address, (void)global_address;                      \
    body;                                                                                              \
    if (keep) ((uint32_t*)global)[lane] = r0 ^ r1 ^ r2 ^ r3;                                           \
  }

#define IF_ACTIVE(...) if (active) asm volatile(__VA_ARGS__)

#define LOADS(space, address, constraint)                                                              \
  PROBE(ld_##space##_b8, IF_ACTIVE("ld." #space ".u8 %0, [%1];" : "=r"(r0) : constraint(address)))     \
  PROBE(ld_##space##_b16, IF_ACTIVE("ld." #space ".u16 %0, [%1];" : "=r"(r0) : constraint(address)))   \
  PROBE(ld_##space##_b32, IF_ACTIVE("ld." #space ".u32 %0, [%1];" : "=r"(r0) : constraint(address)))   \
  PROBE(ld_##space##_b64,                                                                              \
        IF_ACTIVE("ld." #space ".v2.u32 {%0, %1}, [%2];" : "=r"(r0), "=r"(r1) : constraint(address)))  \
  PROBE(ld_##space##_b128, IF_ACTIVE("ld." #space ".v4.u32 {%0, %1, %2, %3}, [%4];"                    \
                                     : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : constraint(address)))

#define STORES(space, address, constraint)                                                             \
  PROBE(st_##space##_b8, IF_ACTIVE("st." #space ".u8 [%0], %1;" ::constraint(address), "r"(r0)))       \
  PROBE(st_##space##_b16, IF_ACTIVE("st." #space ".u16 [%0], %1;" ::constraint(address), "r"(r0)))     \
  PROBE(st_##space##_b32, IF_ACTIVE("st." #space ".u32 [%0], %1;" ::constraint(address), "r"(r0)))     \
  PROBE(st_##space##_b64,                                                                              \
        IF_ACTIVE("st." #space ".v2.u32 [%0], {%1, %2};" ::constraint(address), "r"(r0), "r"(r1)))     \
  PROBE(st_##space##_b128, IF_ACTIVE("st." #space ".v4.u32 [%0], {%1, %2, %3, %4};" ::constraint(      \
                               address), "r"(r0), "r"(r1), "r"(r2), "r"(r3)))

PROBE(none, )  // no memory instruction: what a launch counts by itself
LOADS(shared, shared_address, "r")
STORES(shared, shared_address, "r")
LOADS(global, global_address, "l")
STORES(global, global_address, "l")

// Matrix instructions take part as a whole warp; the mask is ignored.
#define LDMATRIX(suffix, ptx)                                                                          \
  PROBE(ldmatrix_x1##suffix, asm volatile("ldmatrix.sync.aligned.m8n8.x1" ptx ".shared.b16 {%0}, [%1];"\
                                          : "=r"(r0) : "r"(shared_address)))                           \
  PROBE(ldmatrix_x2##suffix,                                                                           \
        asm volatile("ldmatrix.sync.aligned.m8n8.x2" ptx ".shared.b16 {%0, %1}, [%2];"                 \
                     : "=r"(r0), "=r"(r1) : "r"(shared_address)))                                      \
  PROBE(ldmatrix_x4##suffix,                                                                           \
        asm volatile("ldmatrix.sync.aligned.m8n8.x4" ptx ".shared.b16 {%0, %1, %2, %3}, [%4];"         \
                     : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(shared_address)))
LDMATRIX(, "")
LDMATRIX(_trans, ".trans")

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define STMATRIX(suffix, ptx)                                                                          \
  PROBE(stmatrix_x1##suffix, asm volatile("stmatrix.sync.aligned.m8n8.x1" ptx ".shared.b16 [%0], {%1};"\
                                          ::"r"(shared_address), "r"(r0)))                             \
  PROBE(stmatrix_x2##suffix,                                                                           \
        asm volatile("stmatrix.sync.aligned.m8n8.x2" ptx ".shared.b16 [%0], {%1, %2};"                 \
                     ::"r"(shared_address), "r"(r0), "r"(r1)))                                         \
  PROBE(stmatrix_x4##suffix,                                                                           \
        asm volatile("stmatrix.sync.aligned.m8n8.x4" ptx ".shared.b16 [%0], {%1, %2, %3, %4};"         \
                     ::"r"(shared_address), "r"(r0), "r"(r1), "r"(r2), "r"(r3)))
#else
#define STMATRIX(suffix, ptx)                                                                          \
  PROBE(stmatrix_x1##suffix, ) PROBE(stmatrix_x2##suffix, ) PROBE(stmatrix_x4##suffix, )
#endif
STMATRIX(, "")
STMATRIX(_trans, ".trans")

// Atomics. The value differs from lane to lane unless the name says `one`, where it is the constant 1.
PROBE(red_shared_add_u32, IF_ACTIVE("red.shared.add.u32 [%0], %1;" ::"r"(shared_address), "r"(r0)))
PROBE(red_shared_add_one, IF_ACTIVE("red.shared.add.u32 [%0], 1;" ::"r"(shared_address)))
PROBE(red_shared_add_u64, IF_ACTIVE("red.shared.add.u64 [%0], %1;" ::"r"(shared_address), "l"((uint64_t)r0)))
PROBE(red_shared_add_f32, IF_ACTIVE("red.shared.add.f32 [%0], %1;" ::"r"(shared_address), "f"((float)r0)))
PROBE(atom_shared_add_u32,
      IF_ACTIVE("atom.shared.add.u32 %0, [%1], %2;" : "=r"(r1) : "r"(shared_address), "r"(r0)))
PROBE(atom_shared_exch_b32,
      IF_ACTIVE("atom.shared.exch.b32 %0, [%1], %2;" : "=r"(r1) : "r"(shared_address), "r"(r0)))
PROBE(atom_shared_cas_b32,
      IF_ACTIVE("atom.shared.cas.b32 %0, [%1], %2, %3;" : "=r"(r1) : "r"(shared_address), "r"(r0), "r"(r2)))
PROBE(red_global_add_u32, IF_ACTIVE("red.global.add.u32 [%0], %1;" ::"l"(global_address), "r"(r0)))
PROBE(atom_global_add_u32,
      IF_ACTIVE("atom.global.add.u32 %0, [%1], %2;" : "=r"(r1) : "l"(global_address), "r"(r0)))

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define ASYNC(cache, bytes, destination, source)                                                        \
  IF_ACTIVE("cp.async." cache ".shared.global [%0], [%1], " #bytes ";" ::"r"(destination), "l"(source)); \
  asm volatile("cp.async.wait_all;" ::: "memory")
#else
#define ASYNC(cache, bytes, destination, source)
#endif
#define ASYNC_COPY(name, cache, bytes) PROBE(name, ASYNC(cache, bytes, shared_address, global + pattern.source[lane]))
ASYNC_COPY(cp_async_ca_4, "ca", 4)
ASYNC_COPY(cp_async_ca_8, "ca", 8)
ASYNC_COPY(cp_async_ca_16, "ca", 16)
ASYNC_COPY(cp_async_cg_16, "cg", 16)

using Kernel = void (*)(const Pattern, char*, uint32_t);
const std::map<std::string, Kernel> kKernels = {
    {"none", none},
    {"ld.shared.b8", ld_shared_b8},
    {"ld.shared.b16", ld_shared_b16},
    {"ld.shared.b32", ld_shared_b32},
    {"ld.shared.b64", ld_shared_b64},
    {"ld.shared.b128", ld_shared_b128},
    {"st.shared.b8", st_shared_b8},
    {"st.shared.b16", st_shared_b16},
    {"st.shared.b32", st_shared_b32},
    {"st.shared.b64", st_shared_b64},
    {"st.shared.b128", st_shared_b128},
    {"ld.global.b8", ld_global_b8},
    {"ld.global.b16", ld_global_b16},
    {"ld.global.b32", ld_global_b32},
    {"ld.global.b64", ld_global_b64},
    {"ld.global.b128", ld_global_b128},
    {"st.global.b8", st_global_b8},
    {"st.global.b16", st_global_b16},
    {"st.global.b32", st_global_b32},
    {"st.global.b64", st_global_b64},
    {"st.global.b128", st_global_b128},
    {"ldmatrix.x1", ldmatrix_x1},
    {"ldmatrix.x2", ldmatrix_x2},
    {"ldmatrix.x4", ldmatrix_x4},
    {"ldmatrix.x1.trans", ldmatrix_x1_trans},
    {"ldmatrix.x2.trans", ldmatrix_x2_trans},
    {"ldmatrix.x4.trans", ldmatrix_x4_trans},
    {"stmatrix.x1", stmatrix_x1},
    {"stmatrix.x2", stmatrix_x2},
    {"stmatrix.x4", stmatrix_x4},
    {"stmatrix.x1.trans", stmatrix_x1_trans},
    {"stmatrix.x2.trans", stmatrix_x2_trans},
    {"stmatrix.x4.trans", stmatrix_x4_trans},
    {"red.shared.add.u32", red_shared_add_u32},
    {"red.shared.add.one", red_shared_add_one},
    {"red.shared.add.u64", red_shared_add_u64},
    {"red.shared.add.f32", red_shared_add_f32},
    {"atom.shared.add.u32", atom_shared_add_u32},
    {"atom.shared.exch.b32", atom_shared_exch_b32},
    {"atom.shared.cas.b32", atom_shared_cas_b32},
    {"red.global.add.u32", red_global_add_u32},
    {"atom.global.add.u32", atom_global_add_u32},
    {"cp.async.ca.4", cp_async_ca_4},
    {"cp.async.ca.8", cp_async_ca_8},
    {"cp.async.ca.16", cp_async_ca_16},
    {"cp.async.cg.16", cp_async_cg_16},
};

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: access PATTERN_FILE\n"), 2;
  std::ifstream file(argv[1]);
  if (!file) return std::fprintf(stderr, "cannot read %s\n", argv[1]), 2;

  char* global = nullptr;
  CHECK(cudaMalloc(&global, kGlobalBytes));
  CHECK(cudaMemset(global, 0, kGlobalBytes));

  int launches = 0;
  for (std::string line; std::getline(file, line); ++launches) {
    std::istringstream words(line);
    std::string name;
    Pattern pattern = {};
    words >> name >> std::hex >> pattern.mask >> std::dec;
    for (uint32_t& offset : pattern.offset) words >> offset;
    const bool complete = !words.fail();
    for (uint32_t& offset : pattern.source) words >> offset;
    if (!complete || !kKernels.count(name)) {
      return std::fprintf(stderr, "line %d is not a pattern: %s\n", launches + 1, line.c_str()), 2;
    }
    kKernels.at(name)<<<1, 32, kSharedBytes>>>(pattern, global, 0u);
    CHECK(cudaDeviceSynchronize());
  }
  std::printf("%d launches\n", launches);
  return 0;
}
