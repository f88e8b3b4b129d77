"""The labs, one module each: `build(variant)` returns the `Lab` of that variant, and holds no solution."""
