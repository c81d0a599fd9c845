"""Pages. Each reads its request, asks for the documents that the JSON endpoints give, and renders them."""
