"""Interactive protocols: enrolling, answers, rounds that close by count and by the clock."""
