"""What must stand: what a former version stored, and how it found it again.

`0.9.0` and its like are installations of released versions: a backup, what they answered, and their sources.
`python -m tests.upgrades.make` makes the one of this version, at a release and never again. `digests.json`
holds the digests of questions; `python -m tests.upgrades.digests` adds those of new ones.
"""
