"""What the defaults do: the demonstration's verdicts, no harm without bias, columns, cost."""
