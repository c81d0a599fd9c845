"""Answers to questions: how each of them is made, and all of means and what is read off them."""
