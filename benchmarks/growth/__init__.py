"""How time and memory of every weighter grow with the rows and columns."""
