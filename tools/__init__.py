"""What maintainers run besides tests: checks of releases, migrations and dependencies. `make` names them."""
