"""Tests of the course's kernels, one file a topic."""
