"""The runs behind docs/table-1.md."""
