"""Tables, the one way into a transaction, and the ledger's statements. It only stores."""
