"""Pages for admins, analysts and people who contribute: rendered here, decided and stored elsewhere."""
