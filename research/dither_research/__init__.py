"""The papers behind Dither: tables, figures, baselines and audits, by simulation with seeded noise."""
