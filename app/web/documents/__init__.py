"""Wire models: what requests and responses look like. Apart from the core's types on purpose."""
