"""The course's kernels: a ladder for each topic, whose rungs each change one idea.

A topic's file has its name; what does not fit continues in `<topic>_<part>`. In the order of the course:

- shared memory: `banks` (one warp, one pattern; then `banks_widths` and `banks_repeated`), `padding` (a
  transpose through a tile; `padding_reads`), `swizzle` (`swizzle_reads`, `swizzle_costs`), `tensor_cores`
- global memory: `coalescing`, `data_layouts`; and copies that run ahead: `async_pipelines`
- matrix products: `sgemm` (`sgemm_registers`, `sgemm_pipelined`, `sgemm_fast`) in float32, `hgemm`
  (`hgemm_stages`, `hgemm_fast`) in float16
- other cases: `reduction`, `scan`, `fft` (`fft_fast`), `layernorm_gelu`, `attention` (`attention_flash`)
- `tracer`: a product whose machine code differs from its source

Each file opens with its menu, launch shapes and allowed sizes. A docstring opens with what changed against
the rung before, or against the rung that it names: "Changed from ...". A kernel does not check its sizes.

A kernel is plain numba.cuda, written once: the same function is shown on the page, traced, tested and timed.
Importing a topic needs numba; importing this package does not.
"""
