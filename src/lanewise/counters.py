"""Hardware counters of every counted case, read with Nsight Compute."""
def why_no_profiler() -> str:
    return "to come"
