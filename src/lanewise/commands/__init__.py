"""Commands that look at accesses and kernels; `lanewise.__main__` puts them on the command line.

- `access`: `banks` and `sectors`, one access from a formula
- `trace`: a kernel from a file, its arguments from descriptions (`arguments`)
- `swizzle`: find a layout, explain one
- `explain`: an export of Nsight Compute

A command writes its answer to standard output and nothing else there; `--json` output is one document with
stable keys. Trouble is a sentence on standard error and status 2; `--fail-on` makes what was found status 1.
"""
