// What the driver says about the machine: the limits that lanewise.machine states, and resident blocks per SM for a
// few launches. Prints one JSON object.
#include <cstdio>

__global__ void kernel(int* out) {
  extern __shared__ int tile[];
  out[threadIdx.x] = tile[threadIdx.x];
}

int main() {
  cudaDeviceProp p;
  if (cudaGetDeviceProperties(&p, 0) != cudaSuccess) return std::fprintf(stderr, "no GPU\n"), 1;
  std::printf("{\"capability\": [%d, %d], \"warp_lanes\": %d, \"sms\": %d, \"max_threads_per_block\": %d,\n", p.major,
              p.minor, p.warpSize, p.multiProcessorCount, p.maxThreadsPerBlock);
  std::printf(" \"max_threads_per_sm\": %d, \"max_blocks_per_sm\": %d, \"registers_per_sm\": %d,\n",
              p.maxThreadsPerMultiProcessor, p.maxBlocksPerMultiProcessor, p.regsPerMultiprocessor);
  std::printf(" \"registers_per_block\": %d, \"shared_bytes_per_sm\": %zu, \"static_shared_bytes_per_block\": %zu,\n",
              p.regsPerBlock, p.sharedMemPerMultiprocessor, p.sharedMemPerBlock);
  std::printf(" \"max_shared_bytes_per_block\": %zu, \"reserved_shared_bytes_per_block\": %zu,\n",
              p.sharedMemPerBlockOptin, p.reservedSharedMemPerBlock);
  cudaFuncAttributes attributes;
  cudaFuncGetAttributes(&attributes, kernel);
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)p.sharedMemPerBlockOptin);
  std::printf(" \"registers_per_thread\": %d,\n \"blocks_per_sm\": [", attributes.numRegs);
  const char* separator = "";
  for (int threads : {32, 96, 256, 1024}) {
    for (int bytes : {0, 1, 4096, 4224, 8192, 114688, 115584, 118272, 232448}) {
      int blocks = 0;
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, bytes);
      std::printf("%s\n  {\"threads\": %d, \"shared_bytes\": %d, \"blocks\": %d}", separator, threads, bytes, blocks);
      separator = ",";
    }
  }
  std::printf("]}\n");
  return 0;
}
