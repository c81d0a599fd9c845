"""The estimators that the papers compare theirs with: entry points `dither.estimators`."""
