"""What a diagnosis costs, and how often it errs."""
