"""What maintainers run besides tests."""
