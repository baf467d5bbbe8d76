"""Side-by-side ratios: `make bench`, or `python -m benchmarks --help`. Rows and bars: design/quality.md."""
