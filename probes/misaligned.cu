// What a misaligned shared or global access does: faults, or touches other bytes than it was given.
//
// Usage: misaligned NAME SHIFT      one access per process, because a fault ends the CUDA context
// Lane i accesses byte 16 * i + SHIFT of a buffer whose byte k holds k % 256. Prints one JSON line: the error, or
// the first byte that lane 1 really touched (16 + SHIFT if the address was taken as it is).
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

struct Result {
  uint32_t word[4];
  uint8_t shared[1024];
};

enum Access { kLoad16, kLoad32, kLoad64, kLoad128, kStore128, kLdmatrix, kStmatrix, kGlobalLoad32, kGlobalLoad128,
              kCopyTo4, kCopyTo16, kCopyFrom16, kAtomic32 };
const char* const kNames[] = {"ld.shared.b16", "ld.shared.b32", "ld.shared.b64", "ld.shared.b128", "st.shared.b128",
                              "ldmatrix.x4", "stmatrix.x4", "ld.global.b32", "ld.global.b128", "cp.async.ca.4",
                              "cp.async.ca.16", "cp.async.ca.16.source", "atom.shared.add.u32"};

__global__ void access(int kind, uint32_t shift, const uint8_t* global, Result* result) {
  __shared__ __align__(1024) uint8_t tile[1024];
  const uint32_t lane = threadIdx.x;
  for (uint32_t i = lane; i < sizeof tile; i += 32) tile[i] = (uint8_t)i;
  __syncwarp();
  const uint32_t row = (uint32_t)__cvta_generic_to_shared(tile) + 16 * lane;
  const uint32_t address = row + shift;
  const uint8_t* const source = global + 16 * lane + shift;
  uint32_t a = 0, b = 0, c = 0, d = 0;
  switch (kind) {
    case kLoad16: asm volatile("ld.shared.u16 %0, [%1];" : "=r"(a) : "r"(address)); break;
    case kLoad32: asm volatile("ld.shared.u32 %0, [%1];" : "=r"(a) : "r"(address)); break;
    case kLoad64: asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(address)); break;
    case kLoad128:
      asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(address));
      break;
    case kStore128:
      asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(address), "r"(0xeeeeeeeeu) : "memory");
      break;
    case kLdmatrix:
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(address) : "memory");
      break;
#if __CUDA_ARCH__ >= 900
    case kStmatrix:
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %1, %1, %1};" ::"r"(address),
                   "r"(0xeeeeeeeeu) : "memory");
      break;
#endif
    case kGlobalLoad32: asm volatile("ld.global.u32 %0, [%1];" : "=r"(a) : "l"(source)); break;
    case kGlobalLoad128:
      asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(source));
      break;
#if __CUDA_ARCH__ >= 800
    // The copies bring bytes of 0xee from the second half of the global buffer into lane 1's row alone.
    case kCopyTo4:
      if (lane == 1) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(global + 1024));
      break;
    case kCopyTo16:
      if (lane == 1) asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(address), "l"(global + 1024));
      break;
    case kCopyFrom16: asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(row), "l"(source)); break;
#endif
    case kAtomic32: asm volatile("atom.shared.add.u32 %0, [%1], %2;" : "=r"(a) : "r"(address), "r"(0)); break;
  }
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
  __syncwarp();
  if (kind == kCopyFrom16) a = *(const uint32_t*)(tile + 16 * lane);
  // Lane 4 of ldmatrix holds the first word of row 1.
  if (lane == (kind == kLdmatrix ? 4 : 1)) {
    const uint32_t words[4] = {a, b, c, d};
    for (int i = 0; i < 4; ++i) result->word[i] = words[i];
  }
  for (uint32_t i = lane; i < sizeof tile; i += 32) result->shared[i] = tile[i];
}

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: misaligned NAME SHIFT\n"), 2;
  int kind = 0;
  const int n_kinds = sizeof kNames / sizeof *kNames;
  while (kind < n_kinds && std::strcmp(kNames[kind], argv[1])) ++kind;
  if (kind == n_kinds) return std::fprintf(stderr, "unknown access %s\n", argv[1]), 2;
  const uint32_t shift = (uint32_t)std::stoul(argv[2]);

  uint8_t bytes[2048];
  for (int i = 0; i < 2048; ++i) bytes[i] = i < 1024 ? (uint8_t)i : 0xee;
  uint8_t* global;
  Result* device;
  Result result;
  cudaMalloc(&global, sizeof bytes);
  cudaMemcpy(global, bytes, sizeof bytes, cudaMemcpyHostToDevice);
  cudaMalloc(&device, sizeof result);
  access<<<1, 32>>>(kind, shift, global, device);
  const cudaError_t status = cudaDeviceSynchronize();
  std::printf("{\"instruction\": \"%s\", \"shift_bytes\": %u, \"error\": ", argv[1], shift);
  if (status != cudaSuccess) return std::printf("\"%s\"}\n", cudaGetErrorString(status)), 0;
  cudaMemcpy(&result, device, sizeof result, cudaMemcpyDeviceToHost);

  const bool writes = kind == kStore128 || kind == kStmatrix || kind == kCopyTo4 || kind == kCopyTo16;
  int first = -1;
  if (writes) {
    for (int i = 16; i < 48 && first < 0; ++i) {
      if (result.shared[i] == 0xee) first = i;
    }
  } else {
    first = result.word[0] & 0xff;
  }
  std::printf("null, \"first_byte\": %d, \"words\": [\"%08x\", \"%08x\", \"%08x\", \"%08x\"]}\n", first, result.word[0],
              result.word[1], result.word[2], result.word[3]);
  return 0;
}
