"""`python -m app.cli` is `dither`."""

from app.cli import main

main()
