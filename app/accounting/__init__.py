"""What releases cost: exact, and independent of the estimators that caused it."""
