"""The course's kernels: one file per topic, a ladder of rungs that each change one idea.

A kernel is plain numba.cuda, written once: the same function is shown on the page, traced, tested and timed.
Importing a topic needs numba; importing this package does not.
"""
