"""The papers' tables and figures, by simulation with seeded noise. Production code cannot reach this."""
