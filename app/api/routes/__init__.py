"""Routers. An endpoint reads its request, calls one service and shows the result."""
