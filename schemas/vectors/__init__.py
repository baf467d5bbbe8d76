"""The project's own test vectors, and the generator that makes them: `python -m schemas.vectors.make`."""
