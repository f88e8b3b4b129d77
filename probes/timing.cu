// How long shared-memory instructions take, for chosen bank conflicts. Prints JSON, one case a line.
//
//   latency_cycles   one warp, each instruction waits for the one before it; includes one integer add to the address
//   one_warp_cycles  one warp on one SM, independent instructions: cycles per instruction
//   one_sm_cycles    32 warps on one SM, independent instructions: cycles per warp instruction
//   all_sms_cycles   the same on every SM at once, so that cp.async also shares the L2 cache
//
// Cycles are clock64 ticks of the SM. Each number is the median over blocks of the smallest of several repetitions,
// so that start-up and interference drop out.
//
// Build: nvcc -O2 -arch=native -o timing timing.cu
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

constexpr int kUnroll = 8;
constexpr int kIterations = 64;
constexpr int kWarmUp = 32;
constexpr int kChain = 2048;
constexpr int kRepeats = 5;
constexpr int kSharedBytes = 40 * 1024;

#define CHECK(call)                                                        \
  do {                                                                     \
    cudaError_t status = (call);                                           \
    if (status != cudaSuccess) {                                           \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status)); \
      std::exit(1);                                                        \
    }                                                                      \
  } while (0)

// Each operation returns a loaded value, which is 0 because the tile holds zeros: adding it to the next address makes
// a chain of dependent instructions. `source` is the lane's own 16 bytes of global memory, for cp.async alone.
#define OPERATION(name, ...)                                                                             \
  struct name {                                                                                          \
    static __device__ __forceinline__ uint32_t run(uint32_t address, const char* source) {               \
      uint32_t r0 = 0, r1 = 0, r2 = 0, r3 = 0;                                                           \
      __VA_ARGS__;                                                                                       \
      (void)(r1 | r2 | r3), (void)source;                                                                \
      return r0;                                                                                         \
    }                                                                                                    \
  }
OPERATION(Load32, asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(r0) : "r"(address)));
OPERATION(Load64, asm volatile("ld.volatile.shared.v2.u32 {%0, %1}, [%2];" : "=r"(r0), "=r"(r1) : "r"(address)));
OPERATION(Load128, asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                                : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(address)));
OPERATION(Matrix4, asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                                : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(address) : "memory"));
OPERATION(Store32, asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(address), "r"(0)));
OPERATION(Store128, asm volatile("st.volatile.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(address), "r"(0)));
OPERATION(AtomAdd32, asm volatile("atom.shared.add.u32 %0, [%1], %2;" : "=r"(r0) : "r"(address), "r"(r1)));
OPERATION(AtomCas32, asm volatile("atom.shared.cas.b32 %0, [%1], %2, %2;" : "=r"(r0) : "r"(address), "r"(r1)));
OPERATION(RedAdd32, asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(address), "r"(r1 + threadIdx.y)));
OPERATION(RedAddOne, asm volatile("red.shared.add.u32 [%0], 1;" ::"r"(address)));
OPERATION(RedAddF32, asm volatile("red.shared.add.f32 [%0], %1;" ::"r"(address), "f"(0.0f)));
OPERATION(CopyCa4, asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(source) : "memory"));
OPERATION(CopyCa16, asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(address), "l"(source) : "memory"));
OPERATION(CopyCg16, asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(source) : "memory"));

struct Offsets {
  uint32_t of[32];
  uint32_t per_warp;  // what each warp adds: 0 sends all warps to the same bytes
};

__device__ __forceinline__ uint32_t zeroed_tile() {
  extern __shared__ __align__(1024) char tile[];
  for (int i = threadIdx.x; i < kSharedBytes / 4; i += blockDim.x) ((uint32_t*)tile)[i] = 0;
  __syncthreads();
  return (uint32_t)__cvta_generic_to_shared(tile);
}

template <class Operation>
__global__ void latency(const __grid_constant__ Offsets offsets, const char* source, long long* cycles, uint32_t step,
                        uint32_t keep) {
  uint32_t address = zeroed_tile() + offsets.of[threadIdx.x];
  for (int i = 0; i < 8; ++i) address += Operation::run(address, source);
  const long long start = clock64();
#pragma unroll 128
  for (int i = 0; i < kChain; ++i) address += Operation::run(address, source);
  const long long stop = clock64();
  if (threadIdx.x == 0) cycles[0] = stop - start;
  if (keep) cycles[1] = address;
}

// `step` is 0 at run time, which the compiler cannot know: it may not join the equal accesses into one. A lone warp
// gets many registers and a long unrolled body, so that it never waits for a result while it can issue.
template <class Operation, int kWarps>
__global__ void __launch_bounds__(32 * kWarps) throughput(const __grid_constant__ Offsets offsets, const char* source,
                                                          long long* cycles, uint32_t step, uint32_t keep) {
  source += 16 * (blockIdx.x * blockDim.x + threadIdx.x);
  uint32_t address = zeroed_tile() + offsets.of[threadIdx.x % 32] + offsets.per_warp * (threadIdx.x / 32);
  uint32_t sum = 0;
#pragma unroll 1
  for (int i = 0; i < kWarmUp; ++i) sum += Operation::run(address + step * i, source);
  __syncthreads();
  const long long start = clock64();
#pragma unroll(kWarps == 1 ? 4 : 1)
  for (int i = 0; i < kIterations; ++i) {
    uint32_t got[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) got[u] = Operation::run(address + (step << u), source);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) sum += got[u];
    address += step;
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  const long long stop = clock64();
  if (threadIdx.x == 0) cycles[blockIdx.x] = stop - start;
  if (keep) cycles[0] = sum;
}

char* g_source;
long long* g_cycles;

template <class Kernel>
double median_cycles(Kernel kernel, const Offsets& offsets, int blocks, int threads) {
  std::vector<long long> best(blocks, 1LL << 60), now(blocks);
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    kernel<<<blocks, threads, kSharedBytes>>>(offsets, g_source, g_cycles, 0u, 0u);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(now.data(), g_cycles, blocks * sizeof(long long), cudaMemcpyDeviceToHost));
    for (int b = 0; b < blocks; ++b) best[b] = std::min(best[b], now[b]);
  }
  std::nth_element(best.begin(), best.begin() + blocks / 2, best.end());
  return (double)best[blocks / 2];
}

template <class Operation>
void report(const char* instruction, bool chained, int n_sm, std::function<uint32_t(uint32_t)> offset,
            uint32_t per_warp = 0) {
  Offsets offsets;
  offsets.per_warp = per_warp;
  std::string list;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    offsets.of[lane] = offset(lane);
    list += (lane ? ", " : "") + std::to_string(offsets.of[lane]);
  }
  const double instructions = (double)kUnroll * kIterations;
  std::printf("{\"instruction\": \"%s\", \"byte_offsets\": [%s], \"warp_stride_bytes\": %u, ", instruction,
              list.c_str(), per_warp);
  if (chained) std::printf("\"latency_cycles\": %.3f, ", median_cycles(latency<Operation>, offsets, 1, 32) / kChain);
  std::printf("\"one_warp_cycles\": %.3f, \"one_sm_cycles\": %.3f, \"all_sms_cycles\": %.3f}\n",
              median_cycles(throughput<Operation, 1>, offsets, 1, 32) / instructions,
              median_cycles(throughput<Operation, 32>, offsets, 1, 1024) / (32 * instructions),
              median_cycles(throughput<Operation, 32>, offsets, n_sm, 1024) / (32 * instructions));
  std::fflush(stdout);
}

int main() {
  cudaDeviceProp device;
  CHECK(cudaGetDeviceProperties(&device, 0));
  const int n_sm = device.multiProcessorCount;
  CHECK(cudaMalloc(&g_source, n_sm * 1024 * 16));
  CHECK(cudaMemset(g_source, 0, n_sm * 1024 * 16));
  CHECK(cudaMalloc(&g_cycles, (n_sm + 2) * sizeof(long long)));

  for (uint32_t words : {0, 1, 2, 3, 4, 5, 6, 8, 12, 16, 17, 24, 32, 33}) {
    auto stride = [=](uint32_t lane) { return 4 * words * lane; };
    report<Load32>("ld.shared.b32", true, n_sm, stride);
    report<Store32>("st.shared.b32", false, n_sm, stride);
    report<AtomAdd32>("atom.shared.add.u32", true, n_sm, stride);
    report<RedAdd32>("red.shared.add.u32", false, n_sm, stride);
  }
  for (uint32_t bytes : {8, 16, 32, 64, 128, 136}) {
    report<Load64>("ld.shared.b64", true, n_sm, [=](uint32_t lane) { return bytes * lane; });
  }
  for (uint32_t bytes : {0, 16, 32, 48, 64, 128, 144, 256, 272}) {
    auto stride = [=](uint32_t lane) { return bytes * lane; };
    report<Load128>("ld.shared.b128", true, n_sm, stride);
    report<Matrix4>("ldmatrix.x4", true, n_sm, stride);
    report<Store128>("st.shared.b128", false, n_sm, stride);
    report<CopyCa16>("cp.async.ca.16", false, n_sm, stride, 512);
    report<CopyCg16>("cp.async.cg.16", false, n_sm, stride, 512);
  }
  // Filling a tile row by row: `chunks` lanes of 16 bytes make a row, rows lie `pitch` bytes apart, and the chunks of
  // a row may be turned by XOR with the row number.
  for (uint32_t chunks : {2, 4, 8, 16}) {
    for (uint32_t pitch : {16 * chunks, 16 * chunks + 16, 32 * chunks, 512u, 1024u}) {
      for (uint32_t turn : {0u, chunks - 1}) {
        auto tile = [=](uint32_t lane) {
          const uint32_t row = lane / chunks;
          return pitch * row + 16 * ((lane % chunks) ^ (row & turn));
        };
        report<Store128>("st.shared.b128", false, n_sm, tile);
        report<CopyCa16>("cp.async.ca.16", false, n_sm, tile, 512);
        report<CopyCg16>("cp.async.cg.16", false, n_sm, tile, 512);
      }
    }
  }
  for (uint32_t flip : {1, 2, 7, 8, 16, 31}) {
    auto flipped = [=](uint32_t lane) { return 16 * (lane ^ flip); };
    report<CopyCa16>("cp.async.ca.16", false, n_sm, flipped, 512);
    report<CopyCg16>("cp.async.cg.16", false, n_sm, flipped, 512);
  }
  for (uint32_t words : {0, 1, 2, 4, 8, 16, 32, 33}) {
    report<CopyCa4>("cp.async.ca.4", false, n_sm, [=](uint32_t lane) { return 4 * words * lane; });
  }
  // Neighbouring lanes share a word, 1 to 32 at a time; the words themselves lie in different banks.
  for (uint32_t sharing : {1, 2, 4, 8, 16, 32}) {
    auto shared_words = [=](uint32_t lane) { return 4 * (lane / sharing); };
    report<Load32>("ld.shared.b32", true, n_sm, shared_words);
    report<AtomAdd32>("atom.shared.add.u32", true, n_sm, shared_words);
    report<AtomCas32>("atom.shared.cas.b32", true, n_sm, shared_words);
    report<RedAdd32>("red.shared.add.u32", false, n_sm, shared_words);
    report<RedAddOne>("red.shared.add.one", false, n_sm, shared_words);
    report<RedAddF32>("red.shared.add.f32", false, n_sm, shared_words);
  }
  return 0;
}
