"""`make bench`: how fast the service is, as ratios measured in one run. See docs/benchmarks.md."""
