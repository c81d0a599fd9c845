"""HTTP: routers, wire models, problems and who may do what. No logic, no storage."""
