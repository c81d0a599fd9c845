"""What people send: the rules for a record, one by one and in bulk."""
