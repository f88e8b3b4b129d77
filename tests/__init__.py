"""Tests of the package, the pages and the tools; helpers that they share have names without `test_`."""
