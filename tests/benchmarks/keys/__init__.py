"""One module for each key; `run` measures it."""
