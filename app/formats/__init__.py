"""Reading records: strict JSON, NDJSON, CSV, gzip. Nothing else."""
