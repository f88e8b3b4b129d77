"""The GPU that timed cases are sized for: an NVIDIA H200 (compute capability 9.0)."""

SMS = 132  # multiprocessors (recorded: machine.json)
