"""What admins look after: studies, tokens, budgets, the ledger, figures, the key."""
