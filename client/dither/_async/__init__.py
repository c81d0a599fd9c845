"""The methods of `AsyncClient`."""
