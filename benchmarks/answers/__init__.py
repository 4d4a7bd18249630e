"""Whether the answers of the defaults are right, and whether a note says where they are not."""
